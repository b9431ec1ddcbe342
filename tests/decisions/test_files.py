"""Saving and loading: a bandit goes on bit for bit, whatever its model, and what is no bandit is refused."""

import copy
import json
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import onepass
from onepass import CheckpointError, Conv2D
from onepass.decisions import UCB, ContextualBandit, EpsilonGreedy, Thompson
from onepass.files.checkpoint import _encoded, from_bytes, to_bytes

FEATURES = {"a": [1.0, 0.0], "b": [0.0, 1.0], "c": [0.5, -0.5]}
PLAIN = ["a", "b", 3]
KINDS: dict[str, dict[str, Any]] = {
    "fleet": {"arms": PLAIN},
    "numbers": {"arms": PLAIN, "observation": "gaussian", "reward_range": (0.1, 0.7), "policy": UCB(0.9)},
    "outliers": {"arms": PLAIN, "observation": "gaussian", "outliers": 0.05, "policy": "greedy"},
    "counts": {"arms": PLAIN, "observation": "poisson", "policy": EpsilonGreedy(0.5)},
    "negative binomial": {"arms": PLAIN, "observation": "negative_binomial", "forgetting": 0.99},
    "drift": {"arms": PLAIN, "drift": 0.02, "prior_scale": 2.0},
    "several drifts": {"arms": PLAIN, "drift": "auto", "policy": Thompson(0.5)},
    "standardised": {"arms": PLAIN, "standardize": True},
    "population": {"arms": range(6), "population": True},
    "network": {"arms": PLAIN, "hidden": (4,), "seed": 5},
    "kronecker": {"arms": PLAIN, "hidden": (4, 3), "covariance": "kronecker"},
    "layered": {"arms": PLAIN, "hidden": (4,), "covariance": ("kronecker", "full"), "unknown_rewards": "count"},
    "single precision": {"arms": PLAIN, "hidden": (4,), "covariance": "kronecker", "dtype": "float32"},
    "network that drifts": {"arms": PLAIN, "hidden": (4,), "drift": "auto", "standardize": True},
    "images": {"arms": PLAIN, "n_features": (2, 2), "hidden": (Conv2D(2, 1), 3)},
    "shared": {"arms": FEATURES, "observation": "gaussian"},
    "shared network": {"arms": FEATURES, "hidden": (4,)},
}
SHARED = [name for name, kind in KINDS.items() if kind["arms"] is FEATURES]


def _bandit(kind: str) -> ContextualBandit:
    return ContextualBandit(**{"n_features": 4, **KINDS[kind]})


def _go_on(bandit: ContextualBandit, kind: str, start: int, n: int) -> list[Any]:
    """Choose, reward, add, pause, remove and expire; all that was seen on the way."""
    rng = np.random.default_rng(start)
    seen: list[Any] = []
    for i in range(start, start + n):
        context = rng.normal(size=4)
        choice = bandit.choose(context, 1 + i % 2, time=float(i))
        seen.append([choice.id, choice.arms, choice.means.tolist(), choice.propensities.tolist()])
        if i % 3:
            arm = choice.arms[-1]
            reward = {"gaussian": 0.3 + 0.1 * float(context[0])}.get(KINDS[kind].get("observation", ""), float(i % 2))
            seen.append(bandit.reward(choice.id, reward, arm))
        if i % 7 == 6:
            seen.append(bandit.expire(6.0, 1.0 if i % 2 else None, now=float(i)))
        if i == 9:
            bandit.add_arm("new", [0.2, 0.3] if kind in SHARED else None).pause(bandit.arms[0])
        if i == 14:
            bandit.remove_arm(bandit.arms[1]).resume(bandit.arms[0])
    return [*seen, bandit.pending, bandit.paused, bandit.n_rewards, bandit.drift_]


def _copies(bandit: ContextualBandit, folder: Path) -> list[ContextualBandit]:
    onepass.save(bandit, folder / "bandit")
    return [
        onepass.load(folder / "bandit"),
        from_bytes(to_bytes(bandit)),
        pickle.loads(pickle.dumps(bandit)),
        copy.deepcopy(bandit),
    ]


