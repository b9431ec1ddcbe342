"""What a bandit has chosen and what came of it: reward over time, and how often each arm was chosen and rewarded.

It is for bandits what `onepass.service.scores.Scores` is for other models: a few kilobytes, in snapshots.
"""

from collections.abc import Iterable
from typing import Any

import numpy as np

from onepass._typing import FloatArray
from onepass.decisions.arms.table import decode_arm
from onepass.evaluation.metrics import Curve, OverTime, RowMean
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


class RewardScores:
    """Rewards and choices of one bandit; arms beyond the first hundred count for the curve alone."""

    n_alarms = 0  # a bandit raises none

    def __init__(self) -> None:
        self._over_time = OverTime([_Reward])
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
            self._over_time.update(np.array([reward]))

    def _count(self, name: Any, numbers: list[float]) -> None:
        if str(name) in self._arms or len(self._arms) < _ARMS:
            before = self._arms.get(str(name), [0.0] * 4)
            self._arms[str(name)] = [old + new for old, new in zip(before, numbers, strict=True)]

    @property
    def curve(self) -> Curve:
        """Sums over segments of the rewards."""
        return self._over_time.curve

    @property
    def n(self) -> int:
        """Rewards."""
        return int(self.curve.rows[-1]) if len(self.curve.rows) else 0

    def sums(self) -> dict[str, float]:
        """What has been counted so far, for those who count changes."""
        return {"scored": self.n}

    def score_sums(self) -> dict[str, float]:
        """The sum of the rewards."""
        return {_Reward.name: float(self.curve.sums.sum())}

    def report(self) -> dict[str, Any]:
        """Everything, for people and programs."""
        rows, means, n = self.curve.rows, self.curve.means, self.n
        return {
            "rows": n,
            "metrics": [_Reward.description()],
            "scores": {"reward": float(self.curve.sums.sum() / n)} if n else {},
            "over_time": {"rows": rows.tolist(), "reward": means[:, 0].tolist()},
            "arms": [{"arm": name, **_words(*numbers)} for name, numbers in sorted(self._arms.items())],
        }

    def state(self) -> dict[str, Any]:
        """All of it as data that JSON can hold."""
        return {"curve": self.curve.state(), "arms": self._arms}

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> "RewardScores":
        """Make the scores that `state` described."""
        scores = cls()
        scores._over_time.curve = Curve.from_state(state["curve"], 1)
        scores._arms = {name: list(numbers) for name, numbers in state["arms"].items()}
        return scores


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
