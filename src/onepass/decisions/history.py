"""The history of decisions: which still wait for a reward, and which are closed, so that none is rewarded twice."""

import json
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from onepass._typing import FloatArray
from onepass.decisions.arms.base import Arm
from onepass.decisions.arms.table import decode_arm, encode_arm
from onepass.decisions.choice import Pending, chosen_name
from onepass.files.state import Arrays, as_number, as_tally, sized

__all__ = ["ClosedDecision", "DecisionHistory", "UnknownDecision"]

_REMEMBERED = 100_000  # closed decisions: a second reward for an older one is one for an unknown decision


class UnknownDecision(KeyError):  # noqa: N818 - it is what the caller has, not an error of the library
    """No reward is expected for a decision of this id: it was never made, or it has expired."""

    def __str__(self) -> str:
        return str(self.args[0])


class ClosedDecision(NamedTuple):
    """A decision that expects no more rewards."""

    id: str
    rewards: dict[Any, float | None]  # by the names of the arms chosen, the best first; None for one that never came

    def name_of(self, name: Any) -> Any:
        """The name of a chosen arm, by default (None) of the first one."""
        return chosen_name(self.id, tuple(self.rewards), name)


class DecisionHistory:
    """Decisions by their id.

    Attributes
    ----------
    pending : dict
        Those that wait for a reward, in the order in which they were made.
    """

    def __init__(self) -> None:
        self.pending: dict[str, Pending] = {}
        self._closed: dict[str, ClosedDecision] = {}

    def find(self, decision_id: str) -> Pending | ClosedDecision | None:
        """The decision of this id, if it is known."""
        return self.pending.get(decision_id) or self._closed.get(decision_id)

    def open(self, decision: Pending) -> None:
        """Let a decision wait for its reward."""
        self.pending[decision.id] = decision

    def reward(self, decision: Pending, arm: Arm, value: float) -> None:
        """Note a reward; the last one that was waited for closes the decision."""
        decision.rewards[arm.name] = value
        if not decision.waiting:
            self.close(decision)

    def close(self, decision: Pending) -> None:
        """Expect no more rewards for a decision."""
        del self.pending[decision.id]
        rewards = {arm.name: decision.rewards.get(arm.name) for arm in decision.arms}
        self._closed[decision.id] = ClosedDecision(decision.id, rewards)
        if len(self._closed) > _REMEMBERED:
            del self._closed[next(iter(self._closed))]

    def made_until(self, time: float) -> list[Pending]:
        """Pending decisions of this moment or older."""
        return [decision for decision in self.pending.values() if decision.time <= time]

    def export(self) -> Arrays:
        """All decisions, as arrays: JSON in bytes, and the contexts of those that are pending."""
        pending = [
            [
                one.id,
                one.number,
                one.time,
                one.propensity,
                [encode_arm(arm) for arm in one.arms],
                list(one.rewards.items()),
            ]
            for one in self.pending.values()
        ]
        closed = [[key, list(one.rewards.items())] for key, one in self._closed.items()]
        text = json.dumps({"pending": pending, "closed": closed}, allow_nan=False).encode("utf-8", "surrogatepass")
        contexts = [one.context for one in self.pending.values()]
        return {
            "decisions": np.frombuffer(text, dtype=np.uint8),
            "contexts": np.array(contexts) if contexts else np.empty((0, 0)),
        }

    @classmethod
    def restore(cls, arrays: Arrays, n_features: int) -> "DecisionHistory":
        """Make the history that `export` described."""
        history = cls()
        data = json.loads(arrays["decisions"].astype(np.uint8).tobytes().decode("utf-8", "surrogatepass"))
        n = len(data["pending"])
        contexts: Iterable[FloatArray] = sized(arrays, "contexts", (n, n_features)) if n else ()
        for (key, number, time, propensity, arms, rewards), context in zip(data["pending"], contexts, strict=True):
            chosen = tuple(decode_arm(arm) for arm in arms)
            moment, known = as_number(time, "time"), None if propensity is None else as_number(propensity, "propensity")
            one = Pending(key, as_tally(number, "number"), moment, context, chosen, known, _rewards(rewards))
            if not chosen or not one.waiting or not set(one.rewards) <= {arm.name for arm in chosen}:
                raise ValueError(f"the decision {key!r} can't wait for the arms {chosen}")
            history.open(one)
        for key, rewards in data["closed"]:
            history._closed[key] = ClosedDecision(key, _rewards(rewards))
        known_ids = [*history.pending, *history._closed]
        if len(set(known_ids)) < len(data["pending"]) + len(data["closed"]) or not all(map(_is_id, known_ids)):
            raise ValueError("decisions must have texts as ids, which differ from each other")
        if not all(one.rewards for one in history._closed.values()):
            raise ValueError("a decision can't have chosen no arm")
        return history


def _rewards(data: Any) -> dict[Any, Any]:
    """Rewards by the names of arms, from what JSON held; None where there is none."""
    return {name: None if value is None else as_number(value, "a reward") for name, value in data}


def _is_id(value: Any) -> bool:
    return isinstance(value, str) and bool(value)
