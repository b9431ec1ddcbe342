"""The report on a model in one HTML file: what it is, what it has learned, and how well it predicts."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

from onepass._typing import FloatArray
from onepass.evaluation.metrics import LEVELS, REGISTRY, ClassCalibrationError, NumberCalibrationError, Reliability
from onepass.evaluation.prequential import BELIEVED, OURS, Trial
from onepass.reports.html import Picture, Report, Section, Table
from onepass.reports.plots import (
    BAND,
    BASELINE,
    BASELINE_2,
    EXACT,
    GREY,
    OTHER,
    PAPER,
    TRUTH,
    house_style,
    label_panels,
    new_figure,
    render,
    without_markers,
)
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
    sections = (_quality(trial), _calibration(trial), _weights(model), _certainty(trial), _columns(model))
    scored = [("Rows scored", f"{trial.rows:,}")]
    if model.estimator.outliers:
        scored.append(("Targets not believed", f"{trial.n_outliers:,}"))
    facts = (("Input", ", ".join(files)), *scored, *_facts(model))
    lead = (
        f"Every one of {trial.rows:,} rows was predicted by what had been learned from the rows before it, scored, and "
        "then learned."
        if trial.split is None
        else f"{trial.rows:,} rows, drawn at random, were predicted by a model that had learned all {model.n_rows:,} "
        "others."
    )
    return Report(f"How well {model.target.name} can be predicted", lead, sections, facts)


def model_report(model: TabularModel, name: str) -> Report:
    """Report on what a model is and what it has learned."""
    lead = f"{name} predicts {model.target.name}. It has learned {model.n_rows:,} rows."
    return Report(f"A model of {model.target.name}", lead, (_weights(model), _columns(model)), tuple(_facts(model)))


def _facts(model: TabularModel) -> list[tuple[str, str]]:
    from onepass import __version__

    chosen = [(name, words) for name, words in model.choices() if not name.startswith("column")]
    facts = [(name.capitalize(), words) for name, words in (*model.facts(), *chosen)]
    return [*facts, ("Version", f"onepass {__version__}")]


# How well it predicts.


def _quality(trial: Trial) -> Section:
    head, *rows = trial.table()
    names = ("log_loss", "accuracy") if trial.task == "classes" else ("rmse", "log_likelihood")
    main = names[0]
    scores = trial.scores()
    verdict = f"{trial.title(main)} {scores[OURS][main]:.4g} over all rows."
    drawn = _drawn(2, lambda axes: _draw_learning(axes, trial, names))
    larger = [metric.title for metric in REGISTRY[trial.task].values() if metric.larger_is_better]
    better = f"Lower is better for all but {' and '.join(larger)}."
    return Section(
        name="quality",
        title="How well it predicts",
        question=f"How close do predictions of {trial.model.target.name} come, and how fast do they improve?",
        setup=(),
        pictures=(Picture("learning", _learning_caption(trial, names), drawn),),
        tables=(Table(f"Scores of all rows, {_how(trial)}", head, tuple(rows)),),
        reading=f"{verdict} {better}{_comparison(trial, main)}{_left_out(trial)}{_ruined(trial)}",
        verdict=verdict,
    )


def _how(trial: Trial) -> str:
    return "each predicted before it was learned" if trial.split is None else "none of which was learned"


def _ruined(trial: Trial) -> str:
    words = trial.worst.words()
    return f" {words[:1].upper()}{words[1:]}." if words else ""


def _left_out(trial: Trial) -> str:
    return "".join(f" {name} could not go on and is left out: {why}." for name, why in trial.failed.items())


def _learning_caption(trial: Trial, names: Sequence[str]) -> str:
    shown = " and ".join(trial.title(name) for name in names)
    caption = f"{shown} along the stream: of the rows in each segment (thin), and of all rows so far (thick)."
    return caption + _off_scale(trial, names[0])


def _off_scale(trial: Trial, name: str) -> str:
    """Which baselines end where the figure does not show them, since fitting them in would flatten all others."""
    over_time = trial.ours.over_time
    low, high = _limits(over_time.segments()[name], over_time.so_far()[name])
    missing = []
    for baseline, scores in trial.baselines:
        last = float(scores.over_time.so_far()[name][-1])
        if not low < last < high:
            missing.append(f"{baseline.name} ({REGISTRY[trial.task][name].text(last)} at the end)")
    return f" Off the scale: {', '.join(missing)}." if missing else ""


def _draw_learning(axes: Any, trial: Trial, names: Sequence[str]) -> None:
    rows = trial.ours.over_time.rows
    segments, so_far = trial.ours.over_time.segments(), trial.ours.over_time.so_far()
    for panel, name in zip(axes, names, strict=True):
        panel.plot(rows, segments[name], color=GREY, linewidth=0.8, label="each segment")
        panel.plot(rows, so_far[name], **without_markers(PAPER), label="all rows so far")
        if name == names[0]:
            for (baseline, scores), style in zip(trial.baselines, _STYLES, strict=False):
                panel.plot(rows, scores.over_time.so_far()[name], label=baseline.name, **style)
        panel.set_ylim(*_limits(segments[name], so_far[name]))
        panel.set_title(trial.title(name), loc="left")
        _label_rows(panel)
    _legend_below(axes[0])


_STYLES = tuple(map(without_markers, (BASELINE, BASELINE_2, OTHER)))


def _limits(*curves: FloatArray) -> tuple[float, float]:
    """Limits of the axis for all but the first segments, whose large errors would flatten what follows."""
    low, high = np.quantile(np.concatenate([_late(curve) for curve in curves]), (0.005, 0.995))
    room = 0.15 * (high - low) or 0.1 * abs(high) or 1.0
    return low - room, high + room


def _late(curve: FloatArray) -> FloatArray:
    """A curve without its first segments."""
    return curve[len(curve) // 20 :]


def _legend_below(panel: Axes) -> None:
    """The legend of a panel below the whole figure, where it covers no curve."""
    handles, _ = panel.get_legend_handles_labels()
    assert isinstance(panel.figure, Figure)
    panel.figure.legend(handles=handles, loc="outside lower center", ncols=min(len(handles), 4))


def _comparison(trial: Trial, main: str) -> str:
    scores, title = trial.scores(), trial.title(main)
    scores.pop(BELIEVED, None)
    if len(scores) == 1:
        return ""
    best = min(scores, key=lambda name: scores[name][main])
    if best == OURS:
        return f" No baseline had a lower {title}."
    return f" {best} had a lower {title}: {scores[best][main]:.4g}."


# Calibration.


def _calibration(trial: Trial) -> Section:
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
        tables: tuple[Table, ...] = ()
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
        pictures=(Picture("reliability", caption, _drawn(2, lambda axes: _draw_reliability(axes, trial), height=3.6)),),
        tables=tables,
        reading=reading,
        verdict=f"Off by {error:.1f} percentage points on average.",
    )


def _coverage_table(trial: Trial) -> Table:
    """Targets inside their intervals, of all rows and of each quarter: a good average may hide bad times."""
    scores, quarters = trial.scores()[OURS], trial.ours.over_time.quarters()
    names = [name for name in scores if name.startswith("coverage")]
    rows = tuple(
        (f"{name[-2:]} % interval", *(f"{100.0 * share:.1f} %" for share in (scores[name], *quarters[name])))
        for name in names
    )
    n_parts = len(quarters[names[0]])
    parts = [f"{_ORDINALS[k]} quarter" if n_parts == 4 else f"part {k + 1}" for k in range(n_parts)]
    return Table("Targets inside, over time", ("", "all rows", *parts), rows)


_ORDINALS = ("first", "second", "third", "last")


def _reliability(trial: Trial) -> Reliability:
    metric = trial.ours.total["calibration_error"]
    assert isinstance(metric, ClassCalibrationError | NumberCalibrationError)
    return metric.reliability()


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
        beside.yaxis.set_major_formatter(FuncFormatter(lambda value, _: _thousands(value)))
        label_panels(axes, ["predicted and observed", "how often which probability"])
    else:
        diagonal.plot(found.predicted, found.observed, **PAPER)
        diagonal.set(xlabel="level of the interval", ylabel="share of targets inside")
        rows, curves = trial.ours.over_time.rows, trial.ours.over_time.segments()
        for level, style in zip(LEVELS, (PAPER, EXACT, BASELINE), strict=True):
            beside.axhline(level, color=GREY, linewidth=0.7, linestyle=":")
            beside.plot(rows, curves[f"coverage_{level * 100:.0f}"], **without_markers(style), label=f"{level:.0%}")
        beside.set(ylabel="share of targets inside", ylim=(0, 1.02))
        _label_rows(beside)
        _legend_below(beside)
        label_panels(axes, ["level and share inside", "along the stream"])
    diagonal.set(xlim=(0, 1), ylim=(0, 1))
    diagonal.set_aspect("equal")


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
        verdict=f"{clear} of {total} weights stand out from zero.",
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
        panel.set_yticks(places, [_short(weight.feature) for weight in weights])
        panel.set_ylim(-0.7, len(weights) - 0.3)
        panel.grid(False, axis="y")
        panel.set_xlabel(f"change of {unit}")

    return _drawn(1, draw, width=6.6, height=0.9 + 0.23 * max(len(weights), 3))


def _short(text: str) -> str:
    text = text.replace("$", r"\$")
    return text if len(text) <= 36 else text[:35] + "…"


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
        pictures=(Picture("certainty", caption, _drawn(1, lambda axes: _draw_certainty(axes[0], trial), width=6.6)),),
        tables=(),
        reading=reading,
    )


def _draw_certainty(panel: Axes, trial: Trial) -> None:
    rows, curves = trial.ours.over_time.rows, trial.ours.over_time.segments()
    panel.plot(rows, curves["std"], **without_markers(PAPER), label="predicted standard deviation")
    if "rmse" in curves:
        panel.plot(rows, curves["rmse"], **without_markers(EXACT), label="error made (RMSE)")
        panel.fill_between(rows, curves["std"], curves["rmse"], color=EXACT["color"], **BAND)
        panel.set_ylim(*_limits(curves["std"], curves["rmse"]))
        _legend_below(panel)
    else:
        panel.set_ylabel("standard deviation")
    panel.set_ylim(bottom=0.0)
    _label_rows(panel)


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
        verdict=f"{len(rows)} columns become {count} features.",
    )


# Drawing.


def _drawn(columns: int, draw: Callable[[Any], None], width: float | None = None, height: float = 3.0) -> bytes:
    with house_style():
        figure, axes = new_figure(1, columns, width or 4.3 * columns, height)
        draw(axes[0])
        return render(figure, "svg")


def _label_rows(panel: Axes) -> None:
    panel.set_xlabel("rows")
    panel.set_xlim(left=0.0)
    panel.xaxis.set_major_formatter(FuncFormatter(lambda value, _: _thousands(value)))


def _thousands(value: float) -> str:
    for factor, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= factor:
            return f"{value / factor:g} {letter}"
    return f"{value:g}"
