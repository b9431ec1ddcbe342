"""Playing a task: what is earned step by step, beside what the best choice would have earned, and how long it took."""

from collections.abc import Callable
from time import perf_counter
from typing import NamedTuple

import numpy as np

from benchmarks.bandits.baselines import Player
from benchmarks.bandits.tasks import Task
from onepass._typing import FloatArray
from onepass.decisions.bandit import ContextualBandit

__all__ = ["BanditPlayer", "Played", "play"]


class Played(NamedTuple):
    """One run of a task."""

    rewards: FloatArray  # (steps,)
    regret: FloatArray  # (steps,), expected reward of the best arm less that of the arm played
    fixed: FloatArray  # (K,), what each arm would have earned on average if it had been played all the time
    best: float  # what the best arm of each step earns on average
    seconds: float  # of choosing and learning, without those of the task


class BanditPlayer:
    """A `ContextualBandit` whose arms are numbers, as a player."""

    def __init__(self, bandit: ContextualBandit) -> None:
        self.bandit = bandit
        self._waiting = ""

    def play(self, context: FloatArray) -> int:
        """Choose."""
        choice = self.bandit.choose(context)
        self._waiting = choice.id
        return int(choice.arm)

    def learn(self, context: FloatArray, arm: int, reward: float) -> None:
        """Reward the choice; one that was made for it in a warm-up is learned."""
        if self._waiting:
            self.bandit.reward(self._waiting, reward)
            self._waiting = ""
        else:
            self.bandit.learn(context, arm, reward)


def play(task: Task, make: Callable[[int], Player], seed: int) -> Played:
    """Play a task from a seed."""
    player = make(seed)
    extra = task.warm_up * task.n_arms
    rewards, regret, fixed, seconds = np.empty(task.steps), np.empty(task.steps), np.zeros(task.n_arms), 0.0
    best = 0.0
    for step, (context, earned, expected) in enumerate(task.rounds(seed)):
        start = perf_counter()
        arm = step % task.n_arms if step < extra else player.play(context)
        player.learn(context, arm, float(earned[arm]))
        if step >= extra:
            seconds += perf_counter() - start
            rewards[step - extra] = earned[arm]
            regret[step - extra] = expected.max() - expected[arm]
            fixed += expected
            best += float(expected.max())
    return Played(rewards, regret, fixed / task.steps, best / task.steps, seconds)
