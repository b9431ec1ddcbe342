"""Records by key: in one array, and beyond its capacity in a file.

Every key in memory has a slot, a row of the array; slots that become free are used again. Where a capacity is set, the
keys learned longest ago are evicted to a `Spill` file and come back to memory when they are next learned; reading an
evicted key leaves it in the file. A key is always in exactly one of the two places, even after Ctrl-C.
"""

from pathlib import Path
from typing import Any

import numpy as np

from onepass._typing import FloatArray
from onepass.models.fleet.index import KeyIndex, make_index
from onepass.models.fleet.keys import Keys, Slots, take_keys, unique_keys
from onepass.models.fleet.records import AT_TOUCHED
from onepass.models.fleet.spill import Spill

__all__ = ["RecordStore"]

_NONE: Slots = np.empty(0, dtype=np.int64)
_FIRST_ROOM = 1024
_SLACK = 16  # one in so many keys is evicted beyond need, so that evictions are fewer and larger


class RecordStore:
    """Records of one width, by key.

    Parameters
    ----------
    width : int
        Length of a record.

    Examples
    --------
    >>> store = RecordStore(7)
    >>> slots, new = store.assign(["ann", "bob", "ann"], np.zeros(7))
    >>> slots, new, len(store)
    (array([0, 1, 0]), array([0, 1]), 2)
    """

    def __init__(self, width: int) -> None:
        self.records = np.zeros((0, width))
        """The array of records, ``(room, width)``; replaced by a larger one when keys are added."""
        self.capacity: int | None = None
        """Maximum number of keys in memory; None for no limit."""
        self._index: KeyIndex | None = None  # made with the first keys, since it depends on their kind
        self._spill: Spill | None = None
        self._free: list[int] = []
        self._count = 0  # slots in use or free

    # Reading.

    def __len__(self) -> int:
        return self.resident + (0 if self._spill is None else len(self._spill))

    @property
    def resident(self) -> int:
        """Number of keys in memory."""
        return self._count - len(self._free)

    def slots(self) -> Slots:
        """Return the slots in use."""
        mask = np.ones(self._count, dtype=bool)
        mask[self._free] = False
        return np.flatnonzero(mask)

    @property
    def has_number_keys(self) -> bool:
        """Whether keys are whole numbers; texts, or none so far, otherwise."""
        return self._index is not None and isinstance(self._index.keys_at(_NONE), np.ndarray)

    def contains(self, keys: Keys) -> bool:
        """Whether the one key in ``keys`` is in memory or in the file."""
        if self._index is None or isinstance(keys, np.ndarray) != self.has_number_keys:
            return False
        return bool(self._index.find(keys)[0] >= 0) or bool(self._spill is not None and self._spill.find(keys)[0])

    def find(self, keys: Keys) -> tuple[Slots, FloatArray]:
        """Return the row of each key in an array of records, -1 where there is none, and that array.

        Evicted keys are read from the file and stay there.
        """
        if self._index is None:
            return np.full(len(keys), -1, dtype=np.int64), self.records
        self._index.check(keys)
        slots = self._index.find(keys)
        if self._spill is None or not (slots < 0).any():
            return slots, self.records
        missing = np.flatnonzero(slots < 0)
        names, inverse = unique_keys(take_keys(keys, missing))
        found, evicted = self._spill.find(names)
        place = np.full(len(names), -1, dtype=np.int64)
        place[found] = np.arange(len(found))
        # The array: the needed records in memory, then those from the file.
        resident, own = np.unique(slots[slots >= 0], return_inverse=True)
        slots[slots >= 0] = own
        slots[missing] = np.where(place[inverse] >= 0, place[inverse] + len(resident), -1)
        return slots, np.vstack([self.records[resident], evicted])

    def keys(self) -> Keys | None:
        """Return all keys, those in memory before evicted ones; None if there has never been one."""
        if self._index is None:
            return None
        keys = self._index.keys_at(self.slots())
        if self._spill is None or not len(self._spill):
            return keys
        evicted = [key for key, _ in self._spill.all()]
        return np.append(keys, evicted).astype(np.int64) if isinstance(keys, np.ndarray) else keys + evicted

    def all_records(self) -> FloatArray:
        """Return a copy of all records, in the order of `keys`."""
        records = self.records[self.slots()]
        if self._spill is None or not len(self._spill):
            return records
        return np.vstack([records, *(record[None] for _, record in self._spill.all())])

    def check_distinct(self, groups: list[Keys]) -> None:
        """Raise a ValueError if groups of keys share one, with each other or with the keys that are here."""
        met: set[Any] = set()
        for keys in groups:
            make_index(groups[0]).check(keys)
            for key, slot in zip(keys, self.find(keys)[0].tolist(), strict=True):
                if slot >= 0 or key in met:
                    name = key if isinstance(key, str) else int(key)
                    raise ValueError(f"the key {name!r} is in two of the fleets; fleets to join must not share keys")
                met.add(key)

    # Writing.

    def assign(self, keys: Keys, initial: FloatArray) -> tuple[Slots, Slots]:
        """Bring all keys to memory; new ones start as ``initial``. Returns all slots, and those of the new keys."""
        index = self._index if self._index is not None else make_index(keys)
        index.check(keys)
        slots = index.find(keys)
        missing = np.flatnonzero(slots < 0)
        if not len(missing):
            return slots, _NONE
        names, inverse = unique_keys(take_keys(keys, missing))
        self._make_room(len(names), np.unique(slots[slots >= 0]))
        found, evicted = ([], np.empty((0, 0))) if self._spill is None else self._spill.find(names)
        given = self._take_slots(len(names))
        new = np.delete(given, found)
        self.records[given] = initial
        if found:
            self.records[given[found]] = evicted
        self._index = index
        try:
            index.put(names, given)
            if found:
                assert self._spill is not None
                self._spill.remove(take_keys(names, np.array(found)))
        except BaseException:  # also Ctrl-C: a key that is still in the file must not be in memory
            in_file = self._spill is not None and bool(self._spill.find(names)[0])
            leaving = np.arange(len(given)) if in_file else np.setdiff1d(np.arange(len(given)), found)
            self._take_back(take_keys(names, leaving), given[leaving])
            raise
        slots[missing] = given[inverse]
        return slots, new

    def release(self, slots: Slots) -> None:
        """Remove the keys in these slots."""
        if len(slots):
            assert self._index is not None
            self._index.remove(slots)
            self._free += slots.tolist()

    def bound(self, capacity: int, folder: Path) -> None:
        """Keep at most ``capacity`` keys in memory from now on, and the others in a file in ``folder``."""
        if self._spill is not None:
            raise ValueError("the fleet has a capacity already, which can't be changed")
        self._spill = Spill(folder, self.records.shape[1])
        self.capacity = capacity
        self._make_room(0, _NONE)

    def _take_slots(self, n: int) -> Slots:
        """Return slots that are not in use, and enlarge the array where there are too few."""
        reused = self._free[max(len(self._free) - n, 0) :]
        del self._free[max(len(self._free) - n, 0) :]
        more = n - len(reused)
        need = self._count + more
        if need > len(self.records):
            room = max(need, len(self.records) * 9 // 8, _FIRST_ROOM)
            room = room if self.capacity is None else max(min(room, self.capacity), need)
            # In place where the system can, so that there is never a second copy.
            self.records.resize((room, self.records.shape[1]), refcheck=False)
        fresh = np.arange(self._count, need)
        self._count = need
        return np.concatenate([np.array(reused, dtype=np.int64), fresh])

    def _take_back(self, keys: Keys, slots: Slots) -> None:
        """Free slots whose keys may not all be in the index yet."""
        assert self._index is not None
        entered = self._index.find(keys) == slots
        self.release(slots[entered])
        self._free += slots[~entered].tolist()

    def _make_room(self, n: int, needed: Slots) -> None:
        """Evict as many keys as ``n`` new ones need, those learned longest ago first, but none in ``needed``."""
        if self.capacity is None or self.resident + n <= self.capacity:
            return
        if n + len(needed) > self.capacity:
            raise ValueError(
                f"keys contains {n + len(needed)} different keys, more than the capacity of {self.capacity}; "
                "learn the rows in smaller batches, or make the fleet with a larger capacity"
            )
        assert self._spill is not None
        assert self._index is not None
        candidates = np.setdiff1d(self.slots(), needed, assume_unique=True)
        excess = self.resident + n - self.capacity
        excess = min(excess + self.capacity // _SLACK, len(candidates))
        oldest = candidates[np.argsort(self.records[candidates, AT_TOUCHED], kind="stable")[:excess]]
        names = self._index.keys_at(oldest)
        try:
            self._spill.put(names, self.records[oldest])
            self.release(oldest)
        except BaseException:  # also Ctrl-C: a key that is still in memory must not be in the file
            self._spill.remove(take_keys(names, np.flatnonzero(self._index.find(names) >= 0)))
            raise
