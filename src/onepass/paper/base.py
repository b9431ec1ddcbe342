"""What an experiment is: a measurement, its outcome as numbers, and the figures and section that report it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from matplotlib.figure import Figure

from onepass._typing import FloatArray
from onepass.reports.html import Section

__all__ = ["COLUMNS", "Experiment", "Outcome", "Tick", "as_list", "mean_and_std", "short", "trial_rng"]

COLUMNS = ("", "paper", "reproduced", "onepass exact")
"""Of the first table of every section, the one the terminal shows."""

Tick = Callable[[], None]
"""Called once per step, to show the progress."""


class Outcome(Protocol):
    """What an experiment measured."""

    def numbers(self) -> dict[str, Any]:
        """Every number, ready for JSON."""
        ...


@dataclass(frozen=True)
class Experiment:
    """An experiment: ``steps`` and ``run`` of its module, ``TITLE``, ``draw`` and ``section`` of its section."""

    title: str
    steps: Callable[[int], int]
    """Number of times that ``run`` will call ``tick``, given the number of trials."""
    run: Callable[[int, int, Tick], Outcome]
    """Run it with a seed and a number of trials; the same seed gives the same numbers, times apart."""
    draw: Callable[[Any], dict[str, Figure]]
    """Draw the figures of an outcome, by name."""
    section: Callable[[Any, Mapping[str, bytes]], Section]
    """Write the section on an outcome, with the figures drawn before as SVG."""


def trial_rng(seed: int, *path: int) -> np.random.Generator:
    """Make the generator of one trial: the same whatever the number of trials, independent of all others."""
    return np.random.default_rng([seed, *path])


def as_list(values: FloatArray) -> list[float]:
    """An array as a list for JSON."""
    return [float(value) for value in values]


def short(value: float, digits: int = 4) -> str:
    """Write a number that may be very small."""
    return f"{value:.{digits}f}" if value >= 1e-3 else f"{value:.1e}".replace("e-0", "e-")


def mean_and_std(mean: float, std: float, digits: int = 4) -> str:
    """Write a mean and its standard deviation."""
    return f"{short(mean, digits)} ± {short(std, digits)}"
