"""The models as scikit-learn estimators.

An estimator is composed: `inputs` and `targets` encode what users give, `standardizer` scales it by the first rows,
`blueprints` say which models learn it, and `learner` is all of these with their state. `base` has scikit-learn's
methods around a learner, `files` saves and loads it, `posterior` reads what was learned.

Each name is imported on first use: readers of tables need `rows` alone, and scikit-learn takes seconds to import.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from onepass.estimators.base import learner_of, start_learner
    from onepass.estimators.classifier import BayesianPerceptronClassifier
    from onepass.estimators.fleet import FleetEstimator
    from onepass.estimators.mlp import BayesianMLPClassifier, BayesianMLPRegressor
    from onepass.estimators.moving_level import MovingLevelRegressor
    from onepass.estimators.regressor import BayesianPerceptronRegressor

__all__ = [
    "BayesianMLPClassifier",
    "BayesianMLPRegressor",
    "BayesianPerceptronClassifier",
    "BayesianPerceptronRegressor",
    "FleetEstimator",
    "MovingLevelRegressor",
    "learner_of",
    "start_learner",
]

_MODULES = {
    "BayesianMLPClassifier": "mlp",
    "BayesianMLPRegressor": "mlp",
    "BayesianPerceptronClassifier": "classifier",
    "BayesianPerceptronRegressor": "regressor",
    "FleetEstimator": "fleet",
    "MovingLevelRegressor": "moving_level",
    "learner_of": "base",
    "start_learner": "base",
}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
