"""Perceptrons and networks as River models, for features and classes that come and go.

They need ``pip install 'onepass[river]'``.
"""

from onepass.integrations.river import (
    MLPClassifier,
    MLPRegressor,
    PerceptronClassifier,
    PerceptronRegressor,
    SoftmaxClassifier,
)

__all__ = ["MLPClassifier", "MLPRegressor", "PerceptronClassifier", "PerceptronRegressor", "SoftmaxClassifier"]
