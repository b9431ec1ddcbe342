"""The bandit: what it chooses, how probable it was, and arms that come and go."""

import copy
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from river import bandit as river_bandit
from river import stats
from scipy.stats import chi2

from onepass.decisions import UCB, ContextualBandit, EpsilonGreedy, Thompson, rewards
from onepass.files.checkpoint import to_bytes

FEATURES = {"a": [1.0, 0.0], "b": [0.0, 1.0], "c": [0.5, -0.5]}
KINDS: dict[str, dict[str, Any]] = {
    "fleet": {"arms": list("abc")},
    "drifting": {"arms": list("abc"), "drift": "auto"},
    "network": {"arms": list("abc"), "hidden": (4,)},
    "kronecker": {"arms": list("abc"), "hidden": (4,), "covariance": "kronecker"},
    "shared": {"arms": FEATURES},
    "shared network": {"arms": FEATURES, "hidden": (4,)},
}
FEATURELESS = [name for name, kind in KINDS.items() if kind["arms"] is not FEATURES]


def _bandit(kind: str = "fleet", **options: Any) -> ContextualBandit:
    return ContextualBandit(n_features=2, **{**KINDS[kind], **options})


def _taught(kind: str = "fleet", **options: Any) -> ContextualBandit:
    bandit, rng = _bandit(kind, **options), np.random.default_rng(0)
    names = rng.choice(bandit.arms, size=20).tolist()
    return bandit.learn(rng.normal(size=(20, 2)), names, (rng.random(20) < 0.5).astype(float))


# Choosing.


@pytest.mark.parametrize("policy", ["thompson", "ucb", "greedy", EpsilonGreedy(0.3), Thompson(0.5)], ids=str)
@pytest.mark.parametrize("kind", ["fleet", "network", "shared"])
def test_propensities_are_the_shares_of_choices_over_many_decisions(kind: str, policy: Any) -> None:
    bandit, context, n = _taught(kind, policy=policy), [0.3, -0.4], 600
    choices = bandit.choose_many(np.tile(context, (n, 1)))
    expected = bandit.propensities(context)
    assert expected.sum() == pytest.approx(1.0, abs=1e-12)
    counts = np.array([sum(one.arm == name for one in choices) for name in bandit.arms])
    possible = expected > 1e-6
    assert not counts[~possible].any()
    assert ((counts - n * expected)[possible] ** 2 / (n * expected[possible])).sum() <= chi2.isf(1e-5, 2)
    for choice in choices[:20]:
        np.testing.assert_allclose(choice.propensities, expected, atol=1e-9)
        assert choice.propensity == pytest.approx(expected[bandit.arms.index(choice.arm)], abs=1e-9)


def test_propensities_are_the_shares_of_choices_over_many_seeds() -> None:
    context, n = [0.3, -0.4], 200
    choices = [_taught(seed=seed).choose(context) for seed in range(n)]
    expected = choices[0].propensities
    counts = np.array([sum(one.arm == name for one in choices) for name in "abc"])
    assert ((counts - n * expected) ** 2 / (n * expected)).sum() <= chi2.isf(1e-5, 2)


@pytest.mark.parametrize("kind", KINDS)
def test_a_choice_says_what_was_believed(kind: str) -> None:
    bandit = _taught(kind, policy=UCB(0.9))
    before = bandit.predict([0.3, -0.4])
    choice = bandit.choose([0.3, -0.4], 3)
    assert choice.candidates == bandit.arms == ("a", "b", "c")
    assert sorted(choice.arms) == ["a", "b", "c"]
    assert choice.arm == choice.arms[0]
    np.testing.assert_allclose(choice.means, before.reward_mean, rtol=1e-9)
    np.testing.assert_allclose(choice.stds, before.reward_std, rtol=1e-9)
    assert choice.propensity == 1.0
    assert (choice.id, bandit.n_decisions, bandit.pending) == ("0", 1, ("0",))
    assert repr(choice) == f"Choice(id='0', arms={choice.arms}, candidates=('a', 'b', 'c'))"


@pytest.mark.parametrize("kind", KINDS)
def test_choices_at_once_are_those_one_after_the_other(kind: str) -> None:
    contexts = np.random.default_rng(1).normal(size=(9, 2))
    at_once, one_by_one = _taught(kind), _taught(kind)
    found = at_once.choose_many(contexts, 2, time=1.0)
    expected = [one_by_one.choose(context, 2, time=1.0) for context in contexts]
    assert [(one.id, one.arms) for one in found] == [(one.id, one.arms) for one in expected]
    assert at_once.pending == one_by_one.pending


