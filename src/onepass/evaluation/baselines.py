"""Baselines: one-pass models of scikit-learn and River, evaluated as ours is: predict a row, then learn it.

They get the same rows, encoded and scaled, and keep their default settings. River's learn row by row. scikit-learn's
are called for single rows at first, then for batches that are predicted before they are learned: a call costs as much
as hundreds of rows, and by then a few rows more or less change nothing.
"""

import warnings
from collections.abc import Iterator
from importlib.util import find_spec
from typing import Any, Protocol

import numpy as np

from onepass._typing import FloatArray

__all__ = ["Baseline", "installed_baselines"]

_SINGLE_ROWS = 500  # that scikit-learn's models learn one at a time
_BATCH = 100


class Baseline(Protocol):
    """A one-pass model of another library."""

    name: str

    def predict_then_learn(self, X: FloatArray, y: FloatArray) -> FloatArray:
        """Predict each row, then learn it; returns numbers ``(n,)``, or probabilities ``(n, K)``."""


def installed_baselines(n_classes: int) -> list[Baseline]:
    """Baselines of all libraries that are installed, for classes, or for numbers if ``n_classes`` is 0.

    Examples
    --------
    >>> installed_baselines(0)[0].name
    'scikit-learn SGDRegressor'
    """
    found: list[Baseline] = [_Sgd(n_classes)]
    if find_spec("river") is not None:
        found += _river(n_classes)
    return found


class _Sgd:
    def __init__(self, n_classes: int) -> None:
        from sklearn.linear_model import SGDClassifier, SGDRegressor

        self._n_classes = n_classes
        self._seen = 0
        self.name = "scikit-learn SGDClassifier" if n_classes else "scikit-learn SGDRegressor"
        self._model: Any = SGDClassifier(loss="log_loss", random_state=0) if n_classes else SGDRegressor(random_state=0)

    def predict_then_learn(self, X: FloatArray, y: FloatArray) -> FloatArray:
        parts = []
        for rows in self._batches(len(y)):
            parts.append(self._predicted(X[rows]))
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # that one pass does not converge is the point
                self._model.partial_fit(
                    X[rows], y[rows], **({"classes": range(self._n_classes)} if self._n_classes else {})
                )
        return np.concatenate(parts)

    def _batches(self, n: int) -> Iterator[slice]:
        start = 0
        while start < n:
            size = 1 if self._seen < _SINGLE_ROWS else _BATCH
            yield slice(start, min(start + size, n))
            self._seen += min(size, n - start)
            start += size

    def _predicted(self, X: FloatArray) -> FloatArray:
        if not hasattr(self._model, "coef_"):
            return np.full((len(X), self._n_classes), 1.0 / self._n_classes) if self._n_classes else np.zeros(len(X))
        if not self._n_classes:
            return np.asarray(self._model.predict(X))
        with np.errstate(all="ignore"):
            return np.asarray(np.nan_to_num(self._model.predict_proba(X), nan=1.0 / self._n_classes))


class _River:
    def __init__(self, name: str, model: Any, n_classes: int) -> None:
        self.name = f"River {name}"
        self._model, self._n_classes = model, n_classes

    def predict_then_learn(self, X: FloatArray, y: FloatArray) -> FloatArray:
        names = list(range(X.shape[1]))
        out = np.empty((len(y), self._n_classes) if self._n_classes else len(y))
        for i, (row, target) in enumerate(zip(X.tolist(), y.tolist(), strict=True)):
            x = dict(zip(names, row, strict=True))
            if self._n_classes:
                label = bool(target) if self._n_classes == 2 else int(target)
                out[i] = self._probabilities(self._model.predict_proba_one(x))
                self._model.learn_one(x, label)
            else:
                out[i] = self._model.predict_one(x)
                self._model.learn_one(x, target)
        return out

    def _probabilities(self, found: Any) -> FloatArray:
        probabilities = np.array([found.get(k, 0.0) for k in range(self._n_classes)])  # True and False are keys 1 and 0
        total = probabilities.sum()
        return probabilities / total if total > 0.0 else np.full(self._n_classes, 1.0 / self._n_classes)


def _river(n_classes: int) -> list[_River]:
    from river import linear_model, tree

    if not n_classes:
        return [
            _River("LinearRegression", linear_model.LinearRegression(), 0),
            _River("HoeffdingTreeRegressor", tree.HoeffdingTreeRegressor(), 0),
        ]
    linear = linear_model.LogisticRegression() if n_classes == 2 else linear_model.SoftmaxRegression()
    return [
        _River(type(linear).__name__, linear, n_classes),
        _River("HoeffdingTreeClassifier", tree.HoeffdingTreeClassifier(), n_classes),
    ]
