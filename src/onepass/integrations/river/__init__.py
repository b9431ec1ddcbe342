"""The models as River models: rows are dictionaries, and features may appear and disappear.

`features` maps names to columns, `cores` makes the perceptrons and networks behind the models, and `base` puts both
together; `classifiers` and `regressors` have the models.
"""

from onepass._extras import require

require("river", "onepass.river")

from onepass.integrations.river.anomalies import AnomalyScorer
from onepass.integrations.river.classifiers import MLPClassifier, PerceptronClassifier, SoftmaxClassifier
from onepass.integrations.river.forecasters import Forecaster
from onepass.integrations.river.regressors import MLPRegressor, PerceptronRegressor

__all__ = [
    "AnomalyScorer",
    "Forecaster",
    "MLPClassifier",
    "MLPRegressor",
    "PerceptronClassifier",
    "PerceptronRegressor",
    "SoftmaxClassifier",
]
