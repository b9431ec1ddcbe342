"""Memory and speed of fleets of weekly series."""

import resource
import time

import numpy as np

from onepass._typing import FloatArray
from onepass.forecasting import ForecastingFleet

__all__ = ["measure"]

LARGE, SOME_WEEKS = 100_000, 4
STEADY, WEEKS, LAST_WEEKS = 5_000, 140, 30


def measure() -> dict[str, float]:
    """Peak memory of a large fleet in GB, and values per second of new series and of series with years of values.

    Memory per series does not depend on how many values it has. The peak is that of the process, so this is to be
    measured in a process of its own.
    """
    first = _seconds(LARGE, SOME_WEEKS)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    later = _seconds(STEADY, WEEKS)[-LAST_WEEKS:]
    return {
        "series": LARGE,
        "gigabytes": peak,
        "first values per second": LARGE * SOME_WEEKS / sum(first),
        "values per second": STEADY * LAST_WEEKS / sum(later),
    }


def _seconds(n: int, weeks: int) -> list[float]:
    """Processor time of each week."""
    rng, keys, fleet = np.random.default_rng(0), np.arange(n), ForecastingFleet(52.18)
    seconds, level = [], np.full(n, 100.0)
    for week in range(weeks):
        level += rng.normal(size=n)
        y: FloatArray = level + 10.0 * np.sin(2.0 * np.pi * (week + keys) / 52.18)
        start = time.process_time()
        fleet.learn(y, keys=keys)
        seconds.append(time.process_time() - start)
    return seconds
