"""What a metric is, and the registry of those that are shown.

A metric says everything about itself once, in its class. The commands, the reports, the service, Prometheus and the
page ask it, and name none.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from typing import Any, ClassVar, Generic, Literal, NamedTuple, Self, TypeVar

import numpy as np

from onepass._typing import FloatArray

__all__ = [
    "REGISTRY",
    "Expected",
    "Metric",
    "RowMean",
    "Task",
    "Unit",
    "UnknownMetricError",
    "register",
    "registered",
    "row_means",
]

P = TypeVar("P")
M = TypeVar("M", bound="type[Metric[Any]]")
Task = Literal["numbers", "counts", "classes"]
Unit = Literal["none", "target", "share", "nats"]
"""What a metric is measured in: nothing, the unit of the target, a share of the rows, or nats."""


class Metric(ABC, Generic[P]):
    """A score of predictions of type ``P``, over all rows that it was updated with."""

    name: ClassVar[str]
    """Key in JSON."""
    title: ClassVar[str]
    """Heading of its column."""
    unit: ClassVar[Unit] = "none"
    needs_std: ClassVar[bool] = False
    """Whether predictions must say how sure they are."""
    larger_is_better: ClassVar[bool] = False
    goal: ClassVar[float | None] = None
    """The best value, where neither larger nor smaller is better; then ``larger_is_better`` does not count."""

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

    def state(self) -> dict[str, Any]:
        """What it keeps, as data that JSON can hold: here its attributes, if they are numbers or arrays of them."""
        return {name: np.asarray(value).tolist() for name, value in vars(self).items()}

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from what `state` described."""
        for name, value in state.items():
            setattr(self, name, np.array(value) if isinstance(value, list) else value)

    @classmethod
    def description(cls) -> dict[str, Any]:
        """What a program that shows the metric has to know about it."""
        lines = (cls.__doc__ or cls.title).strip().splitlines()
        return {
            "name": cls.name,
            "title": cls.title,
            "meaning": lines[0],
            "unit": cls.unit,
            "larger_is_better": cls.larger_is_better,
            "goal": cls.goal,
            "is_root": False,
            "expected": None,
        }


class RowMean(Metric[P]):
    """A metric that is the mean of one number per row, or the square root of that mean.

    Such metrics are shown along the stream, too: see `onepass.evaluation.metrics.Scores`.
    """

    is_root: ClassVar[bool] = False
    """Whether the metric is the square root of the mean."""
    expected: ClassVar["Expected | None"] = None

    def __init__(self) -> None:
        self.n: int = 0
        self.total: float = 0.0

    @classmethod
    @abstractmethod
    def per_row(cls, rows: P) -> FloatArray:
        """The number for each row, ``(n,)``; finite if the prediction and the target are."""

    @classmethod
    def of_mean(cls, mean: Any) -> Any:
        """The metric, given the mean over some rows; for arrays of means element by element."""
        return np.sqrt(mean) if cls.is_root else mean

    @classmethod
    def description(cls) -> dict[str, Any]:
        """The same, with how a mean over rows becomes the metric, and what the model expects."""
        expected = cls.expected
        named = None if expected is None else {"name": expected.metric.name, "factor": expected.factor}
        return super().description() | {"is_root": cls.is_root, "expected": named}

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


class Expected(NamedTuple):
    """What a model expects a metric to be: another mean over the rows, times a factor."""

    metric: type[RowMean[Any]]
    factor: float = 1.0


REGISTRY: dict[Task, dict[str, type[Metric[Any]]]] = {"numbers": {}, "counts": {}, "classes": {}}
"""Metrics by name, in the order in which they are shown."""


def register(*tasks: Task) -> Callable[[M], M]:
    """Have a metric shown wherever targets of some kinds are scored: a decorator of its class."""

    def decorate(metric: M) -> M:
        for task in tasks:
            if metric.name in REGISTRY[task]:
                raise ValueError(f"there is already a metric of {task} with the name {metric.name!r}")
            REGISTRY[task][metric.name] = metric
        return metric

    return decorate


def row_means(metrics: Iterable[type[Metric[Any]]]) -> list[type[RowMean[Any]]]:
    """Those of some metrics that are means over rows, in their order."""
    return [metric for metric in metrics if issubclass(metric, RowMean)]


def registered(task: Task, names: Iterable[str]) -> list[type[Metric[Any]]]:
    """The registered metrics of these names; an `UnknownMetricError` names one that is missing."""
    found = []
    for name in names:
        if name not in REGISTRY[task]:
            raise UnknownMetricError(name, task)
        found.append(REGISTRY[task][name])
    return found


class UnknownMetricError(ValueError):
    """A metric that no installed package registers.

    Attributes
    ----------
    name : of the metric
    """

    def __init__(self, name: str, task: Task) -> None:
        self.name = name
        super().__init__(
            f"no installed package registers the metric {name!r} for {task}: install the package that it is from"
        )
