"""The exact posterior that one pass is compared with, by another route: a grid over the weight and the noise."""

import numpy as np
from benchmarks.exactness import exact_posterior, gap, perceptron, synthetic


def test_the_posterior_of_one_weight_is_that_of_a_grid() -> None:
    X, y, weights = np.array([[1.0], [-0.5], [2.0]]), np.array([0.8, -0.1, 1.1]), np.array([1.0, 2.0, 1.0])
    w, log_noise = np.linspace(-8.0, 8.0, 2001)[:, None, None], np.linspace(-25.0, 20.0, 1501)[:, None]
    logs = -0.5 * (weights * (np.log(2.0 * np.pi) + log_noise + (y - w * X[:, 0]) ** 2 / np.exp(log_noise))).sum(
        axis=-1
    )
    logs -= 0.5 * (w[:, :, 0] ** 2 / 4.0 + ((log_noise[:, 0] - np.log(0.2)) / 3.0) ** 2)
    density = np.exp(logs) / (2.0 * np.pi * 2.0 * 3.0)
    cell = (w[1, 0, 0] - w[0, 0, 0]) * (log_noise[1, 0] - log_noise[0, 0])
    mass, by_weight = density.sum() * cell, density.sum(axis=1) / density.sum()
    mean = by_weight @ w[:, 0, 0]
    found = exact_posterior(X, y, np.array([4.0]), 0.2, weights)
    np.testing.assert_allclose(found.mean, mean, rtol=1e-3)
    np.testing.assert_allclose(found.std, np.sqrt(by_weight @ (w[:, 0, 0] - mean) ** 2), rtol=1e-3)
    np.testing.assert_allclose(found.log_evidence, np.log(mass), atol=1e-3)


def test_many_rows_are_learned_exactly() -> None:
    found = gap(perceptron(synthetic(3, 500, 0.1), 1.0))
    assert found.distance < 0.03
    assert found.ratio < 1.03
