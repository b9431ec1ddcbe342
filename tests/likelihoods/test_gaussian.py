"""Gaussian noise around pieces: moment matches against quadrature, and quantiles."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import ndtri
from scipy.stats import multivariate_normal

from onepass.activations import PiecewiseLinear, as_activation
from onepass.engine.vector_matches import NetworkProgress
from onepass.likelihoods import Gaussian, Heteroscedastic
from onepass.likelihoods.mixtures import Components
from tests.helpers.quadrature import worst_in_deviations


@pytest.mark.parametrize("name", ["relu", "leaky_relu", "linear", "hard_tanh", "hard_sigmoid", "relu6"])
def test_gaussian_noise_around_pieces_is_learned_exactly(name: str) -> None:
    activation = as_activation(name)
    assert isinstance(activation, PiecewiseLinear)
    breaks = tuple(activation.knots)
    for noise in (1e-2, 1.0):
        for y in (-1.0, 0.3, 2.0):
            worst = worst_in_deviations(
                Gaussian(noise),
                activation,
                lambda a, y=y, noise=noise: -0.5 * (y - activation(a)) ** 2 / noise,  # type: ignore[misc]
                y,
                np.linspace(-8, 8, 9),
                np.logspace(-4, 2, 7),
                breaks,
            )
            assert worst < 1e-6, (noise, y)


@pytest.mark.parametrize("name", ["relu", "leaky_relu", "linear", "hard_tanh", "hard_sigmoid", "relu6"])
def test_outliers_at_thirty_sigma_are_learned_exactly(name: str) -> None:
    activation = as_activation(name)
    assert isinstance(activation, PiecewiseLinear)
    for mean in (-3.0, 0.0, 5.0):
        for var in (1e-3, 0.1, 4.0):
            noise = 0.01
            output = activation.moments(mean, var)
            for side in (-30, 30):
                y = float(output.mean) + side * math.sqrt(float(output.var) + noise)
                worst = worst_in_deviations(
                    Gaussian(noise),
                    activation,
                    lambda a, y=y: -0.5 * (y - activation(a)) ** 2 / 0.01,  # type: ignore[misc]
                    y,
                    np.array([mean]),
                    np.array([var]),
                    tuple(activation.knots),
                )
                assert worst < 1e-6, (mean, var, side)


def test_a_bimodal_row_may_widen_the_belief() -> None:
    """y = 1 of |a| from a vague belief near zero: a may be 1 or -1."""
    absolute = PiecewiseLinear([-1.0, 1.0], [0.0])
    step = Gaussian(0.01).moment_match(absolute, 0.0, 0.5, 1.0)
    assert step.information < 0
    assert step.score == pytest.approx(0.0, abs=1e-12)


@pytest.mark.parametrize("name", ["relu", "hard_tanh", "linear", "leaky_relu"])
@given(
    mean=st.floats(-1e6, 1e6),
    var=st.floats(0, 1e12),
    y=st.floats(-1e6, 1e6),
    noise=st.sampled_from([0.0, 1e-12, 1e-3, 1.0, 1e9]),
)
def test_noisy_pieces_never_break_the_belief(name: str, mean: float, var: float, y: float, noise: float) -> None:
    activation = as_activation(name)
    assert isinstance(activation, PiecewiseLinear)
    step = Gaussian(noise).moment_match(activation, mean, var, y)
    assert np.isfinite([step.log_z, step.score * var, step.information]).all()
    assert step.information * var <= 1


def test_quantiles_allow_for_a_noise_that_is_not_known() -> None:
    """Against draws: a noise whose log has a variance, and a target around a certain output."""
    rng = np.random.default_rng(0)
    noise = 0.5 * np.exp(rng.normal(0.0, 1.0, 400_000))
    drawn = rng.normal(0.0, np.sqrt(noise))
    zero, one = np.zeros((1, 1)), np.ones((1, 1))
    unknown = Components(as_activation("linear"), one, zero, zero, zero, zero, 0.5 * one, one)
    for level in (0.02, 0.5, 0.9, 0.99):
        found = Gaussian().at_normal_score(unknown, ndtri(np.array([level])))
        assert (drawn < found).mean() == pytest.approx(level, abs=0.002)
        np.testing.assert_allclose(Gaussian().normal_score(unknown, found), ndtri(level), atol=1e-9)
    known = Gaussian().at_normal_score(unknown._replace(log_noise_vars=zero), ndtri(np.array([0.99])))
    assert known == pytest.approx(math.sqrt(0.5) * 2.3263478740408408)


def test_a_calibrated_noise_is_scaled_and_its_log_shifted() -> None:
    state = NetworkProgress.start(2, 0.1, True, 0.0)
    scale, noise_scale = np.array([4.0, 0.25]), np.array([[2.0, 3.0]])
    state.scale[:] = scale
    mean, target, cov = np.array([0.3, -0.2]), np.array([0.8, 0.1]), np.array([[1.0, 0.4], [0.4, 0.5]])
    outputs, roots = Gaussian().outputs(2), np.sqrt(scale)
    kept = outputs.kept(mean[None], cov[None], state)
    before = kept.copy()
    noise = np.diag(0.1 * noise_scale[0] * scale)
    expected = multivariate_normal.logpdf(target, mean, cov * np.outer(roots, roots) + noise)
    assert outputs.score_rows(kept, target[None], noise_scale)[0, 0] == pytest.approx(expected, rel=1e-12)
    np.testing.assert_array_equal(kept, before)

    pairs, shifted, plain = Heteroscedastic().outputs(2), np.zeros((1, 4)), NetworkProgress.start(2, 0.1, False, 0.0)
    shifted[0, 2:] = np.log(scale)
    scaled = np.diag([4.0, 0.25, 1.0, 1.0])[None]
    rows = (pairs.kept(np.zeros((1, 4)), np.eye(4)[None], state), pairs.kept(shifted, scaled, plain))
    found, expected = (pairs.score_rows(own, target[None], np.ones((1, 2)))[0, 0] for own in rows)
    assert found == pytest.approx(expected, rel=1e-12)
