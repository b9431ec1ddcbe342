"""The models as River models: rows are dictionaries, and features may come and go.

`features` knows which column a name has; `perceptrons` and `networks` have the models.
"""

try:
    import river  # noqa: F401
except ImportError:
    raise ImportError("onepass.river needs River: pip install 'onepass[river]'") from None

from onepass.integrations.river.networks import MLPClassifier, MLPRegressor, SoftmaxClassifier
from onepass.integrations.river.perceptrons import PerceptronClassifier, PerceptronRegressor

__all__ = ["MLPClassifier", "MLPRegressor", "PerceptronClassifier", "PerceptronRegressor", "SoftmaxClassifier"]
