"""Ensembles: mixtures of models, and the weights they learn."""

import json
from typing import Any

import numpy as np
import pytest
from scipy.special import softmax
from scipy.stats import norm

from onepass import BayesianCommittee, BayesianMLPRegressor, BayesianNetwork, BayesianPerceptron
from onepass.models.ensemble import WEIGHTINGS, Ensemble
from onepass.models.weighting import FadingWeights, RuleWeights


def problem(n: int = 120) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 2))
    return X, np.sin(2 * X[:, 0]) + rng.normal(0, 0.1, n)


def test_a_committee_of_one_is_its_member() -> None:
    X, y = problem()
    alone = BayesianNetwork(2, (8,), seed=5).learn(X, y)
    committee = BayesianCommittee(2, (8,), members=1, seed=5).learn(X, y)
    np.testing.assert_array_equal(committee.predict(X), alone.predict(X))
    np.testing.assert_allclose(committee.interval(X), alone.interval(X), atol=1e-12)
    np.testing.assert_allclose(committee.log_predictive(X, y), alone.log_predictive(X, y), atol=1e-12)


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
    assert prediction.var + prediction.noise_var == pytest.approx(draws.var(), rel=0.02)
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
    with pytest.raises(ValueError, match="has intervals for numbers and counts only"):
        committee.interval(X)


def test_saved_and_loaded_it_goes_on_bit_for_bit() -> None:
    X, y = problem()
    first = BayesianCommittee(2, (5,), members=3).learn(X[:60], y[:60])
    parameters, arrays = first.export_state()
    second = BayesianCommittee.from_state(json.loads(json.dumps(parameters)), arrays)
    for committee in (first, second):
        committee.learn(X[60:], y[60:])
    np.testing.assert_array_equal(first.weights, second.weights)
    np.testing.assert_array_equal(first.predict(X), second.predict(X))
    assert first.log_evidence == second.log_evidence


def test_a_bad_row_is_learned_by_no_member() -> None:
    X, y = problem()
    committee = BayesianCommittee(2, (5,), members=3).learn(X, y)
    before: Any = committee.predict(X)
    spoiled = X.copy()
    spoiled[50] = 1e200
    for rows, targets in ((spoiled, y), (spoiled[50], y[50])):
        with pytest.raises(ValueError, match="Nothing was learned"):
            committee.learn(rows, targets)
    np.testing.assert_array_equal(committee.predict(X), before)
    assert committee.n_seen == 120


@pytest.mark.parametrize("structure", ["full", "diagonal"])
def test_threads_change_nothing(structure: str) -> None:
    X, y = problem(200)
    ways: list[dict[str, Any]] = [{"passes": 2}] + ([{"passes": 2, "refine": "ep"}] if structure == "full" else [])
    for way in ways:
        alone, threaded = (
            BayesianCommittee(2, (12,), members=5, covariance=structure, workers=workers).learn(X, y, **way)
            for workers in (1, 3)
        )
        np.testing.assert_array_equal(alone.weights, threaded.weights)
        np.testing.assert_array_equal(alone.predict(X), threaded.predict(X))
        assert alone.log_evidence == threaded.log_evidence


def test_few_rows_are_not_worth_a_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("onepass.models.ensemble.available_cores", lambda: 8)
    committee = BayesianCommittee(2, (50,), members=3)
    assert committee._cores(1, 1) == 1
    assert committee._cores(10_000, 1) == 8
    assert committee._cores(10_000, 32) == 1  # matrix products have threads of their own
    assert BayesianCommittee(2, (50,), members=3, kernel="reference")._cores(10_000, 1) == 1


def test_a_bad_row_is_learned_by_no_member_in_threads() -> None:
    X, y = problem()
    committee = BayesianCommittee(2, (5,), members=3, workers=2).learn(X, y)
    before: Any = committee.predict(X)
    spoiled = X.copy()
    spoiled[50] = 1e200
    with pytest.raises(ValueError, match="Nothing was learned"):
        committee.learn(spoiled, y)
    np.testing.assert_array_equal(committee.predict(X), before)


