"""The report on a model in one HTML file: what it is, what it has learned, and how well it predicts."""

from collections.abc import Iterator, Sequence
from itertools import cycle
from os.path import basename
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from onepass._typing import FloatArray
from onepass.evaluation.held_out import LastRows
from onepass.evaluation.metrics import (
    REGISTRY,
    Metric,
)
from onepass.evaluation.prequential import BELIEVED, OURS, Trial
from onepass.reports.calibration import calibration
from onepass.reports.evidence import importance, predictions, reading, worst_rows
from onepass.reports.html import Picture, Report, Section, Table
from onepass.reports.plots import (
    BAND,
    BASELINE,
    BASELINE_2,
    EXACT,
    GREY,
    OTHER,
    PAPER,
    drawn,
    label_rows,
    legend_below,
    short,
    without_markers,
)
from onepass.reports.verdict import claims, summary
from onepass.tables.columns.category import Hashed
from onepass.tables.model import TabularModel
from onepass.tables.targets import LogTarget
from onepass.tables.weights import Weight, unit_of_weights

__all__ = ["evaluation_report", "model_report"]

_LARGEST = 20  # weights per figure
_MOST_CLASSES = 6  # that get a figure of their own


def evaluation_report(trial: Trial, files: Sequence[str]) -> Report:
    """Report on a test-then-train evaluation."""
    model = trial.model
    sections = (
        _quality(trial),
        predictions(trial),
        calibration(trial),
        _certainty(trial),
        *importance(trial),
        _weights(model),
        worst_rows(trial),
        _columns(model),
        reading(trial, files),
    )
    scored = [("Rows scored", f"{trial.rows:,}")]
    if model.estimator.outliers:
        scored.append(("Targets not trusted", f"{trial.n_outliers:,}"))
    facts = (("Input", ", ".join(map(basename, files))), *scored, *_facts(model))
    lead = (
        f"Every one of {trial.rows:,} rows was predicted by what had been learned from the rows before it, scored, and "
        "then learned."
        if trial.split is None
        else _held_out(trial)
    )
    title = f"How well {model.target.name} can be predicted"
    return Report(title, f"{summary(trial)} {lead}", sections, facts, claims(trial), "Verdict")


def _held_out(trial: Trial) -> str:
    """Which rows were predicted, by a model of which others."""
    learned = trial.model.n_rows
    if isinstance(trial.split, LastRows):
        return f"The last {trial.rows:,} rows were predicted by a model that had learned the {learned:,} before them."
    return f"{trial.rows:,} rows, drawn at random, were predicted by a model that had learned the {learned:,} others."


def model_report(model: TabularModel, name: str) -> Report:
    """Report on what a model is and what it has learned."""
    lead = f"{basename(name)} predicts {model.target.name}. It has learned {model.n_rows:,} rows."
    return Report(f"A model of {model.target.name}", lead, (_weights(model), _columns(model)), tuple(_facts(model)))


def _facts(model: TabularModel) -> list[tuple[str, str]]:
    from onepass import __version__

    chosen = [(name, words) for name, words in model.choices() if not name.startswith("column")]
    facts = [(name.capitalize(), words) for name, words in (*model.facts(), *chosen)]
    return [*facts, ("Version", f"onepass {__version__}")]


# How well it predicts.


def _quality(trial: Trial) -> Section:
    head, *rows = trial.table()
    names = [metric.name for metric in trial.metrics]
    main = trial.metrics[0]
    verdict = f"{main.title} {main.text(trial.scores()[OURS][main.name])} over all rows."
    learning = drawn(len(names), lambda axes: _draw_learning(axes, trial, names))
    return Section(
        name="quality",
        title="How well it predicts",
        question=f"How close do predictions of {trial.model.target.name} come, and how fast do they improve?",
        setup=(),
        pictures=(Picture("learning", _learning_caption(trial, names), learning),),
        tables=(Table(f"Scores of all rows, {_how(trial)}", head, tuple(rows)),),
        reading=f"{verdict} {_better(trial)}{_comparison(trial, main)}{_left_out(trial)}{_ruined(trial)}",
        answer=verdict,
    )


