"""Backtests by rolling origin: forecasts from earlier points in time, scored by the values that came after them.

A forecaster learns value by value, so a backtest is one pass: at every origin it forecasts, and then goes on. Each
forecast is made before any of its values has been learned. The same origins are forecast by the last value, by the
value one season earlier and, if asked for, by exponential smoothing (ETS), which is fitted anew at each.
"""

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtri

from onepass._extras import MissingExtraError, is_installed
from onepass._typing import FloatArray
from onepass._validation import as_count, as_floats_or_nan, one_of
from onepass.evaluation.metrics import ensemble_crps, gaussian_crps
from onepass.forecasting.members import as_seasons
from onepass.tables.series import Series, SeriesTable
from onepass.tables.series_model import Forecasters, new_forecasters
from onepass.tables.series_rows import SeriesColumns

__all__ = ["COMPARED", "LEVELS", "NAIVE", "OURS", "SEASONAL", "Backtest", "backtest", "backtest_table"]

OURS, NAIVE, SEASONAL, ETS = "onepass", "last value", "value a season earlier", "ETS"
COMPARED = ("ets",)
"""What forecasts can be compared with, besides the last value and that of a season earlier."""
LEVELS = (0.8, 0.95)
"""Levels of the intervals whose coverage is counted."""
_FEWEST = 8  # values before the first origin
_MOST_SERIES = 100  # that are scored; all are learned
_ORIGINS = 10
_QUANTILES = (np.arange(200) + 0.5) / 200  # of counts, by which they are scored
_LONGEST_ETS = 400  # steps of a season that exponential smoothing is given

Interval = tuple[FloatArray, FloatArray]


class _Guess(NamedTuple):
    """A forecast as it is scored."""

    mean: FloatArray
    crps: Callable[[FloatArray], FloatArray]  # of the actual values
    intervals: tuple[Interval, ...]  # one for each of LEVELS


@dataclass
class _Tally:
    """Scores of one kind of forecasts, summed over series and origins."""

    horizon: int
    mase: list[float] = field(default_factory=list)
    smape: list[float] = field(default_factory=list)
    crps: list[float] = field(default_factory=list)
    inside: FloatArray = field(init=False)  # (levels, horizon)
    counts: FloatArray = field(init=False)

    def __post_init__(self) -> None:
        self.inside = np.zeros((len(LEVELS), self.horizon))
        self.counts = np.zeros(self.horizon)

    def add(self, guess: _Guess, actual: FloatArray, scale: float) -> None:
        """Score a forecast; of some steps the actual value may be missing."""
        known = np.flatnonzero(np.isfinite(actual))
        y, mean = actual[known], guess.mean[known]
        size = np.abs(y) + np.abs(mean)
        error = np.abs(y - mean)
        self.smape.append(float(np.mean(200.0 * np.divide(error, size, out=np.zeros_like(error), where=size > 0.0))))
        if scale > 0.0:
            self.mase.append(float(error.mean() / scale))
            self.crps.append(float(guess.crps(actual)[known].mean() / scale))
        self.counts[known] += 1
        for number, (low, high) in enumerate(guess.intervals):
            self.inside[number, known] += (low[known] <= y) & (y <= high[known])

    def scores(self) -> dict[str, float]:
        """Means over all forecasts."""
        total = max(self.counts.sum(), 1.0)
        found = {"mase": _mean(self.mase), "smape": _mean(self.smape), "crps": _mean(self.crps)}
        shares = self.inside.sum(axis=1) / total
        return found | {f"in_{100 * level:g}": float(share) for level, share in zip(LEVELS, shares, strict=True)}

    def coverage(self) -> FloatArray:
        """Share of values inside their intervals, ``(levels, horizon)``; NaN where there was none."""
        return np.divide(self.inside, self.counts, out=np.full_like(self.inside, np.nan), where=self.counts > 0)


@dataclass(frozen=True)
class Backtest:
    """Scores of forecasts from earlier origins.

    Attributes
    ----------
    horizon : int
        Steps ahead that were scored.
    origins, forecasts : int
        Points in time, and forecasts from them, one per series.
    scores : dict
        By the name of the model: ``mase`` (mean absolute error, relative to that of the value one season earlier in
        the values before the origin), ``smape`` in per cent, ``crps`` (relative to the same error), and the shares of
        values inside their intervals, ``in_80`` and ``in_95``.
    coverage : dict
        By the name of the model: shares of values inside of their intervals, ``(levels, horizon)``.
    failed : dict
        What could not be compared, and why.
    """

    horizon: int
    origins: int
    forecasts: int
    scores: dict[str, dict[str, float]]
    coverage: dict[str, FloatArray]
    failed: dict[str, str]

    def table(self) -> list[tuple[str, ...]]:
        """The scores as rows of texts, the first with the names."""
        head = ("", "MASE", "sMAPE", "CRPS", *(f"in {100 * level:g} %" for level in LEVELS))
        return [head, *((name, *_texts(scores)) for name, scores in self.scores.items())]

    def words(self) -> str:
        """What was tested, in a sentence."""
        steps = "1 step" if self.horizon == 1 else f"{self.horizon} steps"
        points = "1 earlier time" if self.origins == 1 else f"{self.origins} earlier times"
        return f"{self.forecasts:,} forecasts of {steps} from {points}, none of which knew what came after it"

    def best(self) -> str:
        """The name of the model with the smallest scaled error."""
        return min(self.scores, key=lambda name: np.nan_to_num(self.scores[name]["mase"], nan=np.inf))


