"""Rows held out for testing, predicted when all others have been learned: drawn at random, or the last ones.

Random rows test what was learned where the data are; the last rows test whether it holds for what comes after.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
import pyarrow as pa

from onepass.tables.fitting import FitOptions
from onepass.tables.inputs import Inputs
from onepass.tables.model import TabularModel
from onepass.tables.readers.errors import StreamError
from onepass.tables.readers.source import Source
from onepass.tables.reasons import Reason

__all__ = ["HeldOut", "LastRows"]


class HeldOut:
    """Which rows of a stream that is read twice are test rows: the same ones both times.

    Parameters
    ----------
    share : of all rows
    seed : of the draw

    Examples
    --------
    >>> split = HeldOut(0.5, 0)
    >>> first, again = split.are_tests(6, 0), np.concatenate([split.are_tests(n, 1) for n in (2, 4)])
    >>> bool((first == again).all()), int(first.sum())
    (True, 3)
    """

    def __init__(self, share: float, seed: int) -> None:
        self.share = share
        self._draws = [np.random.default_rng(seed) for _ in range(2)]

    def are_tests(self, n: int, turn: int) -> Any:
        """Whether each of the next rows is a test row, ``(n,)``, in the first or the second pass."""
        return self._draws[turn].random(n) < self.share


@dataclass(frozen=True)
class LastRows:
    """The last rows of files, apart from the rows before them, which are to be learned."""

    first: Inputs
    """The files up to the last row to learn."""
    rest: Inputs
    """The files from there on."""
    n_first: int
    """Rows to learn; those that will be rejected are among them."""

    @classmethod
    def of(cls, inputs: Inputs, sources: Sequence[Source], target: str, share: float) -> Self:
        """Set aside the last ``share`` of the rows, for which all are counted."""
        if inputs.is_stream:
            raise StreamError("the last rows are found by counting all, which needs files in place of standard input")
        sizes = [sum(map(len, source.batches({target: pa.string()}, 0))) for source in sources]
        n_first = sum(sizes) - max(round(share * sum(sizes)), 1)
        if n_first < 1:
            raise StreamError(f"there are too few rows to learn some and predict others: {sum(sizes):,}")
        ends = np.cumsum(sizes)
        stops = np.clip(n_first - (ends - sizes), 0, sizes).tolist()  # of the rows to learn in each file
        first = replace(inputs, starts=tuple(0 if stop else None for stop in stops), stops=tuple(stops))
        starts = tuple(stop if stop < size else None for stop, size in zip(stops, sizes, strict=True))
        return cls(first, replace(inputs, starts=starts, passes=1), n_first)

    def new_model(self, wanted: FitOptions, sources: Sequence[Source]) -> tuple[TabularModel, Reason, Self]:
        """A model inferred from rows to learn alone, the reason for its task, and the rows in the order of learning."""
        schema = replace(wanted.schema, sample=min(wanted.schema.sample, self.n_first))
        model, reason, first = replace(wanted, schema=schema).new_model(self.first, sources)
        return model, reason, replace(self, first=first)
