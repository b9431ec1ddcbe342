"""The example on the page about adding an activation, taken from there and tried out."""

import copy
from pathlib import Path

import numpy as np
import pytest

import onepass
from onepass.activations import Activation
from tests.helpers.extending import run_page
from tests.helpers.quadrature import moments

RNG = np.random.default_rng(0)


@pytest.fixture(scope="module")
def sine() -> Activation:
    """The activation that the page defines."""
    activation = run_page("activation")["Sine"]()
    assert isinstance(activation, Activation)
    return activation


@pytest.mark.parametrize("var", [1e-6, 0.1, 2.0, 50.0])
@pytest.mark.parametrize("mean", [-7.0, 0.0, 0.4, 3.0])
def test_its_moments_equal_quadrature(sine: Activation, mean: float, var: float) -> None:
    np.testing.assert_allclose(sine.moments(mean, var), moments(np.sin, mean, var), atol=1e-12, rtol=1e-9)


def test_without_variance_its_moments_are_the_function(sine: Activation) -> None:
    a = np.linspace(-3.0, 3.0, 7)
    np.testing.assert_allclose(sine.moments(a, 0.0), (np.sin(a), np.zeros(7), np.cos(a)), atol=1e-15)


def test_a_perceptron_learns_and_predicts_with_it(sine: Activation) -> None:
    X = RNG.uniform(-1.0, 1.0, size=(500, 2))
    y = np.sin(X @ [0.8, -0.5]) + RNG.normal(0.0, 0.1, 500)
    model = onepass.BayesianPerceptron(2, sine, bias=False, noise=0.01).learn(X, y)
    std = np.sqrt(np.diag(model.cov))
    assert (np.abs(model.mean - [0.8, -0.5]) < 4 * std).all()
    assert (std < 0.02).all()
    seen = model.predict(X)
    np.testing.assert_allclose(seen.mean, sine(X @ model.mean), atol=1e-3)
    assert ((seen.epistemic > 0) & (seen.epistemic < 0.01)).all()


def test_a_model_with_it_is_copied_but_a_file_cannot_hold_code(sine: Activation, tmp_path: Path) -> None:
    X, y = np.eye(2), np.array([0.5, -0.5])
    model = onepass.BayesianPerceptron(2, sine, noise=0.1).learn(X, y)
    np.testing.assert_array_equal(copy.deepcopy(model).learn(X, y).mean, model.learn(X, y).mean)
    with pytest.raises(TypeError, match="a named activation"):
        onepass.save(model, tmp_path / "model")
    assert list(tmp_path.iterdir()) == []


def test_a_network_has_hidden_units_of_it(sine: Activation) -> None:
    X = RNG.uniform(-2.0, 2.0, size=(600, 1))
    y = np.sin(2.0 * X[:, 0]) + RNG.normal(0.0, 0.1, 600)
    network = onepass.BayesianNetwork(1, (20,), activation=sine).learn(X, y)
    grid = np.linspace(-1.8, 1.8, 50)[:, None]
    assert np.sqrt(np.mean((network.predict(grid).mean - np.sin(2.0 * grid[:, 0])) ** 2)) < 0.1
