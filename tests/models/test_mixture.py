"""Mixtures of models, and the weights they learn."""

import json
import warnings
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy.special import softmax
from scipy.stats import norm

from onepass import BayesianCommittee, BayesianMLPRegressor, BayesianNetwork, BayesianPerceptron, Mixture
from onepass.models.prediction import RowScores
from onepass.models.weighting import WEIGHTINGS, CommitteeWeights, FadingWeights


def problem(n: int = 120) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 2))
    return X, np.sin(2 * X[:, 0]) + rng.normal(0, 0.1, n)


def test_the_mixture_is_that_of_its_members() -> None:
    X, y = problem()
    committee = BayesianCommittee(2, (8,), members=3).learn(X, y)
    parts = committee.member_predictions(X[0])
    rng = np.random.default_rng(1)
    chosen = rng.choice(3, size=200_000, p=committee.weights)
    means, stds = parts.mean, np.sqrt(parts.var + parts.noise_var)
    draws = rng.normal(means[chosen], stds[chosen])
    prediction = committee.predict(X[0])
    assert prediction.mean == pytest.approx(draws.mean(), abs=5e-3)
    assert prediction.epistemic + prediction.aleatoric == pytest.approx(draws.var(), rel=0.02)
    np.testing.assert_allclose(committee.interval(X[0], 0.9), np.quantile(draws, [0.05, 0.95]), atol=0.01)
    density = committee.weights @ norm.pdf(y[0], means, stds)
    assert committee.log_predictive(X[0], y[0]) == pytest.approx(np.log(density))


@pytest.mark.parametrize("weighting", WEIGHTINGS)
def test_weights_go_to_the_member_that_predicts_best(weighting: str) -> None:
    X, y = problem(300)
    committee = BayesianCommittee(2, (8,), members=3, weighting=weighting).learn(X, y)
    assert committee.weights.sum() == pytest.approx(1.0)
    if weighting == "uniform":
        np.testing.assert_allclose(committee.weights, 1 / 3)
    if weighting == "evidence":
        evidence = [member.log_evidence for member in committee.members]
        assert committee.weights.argmax() == np.argmax(evidence)
        assert committee.weights.max() > 0.9


def test_rows_in_any_split_give_the_same_weights() -> None:
    X, y = problem()
    for weighting in WEIGHTINGS:
        whole, parts = (BayesianCommittee(2, (6,), members=3, weighting=weighting) for _ in range(2))
        whole.learn(X, y)
        parts.learn(X[:70], y[:70]).learn(X[70:], y[70:])
        np.testing.assert_allclose(whole.weights, parts.weights, rtol=1e-9)


def test_refining_passes_make_it_better() -> None:
    X, y = problem(200)
    test, target = problem(1000)
    errors = [
        np.mean(
            (BayesianCommittee(2, (15,), members=2).learn(X, y, passes=n, refine="ep").predict(test).mean - target) ** 2
        )
        for n in (1, 5)
    ]
    assert errors[1] < errors[0]


def test_classes_are_mixed_as_probabilities() -> None:
    rng = np.random.default_rng(2)
    X, y = rng.normal(size=(100, 3)), rng.integers(0, 3, 100)
    committee = BayesianCommittee(3, (5,), 3, members=2, observation="categorical").learn(X, y)
    prediction = committee.predict(X)
    np.testing.assert_allclose(prediction.mean.sum(axis=1), 1.0)
    assert committee.sample_output(X, 7, 0).shape == (7, 100, 3)
    low, high = committee.interval(X)
    assert low.shape == (100, 3)
    assert (low < high).all()


def test_saved_and_loaded_it_goes_on_bit_for_bit() -> None:
    X, y = problem()
    first = BayesianCommittee(2, (5,), members=3).learn(X[:60], y[:60])
    parameters, arrays = first.export_state()
    second = Mixture.from_state(json.loads(json.dumps(parameters)), arrays)
    for committee in (first, second):
        committee.learn(X[60:], y[60:])
    np.testing.assert_array_equal(first.weights, second.weights)
    np.testing.assert_array_equal(first.predict(X).moments, second.predict(X).moments)
    assert first.log_evidence == second.log_evidence


def test_a_bad_row_is_learned_by_no_member() -> None:
    X, y = problem()
    committee = BayesianCommittee(2, (5,), members=3).learn(X, y)
    before: Any = committee.predict(X).moments
    spoiled = X.copy()
    spoiled[50] = 1e200
    for rows, targets in ((spoiled, y), (spoiled[50], y[50])):
        with pytest.raises(ValueError, match="Nothing was learned"):
            committee.learn(rows, targets)
    np.testing.assert_array_equal(committee.predict(X).moments, before)
    assert committee.n_seen == 120


