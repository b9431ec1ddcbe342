"""Estimators of several outputs of which some were not observed: each output learns from the rows that have it."""

import copy
from typing import Any

import numpy as np
import pytest
from sklearn.metrics import r2_score

from onepass import BayesianMLPRegressor, BayesianPerceptronRegressor, load, save

NAN = np.nan
ESTIMATORS = (
    BayesianPerceptronRegressor(standardize=False),
    BayesianPerceptronRegressor(standardize=True, warm_up=20, prior_scale="auto"),
    BayesianPerceptronRegressor(noise=0.5, covariance="diagonal", outliers=0.05, standardize=False),
    BayesianMLPRegressor((4,), warm_up=20),
    BayesianMLPRegressor((4,), warm_up=20, members=2, outliers=0.05, observation="heteroscedastic"),
    BayesianMLPRegressor((4,), warm_up=20, passes=2),
)


def rows(n: int = 90) -> tuple[np.ndarray, np.ndarray]:
    """Inputs, and three targets of different scales, each observed in two rows of three; the last row has none."""
    rng = np.random.default_rng(5)
    X = rng.normal(size=(n, 3))
    Y = (X @ rng.normal(size=(3, 3)) + 0.3 * rng.normal(size=(n, 3))) * [1.0, 4.0, 2.0] + [0.0, 3.0, -2.0]
    Y[rng.uniform(size=Y.shape) > 0.67] = NAN
    Y[-1] = NAN
    return X, Y


@pytest.mark.parametrize("estimator", ESTIMATORS[0:1] + ESTIMATORS[2:3])
def test_each_output_is_an_estimator_of_its_own(estimator: Any) -> None:
    X, Y = rows()
    model = copy.deepcopy(estimator).fit(X, Y)
    mean, std = model.predict(X, return_std=True)
    evidence = 0.0
    for k in range(3):
        seen = ~np.isnan(Y[:, k])
        alone = copy.deepcopy(estimator).fit(X[seen], Y[seen, k])
        own_mean, own_std = alone.predict(X, return_std=True)
        np.testing.assert_allclose(mean[:, k], own_mean)
        np.testing.assert_allclose(std[:, k], own_std)
        evidence += alone.log_evidence_
    assert model.log_evidence_ == pytest.approx(evidence)
    assert model.n_seen_ == len(X)


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_everything_stays_finite_however_the_rows_are_split(estimator: Any) -> None:
    X, Y = rows()
    in_order: dict[str, Any] = {"passes": 1, "shuffle": False} if "shuffle" in estimator.get_params() else {}
    whole = copy.deepcopy(estimator).set_params(**in_order).fit(X, Y)
    split = copy.deepcopy(estimator)
    for start in (0, 7, 30):
        split.partial_fit(X[start : {0: 7, 7: 30, 30: 90}[start]], Y[start : {0: 7, 7: 30, 30: 90}[start]])
    copy.deepcopy(estimator).fit(X, Y)
    np.testing.assert_allclose(split.predict(X), whole.predict(X))
    assert split.log_evidence_ == pytest.approx(whole.log_evidence_)
    predicted = split.predict_then_learn(X, Y)
    assert all(np.isfinite(part).all() for part in predicted if part is not None)
    assert predicted.log_density[-1] == predicted.outlier_probability[-1] == 0.0
    probabilities = split.outlier_probability(X, Y)
    assert probabilities.shape == (90,)
    assert np.isfinite(probabilities).all()
    assert probabilities[-1] == 0.0
    assert np.isfinite([split.log_evidence_, split.score(X, Y)]).all()


@pytest.mark.parametrize("estimator", [ESTIMATORS[0], BayesianPerceptronRegressor(noise=0.5, standardize=False)])
def test_rows_are_predicted_just_before_they_are_learned_or_passed_over(estimator: Any) -> None:
    X, Y = rows(30)
    model, slow = copy.deepcopy(estimator).fit(X, Y), copy.deepcopy(estimator).fit(X, Y)
    before = model.log_evidence_
    predicted = model.predict_then_learn(X, Y)
    for i in range(30):
        mean, std = slow.predict(X[i : i + 1], return_std=True)
        np.testing.assert_allclose(predicted.mean[i], mean[0])
        np.testing.assert_allclose(predicted.std[i], std[0])
        alone = slow.predict_then_learn(X[i : i + 1], Y[i : i + 1])
        assert predicted.log_density[i] == pytest.approx(alone.log_density[0])
    assert slow.log_evidence_ == pytest.approx(model.log_evidence_)
    if estimator.noise != "learn":  # of which the evidence is no product of predictive densities
        assert predicted.log_density.sum() == pytest.approx(model.log_evidence_ - before)


