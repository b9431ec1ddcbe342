"""The compiled rule of the paper: by hand, on the grid of Section V, and its guard against negative variances."""

import math
from collections.abc import Callable
from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from onepass._typing import FloatArray
from onepass.activations import PaperSigmoid, as_activation
from onepass.likelihoods import Gaussian
from tests.helpers import quadrature

PAPER_MEANS = np.arange(-30, 31) * 0.1
PAPER_VARS = np.arange(11) * 0.2


def test_one_kalman_step_by_hand() -> None:
    # Linear output: mu_y = 1, sigma_y² = 2 + 0.5, sigma_ya² = 2. k = 2/2.5 = 0.8, so the mean of a moves by
    # 0.8 (3 - 1) = 1.6 = score * 2 and its variance by -0.8 * 2 = -1.6 = -information * 4.
    step = Gaussian(0.5).moment_match(as_activation("linear"), 1.0, 2.0, 3.0, "kalman")
    assert (step.score, step.information) == pytest.approx((0.8, 0.4))
    assert step.log_z == pytest.approx(-0.5 * (math.log(2 * math.pi * 2.5) + 4 / 2.5))


def test_one_sigmoid_step_by_hand() -> None:
    # mu_a = 0, sigma_a² = 8/π: λ² sigma_a² = 1, t = √2, mu_y = 1/2, sigma_y² = (1 - 1/√2)/4,
    # sigma_ya² = λ sigma_a²/t * 1/√(2π); with epsilon = 0.1.
    lam, var = math.sqrt(math.pi / 8), 8 / math.pi
    total = (1 - 1 / math.sqrt(2)) / 4 + 0.1
    cov = lam * var / math.sqrt(2) / math.sqrt(2 * math.pi)
    step = Gaussian(0.1).moment_match(PaperSigmoid(), 0.0, var, 1.0, "kalman")
    assert step.score * var == pytest.approx(cov / total * 0.5, rel=1e-13)
    assert step.information * var**2 == pytest.approx(cov**2 / total, rel=1e-13)


def paper_grid(
    match: Callable[[float, float, float], tuple[float, float]],
    log_likelihood: Callable[..., FloatArray],
) -> FloatArray:
    """Absolute errors of mean and variance over the grid of Section V-A, for the label that agrees."""
    errors = [(0.0, 0.0)] * len(PAPER_MEANS)  # no variance, nothing learned
    for mean in PAPER_MEANS:
        for var in PAPER_VARS[1:]:
            y = float(mean > 0)
            truth = quadrature.tilted(partial(log_likelihood, y=y), mean, var)
            score, information = match(mean, var, y)
            errors.append((abs(mean + score * var - truth.mean), abs(var - information * var**2 - truth.var)))
    return np.array(errors)


def test_comparison_with_ground_truth_of_section_five() -> None:
    """The reading that reproduces the paper: noise 0.01 and the truth p(y|a) = N(y; s(a), 0.01)."""

    def paper_rule(mean: float, var: float, y: float) -> tuple[float, float]:
        step = Gaussian(0.01).moment_match(PaperSigmoid(), mean, var, y, "kalman")
        return float(step.score), float(step.information)

    errors = paper_grid(paper_rule, lambda a, y: -0.5 * (y - PaperSigmoid()(a)) ** 2 / 0.01)
    mean_error, var_error = errors.mean(axis=0)
    assert mean_error == pytest.approx(0.0907, abs=0.001)
    assert var_error == pytest.approx(0.1345, abs=0.001)


@given(mean=st.floats(-1e3, 1e3), var=st.floats(0, 1e6), y=st.floats(-1e3, 1e3), noise=st.floats(0, 1e3))
@pytest.mark.parametrize("name", ["sigmoid", "tanh", "relu", "linear", "gelu", "softplus"])
@pytest.mark.parametrize("moments", ["exact", "paper"])
def test_a_kalman_step_never_takes_more_variance_than_there_is(
    name: str, moments: str, mean: float, var: float, y: float, noise: float
) -> None:
    step = Gaussian(noise).moment_match(as_activation(name, moments), mean, var, y, "kalman")
    assert math.isfinite(step.score * var)
    assert 0 <= step.information * var <= 1 + 1e-12


def unguarded_information(mean: float, var: float, noise: float) -> float:
    output = PaperSigmoid().moments(mean, var)
    return float(output.slope**2 / (output.var + noise))


@given(mean=st.floats(-1e3, 1e3), var=st.floats(1e-12, 1e6), noise=st.floats(0.01, 10))
def test_the_guard_does_nothing_from_noise_001_on(mean: float, var: float, noise: float) -> None:
    step = Gaussian(noise).moment_match(PaperSigmoid(), mean, var, 1.0, "kalman")
    assert float(step.information) == pytest.approx(unguarded_information(mean, var, noise), rel=1e-12, abs=1e-300)


def test_the_guard_is_needed_without_noise() -> None:
    assert unguarded_information(0.0, 0.1, 0.0) * 0.1 > 1
    assert Gaussian(0.0).moment_match(PaperSigmoid(), 0.0, 0.1, 1.0, "kalman").information * 0.1 <= 1


@pytest.mark.parametrize(("name", "threshold"), [("sigmoid", 0.00733), ("tanh", 0.02932)])
def test_the_noise_from_which_the_guard_does_nothing(name: str, threshold: float) -> None:
    """``A² v <= Var f(a) + noise`` holds everywhere if the noise is at least the largest difference of the two."""
    activation = as_activation(name, "paper")
    mean, var = np.meshgrid(np.linspace(-8.0, 8.0, 321), np.geomspace(1e-8, 1e4, 600))
    output = activation.moments(mean, var)
    needed = output.slope**2 * var - output.var
    assert needed.max() == pytest.approx(threshold, rel=1e-3)
    assert needed.max() < threshold

    def is_limited(noise: float) -> bool:
        step = Gaussian(noise).moment_match(activation, mean, var, 1.0, "kalman")
        return bool((step.information < output.slope**2 / (output.var + noise) * (1.0 - 1e-9)).any())

    assert not is_limited(threshold)
    assert is_limited(0.99 * threshold)
    exact = as_activation(name).moments(mean, var)
    assert (exact.slope**2 * var - exact.var).max() < 1e-12


def test_no_variance_teaches_nothing() -> None:
    for name in ("sigmoid", "relu", "linear"):
        for noise in (0.0, 0.1):
            step = Gaussian(noise).moment_match(as_activation(name), 0.3, 0.0, 1.0, "kalman")
            assert not step.score.any()
            assert not step.information.any()
