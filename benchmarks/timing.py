"""Fair timing on a noisy machine: competitors take turns in one process, and what counts is their ratio."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from statistics import median

__all__ = ["Measurement", "race", "ratio"]


@dataclass(frozen=True)
class Measurement:
    """One figure: ours against another's, and what was asked of it."""

    name: str
    ours: float  # seconds a row
    theirs: float
    ratio: float
    target: str
    reached: bool

    def line(self) -> str:
        """One line of the table."""
        verdict = "reached" if self.reached else "MISSED"
        times = f"{1e6 * self.ours:10.3f} {1e6 * self.theirs:10.3f}"
        return f"{self.name:58s} {times} {self.ratio:8.2f}   {self.target:18s} {verdict}"


def race(
    competitors: dict[str, Callable[[], object]], rounds: int, clock: Callable[[], float] = time.perf_counter
) -> dict[str, list[float]]:
    """Seconds of every competitor in every round; they take turns, so that a slow moment hits all alike.

    By ``clock=time.process_time`` what other processes do hardly counts, for competitors of one thread.
    """
    for run in competitors.values():
        run()  # warm: caches, compiled code
    seconds: dict[str, list[float]] = {name: [] for name in competitors}
    for _ in range(rounds):
        for name, run in competitors.items():
            start = clock()
            run()
            seconds[name].append(clock() - start)
    return seconds


def ratio(seconds: dict[str, list[float]], above: str, below: str) -> float:
    """Median over the rounds of one competitor's time over another's."""
    return median(a / b for a, b in zip(seconds[above], seconds[below], strict=True))
