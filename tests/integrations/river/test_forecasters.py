"""The forecaster with River's interface gives the forecasts of the library's own."""

import copy
import pickle
from typing import Any

import numpy as np
import pytest
import river
from river import datasets, evaluate, metrics

from onepass import BayesianForecaster
from onepass.river import Forecaster


def test_forecasts_are_those_of_the_forecaster_behind() -> None:
    rng = np.random.default_rng(0)
    y, x = 50.0 + rng.normal(size=60).cumsum(), rng.normal(size=60)
    model, own = Forecaster(season_length=4, horizon=3), BayesianForecaster(4, 3)
    for value, driver in zip(y, x, strict=True):
        model.learn_one(value, {"driver": driver})
        own.learn(value, [driver])
    np.testing.assert_array_equal(model.forecast(2, [{"driver": 1.0}, {}]), own.forecast(2, [[1.0], [np.nan]]).mean)
    np.testing.assert_array_equal(model.forecast(2), own.forecast(2).mean)
    assert isinstance(model, river.time_series.base.Forecaster)


def test_counts_are_predicted_as_whole_numbers() -> None:
    y = np.random.default_rng(0).poisson(0.5, 80).astype(float)
    model, own = Forecaster(season_length=1, counts=True), BayesianForecaster(1, counts=True).learn(y)
    for value in y:
        model.learn_one(value)
    assert model.predict(3).ppf(0.9).tolist() == own.forecast(3).ppf(0.9).tolist()
    assert model.clone().counts
    with pytest.raises(ValueError, match="counts 0, 1, 2"):
        model.learn_one(0.5)


def test_unknown_inputs_are_refused() -> None:
    model = Forecaster(horizon=3)
    model.learn_one(1.0, {"a": 1.0, "day": "Monday"})
    model.learn_one(2.0, {"a": None, "week": "first"})
    with pytest.raises(ValueError, match="'b'"):
        model.learn_one(1.0, {"b": 1.0})
    with pytest.raises(ValueError, match="each of the 2 steps"):
        model.forecast(2, [{"a": 1.0}])


def test_a_clone_has_the_same_arguments() -> None:
    clone = Forecaster(season_length=(24, 168), outliers=True).clone()
    assert clone.season_length == (24, 168)
    assert clone.outliers


def test_rivers_evaluation_takes_it() -> None:
    made: Any = metrics
    bundled: Any = datasets
    model = Forecaster(season_length=12, horizon=3)
    found = evaluate.evaluate(bundled.AirlinePassengers(), model, made.MAE(), horizon=3)
    errors = [one.get() for one in found.metrics]
    assert len(errors) == 3
    assert max(errors) < 32.8  # which a tuned SNARIMAX has on average


def test_a_pickled_model_goes_on_as_the_original() -> None:
    rng = np.random.default_rng(0)
    model = Forecaster(season_length=4, horizon=3)
    for value, driver in rng.normal(size=(60, 2)):
        model.learn_one(value, {"driver": driver})
    copies = [pickle.loads(pickle.dumps(model)), copy.deepcopy(model)]
    for one in (model, *copies):
        one.learn_one(2.0, {"driver": 1.0})
    for one in copies:
        assert one.forecast(5, [{"driver": 0.5}] * 5) == model.forecast(5, [{"driver": 0.5}] * 5)
