"""Compiled learning of several rows as one step: matrix-matrix products in place of matrix-vector ones.

All rows of a batch are linearised at the belief before it, so the covariance is touched twice a batch, for ``C J'`` and
for the step. In between the rows speak one after the other, but only to each other's outputs: that takes
matrices of the size of the batch.
"""

from math import isfinite
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.blas import dgemm, dsymm, dsyrk, sgemm, ssymm, ssyrk

from onepass._typing import FloatArray
from onepass.beliefs.blocks import BlockGaussian
from onepass.engine.compiled import compiled
from onepass.engine.heads import learn_scales, note, read
from onepass.engine.network import Shape, fill_slopes, forward
from onepass.likelihoods.multivariate import NOISE

__all__ = ["learn_batch"]

Indices = NDArray[np.int64]
_BLAS: dict[Any, Any] = {np.dtype(np.float64): (dsymm, dsyrk, dgemm), np.dtype(np.float32): (ssymm, ssyrk, sgemm)}


@compiled
def _linearise(
    X: FloatArray,
    taken: Indices,
    shape: Shape,
    rule: FloatArray,
    mean: FloatArray,
    cov: FloatArray,
    out: FloatArray,
    slopes: FloatArray,
) -> None:
    """Fill the outputs' means ``(b, K)`` and their slopes ``(b, K, p)``."""
    widths = shape[0]
    n_layers, n_outputs, wide = widths.shape[0] - 1, out.shape[1], widths.max() + 1
    z, z_var, steep = np.zeros((n_layers, wide)), np.zeros((n_layers, wide)), np.zeros((n_layers, wide))
    reach = np.zeros((n_layers, n_outputs, wide))
    for t in range(taken.shape[0]):
        forward(shape, rule, mean, cov, X[taken[t]], z, z_var, steep, reach, out[t])
        fill_slopes(shape, z, reach, slopes[t])


@compiled
def _speak(
    Y: FloatArray,
    taken: Indices,
    settings: FloatArray,
    out: FloatArray,
    joint: FloatArray,
    scales: FloatArray,
    pull: FloatArray,
    drop: FloatArray,
    record: FloatArray,
    densities: FloatArray,
) -> int:
    """Let the rows of a batch speak one after the other; how many could, and the ``pull`` and ``drop`` of them all."""
    kind, n_outputs, size = int(settings[0]), out.shape[1], joint.shape[0]
    mean, cov = np.empty(n_outputs), np.empty((n_outputs, n_outputs))
    own_pull, shift = np.empty(n_outputs), np.empty(n_outputs)
    own_drop, precision = np.empty((n_outputs, n_outputs)), np.empty((n_outputs, n_outputs))
    through, weighted = np.zeros((n_outputs, size)), np.zeros((n_outputs, size))
    for t in range(taken.shape[0]):
        i, first = taken[t], t * n_outputs
        last = first + n_outputs
        for k in range(n_outputs):
            # A row of I - cov drop; it ends where this row's outputs end, since later rows have said nothing.
            row, here = through[k], joint[first + k]
            row[:last] = 0.0
            for j in range(first):
                factor, given = here[j], drop[j]
                for m in range(first):
                    row[m] -= factor * given[m]
            row[first + k] = 1.0
        for k in range(n_outputs):
            mean[k] = out[t, k]
            for j in range(first):
                mean[k] += joint[first + k, j] * pull[j]
            for m in range(k + 1):
                total = 0.0
                for j in range(last):
                    total += through[k, j] * joint[first + m, j]
                cov[k, m] = cov[m, k] = max(total, 0.0) if k == m else total
        density = read(kind, mean, cov, Y[i], scales[NOISE], own_pull, own_drop, precision, shift)
        if not isfinite(density):
            return t
        densities[i] = density
        note(kind, record, i, mean, cov, scales)
        for k in range(n_outputs):
            weighted[k, :last] = 0.0
            for m in range(n_outputs):
                for j in range(last):
                    weighted[k, j] += own_drop[k, m] * through[m, j]
        for k in range(n_outputs):
            for j in range(last):
                pull[j] += through[k, j] * own_pull[k]
                factor, row = through[k, j], drop[j]
                for m in range(last):
                    row[m] += factor * weighted[k, m]
        learn_scales(kind, scales, mean, cov, Y[i], settings[3], settings[4])
    return len(taken)


def learn_batch(
    X: FloatArray,
    Y: FloatArray,
    taken: Indices,
    shape: Shape,
    rule: FloatArray,
    settings: FloatArray,
    belief: BlockGaussian,
    scales: FloatArray,
    record: FloatArray,
    densities: FloatArray,
) -> int:
    """Learn the rows ``taken`` as one step; how many could be. If not all, the belief is as it was."""
    symm, syrk, gemm = _BLAS[belief.mean.dtype]
    fading = settings[1] ** len(taken)
    if fading < 1.0 and belief.marginal_variances().sum() <= fading * settings[2]:
        belief.inflate(1.0 / fading)
    n_outputs, size = belief.layout.widths[-1], len(belief.mean)
    slopes = np.empty((len(taken), n_outputs, size), dtype=belief.mean.dtype)
    out = np.empty((len(taken), n_outputs))
    _linearise(X, taken, shape, rule, belief.mean, belief.values, out, slopes)
    together = slopes.reshape(-1, size)
    gains = np.empty((len(together), size), dtype=belief.mean.dtype)
    with np.errstate(over="ignore", invalid="ignore"):  # a row that overflows is found below
        for part, block in belief.blocks():  # of whose transpose, in Fortran's order, the upper triangle holds
            gains[:, part] = symm(1.0, block.T, together[:, part].T).T
        joint = np.asarray(together @ gains.T, dtype=np.float64)
    pull, drop = np.zeros(len(joint)), np.zeros_like(joint)
    learned = _speak(Y, taken, settings, out, joint, scales, pull, drop, record, densities)
    step = pull.astype(gains.dtype) @ gains
    if learned < len(taken) or not np.isfinite(step).all():
        return min(learned, len(taken) - 1)
    belief.mean += step
    try:
        root = np.linalg.cholesky(drop).T.astype(gains.dtype) @ gains
    except np.linalg.LinAlgError:  # some direction learns nothing, or is less certain than before
        root, weighted = None, drop.astype(gains.dtype) @ gains
    for part, block in belief.blocks():
        if root is not None:
            syrk(-1.0, root[:, part].T, beta=1.0, c=block.T, overwrite_c=1)
        else:
            gemm(-1.0, weighted[:, part].T, gains[:, part], beta=1.0, c=block.T, overwrite_c=1)
        diagonal = block.reshape(-1)[:: len(block) + 1]
        np.maximum(diagonal, 0.0, out=diagonal)
    return learned
