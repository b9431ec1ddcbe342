"""The models as River models: rows are dictionaries, and features may appear and disappear.

`features` maps names to columns; `perceptrons` and `networks` have the models.
"""

from onepass._extras import require

require("river", "onepass.river")

from onepass.integrations.river.networks import MLPClassifier, MLPRegressor, SoftmaxClassifier
from onepass.integrations.river.perceptrons import PerceptronClassifier, PerceptronRegressor

__all__ = ["MLPClassifier", "MLPRegressor", "PerceptronClassifier", "PerceptronRegressor", "SoftmaxClassifier"]
