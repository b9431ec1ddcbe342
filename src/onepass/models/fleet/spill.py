"""Records on the disk, for the keys that a fleet's memory has no room for."""

import sqlite3
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from onepass._typing import FloatArray
from onepass.models.fleet.keys import Keys

__all__ = ["Spill"]

_KEYS_PER_QUERY = 500
_FILE_NAME = "fleet.sqlite"


class Spill:
    """Records by key in an SQLite file.

    A temporary file, which no other fleet may share and which is deleted with the object. To keep a fleet, save it.

    Parameters
    ----------
    folder : path of a folder, which is created if it does not exist
    width : length of a record
    """

    def __init__(self, folder: Path, width: int) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / _FILE_NAME
        try:
            path.touch(exist_ok=False)  # in one step, so that of two concurrent fleets one fails
        except FileExistsError:
            text = f"{path} is there already, from another fleet; give spill a folder of its own"
            raise FileExistsError(text) from None
        self._width = width
        self._file = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        self._close = weakref.finalize(self, _discard, self._file, path)
        # The file is never read after a crash, so it need not survive one; a failed transaction must still roll back.
        self._file.execute("PRAGMA journal_mode = MEMORY")
        self._file.execute("PRAGMA synchronous = OFF")
        self._file.execute("CREATE TABLE records (key PRIMARY KEY, record BLOB NOT NULL) WITHOUT ROWID")

    def __len__(self) -> int:
        return int(self._file.execute("SELECT count(*) FROM records").fetchone()[0])

    def put(self, keys: Keys, records: FloatArray) -> None:
        """Write records, replacing those with the same keys."""
        pairs = zip(_as_sql(keys), map(bytes, np.ascontiguousarray(records)), strict=True)
        with self._all_or_none():
            self._file.executemany("INSERT OR REPLACE INTO records VALUES (?, ?)", pairs)

    def find(self, keys: Keys) -> tuple[list[int], FloatArray]:
        """Return the places of those keys that are in the file, and their records in the same order."""
        wanted = _as_sql(keys)
        places = {key: place for place, key in enumerate(wanted)}
        found, parts = [], []
        for begin in range(0, len(wanted), _KEYS_PER_QUERY):
            some = wanted[begin : begin + _KEYS_PER_QUERY]
            marks = ",".join("?" * len(some))
            for key, record in self._file.execute(f"SELECT key, record FROM records WHERE key IN ({marks})", some):
                found.append(places[key])
                parts.append(record)
        records = np.frombuffer(b"".join(parts), dtype=np.float64).reshape(-1, self._width)
        return found, records

    def remove(self, keys: Keys) -> None:
        """Delete the records of these keys."""
        with self._all_or_none():
            self._file.executemany("DELETE FROM records WHERE key = ?", [(key,) for key in _as_sql(keys)])

    def all(self) -> Iterator[tuple[Any, FloatArray]]:
        """Iterate over all keys and records, sorted by key."""
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


def _as_sql(keys: Keys) -> list[Any]:
    """Convert keys to SQLite values; texts to bytes, since SQLite takes only valid Unicode as text."""
    if isinstance(keys, np.ndarray):
        numbers: list[Any] = keys.tolist()
        return numbers
    return [key.encode("utf-8", "surrogatepass") for key in keys]


def _discard(file: sqlite3.Connection, path: Path) -> None:
    file.close()
    path.unlink(missing_ok=True)
