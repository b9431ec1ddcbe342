"""What every section is given, and what it returns: how to measure, and a figure next to those of others.

Our settings are here and nowhere else: one default for all tasks, chosen on the tasks of
`benchmarks.misbehaving.choices`, never on those that are reported.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.cells import reached

__all__ = ["OURS", "Outcome", "Study", "table"]

OURS: dict[str, Any] = {"outliers": 0.05, "drift": "auto"}


@dataclass(frozen=True)
class Study:
    """How to measure: our settings, the data, and whether a few rows are enough to see that everything runs."""

    settings: Mapping[str, Any] = field(default_factory=lambda: OURS)
    data: Path | None = None
    quick: bool = False

    def only(self, *names: str) -> dict[str, Any]:
        """Those of our settings that are named, and the library's defaults for the others."""
        return {name: value for name, value in self.settings.items() if name in names}

    def without(self, *names: str) -> dict[str, Any]:
        """Our settings without those that are named."""
        return {name: value for name, value in self.settings.items() if name not in names}

    def size(self, full: int, quick: int) -> int:
        """How many rows, or runs."""
        return quick if self.quick else full

    def folder(self, name: str) -> Path | None:
        """A folder of the data; none if there are no data."""
        return None if self.data is None else self.data / name


@dataclass(frozen=True)
class Outcome:
    """One figure of ours, the best of others on the same rows, what was published, and a bound.

    A bound is as for `benchmarks.cells.reached`. It is checked when the figure is measured; pages don't show it.
    """

    task: str
    ours: float
    other: float | None = None
    by: str = ""
    published: float | None = None
    bound: str = ""

    @property
    def line(self) -> str:
        """A line of a Markdown table."""
        other = f"{_text(self.other)} {self.by}".strip()
        return f"| {self.task} | {_text(self.ours)} | {other} | {_text(self.published)} |"

    @property
    def is_missed(self) -> bool:
        """Whether the figure is beyond its bound."""
        return reached(self.ours, self.bound) is False

    @property
    def ratio(self) -> float | None:
        """A loss of ours over the best of others, or over the published one; none of accuracies and without others."""
        best = self.published if self.other is None else self.other
        return self.ours / best if best and self.bound.startswith("<=") else None


def table(outcomes: Sequence[Outcome]) -> Iterator[str]:
    """Lines of a Markdown table."""
    yield "| task | onepass | best other | published |"
    yield "|---|---|---|---|"
    for outcome in outcomes:
        yield outcome.line


def _text(value: float | None) -> str:
    return "" if value is None else f"{value:.4g}"