def test_the_same_seed_makes_the_same_choices_and_predicting_none() -> None:
    contexts = np.random.default_rng(1).normal(size=(30, 2))
    runs: list[list[Any]] = []
    for looks in (False, True):
        bandit = _taught(seed=4)
        runs.append([])
        for context in contexts:
            if looks:
                bandit.predict(contexts)
                bandit.propensities(context)
            runs[-1].append(bandit.choose(context).arm)
    assert runs[0] == runs[1]
    assert len(set(runs[0])) == 3
    assert runs[0] != [_taught(seed=5).choose(context).arm for context in contexts]


def test_only_some_arms_can_be_chosen() -> None:
    bandit = _taught()
    choices = [bandit.choose([0.3, -0.4], arms=["c", "a"]) for _ in range(60)]
    assert {one.arm for one in choices} == {"a", "c"}
    assert choices[0].candidates == ("c", "a")
    some = bandit.propensities([0.3, -0.4], ["c", "a"])
    np.testing.assert_allclose(choices[0].propensities, some)
    assert some.sum() == pytest.approx(1.0)
    assert bandit.choose([0.3, -0.4], arms="b").arm == "b"
    np.testing.assert_array_equal(bandit.predict([0.3, -0.4], ["b"]).mean, bandit.predict([0.3, -0.4]).mean[[1]])


@pytest.mark.parametrize("kind", KINDS)
def test_paused_arms_are_not_chosen(kind: str) -> None:
    bandit = _taught(kind)
    waiting = bandit.choose([0.3, -0.4], arms=["b"])
    bandit.pause("b")
    assert (bandit.paused, bandit.arms) == (("b",), ("a", "b", "c"))
    found = bandit.propensities(np.array([[0.3, -0.4], [1.0, 1.0]]))
    assert found.shape == (2, 3)
    assert (found[:, 1] == 0.0).all()
    np.testing.assert_allclose(found.sum(axis=1), 1.0)
    np.testing.assert_array_equal(bandit.propensities([0.3, -0.4], ["b", "a"]), [0.0, 1.0])
    assert {bandit.choose([0.3, -0.4]).arm for _ in range(40)} <= {"a", "c"}
    assert bandit.predict([0.3, -0.4]).mean.shape == (3,)  # it is still known
    before = bandit.n_rewards
    assert bandit.reward(waiting.id, 1.0)
    assert bandit.n_rewards == before + 1  # and learned
    bandit.pause("a").pause("c")
    with pytest.raises(ValueError, match="no arm can be chosen: 'a', 'b', 'c' are paused; add or resume one"):
        bandit.choose([0.3, -0.4])
    bandit.resume("b").resume("b")
    assert bandit.choose([0.3, -0.4]).arm == "b"


# Arms that come and go.


@pytest.mark.parametrize("kind", KINDS)
def test_a_new_arm_is_chosen_and_learned(kind: str) -> None:
    bandit, features = _taught(kind), None if kind in FEATURELESS else [1.0, 1.0]
    context = np.array([0.3, -0.4])
    before = bandit.predict(context)
    bandit.add_arm("d", features)
    assert bandit.arms == ("a", "b", "c", "d")
    np.testing.assert_allclose(bandit.predict(context).mean[:3], before.mean, rtol=1e-7)
    for _ in range(30):
        bandit.learn(context, "d", 1.0)
        bandit.learn(context, "a", 0.0)
    bandit.policy = UCB(0.5)
    assert bandit.choose(context, arms=["a", "d"]).arm == "d"
    assert bandit.predict(context).reward_mean[3] > 0.7
    assert bandit.choose(context).candidates == ("a", "b", "c", "d")


@pytest.mark.parametrize("kind", KINDS)
def test_a_removed_arm_is_gone_and_its_pending_rewards_are_not_learned(kind: str) -> None:
    bandit = _taught(kind)
    ranking = bandit.choose([0.3, -0.4], 3)
    bandit.pause("b").remove_arm("b")
    assert (bandit.arms, bandit.paused) == (("a", "c"), ())
    before = bandit.predict([0.3, -0.4])
    n = bandit.n_rewards
    assert bandit.reward(ranking.id, 1.0, "b")
    assert not bandit.reward(ranking.id, 1.0, "b")
    assert bandit.n_rewards == n
    np.testing.assert_array_equal(bandit.predict([0.3, -0.4]).mean, before.mean)
    assert bandit.reward(ranking.id, 1.0, "a")
    assert bandit.reward(ranking.id, 1.0, "c")
    assert (bandit.n_rewards, bandit.n_pending) == (n + 2, 0)
    with pytest.raises(ValueError, match="there is no arm 'b'; the arms are 'a', 'c'"):
        bandit.learn([0.3, -0.4], "b", 1.0)
    # An arm of the same name is another one.
    waiting = bandit.choose([0.3, -0.4], arms=["c"])
    bandit.remove_arm("c").add_arm("c", None if kind in FEATURELESS else FEATURES["c"])
    n = bandit.n_rewards
    assert bandit.reward(waiting.id, 1.0)
    assert bandit.n_rewards == n
    if kind == "fleet":
        assert bandit.predict([0.3, -0.4], ["c"]).mean == 0.0
    assert {bandit.choose([0.3, -0.4]).arm for _ in range(50)} <= {"a", "c"}
    assert (bandit.propensities([0.3, -0.4]) > 0.0).all()


