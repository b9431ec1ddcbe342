"""Tasks for bandits whose expected rewards are known: labelled rows, and problems that are made up.

In a task of labelled rows the arms are the labels: the reward is 1 for the right one and 0 for any other, and only the
reward of the arm that was played is seen.
"""

import gzip
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from onepass._typing import FloatArray

__all__ = ["Round", "Task", "drifting_arms", "labelled", "linear_gaussian", "read_images", "read_labels", "read_mnist"]

_WALK = 10  # steps after which weights move by what they would in all of them
Labels = NDArray[np.int64]


class Round(NamedTuple):
    """One decision to be made: the context, what each arm would earn, and what it would earn on average."""

    context: FloatArray  # (d,)
    rewards: FloatArray  # (K,)
    expected: FloatArray  # (K,)


@dataclass(frozen=True)
class Task:
    """Rounds to be played, made anew from each seed."""

    n_arms: int
    n_features: int
    steps: int
    rounds: Callable[[int], Iterator[Round]]
    warm_up: int = 0  # pulls of each arm in turn before the steps, which don't count


def read_mnist(folder: Path) -> tuple[FloatArray, Labels]:
    """The 60,000 training images and their labels."""
    return read_images(folder / "train-images-idx3-ubyte.gz"), read_labels(folder / "train-labels-idx1-ubyte.gz")


def read_images(path: Path) -> FloatArray:
    """The images of one of MNIST's files, ``(n, 784)`` in 0 to 1."""
    return np.frombuffer(gzip.decompress(path.read_bytes()), np.uint8, offset=16).reshape(-1, 784) / 255.0


def read_labels(path: Path) -> Labels:
    """The labels of one of MNIST's files, ``(n,)``."""
    return np.frombuffer(gzip.decompress(path.read_bytes()), np.uint8, offset=8).astype(np.int64)


def labelled(contexts: FloatArray, rewards: FloatArray, steps: int | None = None, *, warm_up: int = 0) -> Task:
    """Rows with the reward of each arm, ``(n, d)`` and ``(n, K)``.

    Parameters
    ----------
    contexts, rewards : arrays
    steps : int, optional
        How many rows are drawn, with replacement; by default all rows once, in their order.
    warm_up : int
        Pulls of each arm before the steps.
    """

    def rounds(seed: int) -> Iterator[Round]:
        rng = np.random.default_rng([seed, 1])
        extra = warm_up * rewards.shape[1]
        order = np.arange(len(contexts)) if steps is None else rng.integers(len(contexts), size=steps + extra)
        for i in order:
            yield Round(np.asarray(contexts[i], dtype=np.float64), rewards[i], rewards[i])

    n_steps = len(contexts) - warm_up * rewards.shape[1] if steps is None else steps
    return Task(rewards.shape[1], contexts.shape[1], n_steps, rounds, warm_up)


def linear_gaussian(n_arms: int = 10, n_features: int = 10, steps: int = 5000, noise_std: float = 0.5) -> Task:
    """Rewards linear in the context, with weights and contexts from standard Gaussians (the latter of unit length)."""

    def rounds(seed: int) -> Iterator[Round]:
        rng = np.random.default_rng([seed, 2])
        weights = rng.standard_normal((n_arms, n_features))
        for _ in range(steps):
            context = rng.standard_normal(n_features)
            context /= np.linalg.norm(context)
            expected = weights @ context
            yield Round(context, expected + noise_std * rng.standard_normal(n_arms), expected)

    return Task(n_arms, n_features, steps, rounds)


def drifting_arms(n_arms: int = 1000, n_features: int = 20, steps: int = 20_000, half_life: float = 10_000.0) -> Task:
    """Clicks on many arms whose weights wander, so that half of what was true is forgotten after ``half_life`` steps.

    Weights have a common mean, as arms of one shop have, and deviations of their own.
    """

    def rounds(seed: int) -> Iterator[Round]:
        rng = np.random.default_rng([seed, 3])
        common = 0.5 * rng.standard_normal(n_features)
        own = 0.5 * rng.standard_normal((n_arms, n_features))
        level = rng.normal(-2.0, 1.0, n_arms)
        kept = 0.5 ** (_WALK / half_life)
        width = np.sqrt(1.0 - kept * kept)
        for step in range(steps):
            if step and step % _WALK == 0:
                own = kept * own + width * 0.5 * rng.standard_normal(own.shape)
                level = -2.0 + kept * (level + 2.0) + width * rng.standard_normal(n_arms)
            context = rng.standard_normal(n_features)
            expected = 1.0 / (1.0 + np.exp(-(level + (common + own) @ context)))
            yield Round(context, (rng.random(n_arms) < expected).astype(np.float64), expected)

    return Task(n_arms, n_features, steps, rounds)
