"""Which slot of a fleet's memory has the record of a key: a compiled hash table for numbers, a dictionary for texts."""

from typing import Protocol

import numpy as np

from onepass.engine.fleet import find_keys, put_keys, remove_keys
from onepass.models.fleet.keys import Keys, Slots

__all__ = ["IntIndex", "KeyIndex", "StrIndex", "make_index"]


class KeyIndex(Protocol):
    """A bijection between keys and slots, the numbers of rows in an array."""

    def check(self, keys: Keys) -> None:
        """Raise a TypeError for keys of the other kind."""
        ...

    def find(self, keys: Keys) -> Slots:
        """Return the slot of each key, -1 for one that has none."""
        ...

    def put(self, keys: Keys, slots: Slots) -> None:
        """Add new keys, each with its slot."""
        ...

    def remove(self, slots: Slots) -> None:
        """Remove the keys in these slots."""
        ...

    def keys_at(self, slots: Slots) -> Keys:
        """Return the keys in these slots."""
        ...


class IntIndex:
    """Whole numbers in a compiled hash table: about 20 bytes per key."""

    def __init__(self) -> None:
        self._keys = np.zeros(1024, dtype=np.int64)  # by slot
        self._table = np.zeros(4096, dtype=np.int32)
        self._count = 0

    def check(self, keys: Keys) -> None:
        """Raise a TypeError for keys of the other kind."""
        if len(keys) and not isinstance(keys, np.ndarray):
            raise TypeError(f"keys must be integers, as the fleet's first keys were, got {keys[0]!r}")

    def find(self, keys: Keys) -> Slots:
        """Return the slot of each key, -1 for one that has none."""
        return find_keys(keys, self._table, self._keys)

    def put(self, keys: Keys, slots: Slots) -> None:
        """Add new keys, each with its slot."""
        most = int(slots.max(initial=-1)) + 1
        if most > len(self._keys):
            self._keys.resize(max(most, len(self._keys) * 9 // 8), refcheck=False)
        self._keys[slots] = keys
        self._count += len(slots)
        if 2 * self._count > len(self._table):
            old = self._table[self._table > 0].astype(np.int64) - 1
            # The next power of two that leaves the table at most half full, with room to grow.
            self._table = np.zeros(1 << (5 * self._count // 2).bit_length(), dtype=np.int32)
            put_keys(old, self._table, self._keys)
        put_keys(slots, self._table, self._keys)

    def remove(self, slots: Slots) -> None:
        """Remove the keys in these slots."""
        remove_keys(slots, self._table, self._keys)
        self._count -= len(slots)

    def keys_at(self, slots: Slots) -> Keys:
        """Return the keys in these slots."""
        return self._keys[slots]


class StrIndex:
    """Texts in a dictionary."""

    def __init__(self) -> None:
        self._slots: dict[str, int] = {}
        self._keys: list[str] = []  # by slot

    def check(self, keys: Keys) -> None:
        """Raise a TypeError for keys of the other kind."""
        if len(keys) and isinstance(keys, np.ndarray):
            raise TypeError(f"keys must be strings, as the fleet's first keys were, got {keys[0]!r}")

    def find(self, keys: Keys) -> Slots:
        """Return the slot of each key, -1 for one that has none."""
        get = self._slots.get
        return np.array([get(key, -1) for key in keys], dtype=np.int64)

    def put(self, keys: Keys, slots: Slots) -> None:
        """Add new keys, each with its slot."""
        self._keys += [""] * (int(slots.max(initial=-1)) + 1 - len(self._keys))
        for key, slot in zip(keys, slots.tolist(), strict=True):
            self._slots[key] = slot
            self._keys[slot] = key

    def remove(self, slots: Slots) -> None:
        """Remove the keys in these slots."""
        for slot in slots.tolist():
            del self._slots[self._keys[slot]]
            self._keys[slot] = ""

    def keys_at(self, slots: Slots) -> Keys:
        """Return the keys in these slots."""
        return [self._keys[slot] for slot in slots.tolist()]


def make_index(keys: Keys) -> KeyIndex:
    """Make an empty index for keys of this kind."""
    return IntIndex() if isinstance(keys, np.ndarray) else StrIndex()