@pytest.mark.parametrize("kind", KINDS)
def test_a_bandit_goes_on_bit_for_bit_from_any_moment(kind: str, tmp_path: Path) -> None:
    bandit, at = _bandit(kind), 0
    for n in (0, 8, 12):
        _go_on(bandit, kind, at, n)
        at += n
        copies = _copies(bandit, tmp_path)
        content = to_bytes(bandit)
        assert [to_bytes(one) == content for one in copies] == [True] * 4
        expected = _go_on(copy.deepcopy(bandit), kind, at, 7)
        for one in copies:
            assert repr(one) == repr(bandit)
            assert one.policy == bandit.policy
            assert _go_on(one, kind, at, 7) == expected
        assert to_bytes(bandit) == content  # the copies have nothing in common with it
    assert bandit.n_pending > 3


def test_saving_does_not_change_what_comes_after() -> None:
    """But by rounding where rows wait in a block, as those of Kronecker networks do."""
    for kind in ("fleet", "several drifts", "network", "shared"):
        saved, unsaved = _bandit(kind), _bandit(kind)
        for start in (0, 5, 10):
            to_bytes(saved)
            assert _go_on(saved, kind, start, 5) == _go_on(unsaved, kind, start, 5)
    for kind in ("kronecker",):
        saved, unsaved = _bandit(kind), _bandit(kind)
        for start in (0, 5, 10):
            to_bytes(saved)
            _go_on(saved, kind, start, 5)
            _go_on(unsaved, kind, start, 5)
        np.testing.assert_allclose(saved.predict(np.eye(4)).mean, unsaved.predict(np.eye(4)).mean, rtol=1e-9)


@pytest.mark.parametrize("kind", KINDS)
def test_parameters_are_those_that_were_given(kind: str) -> None:
    bandit = _bandit(kind)
    given = {"n_features": 4, **KINDS[kind]}
    found = bandit.get_params()
    for name, value in given.items():
        if name == "arms" and isinstance(value, dict):
            assert {key: features.tolist() for key, features in found["arms"].items()} == value
        elif name == "policy" and isinstance(value, str):
            assert found["policy"].name == value
        else:
            assert found[name] == (list(value) if name == "arms" else value)
    again = ContextualBandit(**found)
    assert to_bytes(again) == to_bytes(bandit)


def test_any_range_of_rewards_is_the_same_after_loading() -> None:
    rng = np.random.default_rng(0)
    for low, width in zip(rng.normal(size=50), rng.exponential(size=50), strict=True):
        limits = (float(low), float(low + width))
        bandit = ContextualBandit(["a"], 1, observation="gaussian", reward_range=limits).learn([1.0], "a", low)
        again = from_bytes(to_bytes(bandit))
        assert again.get_params()["reward_range"] == limits
        np.testing.assert_array_equal(again.predict([1.0]).reward_mean, bandit.predict([1.0]).reward_mean)


def test_names_and_ids_of_all_kinds_are_kept() -> None:
    bandit = ContextualBandit(["1", 1, -(2**70), "Grüße \ud800", ""], 1)
    choice = bandit.choose([1.0], 5, id="\0 \udfff")
    bandit.reward(choice.id, 1.0, 1)
    again = from_bytes(to_bytes(bandit))
    assert again.arms == bandit.arms
    assert again.pending == ("\0 \udfff",)
    assert not again.reward(choice.id, 1.0, 1)
    assert again.reward(choice.id, 0.0, "1")


def test_a_population_is_the_same_whether_its_arms_were_loaded_or_not() -> None:
    rng = np.random.default_rng(0)
    contexts, arms = rng.normal(size=(300, 2)), rng.integers(40, size=300)
    rewards = contexts.sum(axis=1) + rng.normal(size=300)
    bandit = ContextualBandit(range(50), 2, population=True, observation="gaussian")
    bandit.learn(contexts[:60], arms[:60], rewards[:60])
    copies = [bandit, from_bytes(to_bytes(bandit)), copy.deepcopy(bandit)]
    for one in copies:
        for i in range(60, 300):
            one.learn(contexts[i], int(arms[i]), rewards[i])
    assert len({to_bytes(one) for one in copies}) == 1


def test_a_log_stays_behind() -> None:
    bandit = _bandit("fleet")
    bandit.log = onepass.decisions.DecisionLog()
    assert from_bytes(to_bytes(bandit)).log is None


# What is no bandit.


def _state() -> tuple[dict[str, Any], dict[str, Any]]:
    bandit = _bandit("standardised")
    _go_on(bandit, "standardised", 0, 12)
    parameters, arrays = bandit.export_state()
    return json.loads(json.dumps(parameters)), arrays


