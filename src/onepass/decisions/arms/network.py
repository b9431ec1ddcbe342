"""One network with an output per arm, of which a reward observes one: arms share what the hidden units have found.

The scores of arms are correlated through the weights they share. A reward is learned with all these correlations; the
policies then see each arm's own mean and deviation.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from onepass._typing import FloatArray
from onepass.decisions.arms.base import Arm, ModelSettings, as_scores
from onepass.decisions.policies import ArmScores
from onepass.files.state import Arrays, Parameters
from onepass.models.mixture import Mixture, with_drift
from onepass.models.network import BayesianNetwork

__all__ = ["NetworkArms", "NetworkModel"]


class NetworkModel:
    """What models that are one network have in common."""

    def __init__(self, settings: ModelSettings, n_inputs: Any, n_outputs: int) -> None:
        self.network: BayesianNetwork | Mixture = with_drift(
            BayesianNetwork,
            n_inputs,
            settings.hidden,
            n_outputs,
            observation=settings.observation,
            covariance=settings.covariance,
            prior_scale=settings.prior_scale,
            noise=settings.noise,
            outliers=settings.outliers,
            forgetting=settings.forgetting,
            drift=settings.drift,
            dtype=settings.dtype,
            seed=settings.seed,
        )

    @property
    def drift_(self) -> dict[float | str, float]:
        """The probability of each rate of drift now."""
        return self.network.drift_

    @property
    def n_set_aside(self) -> int:
        """Rewards that were counted but not learned, since they were absurdly far off."""
        return self.network.n_set_aside

    def close_block(self) -> None:
        """Close the blocks of all that learns."""
        self.network.close_block()

    def export_state(self) -> tuple[Parameters, Arrays]:
        """The network's."""
        return self.network.export_state()

    def restore(self, parameters: Parameters, arrays: Arrays) -> None:
        """Go on from what `export_state` gave."""
        self.network = type(self.network).from_state(parameters, arrays)


class NetworkArms(NetworkModel):
    """A network whose output ``k`` is the score of the arm with the number ``k``."""

    def __init__(self, settings: ModelSettings, n_arms: int) -> None:
        super().__init__(settings, settings.n_features, n_arms)

    def scores(self, contexts: FloatArray, arms: Sequence[Arm]) -> ArmScores:
        """What the network believes."""
        found = as_scores(self.network.predict(contexts if len(contexts) > 1 else contexts[0]).moments, len(contexts))
        numbers = [arm.number for arm in arms]
        is_all = numbers == list(range(self.network.n_outputs))
        return found if is_all else found.take((slice(None), numbers))

    def learn(self, contexts: FloatArray, arms: Sequence[Arm], rewards: FloatArray) -> None:
        """Learn each reward by the output of its arm."""
        targets = np.full((len(contexts), self.network.n_outputs), np.nan)
        targets[np.arange(len(contexts)), [arm.number for arm in arms]] = rewards
        targets = targets if self.network.n_outputs > 1 else targets[:, 0]
        self.network.learn(*((contexts, targets) if len(contexts) > 1 else (contexts[0], targets[0])))

    def add(self, arm: Arm) -> None:
        """Give the network one more output, whose weights start at the prior."""
        self.network = self.network.with_outputs(arm.number + 1)
