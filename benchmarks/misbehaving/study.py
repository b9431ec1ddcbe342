"""What every section is given, and what it returns: how to measure, and a figure beside those of others.

Our settings stand here and nowhere else: one default for all tasks, chosen on the tasks of
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
    """One figure of ours, the best of others on the same rows, what was published, and what to reach.

    A target is as for `benchmarks.cells.reached`; words are shown and not compared.
    """

    task: str
    ours: float
    other: float | None = None
    by: str = ""
    published: float | None = None
    target: str = ""

    @property
    def line(self) -> str:
        """A line of a Markdown table."""
        answer = {True: "yes", False: "no", None: ""}[reached(self.ours, self.target)]
        other = f"{_text(self.other)} {self.by}".strip()
        return f"| {self.task} | {_text(self.ours)} | {other} | {_text(self.published)} | {self.target} | {answer} |"


def table(outcomes: Sequence[Outcome]) -> Iterator[str]:
    """Lines of a Markdown table."""
    yield "| task | ours | best other | published | target | reached |"
    yield "|---|---|---|---|---|---|"
    for outcome in outcomes:
        yield outcome.line


def _text(value: float | None) -> str:
    return "" if value is None else f"{value:.4g}"
