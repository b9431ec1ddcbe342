"""Policies: what they choose is as probable as they say."""

from typing import Any

import numpy as np
import pytest
from scipy.special import ndtri
from scipy.stats import chi2

from onepass.decisions import ContextualBandit
from onepass.decisions.policies import (
    UCB,
    ArmScores,
    EpsilonGreedy,
    Greedy,
    Policy,
    Thompson,
    as_policy,
    decode_policy,
)

POLICIES: list[Policy] = [
    Thompson(),
    Thompson(scale=0.3),
    Thompson(scale=0.0),
    UCB(),
    UCB(level=0.1),
    Greedy(),
    EpsilonGreedy(),
    EpsilonGreedy(epsilon=1.0),
    EpsilonGreedy(epsilon=0.4),
]
SCORES = {
    "different": ([0.0, 0.5, -0.2, 0.45], [1.0, 0.3, 2.0, 0.01]),
    "equal": ([0.5, 0.5, 0.5, 0.5], [1.0, 1.0, 1.0, 1.0]),
    "known, with ties": ([0.5, 0.2, 0.5, 0.1], [0.0, 0.0, 0.0, 0.0]),
    "some known, with ties": ([0.5, 0.2, 0.5, 0.1], [0.0, 1.0, 0.0, 0.0]),
    "one": ([0.5], [1.0]),
}


def _scores(means: Any, stds: Any) -> ArmScores:
    mean, std = np.array(means, dtype=float), np.array(stds, dtype=float)
    return ArmScores(mean, std, 10.0 + 2.0 * mean, 2.0 * std)


@pytest.mark.parametrize("case", SCORES)
@pytest.mark.parametrize("policy", POLICIES, ids=repr)
def test_arms_come_first_as_often_as_their_propensities_say(policy: Policy, case: str) -> None:
    scores, n = _scores(*SCORES[case]), 1500
    expected = policy.propensities(scores)
    assert expected.sum() == pytest.approx(1.0, abs=1e-12)
    for how_many in {1, len(scores.mean)}:
        rng = np.random.default_rng(5)
        counts = np.zeros(len(scores.mean))
        for _ in range(n):
            counts[policy.rank(scores, rng, how_many)[0]] += 1
        possible = expected > 1e-6
        assert not counts[~possible].any()
        squares = ((counts - n * expected)[possible] ** 2 / (n * expected[possible])).sum()
        assert squares <= chi2.isf(1e-5, max(possible.sum() - 1, 1))


@pytest.mark.parametrize("policy", POLICIES, ids=repr)
def test_a_ranking_has_distinct_arms_and_its_beginning_is_a_shorter_one(policy: Policy) -> None:
    scores = _scores([0.0, 0.5, -0.2, 0.5, 0.5], [1.0, 0.3, 2.0, 0.0, 0.0])
    for seed in range(20):
        whole = policy.rank(scores, np.random.default_rng(seed), 5)
        assert sorted(whole) == [0, 1, 2, 3, 4]
        for n in (2, 3):
            np.testing.assert_array_equal(policy.rank(scores, np.random.default_rng(seed), n), whole[:n])


def test_thompson_sampling_ranks_by_one_draw_of_all_scores() -> None:
    means, stds = [0.0, 0.5, -0.2, 0.4], [1.0, 0.3, 2.0, 0.1]
    for seed in range(10):
        drawn = means + 0.7 * np.array(stds) * np.random.default_rng(seed).standard_normal(4)
        for n in (1, 4):
            found = Thompson(0.7).rank(_scores(means, stds), np.random.default_rng(seed), n)
            np.testing.assert_array_equal(found, np.argsort(-drawn)[:n])


def test_equal_arms_are_ranked_in_any_order() -> None:
    scores, rng = _scores(np.zeros(3), np.ones(3)), np.random.default_rng(0)
    seen = {tuple(UCB().rank(scores, rng, 3).tolist()) for _ in range(200)}
    assert len(seen) == 6


def test_the_upper_bound_is_a_quantile_of_the_score() -> None:
    scores = _scores([0.0, 1.0], [2.0, 0.5])
    level = 0.95
    np.testing.assert_allclose(UCB(level).index(scores), [2.0 * ndtri(level), 1.0 + 0.5 * ndtri(level)])
    assert [UCB(level).rank(scores, np.random.default_rng(0), 1)[0] for level in (0.5, 0.95)] == [1, 0]
    np.testing.assert_array_equal(UCB(0.95).propensities(scores), [1.0, 0.0])


def test_greedy_policies_go_by_the_expected_reward_and_not_by_the_score() -> None:
    """Of a rate the expectation grows with what is not known about its logarithm."""
    scores = ArmScores(np.array([0.0, 0.1]), np.array([2.0, 0.1]), np.array([7.4, 1.1]), np.array([9.0, 0.1]))
    np.testing.assert_array_equal(Greedy().propensities(scores), [1.0, 0.0])
    np.testing.assert_allclose(EpsilonGreedy(0.2).propensities(scores), [0.9, 0.1])


@pytest.mark.parametrize("policy", POLICIES, ids=repr)
def test_a_policy_is_the_same_after_export(policy: Policy) -> None:
    assert decode_policy(policy.export()) == policy
    assert as_policy(policy) is policy
    assert as_policy(policy.name) == type(policy)()


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: as_policy("thomson"), "policy must be one of 'thompson', 'ucb', 'greedy', 'epsilon_greedy'"),
        (lambda: as_policy(3), "policy must be one of"),
        (lambda: Thompson(-1.0), "scale must be a finite number that is not negative"),
        (lambda: Thompson(float("nan")), "scale"),
        (lambda: UCB(1.0), "level"),
        (lambda: UCB(0.0), "level"),
        (lambda: EpsilonGreedy(1.5), "epsilon"),
        (lambda: decode_policy({"name": "none"}), "policy must be one of"),
    ],
)
def test_wrong_policies_are_refused(make: Any, words: str) -> None:
    with pytest.raises((TypeError, ValueError), match=words):
        make()


def test_a_policy_that_no_file_could_give_back_is_not_saved() -> None:
    class Own(Greedy):
        name = "own"

    assert ContextualBandit(["a"], 1, policy=Own()).choose([0.0]).arm == "a"
    with pytest.raises(TypeError, match="can be saved only with one of the policies thompson"):
        ContextualBandit(["a"], 1, policy=Own()).export_state()
