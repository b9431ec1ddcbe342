"""The page of a forecast: the fan chart, how earlier forecasts did, and what was found in the file."""

from collections.abc import Sequence
from os.path import basename

import numpy as np
from matplotlib.axes import Axes

from onepass.evaluation.backtesting import LEVELS, NAIVE, OURS, SEASONAL, Backtest
from onepass.reports.html import Claim, Picture, Report, Section, Table, Verdict
from onepass.reports.plots import BAND, BLACK, GREY, PAPER, drawn, house_style, label_times, new_figure, render, short
from onepass.tables.series import SeriesSummary
from onepass.tables.series_model import SeriesForecast, SeriesModel

__all__ = ["forecast_report", "found_section"]

_FANS = (0.95, 0.8, 0.5)
_MOST_PANELS = 6
_MOST_ROWS = 31
_HISTORY = 3.0  # horizons that are drawn before a forecast
_LEAST_HISTORY = 30
_NEAR, _FAR = 0.03, 0.08  # how far coverage is off; a backtest has few values that are independent
_CLEARLY = 0.05


def forecast_report(
    model: SeriesModel,
    forecasts: Sequence[SeriesForecast],
    found: SeriesSummary | None,
    tested: Backtest | None,
    files: Sequence[str],
) -> Report:
    """Report on forecasts.

    Parameters
    ----------
    model : SeriesModel
    forecasts : of its series
    found : in the files; None if there were none
    tested : None if there is no backtest
    files : names of the files
    """
    from onepass import __version__

    target, steps = model.columns.target, len(forecasts[0].forecast)
    sections = [_forecast(model, forecasts)]
    if tested is not None:
        sections.append(_backtest(tested))
    if found is not None:
        sections.append(found_section(found))
    facts = [
        ("Input", ", ".join(map(basename, files)) or "the saved model"),
        ("Values learned", f"{model.n_seen:,}"),
        ("Version", f"onepass {__version__}"),
    ]
    many = f" of {len(forecasts):,} series" if len(forecasts) > 1 else ""
    steps_words = "The next step" if steps == 1 else f"The next {steps} steps"
    rhythm = model.rhythm.words()
    lead = f"{steps_words}{many}, {rhythm}, with the ranges in which values should lie. {_summary(tested)}"
    return Report(f"Forecast of {target}", lead.strip(), tuple(sections), tuple(facts), _claims(tested), "Verdict")


def _summary(tested: Backtest | None) -> str:
    if tested is None:
        return ""
    ours, naive = (tested.scores[name]["mase"] for name in (OURS, _rival(tested)))
    if not (np.isfinite(ours) and naive > 0.0):
        return ""
    change = 100.0 * (1.0 - ours / naive)
    than = f"{abs(change):.0f} % {'smaller' if change >= 0.0 else 'larger'} than those of the {_rival(tested)}"
    return f"Errors of earlier forecasts were {than}."


def _rival(tested: Backtest) -> str:
    """The better one of the simple forecasts."""
    names = [name for name in (NAIVE, SEASONAL) if name in tested.scores]
    return min(names, key=lambda name: np.nan_to_num(tested.scores[name]["mase"], nan=np.inf))


def _claims(tested: Backtest | None) -> tuple[Claim, ...]:
    """What is checked of earlier forecasts."""
    if tested is None:
        return ()
    found = []
    ours = tested.scores[OURS]
    for name in tested.scores:
        theirs = tested.scores[name]["mase"]
        if name != OURS and np.isfinite(theirs) and np.isfinite(ours["mase"]):
            better = ours["mase"] < (1.0 - _CLEARLY) * theirs
            verdict = Verdict.HOLDS if better else Verdict.IN_PART if ours["mase"] <= theirs else Verdict.FAILS
            said = "Forecasts are closer than " + (name if name == "ETS" else f"the {name}")
            found.append(Claim(said, f"MASE {ours['mase']:.3f}, that of the other {theirs:.3f}.", verdict))
    off = abs(ours["in_95"] - 0.95)
    verdict = Verdict.HOLDS if off <= _NEAR else Verdict.IN_PART if off <= _FAR else Verdict.FAILS
    words = f"{100.0 * ours['in_95']:.1f} % of the values that came lay inside."
    found.append(Claim("The 95 % intervals contain 95 % of the values", words, verdict))
    return tuple(found)


# The forecast.


def _forecast(model: SeriesModel, forecasts: Sequence[SeriesForecast]) -> Section:
    shown = forecasts[:_MOST_PANELS]
    left = len(forecasts) - len(shown)
    caption = (
        "Values so far (black), the mean of the forecast (blue), and the ranges that should hold 50, 80 and 95 % of "
        "the values to come, from dark to light."
    )
    if left:
        caption += f" The first {len(shown)} of {len(forecasts):,} series."
    first = forecasts[0]
    low, high = first.forecast.interval(0.95)
    times = model.times(first.first, len(low))
    series = f" of {first.key}" if first.key else ""
    text, mean = first.value_text, first.forecast.mean
    limits = [f"{text(one)} to {text(other)}" for one, other in zip(low, high, strict=True)]
    reading = (
        f"For {times[0]}{series} {text(mean[0])} is expected, and with a probability of 95 % a value from {limits[0]}; "
        f"for {times[-1]} {text(mean[-1])}, from {limits[-1]}."
    )
    return Section(
        name="forecast",
        title="What comes next",
        question=f"Which values of {model.columns.target} are to be expected, and how sure is that?",
        setup=(),
        pictures=(Picture("fan", caption, _drawn_fans(model, shown), is_wide=False),),
        tables=(_values(model, forecasts),),
        reading=reading,
    )


