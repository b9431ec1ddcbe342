"""A perceptron per arm, in a fleet: for two arms or for thousands, each learned from its own rewards alone.

Where arms drift, they do so as time passes, played or not: an arm that has not been played for long becomes less
certain. So the drift since an arm's last reward is made up for when the arm is next looked at or learned.
"""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from typing import Any

import numpy as np

from onepass._typing import FloatArray
from onepass.decisions.arms.base import Arm, ModelSettings, as_scores
from onepass.decisions.policies import ArmScores
from onepass.engine.step import PerceptronProgress
from onepass.files.state import Arrays, Parameters, as_tally, nested, sized, under
from onepass.models.fleet import PerceptronFleet
from onepass.models.mixture import check_nothing_fades, mixed_prediction, stacked
from onepass.models.perceptron import BayesianPerceptron
from onepass.models.prediction import PredictedMoments
from onepass.models.weighting import HYPOTHESES, SwitchingWeights

__all__ = ["SeparateArms"]

# Variance of the noise, in units of half the range of rewards, and the rewards that this counts as. Chosen with prices
# and linear rewards that are not reported: without it the best price is given up in some runs.
_NOISE, _NOISE_ROWS = 1.0, 30.0
_FIRST_POPULATION = 64  # rewards after which arms are compared for the first time; then whenever these have doubled


class _MovingFleet:
    """A fleet by the numbers of arms whose weights move by a share of the prior's covariance with every reward."""

    def __init__(self, fleet: PerceptronFleet, rate: float) -> None:
        self.fleet, self.rate = fleet, rate
        self._likelihood = fleet.prior.observation  # made once: the prior is put together anew each time
        self.learned_at: FloatArray = np.zeros(0)  # by arm: how many rewards there were after its last one

    @contextmanager
    def all_or_none(self, numbers: Any) -> Iterator[None]:
        """Go back to what these arms were before if anything goes wrong."""
        before = self.learned_at.copy()
        try:
            with self.fleet.all_or_none(numbers):
                yield
        except BaseException:
            self.learned_at = before
            raise

    def predict(self, contexts: FloatArray, numbers: FloatArray, now: int) -> PredictedMoments:
        """What is predicted of these arms, ``(n, K)``, with what they drift before the next reward is learned."""
        n, n_arms = len(contexts), len(numbers)
        rows = np.repeat(contexts, n_arms, axis=0)
        found = self.fleet.predict(rows, keys=np.tile(numbers, n)).moments
        if not self.rate:
            return PredictedMoments(*(part.reshape(n, n_arms) for part in found))
        moved = np.tile(self._moved(numbers, now + 1), n)
        start = np.repeat(self.fleet.predict(contexts, keys=np.full(n, -1)).pre_var, n_arms)  # of a key that no arm has
        pre_var = (1.0 - moved) * found.pre_var + moved * start
        output = self._likelihood.output_moments(self.fleet.activation, found.pre_mean, pre_var)
        parts = (output.mean, output.var, found.pre_mean, pre_var, found.noise_var)
        return PredictedMoments(*(part.reshape(n, n_arms) for part in parts))

    def learn(self, contexts: FloatArray, numbers: FloatArray, rewards: FloatArray, now: int) -> FloatArray:
        """Learn rewards; the log density of each before it was learned."""
        if not self.rate:
            return self.fleet.learn_and_score(contexts, rewards, keys=numbers).log_densities
        return np.concatenate(
            [
                self._learn_one(contexts[i : i + 1], numbers[i : i + 1], rewards[i : i + 1], now + i)
                for i in range(len(rewards))
            ]
        )

    def _learn_one(self, context: FloatArray, number: FloatArray, reward: FloatArray, now: int) -> FloatArray:
        self.fleet.drift(number, self._moved(number, now + 1))  # it also moves before this reward
        densities = self.fleet.learn_and_score(context, reward, keys=number).log_densities
        self._make_room(int(number[0]))
        self.learned_at[number] = now + 1
        return densities

    def _moved(self, numbers: FloatArray, now: int) -> FloatArray:
        """Which share of its way back to the prior each arm has drifted since its last reward."""
        learned_at = np.zeros(len(numbers))
        known = numbers < len(self.learned_at)  # there is no room made here: to look at an arm changes nothing
        learned_at[known] = self.learned_at[numbers[known]]
        return np.asarray(1.0 - (1.0 - self.rate) ** (now - learned_at))

    def _make_room(self, number: int) -> None:
        if number >= len(self.learned_at):
            more = np.zeros(max(number + 1, 2 * len(self.learned_at)) - len(self.learned_at))
            self.learned_at = np.concatenate([self.learned_at, more])