def _texts(scores: Mapping[str, float]) -> Iterator[str]:
    for name, score in scores.items():
        if np.isnan(score):
            yield "-"
        elif name == "smape":
            yield f"{score:.2f} %"
        else:
            yield f"{100.0 * score:.1f} %" if name.startswith("in_") else f"{score:.3f}"


def backtest(
    y: ArrayLike | Mapping[str, ArrayLike],
    horizon: int,
    *,
    season_length: Any = 1,
    origins: int = _ORIGINS,
    compare: Sequence[str] = (),
) -> Backtest:
    """Score forecasts of a series, or of several, from earlier points in time.

    Parameters
    ----------
    y : (n,) array, or a mapping from keys to such arrays, which begin at the same time
        NaN is a value that is missing.
    horizon : int
        Steps ahead; fewer if the series are short.
    season_length : number or sequence of numbers
        As for `onepass.BayesianForecaster`.
    origins : int
        Number of points in time to forecast from, evenly spaced over the second half.
    compare : names of `COMPARED`
        ``"ets"`` needs the package statsmodels.

    Examples
    --------
    >>> import numpy as np
    >>> from onepass.evaluation import backtest
    >>> t = np.arange(200)
    >>> y = 50 + 10 * np.sin(2 * np.pi * t / 7) + np.random.default_rng(0).normal(size=200)
    >>> found = backtest(y, 14, season_length=7)
    >>> found.scores["onepass"]["mase"] < found.scores["last value"]["mase"]
    True
    """
    many = isinstance(y, Mapping)
    given = y if isinstance(y, Mapping) else {"": y}
    series = []
    for key, values in given.items():
        array = np.atleast_1d(as_floats_or_nan(values, "y"))
        empty = np.zeros((0, 0))
        series.append(Series(str(key), 0, array, np.zeros((len(array), 0)), empty))
    seasons = as_seasons(season_length)
    longest = max((len(one.values) for one in series), default=0)
    new = new_forecasters(
        seasons, as_count(horizon, "horizon"), longest, SeriesColumns("ds", "y", "unique_id" if many else None)
    )
    found = _backtest(series, seasons, new, horizon, origins, compare)
    if found is None:
        raise ValueError(f"a backtest needs at least {_FEWEST + 1} values, got {longest}")
    return found


def backtest_table(
    table: SeriesTable, horizon: int, *, origins: int = _ORIGINS, compare: Sequence[str] = ()
) -> Backtest | None:
    """Score forecasts of the series of a table; None if they are too short."""
    longest = max((len(one.values) for one in table.series), default=0)
    new = new_forecasters(table.seasons, horizon, longest, table.columns)
    return _backtest(table.series, table.seasons, new, horizon, origins, compare)


def _backtest(
    series: Sequence[Series],
    seasons: tuple[float, ...],
    model: Forecasters,
    horizon: int,
    origins: int,
    compare: Sequence[str],
) -> Backtest | None:
    for name in compare:
        one_of(name, COMPARED, "compare")
    if compare and not is_installed("statsmodels"):
        raise MissingExtraError("a comparison with ETS needs statsmodels: pip install statsmodels", name="statsmodels")
    period = round(seasons[0]) if seasons else 1
    first, end = min(one.first for one in series), max(one.end for one in series)
    points, steps = _origins(first, end, horizon, as_count(origins, "origins"), period)
    if not len(points):
        return None
    rivals: dict[str, Callable[[FloatArray, int], _Guess]] = {NAIVE: lambda y, h: _naive(y, h, 1)}
    if period > 1:
        rivals[SEASONAL] = lambda y, h: _naive(y, h, period)
    if compare:
        rivals[ETS] = lambda y, h: _ets(y, h, period)
    tallies = {name: _Tally(steps) for name in (OURS, *rivals)}
    failed: dict[str, str] = {}
    scored = [series[at] for at in _spread(len(series))]
    done, forecasts = first, 0
    for point in points:
        model.learn([cut for one in series if len((cut := _part(one, done, point)).values)])
        done = point
        for one in scored:
            past, actual = one.values[: point - one.first], _actual(one, point, steps)
            if point <= one.first or np.isfinite(past).sum() < _FEWEST or not np.isfinite(actual).any():
                continue
            scale = _scale(past, period)
            ahead = one.inputs[point - one.first : point - one.first + steps]
            tallies[OURS].add(_ours(model, one.key, steps, ahead), actual, scale)
            forecasts += 1
            for name, rival in rivals.items():
                if name not in failed:
                    _score(name, rival, past, actual, scale, tallies, failed)
    if not forecasts:
        return None
    kept = {name: tally for name, tally in tallies.items() if name not in failed}
    scores = {name: tally.scores() for name, tally in kept.items()}
    coverage = {name: tally.coverage() for name, tally in kept.items()}
    return Backtest(steps, len(points), forecasts, scores, coverage, failed)


