"""What a regressor reports of its weights is their posterior given all rows."""

import numpy as np
import pytest

from onepass import BayesianPerceptronRegressor
from tests.models.test_learned_noise import by_quadrature, problem

INTERCEPT_VAR = 16.0  # the default prior of the intercept


@pytest.mark.parametrize(("n", "times"), [(6, 1), (18, 1), (18, 10)])
def test_coefficients_are_those_of_the_posterior_averaged_over_the_noise(n: int, times: int) -> None:
    X, y = problem(5, n, 0.1)
    weights = np.full(n, float(times))
    found = BayesianPerceptronRegressor(prior_scale=1.0).fit(X, y, sample_weight=weights)
    design = np.column_stack([np.full(n, np.sqrt(INTERCEPT_VAR)), (X - X.mean(axis=0)) / X.std(axis=0)])
    exact = by_quadrature(design, (y - y.mean()) / y.std(), 1.0, weights)
    factor = y.std() / X.std(axis=0)
    assert np.max(np.abs(found.coef_ / factor - exact.mean[1:]) / exact.std[1:]) < 0.01
    np.testing.assert_allclose(found.coef_std_ / factor, exact.std[1:], rtol=0.01)
    middle = y.std() * np.sqrt(INTERCEPT_VAR) * exact.mean[0] + y.mean()
    assert found.intercept_ == pytest.approx(middle - found.coef_ @ X.mean(axis=0), abs=0.01 * y.std())
