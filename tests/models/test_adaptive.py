"""Intervals on top of models: on streams that change, with late targets, in files."""

import copy
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from onepass import AdaptiveIntervals, BayesianCommittee, BayesianNetwork, BayesianPerceptron, Mixture, load, save

RNG = np.random.default_rng(0)
N = 3000
X = RNG.normal(size=(N, 2))
NOISE = RNG.normal(size=N)
MODELS: dict[str, Any] = {
    "perceptron": lambda: BayesianPerceptron(2, "linear", noise="learn"),
    "network": lambda: BayesianNetwork(2, (5,)),
    "drift": lambda: Mixture.over_drift(BayesianPerceptron, 2, "linear", noise="learn"),
    "committee": lambda: BayesianCommittee(2, (5,), members=2),
}
STREAMS = {
    "louder": X.sum(axis=1) + np.repeat([0.3, 3.0], N // 2) * NOISE,
    "turning": np.where(np.arange(N) < N // 2, 1.0, -1.0) * X.sum(axis=1) + 0.3 * NOISE,
    "steady": X.sum(axis=1) + 0.3 * NOISE,
}


def windows(inside: np.ndarray) -> np.ndarray:
    total = np.cumsum(np.concatenate([[0], inside]))
    return np.asarray((total[500:] - total[:-500]) / 500)


@pytest.mark.parametrize("stream", STREAMS)
@pytest.mark.parametrize("name", MODELS)
def test_every_window_is_covered(name: str, stream: str) -> None:
    y = STREAMS[stream]
    rows = AdaptiveIntervals(MODELS[name]()).predict_then_learn(X, y)
    low, high = rows.interval(0.95)
    covered = windows((low <= y) & (y <= high))[100:]
    assert covered.min() >= 0.92
    assert covered.max() <= 0.98
    inner, outer = rows.interval(0.5), rows.interval(0.99)
    assert (outer[0] <= inner[0]).all()
    assert (inner[1] <= outer[1]).all()


def test_predictions_are_those_of_the_model() -> None:
    adaptive, plain = AdaptiveIntervals(MODELS["perceptron"]()), MODELS["perceptron"]()
    y = STREAMS["louder"]
    adaptive.learn(X, y)
    plain.learn(X, y)
    np.testing.assert_array_equal(adaptive.predict(X[:5]).mean, plain.predict(X[:5]).mean)
    assert adaptive.n_seen == N
    widths = [high - low for low, high in (adaptive.interval(X[:5]), plain.interval(X[:5]))]
    assert (widths[0] > 1.2 * widths[1]).all()  # of a noise that is an average of the two


def test_any_split_gives_the_same() -> None:
    y = STREAMS["louder"][:200]
    whole, single = (AdaptiveIntervals(BayesianPerceptron(2, "linear", noise=0.09)) for _ in range(2))
    whole.learn(X[:200], y)
    for i in range(200):
        single.learn(X[i], y[i])
    np.testing.assert_allclose(single.interval(X[:3]), whole.interval(X[:3]), rtol=1e-9)


def test_targets_that_come_late_are_scored_with_what_was_predicted() -> None:
    adaptive = AdaptiveIntervals(BayesianPerceptron(2, "linear", noise=0.09)).learn(X[:100], STREAMS["steady"][:100])
    seen, before = adaptive.predict(X[100:130]), adaptive.predict(X[100:130]).interval(0.95)
    adaptive.learn(X[200:260], 5.0 + STREAMS["steady"][200:260])  # which moves the upper limits up
    ends = adaptive.tracker.ends.copy()
    assert (adaptive.interval(X[100:130], 0.95)[1] > before[1]).all()
    np.testing.assert_array_equal(seen.interval(0.95), before)
    scored = adaptive.observe(seen, before[1] + 1e-6)  # beyond the limit that was given, and within the one of today
    np.testing.assert_array_equal(scored.interval(0.95), before)
    upper = adaptive.tracker.levels.index(0.95) - len(adaptive.tracker.levels)
    assert adaptive.tracker.ends[upper] > ends[upper]
    assert adaptive.n_seen == 160


def test_late_targets_must_fit_the_rows_that_were_predicted() -> None:
    adaptive = AdaptiveIntervals(BayesianPerceptron(2, "linear", noise=0.09))
    for y in (3.0, [1.0]):
        with pytest.raises(ValueError, match="one target for each row"):
            adaptive.observe(adaptive.predict(X[:5]), y)


def test_counts_are_tracked_too() -> None:
    rates = np.exp(1.0 + 0.5 * X[:, 0] + np.repeat([0.0, 1.0], N // 2))
    y = np.random.default_rng(1).poisson(rates).astype(float)
    rows = AdaptiveIntervals(BayesianPerceptron(2, "exp")).predict_then_learn(X, y)
    low, high = rows.interval(0.9)
    assert ((low <= y) & (y <= high)).mean() == pytest.approx(0.92, abs=0.03)  # whole numbers can't have any level


def test_counts_that_vary_far_more_than_predicted_are_covered() -> None:
    rng = np.random.default_rng(2)
    wild = np.where(np.arange(N) < N // 2, 1.0, rng.gamma(1.0, 1.0, N))
    y = rng.poisson(wild * np.exp(0.3 * X[:, 0] + 4.0)).astype(float)
    rows = AdaptiveIntervals(BayesianPerceptron(2, "exp", observation="poisson")).predict_then_learn(X, y)
    for level in (0.5, 0.8, 0.95):
        low, high = rows.interval(level)
        assert ((low <= y) & (y <= high))[N // 2 :].mean() == pytest.approx(level, abs=0.03)


def test_a_file_restores_model_and_intervals(tmp_path: Path) -> None:
    adaptive = AdaptiveIntervals(MODELS["drift"](), levels=(0.5, 0.9)).learn(X[:300], STREAMS["louder"][:300])
    save(adaptive, tmp_path / "model")
    twin: Any = load(tmp_path / "model")
    assert twin.tracker.levels == (0.5, 0.9)
    for own in (adaptive, twin):
        own.learn(X[300:320], STREAMS["louder"][300:320])
    np.testing.assert_array_equal(twin.interval(X[:3], 0.9), adaptive.interval(X[:3], 0.9))


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda one: pickle.loads(pickle.dumps(one))])
def test_a_copy_goes_on_alike_and_apart(copied: Any) -> None:
    adaptive = AdaptiveIntervals(MODELS["perceptron"]()).learn(X[:100], STREAMS["louder"][:100])
    twin, before = copied(adaptive), adaptive.interval(X[:3])
    np.testing.assert_array_equal(twin.interval(X[:3]), before)
    twin.learn(X[100:120], 9.0 + STREAMS["louder"][100:120])
    np.testing.assert_array_equal(adaptive.interval(X[:3]), before)
    adaptive.learn(X[100:120], 9.0 + STREAMS["louder"][100:120])
    np.testing.assert_array_equal(twin.interval(X[:3]), adaptive.interval(X[:3]))
    assert (adaptive.interval(X[:3])[1] > before[1]).all()


def test_single_rows_are_tracked_late_and_weighted_as_many() -> None:
    fixed = AdaptiveIntervals(BayesianPerceptron(2, "linear", noise=0.09)).learn(X[:50], STREAMS["steady"][:50])
    single, whole = copy.deepcopy(fixed), copy.deepcopy(fixed)
    weights = np.linspace(0.5, 2.0, 10)
    y = STREAMS["steady"][50:60] + 2.0
    given = [fixed.predict(x) for x in X[50:60]]
    for one, target, weight in zip(given, y, weights, strict=True):
        scored = single.observe(one, target, sample_weight=weight)
        assert scored.interval() == one.interval()
    whole.observe(fixed.predict(X[50:60]), y, weights)
    np.testing.assert_allclose(single.tracker.ends, whole.tracker.ends, rtol=1e-12)
    np.testing.assert_allclose(single.tracker.location, whole.tracker.location, rtol=1e-9)
    assert single.tracker.total == pytest.approx(50.0 + weights.sum())
    with pytest.raises(ValueError, match="the one target of the row"):
        single.observe(given[0], [1.0, 2.0])
    assert single.tracker.total == pytest.approx(50.0 + weights.sum())


@pytest.mark.parametrize(
    "model", [BayesianPerceptron(2), BayesianNetwork(2, (3,), 2), BayesianNetwork(2, (3,), observation="bernoulli")]
)
def test_what_has_no_interval_of_a_target_is_refused(model: Any) -> None:
    with pytest.raises(ValueError, match="numbers and counts with one output"):
        AdaptiveIntervals(model)


def test_only_models_can_be_tracked() -> None:
    with pytest.raises(TypeError, match="got str"):
        AdaptiveIntervals("model")  # type: ignore[arg-type]
