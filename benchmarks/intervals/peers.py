"""Other methods, each at its best: whatever has to be chosen is chosen by the interval score in hindsight.

Point predictions come from gradient boosting and ridge regression, fitted again at least every 250 rows to all rows
so far or to the last 1,000, and from River's linear regression (four step sizes) and adaptive forest, learned row
by row. Around each of these are intervals by split conformal prediction, from the absolute errors of the last 250
rows or of all, and by River's `RegressionJackknife`, from as many. MAPIE's adaptive conformal inference (Gibbs and
Candès 2021), with three step sizes, is put around the point predictions whose split conformal intervals score best.
Quantile regression is gradient boosting with the quantile loss, fitted as often to the last 1,000 rows, and River's
linear regression with that loss.

Where adaptive conformal inference asks for an infinite interval, it ends at the largest error kept, in its favour.
All conformal errors are those of predictions one step ahead, never of rows that were learned before.
"""

import warnings
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from typing import Any

import numpy as np
from river import base, conf, forest, linear_model, optim, preprocessing
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.linear_model import Ridge

from benchmarks.intervals.scores import LEVELS, MAIN, Limits, winkler
from benchmarks.intervals.streams import WARM_UP, Stream
from onepass._typing import FloatArray

__all__ = ["ACI", "HAS_MAPIE", "METHODS", "measure"]

HAS_MAPIE = find_spec("mapie") is not None
if HAS_MAPIE:
    from mapie.regression import TimeSeriesRegressor

EVERY = 250  # rows between two fits, at most; at first half as many rows as there are
FIRST = 40  # rows of the first fit
MEMORIES = (None, 1000)  # rows that a fit takes: all, or the last ones
ERRORS = (250, None)
KEPT = 500  # errors that MAPIE keeps
STEP_SIZES = (0.005, 0.02, 0.05)
RATES = (0.003, 0.01, 0.03, 0.1)
ACI = "MAPIE ACI"
METHODS = ("RegressionJackknife", ACI, "split conformal", "quantile regression")


def measure(stream: Stream) -> Iterator[tuple[str, str, Limits]]:
    """Method, settings, and limits of the rows that are scored."""
    points, losses = {**_refitted(stream), **_row_by_row(stream)}, {}
    for name, predicted in points.items():
        for window in (None, 250):
            yield "RegressionJackknife", f"{name}, window {window}", _jackknife(stream.y, predicted, window)
        for kept in ERRORS:
            yield "split conformal", f"{name}, errors {kept}", _split(stream.y, predicted, kept)
        losses[name] = winkler(*_split(stream.y, predicted, ERRORS[0])[MAIN], stream.y[WARM_UP:], MAIN).mean()
    closest = min(losses, key=lambda name: losses[name])
    for step in STEP_SIZES if HAS_MAPIE else ():
        yield ACI, f"{closest}, step {step}", _adaptive(stream.y, points[closest], step)
    yield "quantile regression", "boosting, rows 1000", _quantile_boosting(stream, 1000)
    for rate in RATES:
        yield "quantile regression", f"River linear, rate {rate}", _quantile_linear(stream, rate)


# Point predictions, each made before its row is learned.


def _refitted(stream: Stream) -> dict[str, FloatArray]:
    makers: dict[str, Callable[[], Any]] = {
        "boosting": lambda: HistGradientBoostingRegressor(min_samples_leaf=10, max_iter=50, random_state=0),
        "ridge": lambda: Ridge(1e-3),
    }
    return {
        f"{name}, rows {memory}": _refits(stream, make, memory) for name, make in makers.items() for memory in MEMORIES
    }