def test_targets_are_standardised_by_what_was_observed() -> None:
    X, Y = rows()
    model = BayesianPerceptronRegressor(standardize=True, warm_up=40).fit(X, Y)
    np.testing.assert_allclose(model._learner.state.targets.centre, np.nanmean(Y[:40], axis=0))
    np.testing.assert_allclose(model._learner.state.targets.scale, np.nanstd(Y[:40], axis=0))
    wild = Y.copy()
    wild[np.flatnonzero(~np.isnan(Y[:40, 1]))[0], 1] = 1e9  # which does not count where it may not be trusted
    robust = BayesianPerceptronRegressor(standardize=True, warm_up=40, outliers=0.05).fit(X, wild)
    np.testing.assert_allclose(robust._learner.state.targets.scale[[0, 2]], np.nanstd(Y[:40], axis=0)[[0, 2]])
    assert robust._learner.state.targets.scale[1] < 10.0
    # In the targets' own units, however they are scaled; the first rows, which set the scale, are not scored.
    scaled = BayesianPerceptronRegressor(standardize=True, warm_up=40).fit(X, Y * 10.0)
    observed = (~np.isnan(Y[40:])).sum()
    assert scaled.log_evidence_ == pytest.approx(model.log_evidence_ - observed * np.log(10.0))


def test_an_output_not_observed_in_the_warm_up_is_told_of_and_learned_later() -> None:
    X, Y = rows()
    late = Y.copy()
    late[:20, 2] = NAN
    with pytest.warns(UserWarning, match="output 2 was not observed in the first 20 rows"):
        model = BayesianMLPRegressor((4,), warm_up=20, shuffle=False).fit(X, late)
    assert model._learner.state.targets.scale[2] == 1.0
    assert np.isfinite(model.predict(X)).all()
    assert np.isfinite(model.log_evidence_)


def test_the_score_is_that_of_the_observed_entries() -> None:
    X, Y = rows()
    model = BayesianPerceptronRegressor(standardize=False).fit(X, Y)
    mean, weights = model.predict(X), np.linspace(1.0, 2.0, len(X))
    for given in (None, weights):
        own = []
        for k in range(3):
            seen = ~np.isnan(Y[:, k])
            own.append(r2_score(Y[seen, k], mean[seen, k], sample_weight=None if given is None else given[seen]))
        assert model.score(X, Y, given) == pytest.approx(np.mean(own))
    with pytest.raises(ValueError, match="at least one number that is not NaN"):
        model.score(X, np.full((90, 3), NAN))


def test_weights_and_counts_go_with_the_rows_that_were_observed() -> None:
    X, Y = rows()
    weights = np.random.default_rng(0).integers(1, 3, len(X)) / 2.0
    model = BayesianPerceptronRegressor(noise=0.5, standardize=False).fit(X, Y, weights)
    seen = ~np.isnan(Y[:, 1])
    alone = BayesianPerceptronRegressor(noise=0.5, standardize=False).fit(X[seen], Y[seen, 1], weights[seen])
    np.testing.assert_allclose(model.coef_[1], alone.coef_)
    counts = np.floor(np.abs(Y))
    both = BayesianPerceptronRegressor("exp", standardize=False).fit(X, counts)
    one = BayesianPerceptronRegressor("exp", standardize=False).fit(X[seen], counts[seen, 1])
    np.testing.assert_allclose(both.coef_[1], one.coef_)


def test_a_warm_up_with_unobserved_targets_is_saved(tmp_path: Any) -> None:
    X, Y = rows()
    model = BayesianMLPRegressor((4,), warm_up=50).fit(X[:30], Y[:30])
    save(model, tmp_path / "model.onepass")
    again = load(tmp_path / "model.onepass").partial_fit(X[30:], Y[30:])
    np.testing.assert_array_equal(again.predict(X), model.partial_fit(X[30:], Y[30:]).predict(X))


def test_one_output_needs_every_target_and_none_is_infinite() -> None:
    X, Y = rows()
    model = BayesianPerceptronRegressor(standardize=False)
    for y in (Y[:, 0], Y[:, :1]):
        with pytest.raises(ValueError, match="contains NaN"):
            model.fit(X, y)
    infinite = Y.copy()
    infinite[3, 1] = np.inf
    with pytest.raises(ValueError, match="infinity"):
        model.fit(X, infinite)
    with pytest.raises(ValueError, match="contains NaN"):
        model.fit(Y, Y)  # inputs are not targets
