"""Estimates against a simulator whose truth is known, over many logs: are they right, and do they know how wrong?"""

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest

from onepass._typing import FloatArray
from onepass.decisions import ContextualBandit, DecisionLog, Estimate, Evaluation, LoggedDecision, evaluate
from onepass.decisions.reward_model import growing_chunks

N_ARMS, N_FEATURES = 3, 2
SLOPES = np.array([[2.0, 0.0], [-1.0, 1.5], [0.0, -1.0]])
MANY = np.random.default_rng(1).normal(size=(200_000, N_FEATURES))
Policy = Callable[[FloatArray], FloatArray]


def _reward_probabilities(contexts: FloatArray) -> FloatArray:
    return np.asarray(1.0 / (1.0 + np.exp(-(contexts @ SLOPES.T + [0.3, 0.0, -0.3]))))


def _softmax(scores: FloatArray) -> FloatArray:
    powers = np.exp(scores - scores.max(axis=1, keepdims=True))
    return np.asarray(powers / powers.sum(axis=1, keepdims=True))


def _logging(contexts: FloatArray) -> FloatArray:
    return 0.2 + 0.4 * _softmax(contexts @ SLOPES[::-1].T)


def _best(contexts: FloatArray) -> FloatArray:
    return np.asarray(np.eye(N_ARMS)[_reward_probabilities(contexts).argmax(axis=1)])


def _random(contexts: FloatArray) -> FloatArray:
    return _softmax(contexts @ SLOPES.T)


def _truth(policy: Policy) -> float:
    return float((policy(MANY) * _reward_probabilities(MANY)).sum(axis=1).mean())


def _simulated(n: int, seed: int, reward: Callable[[FloatArray, Any], FloatArray] | None = None) -> DecisionLog:
    """A log of the policy `_logging`, with rewards 0 and 1 or those of a function of what is expected."""
    rng = np.random.default_rng(seed)
    contexts = rng.normal(size=(n, N_FEATURES))
    probabilities = _logging(contexts)
    chosen = (probabilities.cumsum(axis=1) < rng.random((n, 1))).sum(axis=1)
    rows = np.arange(n)
    expected = _reward_probabilities(contexts)[rows, chosen]
    rewards = (rng.random(n) < expected).astype(float) if reward is None else reward(expected, rng)
    feedback = {"context": contexts, "action": chosen, "reward": rewards, "pscore": probabilities[rows, chosen]}
    return DecisionLog.from_bandit_feedback(feedback)


def _with_propensities(log: DecisionLog, change: Callable[[FloatArray], FloatArray]) -> DecisionLog:
    changed = DecisionLog()
    for one, propensity in zip(log, change(log.propensities), strict=True):
        changed.append(one._replace(propensity=float(propensity)))
    return changed


@cache
def _evaluations(policy: Policy) -> list[Evaluation]:
    return [evaluate(_simulated(250, seed), policy) for seed in range(200)]


def _errors(estimates: list[Estimate], truth: float) -> FloatArray:
    """In standard errors."""
    return np.array([(one.value - truth) / one.standard_error for one in estimates])


@pytest.mark.parametrize("policy", [_best, _random])
@pytest.mark.parametrize("name", ["ips", "snips", "dr"])
def test_estimates_are_right_and_so_are_their_standard_errors(policy: Policy, name: str) -> None:
    estimates: list[Estimate] = [getattr(one, name) for one in _evaluations(policy)]
    truth = _truth(policy)
    values = np.array([one.value for one in estimates])
    assert abs(values.mean() - truth) < 3.5 * values.std() / np.sqrt(len(values))
    assert np.mean([one.standard_error for one in estimates]) == pytest.approx(values.std(), rel=0.12)
    covered = np.mean([low < truth < high for low, high in (one.interval(0.95) for one in estimates)])
    assert 0.91 <= covered <= 0.98


@pytest.mark.parametrize("policy", [_best, _random])
def test_a_good_model_of_rewards_makes_the_doubly_robust_estimate_more_certain(policy: Policy) -> None:
    ips, dr = (np.mean([getattr(one, name).standard_error for one in _evaluations(policy)]) for name in ("ips", "dr"))
    assert dr < 0.7 * ips


def test_the_mean_of_weights_shows_wrong_propensities() -> None:
    log = _simulated(2000, 0)
    right, wrong = evaluate(log, _best), evaluate(_with_propensities(log, lambda p: np.sqrt(p)), _best)
    assert abs(_errors([right.mean_weight], 1.0)[0]) < 3.0
    assert abs(_errors([wrong.mean_weight], 1.0)[0]) > 10.0
    assert abs(_errors([wrong.ips], _truth(_best))[0]) > 10.0
    assert "not 1" in str(wrong)
    assert "not 1" not in str(right)


