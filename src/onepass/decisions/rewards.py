"""Rewards: which are allowed for each kind of observation, and the scale on which numbers are learned."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from onepass._typing import FloatArray
from onepass._validation import ArgumentError, as_floats
from onepass.decisions.policies import ArmScores
from onepass.likelihoods import named

__all__ = ["RewardScale"]

_LARGEST = 1e75  # of what is learned: its fourth power is finite, and so rewards of common size can be learned after it


@dataclass(frozen=True)
class RewardScale:
    """Numbers are learned as ``(reward - centre) / unit``; labels and counts as they are."""

    observation: str
    limits: tuple[float, float]
    centre: float = 0.0
    unit: float = 1.0

    @classmethod
    def of(cls, observation: str, reward_range: tuple[float, float]) -> "RewardScale":
        """The scale that brings a range of rewards to -1 to 1."""
        limits = as_floats(reward_range, "reward_range")
        if limits.shape != (2,) or not 0.5 * limits[0] < 0.5 * limits[1]:
            raise ArgumentError("reward_range", f"must be a pair (low, high) with low below high, got {reward_range!r}")
        low, high = limits.tolist()
        if not named(observation).is_numeric:
            return cls(observation, (low, high))
        return cls(observation, (low, high), 0.5 * low + 0.5 * high, 0.5 * high - 0.5 * low)

    def check(self, rewards: Any) -> FloatArray:
        """Validate rewards, ``(n,)``."""
        values = np.atleast_1d(as_floats(rewards, "a reward"))
        if values.ndim > 1:
            raise ValueError(f"rewards must be one number each, got an array of shape {values.shape}")
        likelihood = named(self.observation)()
        wrong = likelihood.impossible(values)
        if wrong.any():
            allowed = "a count: 0, 1, 2, ..." if likelihood.is_count else likelihood.words
            raise ValueError(
                f"a reward must be {allowed} with observation={self.observation!r}, got {values[wrong][0]:g}; "
                "observation='gaussian' takes any number, 'poisson' counts, 'bernoulli' 0 and 1"
            )
        if not (np.abs(self.scaled(values)) <= _LARGEST).all():
            largest = values[np.abs(values).argmax()]
            raise ValueError(
                f"a reward must be below {_LARGEST:g} in units of reward_range={self.limits}, got {largest:g}"
            )
        return values

    def scaled(self, rewards: FloatArray) -> FloatArray:
        """As the model learns them."""
        with np.errstate(over="ignore"):
            return np.asarray((rewards - self.centre) / self.unit)

    def unscaled(self, scores: ArmScores) -> ArmScores:
        """Expected rewards in their own units; scores, which only compare, stay as they are."""
        return scores._replace(
            reward_mean=self.centre + self.unit * scores.reward_mean, reward_std=self.unit * scores.reward_std
        )