@pytest.mark.parametrize("structure", ["full", "diagonal"])
def test_threads_change_nothing(structure: str) -> None:
    X, y = problem(200)
    for refine in ("reuse", "ep") if structure == "full" else ("reuse",):
        alone, threaded = (
            BayesianCommittee(2, (12,), members=5, covariance=structure, workers=workers).learn(
                X, y, passes=2, refine=refine
            )
            for workers in (1, 3)
        )
        np.testing.assert_array_equal(alone.weights, threaded.weights)
        np.testing.assert_array_equal(alone.predict(X).moments, threaded.predict(X).moments)
        assert alone.log_evidence == threaded.log_evidence


def test_few_rows_are_not_worth_a_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("onepass.models.mixture.available_cores", lambda: 8)
    committee = BayesianCommittee(2, (50,), members=3)
    assert committee._cores(1, 1) == 1
    assert committee._cores(10_000, 1) == 8
    assert committee._cores(10_000, 32) == 1  # matrix products have threads of their own
    assert BayesianCommittee(2, (50,), members=3, kernel="reference")._cores(10_000, 1) == 1


def test_a_bad_row_is_learned_by_no_member_in_threads() -> None:
    X, y = problem()
    committee = BayesianCommittee(2, (5,), members=3, workers=2).learn(X, y)
    before: Any = committee.predict(X).moments
    spoiled = X.copy()
    spoiled[50] = 1e200
    with pytest.raises(ValueError, match="Nothing was learned"):
        committee.learn(spoiled, y)
    np.testing.assert_array_equal(committee.predict(X).moments, before)


def test_predicting_before_learning_learns_the_same() -> None:
    rng = np.random.default_rng(3)
    X, y = rng.normal(size=(60, 2)), rng.normal(size=60)
    first, second = (BayesianCommittee(2, (5,), members=3).learn(X[:40], y[:40]) for _ in range(2))
    expected = first.predict(X[40])
    seen = second.predict_then_learn(X[40:], y[40:])
    np.testing.assert_allclose([seen.mean[0], seen.epistemic[0]], [expected.mean, expected.epistemic], rtol=1e-10)
    first.learn(X[40:], y[40:])
    np.testing.assert_allclose(second.weights, first.weights, rtol=1e-10)
    np.testing.assert_allclose(second.predict(X).mean, first.predict(X).mean, rtol=1e-10)
    with pytest.raises(ValueError, match="finite"):
        second.predict_then_learn(X[:2], [1.0, np.nan])
    assert second.n_seen == 60


