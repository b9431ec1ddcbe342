"""The calibration of a model: of all rows given 70 %, did 70 % come true? With the counts behind every share."""

from itertools import cycle
from typing import Any

import numpy as np
from matplotlib.ticker import FuncFormatter

from onepass.evaluation.metrics import ClassCalibrationError, NumberCalibrationError, Reliability, RowMean
from onepass.evaluation.prequential import OURS, Trial
from onepass.reports.html import Picture, Section, Table
from onepass.reports.plots import (
    BASELINE,
    EXACT,
    GREY,
    PAPER,
    TRUTH,
    drawn,
    label_panels,
    label_rows,
    legend_below,
    thousands,
    without_markers,
)

__all__ = ["calibration"]


def calibration(trial: Trial) -> Section:
    """Whether probabilities come true, or intervals hold, as often as they should."""
    scores = trial.scores()[OURS]
    error = 100.0 * scores["calibration_error"]
    if trial.task == "classes":
        labels = trial.model.labels
        what = f"the probability of {labels[1]}" if len(labels) == 2 else "the probability of the most probable class"
        caption = (
            f"(a) Rows by {what}: how often it came true, with bars of two standard errors; on the dotted line "
            "predicted and observed agree. (b) Number of rows by predicted probability."
        )
        question = "Of all rows given 70 %, did 70 % come true?"
        tables: tuple[Table, ...] = (_bins_table(trial),)
        reading = f"Predicted and observed differ by {error:.1f} percentage points on average over all rows."
    else:
        caption = (
            "(a) Share of targets inside the central interval of each level; on the dotted line intervals are as wide "
            "as they should be. (b) The same for three levels along the stream."
        )
        question = "Do 95 of 100 targets lie inside the 95 % interval?"
        tables = (_coverage_table(trial),)
        reading = f"Level and share differ by {error:.1f} percentage points on average over all levels."
        if trial.task == "counts":
            reading += (
                " An interval between whole counts holds more than its level, as the table shows; for curve and "
                "average a count lies in the middle of its own step."
            )
    return Section(
        name="calibration",
        title="Calibration",
        question=question,
        setup=(),
        pictures=(Picture("reliability", caption, drawn(2, lambda axes: _draw_reliability(axes, trial), height=3.6)),),
        tables=tables,
        reading=reading,
        answer=f"Off by {error:.1f} percentage points on average.",
    )


def _coverage_table(trial: Trial) -> Table:
    """Targets inside their intervals, of all rows and of each quarter: a good average may hide bad times."""
    scores, quarters = trial.scores()[OURS], trial.ours.quarters()
    metrics = _with_goal(trial)
    rows = tuple((metric.title, *map(metric.text, (scores[metric.name], *quarters[metric.name]))) for metric in metrics)
    n_parts = len(quarters[metrics[0].name])
    parts = [f"{_ORDINALS[k]} quarter" if n_parts == 4 else f"part {k + 1}" for k in range(n_parts)]
    counts = tuple(
        (f" {metric.title}, rows", f"{round(scores[metric.name] * trial.rows):,} of {trial.rows:,}", *[""] * n_parts)
        for metric in metrics
    )
    both = tuple(row for pair in zip(rows, counts, strict=True) for row in pair)
    return Table("Targets inside, over time", ("", "all rows", *parts), both)


def _bins_table(trial: Trial) -> Table:
    """Rows by predicted probability, how many of them came true, and how many should have."""
    found = _reliability(trial)
    rows = tuple(
        (f"{100.0 * p:.1f} %", f"{100.0 * o:.1f} %", f"{round(o * n):,}", f"{p * n:,.1f}", f"{int(n):,}")
        for p, o, n in zip(found.predicted, found.observed, found.rows, strict=True)
        if n
    )
    return Table(
        "Predicted and observed, with counts", ("predicted", "observed", "came true", "expected", "rows"), rows
    )


def _with_goal(trial: Trial) -> list[type[RowMean[Any]]]:
    """Metrics whose best value is known, such as the share of targets inside an interval."""
    return [metric for metric in trial.ours.row_means if metric.goal is not None]


_ORDINALS = ("first", "second", "third", "last")


def _reliability(trial: Trial) -> Reliability:
    if trial.task == "classes":
        return trial.ours[ClassCalibrationError].reliability()
    return trial.ours[NumberCalibrationError].reliability()


def _draw_reliability(axes: Any, trial: Trial) -> None:
    found = _reliability(trial)
    diagonal, beside = axes
    diagonal.plot([0, 1], [0, 1], **TRUTH)
    if trial.task == "classes":
        half_width = 2.0 * np.sqrt(np.maximum(found.observed * (1.0 - found.observed), 1e-4) / found.rows)
        diagonal.errorbar(found.predicted, found.observed, half_width, fmt="none", ecolor=GREY, elinewidth=0.9)
        diagonal.plot(found.predicted, found.observed, **PAPER)
        diagonal.set(xlabel="predicted probability", ylabel="observed frequency")
        beside.bar(found.predicted, found.rows, width=0.035, color=PAPER["color"])
        beside.set(xlabel="predicted probability", ylabel="rows", xlim=(0, 1))
        beside.yaxis.set_major_formatter(FuncFormatter(lambda value, _: thousands(value)))
        label_panels(axes, ["predicted and observed", "how often which probability"])
    else:
        diagonal.plot(found.predicted, found.observed, **PAPER)
        diagonal.set(xlabel="level of the interval", ylabel="share of targets inside")
        rows, curves = trial.ours.rows, trial.ours.segments()
        for metric, style in zip(_with_goal(trial), cycle((PAPER, EXACT, BASELINE)), strict=False):
            beside.axhline(metric.goal, color=GREY, linewidth=0.7, linestyle=":")
            beside.plot(rows, curves[metric.name], **without_markers(style), label=metric.title)
        beside.set(ylabel="share of targets inside", ylim=(0, 1.02))
        label_rows(beside)
        legend_below(beside)
        label_panels(axes, ["level and share inside", "along the stream"])
    diagonal.set(xlim=(0, 1), ylim=(0, 1))
    diagonal.set_aspect("equal")
