"""What each feature does to the target, and how sure that is: the answer for people who ask a model why.

A perceptron has it in its weights. In a network, and for more than two classes, it is the change between two inputs on
either side of the middle, in functions drawn from the belief.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from onepass._typing import FloatArray
from onepass.tables.columns.column import column_class
from onepass.tables.columns.names import COLUMN_KINDS
from onepass.tables.targets import CountTarget, LogTarget, NumberTarget

if TYPE_CHECKING:
    from onepass.tables.model import TabularModel

__all__ = ["Weight", "feature_weights", "meaning_of_weights", "unit_of_weights"]

_DRAWS = 400  # functions that stand for a network's belief
_MOST_DRAWN = 200  # features that it is worth drawing them for


@dataclass(frozen=True)
class Weight:
    """What a feature does to the target, and how sure that is."""

    feature: str
    mean: float
    std: float


def feature_weights(model: "TabularModel") -> dict[str, list[Weight]]:
    """What each feature does, for the target or for each class, the largest first: see `TabularModel.weights`."""
    # What softmax weights have in common moves no probability, and no data can tell it: odds do without.
    features: Any = range(len(model.encoding.features))
    if hasattr(model.estimator, "hidden_layer_sizes") or len(model.labels) > 2:  # also if there is no hidden layer
        features = _foremost(model) if len(features) > _MOST_DRAWN else features
        means, stds = _effects(model, features)
    else:
        means, stds = _coefficients(model)
    every = model.encoding.features
    names = [every[k] for k in features]
    keys = model.labels if len(means) > 1 else (model.labels[1] if model.labels else model.target.name,)
    out = {}
    for key, mean, std in zip(keys, means, stds, strict=True):
        found = [Weight(*one) for one in zip(names, mean.tolist(), std.tolist(), strict=True)]
        out[key] = sorted(found, key=lambda weight: -abs(weight.mean))
    return out


def unit_of_weights(model: "TabularModel") -> str:
    """What a weight is a change of."""
    if model.labels:
        return "the log odds"
    if isinstance(model.target, CountTarget):
        return f"the log rate of {model.target.name}"
    return f"the logarithm of {model.target.name}" if isinstance(model.target, LogTarget) else model.target.name


def meaning_of_weights(model: "TabularModel") -> str:
    """What a weight says, in words for the kinds of columns that the model has."""
    found = {column.step for column in model.encoding.columns}
    steps = dict.fromkeys(column_class(kind).step for kind in COLUMN_KINDS)
    changes = [step for step in steps if step and step in found]
    return f"how {unit_of_weights(model)} changes" + (f" for {', or '.join(changes)}" if changes else "")


def _coefficients(model: "TabularModel") -> tuple[FloatArray, FloatArray]:
    """Mean and deviation, ``(1, d)``, of a perceptron's weights; in a group of the gap to an average row."""
    mean = np.atleast_2d(model.estimator.coef_)
    cov = model.estimator.coef_cov_
    whole = cov.ndim == 2 and cov.shape[0] == cov.shape[1]
    effect, var = mean.copy(), np.array(np.diag(cov) if whole else cov).reshape(mean.shape)
    for group, shares in model.encoding.groups():
        average = np.atleast_2d(cov[group, group] @ shares if whole else var[:, group] * shares)
        effect[:, group] -= mean[:, group] @ shares
        var[:, group] += (average @ shares if whole else np.sum(average * shares)) - 2.0 * average
    scale = model.encoding.steps * (model.target.scale if isinstance(model.target, NumberTarget) else 1.0)
    return effect * scale, np.sqrt(np.maximum(var, 0.0)) * scale


def _effects(model: "TabularModel", features: Any) -> tuple[FloatArray, FloatArray]:
    """Mean and deviation, ``(K, k)``, of what features do in functions drawn from the belief."""
    means, stds = [], []
    for band in model.encoding.contrasts(features):
        change = _change(model, band, lambda rows: model.estimator.sample_function(rows, _DRAWS, random_state=0))
        change = change[:, None] if change.ndim == 2 else change
        means.append(change.mean(axis=-1).T)
        stds.append(change.std(axis=-1).T)
    return np.hstack(means), np.hstack(stds)


def _foremost(model: "TabularModel") -> Any:
    """Features that change predictions most, as many as are worth drawing functions for."""
    if hasattr(model.estimator, "coef_"):  # what the weights of all classes have in common moves nothing
        weights = model.estimator.coef_ * model.encoding.steps
        return np.argsort(-np.abs(weights - weights.mean(axis=0)).max(axis=0))[:_MOST_DRAWN]
    predict = model.estimator.predict_proba if model.labels else model.estimator.predict
    every = range(len(model.encoding.features))
    changes = [_change(model, band, predict) for band in model.encoding.contrasts(every)]
    largest = np.abs(np.concatenate(changes)).reshape(len(every), -1).max(axis=1)
    return np.argsort(-largest)[:_MOST_DRAWN]


def _change(model: "TabularModel", band: FloatArray, predict: Callable[[FloatArray], FloatArray]) -> FloatArray:
    """Between half a step to either side of the middle: of the target in its own units, of logarithms or log odds."""
    found = predict(0.5 * np.vstack([band, -band]))
    if isinstance(model.target, CountTarget):
        found = np.log(np.maximum(found, 1e-300))
    elif isinstance(model.target, NumberTarget):
        found = found * model.target.scale
    else:
        safe = np.clip(found, 1e-12, 1.0 - 1e-12)
        found = np.log(safe / (1.0 - safe))
    return np.asarray(found[: len(band)] - found[len(band) :])
