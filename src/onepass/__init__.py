"""Bayesian perceptrons and networks that learn every observation in closed form and report their uncertainty.

Each public name is imported on first use, so ``import onepass`` itself is fast.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from onepass.activations import Activation, Moments, PiecewiseLinear, Quadrature, max_linear
    from onepass.estimators import (
        BayesianMLPClassifier,
        BayesianMLPRegressor,
        BayesianPerceptronClassifier,
        BayesianPerceptronRegressor,
    )
    from onepass.files.checkpoint import CheckpointError, load, save
    from onepass.forecasting import BayesianForecaster
    from onepass.layers import Conv2D
    from onepass.merging import merge
    from onepass.models.adaptive import AdaptiveIntervals
    from onepass.models.committee import BayesianCommittee
    from onepass.models.distribution import Prediction
    from onepass.models.fleet import PerceptronFleet
    from onepass.models.mixture import Mixture
    from onepass.models.network import BayesianNetwork
    from onepass.models.perceptron import BayesianPerceptron
    from onepass.tables.estimators import BayesianTabularClassifier, BayesianTabularRegressor

__version__ = "0.3.0"

__all__ = [
    "Activation",
    "AdaptiveIntervals",
    "BayesianCommittee",
    "BayesianForecaster",
    "BayesianMLPClassifier",
    "BayesianMLPRegressor",
    "BayesianNetwork",
    "BayesianPerceptron",
    "BayesianPerceptronClassifier",
    "BayesianPerceptronRegressor",
    "BayesianTabularClassifier",
    "BayesianTabularRegressor",
    "CheckpointError",
    "Conv2D",
    "Mixture",
    "Moments",
    "PerceptronFleet",
    "PiecewiseLinear",
    "Prediction",
    "Quadrature",
    "__version__",
    "load",
    "max_linear",
    "merge",
    "save",
]

# Models are found by `onepass.files.registry`, everything else here.
_MODULES = {
    "Activation": "onepass.activations",
    "BayesianCommittee": "onepass.models.committee",
    "CheckpointError": "onepass.files.checkpoint",
    "Conv2D": "onepass.layers",
    "Moments": "onepass.activations",
    "PiecewiseLinear": "onepass.activations",
    "Prediction": "onepass.models.distribution",
    "Quadrature": "onepass.activations",
    "load": "onepass.files.checkpoint",
    "max_linear": "onepass.activations",
    "merge": "onepass.merging",
    "save": "onepass.files.checkpoint",
}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    if name in _MODULES:
        return getattr(import_module(_MODULES[name]), name)
    from onepass.files.registry import savable

    return savable(name)


def __dir__() -> list[str]:
    return sorted(__all__)
