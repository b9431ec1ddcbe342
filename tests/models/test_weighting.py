"""Rules that weigh members, against Bayes' rule written out."""

import numpy as np
import pytest

from onepass.models.prediction import RowScores
from onepass.models.weighting import HYPOTHESES, FadingWeights, SwitchingWeights, mixed_scores

rng = np.random.default_rng(0)
DENSITIES = rng.normal(size=(6, 20))
SCORES = [RowScores(own, np.zeros(20), np.zeros(20)) for own in DENSITIES]


def test_a_mixture_has_the_mean_density_and_posterior_weights() -> None:
    weights, densities, outliers = rng.dirichlet(np.ones(6)), np.exp(DENSITIES), rng.random((6, 20))
    found = mixed_scores(weights, DENSITIES, outliers)
    joint = weights[:, None] * densities
    np.testing.assert_allclose(found.log_densities, np.log(joint.sum(axis=0)))
    np.testing.assert_allclose(found.after, joint / joint.sum(axis=0))
    np.testing.assert_allclose(found.outliers, (joint / joint.sum(axis=0) * outliers).sum(axis=0))


def test_a_part_without_weight_says_nothing() -> None:
    found = mixed_scores(np.array([1.0, 0.0]), np.array([[-1.0], [5.0]]), np.zeros((2, 1)))
    assert found.log_densities.tolist() == [-1.0]
    assert found.after.tolist() == [[1.0], [0.0]]


def test_hypotheses_of_drift_follow_bayes_rule_and_may_take_over() -> None:
    start = SwitchingWeights.start()
    entries = start.later(10**9).weights * 0.002  # after long enough any weights are those of who takes over
    weights, evidence = np.full(6, 1.0 / 6.0), 0.0
    rows, after = start.over_rows(SCORES, None, None)
    for i, density in enumerate(np.exp(DENSITIES.T)):
        np.testing.assert_allclose(rows.before[:, i], weights, rtol=1e-9)
        evidence += np.log(weights @ density)
        posterior = weights * density / (weights @ density)
        weights = (1.0 - entries.sum()) * posterior + entries
    np.testing.assert_allclose(after.weights, weights, rtol=1e-9)
    assert after.log_evidence([]) == pytest.approx(evidence)
    assert after.drift([]) == dict(zip(HYPOTHESES, after.weights.tolist(), strict=True))
    again = SwitchingWeights.from_arrays(after.arrays)
    np.testing.assert_array_equal(again.weights, after.weights)


def test_evidence_fades() -> None:
    rows, after = FadingWeights.start(6).over_rows(SCORES, None, None)
    evidence = np.zeros(6)
    for i, gains in enumerate(DENSITIES.T):
        shares = np.exp(evidence - evidence.max())
        np.testing.assert_allclose(rows.before[:, i], shares / shares.sum())
        evidence = np.exp(-1.0 / 200.0) * evidence + gains
    np.testing.assert_allclose(after.evidence, evidence)
