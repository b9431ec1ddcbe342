"""Targets whose logarithm or another function is learned: predictions in their own units."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.integrate import quad
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from onepass import BayesianMLPRegressor, BayesianPerceptronRegressor, load, save
from onepass.estimators.transforms import Logarithm, TransformedUnits, as_transform
from onepass.models.distribution import LinearUnits

RNG = np.random.default_rng(0)
X = RNG.normal(size=(600, 2))
LOGS = 5.0 + X @ [0.5, -0.3] + 0.4 * RNG.normal(size=600)
Y = np.exp(LOGS)
MODELS: list[Any] = [
    BayesianPerceptronRegressor(target_transform="log"),
    BayesianPerceptronRegressor(target_transform="log", standardize=False, noise=0.16),
    BayesianPerceptronRegressor(target_transform="log", drift="auto"),
    BayesianPerceptronRegressor(target_transform="log", intervals="adaptive"),
    BayesianMLPRegressor((5,), target_transform="log", members=2, passes=1),
]


@pytest.mark.parametrize("model", MODELS, ids=str)
def test_predictions_are_those_of_the_logarithm_in_the_targets_own_units(model: Any) -> None:
    model = clone(model).fit(X[:500], Y[:500])
    plain = clone(model).set_params(target_transform=None).fit(X[:500], LOGS[:500])
    rows, y = X[500:], Y[500:]
    seen, logs = model.predict_dist(rows), plain.predict_dist(rows)
    np.testing.assert_allclose(seen.ppf(0.5), np.exp(logs.ppf(0.5)), rtol=1e-10)
    np.testing.assert_allclose(seen.cdf(y), logs.cdf(np.log(y)), rtol=1e-10)
    np.testing.assert_allclose(seen.logpdf(y), logs.logpdf(np.log(y)) - np.log(y), rtol=1e-10)
    for found in (seen.interval(0.8), model.predict_interval(rows, 0.8)):
        np.testing.assert_allclose(found, np.exp(plain.predict_interval(rows, 0.8)), rtol=1e-10)
    mean, std = model.predict(rows, return_std=True)
    np.testing.assert_allclose(mean, seen.mean, rtol=1e-10)
    np.testing.assert_allclose(std, seen.std, rtol=1e-10)
    np.testing.assert_allclose(model.predict(rows[:1]), mean[:1], rtol=1e-9)
    scored = model.predict_then_learn(rows[:1], y[:1])
    np.testing.assert_allclose(scored.log_density, seen.without_model().logpdf(y)[:1], atol=0.02)
    np.testing.assert_allclose(scored.mean, mean[:1], rtol=1e-6)


def test_the_mean_is_the_expected_target() -> None:
    model = BayesianPerceptronRegressor(target_transform="log", noise=0.16).fit(X, Y)
    seen = model.predict_dist(X[:1])
    expected, _ = quad(lambda y: y * float(seen.pdf([y])[0]), 0.0, 5000.0, limit=500)
    assert model.predict(X[:1])[0] == pytest.approx(expected, rel=1e-6)
    assert seen.mean[0] > 1.05 * seen.ppf(0.5)[0]
    drawn = model.sample_y(X[:1], 40_000, random_state=0)
    assert drawn.mean() == pytest.approx(expected, rel=0.01)
    assert np.median(drawn) == pytest.approx(seen.ppf(0.5)[0], rel=0.01)


def test_a_pair_of_functions_is_learned_as_the_logarithm_but_not_saved(tmp_path: Path) -> None:
    named = BayesianPerceptronRegressor(target_transform="log").fit(X, Y)
    pair = BayesianPerceptronRegressor(target_transform=(np.log, np.exp)).fit(X, Y)
    own = BayesianPerceptronRegressor(target_transform=Logarithm()).fit(X, Y)
    for other in (pair, own):
        np.testing.assert_allclose(other.predict(X), named.predict(X), rtol=1e-12)
        np.testing.assert_allclose(other.predict_dist(X).logpdf(Y), named.predict_dist(X).logpdf(Y), rtol=1e-6)
        with pytest.raises(TypeError, match=r"target_transform=.*can't be saved"):
            save(other, tmp_path / "model")
    save(named, tmp_path / "model")
    twin: Any = load(tmp_path / "model")
    for each in (named, twin):
        each.partial_fit(X[:50], Y[:50])
    np.testing.assert_array_equal(twin.predict(X), named.predict(X))


def test_several_targets_and_a_pipeline() -> None:
    both = np.column_stack([Y, Y**2])
    both[::5, 1] = np.nan
    model = make_pipeline(StandardScaler(), BayesianPerceptronRegressor(target_transform="log")).fit(X, both)
    assert model.predict(X).shape == (600, 2)
    assert model.score(X, both) > 0.2
    one = make_pipeline(StandardScaler(), BayesianPerceptronRegressor(target_transform="log")).fit(X, Y)
    np.testing.assert_allclose(model.predict(X)[:, 0], one.predict(X), rtol=1e-9)


def test_rows_one_by_one_are_learned_as_together() -> None:
    whole = BayesianPerceptronRegressor(target_transform="log").fit(X[:200], Y[:200])
    single = BayesianPerceptronRegressor(target_transform="log")
    for i in range(200):
        single.partial_fit(X[i : i + 1], Y[i : i + 1])
    np.testing.assert_allclose(single.predict(X), whole.predict(X), rtol=1e-9)


@pytest.mark.parametrize("bad", [0.0, -3.0])
def test_a_target_without_a_logarithm_is_refused_and_nothing_learned(bad: float) -> None:
    model = BayesianPerceptronRegressor(target_transform="log").fit(X, Y)
    with pytest.raises(ValueError, match="defined for, got"):
        model.partial_fit(X[:3], [1.0, bad, 2.0])
    assert model.n_seen_ == 600


@pytest.mark.parametrize("given", ["root", 3, (np.log,), (np.log, "exp")])
def test_what_is_no_transform_is_refused(given: Any) -> None:
    with pytest.raises(ValueError, match="target_transform must be"):
        BayesianPerceptronRegressor(target_transform=given).fit(X, Y)


def test_counts_are_not_transformed() -> None:
    with pytest.raises(ValueError, match="needs targets that are numbers"):
        BayesianPerceptronRegressor("exp", target_transform="log").fit(X, np.floor(Y))


def test_units_change_densities_by_their_slope() -> None:
    units = TransformedUnits(Logarithm(), LinearUnits(2.0, 0.5))
    assert units.from_model(units.to_model(7.0)) == pytest.approx(7.0)
    step = 1e-6
    slope = (units.to_model(7.0 + step) - units.to_model(7.0 - step)) / (2.0 * step)
    assert units.log_slope(7.0) == pytest.approx(np.log(slope), rel=1e-6)
    pair: Any = as_transform((np.sqrt, np.square))
    assert pair.log_slope(4.0) == pytest.approx(np.log(0.25), abs=1e-6)


def test_targets_that_can_not_be_have_no_density() -> None:
    found = BayesianPerceptronRegressor(target_transform="log").fit(X, Y).predict_dist(X[:3])
    impossible = np.array([-1.0, 0.0, -np.inf])
    np.testing.assert_array_equal(found.cdf(impossible), 0.0)
    np.testing.assert_array_equal(found.pdf(impossible), 0.0)
    mixed = np.array([Y[0], -1.0, Y[2]])
    np.testing.assert_array_equal(found.logpdf(mixed)[[0, 2]], found.logpdf(Y[:3])[[0, 2]])
    np.testing.assert_array_equal(found.cdf(np.full(3, np.inf)), 1.0)
