"""A forecaster of sktime predicts what the library's own predicts, and learns new values without a refit."""

import numpy as np
import pandas as pd
import pytest

from onepass.forecasting import BayesianForecaster, Member

pytest.importorskip("sktime", reason="sktime is not installed")
from sktime.utils.estimator_checks import check_estimator

from onepass.integrations.sktime import OnePassForecaster
from onepass.integrations.sktime.forecaster import _seasons_of

pytestmark = pytest.mark.filterwarnings("ignore:PeriodDtype:FutureWarning")
MONTHS = pd.period_range("2010-01", periods=120, freq="M")
T = np.arange(120)
Y = pd.Series(100 + 10 * np.sin(2 * np.pi * T / 12) + np.random.default_rng(0).normal(size=120), MONTHS, name="sales")
X = pd.DataFrame({"price": np.random.default_rng(1).normal(size=120)}, MONTHS)


def test_predictions_are_those_of_the_forecaster() -> None:
    model = OnePassForecaster().fit(Y[:100], X[:100], fh=[1, 4])
    expected = BayesianForecaster(12).learn(Y[:100].to_numpy(), X[:100].to_numpy()).forecast(4, X[100:104].to_numpy())
    ahead = X[100:104]
    low, high = expected.interval(0.9)
    pairs = (
        (model.predict(X=ahead), expected.mean),
        (model.predict_var(X=ahead), expected.var),
        (model.predict_interval(X=ahead, coverage=0.9), np.column_stack([low, high])),
        (model.predict_quantiles(X=ahead, alpha=[0.3, 0.9]), np.column_stack([expected.ppf(0.3), expected.ppf(0.9)])),
    )
    for ours, numbers in pairs:
        assert list(ours.index) == [MONTHS[100], MONTHS[103]]
        np.testing.assert_allclose(ours.to_numpy(), np.reshape(numbers[[0, 3]], ours.shape), rtol=1e-12)
    np.testing.assert_allclose(model.predict_var(X=ahead, cov=True), expected.cov[np.ix_([0, 3], [0, 3])])
    assert model.predict(X=ahead).name == "sales"


def test_update_learns_what_is_new_and_no_value_twice() -> None:
    model = OnePassForecaster().fit(Y[:60]).update(Y[50:80]).update(Y[80:], update_params=False)
    assert model.forecaster_.n_seen == 120
    whole = BayesianForecaster(12).learn(Y.to_numpy())
    np.testing.assert_array_equal(model.predict(fh=[1, 2, 3]), whole.forecast(3).mean)
    with pytest.raises(NotImplementedError, match="begins after the last value"):
        model.update(Y[:70]).predict(fh=[1])
    assert model.forecaster_.n_seen == 120


def test_counts_have_whole_quantiles() -> None:
    y = pd.Series(np.random.default_rng(0).poisson(0.5, 80), dtype=float)
    found = OnePassForecaster(1, counts=True).fit(y).predict_quantiles(fh=[1, 2, 3], alpha=[0.1, 0.9])
    own = BayesianForecaster(1, counts=True).learn(y.to_numpy()).forecast(3)
    np.testing.assert_array_equal(found.to_numpy(), np.column_stack([own.ppf(0.1), own.ppf(0.9)]))


def test_steps_that_are_left_out_are_missing() -> None:
    model = OnePassForecaster(12).fit(Y[:60], X[:60]).update(Y[63:], X[63:])
    values, inputs = Y.to_numpy().copy(), X.to_numpy().copy()
    values[60:63] = inputs[60:63] = np.nan
    whole = BayesianForecaster(12).learn(values, inputs)
    np.testing.assert_array_equal(model.predict(fh=[1, 2]), whole.forecast(2).mean)


def test_inputs_of_some_steps_ahead_are_enough() -> None:
    model = OnePassForecaster(12).fit(Y, X)
    ahead = pd.DataFrame({"price": [0.5, 2.0]}, pd.period_range("2020-02", periods=2, freq="M"))
    expected = BayesianForecaster(12).learn(Y.to_numpy(), X.to_numpy())
    inputs = [[np.nan], [0.5], [2.0]]
    np.testing.assert_array_equal(model.predict(fh=[2, 3], X=ahead), expected.forecast(3, inputs).mean[1:])


@pytest.mark.parametrize(
    ("index", "season"),
    [
        (MONTHS, 12),
        (pd.date_range("2024-01-01", periods=120, freq="D"), 7),
        (pd.date_range("2024-01-05", periods=120, freq="B"), 5),
        (pd.date_range("2000-03-31", periods=120, freq="QE"), 4),
        (pd.RangeIndex(120), "auto"),
    ],
)
def test_the_frequency_sets_the_season(index: pd.Index, season: object) -> None:
    model = OnePassForecaster().fit(Y.set_axis(index), fh=[1, 2, 3])
    own = model.predict()
    assert own.index[0] > index[-1]
    seasons = (7, 365.25) if season == 7 else season
    np.testing.assert_array_equal(own, BayesianForecaster(seasons).learn(Y.to_numpy()).forecast(3).mean)


@pytest.mark.parametrize(("freq", "seasons"), [("B", (5.0,)), ("BME", (12.0,)), ("BMS", (12.0,)), ("BQE", (4.0,))])
def test_only_working_days_have_weeks_of_five(freq: str, seasons: tuple[float, ...]) -> None:
    assert _seasons_of(pd.date_range("2000-01-31", periods=20, freq=freq)) == seasons


def test_members_and_options_are_passed_on() -> None:
    members = [Member((1, 2))]
    model = OnePassForecaster(1, 5, members, outliers=True).fit(Y)
    assert model.forecaster_.members == tuple(members)
    assert model.forecaster_.outliers


@pytest.mark.filterwarnings("ignore")  # of sktime about pandas
def test_sktimes_checks_pass() -> None:
    results = check_estimator(OnePassForecaster, verbose=False)
    assert len(results) > 500
    assert {name for name, result in results.items() if result != "PASSED"} == set()
