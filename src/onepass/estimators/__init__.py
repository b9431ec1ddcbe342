"""The models as scikit-learn estimators.

`base` learns rows in one pass, however calls divide them; `inputs` checks what users give, `scaling` standardises it,
`files` saves and loads, `posterior` reads what was learned. The public classes only add what a target means.
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
