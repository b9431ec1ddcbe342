"""Rows of networks that come one per call: what they are scored by is what was predicted."""

from typing import Any

import numpy as np
import pytest

from onepass import BayesianNetwork, Mixture

OPTIONS: dict[str, dict[str, Any]] = {
    "calibrated": {},
    "not calibrated": {"calibrate": False},
    "outliers": {"outliers": 0.05},
    "varying noise": {"observation": "heteroscedastic"},
    "several outputs": {"n_outputs": 2},
    "labels": {"observation": "bernoulli"},
}


@pytest.mark.parametrize("name", OPTIONS)
def test_a_row_adds_to_the_evidence_what_was_predicted_for_it(name: str) -> None:
    options = OPTIONS[name]
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 3))
    y = np.sin(X[:, 0]) + 0.1 * rng.normal(size=40)
    y[30] += 2.0
    targets: Any = {"several outputs": np.stack([y, X[:, 1]], axis=1), "labels": (y > 0.0) * 1.0}.get(name, y)
    mixture = Mixture.over_drift(BayesianNetwork, 3, (5,), covariance="full", **options)
    for x, target in zip(X, targets, strict=True):
        expected, before = mixture.log_predictive(x, target), mixture.log_evidence
        one_row = mixture._one_row
        assert one_row is not None
        assert one_row(x, target)
        assert mixture.log_evidence - before == pytest.approx(expected, rel=1e-10, abs=1e-10)


def test_wrong_rows_and_targets_are_left_to_the_long_way() -> None:
    model = BayesianNetwork(3, (5,), covariance="full", observation="bernoulli").learn(np.eye(3), [0, 1, 0])
    one_row = model._one_row
    assert one_row is not None
    for x, y in ((np.ones(2), 1.0), (np.ones(3), 0.5), (np.ones(3), np.nan), (np.full(3, np.nan), 1.0)):
        assert not one_row(x, y)
    assert one_row.predict(np.ones(2)) is None
    assert model.n_seen == 3
