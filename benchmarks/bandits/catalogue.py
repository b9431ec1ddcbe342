"""The tasks that bandits are measured on, who plays them, and what others have published."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from benchmarks.bandits.baselines import LinTS, LinUCB, Player, UniformPlay
from benchmarks.bandits.run import BanditPlayer
from benchmarks.bandits.tasks import Task, drifting_arms, labelled, linear_gaussian, read_mnist
from onepass.decisions.bandit import ContextualBandit
from onepass.decisions.policies import Thompson
from onepass.layers import Conv2D

__all__ = ["ENTRIES", "Entry"]

_NOISE_STD = 0.5  # of the linear task


@dataclass(frozen=True)
class Entry:
    """A task, and its players.

    Parameters
    ----------
    title : what it is
    folder : where its data are, in the folder of all data; None for a task that is made up
    task : makes it from that folder, with so many steps (None for as many as published)
    players : by name, each made for the task and a seed
    total : whether results are total rewards, as they were published, or means per step
    seeds : how many runs
    published : what others have
    """

    title: str
    folder: str | None
    task: Callable[[Path, int | None], Task]
    players: dict[str, Callable[[Task, int], Player]]
    total: bool
    seeds: int
    published: str = ""


def _bandit(task: Task, seed: int, **options: Any) -> Player:
    n_features = options.pop("n_features", task.n_features)
    return BanditPlayer(ContextualBandit(range(task.n_arms), n_features, seed=seed, **options))


def _mnist(folder: Path, steps: int | None, default: int, warm_up: int = 0) -> Task:
    images, labels = read_mnist(folder / "mnist")
    return labelled(images, np.eye(10)[labels], steps or default, warm_up=warm_up)


def _table(name: str) -> Callable[[Path, int | None], Task]:
    def task(folder: Path, steps: int | None) -> Task:
        with np.load(folder / "bandits" / f"{name}.npz") as data:
            return labelled(data["contexts"][:steps].astype(np.float64), data["rewards"][:steps].astype(np.float64))

    return task


def _lin_ts(task: Task, seed: int, *, intercept: bool) -> Player:
    rng = np.random.default_rng([seed, 4])
    return LinTS(task.n_arms, task.n_features, 1.0, _NOISE_STD**2, rng, intercept=intercept)


def _uniform(task: Task, seed: int) -> Player:
    return UniformPlay(task.n_arms, np.random.default_rng([seed, 5]))


Players: TypeAlias = dict[str, Callable[[Task, int], Player]]

_NETWORK: Players = {"network of 50 units": partial(_bandit, hidden=(50,)), "perceptrons": _bandit}
_MLP: Players = {"network of 200 units": partial(_bandit, hidden=(200,))}
_CONV: Players = {
    "convolutions": partial(_bandit, hidden=(Conv2D(16, 5, stride=3), 200), n_features=(28, 28), dtype="float32")
}
_NUMBERS: dict[str, Any] = {"observation": "gaussian", "reward_range": (-1.0, 1.0)}
_LINEAR: Players = {
    "perceptrons, noise learned": partial(_bandit, **_NUMBERS),
    "perceptrons, scale 1, noise known": partial(_bandit, **_NUMBERS, noise=_NOISE_STD**2, policy=Thompson(1.0)),
    "textbook LinTS": partial(_lin_ts, intercept=True),
    "textbook LinTS without intercept": partial(_lin_ts, intercept=False),
    "uniform": _uniform,
}
_DRIFTING: Players = {
    "perceptrons, drift='auto', population": partial(_bandit, drift="auto", population=True),
    "perceptrons, population": partial(_bandit, population=True),
    "perceptrons, population, scale 0.1": partial(_bandit, population=True, policy=Thompson(0.1)),
    "perceptrons": _bandit,
    "LinUCB, alpha 0.1": lambda task, seed: LinUCB(task.n_arms, task.n_features, 0.1),
    "LinUCB, alpha 0.3": lambda task, seed: LinUCB(task.n_arms, task.n_features, 0.3),
    "LinUCB, alpha 1": lambda task, seed: LinUCB(task.n_arms, task.n_features, 1.0),
    "uniform": _uniform,
}

ENTRIES = {
    "mnist": Entry(
        "MNIST, 40,000 steps, mean reward",
        "mnist",
        partial(_mnist, default=40_000),
        _MLP,
        False,
        10,
        "HiLoFi .779 (LeNet on a GPU), LO-FI .580, AdamW .348",
    ),
    "mnist-conv": Entry(
        "MNIST, 40,000 steps, mean reward",
        "mnist",
        partial(_mnist, default=40_000),
        _CONV,
        False,
        10,
        "HiLoFi .779 (LeNet on a GPU)",
    ),
    "mnist-warm": Entry(
        "MNIST, 8,000 steps after 20 pulls of each arm, total reward",
        "mnist",
        partial(_mnist, default=8_000, warm_up=20),
        _MLP,
        True,
        8,
        "LO-FI, rank 30, 784-200-10: 6,427 ± 69",
    ),
    "shuttle": Entry(
        "shuttle, 5,000 rows, total reward",
        "bandits",
        _table("statlog"),
        _NETWORK,
        True,
        10,
        "LiM2 4,826; linear about 4,430; EKF in a subspace (pre-trained) about 4,830",
    ),
    "covertype": Entry(
        "covertype, 5,000 rows, total reward",
        "bandits",
        _table("covertype"),
        _NETWORK,
        True,
        10,
        "LiM2 2,661; linear about 3,020; EKF in a subspace (pre-trained) about 3,230",
    ),
    "adult": Entry(
        "adult, 5,000 rows, total reward",
        "bandits",
        _table("adult"),
        _NETWORK,
        True,
        10,
        "LiM2 3,986; linear about 3,865; EKF in a subspace (pre-trained) about 4,055",
    ),
    "linear": Entry(
        "10 arms, rewards linear in 10 features, 5,000 steps",
        None,
        lambda folder, steps: linear_gaussian(steps=steps or 5_000, noise_std=_NOISE_STD),
        _LINEAR,
        False,
        20,
    ),
    "arms": Entry(
        "1,000 drifting arms, 20 features, clicks, 20,000 steps",
        None,
        lambda folder, steps: drifting_arms(steps=steps or 20_000),
        _DRIFTING,
        False,
        3,
    ),
}
