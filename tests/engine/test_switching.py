"""Weights of competing hypotheses against the sum over all paths that the truth can take through them."""

from itertools import product

import numpy as np
import pytest

from onepass._typing import FloatArray
from onepass.engine.switching import Switching


def by_enumeration(log_densities: FloatArray, start: FloatArray, entries: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Weights before each row, and log evidence of each prefix: sums over all paths of hypotheses."""
    count, n = log_densities.shape
    densities = np.exp(log_densities)
    step = (1.0 - entries.sum()) * np.eye(count) + entries
    weights, evidences = [], []
    for rows in range(n):
        totals = np.zeros(count)
        for path in product(range(count), repeat=rows + 1):
            share = start[path[0]]
            for i in range(rows):
                share *= densities[path[i], i] * step[path[i], path[i + 1]]
            totals[path[-1]] += share
        weights.append(totals / totals.sum())
        evidences.append(np.log(totals @ densities[:, rows]))
    return np.array(weights), np.array(evidences)


def test_weights_and_evidence_are_those_of_all_paths() -> None:
    rng = np.random.default_rng(0)
    log_densities = rng.normal(size=(3, 6)) * 2.0
    start, entries = np.array([0.5, 0.3, 0.2]), np.array([0.07, 0.02, 0.01])
    switching = Switching(start, entries)
    before, mixture = switching.learn(log_densities)
    weights, evidences = by_enumeration(log_densities, start, entries)
    np.testing.assert_allclose(before, weights, rtol=1e-12)
    np.testing.assert_allclose(np.cumsum(mixture), evidences, rtol=1e-12)
    assert switching.log_evidence == pytest.approx(evidences[-1], rel=1e-12)


def test_rows_may_come_in_any_split() -> None:
    log_densities = np.random.default_rng(1).normal(size=(6, 50)) * 5.0
    whole, parts = Switching(np.full(6, 1 / 6), np.full(6, 0.0003)), Switching(np.full(6, 1 / 6), np.full(6, 0.0003))
    before, mixture = whole.learn(log_densities)
    seen = [parts.learn(np.ascontiguousarray(log_densities[:, i : i + 7])) for i in range(0, 50, 7)]
    np.testing.assert_array_equal(before, np.concatenate([own for own, _ in seen]))
    np.testing.assert_array_equal(mixture, np.concatenate([own for _, own in seen]))
    np.testing.assert_array_equal(whole.weights, parts.weights)
    assert whole.log_evidence == parts.log_evidence


def test_densities_beyond_the_range_of_floats_are_weighed() -> None:
    switching = Switching(np.array([0.5, 0.5]), np.full(2, 0.005))
    _, mixture = switching.learn(np.array([[-5000.0], [-5001.0]]))
    assert mixture[0] == pytest.approx(-5000.0 + np.log(0.5 + 0.5 * np.exp(-1.0)))
    np.testing.assert_allclose(switching.posterior[0], np.array([1.0, np.exp(-1.0)]) / (1.0 + np.exp(-1.0)))


def test_a_hypothesis_that_was_wrong_for_long_comes_back() -> None:
    switching = Switching(np.array([0.5, 0.5]), np.full(2, 0.005))
    switching.learn(np.repeat([[0.0], [-3.0]], 1000, axis=1))
    assert switching.weights[1] < 0.01
    switching.learn(np.repeat([[-3.0], [0.0]], 4, axis=1))
    assert switching.weights[1] > 0.9


def test_a_row_that_none_thinks_possible_changes_no_weight() -> None:
    switching = Switching(np.array([0.7, 0.3]), np.full(2, 0.005))
    _, mixture = switching.learn(np.full((2, 1), -np.inf))
    assert mixture[0] == -np.inf
    np.testing.assert_array_equal(switching.weights, [0.7, 0.3])
