"""How the noise is learned, written out: models by the reference share this part of the compiled code."""

import numpy as np
import pytest

from onepass.activations import as_activation
from onepass.engine.step import LearningState, learn_scalar
from onepass.engine.vector_matches import GaussianOutputs, HeteroscedasticOutputs, NoiseState
from onepass.likelihoods import Gaussian
from tests.helpers import quadrature

MEAN, VAR, Y = 0.4, 0.7, 1.9


def square_after(name: str, update: str, noise: float) -> tuple[float, float]:
    """``E[(y - f(a))²]`` after the row, and the share of the variance that it left, by quadrature."""
    f = as_activation(name)
    a, w = quadrature.gaussian_panels(MEAN, VAR, (0.0,))
    if update == "adf":  # under the tilted density itself
        tilted = w * np.exp(-0.5 * (Y - f(a)) ** 2 / noise)
        tilted /= tilted.sum()
        return float(tilted @ (Y - f(a)) ** 2), float(tilted @ (a - tilted @ a) ** 2) / VAR
    mean, var, slope = quadrature.moments(f, MEAN, VAR)
    score, ratio = slope * (Y - mean) / (var + noise), 1.0 - slope**2 * VAR / (var + noise)
    after, after_var, _ = quadrature.moments(f, MEAN + score * VAR, VAR * ratio)
    return (Y - after) ** 2 + after_var, ratio


@pytest.mark.parametrize("window", [np.inf, 5.0])
@pytest.mark.parametrize("seen", [0.0, 50.0])
@pytest.mark.parametrize(("name", "update"), [("softplus", "kalman"), ("tanh", "kalman"), ("relu", "adf")])
def test_a_row_moves_the_noise_towards_its_squared_residual(name: str, update: str, seen: float, window: float) -> None:
    activation = as_activation(name)
    state = LearningState(0.3, 20.0, window, 0.0, seen)
    learn_scalar(Gaussian(0.3).compiled(activation, update), state, MEAN, VAR, VAR, 0.0, Y)
    residual = Y - quadrature.moments(activation, MEAN, VAR, (0.0,))[0]
    noise = max(0.3, residual**2) if seen == 0.0 else 0.3
    square, share = square_after(name, update, noise)
    weight = 20.0 + share**2
    assert state.noise_weight == pytest.approx(weight, rel=1e-6)
    assert state.noise == pytest.approx(noise + max(3.0 / weight, 1.0 / window) * (square - noise), rel=1e-6)


def test_a_row_moves_noise_and_scale_of_every_output() -> None:
    mean, cov, target = np.array([0.1, -0.4]), np.array([[0.5, 0.1], [0.1, 0.2]]), np.array([1.0, 0.5])
    state = NoiseState(*np.array([[0.3, 0.1], [20.0, 30.0], [1.2, 0.8], [10.0, 15.0]]))
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


def test_the_running_noise_of_a_heteroscedastic_output_is_the_mean_of_what_was_expected() -> None:
    mean, cov = np.array([0.1, -1.0]), np.diag([0.5, 0.2])
    state = NoiseState(*np.array([[0.3], [10.0], [1.0], [0.0]]))
    HeteroscedasticOutputs(1, -4.0, 3.0).learn_noise(mean, cov, np.array([1.0]), state, 1.0, np.inf)
    assert (state.noise_weight[0], state.scale[0]) == (11.0, 1.0)
    assert state.noise[0] == pytest.approx(0.3 + (np.exp(-1.0 + 0.1) - 0.3) / 11.0)