def _better(trial: Trial) -> str:
    """Which values of which metrics are good."""
    metrics = [REGISTRY[trial.task][name] for name in trial.scores()[OURS]]
    larger = [metric.title for metric in metrics if metric.goal is None and metric.larger_is_better]
    goals = [f"{metric.title} should be {metric.text(metric.goal)}" for metric in metrics if metric.goal is not None]
    words = f"Lower is better for all but {' and '.join(larger)}" if larger else "Lower is better"
    return f"{'; '.join([words, *goals])}."


def _how(trial: Trial) -> str:
    return "each predicted before it was learned" if trial.split is None else "none of which was learned"


def _ruined(trial: Trial) -> str:
    words = trial.worst.words(with_folder=False)
    return f" {words[:1].upper()}{words[1:]}." if words else ""


def _left_out(trial: Trial) -> str:
    return "".join(f" {name} could not go on and is left out: {why}." for name, why in trial.failed.items())


def _learning_caption(trial: Trial, names: Sequence[str]) -> str:
    *others, last = (trial.title(name) for name in names)
    shown = f"{', '.join(others)} and {last}" if others else last
    caption = f"{shown} along the stream: of the rows in each segment (thin), and of all rows so far (thick)."
    return caption + _off_scale(trial, names[0])


def _off_scale(trial: Trial, name: str) -> str:
    """Which baselines end where the figure does not show them, since fitting them in would flatten all others."""
    low, high = _limits(trial.ours.segments()[name], trial.ours.so_far()[name])
    missing = []
    for baseline, scores in trial.compared.items():
        last = float(scores.so_far()[name][-1])
        if not low < last < high:
            missing.append(f"{baseline} ({REGISTRY[trial.task][name].text(last)} at the end)")
    return f" Off the scale: {', '.join(missing)}." if missing else ""


def _draw_learning(axes: Any, trial: Trial, names: Sequence[str]) -> None:
    rows = trial.ours.rows
    segments, so_far = trial.ours.segments(), trial.ours.so_far()
    for panel, name in zip(axes, names, strict=True):
        panel.plot(rows, segments[name], color=GREY, linewidth=0.8, label="each segment")
        panel.plot(rows, so_far[name], **without_markers(PAPER), label="all rows so far")
        if name == names[0]:
            for (baseline, scores), style in zip(trial.compared.items(), cycle(_STYLES), strict=False):
                panel.plot(rows, scores.so_far()[name], label=baseline, **style)
        panel.set_ylim(*_limits(segments[name], so_far[name]))
        panel.set_title(trial.title(name), loc="left")
        label_rows(panel)
    legend_below(axes[0])


_STYLES = tuple(map(without_markers, (BASELINE, BASELINE_2, OTHER)))


def _limits(*curves: FloatArray) -> tuple[float, float]:
    """Limits of the axis for all but the first segments, whose large errors would flatten what follows."""
    low, high = np.quantile(np.concatenate([_late(curve) for curve in curves]), (0.005, 0.995))
    room = 0.15 * (high - low) or 0.1 * abs(high) or 1.0
    return low - room, high + room


