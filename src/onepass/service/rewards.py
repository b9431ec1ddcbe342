"""What a bandit has chosen and what came of it: reward over time, and how often each arm was chosen and rewarded.

It is for bandits what `onepass.service.scores.ServedScores` is for other models: a few kilobytes, in snapshots.
"""

from collections.abc import Iterable
from typing import Any, Self

import numpy as np

from onepass._typing import FloatArray
from onepass.decisions.arms.table import decode_arm
from onepass.evaluation.metrics import RowMean, Scores
from onepass.events import Event

__all__ = ["RewardScores"]

_ARMS = 100  # that are counted one by one: arms that are known by their features may be without number


class _Reward(RowMean[FloatArray]):
    """Mean reward of the chosen arms."""

    name = title = "reward"
    larger_is_better = True

    @classmethod
    def per_row(cls, rows: FloatArray) -> FloatArray:
        """The rewards themselves."""
        return rows


class RewardScores(Scores):
    """Rewards and choices of one bandit; arms beyond the first hundred count for the curve alone."""

    n_alarms = 0  # a bandit raises none

    def __init__(self) -> None:
        super().__init__([_Reward])
        self._arms: dict[str, list[float]] = {}  # decisions, rewards, their sum, the sum of their squares

    def note(self, event: Event) -> None:
        """Count a change of the bandit."""
        data = event.payload
        if event.kind == "decision":
            for name in (decode_arm(arm).name for arm in data["arms"]):
                self._count(name, [1.0, 0.0, 0.0, 0.0])
        elif event.kind == "reward":
            self._add((name, reward) for _, name, reward in data["rewards"])
        elif event.kind == "learn":
            self._add(zip(data["arms"], data["rewards"], strict=True))

    def _add(self, rewards: Iterable[tuple[Any, float]]) -> None:
        for name, reward in rewards:
            self._count(name, [0.0, 1.0, reward, reward**2])
            self.update(np.array([reward]))

    def _count(self, name: Any, numbers: list[float]) -> None:
        if str(name) in self._arms or len(self._arms) < _ARMS:
            before = self._arms.get(str(name), [0.0] * 4)
            self._arms[str(name)] = [old + new for old, new in zip(before, numbers, strict=True)]

    def counted(self) -> dict[str, float]:
        """What has been counted so far, for those who count changes."""
        return {"scored": self.n}

    def report(self) -> dict[str, Any]:
        """Everything, for people and programs."""
        arms = [{"arm": name, **_words(*numbers)} for name, numbers in sorted(self._arms.items())]
        return super().report() | {"arms": arms}

    def state(self) -> dict[str, Any]:
        """All of it as data that JSON can hold."""
        return super().state() | {"arms": self._arms}

    def restore(self, state: dict[str, Any]) -> Self:
        """Go on from what `state` described."""
        self._arms = {name: list(numbers) for name, numbers in state["arms"].items()}
        return super().restore(state)


def _words(decisions: float, rewards: float, total: float, squares: float) -> dict[str, float | int | None]:
    """Counts of an arm, and the mean of its rewards with what chance may have added to it."""
    mean = total / rewards if rewards else None
    variance = max(squares - total**2 / rewards, 0.0) / (rewards - 1) if rewards > 1 else None
    return {
        "decisions": int(decisions),
        "rewards": int(rewards),
        "mean": mean,
        "std_error": None if variance is None else (variance / rewards) ** 0.5,
    }
