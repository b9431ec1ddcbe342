"""What every part is given, and what it returns: how to measure, and figures with their bounds.

Findings are kept in a JSON file, part by part, so that long parts can be measured one after the other.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from benchmarks.cells import reached
from onepass.files.atomic import write_atomically

__all__ = ["Figure", "Findings", "Study", "Table", "figure_lines", "missed", "number", "read", "table_lines", "write"]


@dataclass(frozen=True)
class Study:
    """How to measure: the data, and whether a few rows are enough to see that everything runs."""

    data: Path | None = None
    quick: bool = False

    def size(self, full: int, quick: int) -> int:
        """How many rows, or runs."""
        return quick if self.quick else full

    def target(self, words: str) -> str:
        """A target, which is none of a few rows."""
        return "" if self.quick else words

    def published_target(self, words: str) -> str:
        """A target of the published data, which is none of others."""
        return "" if self.data is None else self.target(words)

    def folder(self, name: str) -> Path | None:
        """A folder of the data; none if there are no data."""
        return None if self.data is None else self.data / name


@dataclass(frozen=True)
class Figure:
    """One number, and its bound, as for `benchmarks.cells.reached`; it is checked when measured, and not on pages."""

    what: str
    value: float
    target: str = ""


@dataclass(frozen=True)
class Table:
    """What belongs to the figures: a sentence, names of columns, and lines of cells."""

    words: str
    columns: tuple[str, ...]
    lines: tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class Findings:
    """Of one part."""

    figures: tuple[Figure, ...]
    tables: tuple[Table, ...] = ()

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> "Findings":
        """What ``dataclasses.asdict`` has made."""
        tables = (
            Table(table["words"], tuple(table["columns"]), tuple(map(tuple, table["lines"])))
            for table in stored["tables"]
        )
        return cls(tuple(Figure(**figure) for figure in stored["figures"]), tuple(tables))


def read(file: Path) -> dict[str, Findings]:
    """What was found so far, by part."""
    if not file.exists():
        return {}
    return {name: Findings.from_json(stored) for name, stored in json.loads(file.read_text()).items()}


def write(file: Path, found: Mapping[str, Findings]) -> None:
    """Keep it."""
    text = json.dumps({name: asdict(findings) for name, findings in found.items()}, indent=1) + "\n"
    write_atomically(file, text.encode())


def figure_lines(figures: tuple[Figure, ...]) -> Iterator[str]:
    """Lines of a Markdown table."""
    yield "| figure | measured |"
    yield "|---|---|"
    for figure in figures:
        yield f"| {figure.what} | {number(figure.value)} |"


def missed(figures: tuple[Figure, ...]) -> Iterator[str]:
    """What a command adds to its tables: figures that miss their bound."""
    for figure in figures:
        if reached(figure.value, figure.target) is False:
            yield f"MISSED {figure.target}: {figure.what}, {number(figure.value)}"


def table_lines(table: Table) -> Iterator[str]:
    """Lines of Markdown: the sentence and the table."""
    yield table.words
    yield ""
    yield f"| {' | '.join(table.columns)} |"
    yield "|---|" + "---|" * (len(table.columns) - 1)
    for cells in table.lines:
        yield f"| {' | '.join(cells)} |"


def number(value: float) -> str:
    """Four digits, or all before the point.

    Examples
    --------
    >>> number(0.97551), number(3455.7), number(-1.0)
    ('0.9755', '3,456', '-1')
    """
    return f"{value:,.0f}" if abs(value) >= 1000.0 else f"{value:.4g}"