@pytest.mark.parametrize("method", ["learn", "predict_then_learn"])
def test_an_interrupt_leaves_no_member_ahead_of_the_others(method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = problem()
    committee = BayesianCommittee(2, (8,), members=3, workers=1).learn(X[:60], y[:60])
    before = [(member.mean, member.n_seen) for member in committee.members], committee.weights

    def interrupted(*_: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(CommitteeWeights, "over_rows", interrupted)
    with pytest.raises(KeyboardInterrupt):
        getattr(committee, method)(X[60:], y[60:])
    for member, (mean, n_seen) in zip(committee.members, before[0], strict=True):
        np.testing.assert_array_equal(member.mean, mean)
        assert member.n_seen == n_seen
    np.testing.assert_array_equal(committee.weights, before[1])


def perceptrons(*scales: float) -> Mixture:
    members = [BayesianPerceptron(2, "linear", noise="learn", cov=scale**2) for scale in scales]
    return Mixture(members, FadingWeights.start(len(members)))


def test_a_mixture_of_any_models_is_weighed_by_what_they_predicted() -> None:
    X, y = problem(300)
    mixture = perceptrons(1e-3, 1.0).learn(X, y)
    alone = [BayesianPerceptron(2, "linear", noise="learn", cov=scale**2) for scale in (1e-3, 1.0)]
    logs = np.empty((2, len(y)))
    for own, member in zip(logs, alone, strict=True):
        for i in range(len(y)):
            own[i] = member.log_predictive(X[i], y[i])
            member.learn(X[i], y[i])
    evidence = logs @ np.exp(-np.arange(299, -1, -1) / 200.0)
    np.testing.assert_allclose(mixture.weights, np.exp(evidence) / np.exp(evidence).sum(), rtol=1e-9)
    exact = [member.log_evidence for member in alone]  # of all rows together, and not of predictions one by one
    assert mixture.log_evidence == pytest.approx(np.logaddexp.reduce(exact) - np.log(2.0), rel=1e-12)
    np.testing.assert_allclose(
        mixture.predict(X).mean, mixture.weights @ [member.predict(X).mean for member in alone], rtol=1e-12
    )


@pytest.mark.parametrize("method", ["learn", "predict_then_learn"])
def test_one_member_that_fails_takes_all_others_back(method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = problem()
    mixture, other = (perceptrons(0.5, 1.0, 2.0).learn(X, y) for _ in range(2))
    mixture.members[0].learn(X[0], y[0])  # with the short cut for one row, which must not outlive its belief
    other.members[0].learn(X[0], y[0])

    def fails(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(mixture.members[2], "_learn", fails)
        with pytest.raises(KeyboardInterrupt):
            getattr(mixture, method)(X, y)
    for one in (mixture, other):
        one.members[0].learn(X[1], y[1])
        one.members[2] = other.members[2]
        one.learn(X, y)
    np.testing.assert_array_equal(mixture.members[0].mean, other.members[0].mean)
    np.testing.assert_array_equal(mixture.members[1].mean, other.members[1].mean)


def test_rows_are_predicted_by_members_as_they_count_just_before_each_row() -> None:
    X, y = problem()
    whole, single = (perceptrons(0.1, 1.0, 1e8) for _ in range(2))
    predicted = whole.predict_then_learn(X, y)
    one_by_one = [single.predict_then_learn(X[i : i + 1], y[i : i + 1]) for i in range(len(y))]
    for name in ("mean", "epistemic", "aleatoric"):
        np.testing.assert_allclose(getattr(predicted, name), [getattr(row, name)[0] for row in one_by_one], rtol=1e-7)
    assert predicted.epistemic[20:].max() < 1.0  # not that of the widest prior


def test_a_prediction_has_the_variance_of_unlikely_priors_too() -> None:
    X, y = problem()
    mixture = perceptrons(0.1, 1.0, 1e8).learn(X[:30], y[:30])
    assert 0.0 < mixture.weights[2] < 0.02
    parts = [member.predict(X[30:31]) for member in mixture.members]
    squares = mixture.weights @ np.array([part.epistemic + part.mean**2 for part in parts])
    before = mixture.predict(X[30:31])
    np.testing.assert_allclose(before.epistemic, squares - before.mean**2, rtol=1e-9)
    row = mixture.predict_then_learn(X[30:31], y[30:31])
    np.testing.assert_allclose(row.moments, before.moments, rtol=1e-9)


def test_a_row_of_weight_w_counts_as_w_rows_in_the_weights_of_a_mixture() -> None:
    X, y = problem()
    weights = np.random.default_rng(0).integers(1, 5, len(y)).astype(float)
    mixture = fixed(0.1, 1.0, 3.0).learn(X, y, sample_weight=weights)
    evidence = np.zeros(3)
    alone = fixed(0.1, 1.0, 3.0).members
    for i, weight in enumerate(weights.astype(int)):
        before = np.array([member.log_evidence for member in alone])
        for member in alone:
            member.learn(np.repeat(X[i : i + 1], weight, axis=0), np.repeat(y[i], weight))
        after = np.array([member.log_evidence for member in alone])
        evidence = evidence * np.exp(-weight / 200.0) + after - before
    np.testing.assert_allclose(mixture.weights, softmax(evidence), rtol=1e-6)
    total = np.logaddexp.reduce([member.log_evidence for member in alone]) - np.log(3.0)
    assert mixture.log_evidence == pytest.approx(total, rel=1e-9)
    seen = fixed(0.1, 1.0, 3.0)
    seen.predict_score_learn(X, y, sample_weight=weights)
    np.testing.assert_allclose(seen.weights, mixture.weights, rtol=1e-12)


def fixed(*scales: float) -> Mixture:
    members = [BayesianPerceptron(2, "linear", noise=0.1, cov=scale**2) for scale in scales]
    return Mixture(members, FadingWeights.start(len(members)))


@pytest.mark.parametrize("rule", ["stacked", "evidence", "uniform"])
def test_a_committees_rules_count_a_row_as_often_as_it_weighs(rule: str) -> None:
    rng = np.random.default_rng(0)
    counts = rng.integers(1, 4, 200)
    logs = rng.normal(size=(3, 200)) + np.array([[0.3], [0.0], [-0.3]])
    errors = rng.chisquare(1, size=(3, 200, 1)), np.full((3, 200, 1), 0.8)
    start, zeros = CommitteeWeights.start(3, rule, 1), np.zeros((3, 200))
    scores = [RowScores(*own, gains=counts * own[0]) for own in zip(logs, zeros, zeros, *errors, strict=True)]
    found = start.over_rows(scores, counts.astype(float), np.zeros(3))[1]
    columns = [np.repeat(part, counts, axis=1) for part in (logs, zeros, zeros, *errors)]
    copies = [RowScores(*own) for own in zip(*columns, strict=True)]
    expected = start.over_rows(copies, None, np.zeros(3))[1]
    np.testing.assert_allclose(found.weights, expected.weights, atol=0.02)
    np.testing.assert_allclose(found.noise_scale, expected.noise_scale, rtol=0.05)
    np.testing.assert_allclose(found.noise_weight, expected.noise_weight, rtol=0.05)
    assert found.count == expected.count


def test_a_committee_passes_the_weights_of_rows_on() -> None:
    X, y = problem(150)
    committee = BayesianCommittee(2, (4,), members=3).learn(X, y, sample_weight=np.full(150, 3.0))
    assert (committee.n_seen, committee._weighting.arrays["count"][0]) == (150, 453.0)


def weighted(committee: Mixture, weights: np.ndarray) -> CommitteeWeights:
    """The weighting of a committee with other weights."""
    assert isinstance(committee._weighting, CommitteeWeights)
    return replace(committee._weighting, weights=weights)


def astray(weight: float, shift: float) -> Mixture:
    """A committee of which the last member has this weight and predicts too much by ``shift``."""
    X, y = problem()
    committee = BayesianCommittee(2, (8,), members=3).learn(X, y)
    weights = np.array([0.6 - weight, 0.4, weight])
    committee._weighting = weighted(committee, weights)
    committee.members[2]._state.belief.mean[-9] += shift  # the bias of the output
    return committee


@pytest.mark.parametrize("weight", [1e-30, 0.3])
def test_a_member_that_can_not_be_right_is_left_out_and_named_once(weight: float) -> None:
    X, y = problem()
    committee = astray(weight, 1e9)
    weights = committee.weights[:2] / committee.weights[:2].sum()
    others = Mixture(committee.members[:2], weighted(committee, weights))
    with pytest.warns(UserWarning, match="member 2 of the mixture predicts"):
        found = committee.predict(X)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        single = committee.predict(X[0])
        low, high = committee.interval(X)
    np.testing.assert_allclose(found.moments, others.predict(X).moments)
    np.testing.assert_allclose(single.moments, others.predict(X[0]).moments)
    assert (np.abs(low) < 10.0).all()
    assert (np.abs(high) < 10.0).all()
    before = astray(weight, 1e9)
    with pytest.warns(UserWarning, match="member 2"):
        first = before.predict_then_learn(X[:1], y[:1])
    np.testing.assert_allclose(first.mean, found.mean[:1])


@pytest.mark.parametrize(("weight", "shift"), [(1e-30, 3.0), (0.3, 3.0), (0.55, 1e9)])
def test_a_member_that_is_possible_or_the_heaviest_stays(weight: float, shift: float) -> None:
    X, _ = problem()
    committee = astray(weight, shift)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = committee.predict(X[:5])
    moved = found.mean - astray(weight, 0.0).predict(X[:5]).mean
    np.testing.assert_allclose(moved, weight * shift, atol=1e-9 * shift)


@pytest.mark.parametrize("over_drift", [False, True])
def test_one_row_of_several_outputs_counts_once_by_its_weight(over_drift: bool) -> None:
    X, y = problem(60)
    Y = np.column_stack([y, -y, 0.5 * y])
    models = [
        Mixture.over_drift(BayesianNetwork, 2, (4,), 3) if over_drift else BayesianCommittee(2, (4,), 3, members=2)
        for _ in range(2)
    ]
    for row, target in zip(X, Y, strict=True):
        models[0].learn(row, target, sample_weight=2.0)
    models[1].learn(X, Y, sample_weight=2.0)
    np.testing.assert_allclose(models[0].weights, models[1].weights, rtol=1e-9)
    assert models[0].log_evidence == pytest.approx(models[1].log_evidence, rel=1e-9)


def test_output_moments_of_a_committee_are_those_of_its_predictions_and_draws() -> None:
    X, y = problem(150)
    committee = BayesianCommittee(2, (6,), members=3).learn(X, y)
    far = np.array([[4.0, -4.0], [0.1, 0.2]])
    moments, seen = committee.output_moments(far), committee.predict(far)
    np.testing.assert_allclose(moments.cov[:, 0, 0], seen.epistemic, rtol=1e-9)
    np.testing.assert_allclose(committee.sample_output(far, 20_000, 0).var(axis=0), seen.epistemic, rtol=0.05)


def test_networks_of_several_prior_scales_are_scored_as_they_predict() -> None:
    X, y = problem(150)
    X[149] *= 5.0
    models = [BayesianMLPRegressor((6,), prior_scale="auto", passes=1, shuffle=False) for _ in range(2)]
    for model in models:
        model.fit(X[:149], y[:149])
    mean, std = models[0].predict(X[149:], return_std=True)
    found = models[1].predict_then_learn(X[149:], y[149:])
    np.testing.assert_allclose(found[0], mean, rtol=1e-9)
    np.testing.assert_allclose(found.std, std, rtol=1e-3)
