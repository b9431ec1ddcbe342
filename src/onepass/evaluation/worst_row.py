"""Whether a single row ruined a score: a mean over a million rows can be the work of one of them.

`WorstRow` goes along with a metric that is a mean over rows and remembers the row that added most to it.
"""

from collections.abc import Callable, Sequence
from os.path import basename
from typing import Any

from onepass.evaluation.metrics import RootMeanSquaredError, RowMean

__all__ = ["WorstRow"]

_RUINED = 0.2  # share of the sum over all rows
_AS_MANY = 30.0  # others, on average, that it has to make up for: among a few rows, one is always a large part


class WorstRow:
    """The row that added most to a metric, and what the metric is without it.

    Parameters
    ----------
    metric : subclass of RowMean
        A loss: no row's number is below 0.
    early : int
        First rows, predicted when nearly nothing was learned: that they are far off is not their fault.
    """

    def __init__(self, metric: type[RowMean[Any]], *, early: int = 0) -> None:
        self.metric = metric
        self.early = early
        self.file, self.line = "", 0
        # The others are summed by themselves: next to an absurd row, their sum would cancel in a difference.
        self._n, self._others, self._most = 0, 0.0, 0.0

    def update(self, rows: Any, file: str, lines: Callable[[], Sequence[int]]) -> None:
        """Look at more rows of a file; ``lines`` gives the line of each."""
        losses = self.metric.per_row(rows)
        early = min(max(self.early - self._n, 0), len(losses))
        self._n += len(losses)
        if early == len(losses):
            self._others += float(losses.sum())
            return
        worst = early + int(losses[early:].argmax())
        most = float(losses[worst])
        self._others += float(losses[:worst].sum() + losses[worst + 1 :].sum()) + min(most, self._most)
        if most > self._most:
            self._most, self.file, self.line = most, file, lines()[worst]

    @property
    def share(self) -> float:
        """Share of the sum over all rows that this row is."""
        return self._most / (self._most + self._others) if self._most > 0.0 else 0.0

    def words(self, *, with_folder: bool = True) -> str:
        """Say which row it was, of a file with or without its folder, if it is a large part of the whole."""
        mean = self._others / max(self._n - 1, 1)
        if not (self.share > _RUINED and self._most > _AS_MANY * mean):
            return ""
        without = self.metric.of_mean(mean)
        file = self.file if with_folder else basename(self.file)
        title, part = self.metric.title, f"{100.0 * self.share:.0f} %"
        whole = "sum of squared errors" if self.metric is RootMeanSquaredError else f"sum of the {title}"
        return (
            f"one row, {file}, line {self.line}, makes {part} of the {whole}; without it the {title} is "
            f"{self.metric.text(float(without))}"
        )
