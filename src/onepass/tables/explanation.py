"""Why a row is predicted as it is: what each column adds to the prediction of an average row, and how sure that is.

In a perceptron this is exact: a column adds the sum over its features of weight times distance from the average row,
and its variance follows from the covariance of these weights. In a network, and for more than two classes, columns are
switched from the average row's values to the row's own, one after the other, in the order of the table and in the
reverse order. What a column changes, averaged over both, is its Shapley value wherever columns interact in pairs at
most, and all of them together add up to the prediction whatever they do. The standard deviation is that of the same
differences in functions drawn from the belief.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.sparse import issparse

from onepass._typing import FloatArray
from onepass.estimators import learner_of
from onepass.estimators.rows import as_dense
from onepass.estimators.scaling import zero_for_nan
from onepass.tables.targets import CountTarget, NumberTarget

if TYPE_CHECKING:
    from onepass.tables.model import TabularModel

__all__ = ["Explanation", "explain"]

_DRAWS = 200  # functions that stand for a belief
_AT_ONCE = 2**22  # numbers in rows that are predicted together
_LEAST, _MOST = 1e-12, 1.0 - 1e-12  # probabilities whose log odds are taken


@dataclass(frozen=True)
class Explanation:
    """What columns add to predictions, ``n`` rows and ``k`` columns.

    ``baseline + add.sum(axis=1)`` is the prediction, in the target's own units; of counts its log rate, of a target
    that is learned as its logarithm the logarithm of the median, of two classes the log odds of the second, of more
    those of the most probable class of each row.
    """

    columns: tuple[str, ...]
    baseline: FloatArray  # (n,), of an average row, at the level of its time
    baseline_std: FloatArray  # (n,)
    add: FloatArray  # (n, k)
    std: FloatArray  # (n, k)

    @property
    def total(self) -> FloatArray:
        """What is explained, ``(n,)``."""
        return np.asarray(self.baseline + self.add.sum(axis=1))

    @staticmethod
    def names(columns: Sequence[str]) -> list[str]:
        """Names of the columns of `table`."""
        return ["baseline", "std_baseline", *(f"{what}_{name}" for name in columns for what in ("add", "std"))]

    def table(self) -> dict[str, FloatArray]:
        """Columns of a table: ``baseline``, and ``add_...`` and ``std_...`` for each column."""
        pairs = [values for pair in zip(self.add.T, self.std.T, strict=True) for values in pair]
        return dict(zip(self.names(self.columns), [self.baseline, self.baseline_std, *pairs], strict=True))


def explain(model: "TabularModel", X: Any, keys: Sequence[str] | None = None) -> Explanation:
    """What each column adds to the predictions for encoded rows ``(n, d)``; ``keys`` in a model per key.

    An average row has every number at its mean, categories as often as they came among the first rows, true or false
    at false, and of hashed categories none.
    """
    columns = tuple(column.name for column in model.encoding.columns)
    if not _is_linear(model):
        parts = [_by_switching(model, part) for part in _bands(X, 2 * len(columns) + 2)]
        joined = [np.concatenate(found) for found in zip(*parts, strict=True)]
        return Explanation(columns, *joined)
    return Explanation(columns, *_exactly(model, zero_for_nan(X), keys))


def _is_linear(model: "TabularModel") -> bool:
    """Whether what is explained is linear in the features: the weights then tell all."""
    if model.is_network or len(model.labels) > 2:
        return False
    linear = "exp" if isinstance(model.target, CountTarget) else "sigmoid" if model.labels else "linear"
    # A network without hidden layers has an output of this kind whatever its activation.
    return hasattr(model.estimator, "hidden_layer_sizes") or model.estimator.activation == linear


def average_row(model: "TabularModel") -> FloatArray:
    """The features of an average row, ``(d,)``."""
    row = np.zeros(len(model.encoding.features))
    for group, shares in model.encoding.groups():
        row[group] = shares
    return row


def _places(model: "TabularModel") -> list[slice]:
    """The positions of each column's features."""
    ends = np.cumsum([len(column.features) for column in model.encoding.columns]).tolist()
    return [slice(start, end) for start, end in zip([0, *ends[:-1]], ends, strict=True)]


# Perceptrons.


def _exactly(model: "TabularModel", X: Any, keys: Sequence[str] | None) -> tuple[FloatArray, ...]:
    middle = average_row(model)
    if keys is None:
        baseline, std, *added = _linear(model, learner_of(model.estimator).linear_belief(), X, middle)
        if model.has_level:  # no column adds it: it is where the last rows were
            assert isinstance(model.target, NumberTarget)
            level, var = model.estimator.level(X)
            baseline, std = baseline + level * model.target.scale, np.hypot(std, np.sqrt(var) * model.target.scale)
        return (baseline, std, *added)
    k = len(model.encoding.columns)
    found = [np.empty((X.shape[0], *shape)) for shape in ((), (), (k,), (k,))]
    rows_of: dict[str, list[int]] = {}
    for row, key in enumerate(keys):
        rows_of.setdefault(key, []).append(row)
    for key, rows in rows_of.items():
        own = _linear(model, model.estimator.linear_belief(key), X[rows], middle)
        for whole, part in zip(found, own, strict=True):
            whole[rows] = part
    return tuple(found)