def test_a_model_that_is_right_makes_up_for_wrong_propensities() -> None:
    """Doubly robust: here the propensities of all arms are wrong by a factor, which self-normalising can't see."""
    logs = [_with_propensities(_simulated(1500, seed), lambda p: np.clip(1.6 * p, 0.0, 1.0)) for seed in range(8)]
    errors = {name: np.mean([getattr(evaluate(log, _best), name).value for log in logs]) for name in ("ips", "dr")}
    truth = _truth(_best)
    assert abs(errors["ips"] - truth) > 0.2
    assert abs(errors["dr"] - truth) < 0.03


def test_the_doubly_robust_estimate_is_right_with_a_useless_model() -> None:
    model = ContextualBandit(range(N_ARMS), N_FEATURES)
    rng = np.random.default_rng(0)
    model.learn(
        50.0 * rng.normal(size=(500, N_FEATURES)), rng.integers(N_ARMS, size=500).tolist(), rng.integers(2, size=500)
    )
    found = [evaluate(_simulated(250, seed), _best, model=model) for seed in range(60)]
    errors = _errors([one.dr for one in found], _truth(_best))
    assert abs(errors.mean()) < 3.5 / np.sqrt(len(errors))
    assert 0.75 < errors.std() < 1.3
    assert model.n_rewards == 500  # a copy has learned


def test_rare_rewards_do_not_make_the_doubly_robust_estimate_worse_than_one_without_a_model() -> None:
    logs = [_simulated(1500, seed, lambda mean, rng: (rng.random(len(mean)) < 0.02 * mean) * 1.0) for seed in range(6)]
    found = [evaluate(log, _best) for log in logs]
    assert np.mean([one.dr.standard_error / one.ips.standard_error for one in found]) < 1.03


def test_rewards_may_be_any_numbers() -> None:
    """Euros, say, of which most decisions bring none; the first chunks of the log have only zeros."""

    def euros(expected: FloatArray, rng: Any) -> FloatArray:
        return np.asarray(
            np.where(rng.random(len(expected)) < 0.3 * expected, rng.gamma(2.0, 500.0, len(expected)), 0.0)
        )

    found = [evaluate(_simulated(600, seed, euros), _random) for seed in range(40)]
    truth = 0.3 * 1000.0 * _truth(_random)
    for name in ("ips", "snips", "dr"):
        errors = _errors([getattr(one, name) for one in found], truth)
        assert abs(errors.mean()) < 3.5 / np.sqrt(len(errors))
        assert 0.75 < errors.std() < 1.3
    assert np.mean([one.dr.standard_error / one.ips.standard_error for one in found]) < 1.0


def test_where_the_zero_of_rewards_is_does_not_matter_to_a_model() -> None:
    found = evaluate(_simulated(600, 0, lambda expected, rng: 1000.0 + 50.0 * expected + rng.normal(size=600)), _random)
    assert abs(_errors([found.dr], 1000.0 + 50.0 * _truth(_random))[0]) < 3.0
    assert found.dr.standard_error < 0.8 * found.snips.standard_error < 0.02 * found.ips.standard_error


def test_the_estimates_are_what_their_formulas_say() -> None:
    log = DecisionLog()
    rows = [(0, 0.5, 1.0), (1, 0.25, 2.0), (0, 0.8, 0.0), (1, 0.2, 5.0)]
    for i, (arm, propensity, reward) in enumerate(rows):
        log.append(LoggedDecision(str(i), 0.0, np.zeros(1), arm, arm, 0, propensity, reward))
    policy = [[0.5, 0.5], [0.9, 0.1], [1.0, 0.0], [0.0, 1.0]]
    weights, rewards = np.array([1.0, 0.4, 1.25, 5.0]), np.array([1.0, 2.0, 0.0, 5.0])
    found = evaluate(log, policy)
    terms = weights * rewards
    mean = 26.8 / 7.65
    assert found.ips.value == pytest.approx(26.8 / 4)
    assert found.ips.standard_error == pytest.approx(np.sqrt(np.var(terms, ddof=1) / 4))
    assert found.snips.value == pytest.approx(mean)
    without = [np.average(np.delete(rewards, i), weights=np.delete(weights, i)) for i in range(4)]
    assert found.snips.standard_error == pytest.approx(np.sqrt(((np.array(without) - mean) ** 2).sum()))
    # With so few rows the model is the mean of the rewards before a chunk: 1 for the second row, 1.5 for those after.
    doubly = np.array([1.0 + 0.4 * (2.0 - 1.0), 1.5 + 1.25 * (0.0 - 1.5), 1.5 + 5.0 * (5.0 - 1.5)])
    assert found.dr.value == pytest.approx(doubly.mean())
    assert found.dr.standard_error == pytest.approx(np.sqrt(np.var(doubly, ddof=1) / 3))
    assert found.dm == pytest.approx(4.0 / 3.0)
    assert (found.largest_weight, found.n_decisions, found.n_left_out, found.n_clipped) == (5.0, 4, 0, 0)
    assert found.effective_size == pytest.approx(7.65**2 / (weights**2).sum())
    assert found.mean_weight.value == pytest.approx(7.65 / 4)
    assert found.mean_reward.value == 2.0
    clipped = evaluate(log, policy, clip=1.0)
    assert clipped.ips.value == pytest.approx((1.0 + 0.8 + 5.0) / 4)
    assert (clipped.n_clipped, clipped.mean_weight) == (2, found.mean_weight)


