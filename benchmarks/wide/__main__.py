"""Wide layers, images and many classes, in tables.

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

from benchmarks.charts import IMAGES, dots
from benchmarks.trust import explanation
from benchmarks.wide import classes, cliffs, conv, mnist, permuted, speed, uci
from benchmarks.wide.study import Findings, Study, figure_lines, missed, read, table_lines, write

__all__ = ["PARTS", "Part", "chart", "page"]

STORED = Path(__file__).parents[1] / "wide.json"
PAGE = Path(__file__).parents[2] / "docs" / "evidence" / "wide-layers.md"
INTRODUCTION = """\
# Wide layers, measured

How accurate is one pass over MNIST, and what do correlations between weights add? {finding}

![Accuracy on MNIST after one pass](../images/evidence-wide.png)

[Wide layers](../explanation/wide-layers.md) explains the networks. Written by
`python -m benchmarks.wide --data FOLDER --write`, which measures every figure anew; [evidence](index.md) has the date.
Everything is one pass with one thread and the library's defaults, unless a part says otherwise. Speeds are rows per
second of processor time, on a virtual machine with two cores (AVX-512) that was shared with other work.
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
    parts = [INTRODUCTION.format(finding=_finding(found))]
    for name, part in PARTS.items():
        if name in found:
            parts += [f"## {part.title}\n", f"{explanation(part.module.__doc__)}\n", text(found[name])]
    return "\n".join(parts)


def _accuracies(found: Mapping[str, Findings]) -> dict[str, dict[str, float]]:
    """Accuracy by number of rows and network, of the parts that learn MNIST."""
    rows: dict[str, dict[str, float]] = {}
    for part in ("mnist", "conv"):
        for name, seen, accuracy, *_ in found[part].tables[0].lines if part in found else ():
            if "float64" not in name and "five" not in name:
                rows.setdefault(f"{seen} images", {})[name] = 100.0 * float(accuracy)
    return rows


def _finding(found: Mapping[str, Findings]) -> str:
    if not {"mnist", "conv"} <= set(found):
        return ""
    first, *_, last = _accuracies(found).values()
    conv = next(name for name in last if "filters" in name)
    return (
        f"After 60,000 images 300 units with a Kronecker covariance have an accuracy of {last['kronecker']:.2f} "
        f"%, with "
        f"independent weights {last['diagonal']:.2f} %, and a network with convolutions {last[conv]:.2f} %. "
        f"Correlations "
        f"help most with few images: after 1,000 it is {first['kronecker']:.2f} % against {first['diagonal']:.2f} %. "
        "Independent weights are two and a half times as fast. Networks trained for many epochs were not run."
    )


def chart(found: Mapping[str, Findings]) -> bytes:
    """Draw the accuracies on MNIST."""
    return dots(_accuracies(found), "accuracy on the test images after one pass, per cent (more is better)")


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
            print(f"\n{PARTS[name].title}\n", text(findings), *missed(findings.figures), sep="\n", flush=True)
            if options.write:
                write(STORED, read(STORED) | {name: findings})
    if options.write or options.page:
        found = read(STORED)
        PAGE.write_text(page(found))
        (IMAGES / "evidence-wide.png").write_bytes(chart(found))


if __name__ == "__main__":
    main()
