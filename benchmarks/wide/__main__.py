"""Wide layers, images and many classes in tables: every figure beside what it should reach.

    python -m benchmarks.wide [--data FOLDER] [--only PART,PART] [--quick] [--write | --page]

FOLDER has MNIST's four files in ``mnist`` and regression sets with published splits in ``uci``; without it the parts
measure what comes with scikit-learn or is made up. ``--only`` measures these parts alone, ``--quick`` takes a few rows,
to see that everything runs. ``--write`` keeps what was found in benchmarks/wide.json beside what other parts have left
there, and writes docs/evidence/wide-layers.md; ``--page`` writes the page anew and measures nothing.
"""

import argparse
import warnings
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

from threadpoolctl import threadpool_limits

from benchmarks.trust import explanation
from benchmarks.wide import classes, cliffs, conv, mnist, permuted, speed, uci
from benchmarks.wide.study import Findings, Study, figure_lines, read, table_lines, write

__all__ = ["PARTS", "Part", "page"]

STORED = Path(__file__).parents[1] / "wide.json"
PAGE = Path(__file__).parents[2] / "docs" / "evidence" / "wide-layers.md"
INTRODUCTION = """\
# Wide layers, measured

How accurate and how fast networks with wide layers, convolutions and many classes are;
[wide layers](../explanation/wide-layers.md) explains them. Written by
`python -m benchmarks.wide --data FOLDER --write`, which measures every figure anew; [evidence](index.md) has the date.
Everything is one pass with one thread and the library's defaults, unless a part says otherwise. Speeds are rows per
second of processor time, on a virtual machine with two cores (AVX-512) that was shared with other work. "Target" is
what a figure should reach; the figure is rounded to the digits of its target before the two are compared.
"""


class Part(NamedTuple):
    """A part of the page: its title, and the module that explains and measures it."""

    title: str
    module: ModuleType


PARTS = {
    "mnist": Part("MNIST", mnist),
    "conv": Part("MNIST with convolutions", conv),
    "speed": Part("Speed", speed),
    "uci": Part("Regression sets", uci),
    "permuted": Part("Permuted MNIST", permuted),
    "cliffs": Part("Growing networks", cliffs),
    "classes": Part("Many classes", classes),
}


def page(found: Mapping[str, Findings]) -> str:
    """The whole page, of those parts that were measured."""
    parts = [INTRODUCTION]
    for name, part in PARTS.items():
        if name in found:
            parts += [f"## {part.title}\n", f"{explanation(part.module.__doc__)}\n", text(found[name])]
    return "\n".join(parts)


def text(findings: Findings) -> str:
    """All tables of a part."""
    tables = ["\n".join(figure_lines(findings.figures))]
    tables += ["\n".join(table_lines(table)) for table in findings.tables]
    return "\n\n".join(tables) + "\n"


def arguments() -> argparse.Namespace:
    """What the command was given."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.wide", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--data", type=Path, metavar="FOLDER", help="folder with mnist and uci")
    parser.add_argument("--only", type=_names, default=list(PARTS), metavar="PARTS", help=f"some of {','.join(PARTS)}")
    parser.add_argument("--quick", action="store_true", help="take a few rows only")
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--write", action="store_true", help=f"keep what was found, and write docs/evidence/{PAGE.name}")
    what.add_argument("--page", action="store_true", help=f"write docs/evidence/{PAGE.name} and measure nothing")
    options = parser.parse_args()
    if options.write and (options.data is None or options.quick):
        parser.error("--write needs --data FOLDER and all rows")
    return options


def _names(given: str) -> list[str]:
    names = given.split(",")
    if unknown := [name for name in names if name not in PARTS]:
        raise argparse.ArgumentTypeError(f"no part is named {unknown[0]!r}; there are {', '.join(PARTS)}")
    return names


def main() -> None:
    """Measure and print, part by part."""
    options = arguments()
    warnings.filterwarnings("ignore", category=UserWarning)
    study = Study(options.data, options.quick)
    with threadpool_limits(1):
        for name in [] if options.page else options.only:
            findings = PARTS[name].module.findings(study)
            print(f"\n{PARTS[name].title}\n", text(findings), sep="\n", flush=True)
            if options.write:
                write(STORED, read(STORED) | {name: findings})
    if options.write or options.page:
        PAGE.write_text(page(read(STORED)))


if __name__ == "__main__":
    main()
