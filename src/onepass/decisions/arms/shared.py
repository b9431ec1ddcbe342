"""One model of all arms, over the features of context and arm: it can judge arms that have never been played.

Without hidden units a score is linear in the context, in the arm and in all products of the two, so that which arm is
best can depend on the context; a network finds out by itself how context and arm go together.
"""

from collections.abc import Sequence

import numpy as np

from onepass._typing import FloatArray
from onepass.decisions.arms.base import Arm, ModelSettings, as_scores
from onepass.decisions.arms.network import NetworkModel
from onepass.decisions.policies import ArmScores

__all__ = ["SharedArms"]


class SharedArms(NetworkModel):
    """A network with one output: the score of the arm whose features it is given next to the context's."""

    def __init__(self, settings: ModelSettings, n_arm_features: int) -> None:
        self._has_products = not settings.hidden
        n_products = settings.n_features * n_arm_features if self._has_products else 0
        super().__init__(settings, settings.n_features + n_arm_features + n_products, 1)

    def scores(self, contexts: FloatArray, arms: Sequence[Arm]) -> ArmScores:
        """What the model believes about every arm in every context."""
        repeated = np.repeat(contexts, len(arms), axis=0)
        rows = self._rows(repeated, np.tile(_features(arms), (len(contexts), 1)))
        return as_scores(self.network.predict(rows).moments, len(contexts))

    def learn(self, contexts: FloatArray, arms: Sequence[Arm], rewards: FloatArray) -> None:
        """Learn the rewards of arms, by their features."""
        self.network.learn(self._rows(contexts, _features(arms)), rewards)

    def add(self, arm: Arm) -> None:
        """Any arm with features is known already."""

    def _rows(self, contexts: FloatArray, features: FloatArray) -> FloatArray:
        """The model's inputs: context, arm and, without hidden units, their products."""
        parts = [contexts, features]
        if self._has_products:
            parts.append((contexts[:, :, None] * features[:, None, :]).reshape(len(contexts), -1))
        return np.hstack(parts)


def _features(arms: Sequence[Arm]) -> FloatArray:
    return np.array([arm.features for arm in arms])