def _spread(n: int) -> list[int]:
    """Places of the series that are scored, evenly spaced among all."""
    found: list[int] = np.unique(np.linspace(0, n - 1, min(n, _MOST_SERIES)).astype(int)).tolist()
    return found


def _origins(first: int, end: int, horizon: int, wanted: int, period: int) -> tuple[list[int], int]:
    """The points to forecast from, and how many steps of them are scored."""
    earliest = first + max(_FEWEST, min(2 * period, (end - first) // 2))
    steps = min(horizon, end - earliest)
    if steps < 1:
        return [], 0
    last = end - steps
    start = last if wanted == 1 else min(max(earliest, first + (end - first) // 2), last)
    return np.unique(np.linspace(start, last, min(wanted, last - start + 1)).astype(int)).tolist(), steps


def _part(one: Series, start: int, stop: int) -> Series:
    """The values of a series from one step up to another."""
    a, b = max(start - one.first, 0), max(stop - one.first, 0)
    return one._replace(first=one.first + a, values=one.values[a:b], inputs=one.inputs[a:b])


def _actual(one: Series, point: int, steps: int) -> FloatArray:
    found = np.full(steps, np.nan)
    values = one.values[max(point - one.first, 0) :][:steps]
    found[: len(values)] = values
    return found


def _score(
    name: str,
    rival: Callable[[FloatArray, int], _Guess],
    past: FloatArray,
    actual: FloatArray,
    scale: float,
    tallies: Mapping[str, _Tally],
    failed: dict[str, str],
) -> None:
    """Score one forecast of another model, which may fail."""
    try:
        tallies[name].add(rival(past, len(actual)), actual, scale)
    except (ValueError, np.linalg.LinAlgError, FloatingPointError) as error:
        failed[name] = str(error)


def _ours(model: Forecasters, key: str, steps: int, ahead: FloatArray) -> _Guess:
    found = model.forecast(key, steps, ahead)
    limits = tuple(found.interval(level) for level in LEVELS)
    if found.is_count:
        counts = found.ppf(_QUANTILES[:, None])
        return _Guess(found.mean, lambda y: ensemble_crps(y, counts), limits)
    return _Guess(found.mean, lambda y: gaussian_crps(y, found.mean, found.std), limits)


def _naive(past: FloatArray, steps: int, period: int) -> _Guess:
    """The value one period earlier, with the errors that it has had so far."""
    filled = _filled(past)
    if len(filled) <= period:
        period = 1
    h = np.arange(steps)
    mean = filled[len(filled) - period + h % period]
    changes = past[period:] - past[:-period]
    size = float(np.sqrt(np.nanmean(np.square(changes)))) if np.isfinite(changes).any() else 0.0
    return _gaussian(mean, size * np.sqrt(1.0 + h // period))


def _gaussian(mean: FloatArray, std: FloatArray) -> _Guess:
    halves = [ndtri(0.5 + 0.5 * level) * std for level in LEVELS]
    limits = tuple((mean - half, mean + half) for half in halves)
    return _Guess(mean, lambda y: gaussian_crps(y, mean, std), limits)


def _ets(past: FloatArray, steps: int, period: int) -> _Guess:
    """Exponential smoothing with a damped trend, and a season if two of it have been seen."""
    import pandas as pd  # which statsmodels brings, and needs to predict
    from statsmodels.tsa.exponential_smoothing.ets import ETSModel

    filled = _filled(past)
    seasonal = 1 < period <= _LONGEST_ETS and len(filled) >= 2 * period
    options = {"seasonal": "add", "seasonal_periods": period} if seasonal else {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fitted = ETSModel(pd.Series(filled), error="add", trend="add", damped_trend=True, **options).fit(disp=False)
        found = fitted.get_prediction(start=len(filled), end=len(filled) + steps - 1)
    var = np.asarray(found.forecast_variance, dtype=float)[-steps:]
    return _gaussian(np.asarray(found.predicted_mean, dtype=float)[-steps:], np.sqrt(np.maximum(var, 0.0)))


def _filled(past: FloatArray) -> FloatArray:
    """Values with those that are missing in between on a straight line."""
    known = np.flatnonzero(np.isfinite(past))
    return np.interp(np.arange(len(past)), known, past[known])


def _scale(past: FloatArray, period: int) -> float:
    """The mean error of the value one period earlier, or of the last value if there is none that differs."""
    for lag in (period, 1):
        changes = np.abs(past[lag:] - past[:-lag])
        if np.isfinite(changes).any() and (scale := float(np.nanmean(changes))) > 0.0:
            return scale
    return 0.0


def _mean(values: Sequence[float]) -> float:
    return float(np.mean(values)) if values else float("nan")
