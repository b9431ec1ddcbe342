"""Distributions of skpro have the numbers of the prediction, whichever rows are asked for."""

import numpy as np
import pandas as pd
import pytest

from onepass import BayesianMLPRegressor, BayesianPerceptronRegressor, Prediction

pytest.importorskip("skpro", reason="skpro is not installed")
from skpro.utils import check_estimator

from onepass.integrations.skpro import PredictiveDistribution

RNG = np.random.default_rng(0)
X = RNG.normal(size=(150, 3))
Y = X @ [1.0, -2.0, 0.5] + 0.3 * RNG.normal(size=150)
NAMES = pd.Index([f"row {k}" for k in range(6)])


@pytest.fixture(params=[BayesianPerceptronRegressor(drift="auto"), BayesianMLPRegressor((5,), random_state=0)])
def prediction(request: pytest.FixtureRequest) -> Prediction:
    found: Prediction = request.param.fit(X, Y).predict_dist(X[:6])
    return found


def test_moments_quantiles_and_densities_are_those_of_the_prediction(prediction: Prediction) -> None:
    found = PredictiveDistribution(prediction, index=NAMES, columns=["y"])
    x, p = np.linspace(-3.0, 3.0, 6), np.linspace(0.05, 0.95, 6)
    pairs = (
        (found.mean(), prediction.mean),
        (found.var(), prediction.var),
        (found.pdf(x[:, None]), prediction.pdf(x)),
        (found.log_pdf(x[:, None]), prediction.logpdf(x)),
        (found.cdf(x[:, None]), prediction.cdf(x)),
        (found.ppf(p[:, None]), prediction.ppf(p)),
    )
    for ours, expected in pairs:
        assert list(ours.index) == list(NAMES)
        np.testing.assert_allclose(ours["y"], expected, rtol=1e-12)


def test_rows_may_be_chosen_in_any_order_and_more_than_once(prediction: Prediction) -> None:
    found = PredictiveDistribution(prediction, index=NAMES, columns=["y"]).iloc[[4, 1, 4], :]
    x = np.array([0.0, 1.0, 2.0])
    assert list(found.index) == ["row 4", "row 1", "row 4"]
    expected = [prediction.cdf(np.full(6, value))[row] for row, value in zip([4, 1, 4], x, strict=True)]
    np.testing.assert_allclose(found.cdf(x[:, None])["y"], expected, rtol=1e-12)
    np.testing.assert_allclose(found.iloc[[1], :].mean()["y"], prediction.mean[[1]], rtol=1e-12)


def test_a_single_row_is_a_scalar_distribution(prediction: Prediction) -> None:
    found = PredictiveDistribution(prediction, index=NAMES, columns=["y"]).iat[2, 0]
    assert found.shape == ()
    assert found.mean() == prediction.mean[2]
    assert found.ppf(0.9) == prediction.ppf(np.full(6, 0.9))[2]


@pytest.mark.filterwarnings("ignore::UserWarning")  # that what it computes by sampling is not exact
def test_skpros_checks_pass() -> None:
    results = check_estimator(PredictiveDistribution, verbose=False)
    assert {name for name, result in results.items() if result != "PASSED"} == set()
