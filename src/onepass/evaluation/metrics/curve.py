"""Sums along a stream: over segments of equal length, at most 256 of them however long the stream."""

from typing import Any, Self

import numpy as np

from onepass._typing import FloatArray

__all__ = ["Curve"]

_SEGMENTS = 256
_FIRST_SEGMENT = 16  # rows


class Curve:
    """Sums of some numbers per row, over segments of equal length that double when there are too many of them.

    Examples
    --------
    >>> curve = Curve(2)
    >>> curve.add(np.ones((100, 2)))
    >>> curve.rows.tolist()
    [16, 32, 48, 64, 80, 96, 100]
    """

    def __init__(self, size: int) -> None:
        self._sums = np.zeros((_SEGMENTS, size))
        self._width = _FIRST_SEGMENT
        self._n = 0

    def add(self, numbers: FloatArray) -> None:
        """Add the numbers of more rows, ``(n, size)``."""
        end = self._n + len(numbers)
        while end > _SEGMENTS * self._width:
            pairs = self._sums.reshape(_SEGMENTS // 2, 2, -1).sum(axis=1)
            self._sums[: _SEGMENTS // 2], self._sums[_SEGMENTS // 2 :] = pairs, 0.0
            self._width *= 2
        first = self._n // self._width
        last = (end - 1) // self._width
        starts = np.maximum(np.arange(first, last + 1) * self._width - self._n, 0)
        if len(numbers):
            self._sums[first : last + 1] += np.add.reduceat(numbers, starts, axis=0)
        self._n = end

    def state(self) -> dict[str, Any]:
        """All of it as data that JSON can hold; a float comes back from JSON as it was."""
        return {"n": self._n, "width": self._width, "sums": self.sums.tolist()}

    @classmethod
    def from_state(cls, state: dict[str, Any], size: int) -> Self:
        """Make the curve that `state` described, with so many numbers per row."""
        curve = cls(size)
        curve._n, curve._width = int(state["n"]), int(state["width"])
        curve._sums[: len(state["sums"])] = np.reshape(state["sums"], (len(state["sums"]), size))
        return curve

    @property
    def n(self) -> int:
        """Rows added."""
        return self._n

    @property
    def rows(self) -> FloatArray:
        """Rows up to the end of each segment, ``(s,)``."""
        ends = np.arange(1, -(-self._n // self._width) + 1) * self._width
        return np.minimum(ends, self._n)

    @property
    def sums(self) -> FloatArray:
        """Sums over each segment, ``(s, size)``."""
        return self._sums[: len(self.rows)]

    @property
    def means(self) -> FloatArray:
        """Means over each segment, ``(s, size)``; few rows at the end are averaged with the segment before them."""
        counts, sums = np.diff(self.rows, prepend=0), self.sums.copy()
        if len(counts) > 1 and 2 * counts[-1] < self._width:
            counts[-1] += counts[-2]
            sums[-1] += sums[-2]
        return sums / counts[:, None]