def _values(model: SeriesModel, forecasts: Sequence[SeriesForecast]) -> Table:
    rows: list[tuple[str, ...]] = []
    keyed = model.columns.by is not None
    for one in forecasts:
        n = len(one.forecast)
        limits = [limit for level in (0.8, 0.95) for limit in one.forecast.interval(level)]
        for place, time in enumerate(model.times(one.first, n)):
            cells = [one.value_text(values[place]) for values in (one.forecast.mean, *limits)]
            rows.append((f"{one.key}, {time}" if keyed else time, *cells))
    caption = f"The first {_MOST_ROWS} of {len(rows):,} values" if len(rows) > _MOST_ROWS else "All values"
    columns = ("time", "mean", "80 % from", "to", "95 % from", "to")
    return Table(f"{caption}: the mean, and the limits of two intervals", columns, tuple(rows[:_MOST_ROWS]))


def _drawn_fans(model: SeriesModel, shown: Sequence[SeriesForecast]) -> bytes:
    """The series below each other, which a phone is wide enough for."""
    with house_style():
        figure, axes = new_figure(len(shown), 1, 5.8, 3.2 if len(shown) == 1 else 2.5 * len(shown))
        for panel, one in zip(np.ravel(axes), shown, strict=True):
            _draw_fan(panel, model, one)
            if one.key:
                panel.set_title(short(one.key), loc="left")
        return render(figure, "svg")


def _draw_fan(panel: Axes, model: SeriesModel, one: SeriesForecast) -> None:
    steps = len(one.forecast)
    season = model.seasons[0] if model.seasons else 1.0
    n = min(len(one.recent), max(int(_HISTORY * steps), int(3 * season), _LEAST_HISTORY))
    past = one.recent[len(one.recent) - n :]
    before = model.rhythm.drawn_times(one.first - n, n)
    ahead = model.rhythm.drawn_times(one.first, steps)
    known = np.flatnonzero(np.isfinite(past))
    panel.plot(before[known], past[known], color=BLACK, linewidth=1.1)
    for level in _FANS:
        low, high = one.forecast.interval(level)
        panel.fill_between(ahead, low, high, color=PAPER["color"], **{**BAND, "alpha": 0.2})
    joined = np.concatenate([before[known[-1:]], ahead]), np.concatenate([past[known[-1:]], one.forecast.mean])
    panel.plot(*joined, color=PAPER["color"], linewidth=1.6)
    panel.margins(x=0.01)
    if steps == 1:
        panel.plot(ahead, one.forecast.mean, **PAPER)
    label_times(panel, model.columns.time, model.rhythm.are_dates)
    panel.set_ylabel(short(model.columns.target))


# The backtest.


def _backtest(tested: Backtest) -> Section:
    head, *rows = tested.table()
    names = "MASE is the mean absolute error relative to that of the value one season earlier, CRPS that of the whole "
    setup = (
        f"{tested.words()[:1].upper()}{tested.words()[1:]}. {names}distribution in the same unit; sMAPE is relative to "
        "the values. Lower is better. The last columns count the values inside of their intervals.",
        *(f"{name} could not be compared: {why}." for name, why in tested.failed.items()),
    )
    caption = "Share of the values inside of their intervals, by steps ahead; the dotted lines are what it should be."
    coverage = drawn(1, lambda axes: _draw_coverage(axes[0], tested), width=5.8, height=2.8)
    ours = tested.scores[OURS]
    best = tested.best()
    closest = f"onepass has the smallest MASE, {ours['mase']:.3f}" if best == OURS else f"{best} has the smallest MASE"
    return Section(
        name="backtest",
        title="How earlier forecasts did",
        question="How close did forecasts come when nothing of what followed was known?",
        setup=setup,
        pictures=(Picture("coverage", caption, coverage, is_wide=False),),
        tables=(Table("Scores of forecasts from earlier times", head, tuple(rows)),),
        reading=f"{closest}; {100 * ours['in_95']:.1f} % of the values lay inside of the 95 % intervals."
        if np.isfinite(ours["mase"])
        else f"All values are equal; {100 * ours['in_95']:.1f} % of the values lay inside of the 95 % intervals.",
    )


def _draw_coverage(panel: Axes, tested: Backtest) -> None:
    steps = np.arange(1, tested.horizon + 1)
    styles = (("-", "o"), ((0, (5, 1.6)), "s"))
    for level, shares, (dashes, marker) in zip(LEVELS, tested.coverage[OURS], styles, strict=True):
        panel.axhline(100.0 * level, color=GREY, linestyle=(0, (1.2, 1.6)), linewidth=1.0)
        look = {"color": PAPER["color"], "linestyle": dashes, "marker": marker if tested.horizon <= 40 else ""}
        panel.plot(steps, 100.0 * shares, label=f"{100 * level:g} % interval", **look)
    panel.set_xlabel("steps ahead")
    panel.set_ylabel("% inside")
    panel.set_ylim(min(50.0, 100.0 * float(np.nanmin(tested.coverage[OURS])) - 5.0), 102.0)
    panel.legend(loc="lower left", ncols=2)


def found_section(found: SeriesSummary) -> Section:
    """What was found in the files."""
    rows = tuple((name, words) for name, words in found.facts())
    read = f"{found.rejected:,} of {found.rows:,} rows could not be read."
    return Section(
        name="found",
        title="What was found in the file",
        question="How do the times follow each other, and what is missing or comes twice?",
        setup=(),
        pictures=(),
        tables=(Table("The series", ("what", "found"), rows),),
        reading=read if found.rejected else f"All {found.rows:,} rows could be read.",
    )