def _decisions(change: Callable[[Any], Any]) -> Callable[[Any, Any], None]:
    """A change of the history."""

    def changed(_: Any, arrays: Any) -> None:
        data = json.loads(arrays["decisions"].tobytes())
        change(data)
        arrays["decisions"] = np.frombuffer(json.dumps(data).encode(), dtype=np.uint8)

    return changed


def _assign(*path: Any) -> Callable[[Any, Any], None]:
    *way, name, value = path

    def changed(parameters: Any, _: Any) -> None:
        for step in way:
            parameters = parameters[step]
        parameters[name] = value

    return changed


def _array(name: str, value: Any) -> Callable[[Any, Any], None]:
    def changed(_: Any, arrays: Any) -> None:
        arrays[name] = value(arrays[name].copy())

    return changed


def _first(place: int, value: Any) -> Callable[[Any, Any], None]:
    return _decisions(lambda data: data["pending"][0].__setitem__(place, value))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (_assign("counts", "n_decisions", -1), "n_decisions must be a whole number"),
        (_assign("counts", "n_rewards", 1.5), "n_rewards must be a whole number"),
        (_assign("counts", {}), "lacks 'n_decisions'"),
        (_assign("settings", "policy", {"name": "other"}), "policy must be one of"),
        (_assign("settings", "policy", {"name": "thompson", "scale": "x"}), "scale"),
        (_assign("settings", "colour", "red"), "colour"),
        (_assign("settings", "n_features", 3), "shape"),
        (_assign("settings", "arms", "arms", 0, ["a", -5]), "does not fit"),
        (_assign("settings", "arms", "arms", 0, [1.5, 0]), "name of an arm must be"),
        (_assign("settings", "arms", "paused", ["z"]), "there is no arm 'z'"),
        (_assign("settings", "drift", "auto"), "."),
        (_assign("settings", "hidden", [3]), "."),
        (_assign("model", "n_learned", -1), "n_learned must be a whole number"),
        (_assign("model", "fleets", []), "."),
        (_array("scaling", lambda a: -a - 1.0), "must not be negative"),
        (_array("scaling", lambda a: a[:2]), "scaling has shape"),
        (_array("contexts", lambda a: a[1:]), "contexts has shape"),
        (_array("contexts", lambda a: a * np.nan), "contexts holds numbers that are not finite"),
        (_array("decisions", lambda a: a[:-5]), "."),
        (_array("decisions", lambda a: a[:0]), "."),
        (_decisions(lambda data: data["pending"].pop()), "contexts has shape"),
        (_decisions(lambda data: data.pop("closed")), "lacks 'closed'"),
        (_decisions(lambda data: data["closed"].append(data["closed"][0])), "differ from each other"),
        (_decisions(lambda data: data["closed"].append([5, []])), "texts as ids"),
        (_decisions(lambda data: data["closed"].append([data["pending"][0][0], [["a", 1.0]]])), "differ from each"),
        (_decisions(lambda data: data["closed"].append(["x", [["a", "1"]]])), "a reward must be a finite number"),
        (_decisions(lambda data: data["closed"].append(["x", []])), "can't have chosen no arm"),
        (_first(0, 5), "texts as ids"),
        (_first(1, -1), "number must be a whole number"),
        (_first(2, "now"), "time must be a finite number"),
        (_first(3, "often"), "propensity must be a finite number"),
        (_first(4, []), "can't wait for the arms"),
        (_first(4, [["a", 0]]), "."),
        (_first(5, [["z", 1.0]]), "can't wait for the arms"),
    ],
)
def test_a_state_that_no_bandit_has_is_refused(change: Callable[[Any, Any], None], words: str) -> None:
    parameters, arrays = _state()
    from_bytes(_encoded("ContextualBandit", parameters, arrays))
    change(parameters, arrays)
    with pytest.raises(CheckpointError, match=words):
        from_bytes(_encoded("ContextualBandit", parameters, arrays))


def test_damaged_bytes_are_refused() -> None:
    content = to_bytes(_bandit("fleet"))
    rng = np.random.default_rng(0)
    for place in rng.integers(len(content), size=60):
        damaged = bytearray(content)
        damaged[place] ^= 1 << int(rng.integers(8))
        with pytest.raises(CheckpointError):
            from_bytes(bytes(damaged))
    for length in (0, 7, len(content) // 2, len(content) - 1):
        with pytest.raises(CheckpointError):
            from_bytes(content[:length])
