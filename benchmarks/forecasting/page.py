"""The page and its chart, from the stored results alone."""

from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.forecasting import competition, counts, peers, rollout, streams
from benchmarks.forecasting.competition import KINDS
from benchmarks.forecasting.peers import N_SERIES, ORIGINS
from benchmarks.trust import explanation
from onepass.files.atomic import write_atomically
from onepass.reports.plots import BASELINE, EXACT, GREY, house_style, new_figure, render

__all__ = ["draw", "text", "write"]

DOCS = Path(__file__).parents[2] / "docs"
ROLLOUT = {
    "deviation": "deviation over the simulated one",
    "width": "95 % interval over that of all courses",
    "cut": "share of the belief cut off",
}
COLUMNS = (("mase", "MASE"), ("smape", "sMAPE"), ("msis", "MSIS"))


def write(results: dict[str, Any]) -> None:
    """Write both."""
    write_atomically(DOCS / "evidence" / "forecasting.md", text(results).encode())
    write_atomically(DOCS / "images" / "forecasting.png", draw(results))


def text(results: dict[str, Any]) -> str:
    """The whole page."""
    return f"""\
# Forecasts

{_answer(results)}

![Scores relative to the best published entries, and coverage by step](../images/forecasting.png)

Written by `python -m benchmarks.forecasting --data FOLDER`; [evidence](index.md) has the date and the machine. How
forecasts are made is explained in [forecasts](../explanation/forecasting.md).

## The M4 competition

{explanation(competition.__doc__)}

The scores are those of every second series of each part, the published ones those of all series. Settings were chosen
inside `train`. The fleet takes the values of all series as they come in time, one pass without a refit; alone, every
series is forecast without the others.

{_competition(results["m4"])}

{_coverage(results["m4"])}

## Other libraries

{explanation(peers.__doc__)}

{_peers(results["peers"])}

MASE and CRPS are in units of the mean change of a season; seconds are medians of processor time, and a forecast is not
included in them.

## Streams

{explanation(streams.__doc__)}

{_streams(results["streams"])}

## Counts

{explanation(counts.__doc__)}

{_counts(results["counts"])}

## Large fleets

{_fleet(results["fleet"])}

## Moments many steps ahead

{len(rollout.PROCESSES)} autoregressions (roots between 0.9 and 1, seasonal lags, and differences of lag 1 and 12) are
learned from 400 or 60 values, {rollout.N_SERIES} times each. The moments of their forecasts in closed form are compared
with those of {rollout.N_DRAWS:,} simulated courses, which draw the weights too. The closed form bounds the persistence,
the sum of the lags' weights, at 1: beyond it courses grow without bound. So means and deviations are compared with
those of the courses whose weights keep to that, and intervals with those of all courses. The means differ by at most
{results["rollout"]["400"]["mean"]:.3f} deviations with 400 values, and {results["rollout"]["60"]["mean"]:.3f} with 60.

{_rollout(results["rollout"])}

With 60 values a part of the belief about the weights is cut off. The intervals of all courses are wider then many steps
ahead, since some of the courses explode.
"""


# Sentences.


def _answer(results: dict[str, Any]) -> str:
    """What was asked, what came out, and who is better where."""
    ahead = all(
        results["m4"][kind.name]["fleet"][key] < published
        for kind in KINDS
        for (key, _), published in zip(COLUMNS, kind.published, strict=True)
    )
    scores = [
        f"{kind.name} series MASE {own['mase']:.3f} (best entry {kind.published[0]:.3f}), sMAPE {own['smape']:.2f} "
        f"({kind.published[1]:.2f}) and MSIS {own['msis']:.1f} ({kind.published[2]:.1f})"
        for kind in KINDS
        for own in [results["m4"][kind.name]["fleet"]]
    ]
    better = _better(results)
    return (
        "How good are forecasts that are updated value by value, never refitted? In the M4 competition a fleet at its "
        f"default settings reaches on {scores[0]}, on {scores[1]}: "
        f"{'ahead of' if ahead else 'compared with'} the best published entry of "
        f"each column, on every second series. {better}"
    )


def _better(results: dict[str, Any]) -> str:
    """Who is better where."""
    found = []
    for part, methods in results["peers"].items():
        own = methods["onepass, fleet"]["mase"]
        found += [
            f"{name} on {part} series ({one['mase']:.2f}, the fleet {own:.2f})"
            for name, one in methods.items()
            if one["mase"] < own and not name.startswith("onepass")
        ]
    for series, methods in results["streams"].items():
        for start in ("from 3", "from 24"):
            own = methods["onepass"][start]
            found += [
                f"{name} on {series} {start.replace('from ', 'from value ')} on ({one[start]:.3g}, ours {own:.3g})"
                for name, one in methods.items()
                if one.get(start, np.inf) < own
            ]
    return (
        f"Others are better in mean error: {'; '.join(found)}." if found else "No other method is better in mean error."
    )


def _coverage(m4: dict[str, Any]) -> str:
    parts = [
        f"{100 * np.mean(shares):.1f} % on {name} series, {100 * min(shares):.1f} to {100 * max(shares):.1f} % by step"
        for name, found in m4.items()
        for shares in [found["fleet"]["coverage"]]
    ]
    return f"The fleet's 95 % intervals contain {'; '.join(parts)}."


