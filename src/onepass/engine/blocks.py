"""The block kernel: the row-by-row result in matrix-matrix products, for large covariances.

A pass over the rows is sequential only in two scalars a row. For a block of rows everything they need of the
covariance is one small matrix, ``h_ik = x_i' C_i x_k`` with ``C_i`` the covariance before row ``i``, which follows from
``X C X'`` by a recursion among the rows; the covariance itself is then touched twice a block, once for ``C X'`` and
once for a symmetric rank-b update of its lower triangle.
"""

from math import isfinite
from typing import Any

import numpy as np
from scipy.linalg.blas import dsymm, dsyrk, dtrsm, ssymm, ssyrk, strsm

from onepass._typing import FloatArray
from onepass.engine.compiled import compiled
from onepass.engine.rows import CANCELLED
from onepass.engine.tilts import scalar_step
from onepass.likelihoods.univariate import NOISE

__all__ = ["block_size", "learn_block"]

_BLAS: dict[Any, Any] = {np.dtype(np.float64): (dsymm, dtrsm, dsyrk), np.dtype(np.float32): (ssymm, strsm, ssyrk)}


def block_size(size: int) -> int:
    """How many rows make a block: the products want more of them the larger the covariance, the recursion fewer."""
    return 64 if size < 1024 else 128


@compiled
def _scalars(
    products: FloatArray,
    squares: FloatArray,
    scale: FloatArray,
    pre_mean: FloatArray,
    y: FloatArray,
    rule: FloatArray,
    running: FloatArray,
    trace: float,
    alphas: FloatArray,
    kappas: FloatArray,
    mixing: FloatArray,
    cancelled: float,
    out: FloatArray,
) -> tuple[int, float]:
    """Run the recursion among the rows of a block; rows learned (-1: digits lost) and the growth by forgetting.

    ``products`` holds ``x_k' C x_i`` and becomes ``h``; ``squares`` holds ``(C x_i)' (C x_k)``, needed only for the
    trace when forgetting. All in units of the covariance before its growth.
    """
    b = products.shape[0]
    forgetting, prior_trace = rule[3, 0], rule[3, 1]
    grow = 1.0
    for i in range(b):
        for j in range(i):
            mix = kappas[j] * products[j, i]
            mixing[i, j] = mix
            for k in range(i, b):
                products[i, k] -= mix * products[j, k]
        mixing[i, i] = 1.0
        if forgetting < 1.0 and trace * grow <= forgetting * prior_trace:
            grow /= forgetting
        var = grow * max(products[i, i], 0.0)
        if products[i, i] < cancelled * scale[i]:
            return -1, grow
        noise = running[NOISE]
        alpha, kappa, left = scalar_step(rule, running, pre_mean[i], var, var, 0.0, y[i])
        if not isfinite(alpha):
            return i, grow
        if left < cancelled:
            return -1, grow
        if out.shape[0]:
            out[i, 0], out[i, 1], out[i, 2] = pre_mean[i], var, noise
        alphas[i], kappas[i] = alpha * grow, kappa * grow
        for k in range(i + 1, b):
            pre_mean[k] += alphas[i] * products[i, k]
        if forgetting < 1.0:
            # With s_i the gain of row i: squares[i, k] becomes s_i' g_k above the diagonal, s_i' s_k on and below it.
            for j in range(i):
                for k in range(i, b):
                    squares[i, k] -= mixing[i, j] * squares[j, k]
            norm = squares[i, i]
            for j in range(i):
                inner = squares[j, i]
                for m in range(i):
                    if m < j:
                        inner -= mixing[i, m] * squares[j, m]
                    else:
                        inner -= mixing[i, m] * squares[m, j]
                squares[i, j] = inner
                norm -= mixing[i, j] * inner
            squares[i, i] = norm
            trace -= kappas[i] * norm
    return b, grow


def learn_block(
    rows: FloatArray,
    y: FloatArray,
    rule: FloatArray,
    running: FloatArray,
    process_noise: FloatArray,
    mean: FloatArray,
    cov: FloatArray,
    out: FloatArray,
) -> int:
    """Learn one block of rows, the bias among them, into the lower triangle of ``cov`` (Fortran order), in place.

    The number of rows learned: all, or the index of the first that is not finite; or -1 where ``cov`` would lose its
    digits. In both latter cases nothing has changed.
    """
    symm, trsm, syrk = _BLAS[cov.dtype]
    b = len(rows)
    diagonal = np.diag(cov)
    with np.errstate(over="ignore", invalid="ignore"):  # a row that overflows is found below
        gains = symm(1.0, cov, rows.T, lower=1)  # C X', (p, b)
        products = np.asarray(rows @ gains, dtype=np.float64)
        scale = np.square(rows) @ diagonal
    if len(process_noise):
        # Before row i the noise has been added i + 1 times.
        times = np.arange(1.0, b + 1.0)
        products += times[:, None] * ((rows * process_noise) @ rows.T)
        gains += ((rows * process_noise) * times[:, None]).T
    squares = np.asarray(gains.T @ gains, dtype=np.float64) if rule[3, 0] < 1.0 else np.empty((0, 0))
    alphas, kappas, mixing = np.empty(b), np.empty(b), np.zeros((b, b), order="F")
    progress = running.copy()
    learned, grow = _scalars(
        products,
        squares,
        np.asarray(scale, dtype=np.float64),
        np.asarray(rows @ mean, dtype=np.float64),
        y,
        rule,
        progress,
        float(diagonal.sum()),
        alphas,
        kappas,
        mixing,
        CANCELLED[cov.dtype],
        out,
    )
    if learned != b:
        return learned
    running[:] = progress
    steps = trsm(1.0, mixing.astype(cov.dtype, order="F"), gains, side=1, lower=1, trans_a=1, diag=1, overwrite_b=1)
    mean += steps @ alphas.astype(cov.dtype)
    for sign in (1.0, -1.0):  # a widening row has a negative kappa
        part = sign * kappas > 0.0
        if part.any():
            scaled = np.asfortranarray(steps[:, part] * np.sqrt(sign * kappas[part]).astype(cov.dtype))
            syrk(-sign, scaled, beta=1.0, c=cov, lower=1, overwrite_c=1)
    if len(process_noise):
        cov[np.diag_indices(len(mean))] += b * process_noise
    if grow != 1.0:
        cov *= grow
    return b
