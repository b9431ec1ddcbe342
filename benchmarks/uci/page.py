"""Our figures on the standard regression sets next to those of others: docs/evidence/uci.md and its figure."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.published import RERUN, TABLE, Pair, Row
from onepass.reports.plots import BASELINE, EXACT, GREY, PAPER, house_style, new_figure, render

__all__ = ["Results", "Scores", "figure", "page", "write"]

HERE = Path(__file__).parents[1]
DOCS = HERE.parent / "docs"
OURS = "onepass"
NAMES = {
    "yacht": "yacht",
    "energy": "energy",
    "bostonHousing": "boston",
    "concrete": "concrete",
    "wine-quality-red": "wine",
    "kin8nm": "kin8nm",
}
ONE, TEN = "1", "10"
UNTOUCHED = 10  # the first so many splits, on which nothing was chosen
PASSES = {ONE: "one pass", TEN: "ten passes"}
INTRODUCTION = """\
Written by `python -m benchmarks.uci`, whose help lists the commands; [evidence](index.md) has the date and the machine.

The networks have one hidden layer of 50 ReLU units, standardised data, and the same defaults for all sets: a
committee of five networks, and its first member alone. The sets come with 20 published splits into training and test
rows. The defaults were chosen on splits 10 to 19, so the figures to trust are those of splits 0 to 9. (The variants
of committee members were compared on these three times, though, which makes the committee's figures slightly
optimistic.)