def _fleet(found: dict[str, float]) -> str:
    return (
        f"A fleet of {found['series']:,.0f} weekly series with the default members takes "
        f"{found['gigabytes']:.1f} GB, all of the process included. New series take "
        f"{found['first values per second']:,.0f} values per second of one core, and series with years of values "
        f"{found['values per second']:,.0f}."
    )


# Tables.


def _table(head: list[str], rows: list[list[str]]) -> str:
    lines = ["| " + " | ".join(head) + " |", "|---|" + "---:|" * (len(head) - 1)]
    return "\n".join([*lines, *["| " + " | ".join(row) + " |" for row in rows]])


def _competition(m4: dict[str, Any]) -> str:
    rows = []
    for kind in KINDS:
        found = m4[kind.name]
        for name, label in (("fleet", f"fleet of {found['series']}"), ("alone", "each series alone")):
            one = found[name]
            inside = f"{100 * np.mean(one['coverage']):.1f}"
            rows.append(
                [f"{kind.name}, {label}", f"{one['mase']:.3f}", f"{one['smape']:.2f}", f"{one['msis']:.2f}", inside]
            )
        rows.append([f"{kind.name}, best entry of each column", *(f"{score:g}" for score in kind.published), ""])
    return _table(["series", "MASE", "sMAPE", "MSIS", "inside 95 %"], rows)


def _peers(peers: dict[str, Any]) -> str:
    tables = []
    for kind in KINDS:
        methods = peers[kind.name]
        best = {key: min(one[key] for one in methods.values() if key in one) for key in ("mase", "crps")}
        rows = []
        for name, one in methods.items():
            cells = [
                "" if key not in one else f"**{one[key]:.3f}**" if one[key] == best[key] else f"{one[key]:.3f}"
                for key in ("mase", "crps")
            ]
            rows.append([name, *cells, _time(one["seconds"])])
        count = f"{N_SERIES[kind.name]} {kind.name} series, {ORIGINS} origins"
        tables.append(_table([count, "MASE", "CRPS", "a new value takes"], rows))
    return "\n\n".join(tables)


def _time(seconds: float) -> str:
    return (
        f"{1e6 * seconds:.0f} µs"
        if seconds < 1e-3
        else f"{1e3 * seconds:.0f} ms"
        if seconds < 1.0
        else f"{seconds:.1f} s"
    )


def _streams(streams: dict[str, Any]) -> str:
    rows = [
        [
            f"{series}, {name}",
            *(f"{one[start]:.3g}" if start in one else "no forecast" for start in ("from 3", "from 24")),
        ]
        for series, methods in streams.items()
        for name, one in methods.items()
    ]
    return _table(["mean absolute error, three steps ahead", "from value 3 on", "from value 24 on"], rows)


def _counts(kinds: dict[str, Any]) -> str:
    rows = [
        "| series, with their mean | `counts=True` | as numbers | SBA | a season earlier | in 80 % | in 95 % |",
        "|---|---:|---:|---:|---:|---:|---:|",
    ]
    for kind, found in kinds.items():
        scores = [found[name] for name in ("counts", "numbers", "sba", "season")]
        cells = [f"**{score:.3f}**" if score == min(scores) else f"{score:.3f}" for score in scores]
        cells += [f"{100 * found[name]:.1f}" for name in ("in_80", "in_95")]
        rows.append(f"| {kind} | {' | '.join(cells)} |")
    return "\n".join(rows)


def _rollout(by_length: dict[str, Any]) -> str:
    rows = []
    for n, found in by_length.items():
        for step, one in found.items():
            if step != "mean":
                rows.append([f"{n} values, step {step}", *(f"{low:.2f} to {high:.2f}" for low, high in one.values())])
    return _table(["", *(ROLLOUT[name] for name in found[step])], rows)


# The chart.


def draw(results: dict[str, Any]) -> bytes:
    """Scores relative to the best published entries on the left, coverage by step on the right."""
    with house_style():
        figure, axes = new_figure(1, 2, 10.0, 3.6)
        scores, coverage = axes[0]
        labels = []
        for k, kind in enumerate(KINDS):
            for j, ((key, label), published) in enumerate(zip(COLUMNS, kind.published, strict=True)):
                place = 3 * k + j
                labels.append(f"{kind.name} {label}")
                for name, look, height in (("fleet", EXACT, 0.2), ("alone", BASELINE, -0.2)):
                    relative = results["m4"][kind.name][name][key] / published
                    named = {"label": f"onepass, {name}"} if place == 0 else {}
                    scores.barh(place + height, relative, 0.36, color=look["color"], **named)
        scores.axvline(1.0, color=GREY, lw=1.2, label="best published entry")
        scores.set_yticks(range(len(labels)), labels)
        scores.invert_yaxis()
        scores.set_xlabel("score over that of the best published entry (lower is better)")
        scores.set_xlim(0.0, 1.25)
        coverage.axhspan(93, 97, color=EXACT["color"], alpha=0.1, lw=0)
        for kind, look in zip(KINDS, (EXACT, BASELINE), strict=True):
            shares = 100 * np.array(results["m4"][kind.name]["fleet"]["coverage"])
            coverage.plot(np.arange(1, len(shares) + 1), shares, color=look["color"], label=f"{kind.name}, fleet")
        coverage.set_ylim(80, 100)
        coverage.set_xlabel("steps ahead")
        coverage.set_ylabel("values inside the 95 % interval (%)")
        coverage.legend(loc="lower right")
        figure.legend(*scores.get_legend_handles_labels(), loc="outside upper left", ncols=3)
        return render(figure, "png")
