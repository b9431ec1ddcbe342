"""Calibration of a network's variances by the errors that it has made: near the rows learned, and far from them."""

from typing import Any

import numpy as np

from onepass._typing import FloatArray
from onepass.engine.vector_matches import ALONE, NetworkProgress

__all__ = ["calibrated_covs", "calibrated_roots", "excess_factor", "excess_var"]


def excess_var(var: Any, scale: Any, usual_var: Any, alone: bool) -> Any:
    """What is added to ``scale * var``, the calibrated variance of an output, far from the rows learned."""
    if type(var) is float:  # of one row, without NumPy
        return (_times(alone) * max(scale, 1.0) - scale) * (var - usual_var) if 0.0 < usual_var < var else 0.0
    return np.asarray(excess_factor(scale, usual_var, alone) * np.maximum(var - usual_var, 0.0))


def excess_factor(scale: FloatArray, usual_var: FloatArray, alone: bool) -> FloatArray:
    """What a variance in excess of the usual one is multiplied by, besides the scale; 0 if none is known.

    A predictive scale below 1 says that errors were smaller than predicted where outputs vary as they usually did in
    the rows learned. It says nothing about what they vary more elsewhere, which therefore counts in full; and twice
    where a network predicts ``alone``. Its variance is that of the network linearised in its weights, to which the
    curvature of hidden units typically adds as much again. In a mixture the members' disagreement shows that.
    """
    return np.where(usual_var > 0.0, _times(alone) * np.maximum(scale, 1.0) - scale, 0.0)


def _times(alone: bool) -> float:
    return ALONE if alone else 1.0


def calibrated_roots(covs: FloatArray, noise: NetworkProgress, alone: bool) -> FloatArray:
    """By how much calibration widens the standard deviation of each output that predicts, ``(n, K)``."""
    var = np.diagonal(covs, axis1=1, axis2=2)[:, : noise.scale.shape[-1]]
    with np.errstate(divide="ignore", invalid="ignore"):
        excess = np.where(var > 0.0, excess_var(var, noise.scale, noise.usual_var, alone) / var, 0.0)
    return np.asarray(np.sqrt(noise.scale + excess))


def calibrated_covs(covs: FloatArray, noise: NetworkProgress, alone: bool) -> FloatArray:
    """Covariances ``(n, size, size)`` of outputs, calibrated; those of a log noise stay as they are."""
    roots = np.ones(covs.shape[:2])
    roots[:, : noise.scale.shape[-1]] = calibrated_roots(covs, noise, alone)
    return np.ascontiguousarray(covs * roots[:, :, None] * roots[:, None, :])
