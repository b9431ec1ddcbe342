"""The estimators as probabilistic regressors of skpro, for its pipelines, metrics and benchmarks.

`regressor` has the model, `distribution` what it predicts.
"""

from onepass._extras import require

require("skpro", "onepass.integrations.skpro")

from onepass.integrations.skpro.distribution import PredictiveDistribution
from onepass.integrations.skpro.regressor import OnePassProbaRegressor

__all__ = ["OnePassProbaRegressor", "PredictiveDistribution"]
