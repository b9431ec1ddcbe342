"""The page and its chart, from the stored results alone."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from statistics import geometric_mean, mean, median
from typing import Any

from benchmarks.future.measure import LEVEL, MOST, InTime, Outcome
from onepass.files.atomic import write_atomically
from onepass.reports.plots import EXACT, GREY, house_style, new_figure, render

__all__ = ["draw", "line", "text", "write"]

DOCS = Path(__file__).parents[2] / "docs"
HALVES = {"report": "kept for reporting", "development": "used to choose constants"}


def write(results: dict[str, Any]) -> None:
    """Write both."""
    if results["tables"]:
        write_atomically(DOCS / "evidence" / "future.md", text(results).encode())
        write_atomically(DOCS / "images" / "future.png", draw(results["tables"]))


def line(one: Outcome) -> str:
    """The outcome of a table, to be printed while others are measured."""
    shares = (one.coverage, one.random_coverage)
    cells = (one.rows, *shares, one.loss, one.ridge, one.period, one.score, one.best_candidate)
    return f"{one.name:>20} " + " ".join(f"{_number(value):>9}" for value in cells)


def text(results: dict[str, Any]) -> str:
    """The whole page."""
    found: list[Outcome] = results["tables"]
    return f"""\
# Predicting the rest of a file

{_answer(found)}

![Coverage of the last fifth of every table, in its own order and drawn at random](../images/future.png)

{_shares(found)}

{_in_time(found, results["in_time"])}
{_times(results.get("times"))}Written by `python -m benchmarks.future --data FOLDER`; [evidence](index.md) has the
date and the machine. [Models](../reference/command-line/models.md) says how `fit` tests itself forward.

## What was measured

Every table keeps the order of its file, of which the first {MOST:,} rows are used. A model is fitted on the first 80 %
of them, as `onepass fit` does it, and predicts the others without learning them. Some tables come with scikit-learn,
River, statsmodels and Vega, others are data sets of UCI, streams and series of the M4 competition; eighteen are
generated with relations that stay, turn, jump, grow or get louder. The constants of forward tests were chosen on other
tables, made by formula, or on those of one half; which half a table belongs to depends on its name alone.

- **future** is the share of the last fifth inside the 95 % intervals, **at random** that of a fifth drawn at random
  after a fit on the others.
- **error** is the root mean squared error on the last fifth, for classes the log-loss; **ridge** is ridge regression on
  the same features, tuned by cross-validation, and **last period** the value one period ago, with the period that fits
  the rows learned best.
- **log score** is the mean log density of the last fifth, with targets in standard deviations; **best candidate** is
  the highest, in hindsight, of the models that `fit` chooses among (a perceptron, one that drifts, a network learned
  in order or shuffled), each with its own intervals and fitted on the same rows.

