"""Whether a single row ruined a score: a mean over a million rows can be the work of one of them.

`WorstRow` goes along with a metric that is a mean over rows and remembers the row that added most to it.
"""

from collections.abc import Callable, Sequence
from os.path import basename
from typing import Any

from onepass.evaluation.metrics import RowMean

__all__ = ["WorstRow"]

_FEWEST = 20  # rows: among fewer, one is always a large part
_RUINED = 0.2  # share of the sum over all rows


class WorstRow:
    """The row that added most to a metric, and what the metric is without it.

    Parameters
    ----------
    metric : subclass of RowMean
        A loss: no row's number is below 0.
    """

    def __init__(self, metric: type[RowMean[Any]]) -> None:
        self.metric = metric
        self.file, self.line = "", 0
        # The others are summed by themselves: next to an absurd row, their sum would cancel in a difference.
        self._n, self._others, self._most = 0, 0.0, 0.0

    def update(self, rows: Any, file: str, lines: Callable[[], Sequence[int]]) -> None:
        """Look at more rows of a file; ``lines`` gives the line of each."""
        losses = self.metric.per_row(rows)
        worst = int(losses.argmax())
        most = float(losses[worst])
        self._others += float(losses[:worst].sum() + losses[worst + 1 :].sum()) + min(most, self._most)
        if most > self._most:
            self._most, self.file, self.line = most, file, lines()[worst]
        self._n += len(losses)

    @property
    def share(self) -> float:
        """Share of the sum over all rows that this row is."""
        return self._most / (self._most + self._others) if self._most > 0.0 else 0.0

    def words(self, *, with_folder: bool = True) -> str:
        """Say which row it was, of a file with or without its folder, if it is a large part of the whole."""
        if self._n < _FEWEST or not self.share > _RUINED:
            return ""
        without = self.metric.of_mean(self._others / (self._n - 1))
        file = self.file if with_folder else basename(self.file)
        title, part = self.metric.title, f"{100.0 * self.share:.0f} %"
        return (
            f"one row, {file}, line {self.line}, makes {part} of the {title}'s sum over all rows; without it the "
            f"{title} is {self.metric.text(float(without))}"
        )
