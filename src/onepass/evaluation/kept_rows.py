"""Rows that a report looks at once all are scored: some drawn at random, and those that were predicted worst.

All rows of a long stream fit nowhere, and a few thousand of them say what a report needs. Which ones are drawn depends
on the seed and the order of the rows alone, not on how they came in blocks.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from onepass._typing import FloatArray
from onepass.estimators.rows import Rows, stacked
from onepass.evaluation.metrics import ClassPredictions

__all__ = ["Kept", "KeptRows"]

_MOST_NUMBERS = 2**22  # of the features of all rows that are kept


@dataclass(frozen=True)
class Kept:
    """Scored rows, ``n`` of them, in the order in which they came."""

    X: Any  # (n, d)
    y: FloatArray  # (n,), as the estimator learns them
    keys: tuple[str, ...] | None
    target: FloatArray  # (n,), in its own units; the number of a class
    mean: FloatArray  # (n,), or probabilities (n, K)
    std: FloatArray  # (n,)
    priority: FloatArray  # (n,)
    origins: tuple[tuple[str, int], ...]  # file and line; empty if they were not asked for

    def __len__(self) -> int:
        return len(self.y)

    def rows(self, X: Any = None) -> Rows:
        """The rows, ready to be predicted; with other features if they are given."""
        return Rows(self.X if X is None else X, self.y, keys=self.keys)

    def at(self, places: Any) -> "Kept":
        """Some of the rows."""
        return Kept(
            self.X[places],
            self.y[places],
            None if self.keys is None else tuple(self.keys[place] for place in places),
            self.target[places],
            self.mean[places],
            self.std[places],
            self.priority[places],
            tuple(self.origins[place] for place in places) if self.origins else (),
        )

    def joined(self, more: "Kept") -> "Kept":
        """These rows and more."""
        arrays = {
            name: np.concatenate([getattr(self, name), getattr(more, name)])
            for name in ("y", "target", "mean", "std", "priority")
        }
        keys = None if self.keys is None else (*self.keys, *(more.keys or ()))
        return Kept(X=stacked([self.X, more.X]), keys=keys, origins=(*self.origins, *more.origins), **arrays)


class KeptRows:
    """The rows of the highest priority.

    Parameters
    ----------
    size : how many rows to keep; fewer if they are very wide
    """

    def __init__(self, size: int) -> None:
        self.size = size
        self.kept: Kept | None = None

    def update(
        self,
        rows: Rows,
        predicted: Any,
        priority: FloatArray,
        origins: Callable[[], tuple[str, Sequence[int]]] | None = None,
    ) -> None:
        """Look at more rows: their predictions, their priority, and what gives their file and lines."""
        size = min(self.size, max(_MOST_NUMBERS // max(rows.X.shape[1], 1), 20))
        full = self.kept is not None and len(self.kept) >= size
        least = float(self.kept.priority.min()) if full and self.kept is not None else -np.inf
        places = np.flatnonzero(priority > least)
        places = np.sort(places[np.argsort(-priority[places], kind="stable")[:size]])
        if not len(places):
            return
        file, lines = ("", ()) if origins is None else origins()
        more = Kept(
            rows.X[places],
            rows.y[places],
            None if rows.keys is None else tuple(rows.keys[place] for place in places),
            predicted.y[places],
            (predicted.probabilities if isinstance(predicted, ClassPredictions) else predicted.mean)[places],
            predicted.std[places],
            priority[places],
            tuple((file, int(lines[place])) for place in places.tolist()) if origins is not None else (),
        )
        found = more if self.kept is None else self.kept.joined(more)
        best = np.argsort(-found.priority, kind="stable")[:size]
        self.kept = found if len(found) <= size else found.at(np.sort(best))
