"""Calibration of a network's variances by the errors that it has made: near the rows learned, and far from them."""

import numpy as np

from onepass._typing import FloatArray
from onepass.engine.vector_matches import ALONE, NoiseRows, NoiseState, RowOutputs, widening

__all__ = ["as_predicted", "calibrated_covs", "calibrated_roots", "excess_factor", "excess_var", "without_scale"]


def as_predicted(rows: RowOutputs, noise_scale: FloatArray | None) -> NoiseRows:
    """The noise of rows as a network predicts with it, each number ``(n, K)``.

    In a mixture it is multiplied by a scale, ``(K,)`` or ``(n, K)``; alone (None) the predictive scales are wider while
    they rest on few rows.
    """
    noise = NoiseRows(*np.swapaxes(rows.noise, 0, 1))
    if noise_scale is None:
        return noise._replace(scale=noise.scale * widening(noise.scale_weight))
    return noise._replace(noise=noise.noise * noise_scale)


def without_scale(noise: NoiseRows) -> FloatArray:
    """The noise, ``(n, 6, K)``, for outputs that have been calibrated."""
    zeros = np.zeros_like(noise.scale)
    plain = noise._replace(scale=zeros + 1.0, scale_weight=zeros, usual_var=zeros)
    return np.ascontiguousarray(np.swapaxes(plain, 0, 1))


def excess_var(var: FloatArray, scale: FloatArray, usual_var: FloatArray, alone: bool) -> FloatArray:
    """What is added to ``scale * var``, the calibrated variance of an output, far from the rows learned."""
    return np.asarray(excess_factor(scale, usual_var, alone) * np.maximum(var - usual_var, 0.0))


def excess_factor(scale: FloatArray, usual_var: FloatArray, alone: bool) -> FloatArray:
    """What a variance in excess of the usual one is multiplied by, besides the scale; 0 if none is known.

    A predictive scale below 1 says that errors were smaller than predicted where outputs vary as they usually did in
    the rows learned. It says nothing about what they vary more elsewhere, which therefore counts in full; and twice
    where a network predicts ``alone``. Its variance is that of the network linearised in its weights, to which the
    curvature of hidden units typically adds as much again. In a mixture the members' disagreement shows that.
    """
    times = ALONE if alone else 1.0
    return np.where(usual_var > 0.0, times * np.maximum(scale, 1.0) - scale, 0.0)


def calibrated_roots(covs: FloatArray, noise: NoiseState | NoiseRows, alone: bool) -> FloatArray:
    """By how much calibration widens the standard deviation of each output that predicts, ``(n, K)``."""
    var = np.diagonal(covs, axis1=1, axis2=2)[:, : noise.scale.shape[-1]]
    with np.errstate(divide="ignore", invalid="ignore"):
        excess = np.where(var > 0.0, excess_var(var, noise.scale, noise.usual_var, alone) / var, 0.0)
    return np.sqrt(noise.scale + excess)


def calibrated_covs(covs: FloatArray, noise: NoiseState | NoiseRows, alone: bool) -> FloatArray:
    """Covariances ``(n, size, size)`` of outputs, calibrated; those of a log noise stay as they are."""
    roots = np.ones(covs.shape[:2])
    roots[:, : noise.scale.shape[-1]] = calibrated_roots(covs, noise, alone)
    return np.ascontiguousarray(covs * roots[:, :, None] * roots[:, None, :])
