"""Rewards: any time later, in any order, once; and decisions that wait no longer."""

import copy
from datetime import timedelta
from typing import Any

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from onepass.decisions import ContextualBandit, UnknownDecision, history
from onepass.files.checkpoint import from_bytes, to_bytes


def _bandit(**options: Any) -> ContextualBandit:
    return ContextualBandit(["a", "b", "c"], 2, **options)


def _contexts(n: int) -> Any:
    return np.random.default_rng(0).normal(size=(n, 2))


# One reward per decision.


def test_rewards_in_any_order_are_learned_with_their_own_contexts() -> None:
    contexts = _contexts(12)
    bandit, by_hand = _bandit(), _bandit()
    choices = [bandit.choose(context, time=float(i)) for i, context in enumerate(contexts)]
    for i in np.random.default_rng(1).permutation(12):
        assert bandit.pending == tuple(one.id for one in choices if one.id in bandit.pending)
        assert bandit.reward(choices[i].id, float(i % 2))
        by_hand.learn(contexts[i], choices[i].arm, float(i % 2))
    np.testing.assert_array_equal(bandit.predict(contexts).mean, by_hand.predict(contexts).mean)
    assert (bandit.n_pending, bandit.n_rewards, bandit.n_decisions) == (0, 12, 12)


def test_a_reward_counts_once_and_another_one_is_an_error() -> None:
    bandit = _bandit()
    choice = bandit.choose([1.0, 2.0])
    assert bandit.reward(choice.id, 1.0)
    before = to_bytes(bandit)
    assert not bandit.reward(choice.id, 1.0)
    assert not bandit.reward(choice.id, 1.0, choice.arm)
    assert bandit.reward_many([choice.id] * 2, [1.0, 1.0]) == 0
    with pytest.raises(ValueError, match="the decision '0' was rewarded with 1 before, got another reward, 0"):
        bandit.reward(choice.id, 0.0)
    other = next(name for name in bandit.arms if name != choice.arm)
    with pytest.raises(ValueError, match=f"one that decision '0' chose, '{choice.arm}', got '{other}'"):
        bandit.reward(choice.id, 1.0, other)
    assert to_bytes(bandit) == before


def test_rewards_for_what_was_never_decided() -> None:
    bandit = _bandit()
    with pytest.raises(UnknownDecision, match="no decision has the id 'x'; 0 decisions wait for a reward"):
        bandit.reward("x", 1.0)
    with pytest.raises(KeyError):
        bandit.reward(0, 1.0)  # type: ignore[arg-type]
    counting = _bandit(unknown_rewards="count")
    known = counting.choose([1.0, 2.0]).id
    assert not counting.reward("x", 1.0)
    assert counting.reward_many(["y", known, "x"], [1.0, 1.0, 0.0]) == 1
    assert (counting.n_unknown, counting.n_rewards) == (3, 1)
    with pytest.raises(ValueError, match="0 or 1"):
        counting.reward("x", 7.0)
    with pytest.raises(ValueError, match="was rewarded with 1 before"):
        counting.reward_many(["z", known], [1.0, 0.0])
    assert counting.n_unknown == 3


def test_several_rewards_are_learned_all_or_none() -> None:
    contexts = _contexts(4)
    bandit, by_hand = _bandit(), _bandit()
    choices = bandit.choose_many(contexts)
    ids = [one.id for one in choices]
    before = to_bytes(bandit)
    for wrong in ([*ids[:3], "x"], ids[:3], [*ids[:3], ids[0]]):
        with pytest.raises((ValueError, UnknownDecision)):
            bandit.reward_many(wrong, [1.0, 0.0, 1.0, 0.0])
        assert to_bytes(bandit) == before
    assert bandit.reward_many([*ids, ids[0]], [1.0, 0.0, 1.0, 0.0, 1.0]) == 4
    by_hand.learn(contexts, [one.arm for one in choices], [1.0, 0.0, 1.0, 0.0])
    np.testing.assert_array_equal(bandit.predict(contexts).mean, by_hand.predict(contexts).mean)
    assert bandit.reward_many([], []) == 0


