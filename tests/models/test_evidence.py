"""The evidence is a density: it integrates to one over the targets, and can't beat the truth by much too often."""

from typing import Any

import numpy as np
import pytest
from scipy.special import expit, ndtr
from scipy.stats import norm
from sklearn.base import clone

from onepass import (
    BayesianCommittee,
    BayesianMLPRegressor,
    BayesianNetwork,
    BayesianPerceptron,
    BayesianPerceptronRegressor,
    PerceptronFleet,
)
from onepass.models.fleet.records import AT_EVIDENCE

ROWS = np.array([[0.5, -1.0], [1.5, 0.3], [-0.7, 0.8]])
# Targets close together around zero, where a ReLU's densities have a peak, and far apart in the tails, up to 1e7.
_EDGES = np.linspace(0.0, 26.0, 1500)
_HALF = 1e-4 * np.expm1(_EDGES)
TARGETS = np.concatenate([-_HALF[:0:-1], _HALF])

REWEIGHED: dict[str, Any] = {"activation": "linear", "noise": "learn"}
NUMBERS: list[dict[str, Any]] = [
    REWEIGHED,
    {"activation": "linear", "noise": 0.3},
    {"activation": "relu", "noise": "learn"},
    {"activation": "relu", "noise": 0.3},
    {"activation": "tanh", "noise": "learn"},
    {"activation": "softplus", "noise": "learn", "noise_window": 5},
    {"activation": "linear", "noise": "learn", "forgetting": 0.9},
    {"activation": "linear", "noise": "learn", "covariance": "diagonal"},
]


def mass(model: Any, row: np.ndarray) -> float:
    """Integral of the density that a model gives the targets of a row."""
    rows = np.broadcast_to(row, (len(TARGETS), len(row)))
    return float(np.trapezoid(np.exp(model.log_predictive(rows, TARGETS)), TARGETS))


@pytest.mark.parametrize("options", NUMBERS, ids=str)
@pytest.mark.parametrize("targets", [(0.4, -1.2), (30.0, 28.0), (0.0, 0.0)])
def test_the_density_of_each_of_three_rows_integrates_to_one(
    options: dict[str, Any], targets: tuple[float, ...]
) -> None:
    model = BayesianPerceptron(2, **options)
    for row, target in zip(ROWS, (*targets, None), strict=True):
        assert mass(model, row) == pytest.approx(1.0, abs=1e-4)
        if target is not None:
            expected = model.log_predictive(row, target)
            before = model.log_evidence
            _, scores = model.predict_score_learn(row[None], [target])
            assert scores.row_gains[0] == pytest.approx(expected, rel=1e-12)
            if options != REWEIGHED:  # whose evidence is that of all rows together
                assert model.log_evidence - before == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("targets", [(0.4, -1.2, 0.3), (30.0, 28.0, -5.0), (0.0, 0.0, 0.0), (1e3, -1e3, 0.1)])
def test_the_evidence_of_a_learned_noise_is_that_of_all_rows_together(targets: tuple[float, ...]) -> None:
    model = BayesianPerceptron(2, **REWEIGHED)
    logs = np.log(model.noise) + 3.0 * np.linspace(-10.0, 10.0, 20_001)
    rows = np.column_stack([np.ones(3), ROWS])
    for n, (row, target) in enumerate(zip(ROWS, targets, strict=True), 1):
        model.learn(row, target)
        values, axes = np.linalg.eigh(rows[:n] @ rows[:n].T)
        totals = values + np.exp(logs)[:, None]
        joint = norm.logpdf(axes.T @ targets[:n], scale=np.sqrt(totals)).sum(axis=1)
        density = np.exp(joint) * norm.pdf(logs, np.log(0.1), 3.0)
        assert model.log_evidence == pytest.approx(np.log(np.trapezoid(density, logs)), abs=1e-3)


def test_the_evidence_of_three_rows_integrates_to_one() -> None:
    """Over all three targets at once: a perceptron for each of their 91,125 combinations."""
    u = np.linspace(-12.0, 12.0, 45)
    targets, weights = 0.3 * np.sinh(u), 0.3 * np.cosh(u) * (u[1] - u[0])
    combined = np.stack(np.meshgrid(targets, targets, targets, indexing="ij"), axis=-1).reshape(-1, 3)
    keys = np.arange(len(combined))
    fleet = PerceptronFleet(2, "linear", noise="learn")
    for row, column in zip(ROWS, combined.T, strict=True):
        fleet.learn(np.broadcast_to(row, (len(keys), 2)), column, keys=keys)
    evidence = fleet.export_state()[1]["records"][:, AT_EVIDENCE]
    density = np.exp(evidence).reshape(len(u), len(u), len(u))
    # In a record, evidence is exact up to the last row after which all rows were asked about their noise.
    assert np.einsum("ijk,i,j,k", density, weights, weights, weights) == pytest.approx(1.0, abs=6e-3)