def _refits(stream: Stream, make: Callable[[], Any], memory: int | None) -> FloatArray:
    found = np.zeros(len(stream.y))
    start = FIRST
    while start < len(stream.y):
        rows = slice(0 if memory is None else max(0, start - memory), start)
        ahead = slice(start, start + min(EVERY, start // 2))
        found[ahead] = make().fit(stream.X[rows], stream.y[rows]).predict(stream.X[ahead])
        start = ahead.stop
    return found


def _row_by_row(stream: Stream) -> dict[str, FloatArray]:
    models: dict[str, Any] = {
        f"River linear, rate {rate}": preprocessing.StandardScaler()
        | linear_model.LinearRegression(optim.SGD(rate), intercept_lr=rate)
        for rate in RATES
    }
    models["River forest"] = forest.ARFRegressor(n_models=5, seed=0)
    return {name: _learned_online(stream, model) for name, model in models.items()}


def _learned_online(stream: Stream, model: Any) -> FloatArray:
    found = np.zeros(len(stream.y))
    for row, (x, y) in enumerate(zip(stream.X.tolist(), stream.y.tolist(), strict=True)):
        named = dict(enumerate(x))
        found[row] = model.predict_one(named)
        model.learn_one(named, y)
    return np.clip(found, -1e6, 1e6)


# Intervals around them.


class _RiverReplay(base.Regressor):
    """Predictions that were made before, given again row by row: one model for all levels and settings."""

    def learn_one(self, x: dict[Any, Any], y: float) -> None:
        return

    def predict_one(self, x: dict[Any, Any]) -> float:
        return float(x["predicted"])


def _jackknife(y: FloatArray, predicted: FloatArray, window: int | None) -> Limits:
    found: Limits = {}
    for level in LEVELS:
        model = conf.RegressionJackknife(_RiverReplay(), confidence_level=level, window_size=window)
        limits = np.zeros((len(y), 2))
        for row, (mean, target) in enumerate(zip(predicted.tolist(), y.tolist(), strict=True)):
            x: dict[Any, Any] = {"predicted": mean}
            if row >= WARM_UP:
                interval = model.predict_one(x, with_interval=True)
                limits[row] = interval.lower, interval.upper
            if row >= FIRST:
                model.learn_one(x, target)
        found[level] = limits[WARM_UP:, 0], limits[WARM_UP:, 1]
    return found


def _split(y: FloatArray, predicted: FloatArray, kept: int | None) -> Limits:
    errors = np.abs(y - predicted)
    widths = np.zeros((len(y), len(LEVELS)))
    for row in range(WARM_UP, len(y)):
        first = FIRST if kept is None else max(FIRST, row - kept)
        seen = np.sort(errors[first:row])
        places = np.ceil((len(seen) + 1) * np.array(LEVELS)).astype(int) - 1
        widths[row] = seen[np.minimum(places, len(seen) - 1)]
    middle, own = predicted[WARM_UP:], widths[WARM_UP:].T
    return {level: (middle - width, middle + width) for level, width in zip(LEVELS, own, strict=True)}


class _Replay(RegressorMixin, BaseEstimator):  # type: ignore[misc]
    """The same for MAPIE: the only input is the number of the row."""

    def __init__(self, predicted: FloatArray) -> None:
        self.predicted = predicted

    def fit(self, X: Any, y: Any) -> "_Replay":
        self.n_features_in_ = 1
        return self

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def predict(self, X: Any) -> FloatArray:
        return np.asarray(self.predicted[np.asarray(X)[:, 0].astype(int)])


def _adaptive(y: FloatArray, predicted: FloatArray, step: float) -> Limits:
    rows = np.arange(len(y))[:, None]
    first = slice(FIRST, WARM_UP)
    model = TimeSeriesRegressor(_Replay(predicted).fit(None, None), method="aci", cv="prefit")
    model.fit(rows[first], y[first])
    limits = np.zeros((len(y), 2, len(LEVELS)))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for row in range(WARM_UP, len(y)):
            x, target = rows[row : row + 1], y[row : row + 1]
            _, found = model.predict(x, confidence_level=LEVELS, allow_infinite_bounds=True)
            farthest = predicted[row] + np.array([model.conformity_scores_.min(), model.conformity_scores_.max()])
            limits[row] = np.clip(found[0], farthest[0], farthest[1])
            model.adapt_conformal_inference(x, target, gamma=step, confidence_level=LEVELS)
            # Its `update` keeps as many errors as it began with, and that is few.
            model.conformity_scores_ = np.append(model.conformity_scores_, target - predicted[row])[-KEPT:]
    return {level: (limits[WARM_UP:, 0, k], limits[WARM_UP:, 1, k]) for k, level in enumerate(LEVELS)}


# Quantile regression.


def _tails() -> list[float]:
    return [0.5 - level / 2 for level in LEVELS[::-1]] + [0.5 + level / 2 for level in LEVELS]


def _between(quantiles: FloatArray) -> Limits:
    ordered = np.sort(quantiles, axis=1)[WARM_UP:]
    n = len(LEVELS)
    return {level: (ordered[:, n - 1 - k], ordered[:, n + k]) for k, level in enumerate(LEVELS)}


def _quantile_boosting(stream: Stream, memory: int | None) -> Limits:
    columns = []
    for tail in _tails():
        options: dict[str, Any] = {"loss": "quantile", "quantile": tail, "max_iter": 50, "min_samples_leaf": 10}
        make = lambda options=options: HistGradientBoostingRegressor(**options, max_leaf_nodes=8, random_state=0)  # noqa: E731
        columns.append(_refits(stream, make, memory))
    return _between(np.column_stack(columns))


def _quantile_linear(stream: Stream, rate: float) -> Limits:
    models = [
        preprocessing.StandardScaler()
        | linear_model.LinearRegression(optim.SGD(rate), loss=optim.losses.Quantile(tail), intercept_lr=rate)
        for tail in _tails()
    ]
    return _between(np.column_stack([_learned_online(stream, model) for model in models]))
