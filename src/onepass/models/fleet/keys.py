"""Where the perceptron of a key is: in which slot of the memory, or in a file on the disk."""

import sqlite3
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from numbers import Integral
from pathlib import Path
from typing import Any, Protocol, TypeAlias
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from onepass._typing import FloatArray

__all__ = ["IntIndex", "KeyIndex", "Keys", "Spill", "StrIndex", "as_keys", "make_index", "parts_of"]

Keys: TypeAlias = Any  # (n,) int64 array, or a list of str
Slots = NDArray[np.int64]

_AT_ONCE = 500  # keys in one question to the file
_NAME = "fleet.sqlite"


def as_keys(value: Any, n: int) -> Keys:
    """``value`` as ``n`` keys, all whole numbers (an array) or all texts (a list).

    Examples
    --------
    >>> as_keys(["a", "b"], 2), as_keys([3, 4], 2)
    (['a', 'b'], array([3, 4]))
    """
    # Never by way of an array of texts, which makes one of every number and drops zeros at the end of a text.
    given = value if isinstance(value, list) else _listed(value)
    shape = given.shape if isinstance(given, np.ndarray) else (len(given),)
    if shape != (n,):
        raise ValueError(f"keys must have shape ({n},), one key a row of X, got shape {shape}")
    if isinstance(given, np.ndarray):
        if given.dtype.kind == "i" or (given.dtype.kind == "u" and given.dtype.itemsize < 8):
            return given.astype(np.int64)
        given = given.tolist()
    kinds = [_kind_of(key) for key in given]
    if None in kinds or len(set(kinds)) > 1:
        odd = given[next(place for place, kind in enumerate(kinds) if kind is None or kind is not kinds[0])]
        raise TypeError(f"keys must be all whole numbers or all texts, got {odd!r} ({type(odd).__name__})")
    if kinds[:1] == [str]:
        return [str(key) for key in given]
    numbers = [int(key) for key in given]
    for number in numbers:
        if not -(2**63) <= number < 2**63:
            raise ValueError(f"keys must be whole numbers below 2^63 in size, got {number}")
    return np.array(numbers, dtype=np.int64)


def _listed(value: Any) -> Any:
    """Keys as a list, or as the array that they are in."""
    if isinstance(value, (str, bytes)) or np.ndim(value) == 0:
        return [value[()] if isinstance(value, np.ndarray) else value]
    return np.asarray(value) if hasattr(value, "__array__") else list(value)


def _kind_of(key: Any) -> type | None:
    if isinstance(key, str):
        return str
    return int if isinstance(key, Integral) and not isinstance(key, bool) else None


def parts_of(keys: Keys, n_parts: int) -> Slots:
    """Which of ``n_parts`` parts each key belongs to: always the same, in every process."""
    if isinstance(keys, np.ndarray):
        mixed = keys.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
        return ((mixed >> np.uint64(32)) % np.uint64(n_parts)).astype(np.int64)
    return np.array([crc32(key.encode("utf-8", "surrogatepass")) % n_parts for key in keys], dtype=np.int64)


class KeyIndex(Protocol):
    """Keys by slot, and slots by key."""

    def check(self, keys: Keys) -> None:
        """Refuse keys of the other kind."""
        ...

    def find(self, keys: Keys) -> Slots:
        """Slot of each key, -1 where there is none."""
        ...

    def put(self, keys: Keys, slots: Slots) -> None:
        """Enter new keys, each in its slot."""
        ...

    def remove(self, slots: Slots) -> None:
        """Take out the keys in these slots."""
        ...

    def held(self, slots: Slots) -> Keys:
        """Give the keys in these slots."""
        ...