@pytest.mark.parametrize(
    ("observation", "rewards"),
    [
        ("bernoulli", [0.5, -1.0, 2.0, np.nan, np.inf, "1", None, [1.0, 1.0], [[1.0]]]),
        ("poisson", [-1.0, 0.5, np.nan, np.inf, 1j]),
        ("negative_binomial", [-1.0, 0.5, np.nan]),
        ("gaussian", [np.nan, -np.inf, "much"]),
    ],
)
def test_a_reward_of_the_wrong_kind_changes_nothing(observation: str, rewards: list[Any]) -> None:
    bandit = _bandit(observation=observation)
    choice = bandit.choose([1.0, 2.0])
    before = to_bytes(bandit)
    for reward in rewards:
        with pytest.raises((TypeError, ValueError)):
            bandit.reward(choice.id, reward)
        assert to_bytes(bandit) == before
    assert bandit.reward(choice.id, True)
    assert not bandit.reward(choice.id, 1)


# Rankings.


def test_arms_of_a_ranking_are_rewarded_one_by_one() -> None:
    bandit, by_hand = _bandit(), _bandit()
    choice = bandit.choose([1.0, 2.0], 3)
    first, second, third = choice.arms
    assert bandit.reward(choice.id, 0.0, third)
    assert not bandit.reward(choice.id, 0.0, third)
    assert bandit.n_pending == 1
    assert bandit.reward_many([choice.id] * 2, [1.0, 0.0], [first, second]) == 2
    assert bandit.n_pending == 0
    # Closed; without a name it is about the first arm, in whatever order the rewards came.
    assert not bandit.reward(choice.id, 1.0)
    assert not bandit.reward(choice.id, 0.0, second)
    with pytest.raises(ValueError, match="was rewarded with 1 before, got another reward, 0"):
        bandit.reward(choice.id, 0.0)
    with pytest.raises(ValueError, match=r"chose, .*, got 'd'"):
        bandit.reward(choice.id, 0.0, "d")
    for arm, reward in ((third, 0.0), (first, 1.0), (second, 0.0)):
        by_hand.learn([1.0, 2.0], arm, reward)
    np.testing.assert_array_equal(bandit.predict([1.0, 2.0]).mean, by_hand.predict([1.0, 2.0]).mean)


def test_a_ranking_may_wait_for_a_part_of_its_rewards_and_expire() -> None:
    bandit = _bandit()
    choice = bandit.choose([1.0, 2.0], 2, time=0.0)
    bandit.reward(choice.id, 1.0, choice.arms[1])
    assert bandit.expire(10.0, 0.0, now=11.0) == 1
    assert bandit.n_rewards == 2  # the default for the first arm only
    assert not bandit.reward(choice.id, 1.0, choice.arms[1])  # again, and known
    with pytest.raises(UnknownDecision, match="the decision has expired that has the id '0'"):
        bandit.reward(choice.id, 1.0)


# Ids.


def test_ids_may_be_given() -> None:
    bandit = _bandit()
    assert bandit.choose([1.0, 2.0], id="order 17").id == "order 17"
    before = to_bytes(bandit)
    with pytest.raises(ValueError, match="the id 'order 17' was used by another decision"):
        bandit.choose([1.0, 2.0], id="order 17")
    assert to_bytes(bandit) == before
    bandit.reward("order 17", 1.0)
    with pytest.raises(ValueError, match="was used by another decision"):  # closed ones too
        bandit.choose_many(_contexts(2), ids=["new", "order 17"])
    assert [one.id for one in bandit.choose_many(_contexts(2), ids=("x", "y"))] == ["x", "y"]
    assert bandit.choose([1.0, 2.0]).id == "3"


def test_a_number_that_somebody_gave_to_another_decision_is_not_used_again() -> None:
    bandit = _bandit()
    bandit.choose([1.0, 2.0], id="2")
    bandit.choose([1.0, 2.0], id="3")
    bandit.reward("3", 1.0)
    ids = [one.id for one in bandit.choose_many(_contexts(3))]
    assert len({*ids, "2", "3"}) == 5
    assert bandit.pending == ("2", *ids)


