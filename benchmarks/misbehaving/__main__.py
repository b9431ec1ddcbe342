"""Streams that misbehave: one default for all, next to others and to what was published.

    python -m benchmarks.misbehaving [--data FOLDER] [--section NAME] [--plain] [--quick] [--write]
    python -m benchmarks.misbehaving --page
    python -m benchmarks.misbehaving --data FOLDER --peers

FOLDER has the regression sets in ``uci`` and the streams in ``streams``; without it the sections that need it measure
what comes with the libraries. ``--plain`` leaves our settings out, to see what they are worth; ``--quick`` takes a few
rows, to see that everything runs. ``--write`` keeps what was found in
benchmarks/misbehaving-outcomes.json and writes docs/evidence/misbehaving.md with its chart and the picture of
docs/tutorials/drift-and-outliers.md; ``--page`` writes the page from what is kept; ``--peers`` measures others again,
in a few minutes.
"""

import argparse
import warnings
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

from benchmarks.charts import IMAGES, dots
from benchmarks.misbehaving import jumps, labels, long_run, moving, peers, picture, prequential, robust
from benchmarks.misbehaving.sources import streams
from benchmarks.misbehaving.study import OURS, Outcome, Study, table
from benchmarks.stored import keep, stored
from benchmarks.trust import explanation
from onepass.files.atomic import write_atomically

__all__ = ["SECTIONS", "Section", "chart", "page", "read", "write"]

PAGE = Path(__file__).parents[2] / "docs" / "evidence" / "misbehaving.md"
PICTURE = IMAGES / "misbehaving.png"
STORED = Path(__file__).parents[1] / "misbehaving-outcomes.json"
INTRODUCTION = f"""\
# Streams that misbehave: all figures

What do wild targets, wrong labels, drift and jumps cost, with one setting for all? FINDING

![Losses divided by those of the best other method](../images/evidence-misbehaving.png)

Written by `python -m benchmarks.misbehaving --data FOLDER --write`; [evidence](index.md) has the date and the machine.
"onepass" is the library's defaults with `{", ".join(f"{name}={value!r}" for name, value in OURS.items())}` on every
task. "Best other" is the best of other methods that were run on the same rows, "published" a figure from a paper.
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
    parts, explained = [INTRODUCTION.replace("FINDING", _finding(found))], set()
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


def _ratios(found: dict[str, list[Outcome]]) -> dict[str, dict[str, float]]:
    """Our losses over the best other ones, by task and model: wild targets, wrong labels and recorded streams."""
    rows: dict[str, dict[str, float]] = {}
    for section in ("robust", "labels", "streams"):
        for outcome in found.get(section, []):
            first, _, measure = outcome.task.rpartition(": ")
            name, _, rest = (first or outcome.task).partition(", ")
            if outcome.ratio is None or "drift alone" in rest or "WoLF" in rest or measure == "MAE":
                continue
            model = rest if rest in ("perceptron", "network") else "network"
            words = {"robust": "wild targets", "labels": "wrong labels", "streams": measure}[section]
            rows.setdefault(f"{name}, {words}", {})[model] = outcome.ratio
    return rows


def _finding(found: dict[str, list[Outcome]]) -> str:
    """What came out, and who is better where."""
    ratios = _ratios(found)
    best = {name: min(values.values()) for name, values in ratios.items()}
    wild = [100.0 * (1.0 - value) for name, value in best.items() if name.endswith("wild targets")]
    labels = [100.0 * (1.0 - value) for name, value in best.items() if name.endswith("wrong labels")]
    lost = [name for name, value in best.items() if value > 1.0]
    if not wild or not labels:
        return ""
    return (
        f"With a tenth of the targets far off, the median error of a network is {min(wild):.0f} to "
        f"{max(wild):.0f} % below "
        f"the best published one on {len(wild)} sets. With a tenth of the labels wrong, the better of perceptron "
        f"and network "
        f"has a log-loss {min(labels):.0f} to {max(labels):.0f} % below that of batch logistic regression. On recorded "
        f"streams others are better on {' and on '.join(lost) or 'none'}; and on a boundary that turns fast, a fixed "
        "`forgetting=0.7` is, if it is known beforehand."
    )


def chart(found: dict[str, list[Outcome]]) -> bytes:
    """Draw the ratios of losses."""
    label = "loss divided by that of the best other method (below 1 is better)"
    return dots(_ratios(found), label, reference=1.0, log=True)


def read() -> dict[str, list[Outcome]]:
    """What was measured last."""
    before = stored(STORED)
    return {name: [Outcome(**outcome) for outcome in before[name]] for name in SECTIONS}


def write(found: dict[str, list[Outcome]]) -> None:
    """Write the page and its chart."""
    PAGE.write_text(page(found, prequential.notes()), encoding="utf-8")
    write_atomically(IMAGES / "evidence-misbehaving.png", chart(found))


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
    what.add_argument("--page", action="store_true", help=f"write {PAGE.parent.name}/{PAGE.name}, measure nothing")
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
    if options.page:
        write(read())
        return
    study = Study({} if options.plain else OURS, options.data, options.quick)
    found = {}
    for name in [options.section] if options.section else SECTIONS:
        found[name] = SECTIONS[name].outcomes(study)
        missed = [f"MISSED {one.bound}: {one.task}" for one in found[name] if one.is_missed]
        print(f"\n{SECTIONS[name].title}\n", *table(found[name]), *missed, sep="\n", flush=True)
    if options.write:
        keep(STORED, {name: [asdict(outcome) for outcome in outcomes] for name, outcomes in found.items()})
        write(found)
        PICTURE.write_bytes(picture.draw())


if __name__ == "__main__":
    main()
