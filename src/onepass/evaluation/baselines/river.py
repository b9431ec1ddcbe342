"""River's one-pass models: linear ones by SGD, and Hoeffding trees, which have no step size; they learn row by row."""

from collections.abc import Iterator
from inspect import signature
from itertools import pairwise, repeat
from typing import Any

import numpy as np
from river import linear_model, optim
from river import tree as trees
from scipy.sparse import issparse

from onepass._typing import FloatArray
from onepass.evaluation.baselines.tuned import TunedBaseline

__all__ = ["RiverModel", "linear", "tree"]

_RATES = (0.1, 0.03, 0.01, 0.003, 0.3, 1.0)
_CONSTANT = "constant"  # the name of a feature that is 1


def linear(n_classes: int) -> TunedBaseline:
    """Linear, logistic or softmax regression."""
    candidates = []
    for rate in _RATES:
        model: Any
        if n_classes > 2:
            model = linear_model.SoftmaxRegression(optim.SGD(rate))
        elif n_classes:
            model = linear_model.LogisticRegression(optim.SGD(rate), intercept_lr=rate)
        else:
            model = linear_model.LinearRegression(optim.SGD(rate), intercept_lr=rate)
        candidates.append(RiverModel(f"SGD({rate:g})", model, n_classes))
    return TunedBaseline(f"River {type(model).__name__}", n_classes, candidates)


def tree(n_classes: int) -> TunedBaseline:
    """Hoeffding tree."""
    model = trees.HoeffdingTreeClassifier() if n_classes else trees.HoeffdingTreeRegressor()
    return TunedBaseline(f"River {type(model).__name__}", n_classes, [RiverModel("defaults", model, n_classes)])


class RiverModel:
    """Any of River's classifiers of classes 0 to ``n_classes - 1``, or its regressors, as a `Candidate`."""

    def __init__(self, setting: str, model: Any, n_classes: int) -> None:
        self.setting = setting
        self._model, self._n_classes = model, n_classes
        # Softmax regression has no intercept of its own.
        self._more = {_CONSTANT: 1.0} if isinstance(model, linear_model.SoftmaxRegression) else {}

    def predict(self, X: FloatArray) -> FloatArray:
        """Predict row by row."""
        return np.array([self._predicted(x) for x in self._named(X)])

    @property
    def takes_weights(self) -> bool:
        """Whether rows can be learned with weights."""
        return "w" in signature(self._model.learn_one).parameters

    def predict_then_learn(self, X: FloatArray, y: FloatArray, weights: FloatArray | None = None) -> FloatArray:
        """Predict each row before it is learned, with its weight."""
        found = []
        given = repeat({}) if weights is None else ({"w": weight} for weight in weights.tolist())
        for x, target, weight in zip(self._named(X), y.tolist(), given, strict=False):
            found.append(self._predicted(x))
            self._model.learn_one(x, self._label(target), **weight)
        return np.array(found)

    def _named(self, X: Any) -> Iterator[dict[Any, float]]:
        """Rows as River takes them: by the numbers of their features, sparse ones without zeros."""
        if bool(issparse(X)):
            for start, stop in pairwise(X.indptr.tolist()):
                row = slice(start, stop)
                yield {**dict(zip(X.indices[row].tolist(), X.data[row].tolist(), strict=True)), **self._more}
        else:
            for values in X.tolist():
                yield {**dict(enumerate(values)), **self._more}

    def _label(self, target: float) -> float:
        if not self._n_classes:
            return target
        return bool(target) if self._n_classes == 2 else int(target)

    def _predicted(self, x: dict[Any, float]) -> Any:
        if not self._n_classes:
            return self._model.predict_one(x)
        found = self._model.predict_proba_one(x)
        probabilities = np.array([found.get(k, 0.0) for k in range(self._n_classes)])  # True and False are keys 1 and 0
        total = probabilities.sum()
        return probabilities / total if total > 0.0 else np.full(self._n_classes, 1.0 / self._n_classes)
