"""What may be trusted, in one table: every figure with the code of version 0.1, with this one, and its target.

    python -m benchmarks.trust [--section MODULE] [--write]

Each section is a module of this folder with ``cells()``, a function that measures, and opens with a few sentences that
the page quotes. ``--section`` measures that module alone; ``--write`` writes docs/evidence/trust.md, with all sections.
"""

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from itertools import groupby
from pathlib import Path

from benchmarks.cells import Cell, reached

__all__ = ["MODULES", "Section", "measure", "page", "table"]

MODULES = {
    "evidence": "Evidence",
    "few_rows": "Few rows",
    "beyond": "Networks with few rows, in gaps and beyond the data",
    "classes": "Classes",
    "counts": "Rare events, counts, and noise that depends on the input",
    "fairness": "Others at their best",
}
PAGE = Path(__file__).parents[1] / "docs" / "evidence" / "trust.md"
INTRODUCTION = """\
# What may be trusted

Whether intervals contain what they should, whether the evidence is a density, and whether comparisons with others are
fair. Written by `python -m benchmarks.trust --write`, which measures every figure anew; [evidence](index.md) has the
date and the machine. "0.1" are the figures of version 0.1, "now" those of this version. A figure is rounded to the
digits of its target before the two are compared.
"""


@dataclass(frozen=True)
class Section:
    """One module's figures, and what it says about them."""

    title: str
    explanation: str
    cells: tuple[Cell, ...]


def measure(name: str) -> Section:
    """Import a module of this folder and take its cells."""
    if find_spec(f"benchmarks.{name}") is None:
        raise SystemExit(f"no module benchmarks/{name}.py, which benchmarks/trust.py lists")
    module = import_module(f"benchmarks.{name}")
    cells = tuple(module.cells())
    return Section(MODULES[name], explanation(module.__doc__), cells)


def explanation(docstring: str | None) -> str:
    """Return what a module says before its command: the paragraphs ahead of the first indented line."""
    return (docstring or "").split("\n\n    ")[0].strip()


def table(cells: Sequence[Cell]) -> Iterator[str]:
    """Lines of Markdown tables, one for each of the cells' sections."""
    for number, (title, own) in enumerate(groupby(cells, key=lambda cell: cell.section)):
        if number:
            yield ""
        yield f"| {title} | 0.1 | now | target | reached |"
        yield "|---|---|---|---|---|"
        for cell in own:
            answer = {True: "yes", False: "no", None: ""}[reached(cell.after, cell.target)]
            yield f"| {cell.name} | {cell.before:.4g} | {cell.after:.4g} | {cell.target} | {answer} |"


def page(sections: Sequence[Section]) -> str:
    """The whole page."""
    parts = [INTRODUCTION]
    for section in sections:
        parts += [f"## {section.title}\n", f"{section.explanation}\n", "\n".join(table(section.cells)) + "\n"]
    return "\n".join(parts)


def main() -> None:
    """Measure and print, section by section."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.trust", description=__doc__.split("\n")[0])
    only = parser.add_mutually_exclusive_group()
    only.add_argument("--section", choices=list(MODULES), help="measure this module alone")
    only.add_argument("--write", action="store_true", help=f"write {PAGE.parent.name}/{PAGE.name}")
    options = parser.parse_args()
    sections = []
    for name in [options.section] if options.section else MODULES:
        section = measure(name)
        print(f"\n{section.title}\n", *table(section.cells), sep="\n", flush=True)
        sections.append(section)
    if options.write:
        PAGE.write_text(page(sections))


if __name__ == "__main__":
    main()
