"""What may be trusted, on one page: coverage, evidence, classes, counts, and others at their best.

    python -m benchmarks.trust [--section MODULE] [--write | --page]

Each section is a module of this folder with ``cells()``, a function that measures, and opens with a few sentences that
the page quotes. ``--section`` measures that module alone; ``--write`` keeps what was found in benchmarks/trust.json and
writes docs/evidence/trust.md with its chart; ``--page`` writes them from what is kept and measures nothing.
"""

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from importlib import import_module
from importlib.util import find_spec
from itertools import groupby
from pathlib import Path
from typing import Any

from benchmarks.beyond import FEW_ROWS
from benchmarks.cells import Cell
from benchmarks.charts import IMAGES, dots
from benchmarks.few_rows import SECTION as WEIGHTS
from benchmarks.stored import keep, stored
from onepass.files.atomic import write_atomically

__all__ = ["MODULES", "Section", "chart", "measure", "page", "read", "table"]

MODULES = {
    "evidence": "Evidence",
    "few_rows": "Few rows",
    "beyond": "Networks with few rows, in gaps and beyond the data",
    "classes": "Classes",
    "counts": "Rare events, counts, and noise that depends on the input",
    "fairness": "Others at their best",
}
STORED = Path(__file__).with_name("trust.json")
PAGE = Path(__file__).parents[1] / "docs" / "evidence" / "trust.md"
CHART = "evidence-trust.png"
COVERAGE = (WEIGHTS, FEW_ROWS)
"""Sections whose figures are the share inside 95 % intervals."""
INTRODUCTION = """\
# What may be trusted

Do 95 % intervals contain 95 % with few rows, and where do they not? {finding}

![Share inside 95 % intervals with few rows](../images/{chart})

Written by `python -m benchmarks.trust --write`, which measures every figure anew; [evidence](index.md) has the date and
the machine.
"""


@dataclass(frozen=True)
class Section:
    """One module's figures, and what it says about them."""

    title: str
    explanation: str
    cells: tuple[Cell, ...]


def measure(name: str) -> Section:
    """Import a module of this folder and take its cells."""
    return _section(name, tuple(_module(name).cells()))


def _section(name: str, cells: tuple[Cell, ...]) -> Section:
    return Section(MODULES[name], explanation(_module(name).__doc__), cells)


def _module(name: str) -> Any:
    if find_spec(f"benchmarks.{name}") is None:
        raise SystemExit(f"no module benchmarks/{name}.py, which benchmarks/trust.py lists")
    return import_module(f"benchmarks.{name}")


def read() -> list[Section]:
    """What was measured last."""
    found = stored(STORED)
    return [_section(name, tuple(Cell(**cell) for cell in found[name])) for name in MODULES]


def explanation(docstring: str | None) -> str:
    """Return what a module says before its command: the paragraphs ahead of the first indented line."""
    return (docstring or "").split("\n\n    ")[0].strip()


def table(cells: Sequence[Cell]) -> Iterator[str]:
    """Lines of Markdown tables, one for each of the cells' sections."""
    for number, (title, own) in enumerate(groupby(cells, key=lambda cell: cell.section)):
        if number:
            yield ""
        yield f"| {title} | measured |"
        yield "|---|---|"
        for cell in own:
            yield f"| {cell.name} | {cell.value:.4g} |"


def _covered(sections: Sequence[Section]) -> dict[str, float]:
    return {cell.name: cell.value for section in sections for cell in section.cells if cell.section in COVERAGE}


def _finding(sections: Sequence[Section]) -> str:
    """What came out, in a sentence or two."""
    found = _covered(sections)
    worst = min(found, key=lambda name: found[name])
    near = sum(93.0 <= value <= 97.2 for value in found.values())
    repeated = {name: value for name, value in found.items() if "EP" in name}
    return (
        f"Of {len(found)} settings with few rows, {near} have between 93 and 97.2 % inside. Least is inside with "
        f"*{worst}*: {found[worst]:.1f} %; one pass is too certain there, and passes of expectation propagation raise "
        f"all of these to between {min(repeated.values()):.1f} and {max(repeated.values()):.1f} %."
    )


def chart(sections: Sequence[Section]) -> bytes:
    """Draw the shares inside 95 % intervals."""
    rows: dict[str, dict[str, float]] = {}
    for name, value in _covered(sections).items():
        setting, _, way = name.rpartition(": ")
        kind, _, size = name.partition(", ")
        row, method = (setting, way) if setting else (f"networks, {size}", kind)
        rows.setdefault(row, {})[method] = value
    return dots(rows, "inside 95 % intervals, per cent; the line is 95 %", reference=95.0)


def page(sections: Sequence[Section]) -> str:
    """The whole page."""
    parts = [INTRODUCTION.format(finding=_finding(sections), chart=CHART)]
    for section in sections:
        parts += [f"## {section.title}\n", f"{section.explanation}\n", "\n".join(table(section.cells)) + "\n"]
    return "\n".join(parts)


def main() -> None:
    """Measure and print, section by section."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.trust", description=__doc__.split("\n")[0])
    only = parser.add_mutually_exclusive_group()
    only.add_argument("--section", choices=list(MODULES), help="measure this module alone")
    only.add_argument(
        "--write", action="store_true", help=f"keep what is found, and write {PAGE.parent.name}/{PAGE.name}"
    )
    only.add_argument("--page", action="store_true", help=f"write {PAGE.parent.name}/{PAGE.name} and measure nothing")
    options = parser.parse_args()
    found = {}
    for name in [] if options.page else [options.section] if options.section else MODULES:
        section = measure(name)
        print(f"\n{section.title}\n", *(cell.line for cell in section.cells), sep="\n", flush=True)
        found[name] = [asdict(cell) for cell in section.cells]
    if options.write:
        keep(STORED, found)
    if options.write or options.page:
        sections = read()
        write_atomically(IMAGES / CHART, chart(sections))
        PAGE.write_text(page(sections), encoding="utf-8")


if __name__ == "__main__":
    main()
