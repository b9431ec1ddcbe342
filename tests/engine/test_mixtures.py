"""Quantiles of mixtures, row by row, against a root finder."""

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.special import ndtri
from scipy.stats import norm

from onepass.engine.mixtures import mixed_predictions, mixture_quantiles


@pytest.mark.parametrize("level", [1e-12, 0.01, 0.3, 0.5])
@pytest.mark.parametrize("scale", [1e-8, 1.0, 1e6])
def test_quantiles_are_where_the_distribution_has_the_level(level: float, scale: float) -> None:
    rng = np.random.default_rng(0)
    weights = rng.dirichlet(np.ones(4))
    means, stds = scale * rng.normal(0.0, 3.0, (4, 5)), scale * np.exp(rng.normal(size=(4, 5)))
    found = mixture_quantiles(weights[:, None], means, stds, ndtri(np.array([level])))
    for i, quantile in enumerate(found):

        def distance(x: float, i: int = i) -> float:
            return float(weights @ norm.cdf(x, means[:, i], stds[:, i]) - level)

        ends = means[:, i].min() - 40 * stds[:, i].max(), means[:, i].max() + 40 * stds[:, i].max()
        assert quantile == pytest.approx(brentq(distance, *ends, xtol=1e-13 * scale, rtol=1e-14), rel=1e-6)


def test_a_part_without_variance_is_a_step() -> None:
    means, stds = np.array([[0.0], [5.0]]), np.array([[0.0], [0.0]])
    for level, expected in ((0.2, 0.0), (0.45, 5.0)):
        found = mixture_quantiles(np.array([[0.3], [0.7]]), means, stds, ndtri(np.array([level])))
        np.testing.assert_allclose(found, expected, atol=1e-9)


@pytest.mark.parametrize("own_weights", [False, True])
def test_mixtures_have_the_moments_of_draws_from_their_parts(own_weights: bool) -> None:
    rng = np.random.default_rng(1)
    parts = rng.uniform(0.5, 2.0, (5, 4, 3))
    weights = rng.dirichlet(np.ones(4), 3 if own_weights else 1).T.copy()
    weights[0] = 1e-14  # as good as none, however far off the part may be
    parts[:, 0] = 1e20
    shares = np.broadcast_to(weights[1:] / weights[1:].sum(axis=0), (3, 3))
    found = mixed_predictions(1e-12, weights, parts)
    for mean, var in ((0, 1), (2, 3)):
        np.testing.assert_allclose(found[mean], (shares * parts[mean, 1:]).sum(axis=0))
        square = (shares * (parts[var, 1:] + parts[mean, 1:] ** 2)).sum(axis=0)
        np.testing.assert_allclose(found[var], square - found[mean] ** 2)
    np.testing.assert_allclose(found[4], (shares * parts[4, 1:]).sum(axis=0))
