"""A regressor of skpro predicts what the estimator predicts, and learns more rows as it does."""

import numpy as np
import pandas as pd
import pytest

from onepass import BayesianMLPRegressor, BayesianPerceptronRegressor

pytest.importorskip("skpro", reason="skpro is not installed")
from skpro.utils import check_estimator

from onepass.integrations.skpro import OnePassProbaRegressor

RNG = np.random.default_rng(0)
X = pd.DataFrame(RNG.normal(size=(300, 3)), columns=["a", "b", "c"])
Y = pd.DataFrame({"y": X["a"] - 2.0 * X["b"] + 0.3 * RNG.normal(size=300)})
ESTIMATORS = [
    BayesianPerceptronRegressor(intervals="adaptive"),
    BayesianPerceptronRegressor(drift="auto"),
    BayesianMLPRegressor((5,), shuffle=False, random_state=0),
]


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_predictions_are_those_of_the_estimator(estimator: BayesianPerceptronRegressor) -> None:
    new = X[200:].set_axis(range(900, 1000))
    model = OnePassProbaRegressor(estimator).fit(X[:200], Y[:200])
    expected = model.estimator_.predict_dist(new)
    low, high = expected.ppf(0.05), expected.ppf(0.95)
    pairs = (
        (model.predict(new), expected.mean),
        (model.predict_var(new), expected.var),
        (model.predict_quantiles(new, alpha=[0.05, 0.95]), np.column_stack([low, high])),
        (model.predict_interval(new, coverage=0.9), np.column_stack(expected.interval(0.9))),
        (model.predict_proba(new).mean(), expected.mean),
    )
    for ours, numbers in pairs:
        assert list(ours.index) == list(new.index)
        assert ours.columns.get_level_values(0)[0] == "y"
        np.testing.assert_allclose(ours.to_numpy(), np.reshape(numbers, ours.shape), rtol=1e-12)


def test_update_learns_more_rows_as_partial_fit_does() -> None:
    model = OnePassProbaRegressor(BayesianPerceptronRegressor()).fit(X[:200], Y[:200]).update(X[200:], Y[200:])
    expected = BayesianPerceptronRegressor().fit(X[:200], Y["y"][:200]).partial_fit(X[200:], Y["y"][200:])
    assert model.estimator_.n_seen_ == 300
    np.testing.assert_allclose(model.predict(X)["y"], expected.predict(X), rtol=1e-12)


def test_the_estimator_that_was_given_stays_as_it_is() -> None:
    given = BayesianPerceptronRegressor()
    OnePassProbaRegressor(given).fit(X, Y)
    assert not given.__sklearn_is_fitted__()


def test_missing_numbers_are_taken_if_the_estimator_takes_them() -> None:
    holes = X.mask(X > 1.5)
    model = OnePassProbaRegressor(BayesianPerceptronRegressor(missing="mean")).fit(holes, Y)
    assert model.get_tag("capability:missing")
    assert model.predict(holes).notna().all(axis=None)
    assert not OnePassProbaRegressor().get_tag("capability:missing")


def test_skpros_checks_pass() -> None:
    results = check_estimator(OnePassProbaRegressor, verbose=False)
    assert {name for name, result in results.items() if result != "PASSED"} == set()
