"""Adaptive intervals of estimators: in any split, after several passes, in files, and of several targets."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from onepass import AdaptiveIntervals, BayesianMLPRegressor, BayesianPerceptron, BayesianPerceptronRegressor, load, save

RNG = np.random.default_rng(0)
N = 2400
X = RNG.normal(size=(N, 2))
Y = 30.0 + X.sum(axis=1) + np.repeat([0.3, 1.5], N // 2) * RNG.normal(size=N)
COUNTS = RNG.poisson(np.repeat([20.0, 60.0], N // 2) * np.exp(0.3 * X[:, 0])).astype(float)
MODELS: dict[str, Any] = {
    "perceptron": BayesianPerceptronRegressor(intervals="adaptive"),
    "unscaled": BayesianPerceptronRegressor(intervals="adaptive", standardize=False, prior_scale="auto"),
    "drift": BayesianPerceptronRegressor(intervals="adaptive", drift="auto"),
    "network": BayesianMLPRegressor((5,), intervals="adaptive", shuffle=False, passes=1),
    "committee": BayesianMLPRegressor((5,), members=2, intervals="adaptive", shuffle=False, passes=1),
    "counts": BayesianPerceptronRegressor("exp", intervals="adaptive", drift="auto"),
}


def of(name: str) -> tuple[Any, np.ndarray]:
    return clone(MODELS[name]), COUNTS if name == "counts" else Y


@pytest.mark.parametrize("name", MODELS)
def test_intervals_that_are_asked_for_hold_at_every_level_after_a_change(name: str) -> None:
    model, y = of(name)
    model.fit(X[:1500], y[:1500])
    inside = dict.fromkeys((0.5, 0.8, 0.95), 0.0)
    for start in range(1500, N, 100):
        rows, targets = X[start : start + 100], y[start : start + 100]
        limits = {level: model.predict_interval(rows, level) for level in inside}
        assert (limits[0.95][0] <= limits[0.5][0]).all()
        assert (limits[0.5][1] <= limits[0.95][1]).all()
        for level, (low, high) in limits.items():
            inside[level] += ((low <= targets) & (targets <= high)).sum() / (N - 1500)
        model.partial_fit(rows, targets)
    assert list(inside.values()) == pytest.approx(list(inside), abs=0.04)


@pytest.mark.parametrize("name", MODELS)
def test_rows_learned_in_any_split_give_the_same_limits(name: str) -> None:
    (whole, y), (single, _), (both, _) = of(name), of(name), of(name)
    whole.fit(X[:300], y[:300])
    for start, stop in ((0, 1), (1, 2), (2, 130), (130, 131), (131, 300)):
        single.partial_fit(X[start:stop], y[start:stop])
        both.predict_then_learn(X[start:stop], y[start:stop])
    for other in (single, both):
        np.testing.assert_allclose(other.predict_interval(X[:9]), whole.predict_interval(X[:9]), rtol=1e-9)


@pytest.mark.parametrize("name", ["perceptron", "network", "counts"])
def test_the_distribution_has_the_limits_of_predict_interval_and_all_else_of_the_model(name: str) -> None:
    model, y = of(name)
    plain = clone(model).set_params(intervals="model").fit(X[1000:1601], y[1000:1601])
    model.fit(X[1000:1601], y[1000:1601])
    for rows in (X[:1], X[:20]):
        seen, other = model.predict_dist(rows), plain.predict_dist(rows)
        np.testing.assert_allclose(seen.interval(0.8), model.predict_interval(rows, 0.8), rtol=1e-12)
        assert not np.allclose(seen.interval(0.8), other.interval(0.8))
        for name in ("mean", "std"):
            np.testing.assert_array_equal(getattr(seen, name), getattr(other, name))
        np.testing.assert_array_equal(seen.ppf(0.3), other.ppf(0.3))
        np.testing.assert_array_equal(seen.logpdf(y[: len(rows)]), other.logpdf(y[: len(rows)]))


def test_an_estimator_tracks_what_its_core_model_does() -> None:
    model = BayesianPerceptronRegressor(intervals="adaptive", standardize=False, noise=0.5).fit(X, Y)
    core = AdaptiveIntervals(BayesianPerceptron(2, "linear", noise=0.5, cov=np.diag([16.0, 1.0, 1.0]))).learn(X, Y)
    np.testing.assert_allclose(model.predict_interval(X[:5]), core.interval(X[:5]), rtol=1e-9)


@pytest.mark.parametrize(
    "model",
    [
        BayesianPerceptronRegressor("relu", noise=0.5, intervals="adaptive", passes=3),
        BayesianPerceptronRegressor(intervals="adaptive", passes=3, refine="reuse"),
        BayesianMLPRegressor((5,), intervals="adaptive", passes=3, shuffle=False),
    ],
    ids=str,
)
def test_of_several_passes_the_first_is_tracked(model: Any) -> None:
    targets = Y[:400] - 30.0
    several = clone(model).fit(X[:400], targets)
    once = clone(model).set_params(passes=1).fit(X[:400], targets)
    tracked = [one.predict_dist(X[:5]).tracked.quantiles for one in (several, once)]
    np.testing.assert_allclose(tracked[0], tracked[1], rtol=1e-9)
    assert several.n_seen_ == 400
    assert not np.array_equal(several.predict(X[:5]), once.predict(X[:5]))


def test_each_of_several_targets_has_limits_of_its_own() -> None:
    both = np.column_stack([Y, 5.0 * X[:, 0] + RNG.normal(size=N)])
    both[::3, 1] = np.nan
    model = BayesianPerceptronRegressor(intervals="adaptive").fit(X, both)
    low, high = model.predict_interval(X[:4])
    alone = BayesianPerceptronRegressor(intervals="adaptive", standardize=True).fit(X, Y).predict_interval(X[:4])
    np.testing.assert_allclose((low[:, 0], high[:, 0]), alone, rtol=1e-9)
    again = BayesianPerceptronRegressor(intervals="adaptive")
    again.predict_then_learn(X, both)
    np.testing.assert_allclose(again.predict_interval(X[:4]), (low, high), rtol=1e-9)


def test_rows_count_by_their_weight() -> None:
    weights = np.where(np.arange(N) % 2, 0.0, 1.0)
    weighted = BayesianPerceptronRegressor(intervals="adaptive").fit(X, Y, sample_weight=weights)
    half = BayesianPerceptronRegressor(intervals="adaptive").fit(X[::2], Y[::2])
    np.testing.assert_allclose(weighted.predict_interval(X[:4]), half.predict_interval(X[:4]), rtol=1e-9)


def test_a_call_that_fails_leaves_the_limits_as_they_were() -> None:
    model = BayesianPerceptronRegressor(intervals="adaptive").fit(X, Y)
    before = model.predict_interval(X[:3])
    huge = np.array([[1e308, 1e308]])
    with pytest.raises(ValueError, match="overflow"):
        model.partial_fit(np.vstack([X[:2], huge]), [90.0, 90.0, 1e308])
    np.testing.assert_array_equal(model.predict_interval(X[:3]), before)


@pytest.mark.parametrize("n", [40, 300])
def test_a_file_restores_the_limits(n: int, tmp_path: Path) -> None:
    model = BayesianPerceptronRegressor(intervals="adaptive").fit(X[:n], Y[:n])
    save(model, tmp_path / "model")
    twin: Any = load(tmp_path / "model")
    for own in (model, twin):
        own.partial_fit(X[n : n + 80], Y[n : n + 80])
    np.testing.assert_array_equal(twin.predict_interval(X[:5]), model.predict_interval(X[:5]))


def test_a_pipeline_passes_the_limits_on() -> None:
    model = make_pipeline(StandardScaler(), BayesianPerceptronRegressor(intervals="adaptive")).fit(X, Y)
    scaled = StandardScaler().fit(X)
    alone = BayesianPerceptronRegressor(intervals="adaptive").fit(scaled.transform(X), Y)
    limits = model.predict(X[:5], return_dist=True).interval(0.9)
    np.testing.assert_allclose(limits, alone.predict_interval(scaled.transform(X[:5]), 0.9), rtol=1e-12)


def test_an_unknown_kind_of_intervals_is_refused() -> None:
    with pytest.raises(ValueError, match="intervals must be"):
        BayesianPerceptronRegressor(intervals="wide").fit(X, Y)
