"""What a metric is, the registry of those that commands and reports show, and a set of all that suit a target."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar, Generic, Literal, Self, TypeVar

from onepass._typing import FloatArray

__all__ = ["REGISTRY", "Metric", "MetricSet", "RowMean", "Task", "register"]

P = TypeVar("P")
M = TypeVar("M", bound="type[Metric[Any]]")
Task = Literal["numbers", "counts", "classes"]


class Metric(ABC, Generic[P]):
    """A score of predictions of type ``P``, over all rows that it was updated with."""

    name: ClassVar[str]
    """Key in JSON."""
    title: ClassVar[str]
    """Heading of its column."""
    needs_std: ClassVar[bool] = False
    """Whether predictions must say how sure they are."""
    larger_is_better: ClassVar[bool] = False

    @abstractmethod
    def update(self, rows: P) -> Self:
        """Score more rows."""

    @abstractmethod
    def get(self) -> float | None:
        """Value over all rows so far; None where it is not defined."""

    @abstractmethod
    def merge(self, other: Self) -> Self:
        """Add the rows of another metric, as if this one had been updated with them."""

    @classmethod
    def text(cls, value: float) -> str:
        """A value as text."""
        return f"{value:.4f}" if abs(value) < 10 else f"{value:.4g}"


class RowMean(Metric[P]):
    """A metric that is the mean of one number per row, or a function of that mean.

    Such metrics are shown over time, too: see `onepass.evaluation.metrics.OverTime`.
    """

    def __init__(self) -> None:
        self.n: int = 0
        self.total: float = 0.0

    @classmethod
    @abstractmethod
    def per_row(cls, rows: P) -> FloatArray:
        """The number for each row, ``(n,)``."""

    @classmethod
    def of_mean(cls, mean: Any) -> Any:
        """The metric, given the mean over some rows; for arrays of means element by element."""
        return mean

    def update(self, rows: P) -> Self:
        """Score more rows."""
        values = self.per_row(rows)
        self.total += float(values.sum())
        self.n += len(values)
        return self

    def get(self) -> float:
        """Value over all rows so far."""
        return float(self.of_mean(self.total / max(self.n, 1)))

    def merge(self, other: Self) -> Self:
        """Add the rows of another."""
        self.total += other.total
        self.n += other.n
        return self


REGISTRY: dict[Task, dict[str, type[Metric[Any]]]] = {"numbers": {}, "counts": {}, "classes": {}}
"""Metrics by name, in the order in which they are shown."""


def register(*tasks: Task) -> Callable[[M], M]:
    """Have commands and reports show a metric for targets of some kinds: a decorator of its class."""

    def decorate(metric: M) -> M:
        for task in tasks:
            if metric.name in REGISTRY[task]:
                raise ValueError(f"there is already a metric of {task} with the name {metric.name!r}")
            REGISTRY[task][metric.name] = metric
        return metric

    return decorate


class MetricSet:
    """All registered metrics that suit a target.

    Parameters
    ----------
    task : "numbers", "counts" or "classes"
    with_std : bool
        Whether predictions say how sure they are; without, the metrics that need it are left out.
    """

    def __init__(self, task: Task, *, with_std: bool = True) -> None:
        self.task = task
        self._metrics = {name: metric() for name, metric in REGISTRY[task].items() if with_std or not metric.needs_std}

    def __getitem__(self, name: str) -> Metric[Any]:
        return self._metrics[name]

    def update(self, rows: Any) -> Self:
        """Score more rows."""
        for metric in self._metrics.values():
            metric.update(rows)
        return self

    def get(self) -> dict[str, float]:
        """Values by name, of those that are defined."""
        values = {name: metric.get() for name, metric in self._metrics.items()}
        return {name: value for name, value in values.items() if value is not None}

    def merge(self, other: Self) -> Self:
        """Add the rows of another set."""
        for name, metric in self._metrics.items():
            metric.merge(other[name])
        return self

    @property
    def row_means(self) -> list[type[RowMean[Any]]]:
        """Those that can be shown over time."""
        return [type(metric) for metric in self._metrics.values() if isinstance(metric, RowMean)]
