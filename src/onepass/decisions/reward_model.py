"""The model of rewards in doubly robust estimates: it predicts rows from rows before them, chunk by chunk."""

from copy import deepcopy
from itertools import pairwise
from typing import Protocol

import numpy as np

from onepass._typing import FloatArray
from onepass.decisions.bandit import ContextualBandit
from onepass.decisions.log import DecisionLog
from onepass.decisions.targets import TargetPolicy, learn_known

__all__ = ["RewardModel", "growing_chunks", "reward_model"]

_STEP = 8  # rows by which chunks grow at first, and from which on there is more to learn than the mean
_GROWTH = 1.5  # all rows after a chunk, by those before it: learning anew each time costs three passes in all
_RANGE = 2.0  # standard deviations from their mean between which rewards roughly lie


def growing_chunks(n: int) -> list[slice]:
    """Chunks of rows that grow with the rows before them, so that a model predicts none of them much too early.

    Examples
    --------
    >>> [(chunk.start, chunk.stop) for chunk in growing_chunks(50)]
    [(0, 1), (1, 2), (2, 4), (4, 8), (8, 16), (16, 24), (24, 36), (36, 50)]
    """
    edges = [0, 1]
    while edges[-1] < n:
        before = edges[-1]
        edges.append(min(max(min(2 * before, before + _STEP), int(_GROWTH * before)), n))
    return [slice(start, stop) for start, stop in pairwise(edges)]


class RewardModel(Protocol):
    """What predicts rewards of the arms of a target policy."""

    def predict(self, rows: slice) -> FloatArray:
        """Expected rewards ``(m, K)`` in these rows, from what was learned so far."""

    def learn(self, rows: slice) -> None:
        """Learn the next rows."""


def reward_model(given: ContextualBandit | None, log: DecisionLog, target: TargetPolicy) -> RewardModel:
    """A copy of the bandit given, or a perceptron per arm."""
    return _Perceptrons(log, target) if given is None else _Given(given, log, target)


class _Given:
    """A bandit of the caller's."""

    def __init__(self, bandit: ContextualBandit, log: DecisionLog, target: TargetPolicy) -> None:
        if not isinstance(bandit, ContextualBandit):
            raise TypeError(f"model must be a ContextualBandit, got {type(bandit).__name__}")
        self._bandit, self._log, self._names = deepcopy(bandit), log, target.names

    def predict(self, rows: slice) -> FloatArray:
        return self._bandit.predict(self._log.contexts[rows], self._names).reward_mean

    def learn(self, rows: slice) -> None:
        learn_known(self._bandit, self._log[rows])


class _Perceptrons:
    """A perceptron per arm, learned anew from all rows so far whenever there are more.

    So contexts are standardised and rewards scaled by all that is known when a row is predicted, and by nothing later.
    That rewards are 0 and 1 is taken from the whole log: it says what a reward is, not what came of a decision.
    """

    def __init__(self, log: DecisionLog, target: TargetPolicy) -> None:
        self._log, self._target = log, target
        self._is_binary = bool(np.isin(log.rewards, (0.0, 1.0)).all())
        self._bandit: ContextualBandit | None = None
        self._centre, self._scale = np.zeros(0), np.ones(0)
        self._mean = 0.0  # of the rewards so far
        self._bounds = (0.0, 0.0)  # of these rewards: an extreme context is not a reason to expect more

    def predict(self, rows: slice) -> FloatArray:
        if self._bandit is None:
            return np.full((rows.stop - rows.start, len(self._target.names)), self._mean)
        contexts = (self._log.contexts[rows] - self._centre) / self._scale
        return np.clip(self._bandit.predict(contexts).reward_mean, *self._bounds)

    def learn(self, rows: slice) -> None:
        self._mean = float(self._log.rewards[: rows.stop].mean())
        known = np.flatnonzero(self._target.columns[: rows.stop] >= 0)
        contexts, rewards = self._log.contexts[known], self._log.rewards[known]
        if len(known) < _STEP or rewards.min() == rewards.max():
            return
        self._bounds = (float(rewards.min()), float(rewards.max()))
        self._centre, std = contexts.mean(axis=0), contexts.std(axis=0)
        self._scale = np.where(std > 0.0, std, 1.0)
        middle, half = rewards.mean(), _RANGE * rewards.std()
        self._bandit = ContextualBandit(
            range(len(self._target.names)),
            contexts.shape[1],
            observation="bernoulli" if self._is_binary else "gaussian",
            reward_range=(middle - half, middle + half),
        )
        arms = self._target.columns[known].tolist()
        self._bandit.learn((contexts - self._centre) / self._scale, arms, rewards)
