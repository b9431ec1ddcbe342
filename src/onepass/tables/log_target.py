"""Whether a positive target is learned as its logarithm: decided by predicting the first rows both ways.

Prices, durations and sizes often vary by factors: a few are many times as large as most, and where they are large so is
the noise. A linear model of the logarithm then predicts far better. But a target can be skewed because one of its
columns is, of which it is a plain sum, and there the logarithm ruins everything. Skewness alone can't tell these apart.
So a target that is positive and skewed is predicted, row by row before each is learned, by a linear model of itself and
by one of its logarithm; the logarithm is taken if it gives the targets more density, both in their own units, and if
its errors are not larger.

The constants below were set on two regression sets and fifteen generated targets. On eleven other generated targets,
in four orders each, the logarithm was taken in 21 of 44 runs: 1.2 to 2.4 nats per row were gained, and the root mean
squared error of all rows was 0.46 to 1.01 times that of the target itself; where it was not taken it would have been
up to 30,000 times as large. The rows before the ones that are judged are not safe: there the exponential of what a
young model expects can be far off, and in one order of one of the regression sets that made the error of all rows 1.5
times as large.
"""

from dataclasses import replace
from typing import Any

import numpy as np

from onepass._typing import FloatArray
from onepass.estimators.rows import Rows
from onepass.tables.columns.encoding import Encoding
from onepass.tables.columns.errors import SchemaError
from onepass.tables.columns.inference import WRONG
from onepass.tables.columns.number import centre_and_scale
from onepass.tables.columns.values import Bad, as_numbers
from onepass.tables.model import TabularModel
from onepass.tables.reasons import Reason
from onepass.tables.settings import Settings
from onepass.tables.target_inference import n_wild
from onepass.tables.targets import CountTarget, LogTarget, NumberTarget

__all__ = ["log_target"]

_SKEWED = 1.0  # skewness from which on the logarithm is tried; that of an exponential distribution is 2
_ROWS = 2000  # that are predicted both ways, and the fewest that say anything
_FEWEST = 50
_WIDE = 500  # features of which no correlations are kept, so that the trial takes no longer than a moment
_GAIN = 0.02  # nats per row
_LARGER = 1.05  # errors that the logarithm may have, compared with those of the target itself


def log_target(
    target: NumberTarget, sample: Any, encoding: Encoding, settings: Settings, *, asked: bool
) -> NumberTarget:
    """The target itself, or its logarithm if that is asked for or predicts the first rows better.

    Parameters
    ----------
    target : NumberTarget
        As it was inferred from the first rows.
    sample : pyarrow.Table
        The first rows.
    encoding : Encoding
        Of the other columns.
    settings : Settings
    asked : bool
        Whether the user has asked for the logarithm.
    """
    if isinstance(target, CountTarget):
        if asked:
            raise SchemaError(Reason("log_of_counts", target.name), setting="log_target")
        return target
    bad: Bad = {}
    values = as_numbers(sample[target.name], target.name, bad, target.written)
    values = values[np.isfinite(values)]
    if asked:
        _check_positive(values, target.name)
        return _as_logarithm(target, values, settings.outliers, "as asked")
    is_plain = settings.noise is None and (settings.is_network or settings.activation in (None, "linear"))
    if not is_plain or len(values) < _FEWEST or not (values > 0.0).all() or not _is_skewed(values):
        return target
    found = _compared(target, _as_logarithm(target, values, settings.outliers, ""), sample, encoding, settings)
    if found is None:
        return target
    gain, error_ratio = found
    if gain < _GAIN:
        by = f"only {gain:.2f} nats per row more" if gain >= 0.0 else f"{-gain:.2f} nats per row less"
        return replace(target, why_not_log=f"the first rows are {by} probable so")
    if error_ratio > _LARGER:
        return replace(target, why_not_log=f"errors in the first rows are {error_ratio:.3g} times as large so")
    why = f"it is positive and skewed, and the first rows are {gain:.2f} nats per row more probable so"
    return _as_logarithm(target, values, settings.outliers, why)


def _as_logarithm(target: NumberTarget, values: FloatArray, outliers: float, why: str) -> LogTarget:
    logs = np.log(values[values > 0.0])
    wild = 0 if outliers else n_wild(logs)
    centre, scale = centre_and_scale(logs, outliers)
    largest = float((logs.max() - centre) / scale)
    return LogTarget(target.name, centre, scale, target.written, n_wild=wild, why=why, largest=largest)


def _check_positive(values: FloatArray, name: str) -> None:
    low = values[values <= 0.0]
    if len(low) > WRONG * len(values):
        raise SchemaError(Reason("log_of_negative", name, float(low[0]), "target"), setting="log_target")


def _is_skewed(values: FloatArray) -> bool:
    skewness = _skewness(values)
    return skewness > _SKEWED and abs(_skewness(np.log(values))) < skewness


def _skewness(values: FloatArray) -> float:
    """Third standardised moment; of numbers that are all equal 0."""
    largest = np.abs(values).max()
    gaps = values / largest - np.mean(values / largest)
    std = np.sqrt(np.mean(gaps**2))
    return float(np.mean((gaps / std) ** 3)) if std > 1e-12 else 0.0


def _compared(
    target: NumberTarget, log: LogTarget, sample: Any, encoding: Encoding, settings: Settings
) -> tuple[float, float] | None:
    """By how much the logarithm makes the first targets more probable, in nats per row, and how large its errors are.

    The errors as a ratio to those of the target itself; None if the rows are too few to say.

    What is judged are the rows after the first quarter, when both models know something.
    """
    is_wide = bool(encoding.texts) or encoding.n_dense > _WIDE
    (first,) = sample.slice(0, _ROWS).combine_chunks().to_batches()
    encoded = encoding.encode(first)
    targets = [one.encode(first[target.name], encoded.bad) for one in (target, log)]
    kept = np.setdiff1d(np.arange(len(first)), list(encoded.bad))
    if len(kept) < _FEWEST:
        return None
    plain = Settings("perceptron", outliers=settings.outliers, covariance="diagonal" if is_wide else "full")
    (density, error), (log_density, log_error) = (
        _scores(TabularModel(encoding, one, plain), Rows(encoded.X[kept], y[kept]))
        for one, y in zip((target, log), targets, strict=True)
    )
    return log_density - density, log_error / max(error, 1e-300)


def _scores(model: TabularModel, rows: Rows) -> tuple[float, float]:
    """Mean log density and root mean squared error of the rows after the first quarter, in the target's own units."""
    target = model.target
    assert isinstance(target, NumberTarget)
    predicted = model.predict_then_learn(rows)
    later = slice(len(rows.y) // 4, None)
    mean, _ = target.moments(predicted.mean, predicted.std, predicted.aleatoric)
    density = target.log_density(rows.y, predicted.log_density)
    with np.errstate(over="ignore"):
        error = np.sqrt(np.mean((target.decode(rows.y) - mean)[later] ** 2))
    return float(np.mean(density[later])), float(error)
