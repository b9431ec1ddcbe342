"""The forecaster of one series with the interface of sktime, for its pipelines, metrics and backtests."""

from onepass._extras import require

require("sktime", "onepass.integrations.sktime")

from onepass.integrations.sktime.forecaster import OnePassForecaster

__all__ = ["OnePassForecaster"]