class IntIndex:
    """Whole numbers in a compiled hash table: some 20 bytes a key."""

    def __init__(self) -> None:
        self._keys = np.zeros(1024, dtype=np.int64)  # by slot
        self._table = np.zeros(4096, dtype=np.int32)
        self._count = 0

    def check(self, keys: Keys) -> None:
        """Refuse keys of the other kind."""
        if len(keys) and not isinstance(keys, np.ndarray):
            raise TypeError(f"keys must be whole numbers as before, got {keys[0]!r}")

    def find(self, keys: Keys) -> Slots:
        """Slot of each key, -1 where there is none."""
        from onepass.engine.fleet import find_keys

        return find_keys(keys, self._table, self._keys)

    def put(self, keys: Keys, slots: Slots) -> None:
        """Enter new keys, each in its slot."""
        from onepass.engine.fleet import put_keys

        most = int(slots.max(initial=-1)) + 1
        if most > len(self._keys):
            self._keys.resize(max(most, len(self._keys) * 9 // 8), refcheck=False)
        self._keys[slots] = keys
        self._count += len(slots)
        if 2 * self._count > len(self._table):
            old = self._table[self._table > 0].astype(np.int64) - 1
            # The next power of two that is at most half full, with some room to grow.
            self._table = np.zeros(1 << (5 * self._count // 2).bit_length(), dtype=np.int32)
            put_keys(old, self._table, self._keys)
        put_keys(slots, self._table, self._keys)

    def remove(self, slots: Slots) -> None:
        """Take out the keys in these slots."""
        from onepass.engine.fleet import remove_keys

        remove_keys(slots, self._table, self._keys)
        self._count -= len(slots)

    def held(self, slots: Slots) -> Keys:
        """Give the keys in these slots."""
        return self._keys[slots]


class StrIndex:
    """Texts in a dictionary."""

    def __init__(self) -> None:
        self._slots: dict[str, int] = {}
        self._keys: list[str] = []  # by slot

    def check(self, keys: Keys) -> None:
        """Refuse keys of the other kind."""
        if len(keys) and isinstance(keys, np.ndarray):
            raise TypeError(f"keys must be texts as before, got {keys[0]!r}")

    def find(self, keys: Keys) -> Slots:
        """Slot of each key, -1 where there is none."""
        get = self._slots.get
        return np.array([get(key, -1) for key in keys], dtype=np.int64)

    def put(self, keys: Keys, slots: Slots) -> None:
        """Enter new keys, each in its slot."""
        self._keys += [""] * (int(slots.max(initial=-1)) + 1 - len(self._keys))
        for key, slot in zip(keys, slots.tolist(), strict=True):
            self._slots[key] = slot
            self._keys[slot] = key

    def remove(self, slots: Slots) -> None:
        """Take out the keys in these slots."""
        for slot in slots.tolist():
            del self._slots[self._keys[slot]]
            self._keys[slot] = ""

    def held(self, slots: Slots) -> Keys:
        """Give the keys in these slots."""
        return [self._keys[slot] for slot in slots.tolist()]


def make_index(keys: Keys) -> KeyIndex:
    """Start an index for keys of this kind."""
    return IntIndex() if isinstance(keys, np.ndarray) else StrIndex()


class Spill:
    """Records on the disk, by key: for those that memory has no room for.

    A working file, which no other fleet may share and which ends with the process; what is to last is saved.

    Parameters
    ----------
    folder : path of a folder, which is made if need be
    width : numbers of a record
    """

    def __init__(self, folder: Path, width: int) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / _NAME
        try:
            path.touch(exist_ok=False)  # in one step, so that of two fleets at once one is refused
        except FileExistsError:
            text = f"{path} is there already, from another fleet; give spill a folder of its own"
            raise FileExistsError(text) from None
        self._width = width
        self._file = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        self._close = weakref.finalize(self, _discard, self._file, path)
        # Nobody reads it after a crash, so nothing need be safe from one; but what fails half-way is taken back.
        self._file.execute("PRAGMA journal_mode = MEMORY")
        self._file.execute("PRAGMA synchronous = OFF")
        self._file.execute("CREATE TABLE records (key PRIMARY KEY, record BLOB NOT NULL) WITHOUT ROWID")

    def __len__(self) -> int:
        return int(self._file.execute("SELECT count(*) FROM records").fetchone()[0])

    def put(self, keys: Keys, records: FloatArray) -> None:
        """Write records, replacing those of the same keys."""
        pairs = zip(_plain(keys), map(bytes, np.ascontiguousarray(records)), strict=True)
        with self._all_or_none():
            self._file.executemany("INSERT OR REPLACE INTO records VALUES (?, ?)", pairs)

    def find(self, keys: Keys) -> tuple[list[int], FloatArray]:
        """Which of the keys are here, by their places among them, and their records."""
        plain = _plain(keys)
        places = {key: place for place, key in enumerate(plain)}
        found, parts = [], []
        for begin in range(0, len(plain), _AT_ONCE):
            some = plain[begin : begin + _AT_ONCE]
            marks = ",".join("?" * len(some))
            for key, record in self._file.execute(f"SELECT key, record FROM records WHERE key IN ({marks})", some):
                found.append(places[key])
                parts.append(record)
        records = np.frombuffer(b"".join(parts), dtype=np.float64).reshape(-1, self._width)
        return found, records

    def remove(self, keys: Keys) -> None:
        """Delete the records of these keys."""
        with self._all_or_none():
            self._file.executemany("DELETE FROM records WHERE key = ?", [(key,) for key in _plain(keys)])

    def all(self) -> Iterator[tuple[Any, FloatArray]]:
        """Go through all keys and records."""
        for key, record in self._file.execute("SELECT key, record FROM records ORDER BY key"):
            name = key.decode("utf-8", "surrogatepass") if isinstance(key, bytes) else key
            yield name, np.frombuffer(record, dtype=np.float64)

    @contextmanager
    def _all_or_none(self) -> Iterator[None]:
        self._file.execute("BEGIN")
        try:
            yield
            self._file.execute("COMMIT")
        finally:
            if self._file.in_transaction:
                self._file.execute("ROLLBACK")


def _plain(keys: Keys) -> list[Any]:
    """Keys as the file holds them; texts as bytes, since not every text is one to it."""
    if isinstance(keys, np.ndarray):
        numbers: list[Any] = keys.tolist()
        return numbers
    return [key.encode("utf-8", "surrogatepass") for key in keys]


def _discard(file: sqlite3.Connection, path: Path) -> None:
    file.close()
    path.unlink(missing_ok=True)
