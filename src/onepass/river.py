"""Perceptrons and networks as models of River, the library for learning from streams; features and classes may change.

They need ``pip install 'onepass-learn[river]'``.
"""

from onepass.integrations.river import (
    AnomalyScorer,
    Forecaster,
    MLPClassifier,
    MLPRegressor,
    PerceptronClassifier,
    PerceptronRegressor,
    SoftmaxClassifier,
)

__all__ = [
    "AnomalyScorer",
    "Forecaster",
    "MLPClassifier",
    "MLPRegressor",
    "PerceptronClassifier",
    "PerceptronRegressor",
    "SoftmaxClassifier",
]
