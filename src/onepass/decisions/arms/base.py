"""What a bandit asks of a model of its arms, and the settings that all of these models share."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

import numpy as np

from onepass._typing import FloatArray
from onepass.decisions.policies import ArmScores
from onepass.files.state import Arrays, Parameters
from onepass.likelihoods import Likelihood, likelihood_names, named
from onepass.models.prediction import PredictedMoments

__all__ = ["OBSERVATIONS", "Arm", "ArmModel", "ModelSettings", "as_scores"]

OBSERVATIONS = likelihood_names(lambda kind: not kind.needs_network)
"""Kinds of rewards."""


@dataclass(frozen=True)
class Arm:
    """An arm: its name, the number that it has for good, and its features if it has some."""

    name: str | int
    number: int
    features: FloatArray | None = None


@dataclass(frozen=True)
class ModelSettings:
    """How arms are learned: the arguments of `onepass.decisions.ContextualBandit` of the same names."""

    n_features: Any  # of a context: a number, or the shape of an image
    hidden: tuple[Any, ...]
    observation: str
    covariance: Any
    prior_scale: float
    noise: float | Literal["learn"]  # variance of single rewards that are numbers, on the scale they are learned on
    population: bool
    outliers: float
    forgetting: float
    drift: float | str
    dtype: str
    seed: int

    @property
    def likelihood(self) -> type[Likelihood]:
        """How rewards come about; its ``link`` turns a score into an expected reward."""
        return named(self.observation)


class ArmModel(Protocol):
    """A model of arms."""

    @property
    def drift_(self) -> dict[float | str, float]:
        """The probability of each rate of drift now."""

    @property
    def n_set_aside(self) -> int:
        """Rewards that were counted but not learned, since they were absurdly far off."""

    def scores(self, contexts: FloatArray, arms: Sequence[Arm]) -> ArmScores:
        """The belief about arms in contexts ``(n, d)``: scores ``(n, K)``."""

    def learn(self, contexts: FloatArray, arms: Sequence[Arm], rewards: FloatArray) -> None:
        """Learn the rewards ``(n,)`` of arms ``(n,)`` played in contexts: all of them or, after an error, none."""

    def add(self, arm: Arm) -> None:
        """Make room for an arm that was not there from the beginning."""

    def close_block(self) -> None:
        """Let no reward wait in a block for others: what is learned next does not depend on who looked before."""

    def export_state(self) -> tuple[Parameters, Arrays]:
        """All that was learned, as JSON-compatible parameters and arrays."""

    def restore(self, parameters: Parameters, arrays: Arrays) -> None:
        """Go on from what `export_state` gave."""


def as_scores(prediction: PredictedMoments, n: int) -> ArmScores:
    """The scores of a prediction for ``n`` contexts, ``(n, K)``."""
    mean, std = np.reshape(prediction.pre_mean, (n, -1)), np.sqrt(np.reshape(prediction.pre_var, (n, -1)))
    return ArmScores(mean, std, np.reshape(prediction.mean, (n, -1)), np.sqrt(np.reshape(prediction.var, (n, -1))))
