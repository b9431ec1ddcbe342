"""Streams that misbehave: spikes are ignored, jumps are followed, and how rows are learned makes no difference."""

import copy
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_array
from scipy.special import log_ndtr, logsumexp
from scipy.stats import norm

import onepass
from onepass import BayesianCommittee, BayesianNetwork, BayesianPerceptron, BayesianPerceptronRegressor, Mixture
from tests.helpers.quadrature import grid_posterior

WIDE = [1e4, 4.0, 4.0]  # variances of an intercept that may be anywhere, and of two weights


def line(n: int, seed: int = 0, sd: float = 1.0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows, targets and their noise."""
    rng = np.random.default_rng(seed)
    X, noise = rng.normal(size=(n, 2)), sd * rng.normal(size=n)
    return X, 0.5 * X[:, 0] - 0.5 * X[:, 1] + noise, noise


def perceptron(**options: Any) -> BayesianPerceptron:
    return BayesianPerceptron(2, "linear", **{"noise": "learn", "cov": WIDE, "outliers": 0.05, **options})


def network(**options: Any) -> BayesianNetwork:
    return BayesianNetwork(2, (8,), **{"outliers": 0.05, **options})


def rows_to_follow(model: Any, jump: float, sd: float, at: int = 1000, seed: int = 0) -> int:
    """How many rows after a jump it takes until the next is predicted nearer to the new level than to the old."""
    X, y, noise = line(at + 60, seed, sd)
    y[at:] += jump
    seen = np.ravel(model.predict_then_learn(X, y).mean)
    near = np.flatnonzero(np.abs(seen - (y - noise))[at:] < abs(jump) / 2.0)
    return int(near[0]) if len(near) else 60


@pytest.mark.parametrize("jump", [5.0, 20.0, 100.0, -1000.0])
@pytest.mark.parametrize("noise", [1.0, "learn"])
@pytest.mark.parametrize("at", [100, 1000])
def test_a_perceptron_follows_a_jump_of_the_level(jump: float, noise: Any, at: int) -> None:
    for seed in range(3):
        assert rows_to_follow(perceptron(noise=noise, cov=[1e7, 4.0, 4.0]), jump, 1.0, at, seed) <= 12
    without = perceptron(noise=noise, cov=[1e7, 4.0, 4.0], outliers=0.0)
    assert rows_to_follow(without, jump, 1.0, at) > 20


@pytest.mark.parametrize("jump", [5.0, 20.0, 100.0])
def test_a_network_follows_a_jump_of_the_level(jump: float) -> None:
    for seed in range(3):
        assert rows_to_follow(network(), 0.03 * jump, 0.03, 1000, seed) <= 12


@pytest.mark.parametrize("size", [20.0, -300.0, 1e4, 1e6, 1e100])
@pytest.mark.parametrize("kind", [perceptron, network])
def test_single_spikes_move_nothing(kind: Any, size: float) -> None:
    X, y, _ = line(600, 1, 0.1)
    model = kind().learn(X[:500], y[:500])
    before = np.ravel(model.predict(X).mean)
    assert model.outlier_probability(X[500], y[500] + 0.1 * size) > 0.99
    model.learn(X[500], y[500] + 0.1 * size)
    assert np.abs(np.ravel(model.predict(X).mean) - before).max() < 0.1
    twin = kind().learn(X[:500], y[:500])
    for one in (model, twin):
        one.learn(X[501:], y[501:])
    np.testing.assert_allclose(np.ravel(model.predict(X).mean), np.ravel(twin.predict(X).mean), atol=0.05)


@pytest.mark.parametrize("size", [1e3, 1e5])
@pytest.mark.parametrize("noise", [0.01, "learn"])
def test_a_spike_in_the_first_row_is_found_out(size: float, noise: Any) -> None:
    """An intercept that may be anywhere follows it, and all other rows seem to be outliers then."""
    X, y, _ = line(100, 12, 0.1)
    y[0] = 0.1 * size
    model = perceptron(noise=noise, cov=[1e12, 4.0, 4.0])
    seen = model.predict_then_learn(X, y).mean
    assert np.abs(seen[30:] - y[30:]).max() < 1.0


@pytest.mark.parametrize("kind", [perceptron, network])
def test_another_level_of_the_noise_is_learned(kind: Any) -> None:
    X, y, noise = line(3000, 2, 0.05)
    y[1500:] += 19.0 * noise[1500:]
    model = kind().learn(X, y)
    learned = float(np.ravel(model.noise if kind is perceptron else model.noise_var)[0])
    assert 0.6 < np.sqrt(learned) < 1.5
    assert np.mean(np.ravel(model.predict_then_learn(X[2000:], y[2000:], return_outlier_probability=True)[1])) < 0.15


def alarms(model: Any, X: np.ndarray, y: np.ndarray) -> int:
    return int((model.predict_score_learn(X, y)[1].changes > 0.5).sum())


def test_nothing_alarms_where_nothing_changes() -> None:
    X, y, noise = line(50_000, 3)
    rng = np.random.default_rng(4)
    assert alarms(perceptron(), X, y) == 0
    assert alarms(perceptron(), X, y + 2.0 * rng.standard_t(3, size=len(y))) == 0
    labels = (y > 0.0).astype(float)
    assert alarms(BayesianPerceptron(2, outliers=0.05), X, labels) == 0
    wild = rng.random(len(y)) < 0.1
    for size in (10.0, 1e3, 1e6):
        assert alarms(perceptron(), X, np.where(wild, size * rng.normal(size=len(y)), y)) == 0
    assert alarms(network(), X[:5000], y[:5000] - 0.9 * noise[:5000]) == 0
    assert alarms(network(), X[:5000], np.where(wild, 50.0 * rng.normal(size=len(y)), y)[:5000]) == 0


def misbehaving(n: int = 500, seed: int = 5) -> tuple[np.ndarray, np.ndarray]:
    """A stream with spikes and two jumps, after which there are alarms."""
    X, y, _ = line(n, seed, 0.1)
    y[n // 3 :] += 3.0
    y[2 * n // 3 :] -= 40.0
    y[::17] += 1e3
    return X, y


def same(one: Any, other: Any, tolerance: float = 0.0) -> None:
    arrays, others = one.export_state()[1], other.export_state()[1]
    for name, array in arrays.items():
        scale = max(np.abs(array[np.isfinite(array)]).max(initial=0.0), 1e-300)
        np.testing.assert_allclose(others[name], array, rtol=tolerance, atol=tolerance * scale, err_msg=name)


LINEAR: list[dict[str, Any]] = [{}, {"noise": 0.01}, {"forgetting": 0.98}, {"process_noise": 1e-5}, {"drift": 1e-4}]


@pytest.mark.parametrize("options", LINEAR, ids=str)
def test_all_kernels_agree(options: dict[str, Any]) -> None:
    X, y = misbehaving()
    rows, blocks, reference = (perceptron(kernel=k, **options) for k in ("rows", "blocks", "reference"))
    seen = [model.predict_score_learn(X, y) for model in (rows, blocks, reference)]
    assert (seen[0][1].changes > 0.5).any()
    for prediction, scores in seen[1:]:
        np.testing.assert_allclose(prediction.mean, seen[0][0].mean, rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(scores.outliers, seen[0][1].outliers, atol=1e-5)
        np.testing.assert_allclose(scores.changes, seen[0][1].changes, atol=1e-5)
    for model in (blocks, reference):
        np.testing.assert_allclose(model.mean, rows.mean, rtol=1e-6, atol=1e-7)
        np.testing.assert_allclose(model.cov, rows.cov, rtol=1e-6, atol=1e-7)
        assert model.log_evidence == pytest.approx(rows.log_evidence, rel=1e-7)


@pytest.mark.parametrize("kernel", ["rows", "reference"])
def test_a_diagonal_belief_and_sparse_rows(kernel: str) -> None:
    X, y = misbehaving()
    X[np.abs(X) < 0.7] = 0.0
    dense, sparse = (perceptron(covariance="diagonal", kernel=kernel) for _ in range(2))
    dense.learn(X, y)
    sparse.learn(csr_array(X), y)
    same(dense, sparse, 1e-12)
    same(dense, perceptron(covariance="diagonal").learn(X, y), 1e-9)
    assert dense._state.progress.trust.rows_since_alarm < 500.0
    # With one weight a diagonal is all there is.
    one = [
        BayesianPerceptron(1, "linear", noise=0.01, cov=1e4, bias=False, outliers=0.05, covariance=c)
        for c in ("full", "diagonal")
    ]
    for model in one:
        model.learn(np.ones((500, 1)), y)
    np.testing.assert_allclose(one[0].mean, one[1].mean, rtol=1e-9)
    np.testing.assert_allclose(np.ravel(one[0].cov), one[1].cov, rtol=1e-9)


def test_single_precision_is_close() -> None:
    X, y = misbehaving()
    double, single = (perceptron(dtype=dtype).learn(X, y) for dtype in ("float64", "float32"))
    np.testing.assert_allclose(single.mean, double.mean, atol=1e-2)
    assert single._state.progress.trust.rows_since_alarm == double._state.progress.trust.rows_since_alarm
    network32 = network(dtype="float32").learn(X, y / 10.0)
    assert np.isfinite(network32.predict(X).mean).all()


PERCEPTRONS: list[dict[str, Any]] = [*LINEAR, {"covariance": "diagonal"}, {"kernel": "blocks"}, {"kernel": "reference"}]
NETWORKS: list[dict[str, Any]] = [
    {},
    {"noise": 0.01},
    {"covariance": "diagonal"},
    {"covariance": "neuron"},
    {"kernel": "reference"},
    {"observation": "heteroscedastic"},
    {"forgetting": 0.98},
    {"drift": 1e-4},
]


@pytest.mark.parametrize("kind", [perceptron, network])
def test_how_calls_divide_the_rows_makes_no_difference(kind: Any) -> None:
    X, y = misbehaving(240)
    for options in PERCEPTRONS if kind is perceptron else NETWORKS:
        whole, parts, single = (kind(**options) for _ in range(3))
        tolerance = 1e-6 if options.get("kernel") == "blocks" or "process_noise" in options else 1e-9
        scores = whole.predict_score_learn(X, y / 10.0)[1]
        assert (scores.changes > 0.5).any() or "drift" in options  # which finds a new level by itself
        for cut in np.array_split(np.arange(len(y)), 11):
            parts.learn(X[cut], y[cut] / 10.0)
        distrust = []
        for x, target in zip(X, y, strict=True):
            distrust.append(single.outlier_probability(x, target / 10.0))
            single.learn(x, target / 10.0)
        same(whole, parts, tolerance)
        same(whole, single, tolerance)


@pytest.mark.parametrize("kind", [perceptron, network])
def test_copies_and_files_go_on_bit_for_bit_at_any_row(kind: Any, tmp_path: Path) -> None:
    """Also just after the row that raised the alarm, which the next row answers."""
    X, y = misbehaving(240)
    y = y / 10.0
    whole, model = kind(), kind()
    for i in range(len(y)):
        whole.learn(X[i : i + 1], y[i : i + 1])
        model.learn(X[i : i + 1], y[i : i + 1])
        trust = model._state.progress.trust if kind is perceptron else model._state.noise.trust
        if trust.is_alarmed() or i % 40 == 0:
            onepass.save(model, tmp_path / "model")
            model = (onepass.load(tmp_path / "model"), pickle.loads(pickle.dumps(model)), copy.deepcopy(model))[i % 3]
    assert trust.rows_since_alarm < 240.0
    same(whole, model)


@pytest.mark.parametrize("kind", [perceptron, network])
def test_a_bad_row_after_an_alarm_leaves_all_as_it_was(kind: Any) -> None:
    X, y = misbehaving(240)
    bad = X.copy()
    bad[-1] = 1e200
    model = kind().learn(X[:75], y[:75] / 10.0)
    before = copy.deepcopy(model)
    assert kind().learn(X, y / 10.0).n_seen == 240
    with pytest.raises(ValueError, match="Nothing was learned"):
        model.learn(bad, y / 10.0)
    same(before, model)
    same(before.learn(X[75:], y[75:] / 10.0), model.learn(X[75:], y[75:] / 10.0))


def test_one_row_after_an_alarm_is_answered_or_nothing_happens() -> None:
    model = perceptron().learn(*line(300, 6, 0.1)[:2])
    for _ in range(30):
        model.learn(np.zeros(2), 30.0)
        if model._state.progress.trust.is_alarmed():
            break
    before = copy.deepcopy(model)
    with pytest.raises(ValueError, match="Nothing was learned"):
        model.learn(np.full(2, 1e200), 1.0)
    same(before, model)
    assert model.learn(np.zeros(2), 30.0).cov[0, 0] < 1e3
    assert abs(model.predict(np.zeros(2)).mean - 30.0) < 3.0


@pytest.mark.parametrize("kind", ["linear", "relu", "probit"])
def test_more_passes_come_close_to_the_true_posterior(kind: str) -> None:
    rng = np.random.default_rng(7)
    n = 25 if kind != "probit" else 40
    X = rng.normal(size=(n, 1))
    a = 0.5 + 1.5 * X[:, 0]
    output = np.maximum(a, 0.0) if kind == "relu" else a
    noise = None if kind == "probit" else 0.25
    y = (a + rng.normal(size=n) > 0.0).astype(float) if kind == "probit" else output + 0.5 * rng.normal(size=n)
    y[::9] = 1.0 - y[::9] if kind == "probit" else 25.0
    once, more = (
        BayesianPerceptron(1, kind, noise=noise, cov=4.0, outliers=0.1).learn(X, y, passes=k) for k in (1, 15)
    )
    shares = more._state.progress.trust.shares

    def log_likelihood(i: int, at: np.ndarray) -> np.ndarray:
        if kind == "probit":
            flipped = 1.0 - shares[0]
            signed = at if y[i] > 0.5 else -at
            return np.asarray(np.log(flipped + (1.0 - 2.0 * flipped) * np.exp(log_ndtr(signed))))
        centre = np.maximum(at, 0.0) if kind == "relu" else at
        scales = 0.25 * np.array([1.0, 10.0, 1e2, 1e4, 1e6, 1e8])
        return np.asarray(
            logsumexp(
                [np.log(w) + norm.logpdf(y[i], centre, np.sqrt(s)) for w, s in zip(shares, scales, strict=True)], axis=0
            )
        )

    mean, std = grid_posterior(X, log_likelihood, 2.0, np.linspace(-5.0, 5.0, 251))
    gaps = [np.abs((model.mean - mean) / std).max() for model in (once, more)]
    assert gaps[1] < 0.15
    assert gaps[1] <= gaps[0] + 0.01
    np.testing.assert_allclose(np.sqrt(np.diag(more.cov)), std, rtol=0.2)


def test_rows_that_are_learned_again_have_no_order_and_no_jumps() -> None:
    X, y = misbehaving(240)
    learned = [perceptron(kernel=kernel).learn(X, y / 10.0, passes=3) for kernel in ("rows", "blocks", "reference")]
    for model in learned:
        np.testing.assert_allclose(model.mean, learned[0].mean, rtol=1e-6)
        assert np.abs(model.mean).max() < 5.0
        assert model._state.progress.trust.rows_since_alarm == np.inf


@pytest.mark.parametrize("covariance", ["full", "layer", "neuron", "diagonal"])
@pytest.mark.parametrize("observation", ["gaussian", "heteroscedastic"])
def test_the_kernels_of_networks_are_the_readable_steps(covariance: str, observation: str) -> None:
    X, y = misbehaving(200)
    seen = [
        network(covariance=covariance, observation=observation, kernel=kernel).predict_score_learn(X, y / 10.0)
        for kernel in ("auto", "reference")
    ]
    assert (seen[0][1].changes > 0.5).any()
    np.testing.assert_allclose(seen[1][0].mean, seen[0][0].mean, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(seen[1][1].outliers, seen[0][1].outliers, atol=1e-6)
    np.testing.assert_allclose(seen[1][1].changes, seen[0][1].changes, atol=1e-6)


def test_networks_take_more_passes_over_spikes() -> None:
    X, y, noise = line(300, 8, 0.1)
    clean = y - noise
    y[::10] = 30.0
    for refine in ("ep", "reuse"):
        model = network().learn(X, y, passes=4, refine=refine)
        assert np.sqrt(np.mean((model.predict(X).mean - clean) ** 2)) < 0.15
        assert model.n_seen == 300


def test_a_step_survives_labels_that_contradict_each_other() -> None:
    rng = np.random.default_rng(9)
    X = rng.normal(size=(10_000, 3))
    truth = X @ [1.0, -2.0, 0.5] > 0.3
    y = truth ^ (rng.random(10_000) < 0.02)
    model = BayesianPerceptron(3, "step", outliers=0.05).learn(X[:9000], y[:9000].astype(float))
    assert ((model.predict(X[9000:]).mean > 0.5) == truth[9000:]).mean() >= 0.97
    assert 1.0 - model._state.progress.trust.shares[0] == pytest.approx(0.02, abs=0.01)
    distrust = model.outlier_probability(X[:9000], y[:9000].astype(float))
    wrong = y[:9000] != truth[:9000]
    assert distrust[wrong].mean() > 0.9
    assert distrust[~wrong].mean() < 0.02


@pytest.mark.parametrize("n_classes", [2, 3, 10])
def test_classes_with_wrong_labels(n_classes: int) -> None:
    rng = np.random.default_rng(10)
    X = rng.normal(size=(1500, 4))
    truth = (X @ rng.normal(size=(4, n_classes)) * 3.0).argmax(axis=1)
    wrong = rng.random(1500) < 0.1
    y = np.where(wrong, rng.integers(n_classes, size=1500), truth)
    n_outputs = 1 if n_classes == 2 else n_classes
    kind = "bernoulli" if n_classes == 2 else "categorical"
    model = BayesianNetwork(4, (), n_outputs, observation=kind, outliers=0.05).learn(X, y)
    distrust = model.outlier_probability(X, y)
    assert distrust[y != truth].mean() > 5.0 * distrust[y == truth].mean()


def test_a_committee_agrees_with_its_members_about_outliers() -> None:
    X, y, _ = line(300, 11, 0.1)
    y[::20] = 50.0
    model = BayesianCommittee(2, (6,), members=2, outliers=0.05)
    _, distrust = model.predict_then_learn(X, y, return_outlier_probability=True)
    assert distrust[100::20].min() > 0.95
    assert model.outlier_probability(X[:1], np.array([50.0])) > 0.95


@pytest.mark.parametrize("outliers", [-0.1, 0.5, 1.0, "few", None, np.nan])
@pytest.mark.parametrize("kind", [perceptron, network])
def test_shares_that_cannot_be_are_refused(kind: Any, outliers: Any) -> None:
    with pytest.raises((TypeError, ValueError), match="outliers must be"):
        kind(outliers=outliers)


@pytest.mark.parametrize("settings", [{"prior_scale": "auto"}, {"drift": "auto"}], ids=str)
def test_a_spike_decides_nothing_between_models(settings: dict[str, Any]) -> None:
    rng = np.random.default_rng(8)
    X = rng.normal(size=(301, 3))
    y = X @ [1.0, -0.5, 0.2] + 0.1 * rng.normal(size=301)
    model = BayesianPerceptronRegressor(outliers=0.05, **settings).fit(X[:300], y[:300])
    before = model._learner.state.mixtures[0].component_weights
    model.partial_fit(X[300:], [1e5])
    np.testing.assert_allclose(model._learner.state.mixtures[0].component_weights, before, atol=0.1)


@pytest.mark.parametrize("covariance", ["full", "diagonal"])
def test_a_row_that_fails_after_an_alarm_leaves_a_network_as_it_was(covariance: str) -> None:
    X, y, _ = line(600, 9, 0.1)
    y[500:] += 40.0
    net = BayesianNetwork(X.shape[1], (6,), covariance=covariance, outliers=0.05)
    for row, target in zip(X, y, strict=True):
        net.learn(row, target)
        if net._state.noise.trust.is_alarmed():
            break
    assert net._state.noise.trust.is_alarmed()
    before = net.export_state()[1]
    with pytest.raises(ValueError, match="Nothing was learned"):
        net.learn(np.full(X.shape[1], 1e200), 1.0)
    for name, array in net.export_state()[1].items():
        np.testing.assert_array_equal(array, before[name])


def test_a_row_that_fails_in_a_later_pass_ends_the_pass() -> None:
    X, y, _ = line(400, 10, 0.1)
    y[380:] += 40.0
    X[-1] = 1e200
    model = perceptron()
    with pytest.raises(ValueError, match="Nothing was learned"):
        model.learn(X, y, passes=2)
    assert model.n_seen == 0


@pytest.mark.parametrize("noise", [0.01, "learn"])
@pytest.mark.parametrize("jump", [20.0, -100.0, 1000.0])
def test_a_jump_beyond_the_reach_of_the_prior_is_believed_too(jump: float, noise: Any) -> None:
    rng = np.random.default_rng(11)
    y = 0.1 * rng.normal(size=1020) + np.where(np.arange(1020) < 1000, 0.0, jump)  # in standard deviations of the prior
    model = BayesianPerceptron(1, "linear", noise=noise, outliers=0.05)
    seen = model.predict_then_learn(np.zeros((1020, 1)), y).mean
    assert np.abs(seen[1012:] - jump).max() < 0.1 * abs(jump)


def test_one_spike_after_many_clean_rows_hardly_passes_for_a_movement() -> None:
    moved = []
    for seed in range(40, 50):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(500, 3))
        y = X @ [1.0, -2.0, 0.5] + 0.1 * rng.normal(size=500)
        model = Mixture.over_drift(BayesianPerceptron, 3, "linear", noise="learn", outliers=0.05).learn(X, y)
        before = float(model.predict(X[0]).mean)
        model.learn(X[:1], [before + 2.0])
        moved.append(abs(float(model.predict(X[0]).mean) - before) / 2.0)
    assert np.median(moved) < 0.08
