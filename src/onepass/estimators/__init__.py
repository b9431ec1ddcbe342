"""The models as scikit-learn estimators.

An estimator is composed: `inputs` and `targets` encode what users give, `standardizer` scales it by the first rows,
`blueprints` say which models learn it, and `learner` is all of these with their state. `base` has scikit-learn's
methods around a learner, `files` saves and loads it, `posterior` reads what was learned.
"""

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
