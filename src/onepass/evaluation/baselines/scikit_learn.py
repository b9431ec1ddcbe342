"""scikit-learn's one-pass models: linear ones by SGD, and multi-layer perceptrons, one gradient step per row.

A call of them costs as much as hundreds of rows. So after the first rows they are called for batches of 5 % of the rows
seen, 100 at most, which are predicted before they are learned; every row is still a gradient step of its own.
"""

import warnings
from collections.abc import Iterator
from inspect import signature
from typing import Any

import numpy as np

from onepass._typing import FloatArray
from onepass.evaluation.baselines.tuned import TunedBaseline

__all__ = ["mlp", "sgd"]

_SHARE = 20
_LARGEST = 100

# Constant step sizes, with and without averaging, and some that fall with the square root of the rows; for classes also
# regularised, and scikit-learn's default schedule, whose step size comes from its regularisation.
_SGD: list[dict[str, Any]] = [
    *({"learning_rate": "constant", "eta0": rate} for rate in (0.1, 0.03, 0.01, 0.003, 0.3)),
    *({"learning_rate": "constant", "eta0": rate, "average": True} for rate in (0.1, 0.3, 1.0)),
    {"learning_rate": "invscaling", "power_t": 0.5, "eta0": 1.0},
]
_SGD_CLASSES: list[dict[str, Any]] = [
    {"learning_rate": "invscaling", "power_t": 0.5, "eta0": 3.0, "alpha": 0.01},
    {"alpha": 0.1},
]

# Adam's rate, and the activation. More regularisation than the default did not help, so it is not in the grid.
_MLP: list[dict[str, Any]] = [
    {"activation": activation, "learning_rate_init": rate}
    for rate in (0.002, 0.001, 0.004, 0.008)
    for activation in ("relu", "tanh")
]


def sgd(n_classes: int) -> TunedBaseline:
    """Linear model by stochastic gradient descent: logistic for classes, squared error for numbers."""
    from sklearn.linear_model import SGDClassifier, SGDRegressor

    if not n_classes:
        models = [(options, SGDRegressor(random_state=0, **options)) for options in _SGD]
        return _tuned("SGDRegressor", 0, models)
    grid = _SGD + _SGD_CLASSES
    models = [(options, SGDClassifier(loss="log_loss", random_state=0, **options)) for options in grid]
    return _tuned("SGDClassifier", n_classes, models)


def mlp(n_classes: int, hidden: tuple[int, ...]) -> TunedBaseline:
    """Network by Adam, one step per row."""
    from sklearn.neural_network import MLPClassifier, MLPRegressor

    kind = MLPClassifier if n_classes else MLPRegressor
    models = [(options, kind(hidden_layer_sizes=hidden, batch_size=1, random_state=0, **options)) for options in _MLP]
    return _tuned(kind.__name__, n_classes, models)


def _tuned(name: str, n_classes: int, models: list[tuple[dict[str, Any], Any]]) -> TunedBaseline:
    candidates = [_Estimator(options, model, n_classes) for options, model in models]
    return TunedBaseline(f"scikit-learn {name}", n_classes, candidates)


class _Estimator:
    def __init__(self, options: dict[str, Any], model: Any, n_classes: int) -> None:
        self.setting = ", ".join(f"{name}={value}" for name, value in options.items())
        self._model, self._n_classes = model, n_classes
        self._classes = {"classes": range(n_classes)} if n_classes else {}
        self._seen = 0

    def predict(self, X: FloatArray) -> FloatArray:
        if not self._seen:
            n = X.shape[0]
            return np.full((n, self._n_classes), 1.0 / self._n_classes) if self._n_classes else np.zeros(n)
        if not self._n_classes:
            return np.asarray(self._model.predict(X))
        with np.errstate(all="ignore"):
            return np.asarray(self._model.predict_proba(X))

    @property
    def takes_weights(self) -> bool:
        return "sample_weight" in signature(self._model.partial_fit).parameters

    def predict_then_learn(self, X: FloatArray, y: FloatArray, weights: FloatArray | None = None) -> FloatArray:
        parts = []
        for rows in self._batches(len(y)):
            parts.append(self.predict(X[rows]))
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # that one pass does not converge is the point
                given = {} if weights is None else {"sample_weight": weights[rows]}
                self._model.partial_fit(X[rows], y[rows], **self._classes, **given)
            self._seen += len(parts[-1])
        return np.concatenate(parts)

    def _batches(self, n: int) -> Iterator[slice]:
        start = 0
        while start < n:
            stop = min(start + min(max(1, self._seen // _SHARE), _LARGEST), n)
            yield slice(start, stop)
            start = stop
