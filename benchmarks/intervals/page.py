"""The page and its chart, from the stored results alone."""

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from statistics import mean
from typing import Any

import numpy as np

from benchmarks.intervals import peers
from benchmarks.intervals.measure import ADAPTIVE, MODELS, PLAIN, score
from benchmarks.intervals.scores import LEVELS, WINDOW
from benchmarks.intervals.streams import ROWS, WARM_UP
from benchmarks.trust import explanation
from onepass.files.atomic import write_atomically
from onepass.reports.plots import BASELINE, BASELINE_2, EXACT, GREY, OTHER, PAPER, house_style, new_figure, render

__all__ = ["draw", "text", "write"]

DOCS = Path(__file__).parents[2] / "docs"
CLOSE, LEAST, MOST = 0.02, 0.93, 0.97
SHOWN = (ADAPTIVE, PLAIN, *peers.METHODS)
INFORMATIVE = tuple(f"{name} {ADAPTIVE}" for name in MODELS if name)
NAMES = {ADAPTIVE: "onepass, adaptive", PLAIN: "onepass, plain"} | {
    f"{name} {ADAPTIVE}": f"one {name}, adaptive" for name in MODELS if name
}
LOOKS = {
    ADAPTIVE: EXACT,
    PLAIN: {"color": GREY, "marker": "o"},
    peers.METHODS[0]: PAPER,
    peers.METHODS[1]: BASELINE,
    peers.METHODS[2]: BASELINE_2,
    peers.METHODS[3]: OTHER,
}

Streams = dict[str, dict[str, dict[str, Any]]]
"""What was measured of each method, by stream."""


def write(results: dict[str, Any]) -> None:
    """Write both."""
    write_atomically(DOCS / "evidence" / "intervals.md", text(results).encode())
    write_atomically(DOCS / "images" / "intervals.png", draw(_methods(results)))


def text(results: dict[str, Any]) -> str:
    """The whole page."""
    found = _methods(results)
    return f"""\
# Intervals that adapt

{_answer(found)}

![Coverage in windows, and interval scores, of every method on every stream](../images/intervals.png)

{_width(found)}

{_levels(found)} {_cost(results["cost"])}

Written by `python -m benchmarks.intervals --data FOLDER`, which takes about ten minutes of one core;
[evidence](index.md) has the date and the machine. How the intervals are made, and when to ask for them, is in
[check calibration](../how-to/calibration.md).

## What was compared

Ten recorded streams and five made by formula, with at most {ROWS:,} rows each, are the same for every method. Each row
is predicted before it is learned. Inputs and targets are standardised by the first {WARM_UP} rows, which are learned
but not scored.

- **onepass, adaptive** is one model for all streams, three networks of 20 hidden units that find out how fast the
  stream drifts: `AdaptiveIntervals(BayesianCommittee(d, (20,), members=3, drift="auto"))`, or as an estimator
  `BayesianMLPRegressor((20,), members=3, drift="auto", intervals="adaptive")`. **onepass, plain** is the same model
  with its own intervals.
- **One network** and **one perceptron**, which also find out the drift, are listed for information and not counted
  above.
- The model, and the constants that say how fast limits move, were chosen on 26 and 66 other streams, most of them
  synthetic.

{explanation(peers.__doc__)}

The streams:

{_about(results)}

## Coverage of the 95 % interval

The smallest and the largest share of targets inside, in per cent, of all windows of {WINDOW} successive rows. Streams
with fewer scored rows have one window.

{_table(found, (*SHOWN, *INFORMATIVE), _windows, None)}

## Interval scores

The interval score of the 95 % interval (Winkler 1972), in standard deviations of the first {WARM_UP} targets: the mean
of the width and, for each target outside, {2.0 / 0.05:.0f} times its distance from the interval. Lower is better; bold
is best or within {100 * CLOSE:.0f} %, the last two columns aside.

{_table(found, (*SHOWN, *INFORMATIVE), lambda one: f"{score(one):.3f}", _winners)}

## Widths

Mean widths of the 95 % intervals, in the same units. Narrow intervals are better only where they cover.

{_table(found, (*SHOWN, *INFORMATIVE), lambda one: f"{one['width']:.3f}", None)}

## Levels

Targets inside the intervals of onepass, adaptive, in per cent.

{_level_table(found)}

How often limits of successive levels cross on all streams, counted per row and side, and the largest distance between
a level and the share inside, in points:

{_crossing_table(found)}

## Settings of the others

The settings with the best interval score on each stream, found in hindsight:

{_table(found, peers.METHODS, lambda one: str(one["settings"]), None)}
"""


def _methods(results: dict[str, Any]) -> Streams:
    return {name: stream["methods"] for name, stream in results["streams"].items()}