class SeparateArms:
    """Perceptrons by the number of their arm; with ``drift="auto"`` under each of several rates of drift."""

    def __init__(self, settings: ModelSettings) -> None:
        self.population: bool = settings.population
        automatic = isinstance(settings.drift, str)
        if automatic:
            check_nothing_fades(settings.forgetting)
        alone = {"drift": float(settings.drift), "forgetting": settings.forgetting} if not automatic else {}
        self._fleets: list[_MovingFleet] = []
        for rate in HYPOTHESES.values() if automatic else [alone]:
            fleet = PerceptronFleet(
                settings.n_features,
                settings.likelihood.link,
                observation=settings.observation,
                noise=settings.noise if settings.likelihood.is_gaussian else None,
                cov=settings.prior_scale**2,
                outliers=settings.outliers,
                forgetting=rate.get("forgetting", 1.0),
            )
            if settings.likelihood.is_gaussian and settings.noise == "learn":
                fleet.prior = _noisy(fleet.prior)
            self._fleets.append(_MovingFleet(fleet, rate.get("drift", 0.0)))
        self._weighting = SwitchingWeights.start() if automatic else None
        self.n_learned: int = 0

    @property
    def drift_(self) -> dict[float | str, float]:
        """The probability of each rate of drift now."""
        rates: dict[float | str, float] = {self._fleets[0].rate: 1.0}
        return rates if self._weighting is None else self._weighting.drift([rates])

    @property
    def n_set_aside(self) -> int:
        """Rewards that were counted but not learned under any rate, since they were absurdly far off."""
        return min(moving.fleet.n_set_aside for moving in self._fleets)

    def scores(self, contexts: FloatArray, arms: Sequence[Arm]) -> ArmScores:
        """What each arm's perceptron believes; of several rates of drift the moments of their mixture."""
        numbers = _numbers(arms)
        found = [fleet.predict(contexts, numbers, self.n_learned) for fleet in self._fleets]
        if self._weighting is None:
            return as_scores(found[0], len(contexts))
        return as_scores(mixed_prediction(self._weighting.weights, stacked(found)), len(contexts))

    def learn(self, contexts: FloatArray, arms: Sequence[Arm], rewards: FloatArray) -> None:
        """Learn each reward by the perceptron of its arm."""
        numbers = _numbers(arms)
        with ExitStack() as stack:  # no hypothesis learns what another can't
            for moving in self._fleets:
                stack.enter_context(moving.all_or_none(numbers))
            densities = [fleet.learn(contexts, numbers, rewards, self.n_learned) for fleet in self._fleets]
        if self._weighting is not None:
            self._weighting.switching.learn(np.array(densities))
        self.n_learned += len(rewards)
        if self.population:
            self._compare(self.n_learned - len(rewards))

    def _compare(self, before: int) -> None:
        """Let arms without rewards start as one of the population of those that have some."""
        due = _FIRST_POPULATION * 2 ** np.arange(48)
        if not ((due > before) & (due <= self.n_learned)).any():
            return
        for moving in self._fleets:
            # The rewards are learned; arms too extreme to have a population are compared when rewards have doubled.
            with suppress(ValueError):
                if len(moving.fleet) > 1:
                    moving.fleet.prior = moving.fleet.population()

    def add(self, arm: Arm) -> None:
        """A new arm starts at the prior by itself."""

    def close_block(self) -> None:
        """Nothing waits in a fleet."""

    def export_state(self) -> tuple[Parameters, Arrays]:
        """The fleets' states."""
        arrays: Arrays = {}
        parameters: Parameters = {"n_learned": self.n_learned, "fleets": []}
        for k, moving in enumerate(self._fleets):
            own, numbers = moving.fleet.export_state()
            parameters["fleets"].append(own)
            arrays |= nested(str(k), {**numbers, "learned_at": moving.learned_at.copy()})
        if self._weighting is not None:
            arrays |= self._weighting.arrays
        return parameters, arrays

    def restore(self, parameters: Parameters, arrays: Arrays) -> None:
        """Go on from what `export_state` gave."""
        self.n_learned = as_tally(parameters["n_learned"], "n_learned")
        for k, (moving, own) in enumerate(zip(self._fleets, parameters["fleets"], strict=True)):
            numbers = under(str(k), arrays)
            moving.learned_at = sized(numbers, "learned_at", numbers["learned_at"].shape[:1])
            moving.fleet = PerceptronFleet.from_state(own, numbers)
        if self._weighting is not None:
            self._weighting = SwitchingWeights.from_arrays(arrays)


def _noisy(prior: BayesianPerceptron) -> BayesianPerceptron:
    """A prior that takes numbers for noisy until several rewards have shown otherwise.

    An arm whose first rewards happen to be equal, such as none bought, would be known for certain and given up.
    """
    settings, arrays = prior.export_state()
    state = PerceptronProgress.from_array(arrays["running"])
    state.noise, state.noise_weight = _NOISE, _NOISE_ROWS
    if state.reference:
        state.start_reweighing()
    return BayesianPerceptron.from_state(settings, {**arrays, "running": state.to_array()})


def _numbers(arms: Sequence[Arm]) -> Any:
    return np.array([arm.number for arm in arms], dtype=np.int64)