def test_all_arms_can_go_and_others_come() -> None:
    bandit = _bandit()
    for name in "abc":
        bandit.remove_arm(name)
    with pytest.raises(ValueError, match="no arm can be chosen: there is none; add or resume one"):
        bandit.choose([1.0, 2.0])
    assert bandit.add_arm("d").choose([1.0, 2.0]).arm == "d"
    empty = ContextualBandit([], 2)
    with pytest.raises(ValueError, match="there is none"):
        empty.propensities([1.0, 2.0])
    assert empty.add_arm(7).choose([1.0, 2.0]).arm == 7
    with pytest.raises(ValueError, match="the arm 'x' must have no features"):
        empty.add_arm("x", [1.0])


def test_names_are_texts_and_whole_numbers_and_numpys_become_pythons() -> None:
    bandit = ContextualBandit([np.int64(3), "x", np.str_("y"), 2**70, ""], 2)
    assert bandit.arms == (3, "x", "y", 2**70, "")
    assert [type(name) for name in bandit.arms] == [int, str, str, int, str]
    bandit.learn(np.ones((2, 2)), np.array([3, 3]), [1.0, 0.0]).learn([1.0, 2.0], np.int32(3), 1.0)
    bandit.add_arm(np.int16(4)).pause(np.int64(4)).resume(np.uint8(4))
    choice = bandit.choose([1.0, 2.0], 2, arms=np.array([3, 4]))
    assert sorted(choice.arms) == [3, 4]
    assert {type(name) for name in choice.arms + choice.candidates} == {int}
    assert bandit.reward(choice.id, 1.0, np.int64(4))
    assert not bandit.reward(choice.id, 1.0, 4)
    assert bandit.remove_arm(np.int64(4)).arms == (3, "x", "y", 2**70, "")


@pytest.mark.parametrize(
    ("act", "words"),
    [
        (lambda one: one.choose([1.0]), "a context must have shape"),
        (lambda one: one.choose([[1.0, 2.0]] * 2), "choose takes one context, got 2; use choose_many"),
        (lambda one: one.choose([1.0, np.nan]), "finite"),
        (lambda one: one.choose([1.0, 1e151]), r"contexts must be below 1e\+150, got 1e\+151"),
        (lambda one: one.choose([1.0, 2.0], 4), "n must be at most 3, the number of arms, got 4: 'a', 'b', 'c'"),
        (lambda one: one.choose([1.0, 2.0], 0), "n must be a whole number of at least 1"),
        (lambda one: one.choose([1.0, 2.0], 3, arms=["a", "b"]), "n must be at most 2, the number of arms, got 3"),
        (lambda one: one.choose([1.0, 2.0], arms=["a", "z"]), "there is no arm 'z'; the arms are 'a', 'b', 'c'"),
        (lambda one: one.choose([1.0, 2.0], arms=["a", ["b"]]), r"there is no arm \['b'\]"),
        (lambda one: one.choose([1.0, 2.0], arms=["a", "a"]), "arms must all be different"),
        (lambda one: one.choose([1.0, 2.0], arms=[]), "no arm can be chosen: there is none"),
        (lambda one: one.choose([1.0, 2.0], arms={"a": [1.0]}), "arms have no features: pass a list"),
        (lambda one: one.choose([1.0, 2.0], time=np.inf), "time must be finite"),
        (lambda one: one.choose([1.0, 2.0], id=5), "an id must be a string that is not empty, got 5"),
        (lambda one: one.choose([1.0, 2.0], id=""), "an id must be a string that is not empty, got ''"),
        (lambda one: one.choose_many(np.ones((2, 2)), ids=["x"]), "ids must have one per context, 2, got 1"),
        (lambda one: one.choose_many(np.ones((2, 2)), ids=["x", "x"]), "'x' was used by another decision"),
        (lambda one: one.learn([1.0, 2.0], "z", 1.0), "there is no arm 'z'"),
        (lambda one: one.learn(np.ones((2, 2)), ["a"], [1.0, 1.0]), "must have the same length, got 2, 1 and 2"),
        (lambda one: one.learn([1.0, 2.0], "a", 0.5), "a reward must be 0 or 1 with observation='bernoulli', got 0.5"),
        (lambda one: one.add_arm("a"), "there is an arm 'a' already"),
        (lambda one: one.add_arm(1.5), "name of an arm must be a string or an integer, got 1.5"),
        (lambda one: one.add_arm(True), "name of an arm must be a string or an integer, got True"),
        (lambda one: one.add_arm("d", [1.0]), "the arm 'd' must have no features"),
        (lambda one: one.remove_arm("z"), "there is no arm 'z'"),
        (lambda one: one.pause("z"), "there is no arm 'z'"),
        (lambda one: one.resume(None), "there is no arm None"),
        (lambda one: one.expire(-1.0), "after must be seconds or a timedelta, and not negative, got -1.0"),
        (lambda one: one.expire(float("nan")), "after must be seconds or a timedelta, and not negative"),
        (lambda one: one.expire(1.0, 0.5), "a reward must be 0 or 1"),
    ],
)
def test_what_can_not_be_done_is_said_and_changes_nothing(act: Any, words: str) -> None:
    bandit = _taught()
    before = to_bytes(bandit)
    with pytest.raises((TypeError, ValueError), match=words):
        act(bandit)
    assert to_bytes(bandit) == before