def _late(curve: FloatArray) -> FloatArray:
    """A curve without its first segments."""
    return curve[len(curve) // 20 :]


def _comparison(trial: Trial, main: type[Metric[Any]]) -> str:
    scores, name = trial.scores(), main.name
    scores.pop(BELIEVED, None)
    if len(scores) == 1:
        return ""
    best = (max if main.larger_is_better else min)(scores, key=lambda model: scores[model][name])
    better = f"{'higher' if main.larger_is_better else 'lower'} {main.title}"
    if best == OURS:
        return f" No baseline had a {better}."
    return f" {best} had a {better}: {main.text(scores[best][name])}."


# What it has learned.


def _weights(model: TabularModel) -> Section:
    found = model.weights()
    shown = dict(list(found.items())[:_MOST_CLASSES])
    unit = unit_of_weights(model)
    clear = sum(abs(weight.mean) > 2.0 * weight.std for weights in found.values() for weight in weights)
    total = sum(map(len, found.values()))
    pictures = tuple(
        Picture(
            f"weights-{i}",
            _weights_caption(key, model),
            _draw_weights([one for one in weights if one.mean][:_LARGEST], unit),
            is_wide=False,
        )
        for i, (key, weights) in enumerate(shown.items())
    )
    return Section(
        name="weights",
        title="What it has learned",
        question=f"Which columns say something about {model.target.name}, and how sure is that?",
        setup=(
            f"A weight is the change of {unit} that one standard deviation of a number brings about, or a category in "
            "place of an average row's."
            + (" A change of a logarithm by 0.01 is about 1 %." if isinstance(model.target, LogTarget) else "")
            + (" A word has its weight in a text of average length." if model.encoding.texts else "")
            + (" In a network it holds for a row in the middle of the first rows." if model.is_network else ""),
            *_buckets(model),
        ),
        pictures=pictures,
        tables=(),
        reading=f"{clear} of {total} weights are more than two of their standard deviations away from zero.",
        answer=f"{clear} of {total} weights stand out from zero.",
    )


def _buckets(model: TabularModel) -> Iterator[str]:
    """What the features of a column with too many categories are."""
    for column in model.encoding.columns:
        if isinstance(column, Hashed):
            yield (
                f"{column.name} has too many categories for a weight each: a hash puts each of them into one of "
                f"{column.buckets} buckets, `{column.features[0]}` to `{column.features[-1]}`, and the categories of a "
                "bucket share its weight."
            )


def _weights_caption(key: str, model: TabularModel) -> str:
    of = f" of {key}" if model.labels else ""
    return f"The largest weights{of}, with bars of two standard deviations to either side."


def _draw_weights(weights: Sequence[Weight], unit: str) -> bytes:
    def draw(axes: Any) -> None:
        panel = axes[0]
        places = np.arange(len(weights))[::-1]
        means, stds = (np.array([getattr(weight, name) for weight in weights]) for name in ("mean", "std"))
        panel.axvline(0.0, color=GREY, linewidth=0.8)
        panel.errorbar(means, places, xerr=2.0 * stds, fmt="o", color=PAPER["color"], ecolor=GREY, elinewidth=1.1)
        panel.set_yticks(places, [short(weight.feature) for weight in weights])
        panel.set_ylim(-0.7, len(weights) - 0.3)
        panel.grid(False, axis="y")
        panel.set_xlabel(f"change of {unit}")

    return drawn(1, draw, width=5.2, height=0.9 + 0.23 * max(len(weights), 3))


# Uncertainty over time.


def _certainty(trial: Trial) -> Section:
    if trial.task == "classes":
        caption = "Standard deviation of the predicted probability, along the stream."
        reading = "It falls as rows are learned; it rises with rows unlike those before, and with forgetting."
    else:
        caption = "Predicted standard deviation of the targets, and the error that was made (RMSE), along the stream."
        reading = "Where the two differ, the model is over- or underconfident; where both rise, the data have changed."
    return Section(
        name="certainty",
        title="Uncertainty over time",
        question="How sure is the model, and does it become surer as it learns?",
        setup=(),
        pictures=(
            Picture(
                "certainty", caption, drawn(1, lambda axes: _draw_certainty(axes[0], trial), width=5.2), is_wide=False
            ),
        ),
        tables=(),
        reading=reading,
    )


def _draw_certainty(panel: Axes, trial: Trial) -> None:
    rows, curves = trial.ours.rows, trial.ours.segments()
    panel.plot(rows, curves["std"], **without_markers(PAPER), label="predicted standard deviation")
    if "rmse" in curves:
        panel.plot(rows, curves["rmse"], **without_markers(EXACT), label="error made (RMSE)")
        panel.fill_between(rows, curves["std"], curves["rmse"], color=EXACT["color"], **BAND)
        panel.set_ylim(*_limits(curves["std"], curves["rmse"]))
        legend_below(panel)
    else:
        panel.set_ylabel("standard deviation")
    panel.set_ylim(bottom=0.0)
    label_rows(panel)


# What the columns are.


def _columns(model: TabularModel) -> Section:
    rows = tuple((column.name, column.words()) for column in model.encoding.columns)
    ignored = tuple((name, f"ignored: {why}") for name, why in model.encoding.ignored.items())
    count = len(model.encoding.features)
    return Section(
        name="columns",
        title="What is made of the columns",
        question="What does the model see of a row?",
        setup=(),
        pictures=(),
        tables=(Table("Columns of the input", ("", "encoding"), rows + ignored),),
        reading=f"{len(rows)} columns become {count} features, in the same way for every row that will ever come.",
        answer=f"{len(rows)} columns become {count} features.",
    )


# Drawing.
