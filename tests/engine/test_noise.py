"""How the noise is learned, written out: models by the reference share this part of the compiled code."""

import numpy as np
import pytest

from onepass.activations import as_activation
from onepass.engine.step import (
    RECORD_SIZE,
    SITE_SIZE,
    STATE_FIELDS,
    PerceptronProgress,
    RowRecord,
    learn_scalar,
    learn_with_site,
)
from onepass.engine.vector_matches import GaussianOutputs, HeteroscedasticOutputs, NetworkProgress
from onepass.likelihoods import Gaussian
from tests.helpers import quadrature

MEAN, VAR, Y = 0.4, 0.7, 1.9


def densities(name: str, update: str, noises: np.ndarray) -> np.ndarray:
    """Density of the target for each noise variance, by quadrature."""
    f = as_activation(name)
    if update == "adf":
        a, w = quadrature.gaussian_panels(MEAN, VAR, (0.0,))
        each = np.exp(-0.5 * (Y - f(a)) ** 2 / noises[:, None]) / np.sqrt(2.0 * np.pi * noises[:, None])
        return np.asarray(each @ w)
    mean, var, _ = quadrature.moments(f, MEAN, VAR)
    return np.asarray(np.exp(-0.5 * (Y - mean) ** 2 / (var + noises)) / np.sqrt(2.0 * np.pi * (var + noises)))


@pytest.mark.parametrize("weight", [0.5, 1.0, 20.0, 300.0])
@pytest.mark.parametrize(("name", "update"), [("softplus", "kalman"), ("tanh", "kalman"), ("relu", "adf")])
def test_a_row_moves_the_log_noise_to_its_posterior(name: str, update: str, weight: float) -> None:
    state = PerceptronProgress(0.3, weight)
    learn_scalar(Gaussian(0.3).compiled(as_activation(name), update), state, MEAN, VAR, 0.0, Y)
    log_noise = np.log(0.3) + np.sqrt(2.0 / weight) * np.linspace(-9.0, 9.0, 4001)
    prior = np.exp(-0.25 * weight * (log_noise - np.log(0.3)) ** 2)
    density = densities(name, update, np.exp(log_noise)) * prior / prior.sum()
    posterior = density / density.sum()
    mean = posterior @ log_noise
    assert state.log_evidence == pytest.approx(np.log(density.sum()), rel=1e-4)
    assert np.log(state.noise) == pytest.approx(mean, rel=1e-3)
    assert state.noise_weight == pytest.approx(2.0 / (posterior @ (log_noise - mean) ** 2), rel=2e-2)


@pytest.mark.parametrize("weight", [0.5, 20.0])
def test_a_row_learned_again_and_again_has_the_moments_of_its_joint_posterior(weight: float) -> None:
    """Alone, so that its cavity is the prior: of the output and of the log noise."""
    compiled = Gaussian(0.3).compiled(as_activation("linear"), "adf")
    state, site = PerceptronProgress(0.3, weight), np.full(SITE_SIZE, np.nan)
    mean, var = MEAN, VAR
    for _ in range(60):
        score, _, ratio = learn_with_site(compiled, state, mean, var, 0.0, Y, site)
        mean, var = mean + score * var, var * ratio
    log_noise = np.log(0.3) + np.sqrt(2.0 / weight) * np.linspace(-8.0, 8.0, 1201)[:, None]
    a = np.linspace(MEAN - 8.0, MEAN + 8.0, 1601)
    log_p = -0.25 * weight * (log_noise - np.log(0.3)) ** 2 - 0.5 * (a - MEAN) ** 2 / VAR
    p = np.exp(log_p - 0.5 * (log_noise + (Y - a) ** 2 * np.exp(-log_noise)))
    p /= p.sum()
    for value, found, found_var in ((a, mean, var), (log_noise, np.log(state.noise), 2.0 / state.noise_weight)):
        centre = (p * value).sum()
        assert found == pytest.approx(centre, rel=1e-4)
        assert found_var == pytest.approx((p * (value - centre) ** 2).sum(), rel=1e-3)


