"""The models as scikit-learn estimators.

`base` turns rows given in any split into one pass of learning; `inputs` checks what users give, `scaling` standardises
it, `files` saves and loads, `posterior` reads what was learned. The classes for users only say what a target means.
"""

from onepass.estimators.classifier import BayesianPerceptronClassifier
from onepass.estimators.fleet import FleetEstimator
from onepass.estimators.mlp import BayesianMLPClassifier, BayesianMLPRegressor
from onepass.estimators.regressor import BayesianPerceptronRegressor

__all__ = [
    "BayesianMLPClassifier",
    "BayesianMLPRegressor",
    "BayesianPerceptronClassifier",
    "BayesianPerceptronRegressor",
    "FleetEstimator",
]
