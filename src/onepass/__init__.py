"""Bayesian perceptrons that learn every observation in closed form and know how sure they are.

The public names, loaded on first use so that ``import onepass`` costs next to nothing.
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
    from onepass.merging import merge
    from onepass.models.ensemble import BayesianCommittee
    from onepass.models.fleet import PerceptronFleet
    from onepass.models.network import BayesianNetwork
    from onepass.models.perceptron import BayesianPerceptron, Prediction

__version__ = "0.1.0"

__all__ = [
    "Activation",
    "BayesianCommittee",
    "BayesianMLPClassifier",
    "BayesianMLPRegressor",
    "BayesianNetwork",
    "BayesianPerceptron",
    "BayesianPerceptronClassifier",
    "BayesianPerceptronRegressor",
    "CheckpointError",
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

_HOME = {
    "Activation": "activations",
    "BayesianCommittee": "models.ensemble",
    "BayesianMLPClassifier": "estimators",
    "BayesianMLPRegressor": "estimators",
    "BayesianNetwork": "models.network",
    "BayesianPerceptron": "models.perceptron",
    "BayesianPerceptronClassifier": "estimators",
    "BayesianPerceptronRegressor": "estimators",
    "CheckpointError": "files.checkpoint",
    "Moments": "activations",
    "PerceptronFleet": "models.fleet",
    "PiecewiseLinear": "activations",
    "Prediction": "models.perceptron",
    "Quadrature": "activations",
    "load": "files.checkpoint",
    "max_linear": "activations",
    "merge": "merging",
    "save": "files.checkpoint",
}


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
