"""Our figures on the standard regression sets beside those of others, written to docs/uci.md with a figure.

    onepass bench uci --data FOLDER --passes 1 --json benchmarks/uci-1.json
    onepass bench uci --data FOLDER --passes 10 --json benchmarks/uci-10.json
    python -m benchmarks.uci

The first two measure, on all splits of every set in the folder; the last only writes down what they found.
"""

import json
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.published import RERUN, TABLE, Pair, Row
from onepass.reports.plots import BASELINE, EXACT, GREY, house_style, new_figure, render

HERE = Path(__file__).parent
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
INTRODUCTION = """\
Written by `python -m benchmarks.uci` from the results of `onepass bench uci`; that module lists the commands. One
hidden layer of 50 ReLU units, standardised data, one set of defaults for all sets: a committee of five networks. The
defaults were chosen on splits 10 to 19, the second half of the 20 splits into training and test rows. Cells are RMSE /
mean log-likelihood in the targets' own units. The figures of other methods are quoted, not run here; each is compared
with ours on the same splits.
"""


class Scores:
    """What ``onepass bench uci --json`` wrote: RMSE, log-likelihood and coverage of every split of every set."""

    def __init__(self, passes: str) -> None:
        entries: list[dict[str, Any]] = json.loads((HERE / f"uci-{passes}.json").read_text())
        fields = ("rmse", "log_likelihood", "coverage")
        self.passes = passes
        self.tables = {
            entry["dataset"]: np.array([[score[field] for field in fields] for score in entry["scores"]])
            for entry in entries
        }

    def mean(self, name: str, splits: int) -> Pair:
        """RMSE and log-likelihood over the first so many splits."""
        rmse, likelihood, _ = self.tables[name][:splits].mean(axis=0)
        return float(rmse), float(likelihood)

    def error(self, name: str) -> Pair:
        """Standard errors of both over all splits."""
        table = self.tables[name]
        rmse, likelihood, _ = table.std(axis=0, ddof=1) / np.sqrt(len(table))
        return float(rmse), float(likelihood)

    def coverage(self, name: str) -> float:
        return float(self.tables[name][:, 2].mean())


def page(one: Scores, ten: Scores) -> str:
    """The whole page."""
    parts = [
        "# Regression sets with published figures\n",
        INTRODUCTION,
        "![RMSE and log-likelihood of every method on every set](images/uci.png)\n",
        "## All 20 splits\n",
        _overview(one, ten),
        "Coverage of the 95 % interval, per cent: " + "; ".join(_coverages(scores) for scores in (one, ten)) + ".\n",
        "## At most ten passes, compared with published figures\n",
        _table(ten, TABLE),
        "## At most ten passes, on the first splits\n",
        _table(ten, [row for row in RERUN if row.passes not in (ONE, "40")]),
        "PBP and TAGI with forty passes:\n",
        _table(ten, [row for row in RERUN if row.passes == "40"]),
        "## One pass, on the first splits\n",
        _table(one, [row for row in RERUN if row.passes == ONE]),
    ]
    return "\n".join(parts)


def _overview(one: Scores, ten: Scores) -> str:
    lines = ["| | " + " | ".join(NAMES.values()) + " |", "|---|" + "---|" * len(NAMES)]
    for scores, label in ((one, "one pass"), (ten, "ten passes")):
        cells = []
        for name in NAMES:
            (rmse, likelihood), (rmse_error, error) = scores.mean(name, 20), scores.error(name)
            cells.append(f"{rmse:.3f} ± {rmse_error:.3f} / {likelihood:.3f} ± {error:.3f}")
        lines.append(f"| {label} | " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def _coverages(scores: Scores) -> str:
    each = {label: scores.coverage(name) for name, label in NAMES.items()}
    listed = ", ".join(f"{label} {value:.1f}" for label, value in each.items())
    label = "one pass" if scores.passes == ONE else "ten passes"
    return f"{label} {listed}, mean {np.mean(list(each.values())):.1f}"


def _table(ours: Scores, rows: list[Row]) -> str:
    """Each method with ours on the same splits under it; bold where ours is better, and a last column that counts."""
    header = "| passes | method, splits | " + " | ".join(NAMES.values()) + " | ours better: RMSE, log-likelihood |"
    lines = [header, "|---|---|" + "---|" * (len(NAMES) + 1)]
    for splits in sorted({row.splits for row in rows}, reverse=True):
        span = f"splits 0-{splits - 1}"
        group = [row for row in rows if row.splits == splits]
        for row in group:
            cells = [_pair(row.figures.get(name)) for name in NAMES]
            lines.append(f"| {row.passes} | {row.method}, {span} | " + " | ".join(cells) + f" | {_wins(ours, row)} |")
        cells = [f"**{_pair(ours.mean(name, splits))}**" for name in NAMES]
        lines.append(f"| {ours.passes} | **{OURS}**, {span} | " + " | ".join(cells) + " | |")
    return "\n".join(lines) + "\n"


def _pair(figures: Pair | None) -> str:
    return "" if figures is None else "{:.3g} / {:.3g}".format(*figures)


def _wins(ours: Scores, row: Row) -> str:
    """On how many of the sets both figures are there and ours is strictly better, as precisely as theirs is printed."""
    better = np.zeros(2, dtype=int)
    for name, theirs in row.figures.items():
        mine = ours.mean(name, row.splits)
        better += (mine[0] < theirs[0], mine[1] > theirs[1])
    return f"{better[0]}, {better[1]} of {len(row.figures)}"


def figure(one: Scores, ten: Scores) -> bytes:
    """A dot a method, a column a set: RMSE above, log-likelihood below; ours with two standard errors."""
    others = [*TABLE, *(row for row in RERUN if row.passes == "10" and row.method != "PBP"), RERUN[-1]]
    labels = [f"{row.method} ({row.passes})" if row.passes else row.method for row in others]
    labels += [f"{OURS} (1)", f"{OURS} (10)"]
    with house_style():
        drawing, axes = new_figure(2, len(NAMES), 12.0, 6.2, sharey=True)
        for column, (name, label) in enumerate(NAMES.items()):
            for measure, axis in enumerate(axes[:, column]):
                theirs = [(row.figures[name][measure], k) for k, row in enumerate(others) if name in row.figures]
                axis.plot(*zip(*theirs, strict=True), marker="^", color=BASELINE["color"], linestyle="", markersize=5)
                for scores, place in ((one, len(others)), (ten, len(others) + 1)):
                    value, error = scores.mean(name, 20)[measure], scores.error(name)[measure]
                    colour = EXACT["color"] if scores is ten else GREY
                    axis.errorbar(value, place, xerr=2 * error, marker="s", color=colour, markersize=5, capsize=2)
                axis.axvline(ten.mean(name, 20)[measure], color=EXACT["color"], linewidth=0.7, alpha=0.5)
            axes[0, column].set_title(label)
        for axis, title in zip(axes[:, 0], ("RMSE (less is better)", "log-likelihood (more is better)"), strict=True):
            axis.set_yticks(range(len(labels)), labels)
            axis.set_ylabel(title)
        return render(drawing, "png")


def main() -> None:
    """Write the page and the figure."""
    one, ten = Scores(ONE), Scores(TEN)
    (DOCS / "images" / "uci.png").write_bytes(figure(one, ten))
    (DOCS / "uci.md").write_text(page(one, ten))
    print(page(one, ten))


if __name__ == "__main__":
    main()