def test_a_window_bounds_what_the_noise_rests_on() -> None:
    compiled = Gaussian(0.3).compiled(as_activation("linear"), "adf")
    state = PerceptronProgress(0.3, 5.0, 5.0)
    learn_scalar(compiled, state, MEAN, 1e-6, 0.0, MEAN + 0.5)
    assert state.noise_weight == 5.0


def test_one_wild_row_has_a_bounded_weight() -> None:
    """Under Gaussian noise a residual of a hundred deviations would fix the noise for good."""
    compiled = Gaussian(1.0).compiled(as_activation("linear"), "adf")
    state = PerceptronProgress(1.0, 50.0)
    learn_scalar(compiled, state, 0.0, 1e-6, 0.0, 100.0)
    assert state.noise_weight <= 52.0
    assert state.noise < 10.0


def test_a_row_moves_noise_and_scale_of_every_output() -> None:
    mean, cov, target = np.array([0.1, -0.4]), np.array([[0.5, 0.1], [0.1, 0.2]]), np.array([1.0, 0.5])
    state = NetworkProgress(*np.array([[0.3, 0.1], [20.0, 30.0], [1.2, 0.8], [10.0, 15.0], [0.4, 0.0], [0.0, 0.0]]))
    GaussianOutputs(2).learn_noise(mean, cov, target, state, 3.0, np.inf)
    for k, (noise, weight, scale, rows) in enumerate([(0.3, 20.0, 1.2, 10.0), (0.1, 30.0, 0.8, 15.0)]):
        total, square = cov[k, k] + noise, (target[k] - mean[k]) ** 2
        share = noise / total
        residual = share**2 * square + share * cov[k, k]  # E[(y - f)²] under the belief after the row
        weight += share**2
        assert state.noise_weight[k] == pytest.approx(weight)
        assert state.noise[k] == pytest.approx(noise + 3.0 / weight * (residual - noise))
        assert state.scale_weight[k] == rows + 1.0
        assert state.scale[k] == pytest.approx(scale + 3.0 / (rows + 1.0) * (min(square / total, 9.0) - scale))
        usual, step = ((0.4, 1.0), (0.0, 0.5))[k]  # the first row of the first output, the sixth of the second
        assert state.usual_var[k] == pytest.approx(usual + step * (cov[k, k] - usual))


def test_the_running_noise_of_a_heteroscedastic_output_is_the_mean_of_what_was_expected() -> None:
    mean, cov = np.array([0.1, -1.0]), np.diag([0.5, 0.2])
    state = NetworkProgress(*np.array([[0.3], [10.0], [1.0], [0.0], [0.0], [0.0]]))
    HeteroscedasticOutputs(1, -4.0, 3.0).learn_noise(mean, cov, np.array([1.0]), state, 1.0, np.inf)
    assert (state.noise_weight[0], state.scale[0], state.usual_var[0]) == (11.0, 1.0, 0.0)
    assert state.noise[0] == pytest.approx(0.3 + (np.exp(-1.0 + 0.1) - 0.3) / 11.0)


def test_a_state_has_all_its_numbers_in_its_array_and_in_its_copies() -> None:
    numbers = np.arange(1.0, 1.0 + len(STATE_FIELDS))
    state = PerceptronProgress.from_array(np.concatenate([numbers, PerceptronProgress().trust.to_array()]))
    for other in (state, state.copy(), PerceptronProgress.from_array(state.to_array())):
        assert [getattr(other, name) for name in STATE_FIELDS] == list(numbers)


def test_what_is_recorded_of_a_row_is_read_by_name() -> None:
    state = PerceptronProgress(0.3)
    state.log_density, state.row_evidence = -1.5, -3.0
    records = np.full((2, RECORD_SIZE), np.nan)
    state.record_row(records, 1, 0.25, 4.0, 0.7, 9.0)
    seen = RowRecord.of(records)
    assert (seen.mean[1], seen.var[1], seen.noise[1], seen.noise_weight[1]) == (0.25, 4.0, 0.7, 9.0)
    assert (seen.log_density[1], seen.evidence[1]) == (-1.5, -3.0)
    assert (seen.distrust[1], seen.suspicion[1]) == (state.trust.distrust, state.trust.suspicion)
    assert np.isnan(records[0]).all()