@pytest.mark.parametrize(
    ("act", "words"),
    [
        (lambda one: one.add_arm("d"), "the arm 'd' needs 2 features, as the other arms have"),
        (lambda one: one.add_arm("d", [1.0]), r"the arm 'd' must have 2 features, as the others, got shape \(1,\)"),
        (lambda one: one.add_arm("d", [1.0, np.nan]), "features of the arm 'd' must be finite"),
        (lambda one: one.choose([1.0, 2.0], arms={"d": [1.0, 2.0, 3.0]}), "the arm 'd' must have 2 features"),
        (lambda one: ContextualBandit({"a": [1.0], "b": None}, 2), "the arm 'b' needs 1 features"),
        (lambda one: ContextualBandit({"a": [1.0], "b": [1.0, 2.0]}, 2), "the arm 'b' must have 1 features"),
        (lambda one: ContextualBandit(["a", "a"], 2), "there is an arm 'a' already"),
        (lambda one: ContextualBandit("abc", 2), "arms must be a list of names, or a dict"),
        (lambda one: ContextualBandit([("a", 1)], 2), "must be a string or an integer"),
        (lambda one: ContextualBandit(["a"], 2, reward_range=(1.0, 1.0)), "with low below high"),
        (lambda one: ContextualBandit(["a"], 2, reward_range=(0.0, 5e-324)), "with low below high"),
        (lambda one: ContextualBandit(["a"], 2, unknown_rewards="ignore"), "must be one of 'error', 'count'"),
        (lambda one: ContextualBandit(["a"], 2, seed=-1), "seed"),
    ],
)
def test_wrong_arms_and_arguments(act: Any, words: str) -> None:
    with pytest.raises((TypeError, ValueError), match=words):
        act(_bandit("shared"))


# Contexts.


