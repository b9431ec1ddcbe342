"""The models as scikit-learn estimators.

`base` turns rows given in any split into one pass of learning, `scales` weighs several priors against each other,
`scaling` holds the statistics of the inputs; the classes for users only say what a target means.
"""

from onepass.estimators.classifier import BayesianPerceptronClassifier
from onepass.estimators.mlp import BayesianMLPClassifier, BayesianMLPRegressor
from onepass.estimators.regressor import BayesianPerceptronRegressor

__all__ = [
    "BayesianMLPClassifier",
    "BayesianMLPRegressor",
    "BayesianPerceptronClassifier",
    "BayesianPerceptronRegressor",
]