def test_predicting_before_learning_learns_the_same() -> None:
    rng = np.random.default_rng(3)
    X, y = rng.normal(size=(60, 2)), rng.normal(size=60)
    first, second = (BayesianCommittee(2, (5,), members=3).learn(X[:40], y[:40]) for _ in range(2))
    expected = first.predict(X[40])
    seen = second.predict_then_learn(X[40:], y[40:])
    np.testing.assert_allclose([seen.mean[0], seen.var[0]], [expected.mean, expected.var], rtol=1e-10)
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

    monkeypatch.setattr(committee, "_weighed", interrupted)
    with pytest.raises(KeyboardInterrupt):
        getattr(committee, method)(X[60:], y[60:])
    for member, (mean, n_seen) in zip(committee.members, before[0], strict=True):
        np.testing.assert_array_equal(member.mean, mean)
        assert member.n_seen == n_seen
    np.testing.assert_array_equal(committee.weights, before[1])


def test_one_hidden_layer_may_be_given_as_a_number() -> None:
    X, y = problem()
    np.testing.assert_array_equal(BayesianNetwork(2, 8).mean, BayesianNetwork(2, (8,)).mean)
    assert BayesianMLPRegressor(hidden_layer_sizes=8).fit(X, y)._ensembles[0].members[0].hidden == (8,)
    assert repr(BayesianNetwork(2, 8)).startswith("BayesianNetwork(2, (8,), 1, ")
    assert repr(BayesianCommittee(2, 8, members=3)).endswith("members=3, weighting='stacked')")


def perceptrons(*scales: float) -> Ensemble:
    members = [BayesianPerceptron(2, "linear", noise="learn", cov=scale**2) for scale in scales]
    return Ensemble(members, FadingWeights.start(len(members)))


def test_an_ensemble_of_any_models_is_weighed_by_what_they_predicted() -> None:
    X, y = problem(300)
    ensemble = perceptrons(1e-3, 1.0).learn(X, y)
    alone = [BayesianPerceptron(2, "linear", noise="learn", cov=scale**2) for scale in (1e-3, 1.0)]
    logs = np.empty((2, len(y)))
    for own, member in zip(logs, alone, strict=True):
        for i in range(len(y)):
            own[i] = member.log_predictive(X[i], y[i])
            member.learn(X[i], y[i])
    evidence = logs @ np.exp(-np.arange(299, -1, -1) / 200.0)
    np.testing.assert_allclose(ensemble.weights, np.exp(evidence) / np.exp(evidence).sum(), rtol=1e-9)
    exact = [member.log_evidence for member in alone]  # of all rows together, and not of predictions one by one
    assert ensemble.log_evidence == pytest.approx(np.logaddexp.reduce(exact) - np.log(2.0), rel=1e-12)
    np.testing.assert_allclose(
        ensemble.predict(X).mean, ensemble.weights @ [member.predict(X).mean for member in alone], rtol=1e-12
    )


