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
    """Ridge regression of each arm's rewards, whose covariances are kept up to date; with an intercept or without."""

    def __init__(
        self, n_arms: int, n_features: int, prior_var: float, noise_var: float, *, intercept: bool = True
    ) -> None:
        self.noise_var = noise_var
        self.intercept = intercept
        size = n_features + intercept
        self.cov: FloatArray = np.repeat(np.eye(size)[None] * prior_var, n_arms, axis=0)
        self.moment: FloatArray = np.zeros((n_arms, size))

    def row(self, context: FloatArray) -> FloatArray:
        """What weights multiply."""
        return np.append(context, 1.0) if self.intercept else context

    def learn(self, context: FloatArray, arm: int, reward: float) -> None:
        """Add a row to an arm's regression (Sherman and Morrison)."""
        row = self.row(context)
        gain = self.cov[arm] @ row
        self.cov[arm] -= np.outer(gain, gain) / (self.noise_var + row @ gain)
        self.moment[arm] += row * reward / self.noise_var


class LinTS(_RidgePerArm):
    """Linear Thompson sampling (Agrawal and Goyal, 2013): weights of all arms are drawn, and the best arm is played."""

    def __init__(
        self,
        n_arms: int,
        n_features: int,
        prior_var: float,
        noise_var: float,
        rng: np.random.Generator,
        *,
        intercept: bool = True,
    ) -> None:
        super().__init__(n_arms, n_features, prior_var, noise_var, intercept=intercept)
        self.rng = rng

    def play(self, context: FloatArray) -> int:
        """Draw weights and take the arm with the highest score."""
        means = np.einsum("kij,kj->ki", self.cov, self.moment)
        noise = self.rng.standard_normal(self.moment.shape)
        drawn = means + np.einsum("kij,kj->ki", np.linalg.cholesky(self.cov), noise)
        return int(np.argmax(drawn @ self.row(context)))


class LinUCB(_RidgePerArm):
    """LinUCB with disjoint arms (Li et al., 2010): the mean plus ``alpha`` standard deviations."""

    def __init__(self, n_arms: int, n_features: int, alpha: float) -> None:
        super().__init__(n_arms, n_features, 1.0, 1.0)
        self.alpha = alpha

    def play(self, context: FloatArray) -> int:
        """Take the highest upper bound."""
        row = self.row(context)
        gains = self.cov @ row
        bound = self.alpha * np.sqrt(gains @ row)
        return int(np.argmax(np.einsum("ki,ki->k", gains, self.moment) + bound))


class UniformPlay:
    """Any arm, whatever happens."""

    def __init__(self, n_arms: int, rng: np.random.Generator) -> None:
        self.n_arms = n_arms
        self.rng = rng

    def play(self, context: FloatArray) -> int:
        """Take one at random."""
        return int(self.rng.integers(self.n_arms))

    def learn(self, context: FloatArray, arm: int, reward: float) -> None:
        """Learn nothing."""
