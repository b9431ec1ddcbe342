import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from onepass.activations import as_activation
from onepass.gaussian import FloatArray
from onepass.observations import Gaussian, kalman_step
from tests import quadrature

SIGMOID = as_activation("sigmoid")


def test_one_step_by_hand() -> None:
    # Linear output: mu_y = 1, sigma_y² = 2 + 0.5, sigma_ya² = 2. k = 2/2.5 = 0.8, so the mean of a moves by
    # 0.8 (3 - 1) = 1.6 = alpha * 2 and its variance by -0.8 * 2 = -1.6 = -kappa * 4.
    step = kalman_step(as_activation("linear"), Gaussian(0.5), 1.0, 2.0, 3.0)
    assert step == pytest.approx((0.8, 0.4))


def test_one_sigmoid_step_by_hand() -> None:
    # mu_a = 0, sigma_a² = 8/π: λ² sigma_a² = 1, t = √2, mu_y = 1/2, sigma_y² = (1 - 1/√2)/4,
    # sigma_ya² = λ sigma_a²/t * 1/√(2π); with epsilon = 0.1.
    lam, var = math.sqrt(math.pi / 8), 8 / math.pi
    total = (1 - 1 / math.sqrt(2)) / 4 + 0.1
    cov = lam * var / math.sqrt(2) / math.sqrt(2 * math.pi)
    step = kalman_step(SIGMOID, Gaussian(0.1), 0.0, var, 1.0)
    assert step.alpha * var == pytest.approx(cov / total * 0.5, rel=1e-13)
    assert step.kappa * var**2 == pytest.approx(cov**2 / total, rel=1e-13)


def test_comparison_with_ground_truth_of_section_five() -> None:
    """The paper's grid with noise 0.01 and the truth p(y|a) = N(y; s(a), 0.01)."""
    errors = []
    for mean in np.round(np.arange(-30, 31) * 0.1, 10):
        for var in np.arange(11) * 0.2:
            if var == 0:
                errors.append((0.0, 0.0))
                continue
            y = float(mean > 0)
            step = kalman_step(SIGMOID, Gaussian(0.01), mean, var, y)

            def likelihood(a: FloatArray, y: float = y) -> FloatArray:
                return np.exp(-0.5 * (y - SIGMOID(a)) ** 2 / 0.01)

            truth = quadrature.tilted(likelihood, mean, var)
            ours = (mean + step.alpha * var, var - step.kappa * var**2)
            errors.append(tuple(np.abs(np.subtract(ours, truth))))
    mean_error, var_error = np.mean(errors, axis=0)
    assert mean_error == pytest.approx(0.0907, abs=0.001)
    assert var_error == pytest.approx(0.1345, abs=0.001)


@given(mean=st.floats(-1e3, 1e3), var=st.floats(0, 1e6), y=st.floats(-1e3, 1e3), noise=st.floats(0, 1e3))
@pytest.mark.parametrize("name", ["sigmoid", "tanh", "relu", "linear"])
def test_a_step_never_takes_more_variance_than_there_is(
    name: str, mean: float, var: float, y: float, noise: float
) -> None:
    step = kalman_step(as_activation(name), Gaussian(noise), mean, var, y)
    assert math.isfinite(step.alpha * var)
    assert 0 <= step.kappa * var <= 1 + 1e-12


def unguarded_kappa(mean: float, var: float, noise: float) -> float:
    output = SIGMOID.moments(mean, var)
    return float(output.slope**2 / (output.var + noise))


@given(mean=st.floats(-1e3, 1e3), var=st.floats(1e-12, 1e6), noise=st.floats(0.01, 10))
def test_the_guard_does_nothing_from_noise_001_on(mean: float, var: float, noise: float) -> None:
    step = kalman_step(SIGMOID, Gaussian(noise), mean, var, 1.0)
    assert step.kappa == pytest.approx(unguarded_kappa(mean, var, noise), rel=1e-12, abs=1e-300)


def test_the_guard_is_needed_without_noise() -> None:
    assert unguarded_kappa(0.0, 0.1, 0.0) * 0.1 > 1
    assert kalman_step(SIGMOID, Gaussian(0.0), 0.0, 0.1, 1.0).kappa * 0.1 <= 1


def test_no_variance_teaches_nothing() -> None:
    for name in ("sigmoid", "relu", "linear"):
        for noise in (0.0, 0.1):
            assert kalman_step(as_activation(name), Gaussian(noise), 0.3, 0.0, 1.0) == (0.0, 0.0)