def test_only_so_many_closed_decisions_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(history, "_REMEMBERED", 3)
    bandit = _bandit()
    for i in range(5):
        bandit.reward(bandit.choose([1.0, 2.0]).id, float(i % 2))
    assert not bandit.reward("2", 0.0)
    with pytest.raises(UnknownDecision):
        bandit.reward("1", 1.0)


# Expiry.


@pytest.mark.parametrize("after", [10, 10.0, timedelta(seconds=10)])
def test_decisions_expire_from_an_age_on(after: Any) -> None:
    bandit = _bandit()
    for time in (0.0, 5.0, 5.1, 9.0):
        bandit.choose([1.0, 2.0], time=time)
    assert bandit.expire(after, now=15.0) == 2
    assert bandit.pending == ("2", "3")
    assert bandit.expire(after, now=15.0) == 0
    assert bandit.n_rewards == 0
    with pytest.raises(UnknownDecision, match="the decision has expired that has the id '0'; 2 decisions wait"):
        bandit.reward("0", 1.0)
    assert bandit.reward("2", 1.0)
    assert bandit.expire(0.0) == 1  # by the clock


def test_the_default_is_learned_for_what_has_expired() -> None:
    contexts = _contexts(3)
    bandit, by_hand = _bandit(unknown_rewards="count"), _bandit()
    choices = bandit.choose_many(contexts, time=0.0)
    bandit.reward(choices[1].id, 1.0)
    by_hand.learn(contexts[1], choices[1].arm, 1.0)
    assert bandit.expire(1.0, default=0.0, now=2.0) == 2
    by_hand.learn(contexts[[0, 2]], [choices[0].arm, choices[2].arm], [0.0, 0.0])
    np.testing.assert_array_equal(bandit.predict(contexts).mean, by_hand.predict(contexts).mean)
    assert not bandit.reward(choices[0].id, 1.0)
    assert not bandit.reward(choices[1].id, 1.0)  # not unknown: the same again
    assert (bandit.n_unknown, bandit.n_rewards, bandit.n_pending) == (1, 3, 0)


def test_one_decision_can_be_withdrawn_and_nothing_is_learned() -> None:
    bandit = _bandit()
    bandit.choose_many(_contexts(2), ids=["a", "b"])
    before = bandit.predict(_contexts(2)).mean
    assert bandit.withdraw("a")
    assert bandit.pending == ("b",)
    assert not bandit.withdraw("a")
    assert not bandit.withdraw("never made")
    np.testing.assert_array_equal(bandit.predict(_contexts(2)).mean, before)
    with pytest.raises(UnknownDecision, match="expired"):
        bandit.reward("a", 1.0)


# Anything in any order, against a plain history.


