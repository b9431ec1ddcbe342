"""Calibrated variances: near the rows learned the scale of their errors, far from them no less than was believed."""

import numpy as np
import pytest

from onepass.engine.vector_matches import ALONE, NetworkProgress
from onepass.likelihoods.calibration import calibrated_covs, calibrated_roots, excess_factor, excess_var


def calibrating(scale: list[float], usual_var: list[float]) -> NetworkProgress:
    state = NetworkProgress.start(len(scale), 0.1, True, 0.0)
    state.scale[:], state.usual_var[:] = scale, usual_var
    return state


@pytest.mark.parametrize("alone", [True, False])
@pytest.mark.parametrize("scale", [0.25, 1.0, 4.0])
def test_a_variance_is_scaled_up_to_the_usual_one_and_counts_in_full_beyond(scale: float, alone: bool) -> None:
    usual = 0.5
    var = np.array([0.0, 0.1, usual, 3.0])
    calibrated = scale * var + excess_var(var, np.array(scale), np.array(usual), alone)
    np.testing.assert_allclose(calibrated[:3], scale * var[:3])
    beyond = (ALONE if alone else 1.0) * max(scale, 1.0)  # of every unit of variance that is more than usual
    np.testing.assert_allclose(calibrated[3], scale * usual + beyond * (3.0 - usual))


def test_without_a_usual_variance_there_is_no_excess() -> None:
    np.testing.assert_array_equal(excess_factor(np.array([0.2, 3.0]), np.zeros(2), True), 0.0)


def test_covariances_have_the_calibrated_variances_and_keep_their_correlations() -> None:
    root = np.random.default_rng(0).normal(size=(5, 3, 3))
    covs = root @ root.swapaxes(1, 2)
    noise = calibrating([0.5, 2.0], [0.3, 0.3])  # of two outputs; the third is the log of a noise
    found = calibrated_covs(covs, noise, True)
    before, after = (np.diagonal(each, axis1=1, axis2=2) for each in (covs, found))
    expected = noise.scale * before[:, :2] + excess_var(before[:, :2], noise.scale, noise.usual_var, True)
    np.testing.assert_allclose(after[:, :2], expected, rtol=1e-12)
    np.testing.assert_array_equal(after[:, 2], before[:, 2])
    expected, correlations = (
        each / np.sqrt(var[:, :, None] * var[:, None, :]) for each, var in ((covs, before), (found, after))
    )
    np.testing.assert_allclose(correlations, expected, rtol=1e-12)


def test_outputs_without_variance_are_calibrated_without_a_warning() -> None:
    np.testing.assert_allclose(calibrated_roots(np.zeros((2, 1, 1)), calibrating([0.25], [0.1]), True), 0.5)
