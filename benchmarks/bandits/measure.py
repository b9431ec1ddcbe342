"""Running tasks from several seeds, as many at a time as there are cores, and what comes out of it."""

from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from multiprocessing import get_context
from os import environ
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.bandits.catalogue import ENTRIES
from benchmarks.bandits.run import Played, play
from onepass._cores import available_cores
from onepass._typing import FloatArray

__all__ = ["Outcome", "measure"]

_POINTS = 100  # of a curve


@dataclass(frozen=True)
class Outcome:
    """What a player earned in a task, over several seeds."""

    task: str
    player: str
    seeds: int
    steps: int
    rewards: list[float]  # by seed: total or mean, as the task's entry says
    regrets: list[float]  # by seed: in total, against the best arm of each step
    steps_per_second: float
    curve: list[float]  # regret so far, mean over seeds, at even distances
    fixed_arm: float  # regret of the arm that is best in hindsight, played all the time

    @property
    def reward(self) -> tuple[float, float]:
        """Mean over seeds, and its standard error."""
        return _with_error(self.rewards)

    @property
    def regret(self) -> tuple[float, float]:
        """Mean over seeds, and its standard error."""
        return _with_error(self.regrets)

    def numbers(self) -> dict[str, Any]:
        """Everything, for JSON."""
        return asdict(self)


def measure(folder: Path | None, names: list[str], seeds: int | None, steps: int | None) -> Iterator[Outcome]:
    """Let all players play these tasks."""
    environ["OPENBLAS_NUM_THREADS"] = environ["OMP_NUM_THREADS"] = "1"  # for the processes that do the work
    with ProcessPoolExecutor(available_cores(), mp_context=get_context("spawn")) as pool:
        for name in names:
            for player in ENTRIES[name].players:
                n_seeds = seeds or ENTRIES[name].seeds
                jobs = [pool.submit(_run, name, player, folder or Path(), steps, seed) for seed in range(n_seeds)]
                yield _outcome(name, player, [job.result() for job in jobs])


def _run(name: str, player: str, folder: Path, steps: int | None, seed: int) -> Played:
    entry = ENTRIES[name]
    task = entry.task(folder, steps)
    return play(task, lambda own: entry.players[player](task, own), seed)


def _outcome(name: str, player: str, runs: list[Played]) -> Outcome:
    rewards = [float(run.rewards.sum() if ENTRIES[name].total else run.rewards.mean()) for run in runs]
    regrets = np.array([run.regret for run in runs])
    steps = regrets.shape[1]
    fixed = [(run.best - run.fixed.max()) * steps for run in runs]
    return Outcome(
        name,
        player,
        len(runs),
        steps,
        rewards,
        regrets.sum(axis=1).tolist(),
        steps * len(runs) / sum(run.seconds for run in runs),
        _at_even_distances(regrets.mean(axis=0).cumsum()),
        float(np.mean(fixed)),
    )


def _at_even_distances(curve: FloatArray) -> list[float]:
    places = np.linspace(0, len(curve) - 1, min(_POINTS, len(curve))).round().astype(int)
    return [float(value) for value in curve[places]]


def _with_error(values: list[float]) -> tuple[float, float]:
    error = np.std(values, ddof=1) / np.sqrt(len(values)) if len(values) > 1 else 0.0
    return float(np.mean(values)), float(error)