def _name(method: str) -> str:
    return NAMES.get(method, method)


# Sentences.


def _answer(found: Streams) -> str:
    """What was asked, what came out, and who is better where."""
    least, most = _extremes(found, ADAPTIVE)
    own_least, own_most = _extremes(found, PLAIN)
    good = [name for name, methods in found.items() if ADAPTIVE in _close(methods, _rivals(methods))]
    lost = {name: methods for name, methods in found.items() if name not in good}
    return (
        f"Does a 95 % interval hold in every stretch of a stream, whatever the stream does? On {len(found)} streams, "
        f"adaptive intervals of one model with the same settings contain {least} to {most} % of the targets in every "
        f"window of {WINDOW} rows, plain intervals of the same model {own_least} to {own_most} %. By the interval "
        f"score they are best or within {100 * CLOSE:.0f} % of the best on {len(good)} of the streams, compared with "
        f"other methods whose settings were chosen in hindsight; others are better on "
        f"{_listed(map(_loss, lost, lost.values())) or 'none'}.{_outside(found)}"
    )


def _rivals(methods: dict[str, Any]) -> list[str]:
    return [ADAPTIVE, *(method for method in peers.METHODS if method in methods)]


def _loss(name: str, methods: dict[str, Any]) -> str:
    best = min(_rivals(methods), key=lambda method: score(methods[method]))
    return f"{name} ({best}: {score(methods[best]):.3f}, adaptive {score(methods[ADAPTIVE]):.3f})"


def _outside(found: Streams) -> str:
    names = [
        f"{name} ({_windows(methods[ADAPTIVE])} %)" for name, methods in found.items() if not _holds(methods[ADAPTIVE])
    ]
    return f" Windows outside {_percent(LEAST)} to {_percent(MOST)} % occur on {_listed(names)}." if names else ""


def _width(found: Streams) -> str:
    """What adaptive intervals cost where the plain ones hold."""
    ratios = {
        name: methods[ADAPTIVE]["width"] / methods[PLAIN]["width"]
        for name, methods in found.items()
        if _holds(methods[PLAIN])
    }
    better = [name for name, methods in found.items() if score(methods[PLAIN]) < (1 - CLOSE) * score(methods[ADAPTIVE])]
    scores = f"Plain intervals score better by more than {100 * CLOSE:.0f} % on {_listed(better) or 'none'}."
    if not ratios:
        return f"Plain intervals hold in every window on no stream. {scores}"
    each = _listed(f"{name} {_growth(ratio)}" for name, ratio in ratios.items())
    return (
        f"Where plain intervals hold, adapting costs width. On the {len(ratios)} streams whose plain windows are all "
        f"within {_percent(LEAST)} to {_percent(MOST)} %, adaptive intervals are wider by "
        f"{_growth(mean(ratios.values()))} on average: {each}. {scores}"
    )


def _growth(ratio: float) -> str:
    return f"{100 * (ratio - 1):z.1f} %"


def _levels(found: Streams) -> str:
    worst = max(_deviation(methods[ADAPTIVE]) for methods in found.values())
    crossings = _crossings(found, ADAPTIVE)
    return (
        f"At the levels {_listed(f'{100 * level:.0f}' for level in LEVELS)} % the share of targets inside "
        f"differs from the level by at most {100 * worst:.1f} points, and limits of different levels "
        f"{f'cross {crossings:,} times' if crossings else 'never cross'}."
    )


def _cost(cost: dict[str, float]) -> str:
    if not cost:
        return ""
    return (
        f"Tracking takes {cost['many rows']:.2f} µs per row and level for rows that come in one call, and "
        f"{cost['one row']:.2f} µs for one row per call. To a perceptron that predicts and learns one row per call, "
        f"`AdaptiveIntervals` adds {cost['added to a model']:.2f} µs per level, which includes finding out where the "
        f"target lies in its predictive distribution."
    )


def _about(results: dict[str, Any]) -> str:
    lines = ["| stream | from | rows | inputs |", "|---|---|---:|---:|"]
    for name, stream in results["streams"].items():
        lines.append(f"| {name} | {stream['origin']} | {stream['rows']:,} | {stream['inputs']} |")
    return "\n".join(lines)


# Tables.


def _table(
    found: Streams,
    methods: Sequence[str],
    cell: Callable[[dict[str, Any]], str],
    bold: Callable[[dict[str, Any]], set[str]] | None,
) -> str:
    shown = [method for method in methods if any(method in measured for measured in found.values())]
    align = "---|" if methods is peers.METHODS else "---:|"
    lines = ["| stream | " + " | ".join(map(_name, shown)) + " |", "|---|" + align * len(shown)]
    for name, measured in found.items():
        good = bold(measured) if bold else set()
        cells = [cell(measured[method]) if method in measured else "" for method in shown]
        marked = [f"**{text}**" if method in good else text for method, text in zip(shown, cells, strict=True)]
        lines.append(f"| {name} | " + " | ".join(marked) + " |")
    return "\n".join(lines)


