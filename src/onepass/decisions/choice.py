"""What a bandit gives back when it decides, and what it keeps of a decision until its reward comes."""

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple, Self

import numpy as np

from onepass._typing import FloatArray
from onepass.decisions.arms.base import Arm
from onepass.decisions.arms.table import decode_arm
from onepass.decisions.changes import Change
from onepass.decisions.policies import ArmScores, Policy

__all__ = ["Choice", "LoggedDecision", "Pending", "chosen_name"]


@dataclass(frozen=True)
class Choice:
    """A decision: the arms chosen, and what the bandit expected of all candidates.

    Arrays have one number per arm, in the order of `candidates`.
    """

    id: str
    """Id of the decision, with which its reward is given later."""
    arms: tuple[Any, ...]
    """Names of the arms chosen, the best first: one, or as many as were asked for."""
    candidates: tuple[Any, ...]
    """Names of the arms that could be chosen."""
    scores: ArmScores = field(repr=False)
    """What the policy saw: the score of each candidate, and its expected reward."""
    policy: Policy = field(repr=False)

    @property
    def arm(self) -> Any:
        """Name of the arm chosen; if several were chosen, the first."""
        return self.arms[0]

    @property
    def means(self) -> FloatArray:
        """Expected reward of each candidate, ``(K,)``."""
        return self.scores.reward_mean

    @property
    def stds(self) -> FloatArray:
        """Uncertainty of each expected reward, as a standard deviation, ``(K,)``."""
        return self.scores.reward_std

    @cached_property
    def propensities(self) -> FloatArray:
        """Probability that each candidate is chosen (first), ``(K,)``; computed when it is first read."""
        return self.policy.propensities(self.scores)

    @property
    def propensity(self) -> float:
        """Probability with which `arm` was chosen."""
        return float(self.propensities[self.candidates.index(self.arm)])


@dataclass
class Pending:
    """A decision whose reward has not come yet."""

    id: str
    number: int  # how many decisions were made before
    time: float  # in seconds since 1970
    context: FloatArray  # (d,), as it was given
    arms: tuple[Arm, ...]  # chosen, the best first
    propensity: float | None  # of the first arm; None if it was not asked for
    rewards: dict[Any, float] = field(default_factory=dict)  # by the names of arms, so far

    @classmethod
    def of(cls, change: Change) -> Self:
        """The decision that a change is about, as it was made."""
        data, arms = change.data, tuple(decode_arm(arm) for arm in change.data["arms"])
        return cls(change.key, data["number"], data["time"], np.array(change.context), arms, data["propensity"])

    @property
    def waiting(self) -> tuple[Arm, ...]:
        """The arms without a reward."""
        return tuple(arm for arm in self.arms if arm.name not in self.rewards)

    def name_of(self, name: Any) -> Any:
        """The name of a chosen arm, by default (None) of the first one."""
        return chosen_name(self.id, tuple(arm.name for arm in self.arms), name)

    def arm(self, name: Any) -> Arm:
        """The chosen arm of this name."""
        return next(arm for arm in self.arms if arm.name == name)


def chosen_name(decision_id: str, chosen: tuple[Any, ...], name: Any) -> Any:
    """One of the names of the arms that a decision chose, by default (None) the first; a ValueError for another."""
    if name is None:
        return chosen[0]
    for own in chosen:
        if own == name:
            return own
    raise ValueError(
        f"arm must be one that decision {decision_id!r} chose, {', '.join(map(repr, chosen))}, got {name!r}"
    )


class LoggedDecision(NamedTuple):
    """A decision and its reward."""

    id: str
    time: float  # of the decision, in seconds since 1970
    context: FloatArray  # (d,)
    arm: Any
    action: int  # the arm's number
    position: int  # 0 for the arm that came first
    propensity: float | None  # with which it came first; None at later positions
    reward: float
