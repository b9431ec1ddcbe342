"""Shards: the rows of a Dask collection or of files, as futures of batches on the workers.

Every partition of a data frame, chunk of rows of an array, or file is a shard: an iterable of batches ``(X, y)``. A
shard is read where the worker is, and only a shard of a file can be read again in every round instead of being kept in
memory.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from os import PathLike, fspath
from typing import Any, TypeAlias

import dask.array as da
import dask.dataframe as dd

from onepass.integrations.dask.client import send

__all__ = ["Batch", "DataSource", "Read", "Shard", "Tail", "batches_of_at_most", "select_columns"]

Batch: TypeAlias = tuple[Any, Any]
Shard: TypeAlias = Iterable[Batch]
Read: TypeAlias = Callable[[str], Iterable[Batch]]

_ROWS_READ = 65_536  # rows of a file that are read at a time


@dataclass(frozen=True)
class DataSource:
    """Where the rows are, and which columns are meant."""

    data: Any
    """Dask data frame, pair ``(X, y)`` of Dask arrays, or list of files."""
    target: str | None
    """Column of the target in data frames and Parquet files."""
    features: Sequence[str] | None
    """Columns to learn from; None for all others."""
    read: Read | None = None
    """Turns the name of a file into batches; None for Parquet files."""
    keep: bool = True
    """Keep the rows of files in the workers' memory between rounds."""

    def shards(self, client: Any) -> list[Any]:
        """Return futures of all shards."""
        data = self.data
        if isinstance(data, dd.DataFrame):
            return self._frame_shards(client)
        if isinstance(data, tuple) and len(data) == 2 and all(isinstance(part, da.Array) for part in data):
            return [client.submit(_from_arrays, *pair, pure=False) for pair in _chunks(client, *data)]
        if isinstance(data, (list, tuple)) and data and all(isinstance(path, (str, PathLike)) for path in data):
            return self._file_shards(client)
        raise TypeError(
            "data must be a Dask data frame, a pair (X, y) of Dask arrays or a list of files, got "
            f"{type(data).__name__}{' (empty)' if isinstance(data, (list, tuple)) and not data else ''}"
        )

    def _frame_shards(self, client: Any) -> list[Any]:
        if self.target is None:
            raise ValueError("target must be the name of the target's column in the data frame, got None")
        names = select_columns(list(self.data.columns), self.target, self.features)
        frames = client.compute(self.data[[*names, self.target]].to_delayed())
        return [client.submit(_from_frame, frame, names, self.target, pure=False) for frame in frames]

    def _file_shards(self, client: Any) -> list[Any]:
        paths = [fspath(path) for path in self.data]
        read = self.read or _ParquetReader.of(paths[0], self.target, self.features)
        files = [_FileShard(read, path) for path in paths]
        return [client.submit(list, file, pure=False) if self.keep else send(client, file) for file in files]


def select_columns(names: list[str], target: str | None, features: Sequence[str] | None) -> list[str]:
    """Return the columns to learn from: ``features``, or all but the target.

    Examples
    --------
    >>> select_columns(["a", "b", "y"], "y", None)
    ['a', 'b']
    """
    if isinstance(features, str):
        raise TypeError(f"features must be a list of names, got the string {features!r}")
    if features is not None and target is not None and target in features:
        raise ValueError(f"{target!r} is the target, and can't be one of the features")
    for name in [*(features or ()), *([] if target is None else [target])]:
        if name not in names:
            raise ValueError(f"there is no column {name!r}; the columns are {', '.join(map(repr, names))}")
    return [name for name in names if name != target] if features is None else list(features)


def batches_of_at_most(n: int, shard: Shard) -> Iterator[Batch]:
    """Cut the batches of a shard into smaller ones where they have more than ``n`` rows.

    Examples
    --------
    >>> [len(y) for _, y in batches_of_at_most(2, [("abc", [1, 2, 3]), ("d", [4])])]
    [2, 1, 1]
    """
    for X, y in shard:
        for begin in range(0, len(y), n):
            yield X[begin : begin + n], y[begin : begin + n]


@dataclass(frozen=True)
class Tail:
    """A shard without its first rows."""

    shard: Shard
    skipped: int

    def __iter__(self) -> Iterator[Batch]:
        left = self.skipped
        for X, y in self.shard:
            if len(y) > left:
                yield X[left:], y[left:]
            left = max(left - len(y), 0)


@dataclass(frozen=True)
class _FileShard:
    """The batches of a file, read again whenever they are iterated over."""

    read: Read
    path: str

    def __iter__(self) -> Iterator[Batch]:
        return iter(self.read(self.path))


@dataclass(frozen=True)
class _ParquetReader:
    """Reads the same columns of every file, some rows at a time."""

    names: tuple[str, ...]
    target: str

    @classmethod
    def of(cls, path: str, target: str | None, features: Sequence[str] | None) -> "_ParquetReader":
        """Take the columns from the first file."""
        if target is None:
            raise ValueError("target must be the name of the target's column in the files, got None")
        from pyarrow.parquet import read_schema

        return cls(tuple(select_columns(read_schema(path).names, target, features)), target)

    def __call__(self, path: str) -> Iterator[Batch]:
        from pyarrow import ArrowInvalid
        from pyarrow.parquet import ParquetFile

        columns = [*self.names, self.target]
        try:
            opened = ParquetFile(path)
        except ArrowInvalid as error:
            raise ValueError(f"{path} is not a valid Parquet file: {error}") from None
        with opened as file:
            missing = sorted(set(columns) - set(file.schema_arrow.names))
            if missing:
                raise ValueError(f"{path} has no column {', '.join(map(repr, missing))}")
            for batch in file.iter_batches(_ROWS_READ, columns=columns):
                frame = batch.to_pandas()
                yield frame[list(self.names)], frame[self.target].to_numpy()


def _chunks(client: Any, X: Any, y: Any) -> Iterator[tuple[Any, Any]]:
    """Futures of the chunks of two arrays, with the same rows in both."""
    if X.ndim != 2 or y.ndim not in (1, 2) or len(X) != len(y):
        raise ValueError(f"X must have shape (n, d) and y (n,), got {X.shape} and {y.shape}")
    X = X.rechunk({1: -1})
    y = y.rechunk({0: X.chunks[0], **({1: -1} if y.ndim == 2 else {})})
    return zip(client.compute(list(X.to_delayed().ravel())), client.compute(list(y.to_delayed().ravel())), strict=True)


# Tasks, which run on the workers.


def _from_frame(frame: Any, names: list[str], target: str) -> list[Batch]:
    return [(frame[names], frame[target].to_numpy())]


def _from_arrays(X: Any, y: Any) -> list[Batch]:
    return [(X, y)]
