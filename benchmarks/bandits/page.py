"""The table and the figure of docs/evidence/bandits.md, from stored results."""

import json
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.bandits.catalogue import ENTRIES
from onepass.files.atomic import write_atomically
from onepass.reports.plots import (
    BASELINE,
    BASELINE_2,
    EXACT,
    GREY,
    OTHER,
    PAPER,
    house_style,
    new_figure,
    render,
    without_markers,
)

__all__ = ["figure", "table", "write"]

ROOT = Path(__file__).parents[2]
STORED = ROOT / "benchmarks" / "bandits.json"
PAGE = ROOT / "docs" / "evidence" / "bandits.md"
FIGURE = ROOT / "docs" / "images" / "bandits.png"
BEGIN, END = "<!-- table -->\n", "<!-- end of table -->\n"
_PLAIN = ({"color": GREY, "linestyle": "-"}, {"color": GREY, "linestyle": ":"})
STYLES = (EXACT, PAPER, OTHER, BASELINE, BASELINE_2, *_PLAIN)


def table(found: list[dict[str, Any]]) -> str:
    """Rewards with their standard errors, in Markdown."""
    lines = [
        "| task | player | reward | regret | steps/s | published |",
        "|---|---|---|---|---|---|",
    ]
    for one in found:
        entry = ENTRIES[one["task"]]
        rewards, regrets = np.array(one["rewards"]), np.array(one["regrets"])
        digits = ",.0f" if entry.total else ".4f"
        reward, regret = _with_error(rewards, digits), _with_error(regrets, ",.0f")
        speed = f"{one['steps_per_second']:,.0f}"
        lines.append(f"| {entry.title} | {one['player']} | {reward} | {regret} | {speed} | {entry.published} |")
    return "\n".join(lines) + "\n"


def _with_error(values: Any, digits: str) -> str:
    error = values.std(ddof=1) / np.sqrt(len(values)) if len(values) > 1 else 0.0
    return f"{values.mean():{digits}} ± {error:{digits}}"


def figure(found: list[dict[str, Any]]) -> bytes:
    """Regret so far, step by step, of the two tasks that are made up."""
    with house_style():
        sheet, axes = new_figure(1, 2, 9.0, 3.6)
        for ax, name in zip(np.ravel(axes), ("linear", "arms"), strict=True):
            own = [one for one in found if one["task"] == name and (name == "arms" or one["player"] != "uniform")]
            for one, style in zip(own, STYLES, strict=False):
                steps = np.linspace(1, one["steps"], len(one["curve"]))
                ax.plot(steps, one["curve"], label=one["player"], **without_markers(style))
            if name == "arms":
                ax.plot([0, own[0]["steps"]], [0, own[0]["fixed_arm"]], color="black", lw=0.8, label="best fixed arm")
            ax.set_title(ENTRIES[name].title)
            ax.set_xlabel("steps")
            ax.set_ylabel("regret")
            ax.legend()
        return render(sheet, "png")


def write() -> None:
    """Write both."""
    found = json.loads(STORED.read_text())
    write_atomically(FIGURE, figure(found))
    page = PAGE.read_text()
    before, rest = page.split(BEGIN)
    write_atomically(PAGE, (before + BEGIN + "\n" + table(found) + "\n" + END + rest.split(END)[1]).encode())
