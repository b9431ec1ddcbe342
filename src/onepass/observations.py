"""Observation models: what a target says about the pre-activation.

A model of the observation turns the belief ``N(pre_mean, pre_var)`` about the pre-activation ``a`` and a target
``y`` into the two scalars of the posterior's step. Nothing here knows about weights or inputs.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from onepass.activations import Activation, Moments
from onepass.gaussian import FloatArray

__all__ = ["Gaussian", "Step", "kalman_step"]


class Step(NamedTuple):
    """The two scalars of the posterior's step: ``m += alpha c``, ``C -= kappa c c'``."""

    alpha: float
    kappa: float


@dataclass(frozen=True)
class Gaussian:
    """``y = f(a) + N(0, noise)``, equation (backward_noisy-activation); ``noise`` is the paper's epsilon."""

    noise: float

    def noise_var(self, output: Moments) -> FloatArray:
        """Variance of ``y`` that knowing ``a`` would not take away."""
        return np.full_like(output.var, self.noise)


def kalman_step(activation: Activation, observation: Gaussian, pre_mean: float, pre_var: float, y: float) -> Step:
    """Treat ``y`` and ``a`` as jointly Gaussian: equation (backward_updateda), the paper's rule.

    With ``A = E[f'(a)] = sigma_ya²/sigma_a²`` and ``S = Var y`` the gain ``k = sigma_ya²/S`` moves the mean of ``a``
    by ``k (y - mu_y)`` and its variance by ``-k sigma_ya²``; divided by ``sigma_a²`` and ``sigma_a⁴`` these are
    ``alpha = A (y - mu_y)/S`` and ``kappa = A²/S``.
    """
    output = activation.moments(pre_mean, pre_var)
    total_var = float(output.var + observation.noise_var(output))
    if pre_var < _TINY or total_var < _TINY:  # nothing left to learn, or nothing that y could tell
        return Step(0.0, 0.0)
    # The guard: the paper's three approximations together may break Cauchy-Schwarz, A² v <= S, and with it the
    # covariance; the slope is cut to what it allows. Never so for noise >= 0.0073, nor for exact moments.
    slope = min(float(output.slope), np.sqrt(total_var / pre_var))
    return Step(slope * (y - float(output.mean)) / total_var, slope**2 / total_var)


_TINY = np.finfo(np.float64).tiny
