"""What an experiment is: something to run, whose outcome gives its numbers, draws itself and tells its story."""

from collections.abc import Callable, Mapping
from typing import Any, Protocol

import numpy as np
from matplotlib.figure import Figure

from onepass._typing import FloatArray
from onepass.reports.html import Section

__all__ = ["COLUMNS", "Experiment", "Outcome", "Tick", "as_list", "short", "spread", "trial_rng"]

COLUMNS = ("", "paper", "reproduced", "onepass exact")
"""Of the first table of every section, the one the terminal shows."""

Tick = Callable[[], None]
"""Called once a step, for whoever shows the progress."""


class Outcome(Protocol):
    """What came out of an experiment."""

    def numbers(self) -> dict[str, Any]:
        """Every number, ready for JSON."""
        ...

    def draw(self) -> dict[str, Figure]:
        """Draw the figures, by name."""
        ...

    def section(self, svg: Mapping[str, bytes]) -> Section:
        """Tell the story, with the figures drawn before."""
        ...


class Experiment(Protocol):
    """A module of this package."""

    TITLE: str

    def steps(self, trials: int) -> int:
        """How often ``run`` will call ``tick``."""
        ...

    def run(self, seed: int, trials: int, tick: Tick) -> Outcome:
        """Run it; the same seed gives the same numbers, times apart."""
        ...


def trial_rng(seed: int, *path: int) -> np.random.Generator:
    """Make the generator of one trial: the same whatever the number of trials, independent of all others."""
    return np.random.default_rng([seed, *path])


def as_list(values: FloatArray) -> list[float]:
    """An array as JSON knows it."""
    return [float(value) for value in values]


def short(value: float, digits: int = 4) -> str:
    """Write a number that may be very small."""
    return f"{value:.{digits}f}" if value >= 1e-3 else f"{value:.1e}".replace("e-0", "e-")


def spread(mean: float, std: float, digits: int = 4) -> str:
    """Write a mean and its spread."""
    return f"{short(mean, digits)} ± {short(std, digits)}"