def _linear(model: "TabularModel", belief: Any, X: Any, middle: FloatArray) -> tuple[FloatArray, ...]:
    """Baseline, its std, what columns add and the std of that, from the joint belief of intercept and weights."""
    mean, cov = belief  # (1 + d,), and (1 + d, 1 + d) or (1 + d,)
    target = model.target
    scale, centre = (target.scale, target.centre) if isinstance(target, NumberTarget) else (1.0, 0.0)
    start = np.concatenate([[1.0], middle])
    add, var = [], []
    for place in _places(model):
        gap, weights = _gap(X[:, place], middle[place]), slice(place.start + 1, place.stop + 1)
        add.append(gap @ mean[weights])
        var.append(_quadratic(gap, cov[weights, weights] if cov.ndim == 2 else cov[weights]))
    n = X.shape[0]
    baseline = np.full(n, start @ mean * scale + centre)
    baseline_std = np.full(n, np.sqrt(_quadratic(start[None], cov)[0]) * scale)
    return baseline, baseline_std, np.column_stack(add) * scale, np.sqrt(np.column_stack(var)) * scale


def _gap(rows: Any, middle: FloatArray) -> Any:
    """Distances from the average row; those of words, of which it has none, stay sparse."""
    return rows if issparse(rows) and not middle.any() else as_dense(rows) - middle


def _quadratic(rows: Any, cov: FloatArray) -> FloatArray:
    """``x' C x`` of each row, ``(n,)``, with a covariance or the variances alone."""
    if issparse(rows):
        sparse: Any = rows
        products = sparse.multiply(sparse @ cov) if cov.ndim == 2 else sparse.multiply(sparse).multiply(cov)
        return np.asarray(np.maximum(products.sum(axis=1), 0.0)).ravel()
    found = np.einsum("ij,ij->i", rows @ cov, rows) if cov.ndim == 2 else np.square(rows) @ cov
    return np.asarray(np.maximum(found, 0.0))


# Networks, and more than two classes.


def _bands(X: Any, per_row: int) -> list[FloatArray]:
    """Rows in parts whose switched copies fit into memory."""
    height = max(_AT_ONCE // (per_row * max(X.shape[1], _DRAWS)), 1)
    return [as_dense(X[start : start + height]) for start in range(0, max(X.shape[0], 1), height)]


def _by_switching(model: "TabularModel", X: FloatArray) -> tuple[FloatArray, ...]:
    """Baseline, its std, what columns add and the std of that."""
    middle, places = average_row(model), _places(model)
    paths = [_path(X, middle, order) for order in (places, places[::-1])]
    rows = np.concatenate(paths)  # (2 (k + 1), n, d)
    flat = rows.reshape(-1, X.shape[1])
    which = _explained_class(model, X)
    mean = _in_own_units(model, _predicted(model, flat).reshape(*rows.shape[:2], -1), which)
    drawn = model.estimator.sample_function(flat, _DRAWS, random_state=0)
    drawn = drawn[:, None] if drawn.ndim == 2 else drawn  # (rows, K, draws)
    drawn = np.moveaxis(drawn, -1, 0).reshape(_DRAWS, *rows.shape[:2], -1)
    functions = _in_own_units(model, drawn, which)
    add, each = _changes(mean), _changes(functions)
    start = functions[:, 0]
    return mean[0], start.std(axis=0), add.T, each.std(axis=0).T


def _path(X: FloatArray, middle: FloatArray, order: list[slice]) -> FloatArray:
    """From the average row to each row, one column after the other, ``(k + 1, n, d)``."""
    steps = np.empty((len(order) + 1, *X.shape))
    steps[0] = middle
    for k, place in enumerate(order):
        steps[k + 1] = steps[k]
        steps[k + 1][:, place] = X[:, place]
    return steps


def _changes(values: FloatArray) -> FloatArray:
    """What each column changes on the way there and in the reverse order, averaged: ``(..., 2 (k + 1), n)``."""
    there, back = np.split(values, 2, axis=-2)
    return np.asarray(0.5 * (np.diff(there, axis=-2) + np.diff(back, axis=-2)[..., ::-1, :]))


def _predicted(model: "TabularModel", rows: FloatArray) -> FloatArray:
    """Expected targets ``(m,)``, or probabilities ``(m, K)``."""
    return np.asarray(model.estimator.predict_proba(rows) if model.labels else model.estimator.predict(rows))


def _explained_class(model: "TabularModel", X: FloatArray) -> Any:
    """The class whose log odds are explained, of each row ``(n,)``; None for numbers."""
    if not model.labels:
        return None
    if len(model.labels) == 2:
        return np.ones(len(X), dtype=int)
    return _predicted(model, X).argmax(axis=1)


def _in_own_units(model: "TabularModel", values: FloatArray, which: Any) -> FloatArray:
    """Predictions ``(..., n, K)`` as they are explained, ``(..., n)``."""
    if which is None:
        numbers = values[..., 0]
        if isinstance(model.target, CountTarget):
            return np.asarray(np.log(np.maximum(numbers, 1e-300)))
        assert isinstance(model.target, NumberTarget)
        return np.asarray(numbers * model.target.scale + model.target.centre)
    # Functions drawn from two classes have the probability of the second alone.
    chosen = values[..., np.arange(len(which)), which] if values.shape[-1] > 1 else values[..., 0]
    safe = np.clip(chosen, _LEAST, _MOST)
    return np.asarray(np.log(safe / (1.0 - safe)))