@pytest.mark.parametrize("method", ["learn", "predict_then_learn"])
def test_one_member_that_fails_takes_all_others_back(method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = problem()
    ensemble, other = (perceptrons(0.5, 1.0, 2.0).learn(X, y) for _ in range(2))
    ensemble.members[0].learn(X[0], y[0])  # with the short cut for one row, which must not outlive its belief
    other.members[0].learn(X[0], y[0])

    def fails(*_: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(ensemble.members[2], "_predict_then_learn", fails)
        with pytest.raises(KeyboardInterrupt):
            getattr(ensemble, method)(X, y)
    for one in (ensemble, other):
        one.members[0].learn(X[1], y[1])
        one.members[2] = other.members[2]
        one.learn(X, y)
    np.testing.assert_array_equal(ensemble.members[0].mean, other.members[0].mean)
    np.testing.assert_array_equal(ensemble.members[1].mean, other.members[1].mean)


def test_rows_are_predicted_by_members_as_they_count_just_before_each_row() -> None:
    X, y = problem()
    whole, single = (perceptrons(0.1, 1.0, 1e8) for _ in range(2))
    predicted = whole.predict_then_learn(X, y)
    one_by_one = [single.predict_then_learn(X[i : i + 1], y[i : i + 1]) for i in range(len(y))]
    for name in ("mean", "var", "noise_var"):
        np.testing.assert_allclose(getattr(predicted, name), [getattr(row, name)[0] for row in one_by_one], rtol=1e-7)
    assert predicted.var[20:].max() < 1.0  # not that of the widest prior


def test_a_prediction_leaves_out_priors_that_are_unlikely_from_variances() -> None:
    X, y = problem()
    ensemble = perceptrons(0.1, 1.0, 1e8).learn(X[:30], y[:30])
    assert 0.0 < ensemble.weights[2] < 0.02
    assert ensemble.likely_weights[2] == 0.0
    before = ensemble.predict(X[30:31])
    row = ensemble.predict_then_learn(X[30:31], y[30:31])
    np.testing.assert_allclose(row, before, rtol=1e-9)


def test_a_row_of_weight_w_counts_as_w_rows_in_the_weights_of_an_ensemble() -> None:
    X, y = problem()
    weights = np.random.default_rng(0).integers(1, 5, len(y)).astype(float)
    ensemble = fixed(0.1, 1.0, 3.0).learn(X, y, sample_weight=weights)
    evidence = np.zeros(3)
    alone = fixed(0.1, 1.0, 3.0).members
    for i, weight in enumerate(weights.astype(int)):
        before = np.array([member.log_evidence for member in alone])
        for member in alone:
            member.learn(np.repeat(X[i : i + 1], weight, axis=0), np.repeat(y[i], weight))
        after = np.array([member.log_evidence for member in alone])
        evidence = evidence * np.exp(-weight / 200.0) + after - before
    np.testing.assert_allclose(ensemble.weights, softmax(evidence), rtol=1e-6)
    total = np.logaddexp.reduce([member.log_evidence for member in alone]) - np.log(3.0)
    assert ensemble.log_evidence == pytest.approx(total, rel=1e-9)
    seen = fixed(0.1, 1.0, 3.0)
    seen.predict_score_learn(X, y, sample_weight=weights)
    np.testing.assert_allclose(seen.weights, ensemble.weights, rtol=1e-12)


def fixed(*scales: float) -> Ensemble:
    members = [BayesianPerceptron(2, "linear", noise=0.1, cov=scale**2) for scale in scales]
    return Ensemble(members, FadingWeights.start(len(members)))


@pytest.mark.parametrize("rule", ["stacked", "evidence", "uniform"])
def test_a_committees_rules_count_a_row_as_often_as_it_weighs(rule: str) -> None:
    rng = np.random.default_rng(0)
    counts = rng.integers(1, 4, 200)
    logs = rng.normal(size=(3, 200)) + np.array([[0.3], [0.0], [-0.3]])
    errors = rng.chisquare(1, size=(3, 200, 1)), np.full((3, 200, 1), 0.8)
    start = RuleWeights.start(3, rule, 1)
    found = start.over_rows(logs, np.zeros(3), counts * logs, counts.astype(float), errors)[1]
    copies = [np.repeat(part, counts, axis=1) for part in (logs, *errors)]
    ones, own = np.ones(counts.sum()), (copies[1], copies[2])
    expected = start.over_rows(copies[0], np.zeros(3), copies[0], ones, own)[1]
    np.testing.assert_allclose(found.weights, expected.weights, atol=0.02)
    np.testing.assert_allclose(found.noise_scale, expected.noise_scale, rtol=0.05)
    np.testing.assert_allclose(found.noise_weight, expected.noise_weight, rtol=0.05)
    assert found.count == expected.count


def test_a_committee_passes_the_weights_of_rows_on() -> None:
    X, y = problem(150)
    committee = BayesianCommittee(2, (4,), members=3).learn(X, y, sample_weight=np.full(150, 3.0))
    assert (committee.n_seen, committee.weighting_arrays["count"][0]) == (150, 453.0)
