"""The perceptron as River models, for features that come and go; needs ``pip install 'onepass[river]'``."""

from onepass.integrations.river import PerceptronClassifier, PerceptronRegressor

__all__ = ["PerceptronClassifier", "PerceptronRegressor"]
