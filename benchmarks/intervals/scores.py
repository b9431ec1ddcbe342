"""What is measured of intervals: coverage, worst and best window, width and the interval score."""

from typing import Any

import numpy as np

from onepass._typing import FloatArray
from onepass.models.tracking import LEVELS

__all__ = ["LEVELS", "MAIN", "WINDOW", "Limits", "scored", "winkler"]

WINDOW = 500
MAIN = 0.95
Limits = dict[float, tuple[FloatArray, FloatArray]]
"""Lower and upper limits ``(n,)`` of each level."""


def winkler(low: FloatArray, high: FloatArray, y: FloatArray, level: float) -> FloatArray:
    """The interval score of each row (Winkler 1972): the width, plus what lies outside times ``2 / (1 - level)``."""
    outside = np.maximum(low - y, 0.0) + np.maximum(y - high, 0.0)
    return np.asarray(high - low + 2.0 / (1.0 - level) * outside)


def scored(limits: Limits, y: FloatArray) -> dict[str, Any]:
    """All measures of the rows that are scored."""
    low, high = limits[MAIN]
    inside = ((low <= y) & (y <= high)).astype(float)
    sums = np.concatenate([[0.0], np.cumsum(inside)])
    size = min(WINDOW, len(y))
    windows = (sums[size:] - sums[:-size]) / size
    lows, highs = (np.array([limits[level][side] for level in LEVELS]) for side in (0, 1))
    return {
        "worst": float(windows.min()),
        "best": float(windows.max()),
        "coverage": [float(((limits[k][0] <= y) & (y <= limits[k][1])).mean()) for k in LEVELS],
        "width": float((high - low).mean()),
        "winkler": [float(winkler(*limits[k], y, k).mean()) for k in LEVELS],
        "crossings": int((np.diff(lows, axis=0) > 0.0).sum() + (np.diff(highs, axis=0) < 0.0).sum()),
    }