def test_what_the_log_itself_did_is_worth_what_it_earned() -> None:
    log = _simulated(500, 3)
    found = evaluate(log, _logging)
    assert found.ips.value == pytest.approx(log.rewards.mean())
    assert found.snips.value == pytest.approx(log.rewards.mean())
    assert found.effective_size == pytest.approx(500.0)


def test_a_policy_may_come_in_many_forms() -> None:
    log = _simulated(300, 0)
    expected = evaluate(log, lambda contexts: np.tile([0.0, 1.0, 0.0], (len(contexts), 1)))
    assert evaluate(log, 1).ips == expected.ips
    assert evaluate(log, 1).snips == expected.snips
    assert evaluate(log.to_table(), np.tile([1.0, 0.0, 0.0], (300, 1)), arms=[1, 0, 2]).ips == expected.ips
    even = evaluate(log, np.full((300, 3), 1.0 / 3.0))
    assert evaluate(log, "uniform") == even
    assert evaluate(log, "uniform", arms=[0, 1, 2, 3]).mean_weight.value == pytest.approx(0.75 * even.mean_weight.value)
    bandit = ContextualBandit([0, 1, 2], N_FEATURES).learn_log(_simulated(300, 1))
    assert evaluate(log, bandit) == evaluate(log, bandit.propensities)
    paused = ContextualBandit([2, 1], N_FEATURES).pause(2)  # an arm that the bandit does not have is never chosen
    assert evaluate(log, paused).ips == expected.ips
    assert evaluate(log, bandit, arms=[1]).ips == expected.ips


def test_a_bandits_own_log_tells_what_another_policy_would_have_earned() -> None:
    errors: dict[str, list[float]] = {"ips": [], "snips": [], "dr": []}
    for seed in range(12):
        rng = np.random.default_rng(seed)
        bandit = ContextualBandit(["a", "b", "c"], N_FEATURES, policy="thompson", seed=seed)
        bandit.log = DecisionLog()
        for _ in range(20):
            contexts = rng.normal(size=(15, N_FEATURES))
            choices = bandit.choose_many(contexts)
            expected = _reward_probabilities(contexts)[np.arange(15), ["abc".index(one.arm) for one in choices]]
            bandit.reward_many([one.id for one in choices], (rng.random(15) < expected) * 1.0)
        found = evaluate(bandit.log, _best)
        for name, own in errors.items():
            own.append(_errors([getattr(found, name)], _truth(_best))[0])
    for own in errors.values():
        assert abs(np.mean(own)) < 3.5 / np.sqrt(len(own))
        assert max(map(abs, own)) < 4.5


def test_a_bandit_that_learns_as_it_goes_is_not_judged_by_what_it_remembers() -> None:
    """Rewards are a coin's, so no policy can do better than one half; one that has seen the log seems to."""
    rng = np.random.default_rng(0)
    contexts, arms = rng.normal(size=(400, 100)), rng.integers(2, size=400)
    coins = {"context": contexts, "action": arms, "reward": rng.integers(2, size=400), "pscore": np.full(400, 0.5)}
    log = DecisionLog.from_bandit_feedback(coins)
    fresh = ContextualBandit(range(2), 100, policy="greedy")
    remembered = evaluate(log, ContextualBandit(range(2), 100, policy="greedy").learn_log(log))
    learned = evaluate(log, fresh, learn=True)
    assert _errors([remembered.dr], 0.5)[0] > 4.0
    assert abs(_errors([learned.dr], 0.5)[0]) < 2.5
    assert fresh.n_rewards == 0


