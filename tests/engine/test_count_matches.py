"""Compiled matches of counts: against quadrature, and probabilities that sum to one."""

import math

import numpy as np
import pytest

from onepass._typing import FloatArray
from onepass.activations import as_activation
from onepass.likelihoods import Poisson
from tests.helpers.quadrature import worst_in_deviations


@pytest.mark.parametrize("count", [0.0, 1.0, 7.0, 100.0])
def test_counts_are_learned_exactly(count: float) -> None:
    def likelihood(a: FloatArray) -> FloatArray:
        return np.asarray(count * a - np.exp(np.minimum(a, 300.0)) - math.lgamma(count + 1.0))

    means, variances = np.linspace(-8, 8, 9), np.logspace(-4, 2, 7)
    assert worst_in_deviations(Poisson(), as_activation("exp"), likelihood, count, means, variances) < 1e-6


@pytest.mark.parametrize("update", ["adf", "kalman"])
def test_counts_have_probabilities_that_sum_to_one(update: str) -> None:
    counts = np.arange(20_000.0)
    for mean, var in [(0.5, 0.2), (2.0, 0.0), (1.0, 1.5)]:
        output = as_activation("exp").moments(mean, var)
        probabilities = np.exp(Poisson().moment_match(as_activation("exp"), mean, var, counts, update).log_z)
        assert probabilities.sum() == pytest.approx(1.0, abs=1e-4)
        assert probabilities @ counts == pytest.approx(float(output.mean), rel=1e-2)
