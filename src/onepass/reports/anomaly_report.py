"""The page of ``onepass detect``: values with their limits and alarms, and what was found in the file."""

from collections.abc import Sequence
from os.path import basename

import numpy as np
from matplotlib.axes import Axes

from onepass.reports.forecast_report import found_section
from onepass.reports.html import Picture, Report, Section, Table
from onepass.reports.plots import (
    BAND,
    BASELINE,
    BLACK,
    GREY,
    PAPER,
    house_style,
    label_times,
    new_figure,
    render,
    short,
)
from onepass.tables.detection_model import DetectionModel, SeriesScores, limit_words
from onepass.tables.series import SeriesSummary

__all__ = ["anomaly_report"]

_MOST_PANELS = 6
_MOST_ROWS = 100
_MOST_DRAWN = 2000  # values of a series
_MARKS = {"spike": "o", "level": "s", "run": "^"}


def anomaly_report(
    model: DetectionModel, scored: Sequence[SeriesScores], found: SeriesSummary, files: Sequence[str]
) -> Report:
    """Report on the scores of values.

    Parameters
    ----------
    model : DetectionModel
    scored : what it found in its series
    found : in the files
    files : names of the files
    """
    from onepass import __version__

    n, alarms = sum(one.n_known for one in scored), sum(len(one.alarms) for one in scored)
    facts = (
        ("Input", ", ".join(map(basename, files))),
        ("Values", f"{n:,}"),
        ("False alarms asked for", f"{model.false_alarms:g} per value"),
        ("Version", f"onepass {__version__}"),
    )
    many = f" of {len(scored):,} series" if len(scored) > 1 else ""
    lead = f"{n:,} values{many}, {model.rhythm.words()}, each scored before it was learned: {_counted(alarms)}."
    return Report(f"Anomalies of {model.columns.target}", lead, (_alarms(model, scored), found_section(found)), facts)


def _counted(alarms: int) -> str:
    return "1 alarm" if alarms == 1 else f"{alarms:,} alarms"


def _alarms(model: DetectionModel, scored: Sequence[SeriesScores]) -> Section:
    shown = sorted(scored, key=lambda one: -len(one.alarms))[:_MOST_PANELS]
    caption = (
        f"Values (black, the last {_MOST_DRAWN:,}), the limits beyond which one of them is an alarm of its own (band), "
        "and the alarms: circles are spikes, squares new levels, triangles runs."
    )
    if len(scored) > len(shown):
        caption += f" The {len(shown)} of {len(scored):,} series with the most alarms."
    rows: list[tuple[str, ...]] = []
    for one in scored:
        for i in one.alarms:
            (time,) = model.times(one.first + i, 1)
            numbers = (f"{number:,.4g}" for number in (one.values[i], one.scores.expected[i]))
            name = f"{one.key}, {time}" if one.key else time
            rows.append((name, str(one.scores.kind[i]), *numbers, limit_words(one.scores.low[i], one.scores.high[i])))
    columns = ("time", "alarm", "value", "expected", "limits")
    title = f"The first {_MOST_ROWS} of {len(rows):,} alarms" if len(rows) > _MOST_ROWS else "All alarms"
    return Section(
        name="alarms",
        title="Alarms",
        question=f"Which values of {model.columns.target} are not what was to be expected?",
        setup=(
            "A spike is a value beyond its limits; a level is found when the values after a spike stay there; a run is "
            "several values that are odd only together.",
        ),
        pictures=(Picture("alarms", caption, _drawn(model, shown), is_wide=True),),
        tables=(Table(title, columns, tuple(rows[:_MOST_ROWS])),) if rows else (),
        reading=f"{_counted(len(rows))} in {sum(one.n_known for one in scored):,} values.",
    )


def _drawn(model: DetectionModel, shown: Sequence[SeriesScores]) -> bytes:
    with house_style():
        figure, axes = new_figure(len(shown), 1, 9.0, 2.6 * len(shown))
        for panel, one in zip(np.ravel(axes), shown, strict=True):
            _draw(panel, model, one)
            if one.key:
                panel.set_title(short(one.key), loc="left")
        return render(figure, "svg")


def _draw(panel: Axes, model: DetectionModel, one: SeriesScores) -> None:
    start = max(len(one.values) - _MOST_DRAWN, 0)
    times = model.rhythm.drawn_times(one.first + start, len(one.values) - start)
    values, found = one.values[start:], one.scores
    spread = np.nanmax(values) - np.nanmin(values)
    bottom, top = np.nanmin(values) - 0.1 * spread, np.nanmax(values) + 0.1 * spread
    low, high = np.clip(found.low[start:], bottom, top), np.clip(found.high[start:], bottom, top)
    panel.fill_between(times, low, high, color=PAPER["color"], **BAND)
    panel.plot(times, found.expected[start:], color=GREY, linewidth=0.7)
    panel.plot(times, values, color=BLACK, linewidth=0.9)
    for kind, marker in _MARKS.items():
        at = np.flatnonzero(found.kind[start:] == kind)
        panel.plot(times[at], values[at], linestyle="", marker=marker, markersize=6, color=BASELINE["color"])
    panel.margins(x=0.01)
    label_times(panel, model.columns.time, model.rhythm.are_dates)
    panel.set_ylabel(short(model.columns.target))