def test_contexts_are_standardised_by_what_was_seen_so_far() -> None:
    rng = np.random.default_rng(0)
    raw = np.column_stack([rng.normal(50.0, 10.0, size=40), np.full(40, 7.0)])
    bandit, plain = _bandit(standardize=True), _bandit()
    for i, context in enumerate(raw):
        choice = bandit.choose(context)
        seen = raw[: i + 1]
        std = seen.std(axis=0)
        scaled = (context - seen.mean(axis=0)) / np.where(std > 0.0, std, 1.0)
        bandit.reward(choice.id, i % 2)
        plain.learn(scaled, choice.arm, i % 2)
    rows = (raw - raw.mean(axis=0)) / [raw[:, 0].std(), 1.0]
    np.testing.assert_allclose(bandit.predict(raw).mean, plain.predict(rows).mean, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("options", [{}, {"standardize": True}, {"drift": 0.1}, {"drift": "auto"}], ids=str)
@pytest.mark.parametrize("kind", ["fleet", "network", "kronecker", "shared"])
def test_what_overflows_leaves_the_bandit_as_it_was(
    kind: str, options: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Refused before it is learned and, if it were not, by what learns."""
    bandit = _bandit(kind, observation="gaussian", reward_range=(-1, 1), **options)
    bandit.learn(np.eye(2)[[0, 1] * 6], list("abc") * 4, np.tile([0.5, -0.5], 6))
    ids = [bandit.choose(context, arms=["a"]).id for context in ([0.5, 0.5], [2.0, -1.0], [0.5, 0.1])]
    before = to_bytes(bandit)
    refused = r"a reward must be below 1e\+75 in units of reward_range=\(-1.0, 1.0\), got -?1e\+306"
    for words, largest in ((refused, 1e75), ("overflow", np.inf)):
        monkeypatch.setattr(rewards, "_LARGEST", largest)
        acts: list[Callable[[], Any]] = [
            lambda: bandit.reward_many(ids, [0.5, 1e306, -1e306]),
            lambda: bandit.learn([[1.0, 1.0], [2.0, 5.0]], ["a", "a"], [1e306, -1e306]),
            lambda: bandit.expire(0.0, 1e306),
        ]
        for act in acts:
            with pytest.raises(ValueError, match=words):
                act()
            assert to_bytes(bandit) == before
    assert bandit.pending == tuple(ids)
    assert bandit.reward_many(ids[::2], [1.0, 0.0]) == 2


@pytest.mark.parametrize("kind", KINDS)
def test_after_a_wild_reward_common_ones_are_learned(kind: str) -> None:
    bandit = _bandit(kind, observation="gaussian", reward_range=(-1, 1))
    for reward in (1e74, 0.5, -1e74, 0.5):
        bandit.learn([1.0, 1.0], "a", reward)
    assert np.isfinite(bandit.predict([1.0, 0.0])).all()


# River.


class _AsRiver(river_bandit.base.ContextualPolicy):
    """River's tools know a contextual policy by its class."""

    def __init__(self, bandit: ContextualBandit) -> None:
        super().__init__()
        self.bandit = bandit

    def _pull(self, arm_ids: list[Any], context: Any = None) -> Any:
        return self.bandit.pull(arm_ids, context=context)

    def update(self, arm_id: Any, context: Any, *reward: Any, **_: Any) -> None:
        self.bandit.update(arm_id, context, *reward)
        self._n += 1


def _history(n: int) -> Iterator[tuple[list[int | str], dict[Any, Any], int | str, float]]:
    """Arm "a" is good where x is positive, "b" elsewhere."""
    rng = np.random.default_rng(0)
    for _ in range(n):
        context = {"y": float(rng.normal()), "x": float(rng.normal())}
        arm = "ab"[int(rng.integers(2))]
        yield ["a", "b"], context, arm, float((context["x"] > 0.0) == (arm == "a"))


def test_rivers_evaluation_and_its_policies() -> None:
    bandit = ContextualBandit(["a", "b", "c"], n_features=2)
    reward, linear = stats.Mean(), stats.Mean()
    _, n = river_bandit.evaluate_offline(_AsRiver(bandit), _history(600), reward)
    assert 200 < n < 400
    assert reward.get() > 0.85
    assert (bandit.n_rewards, bandit.n_decisions, bandit.n_pending) == (n, 600, 0)
    river_bandit.evaluate_offline(river_bandit.LinUCBDisjoint(0.5, seed=0), _history(600), linear)
    assert reward.get() > linear.get() - 0.05
    # Features are taken in the order of their names, as a row is.
    assert bandit.predict([1.0, 0.0]).mean[0] > bandit.predict([-1.0, 0.0]).mean[0]
    one, other = copy.deepcopy(bandit), bandit
    assert one.pull(["a", "b"], {"y": 2.0, "x": -1.0}) == other.pull(["a", "b"], [-1.0, 2.0])
    one.update("a", {"y": 2.0, "x": -1.0}, 1.0)
    assert to_bytes(one) == to_bytes(other.update("a", [-1.0, 2.0], 1.0))


def test_a_simulated_loop_in_the_way_of_river() -> None:
    rng, bandit, total = np.random.default_rng(1), ContextualBandit(["a", "b"], 1), 0.0
    for _ in range(200):
        context = {"time": float(rng.choice([-1.0, 1.0]))}
        arm = bandit.pull(["a", "b"], context)
        reward = float((context["time"] > 0.0) == (arm == "a"))
        bandit.update(arm, context, reward)
        total += reward
    assert total > 170.0


def test_contexts_far_from_unit_scale_are_told_once() -> None:
    bandit = ContextualBandit(["a", "b"], 2)
    with pytest.warns(UserWarning, match=r"a feature of size 52000; .* pass standardize=True"):
        bandit.choose([35.0, 52000.0])
    bandit.choose([35.0, 52000.0])  # a second warning would be an error here
    ContextualBandit(["a", "b"], 2, standardize=True).choose([35.0, 52000.0])
