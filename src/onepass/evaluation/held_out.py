"""Rows held out for testing: drawn at random, not learned, and predicted when all others have been learned."""

from typing import Any

import numpy as np

__all__ = ["HeldOut"]


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
