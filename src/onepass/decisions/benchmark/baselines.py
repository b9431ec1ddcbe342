"""Textbook bandits that ours are measured against: linear models of each arm in plain NumPy."""

from typing import Protocol

import numpy as np

from onepass._typing import FloatArray

__all__ = ["LinTS", "LinUCB", "Player", "UniformPlay"]


class Player(Protocol):
    """Whoever plays: chooses the number of an arm in a context, and learns its reward."""

    def play(self, context: FloatArray) -> int:
        """Choose an arm."""

    def learn(self, context: FloatArray, arm: int, reward: float) -> None:
        """Learn its reward."""


class _RidgePerArm:
    """Ridge regression of each arm's rewards, with precisions ``P`` and ``P^-1`` kept up to date."""

    def __init__(self, n_arms: int, n_features: int, prior_var: float, noise_var: float) -> None:
        self.noise_var = noise_var
        self.cov = np.repeat(np.eye(n_features)[None] * prior_var, n_arms, axis=0)
        self.moment = np.zeros((n_arms, n_features))

    def means(self) -> FloatArray:
        """Of the weights, ``(K, d)``."""
        return np.asarray(np.einsum("kij,kj->ki", self.cov, self.moment))

    def learn(self, context: FloatArray, arm: int, reward: float) -> None:
        """Add a row to an arm's regression (Sherman and Morrison)."""
        gain = self.cov[arm] @ context
        self.cov[arm] -= np.outer(gain, gain) / (self.noise_var + context @ gain)
        self.moment[arm] += context * reward / self.noise_var


class LinTS(_RidgePerArm):
    """Linear Thompson sampling (Agrawal and Goyal, 2013): weights of all arms are drawn, and the best arm is played."""

    def __init__(
        self, n_arms: int, n_features: int, prior_var: float, noise_var: float, rng: np.random.Generator
    ) -> None:
        super().__init__(n_arms, n_features, prior_var, noise_var)
        self.rng = rng

    def play(self, context: FloatArray) -> int:
        """Draw weights and take the arm with the highest score."""
        roots = np.linalg.cholesky(self.cov)
        drawn = self.means() + np.einsum("kij,kj->ki", roots, self.rng.standard_normal(self.moment.shape))
        return int(np.argmax(drawn @ context))


class LinUCB(_RidgePerArm):
    """LinUCB with disjoint arms (Li et al., 2010): the mean plus ``alpha`` standard deviations; with an intercept."""

    def __init__(self, n_arms: int, n_features: int, alpha: float) -> None:
        super().__init__(n_arms, n_features + 1, 1.0, 1.0)
        self.alpha = alpha

    def play(self, context: FloatArray) -> int:
        """Take the highest upper bound."""
        row = np.append(context, 1.0)
        gains = self.cov @ row
        bound = self.alpha * np.sqrt(gains @ row)
        return int(np.argmax(np.einsum("ki,ki->k", gains, self.moment) + bound))

    def learn(self, context: FloatArray, arm: int, reward: float) -> None:
        """Learn, with the intercept."""
        super().learn(np.append(context, 1.0), arm, reward)


class UniformPlay:
    """Any arm, whatever happens."""

    def __init__(self, n_arms: int, rng: np.random.Generator) -> None:
        self.n_arms, self.rng = n_arms, rng

    def play(self, context: FloatArray) -> int:
        """Take one at random."""
        return int(self.rng.integers(self.n_arms))

    def learn(self, context: FloatArray, arm: int, reward: float) -> None:
        """Learn nothing."""