@pytest.mark.parametrize("activation", ["sigmoid", "probit", "step"])
def test_the_evidence_of_all_labels_sums_to_one(activation: str) -> None:
    total = 0.0
    for labels in np.ndindex(2, 2, 2):
        model = BayesianPerceptron(2, activation).learn(ROWS, np.array(labels, dtype=float))
        total += np.exp(model.log_evidence)
    assert total == pytest.approx(1.0, abs=1e-6)


@pytest.mark.parametrize("observation", ["poisson", "negative_binomial"])
def test_the_evidence_of_all_counts_sums_to_one(observation: str) -> None:
    model = BayesianPerceptron(2, "exp", observation=observation, cov=0.3)
    counts = np.arange(600.0)
    for row, count in zip(ROWS, (0.0, 3.0, 1.0), strict=True):
        logs = model.log_predictive(np.broadcast_to(row, (len(counts), 2)), counts)
        assert np.exp(logs).sum() == pytest.approx(1.0, abs=2e-3)
        model.learn(row, count)


@pytest.mark.parametrize("model", [BayesianNetwork(2, (5,)), BayesianCommittee(2, (5,), members=2)], ids=["one", "two"])
def test_the_density_of_a_networks_rows_integrates_to_one(model: Any) -> None:
    for row, target in zip(ROWS, (0.4, -1.2, 0.3), strict=True):
        assert mass(model, row) == pytest.approx(1.0, abs=1e-4)
        model.learn(row, target)


def truths(kind: str, rng: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray, float]:
    """Rows and targets of weights from the prior, and the log density of the targets given the true weights."""
    weights, X = rng.normal(size=3), rng.normal(size=(n, 2))
    a = weights[0] + X @ weights[1:]
    if kind in ("sigmoid", "probit"):
        p = expit(a) if kind == "sigmoid" else ndtr(a)
        y = (rng.random(n) < p).astype(float)
        return X, y, float(np.log(np.where(y > 0.5, p, 1.0 - p)).sum())
    std = float(rng.choice([0.1, 0.5, 2.0]))
    f = {"linear": a, "relu": np.maximum(a, 0.0), "tanh": np.tanh(a)}[kind]
    y = f + std * rng.normal(size=n)
    return X, y, float((-0.5 * (np.log(2.0 * np.pi * std**2) + ((y - f) / std) ** 2)).sum())


@pytest.mark.parametrize("kind", ["linear", "relu", "tanh", "sigmoid", "probit"])
def test_the_evidence_rarely_exceeds_the_truths(kind: str) -> None:
    """By Markov's inequality a density is 1/a times the true one with probability a at most."""
    noise: Any = None if kind in ("sigmoid", "probit") else "learn"
    gains = []
    for seed in range(200):
        X, y, truth = truths(kind, np.random.default_rng(seed), 30)
        gains.append(BayesianPerceptron(2, kind, noise=noise).learn(X, y).log_evidence - truth)
    for a in (0.5, 0.1, 0.02):
        assert np.mean(np.array(gains) > -np.log(a)) <= a


@pytest.mark.parametrize(
    "estimator",
    [
        BayesianPerceptronRegressor(standardize=True, warm_up=20),
        BayesianPerceptronRegressor(standardize=True, warm_up=20, prior_scale="auto"),
        BayesianPerceptronRegressor("relu", standardize=True, warm_up=20, passes=3),
        BayesianMLPRegressor((4,), warm_up=20, shuffle=False),
        BayesianMLPRegressor((4,), warm_up=20, passes=3, shuffle=False),
    ],
    ids=repr,
)
def test_rows_that_set_the_scale_are_not_scored(estimator: Any) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2))
    y = 5.0 + 3.0 * X[:, 0] + rng.normal(size=60)
    assert clone(estimator).fit(X[:20], y[:20]).log_evidence_ == 0.0
    whole = clone(estimator).fit(X, y)
    # The rows after the warm-up, in the targets' own units.
    online = clone(estimator).set_params(passes=1).fit(X[:20], y[:20])
    expected = online.predict_then_learn(X[20:], y[20:]).log_density.sum()
    # Weights of "auto" are those of the last rows alone, and what a network predicts is calibrated: neither is
    # evidence. Around a linear output that is the density of all rows together.
    if estimator.prior_scale == "auto" or isinstance(estimator, BayesianMLPRegressor):
        expected = online.log_evidence_
    elif estimator.activation == "linear":
        assert online.log_evidence_ == pytest.approx(expected, abs=0.05)
        expected = online.log_evidence_
    assert whole.log_evidence_ == pytest.approx(expected, rel=1e-6)
    parts = clone(estimator).set_params(passes=1).fit(X[:7], y[:7])
    for k in range(7, 60, 5):
        parts.partial_fit(X[k : k + 5], y[k : k + 5])
    assert parts.log_evidence_ == pytest.approx(expected, rel=1e-6)