Cells are RMSE / mean log-likelihood in the targets' own units: the first should be low, the second high. No command
here runs the other methods: figures on all 20 splits are from their [papers](../reference/bibliography.md#networks),
and those on the first three or five splits were measured once and stored (`benchmarks/published.py`). "Tuned" means
that the noise, and for extended Kalman filters the prior, was chosen on validation data. "Passes" is how often the rows
were learned, as far as it is known. Before a comparison, figures of onepass are rounded to as many digits as the
other has.
"""
FIRST_HALF = """\
The published figures are means over all 20 splits, those of onepass over splits 0 to 9; some of these splits are
harder and some easier than the rest.
"""


class Scores:
    """What ``python -m benchmarks.uci --json`` wrote: RMSE, log-likelihood and coverage of every split of every set."""

    def __init__(self, file: Path, label: str) -> None:
        entries: list[dict[str, Any]] = json.loads(file.read_text())
        fields = ("rmse", "log_likelihood", "coverage")
        self.label = label
        self.passes = str(entries[0]["passes"])
        self.tables = {
            entry["dataset"]: np.array([[score[field] for field in fields] for score in entry["scores"]])
            for entry in entries
        }

    def mean(self, name: str, splits: int) -> Pair:
        """RMSE and log-likelihood over the first so many splits."""
        rmse, likelihood, _ = self.tables[name][:splits].mean(axis=0)
        return float(rmse), float(likelihood)

    def error(self, name: str, splits: int) -> Pair:
        """Standard errors of both over these splits."""
        table = self.tables[name][:splits]
        rmse, likelihood, _ = table.std(axis=0, ddof=1) / np.sqrt(len(table))
        return float(rmse), float(likelihood)

    def coverage(self, name: str, splits: int) -> float:
        return float(self.tables[name][:splits, 2].mean())


class Results:
    """All four runs: one and ten passes, of a single network and of a committee."""

    def __init__(self, folder: Path) -> None:
        self.committee = {passes: Scores(folder / f"uci-{passes}.json", OURS) for passes in (ONE, TEN)}
        self.single = {
            passes: Scores(folder / f"uci-{passes}-single.json", f"{OURS}, one network") for passes in (ONE, TEN)
        }

    def of(self, passes: str) -> tuple[Scores, Scores]:
        """Committee and single network."""
        return self.committee[passes], self.single[passes]


def page(results: Results) -> str:
    """The whole page."""
    few = [row for row in RERUN if row.passes not in (ONE, "40")]
    many = [row for row in RERUN if row.passes == "40"]
    parts = [
        "# Regression sets with published figures\n",
        f"How good are networks after one and ten passes over six standard regression sets? {_finding(results)}\n",
        "![RMSE and log-likelihood of every method on every set](../images/uci.png)\n",
        INTRODUCTION,
        "## Splits 0 to 9\n",
        _overview(results),
        _coverages(results),
        "## At most ten passes, compared with published figures\n",
        FIRST_HALF,
        _table(results.of(TEN), TABLE, UNTOUCHED),
        "## At most ten passes, on the first splits\n",
        *(_table(results.of(TEN), rows, splits) for splits, rows in _by_splits(few)),
        "PBP and TAGI with forty passes, onepass with ten:\n",
        *(_table(results.of(TEN), rows, splits) for splits, rows in _by_splits(many)),
        "## One pass, on the first splits\n",
        *(
            _table(results.of(ONE), rows, splits)
            for splits, rows in _by_splits([row for row in RERUN if row.passes == ONE])
        ),
    ]
    return "\n".join(parts)


def _finding(results: Results) -> str:
    """What came out, and who is better where."""
    committee, ensembles = results.committee[TEN], next(row for row in TABLE if row.method == "deep ensembles")
    rmse, likelihood = _wins(committee, ensembles, UNTOUCHED).split(" of ")[0].split(", ")
    coverage = np.mean([committee.coverage(name, UNTOUCHED) for name in NAMES])
    return (
        f"After ten passes a committee of five has a lower RMSE than published deep ensembles on {rmse} of "
        f"{len(NAMES)} sets "
        f"and a higher log-likelihood on {likelihood}; {coverage:.1f} % of the test targets are inside its 95 % "
        f"intervals. "
        f"Others have a lower RMSE or a higher log-likelihood on some sets: {'; '.join(_ahead(committee))}."
    )


def _ahead(ours: Scores) -> Iterator[str]:
    """Methods that are better somewhere than ten passes of ours, and on which sets."""
    for row in [*TABLE, *(row for row in RERUN if row.passes != ONE)]:
        splits = min(row.splits, UNTOUCHED)
        sets = [NAMES[name] for name in row.figures if min(_gains(ours, row, name, splits)) < -1e-9]
        if sets:
            yield f"{row.method} on {', '.join(sets)}"


def _by_splits(rows: list[Row]) -> list[tuple[int, list[Row]]]:
    return [
        (splits, [row for row in rows if row.splits == splits])
        for splits in sorted({row.splits for row in rows}, reverse=True)
    ]


def _overview(results: Results) -> str:
    lines = ["| | " + " | ".join(NAMES.values()) + " |", "|---|" + "---|" * len(NAMES)]
    for passes, words in PASSES.items():
        for scores, kind in zip(results.of(passes), ("committee", "one network"), strict=True):
            cells = []
            for name in NAMES:
                (rmse, likelihood), (rmse_error, error) = scores.mean(name, UNTOUCHED), scores.error(name, UNTOUCHED)
                cells.append(f"{rmse:.3f} ± {rmse_error:.3f} / {likelihood:.3f} ± {error:.3f}")
            lines.append(f"| {words}, {kind} | " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def _coverages(results: Results) -> str:
    lines = ["Coverage of the 95 % interval, per cent:\n"]
    lines += ["| | " + " | ".join(NAMES.values()) + " | mean |", "|---|" + "---|" * (len(NAMES) + 1)]
    for passes, words in PASSES.items():
        for scores, kind in zip(results.of(passes), ("committee", "one network"), strict=True):
            each = [scores.coverage(name, UNTOUCHED) for name in NAMES]
            cells = [f"{value:.1f}" for value in (*each, np.mean(each))]
            lines.append(f"| {words}, {kind} | " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def _table(ours: tuple[Scores, Scores], rows: list[Row], splits: int) -> str:
    """Each method, ours on the first so many splits under them, how often ours is better, and where others are."""
    header = "| passes | method, splits | " + " | ".join(NAMES.values()) + " | committee better: RMSE, log-likelihood |"
    lines = [header, "|---|---|" + "---|" * (len(NAMES) + 1)]
    committee = ours[0]
    for row in rows:
        cells = [_pair(row.figures.get(name)) for name in NAMES]
        label = f"{row.method}, splits 0-{row.splits - 1}"
        lines.append(f"| {row.passes} | {label} | " + " | ".join(cells) + f" | {_wins(committee, row, splits)} |")
    for scores in ours:
        cells = [f"**{_pair(scores.mean(name, splits))}**" for name in NAMES]
        lines.append(f"| {scores.passes} | **{scores.label}**, splits 0-{splits - 1} | " + " | ".join(cells) + " | |")
    return "\n".join([*lines, "", *(_won_by_others(scores, rows, splits) for scores in ours), ""])


def _pair(figures: Pair | None) -> str:
    return "" if figures is None else "{:.3g} / {:.3g}".format(*figures)


def _gains(ours: Scores, row: Row, name: str, splits: int) -> tuple[float, float]:
    """How much better ours is in RMSE and in log-likelihood, ours rounded to as many decimals as theirs is printed."""
    mine, theirs = ours.mean(name, splits), row.figures[name]
    return theirs[0] - round(mine[0], _decimals(theirs[0])), round(mine[1], _decimals(theirs[1])) - theirs[1]


def _decimals(printed: float) -> int:
    return max(2, len(repr(printed).partition(".")[2]))  # a zero at the end is lost: all have two or more


def _wins(ours: Scores, row: Row, splits: int) -> str:
    """On how many of the sets ours is strictly better."""
    gains = np.array([_gains(ours, row, name, splits) for name in row.figures])
    rmse, likelihood = (gains > 1e-9).sum(axis=0)
    return f"{rmse}, {likelihood} of {len(row.figures)}"


def _won_by_others(ours: Scores, rows: list[Row], splits: int) -> str:
    """A sentence: on which sets which methods are strictly better than ours, and in what."""
    lost = []
    for name, label in NAMES.items():
        for measure, words in enumerate(("RMSE", "log-likelihood")):
            ahead = [
                row.method for row in rows if name in row.figures and _gains(ours, row, name, splits)[measure] < -1e-9
            ]
            lost += [f"{label}, {words}: {', '.join(ahead)}"] if ahead else []
    return f"Better than {ours.label} on splits 0-{splits - 1}: {'; '.join(lost) or 'none'}.\n"


def figure(results: Results) -> bytes:
    """A dot a method, a column a set: RMSE above, log-likelihood below; ours on splits 0-9, two standard errors."""
    others = [*TABLE, *(row for row in RERUN if row.passes == "10" and row.method != "PBP"), RERUN[-1]]
    ours = [scores for passes in (ONE, TEN) for scores in reversed(results.of(passes))]
    labels = [f"{row.method} ({row.passes})" if row.passes else row.method for row in others]
    labels += [f"{scores.label} ({scores.passes})" for scores in ours]
    colours = (GREY, GREY, PAPER["color"], EXACT["color"])
    with house_style():
        drawing, axes = new_figure(2, len(NAMES), 12.0, 6.2, sharey=True)
        for column, (name, label) in enumerate(NAMES.items()):
            for measure, axis in enumerate(axes[:, column]):
                theirs = [(row.figures[name][measure], k) for k, row in enumerate(others) if name in row.figures]
                axis.plot(*zip(*theirs, strict=True), marker="^", color=BASELINE["color"], linestyle="", markersize=5)
                for place, (scores, colour) in enumerate(zip(ours, colours, strict=True), len(others)):
                    value, error = scores.mean(name, UNTOUCHED)[measure], scores.error(name, UNTOUCHED)[measure]
                    axis.errorbar(value, place, xerr=2 * error, marker="s", color=colour, markersize=5, capsize=2)
                best = results.committee[TEN].mean(name, UNTOUCHED)[measure]
                axis.axvline(best, color=EXACT["color"], linewidth=0.7, alpha=0.5)
            axes[0, column].set_title(label)
        for axis, title in zip(axes[:, 0], ("RMSE (less is better)", "log-likelihood (more is better)"), strict=True):
            axis.set_yticks(range(len(labels)), labels)
            axis.set_ylabel(title)
        return render(drawing, "png")


def write() -> None:
    """Write the page and the figure."""
    results = Results(HERE)
    (DOCS / "images" / "uci.png").write_bytes(figure(results))
    (DOCS / "evidence" / "uci.md").write_text(page(results))
    print(page(results))