def test_learning_as_it_goes_gives_the_mean_of_the_policies_on_the_way() -> None:
    errors = []
    for seed in range(25):
        log = _simulated(300, seed)
        found = evaluate(log, ContextualBandit(range(N_ARMS), N_FEATURES, policy="greedy"), learn=True)
        bandit = ContextualBandit(range(N_ARMS), N_FEATURES, policy="greedy")
        values = []
        for chunk in growing_chunks(300):
            means = bandit.predict(MANY[:2000]).reward_mean
            is_best = means == means.max(axis=1, keepdims=True)
            earned = (is_best * _reward_probabilities(MANY[:2000])).sum(axis=1) / is_best.sum(axis=1)
            values += [earned.mean()] * (chunk.stop - chunk.start)
            bandit.learn_log(log[chunk])
        errors.append(_errors([found.dr], float(np.mean(values)))[0])
    assert abs(np.mean(errors)) < 3.5 / np.sqrt(len(errors))
    assert np.std(errors) < 1.4


def test_of_rankings_the_first_position_counts() -> None:
    log, ranked = _simulated(60, 0), DecisionLog()
    rows = []
    for k, one in enumerate(log):
        ranked.append(one)
        rows.append(k)
        if k % 2:
            ranked.append(one._replace(position=1, propensity=None, reward=1.0))
            rows.append(k)
    found, expected = evaluate(ranked, "uniform"), evaluate(log, "uniform")
    assert (found.ips, found.dr, found.n_left_out) == (expected.ips, expected.dr, 30)
    assert evaluate(ranked, _random(log.contexts)[rows]).dr == evaluate(log, _random).dr


def test_rows_are_taken_in_the_order_of_their_decisions() -> None:
    log, timed = _simulated(100, 0), DecisionLog()
    for k, one in enumerate(log):
        timed.append(one._replace(time=float(k)))
    order = np.random.default_rng(0).permutation(100)
    found, expected = evaluate(timed[order], _random(log.contexts)[order]), evaluate(log, _random)
    assert found.dr.value == pytest.approx(expected.dr.value, rel=1e-12)


@pytest.mark.parametrize(
    ("policy", "options", "message"),
    [
        ("purple", {}, r"'purple' is neither 'uniform' nor an arm of the log, which has 0, 1, 2"),
        (np.full((50, 2), 0.5), {}, "probabilities for 2 arms, but the arms in the log are numbered 0 to 2.*arms"),
        (np.full((49, 3), 1.0 / 3.0), {}, "the log's 50 rows, got 49"),
        (np.full((50, 3), 0.5), {}, "sum to 1, got .* in row 0"),
        (lambda contexts: np.ones(len(contexts)), {}, r"shape \(50, K\), got shape \(50,\)"),
        (np.full((50, 3), 1.0 / 3.0), {"arms": [0, 1]}, "name each of the 3 columns of probabilities, got 2"),
        (np.full((50, 3), 1.0 / 3.0), {"arms": [0, 1, 1]}, "must all be different"),
        (np.tile([0.0, 0.0, 0.0, 1.0], (50, 1)), {}, "never chooses an arm that was chosen in the log"),
        ("uniform", {"clip": 0.0}, "clip"),
        ("uniform", {"learn": True}, "learn=True needs a ContextualBandit"),
        ("uniform", {"model": "linear"}, "model must be a ContextualBandit, got str"),
    ],
)
def test_what_is_no_policy_is_told(policy: Any, options: dict[str, Any], message: str) -> None:
    with pytest.raises((ValueError, TypeError), match=message):
        evaluate(_simulated(50, 0), policy, **options)


def test_logs_that_can_not_be_used_are_told() -> None:
    bandit = ContextualBandit(["a", "b"], 1)
    early = bandit.choose([0.0])
    bandit.log = DecisionLog()
    for choice in (early, *bandit.choose_many([[1.0], [2.0], [3.0]])):
        bandit.reward(choice.id, 1.0)
    with pytest.raises(ValueError, match=r"1 of 4 decisions have no propensity.*row 0.*log\[log\.propensities > 0\]"):
        evaluate(bandit.log, "uniform")
    assert evaluate(bandit.log[bandit.log.propensities > 0], "uniform").n_decisions == 3
    with pytest.raises(ValueError, match="at least three decisions, got 0"):
        evaluate(DecisionLog(), "uniform")
    later = DecisionLog()
    for one in bandit.log:
        later.append(one._replace(position=one.position + 1))
    with pytest.raises(ValueError, match=r"got 0 with position 0; positions start with 0"):
        evaluate(later, "uniform")
    named = DecisionLog()
    for one in bandit.log:
        named.append(one._replace(arm="uniform", propensity=0.5))
    with pytest.raises(ValueError, match="both an arm of the log and the name of a policy"):
        evaluate(named, "uniform")