def _winners(methods: dict[str, Any]) -> set[str]:
    return _close(methods, [PLAIN, *_rivals(methods)])


def _close(methods: dict[str, Any], among: Sequence[str]) -> set[str]:
    best = min(score(methods[method]) for method in among)
    return {method for method in among if score(methods[method]) <= (1 + CLOSE) * best}


def _level_table(found: Streams) -> str:
    lines = [
        "| stream | " + " | ".join(f"{100 * level:.0f} %" for level in LEVELS) + " |",
        "|---|" + "---:|" * len(LEVELS),
    ]
    for name, methods in found.items():
        lines.append(f"| {name} | " + " | ".join(_percent(share) for share in methods[ADAPTIVE]["coverage"]) + " |")
    return "\n".join(lines)


def _crossing_table(found: Streams) -> str:
    lines = ["| method | crossings | largest distance |", "|---|---:|---:|"]
    for method in (*SHOWN, *INFORMATIVE):
        measured = [methods[method] for methods in found.values() if method in methods]
        if measured:
            worst = max(map(_deviation, measured))
            lines.append(f"| {_name(method)} | {_crossings(found, method):,} | {100 * worst:.1f} |")
    return "\n".join(lines)


def _crossings(found: Streams, method: str) -> int:
    return sum(methods[method]["crossings"] for methods in found.values() if method in methods)


def _deviation(one: dict[str, Any]) -> float:
    return float(np.max(np.abs(np.array(one["coverage"]) - LEVELS)))


def _holds(one: dict[str, Any]) -> bool:
    return bool(one["worst"] >= LEAST - 1e-9 and one["best"] <= MOST + 1e-9)


def _windows(one: dict[str, Any]) -> str:
    return f"{_percent(one['worst'])} to {_percent(one['best'])}"


def _extremes(found: Streams, method: str) -> tuple[str, str]:
    own = [methods[method] for methods in found.values()]
    return _percent(min(one["worst"] for one in own)), _percent(max(one["best"] for one in own))


def _percent(share: float) -> str:
    return f"{100 * share:.1f}"


def _listed(parts: Iterable[str]) -> str:
    *first, last = list(parts) or [""]
    return f"{', '.join(first)} and {last}" if first else last


# The chart.


def draw(found: Streams) -> bytes:
    """Coverage in windows on the left, interval scores on the right, a line per stream."""
    names = list(found)
    steps = np.linspace(-0.3, 0.3, len(SHOWN))
    with house_style():
        figure, axes = new_figure(1, 2, 10.0, 0.42 * len(names) + 1.3, sharey=True)
        coverage, scores = axes[0]
        coverage.axvspan(100 * LEAST, 100 * MOST, color=EXACT["color"], alpha=0.1, lw=0)
        scores.axvline(1.0, color=EXACT["color"], lw=0.8)
        for method, step in zip(SHOWN, steps, strict=True):
            look = {"color": LOOKS[method]["color"], "marker": LOOKS[method]["marker"], "linestyle": "none"}
            own = [
                (k + step, methods[method], methods[ADAPTIVE])
                for k, methods in enumerate(found.values())
                if method in methods
            ]
            y = [place for place, _, _ in own]
            edges = [[100 * one[end] for _, one, _ in own] for end in ("worst", "best")]
            coverage.hlines(y, *edges, color=look["color"], lw=1.6)
            for edge in edges:
                coverage.plot(edge, y, **look, ms=2.5)
            scores.plot(
                [score(one) / score(adaptive) for _, one, adaptive in own], y, **look, label=_name(method), ms=4.5
            )
        coverage.set_xlim(right=100.5)
        coverage.set_xlabel(f"targets inside the 95 % interval, worst to best window of {WINDOW} rows (%)")
        scores.set_xscale("log")
        scores.set_xticks([0.7, 1, 1.5, 2, 3, 5], ["0.7", "1", "1.5", "2", "3", "5"], minor=False)
        scores.minorticks_off()
        scores.set_xlabel("interval score over that of onepass, adaptive (lower is better)")
        coverage.set_yticks(range(len(names)), names)
        coverage.set_ylim(len(names) - 0.4, -0.6)
        figure.legend(*scores.get_legend_handles_labels(), loc="outside upper center", ncols=3)
        return render(figure, "png")
