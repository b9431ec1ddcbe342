"""Safe for a long life: hard rows by the hundred thousand, and digits against extended precision."""

from typing import Any

import numpy as np
import pytest
from benchmarks.endurance import hard_stream, inspect
from mpmath import mp, mpf

from onepass import BayesianPerceptron
from onepass.activations import NAMES

KERNELS = ["rows", "blocks"]


@pytest.mark.parametrize(
    "options",
    [
        {"noise": 1e-6, "process_noise": 1e-20},
        {"noise": 1e-6, "process_noise": 1e-12},
        {"noise": 1e-6, "forgetting": 0.999},
        {"noise": 1e-6, "covariance": "diagonal"},
        {"noise": 1e-6, "dtype": "float32"},
        {"noise": "learn"},
    ],
    ids=str,
)
def test_hard_rows_leave_a_sound_belief_with_every_extra(options: dict[str, Any]) -> None:
    model = BayesianPerceptron(12, "linear", **options)
    for X, y in hard_stream(2_000, 12, seed=0):
        model.learn(X, y)
    if model.cov.ndim == 1:
        assert (model.cov >= 0).all()
        return
    health = inspect(model)
    assert health.finite
    assert health.symmetric
    assert health.smallest_eigenvalue >= -1e-6 * health.largest_eigenvalue  # float32's digits
    assert health.smallest_predictive_variance >= 0


def targets_for(model: BayesianPerceptron, pre_activations: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    output = model.activation(pre_activations)
    if model.observation.name == "bernoulli":
        return (rng.uniform(size=len(output)) < output).astype(float)
    if model.observation.name == "poisson":
        return rng.poisson(np.minimum(output, 1e6)).astype(float)
    return np.asarray(output + rng.normal(0, 1e-3, len(output)))


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("name", NAMES)
def test_hard_rows_leave_a_sound_belief_with_every_activation(name: str, kernel: str) -> None:
    probe = BayesianPerceptron(12, name)
    noise = 1e-6 if probe.observation.name == "gaussian" else None
    model = BayesianPerceptron(12, name, noise=noise, kernel=kernel)
    rng = np.random.default_rng(1)
    for X, y in hard_stream(2_000, 12, seed=0):
        model.learn(X, targets_for(model, y, rng))
    health = inspect(model)
    assert health.finite
    assert health.symmetric
    assert health.largest_eigenvalue > 0  # a belief that is certain of everything has stopped learning
    assert health.smallest_eigenvalue >= -1e-12 * health.largest_eigenvalue
    assert health.smallest_predictive_variance >= 0


@pytest.mark.parametrize("noise", [1e-4, 1e-2, 1.0])
def test_float32_blocks_are_as_right_as_their_rows(noise: float) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 160))
    y = X @ rng.normal(size=160) + rng.normal(0, np.sqrt(noise), 400)
    single = BayesianPerceptron(160, "linear", noise=noise, dtype="float32").learn(X, y)
    double = BayesianPerceptron(160, "linear", noise=noise).learn(X, y)
    std = np.sqrt(np.diag(double.cov))
    assert np.abs((single.mean - double.mean) / std).max() < 0.2
    np.testing.assert_allclose(np.sqrt(np.diag(single.cov)), std, rtol=0.05)


@pytest.mark.parametrize("kernel", KERNELS)
def test_a_hundred_thousand_hard_rows_leave_a_sound_belief(kernel: str) -> None:
    model = BayesianPerceptron(12, "linear", noise=1e-6, kernel=kernel)
    for X, y in hard_stream(100_000, 12, seed=0):
        model.learn(X, y)
    health = inspect(model)
    assert health.finite
    assert health.symmetric
    assert health.smallest_eigenvalue >= -1e-12 * health.largest_eigenvalue
    assert health.smallest_predictive_variance >= 0
    assert model.n_seen == 100_000


def extended_posterior(X: np.ndarray, y: np.ndarray, noise: float) -> tuple[np.ndarray, np.ndarray]:
    """Mean and standard deviations of the linear posterior, from the normal equations with 60 digits."""
    with mp.workdps(60):
        d = X.shape[1]
        rows = [[mpf(float(value)) for value in row] for row in X]
        targets = [mpf(float(value)) for value in y]
        precision = mp.eye(d)
        shift = mp.zeros(d, 1)
        for row, target in zip(rows, targets, strict=True):
            for i in range(d):
                shift[i] += row[i] * target / mpf(noise)
                for j in range(d):
                    precision[i, j] += row[i] * row[j] / mpf(noise)
        cov = mp.inverse(precision)
        mean = cov * shift
        return np.array([float(m) for m in mean]), np.array([float(mp.sqrt(cov[i, i])) for i in range(d)])


def scaled_rows(n: int = 2000, d: int = 6) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(4)
    scales = np.logspace(-4, 4, d)
    X = rng.normal(size=(n, d)) * scales
    return X, X @ (rng.normal(size=d) / scales) + rng.normal(0, 1e-3, n)


def collinear_rows(n: int = 500, d: int = 5) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(5)
    X = rng.normal(size=(n, d))
    X[:, 1] = X[:, 0] + 1e-4 * rng.normal(size=n)
    X[:, 2] = 2 * X[:, 0] - X[:, 1]
    return X, X @ rng.normal(size=d) + rng.normal(0, 1e-3, n)


@pytest.mark.parametrize("update", ["adf", "kalman"])
@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("rows", [scaled_rows, collinear_rows])
def test_belief_agrees_with_extended_precision(rows: Any, kernel: str, update: str) -> None:
    X, y = rows()
    mean, std = extended_posterior(X, y, 1e-6)
    model = BayesianPerceptron(X.shape[1], "linear", bias=False, noise=1e-6, kernel=kernel, update=update).learn(X, y)
    ours = np.sqrt(np.diag(model.cov))
    np.testing.assert_allclose(ours, std, rtol=1e-6)
    assert (np.abs(model.mean - mean) <= 1e-6 * np.maximum(std, np.abs(mean))).all()


def test_large_covariances_give_way_to_their_root_before_their_digits_do() -> None:
    X, y = collinear_rows(200, 5)
    model = BayesianPerceptron(5, "linear", bias=False, noise=1e-6, kernel="blocks").learn(X, y)
    assert model._state.belief.needs_square_root
    benign = BayesianPerceptron(5, "linear", bias=False, noise=0.1, kernel="blocks")
    benign.learn(np.random.default_rng(0).normal(size=(200, 5)), y)
    assert not benign._state.belief.needs_square_root
