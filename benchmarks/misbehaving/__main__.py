"""Streams that misbehave, in one table: ours at one default for all, beside others, what was published, what to reach.

    python -m benchmarks.misbehaving [--data FOLDER] [--section NAME] [--plain] [--quick] [--write]
    python -m benchmarks.misbehaving --data FOLDER --peers

FOLDER has the regression sets in ``uci`` and the streams in ``streams``; without it the sections that need it measure
what comes with the libraries. ``--plain`` leaves our settings out, to see what they are worth; ``--quick`` takes a few
rows, to see that everything runs. ``--write`` writes docs/evidence/misbehaving.md and the picture of
docs/tutorials/drift-and-outliers.md; ``--peers`` measures others again, in a few minutes.
"""

import argparse
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

from benchmarks.misbehaving import jumps, labels, long_run, moving, peers, picture, prequential, robust
from benchmarks.misbehaving.sources import streams
from benchmarks.misbehaving.study import OURS, Outcome, Study, table
from benchmarks.trust import explanation

__all__ = ["SECTIONS", "Section", "page"]

PAGE = Path(__file__).parents[2] / "docs" / "evidence" / "misbehaving.md"
PICTURE = PAGE.parents[1] / "images" / "misbehaving.png"
INTRODUCTION = f"""\
# Streams that misbehave: all figures

How well the library does with outliers, wrong labels, drift and jumps, beside others. Written by
`python -m benchmarks.misbehaving --data FOLDER --write`; [evidence](index.md) has the date and the machine.

"Ours" are the library's defaults with `{", ".join(f"{name}={value!r}" for name, value in OURS.items())}` on every task.
"Best other" is the best of other methods that were run on the same rows, "published" a figure from a paper, and
"target" what ours should reach. A figure is rounded to the digits of its target before the two are compared.
"""


class Section(NamedTuple):
    """A part of the page: its title, the module that explains it, what measures it."""

    title: str
    module: ModuleType
    outcomes: Callable[[Study], list[Outcome]]


SECTIONS = {
    "robust": Section("Wild targets", robust, robust.outcomes),
    "labels": Section("Wrong labels", labels, labels.outcomes),
    "turning": Section("A boundary that turns", moving, moving.turns),
    "flips": Section("Flips, slow walks, and no drift", moving, moving.flips),
    "streams": Section("Recorded streams", prequential, prequential.outcomes),
    "jumps": Section("Jumps and spikes", jumps, jumps.outcomes),
    "endurance": Section("A million rows, and the costs", long_run, long_run.outcomes),
}


def page(found: dict[str, list[Outcome]], notes: Sequence[str] = ()) -> str:
    """The whole page; what two sections share is explained once."""
    parts, explained = [INTRODUCTION], set()
    for name, outcomes in found.items():
        section = SECTIONS[name]
        parts.append(f"## {section.title}\n")
        if section.module not in explained:
            parts.append(f"{explanation(section.module.__doc__)}\n")
            explained.add(section.module)
        parts.append("\n".join(table(outcomes)) + "\n")
        if name == "streams" and notes:
            parts.append("All scores of others:\n\n" + "\n".join(notes) + "\n")
    return "\n".join(parts)


def measure_peers(folder: Path) -> None:
    """Measure the others, and keep what they reach."""
    found = {}
    for stream in streams(folder / "streams"):
        found[stream.name] = peers.measure(stream)
        for peer, scores in found[stream.name].items():
            print(stream.name, peer, scores, flush=True)
    peers.write(found)


def arguments() -> argparse.Namespace:
    """What the command was given."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.misbehaving", description=(__doc__ or "").split("\n")[0]
    )
    parser.add_argument("--data", type=Path, metavar="FOLDER", help="folder with uci and streams")
    parser.add_argument("--section", choices=list(SECTIONS), help="measure this section alone")
    parser.add_argument("--plain", action="store_true", help="leave our settings out")
    parser.add_argument("--quick", action="store_true", help="take a few rows only")
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--write", action="store_true", help=f"write {PAGE.parent.name}/{PAGE.name}")
    what.add_argument("--peers", action="store_true", help="measure the others again")
    options = parser.parse_args()
    if options.peers and options.data is None:
        parser.error("--peers needs --data FOLDER")
    if options.write and (options.data is None or options.section or options.plain or options.quick):
        parser.error("--write needs --data FOLDER, all sections, our settings and all rows")
    return options


def main() -> None:
    """Measure and print, section by section."""
    options = arguments()
    warnings.filterwarnings("ignore", category=UserWarning)
    if options.peers:
        measure_peers(options.data)
        return
    study = Study({} if options.plain else OURS, options.data, options.quick)
    found = {}
    for name in [options.section] if options.section else SECTIONS:
        found[name] = SECTIONS[name].outcomes(study)
        print(f"\n{SECTIONS[name].title}\n", *table(found[name]), sep="\n", flush=True)
    if options.write:
        PAGE.write_text(page(found, prequential.notes()))
        PICTURE.write_bytes(picture.draw())


if __name__ == "__main__":
    main()
