"""Figure 2: how well one scaled probit stands in for the sigmoid, and how well a mixture of them does."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import expit, ndtr

from onepass._typing import FloatArray
from onepass.engine.moments import SCALES, WEIGHTS
from onepass.paper.base import Tick

__all__ = ["Approximation", "SigmoidOutcome", "run", "steps"]

PAPER_SCALE = np.sqrt(np.pi / 8.0)  # the paper's lambda
_REACH = 40.0  # beyond, every curve is within 1e-17 of its limit


@dataclass(frozen=True)
class Approximation:
    """A mixture of probits in the sigmoid's place, and its errors on the grid, each ``(n,)``."""

    value: FloatArray
    slope: FloatArray
    value_error: FloatArray
    slope_error: FloatArray


@dataclass(frozen=True)
class SigmoidOutcome:
    """The curves of Figure 2 over the grid ``a``."""

    a: FloatArray
    sigmoid: FloatArray
    slope: FloatArray
    probit: Approximation
    mixture: Approximation

    def numbers(self) -> dict[str, Any]:
        """Largest errors of both approximations."""
        return {
            "scale": float(PAPER_SCALE),
            "mixture_size": len(WEIGHTS),
            "probit_max_error": float(self.probit.value_error.max()),
            "probit_slope_max_error": float(self.probit.slope_error.max()),
            "mixture_max_error": float(self.mixture.value_error.max()),
            "mixture_slope_max_error": float(self.mixture.slope_error.max()),
        }


def steps(trials: int) -> int:
    """One: there is nothing random here, so no trials either."""
    return 1


def run(seed: int, trials: int, tick: Tick) -> SigmoidOutcome:
    """Evaluate everything on a grid fine enough to show each extremum of the errors."""
    a = np.linspace(-_REACH, _REACH, 80_001)
    sigmoid, slope = expit(a), expit(a) * expit(-a)
    outcome = SigmoidOutcome(
        a,
        sigmoid,
        slope,
        _approximate(a, sigmoid, slope, np.ones(1), np.array([PAPER_SCALE])),
        _approximate(a, sigmoid, slope, WEIGHTS, SCALES),
    )
    tick()
    return outcome


def _approximate(
    a: FloatArray, sigmoid: FloatArray, slope: FloatArray, weights: FloatArray, scales: FloatArray
) -> Approximation:
    z = a[:, None] * scales
    value, derivative = ndtr(z) @ weights, np.exp(-0.5 * z**2) / np.sqrt(2.0 * np.pi) @ (weights * scales)
    return Approximation(value, derivative, np.abs(value - sigmoid), np.abs(derivative - slope))