class _Ledger(RuleBasedStateMachine):
    """Decisions by id: the arms chosen and, of those rewarded, the reward; a bandit beside it learns by hand."""

    def __init__(self) -> None:
        super().__init__()
        self.bandit = ContextualBandit(["a0", "a1"], 2, unknown_rewards="count", observation="poisson")
        self.by_hand = ContextualBandit(["a0", "a1"], 2, observation="poisson")
        self.made: list[dict[str, Any]] = []
        self.paused: set[str] = set()
        self.unknown = self.learned = self.clock = 0
        self.arms = ["a0", "a1"]
        self.n_arms = 2

    @initialize()
    def start(self) -> None:
        self.choose(1, 0)

    @rule(n=st.integers(1, 2), seed=st.integers(0, 5))
    def choose(self, n: int, seed: int) -> None:
        there = [name for name in self.arms if name not in self.paused]
        context = np.random.default_rng(seed).normal(size=2)
        self.clock += 1
        if n > len(there):
            with pytest.raises(ValueError, match=r"n must be at most|no arm can be chosen"):
                self.bandit.choose(context, n, time=float(self.clock))
            return
        choice = self.bandit.choose(context, n, time=float(self.clock))
        assert choice.candidates == tuple(there)
        assert set(choice.arms) <= set(there)
        one = {"id": choice.id, "arms": choice.arms, "context": context, "time": self.clock}
        self.made.append({**one, "rewards": {}, "state": "pending", "removed": set()})

    def _learn(self, one: dict[str, Any], arm: str, value: float) -> None:
        if arm not in one["removed"]:
            self.by_hand.learn(one["context"], arm, value)
            self.learned += 1

    @rule(data=st.data(), value=st.integers(0, 2), position=st.integers(0, 1))
    def reward(self, data: st.DataObject, value: int, position: int) -> None:
        if not self.made:
            return
        one = data.draw(st.sampled_from(self.made[-6:]))
        arm = one["arms"][min(position, len(one["arms"]) - 1)]
        earlier = one["rewards"].get(arm)
        if earlier is not None and earlier != value:
            with pytest.raises(ValueError, match="before, got another reward"):
                self.bandit.reward(one["id"], value, arm)
            return
        found = self.bandit.reward(one["id"], value, arm)
        if earlier is not None:
            assert not found
        elif one["state"] == "expired":
            self.unknown += 1
            assert not found
        else:
            assert found
            one["rewards"][arm] = value
            self._learn(one, arm, value)
            if len(one["rewards"]) == len(one["arms"]):
                one["state"] = "closed"

    @rule()
    def reward_the_unknown(self) -> None:
        assert not self.bandit.reward("none", 1.0)
        self.unknown += 1

    @rule(after=st.integers(0, 5), default=st.none() | st.integers(0, 1))
    def expire(self, after: int, default: int | None) -> None:
        old = [one for one in self.made if one["state"] == "pending" and self.clock - one["time"] >= after]
        assert self.bandit.expire(after, default, now=float(self.clock)) == len(old)
        for one in old:
            one["state"] = "expired"
            for arm in one["arms"]:
                if default is not None and arm not in one["rewards"]:
                    self._learn(one, arm, default)

    @rule()
    def add(self) -> None:
        for bandit in (self.bandit, self.by_hand):
            bandit.add_arm(f"a{self.n_arms}")
        self.arms.append(f"a{self.n_arms}")
        self.n_arms += 1

    @rule(data=st.data(), what=st.sampled_from(["remove", "pause", "resume"]))
    def alter(self, data: st.DataObject, what: str) -> None:
        if not self.arms:
            return
        name = data.draw(st.sampled_from(self.arms))
        if what == "remove":
            self.bandit.remove_arm(name)
            self.arms.remove(name)
            self.paused.discard(name)
            for one in self.made:
                one["removed"].add(name)
        elif what == "pause":
            self.bandit.pause(name)
            self.paused.add(name)
        else:
            self.bandit.resume(name)
            self.paused.discard(name)

    @rule(by_copy=st.booleans())
    def save_and_load(self, by_copy: bool) -> None:
        content = to_bytes(self.bandit)
        self.bandit = copy.deepcopy(self.bandit) if by_copy else from_bytes(content)
        assert to_bytes(self.bandit) == content

    @invariant()
    def is_as_it_should_be(self) -> None:
        waiting = tuple(one["id"] for one in self.made if one["state"] == "pending")
        assert self.bandit.pending == waiting
        counts = (self.bandit.n_decisions, self.bandit.n_rewards, self.bandit.n_unknown, self.bandit.n_pending)
        assert counts == (len(self.made), self.learned, self.unknown, len(waiting))
        assert self.bandit.arms == tuple(self.arms)
        assert set(self.bandit.paused) == self.paused
        if self.arms:
            found, expected = (one.predict([0.5, -1.0], self.arms) for one in (self.bandit, self.by_hand))
            np.testing.assert_allclose(found.mean, expected.mean, rtol=1e-9, atol=1e-12)
            np.testing.assert_allclose(found.std, expected.std, rtol=1e-9)


TestAnythingInAnyOrder = _Ledger.TestCase
TestAnythingInAnyOrder.settings = settings(max_examples=25, stateful_step_count=25, deadline=None)