{_tables(found)}{_tables_in_time(found, results["in_time"])}"""


def _answer(found: Sequence[Outcome]) -> str:
    numbers = [one for one in found if one.coverage is not None]
    future, random = (mean(getattr(one, name) for one in numbers) for name in ("holds", "holds_at_random"))
    return (
        "Fitted on the first 80 % of a file, the 95 % intervals of `onepass fit` contain 90 to 98 % of the rest on "
        f"{100 * future:.0f} % of {len(numbers)} tables in the order of their files, and on {100 * random:.0f} % of "
        "them after random splits."
    )


def _shares(found: Sequence[Outcome]) -> str:
    """The shares of tables, for each half."""
    titles = (
        "tables",
        "number",
        "exact intervals would be within 90-98 %",
        "future within 90-98 %",
        "at random within 90-98 %",
        f"error at most {100 * LEVEL:.0f} % above ridge and last period",
        f"log score within {LEVEL:g} of the best candidate",
    )
    head = f"| {' | '.join(titles)} |"
    lines = [head, "|---|---:|---:|---:|---:|---:|---:|"]
    for half, name in HALVES.items():
        own = [one for one in found if one.half == half]
        numbers = [one for one in own if one.coverage is not None]
        if numbers:
            shares = [mean(getattr(one, what) for one in numbers) for what in ("holds", "holds_at_random", "is_level")]
            cells = [
                *(f"{100 * share:.0f} %" for share in (mean(one.holds_if_exact for one in numbers), *shares)),
                f"{100 * mean(one.chose_well for one in own):.0f} %",
            ]
            lines.append(f"| {name} | {len(own)} | " + " | ".join(cells) + " |")
    classes = sum(one.coverage is None for one in found)
    note = (
        f"{classes} of the {len(found)} tables have classes and count in the last column only. Many tables leave few "
        "rows to test, so intervals with exactly 95 % coverage would not be within 90-98 % on all of them, either."
    )
    return "\n".join([*lines, "", note])


def _in_time(found: Sequence[Outcome], in_time: Sequence[InTime]) -> str:
    """What the time of the rows changes, for each half."""
    without = {one.name: one for one in found}
    lines = []
    for half, name in HALVES.items():
        pairs = [(one, without[one.name]) for one in in_time if one.name in without and without[one.name].half == half]
        if not pairs:
            continue
        inside = [[_within(one.coverage) for one in column] for column in zip(*pairs, strict=True)]
        low = [mean((one.coverage or 0.0) >= 0.9 for one in column) for column in zip(*pairs, strict=True)]
        gains = [own.score - other.score for own, other in pairs]
        beaten = [[_is_level(error, other) for error in (own.loss, other.loss)] for own, other in pairs]
        cells = [
            f"{100 * mean(inside[1]):.0f} % / {100 * mean(inside[0]):.0f} %",
            f"{100 * low[1]:.0f} % / {100 * low[0]:.0f} %",
            f"{100 * mean(one[1] for one in beaten):.0f} % / {100 * mean(one[0] for one in beaten):.0f} %",
            f"{geometric_mean(own.loss / other.loss for own, other in pairs):.2f}",
            f"{median(gains):+.2f}",
        ]
        lines.append(f"| {name} | {len(pairs)} | " + " | ".join(cells) + " |")
    if not lines:
        return ""
    titles = (
        "without / with the time",
        "number",
        "within 90-98 %",
        "at least 90 %",
        f"error at most {100 * LEVEL:.0f} % above ridge and last period",
        "error, as a multiple",
        "median gain in log score",
    )
    return (
        "Tables whose rows have a time were also fitted with it (`--time COLUMN`):\n\n"
        + "\n".join([f"| {' | '.join(titles)} |", "|---|---:|---:|---:|---:|---:|---:|", *lines])
        + "\n"
    )


def _within(coverage: float | None) -> bool:
    return coverage is not None and 0.9 <= coverage <= 0.98


def _is_level(error: float, other: Outcome) -> bool:
    return replace(other, loss=error).is_level


def _tables_in_time(found: Sequence[Outcome], in_time: Sequence[InTime]) -> str:
    """Every table that was fitted with its time, next to how it was without."""
    without = {one.name: one for one in found}
    pairs = [(one, without[one.name]) for one in sorted(in_time, key=lambda one: one.name) if one.name in without]
    if not pairs:
        return ""
    lines = [
        "",
        "With the time of the rows:",
        "",
        "| table | time | future, without | with | error, without | with | log score, without | with | chosen |",
        "|---|---|---:|---:|---:|---:|---:|---:|---|",
    ]
    for own, other in pairs:
        cells = [_share(other.coverage), _share(own.coverage)]
        cells += map(_number, (other.loss, own.loss, other.score, own.score))
        lines.append(f"| {own.name} | {own.time} | " + " | ".join(cells) + f" | {own.chosen or 'no tests'} |")
    return "\n".join(lines) + "\n"


def _times(times: dict[str, float] | None) -> str:
    if times is None:
        return ""
    ratio = times["with"] / times["without"]
    return f"A fit of 10,000 rows with 20 columns takes {ratio:.2g} times as long with forward tests as without.\n\n"


def _tables(found: Sequence[Outcome]) -> str:
    head = "| table | rows | future | at random | error | ridge | last period | log score | best candidate |"
    lines = [head, "|---|---:|---:|---:|---:|---:|---:|---:|---:|"]
    for one in sorted(found, key=lambda one: (one.coverage is None, one.name)):
        shares = [_share(one.coverage), _share(one.random_coverage)]
        others = map(_number, (one.loss, one.ridge, one.period, one.score, one.best_candidate))
        lines.append(f"| {one.name} | {one.rows:,} | " + " | ".join((*shares, *others)) + " |")
    return "\n".join(lines) + "\n"


def _share(value: float | None) -> str:
    return "-" if value is None else f"{100.0 * value:.1f} %"


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.4g}"


def draw(found: Sequence[Outcome]) -> bytes:
    """The coverage of every table, sorted."""
    numbers = [one for one in found if one.coverage is not None and one.random_coverage is not None]
    with house_style():
        figure, axes = new_figure(1, 1, 7.0, 3.2)
        panel = axes[0][0]
        panel.axhspan(90.0, 98.0, color="#e8eef7", zorder=0)
        for name, title, look in (
            ("random_coverage", "a fifth drawn at random", {"color": GREY, "marker": "o"}),
            ("coverage", "the last fifth of the file", EXACT),
        ):
            values = sorted(100.0 * (getattr(one, name) or 0.0) for one in numbers)
            panel.plot(values, label=title, **{**look, "linestyle": "", "markersize": 4.0})
        panel.axhline(95.0, color=GREY, linewidth=0.8)
        panel.set(ylim=(-2.0, 102.0), ylabel="inside the 95 % intervals, %", xlabel="tables, sorted")
        panel.legend(loc="lower right")
        return render(figure, "png")
