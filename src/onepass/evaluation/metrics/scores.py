"""How well a model has predicted: every metric over all rows, and along the stream.

It is the one score report. The command ``evaluate``, its HTML report, a service with its page, and ``/metrics`` all
read it, so that a metric that is registered shows up in all of them.
"""

from collections.abc import Iterable
from typing import Any, Self, TypeVar

import numpy as np

from onepass._typing import FloatArray
from onepass.evaluation.metrics.base import REGISTRY, Metric, RowMean, Task, row_means
from onepass.evaluation.metrics.curve import Curve

__all__ = ["Scores"]

M = TypeVar("M", bound=Metric[Any])
_FEWEST = 48  # rows that recent scores are of, where there are so many: fewer say little


class Scores:
    """Scores of one model.

    Metrics that are means over rows are kept as sums over segments of the stream, from which their values over all
    rows, the recent ones and any part are computed. All others keep what they need themselves.

    Parameters
    ----------
    metrics : classes of the metrics, in the order in which they are shown
    with_std : whether predictions say how sure they are; without, the metrics that need it are left out
    also : metrics that are kept, but not shown among the others

    Examples
    --------
    >>> from onepass.evaluation.metrics import NumberPredictions
    >>> scores = Scores.of("numbers", with_std=False)
    >>> scores.update(NumberPredictions(y=np.array([1.0, 2.0]), mean=np.array([2.0, 3.0]))).total()
    {'rmse': 1.0, 'mae': 1.0}
    """

    def __init__(
        self, metrics: Iterable[type[Metric[Any]]], *, with_std: bool = True, also: Iterable[type[Metric[Any]]] = ()
    ) -> None:
        self.metrics = tuple(metric for metric in metrics if with_std or not metric.needs_std)
        means = row_means(self.metrics)
        expected = [metric.expected.metric for metric in means if metric.expected is not None]
        kept = dict.fromkeys([*self.metrics, *expected, *also])
        self.columns = tuple(metric for metric in row_means(kept) if with_std or not metric.needs_std)
        self.curve: Curve = Curve(len(self.columns))
        self._others = {metric: metric() for metric in kept if not issubclass(metric, RowMean)}

    @classmethod
    def of(cls, task: Task, *, with_std: bool, also: Iterable[type[Metric[Any]]] = ()) -> "Scores":
        """Start with no rows and all metrics that are registered for a kind of target."""
        return Scores(REGISTRY[task].values(), with_std=with_std, also=also)

    def __getitem__(self, metric: type[M]) -> M:
        """One of the metrics that are not means over rows."""
        found: Any = self._others[metric]
        return found  # type: ignore[no-any-return]

    def update(self, rows: Any) -> Self:
        """Score more rows."""
        return self.add(rows, self.numbers(rows))

    def numbers(self, rows: Any) -> FloatArray:
        """The numbers per row whose means are kept, ``(n, columns)``."""
        found = np.empty((len(rows), len(self.columns)))
        for i, metric in enumerate(self.columns):
            found[:, i] = metric.per_row(rows)
        return found

    def add(self, rows: Any, numbers: FloatArray) -> Self:
        """Score more rows, whose `numbers` are known."""
        self.curve.add(numbers)
        for metric in self._others.values():
            metric.update(rows)
        return self

    @property
    def n(self) -> int:
        """Rows scored."""
        return self.curve.n

    @property
    def row_means(self) -> list[type[RowMean[Any]]]:
        """Metrics that are means over rows, and known along the stream."""
        return row_means(self.metrics)

    # Over all rows, and the last ones.

    def total(self) -> dict[str, float]:
        """Scores over all rows by name, of the metrics that are defined; none without rows."""
        if not self.n:
            return {}
        means = self._named(self.curve.sums.sum(axis=0) / self.n)
        found = {one.name: means[one.name] if one.name in means else self._others[one].get() for one in self.metrics}
        return {name: float(value) for name, value in found.items() if value is not None}

    def recent(self) -> dict[str, float]:
        """Scores over the last of the segments that make up at least a tenth of the rows, and 48 of them if there are.

        The curves of the page (page/static/js/scores.js) have the same window.
        """
        if not self.n:
            return {}
        ends = self.curve.rows
        first = int(np.searchsorted(ends, min(0.9 * ends[-1], ends[-1] - _FEWEST), side="right"))
        rows = float(ends[-1] - (ends[first - 1] if first else 0))
        return {"rows": rows, **self._lists(self.curve.sums[first:].sum(axis=0) / rows)}

    def sums(self) -> dict[str, float]:
        """The sum over all rows that each metric is the mean of, or the root of the mean."""
        sums = self.curve.sums.sum(axis=0).tolist()
        return dict(zip((metric.name for metric in self.row_means), sums, strict=False))  # other columns come last

    # Along the stream.

    @property
    def rows(self) -> FloatArray:
        """Rows up to the end of each segment, ``(s,)``."""
        return self.curve.rows

    def segments(self) -> dict[str, FloatArray]:
        """Values over each segment by name, ``(s,)``."""
        return self._named(self.curve.means)

    def quarters(self) -> dict[str, FloatArray]:
        """Values over each quarter of the rows by name, ``(4,)``; a stream of few segments has fewer parts."""
        sums, ends = self.curve.sums, self.rows
        cuts = np.searchsorted(ends, np.arange(1, 5) * ends[-1] / 4)
        lasts = np.unique(cuts)
        totals = np.cumsum(sums, axis=0)[lasts]
        return self._named(np.diff(totals, axis=0, prepend=0.0) / np.diff(ends[lasts], prepend=0)[:, None])

    def so_far(self) -> dict[str, FloatArray]:
        """Values over all rows up to the end of each segment by name, ``(s,)``."""
        return self._named(np.cumsum(self.curve.sums, axis=0) / self.rows[:, None])

    def over_time(self) -> dict[str, list[float]]:
        """Rows up to the end of each segment, and the values over each, as data that JSON can hold."""
        return {"rows": self.rows.tolist(), **self._lists(self.curve.means)}

    def _named(self, means: FloatArray) -> dict[str, Any]:
        """The values by name, of means over some rows ``(columns,)``, or of several such means ``(s, columns)``."""
        return {metric.name: metric.of_mean(means[..., i]) for i, metric in enumerate(self.columns)}

    def _lists(self, means: FloatArray) -> dict[str, Any]:
        return {name: np.asarray(values).tolist() for name, values in self._named(means).items()}

    # For people and programs, and for files.

    def report(self) -> dict[str, Any]:
        """Everything, for people and programs."""
        return {
            "rows": self.n,
            "metrics": [metric.description() for metric in self.metrics],
            "scores": self.total(),
            "recent": self.recent(),
            "over_time": self.over_time(),
        }

    def state(self) -> dict[str, Any]:
        """All of it as data that JSON can hold; the names of the metrics are part of it."""
        return {
            "metrics": [metric.name for metric in self.metrics],
            "curve": self.curve.state(),
            "others": [metric.state() for metric in self._others.values()],
        }

    def restore(self, state: dict[str, Any]) -> Self:
        """Go on from what `state` described, of scores with the same metrics."""
        self.curve = Curve.from_state(state["curve"], len(self.columns))
        for metric, own in zip(self._others.values(), state["others"], strict=True):
            metric.restore(own)
        return self
