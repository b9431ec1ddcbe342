"""Models with ``drift="auto"``: mixtures of rates, against each rate on its own and against each other."""

import copy
import pickle
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.special import expit, logsumexp

import onepass
from onepass import BayesianCommittee, BayesianNetwork, BayesianPerceptron, BayesianPerceptronRegressor, Mixture
from onepass._typing import FloatArray
from onepass.models.mixture import with_drift
from onepass.models.weighting import HYPOTHESES

MODELS = [
    pytest.param(lambda **own: BayesianPerceptron(3, **own), id="labels"),
    pytest.param(lambda **own: BayesianPerceptron(3, "linear", noise="learn", **own), id="numbers"),
    pytest.param(lambda **own: BayesianPerceptron(3, "exp", **own), id="counts"),
    pytest.param(lambda **own: BayesianPerceptron(3, covariance="diagonal", **own), id="diagonal"),
    pytest.param(lambda **own: BayesianNetwork(3, (4,), observation="bernoulli", **own), id="network labels"),
    pytest.param(lambda **own: BayesianNetwork(3, (4,), **own), id="network numbers"),
    pytest.param(lambda **own: BayesianNetwork(3, (), 3, observation="categorical", **own), id="classes"),
]


def stream(model: Any, n: int = 120, seed: int = 0) -> tuple[FloatArray, FloatArray]:
    """Rows whose first weight changes its sign in the middle, with targets as the model takes them."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    a = X @ [1.0, -1.0, 0.5] * np.where(np.arange(n) < n // 2, 1.0, -1.0)
    if model.observation.is_numeric:
        return X, a + 0.1 * rng.normal(size=n)
    if model.observation.is_count:
        return X, rng.poisson(np.exp(a)).astype(float)
    if model.observation.is_class:
        return X, np.digitize(a, [-0.5, 0.5]).astype(float)
    return X, (rng.uniform(size=n) < expit(a)).astype(float)


def densities_one_by_one(model: Any, X: FloatArray, y: FloatArray) -> list[float]:
    """Log density of each row, as a model of one rate predicts it before it learns it."""
    found = []
    for i in range(len(y)):
        found.append(model.log_predictive(X[i], y[i]))
        model.learn(X[i], y[i])
    return found


@pytest.mark.parametrize("make", MODELS)
def test_it_is_the_switching_mixture_of_its_rates(make: Any) -> None:
    model = Mixture.over_drift(make)
    X, y = stream(model)
    seen, scores = model.predict_score_learn(X, y)
    densities = scores.log_densities
    means = np.array([make(**own).predict_then_learn(X, y).mean for own in HYPOTHESES.values()])
    logs = np.array([densities_one_by_one(make(**own), X, y) for own in HYPOTHESES.values()])
    weights, entries = np.full(len(HYPOTHESES), 1.0 / len(HYPOTHESES)), np.array([1.0, 1.0, 1.0, 1.0, 0.1, 0.01])
    evidence = 0.0
    for i in range(len(y)):
        np.testing.assert_allclose(seen.mean[i], np.tensordot(weights, means[:, i], 1), rtol=1e-6, atol=1e-9)
        evidence += logsumexp(logs[:, i], b=weights)
        weights = weights * np.exp(logs[:, i] - logs[:, i].max())
        weights = 0.998 * weights / weights.sum() + 0.002 * entries / entries.sum()
    np.testing.assert_allclose(list(model.drift_.values()), weights, rtol=1e-5)
    assert model.log_evidence == pytest.approx(evidence, rel=1e-8)
    assert list(model.drift_) == list(HYPOTHESES)
    assert densities.shape == scores.changes.shape == (len(y),)
    assert model.n_seen == len(y)


@pytest.mark.parametrize("make", MODELS)
def test_rates_are_weighed_by_each_row_as_often_as_it_counts(make: Any) -> None:
    model = Mixture.over_drift(make)
    X, y = stream(model)
    counts = np.random.default_rng(5).choice([0.5, 1.0, 3.0], len(y))
    model.learn(X, y, sample_weight=counts)
    logs = np.empty((len(HYPOTHESES), len(y)))
    for own, options in zip(logs, HYPOTHESES.values(), strict=True):
        alone = make(**options)
        for i in range(len(y)):
            own[i] = alone.log_predictive(X[i], y[i])
            alone.learn(X[i], y[i], sample_weight=counts[i])
    *_, weights = weights_before(counts * logs)
    np.testing.assert_allclose(list(model.drift_.values()), weights, rtol=1e-5)


def weights_before(logs: FloatArray) -> Iterator[FloatArray]:
    """Weights of the rates before each row, from its log densities ``(rates, n)``, and after the last."""
    weights, entries = np.full(len(HYPOTHESES), 1.0 / len(HYPOTHESES)), np.array([1.0, 1.0, 1.0, 1.0, 0.1, 0.01])
    for row in logs.T:
        yield weights
        weights = weights * np.exp(row - row.max())
        weights = 0.998 * weights / weights.sum() + 0.002 * entries / entries.sum()
    yield weights


@pytest.mark.parametrize(
    "make",
    [
        pytest.param(lambda **own: BayesianPerceptron(3, **own), id="labels"),
        pytest.param(lambda **own: BayesianPerceptron(3, "linear", noise=0.01, **own), id="numbers"),
        pytest.param(lambda **own: BayesianPerceptron(3, "linear", noise=0.01, outliers=0.05, **own), id="outliers"),
        pytest.param(lambda **own: BayesianNetwork(3, (4,), calibrate=False, **own), id="network numbers"),
        pytest.param(lambda **own: BayesianNetwork(3, (), 3, observation="categorical", **own), id="classes"),
    ],
)
def test_the_evidence_of_a_weighted_row_is_that_of_its_copies_as_in_a_single_model(make: Any) -> None:
    model, batch = Mixture.over_drift(make), Mixture.over_drift(make)
    X, y = stream(model)
    counts = np.random.default_rng(5).choice([0.5, 1.0, 3.0], len(y))
    logs, copies = np.empty((2, len(HYPOTHESES), len(y)))
    for own, gains, options in zip(logs, copies, HYPOTHESES.values(), strict=True):
        alone = make(**options)
        for i in range(len(y)):
            own[i], before = alone.log_predictive(X[i], y[i]), alone.log_evidence
            gains[i] = alone.learn(X[i], y[i], sample_weight=counts[i]).log_evidence - before
    weights = np.array(list(weights_before(counts * logs)))[:-1].T
    expected = float(logsumexp(copies, b=weights, axis=0).sum())
    for i in range(len(y)):
        model.learn(X[i], y[i], sample_weight=counts[i])
    assert model.log_evidence == pytest.approx(expected, rel=1e-8)
    assert batch.learn(X, y, sample_weight=counts).log_evidence == pytest.approx(expected, rel=1e-8)


STEADY = [
    pytest.param(lambda **own: with_drift(BayesianPerceptron, 2, "linear", noise="learn", **own), id="learned noise"),
    pytest.param(lambda **own: with_drift(BayesianPerceptron, 2, "linear", noise=0.09, **own), id="noise"),
    pytest.param(lambda **own: with_drift(BayesianNetwork, 2, (5,), **own), id="network"),
    pytest.param(lambda **own: BayesianPerceptronRegressor(standardize=True, **own), id="standardised"),
]


@pytest.mark.parametrize("make", STEADY)
@pytest.mark.parametrize("weight", [0.1, 0.5, 2.0, 3.0])
def test_where_nothing_moves_weights_count_as_much_as_without_drift(make: Any, weight: float) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 2))
    y = X @ [1.0, 2.0] + 0.3 * rng.normal(size=300)
    found = []
    for drift in ("auto", 0.0):
        model = make(drift=drift)
        if hasattr(model, "fit"):
            found.append(model.fit(X, y, sample_weight=np.full(300, weight)).log_evidence_)
        else:
            found.append(model.learn(X, y, sample_weight=np.full(300, weight)).log_evidence)
        assert sum(share for rate, share in model.drift_.items() if rate in (0.0, 1e-5, 1e-3)) > 0.9
    assert found[0] == pytest.approx(found[1], rel=0.25, abs=10.0)


@pytest.mark.parametrize("weight", [1.0, 2.0, 20.0])
def test_copies_of_a_row_that_weights_follow_do_not_say_that_there_is_no_noise(weight: float) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 2))
    y = X @ [1.0, 2.0] + 0.3 * rng.normal(size=600)
    model = BayesianPerceptron(2, "linear", noise="learn", drift=0.01).learn(X, y, sample_weight=np.full(600, weight))
    assert model.noise == pytest.approx(0.09, rel=0.5)


@pytest.mark.parametrize("make", MODELS)
def test_results_do_not_depend_on_how_calls_divide_the_rows(make: Any) -> None:
    whole, parts, single = Mixture.over_drift(make), Mixture.over_drift(make), Mixture.over_drift(make)
    X, y = stream(whole)
    expected = whole.predict_then_learn(X, y)
    seen = [parts.predict_then_learn(X[i : i + 17], y[i : i + 17]) for i in range(0, len(y), 17)]
    for column, own in zip(expected.moments, zip(*(part.moments for part in seen), strict=True), strict=True):
        np.testing.assert_allclose(np.concatenate(own), column, rtol=1e-9, atol=1e-12)
    for i in range(len(y)):
        single.learn(X[i], y[i])
    for other in (parts, single):
        np.testing.assert_allclose(list(other.drift_.values()), list(whole.drift_.values()), rtol=1e-8)
        np.testing.assert_allclose(other.mean, whole.mean, rtol=1e-8, atol=1e-12)
        assert other.log_evidence == pytest.approx(whole.log_evidence, rel=1e-10)
        assert other.n_seen == whole.n_seen


def test_one_row_is_learned_the_fast_way_and_the_same() -> None:
    fast: Any = Mixture.over_drift(BayesianPerceptron, 3)
    slow: Any = Mixture.over_drift(BayesianPerceptron, 3)
    X, y = stream(fast)
    for i in range(len(y)):
        fast.learn(X[i], y[i])
        slow.learn(X[i : i + 1], y[i : i + 1])
    assert fast._one_row is not None
    np.testing.assert_allclose(fast.mean, slow.mean, rtol=1e-10)
    np.testing.assert_allclose(fast.cov, slow.cov, rtol=1e-10)
    fast.learn(X, y)  # and the fast way still knows what rows learned together left behind
    slow.learn(X, y)
    fast.learn(X[0], y[0])
    slow.learn(X[:1], y[:1])
    np.testing.assert_allclose(fast.mean, slow.mean, rtol=1e-10)


@pytest.mark.parametrize("make", MODELS[:1] + MODELS[4:5] + MODELS[6:])
def test_probabilities_of_all_labels_add_up_to_one(make: Any) -> None:
    model = Mixture.over_drift(make)
    X, y = stream(model)
    model.learn(X, y)
    labels = range(3 if model.predict(X).mean.ndim > 1 else 2)
    total = sum(np.exp(model.log_predictive(X, np.full(len(X), float(label)))) for label in labels)
    np.testing.assert_allclose(total, 1.0, rtol=2e-3 if len(labels) > 2 else 1e-8)
    if len(labels) == 2:
        np.testing.assert_allclose(np.exp(model.log_predictive(X, np.ones(len(X)))), model.predict(X).mean, rtol=1e-6)


@pytest.mark.parametrize("make", MODELS)
def test_files_copies_and_pickles_go_on_bit_for_bit(make: Any, tmp_path: Path) -> None:
    model = Mixture.over_drift(make)
    X, y = stream(model)
    model.learn(X[:60], y[:60])
    onepass.save(model, tmp_path / "model.safetensors")
    twins = [onepass.load(tmp_path / "model.safetensors"), copy.deepcopy(model), pickle.loads(pickle.dumps(model))]
    model.learn(X[60:], y[60:])
    for twin in twins:
        assert type(twin) is type(model)
        assert twin.n_seen == 60
        twin.learn(X[60:], y[60:])
        np.testing.assert_array_equal(twin.mean, model.mean)
        assert twin.log_evidence == model.log_evidence
        assert twin.drift_ == model.drift_
        assert repr(twin) == repr(model)


@pytest.mark.parametrize("make", MODELS[1:2] + MODELS[5:6])
def test_all_rows_are_learned_or_none(make: Any) -> None:
    model = Mixture.over_drift(make)
    X, y = stream(model)
    model.learn(X, y)
    model.learn(X[0], y[0])
    before = (model.mean, model.log_evidence, model.drift_, model.n_seen)
    for rows, targets in ((np.vstack([X[:3], np.full((1, 3), 1e200)]), y[:4]), (np.full(3, 1e200), 1.0)):
        with pytest.raises(ValueError, match="overflow"):
            model.learn(rows, targets)
        np.testing.assert_array_equal(model.mean, before[0])
        assert (model.log_evidence, model.drift_, model.n_seen) == before[1:]
    model.learn(X[0], y[0])


@pytest.mark.parametrize("make", MODELS)
def test_intervals_draws_and_moments_are_the_mixtures(make: Any) -> None:
    model = Mixture.over_drift(make)
    X, y = stream(model)
    model.learn(X, y)
    low, high = model.interval(X[:5], 0.8)
    assert (low <= high).all()
    one_low, one_high = model.interval(X[0], 0.8)
    np.testing.assert_allclose([one_low, one_high], [low[0], high[0]], rtol=1e-8)
    drawn = model.sample_weights(4000, 0, rows_ahead=0)
    np.testing.assert_allclose(drawn.mean(axis=0), model.mean, atol=0.1 + 0.1 * np.abs(model.mean).max())
    outputs = model.sample_output(X[:2], 50, 0)
    assert outputs.shape[:2] == (50, 2)
    if make in (own.values[0] for own in MODELS[:4]):  # perceptrons
        variances = model.cov if model.covariance == "diagonal" else np.diag(model.cov)
        np.testing.assert_allclose(drawn.var(axis=0), variances, rtol=0.25)


def test_the_interval_holds_the_share_of_the_mixture_that_it_says() -> None:
    model = Mixture.over_drift(BayesianPerceptron, 3, "linear", noise=0.04)
    X, y = stream(model, n=64)
    model.learn(X, y)
    low, high = model.interval(X[0], 0.9)
    grid = np.linspace(low, high, 4001)
    densities = np.exp(model.log_predictive(np.tile(X[0], (len(grid), 1)), grid))
    assert np.trapezoid(densities, grid) == pytest.approx(0.9, abs=1e-4)


def test_a_jump_is_noticed_and_nothing_is_where_there_is_none() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 3))
    y = X @ [1.0, -1.0, 0.5] + 0.1 * rng.normal(size=600)
    y[400:] += 3.0 * X[400:, 0]
    model: Any = Mixture.over_drift(BayesianPerceptron, 3, "linear", noise="learn")
    changes = model.predict_score_learn(X, y)[1].changes
    assert (changes[50:400] < 0.2).all()
    assert changes[400:404].max() > 0.9


def test_a_committee_may_drift(tmp_path: Path) -> None:
    committee = BayesianCommittee(3, (4,), members=2, drift="auto")
    X, y = stream(committee.members[0])
    committee.learn(X[:60], y[:60])
    onepass.save(committee, tmp_path / "model.safetensors")
    twin = onepass.load(tmp_path / "model.safetensors")
    for each in (committee, twin):
        each.predict_then_learn(X[60:], y[60:])
    np.testing.assert_array_equal(twin.predict(X).mean, committee.predict(X).mean)
    assert np.isfinite(committee.log_predictive(X, y)).all()
    low, high = committee.interval(X)
    assert (low < high).all()


@pytest.mark.parametrize("make", [MODELS[0], MODELS[4]])
def test_more_passes_are_refused(make: Any) -> None:
    model = Mixture.over_drift(make)
    X, y = stream(model)
    with pytest.raises(ValueError, match=r"drift='auto'.*passes=1, got passes=2"):
        model.learn(X, y, passes=2)


@pytest.mark.parametrize("kind", [BayesianPerceptron, BayesianNetwork])
def test_a_rate_that_is_none_is_refused(kind: Any) -> None:
    with pytest.raises(ValueError, match=r"drift must be a number in \[0, 1\], got 1.5"):
        kind(3, drift=1.5)
    with pytest.raises(TypeError, match=r"drift must be a number in \[0, 1\], got 'fast'"):
        kind(3, drift="fast")
    with pytest.raises(ValueError, match=r"drift='auto' needs several models.*Mixture\.over_drift"):
        kind(3, drift="auto")


def test_one_rate_is_believed_in_where_it_is_given() -> None:
    assert BayesianPerceptron(3, drift=0.1).drift_ == {0.1: 1.0}


@pytest.mark.parametrize("covariance", ["full", "diagonal"])
def test_a_rate_of_one_returns_to_the_prior_before_every_row(covariance: str) -> None:
    variances = np.array([4.0, 1.0, 2.0, 0.5])
    model = BayesianPerceptron(3, "linear", noise=0.1, cov=variances, covariance=covariance, drift=1.0)
    X, y = stream(model, n=40)
    model.learn(X, y)
    mean = BayesianPerceptron(3, "linear", noise=0.1, cov=variances, covariance=covariance, drift=1.0)
    mean.learn(X[:-1], y[:-1])
    last = BayesianPerceptron(3, "linear", noise=0.1, mean=mean.mean, cov=variances, covariance=covariance)
    last.learn(X[-1:], y[-1:])
    np.testing.assert_allclose(model.mean, last.mean, rtol=1e-10)
    np.testing.assert_allclose(model.cov, last.cov, rtol=1e-10, atol=1e-12)


def test_merging_refuses_it() -> None:
    prior = Mixture.over_drift(BayesianPerceptron, 3)
    with pytest.raises(ValueError, match=r"drift='auto'.*no common order"):
        onepass.merge(prior, [copy.deepcopy(prior)])
