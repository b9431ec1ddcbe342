"""The row kernels: one compiled loop over the rows, for each form of the belief.

Every kernel returns the number of rows it learned: all of them, or the index of the first that is not finite, before
which nothing of that row was written. ``out`` receives each row's mean, variance and noise from before its update, if
it has room for them.
"""

from math import isfinite, sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onepass._typing import FloatArray
from onepass.engine.compiled import compiled, inlined
from onepass.engine.tilts import scalar_step, suits
from onepass.likelihoods.univariate import NOISE

__all__ = ["CANCELLED", "learn_row_root", "row_root", "rows_dense", "rows_diagonal", "rows_root", "rows_sparse"]

IntArray = NDArray[np.integer[Any]]
# Below these shares of its own terms a variance has lost so many digits that ``C`` itself can't hold it.
CANCELLED = {np.dtype(np.float64): 1e-8, np.dtype(np.float32): 1e-3}


@inlined
def _load(x: FloatArray, X: FloatArray, i: int, bias: int) -> bool:
    """Copy a row behind the bias's constant 1; whether all of it is finite."""
    if bias:
        x[0] = 1.0
    total = 0.0
    for k in range(X.shape[1]):
        x[bias + k] = X[i, k]
        total += X[i, k] * 0.0
    return total == 0.0


@inlined
def _note(out: FloatArray, i: int, pre_mean: float, pre_var: float, noise: float) -> None:
    if out.shape[0]:
        out[i, 0] = pre_mean
        out[i, 1] = pre_var
        out[i, 2] = noise


# Rows of the space that a root is learned in, besides the mean in row 0. They are indexed in place: a view of a row
# would be counted in and out again for every row learned.
_X, _COORDS, _GAIN, _SHRINK = range(1, 5)
_INVERSE = _X  # which is not needed any more by then
_TINY = 1e-100  # the square root of a share of the variance that is none; beyond, quotients would overflow


@compiled
def learn_row_root(
    X: FloatArray,
    X_var: FloatArray,
    i: int,
    y: float,
    rule: FloatArray,
    running: FloatArray,
    space: FloatArray,
    root: FloatArray,
) -> tuple[bool, float, float]:
    """Learn a row into ``C = R'R``; whether it could be, and its mean and variance from before."""
    bias, forgetting, p = int(rule[2, 0]), rule[3, 0], root.shape[0]
    if bias:
        space[_X, 0] = 1.0
    finite = y * 0.0
    for k in range(X.shape[1]):
        space[_X, bias + k] = X[i, k]
        finite += X[i, k] * 0.0
    if finite != 0.0:
        return False, 0.0, 0.0
    grow = 1.0
    if forgetting < 1.0:
        trace = 0.0
        for j in range(p):
            for k in range(j + 1):
                trace += root[j, k] ** 2
        if trace <= forgetting * rule[3, 1]:
            grow = 1.0 / forgetting
    whole = p - p % 4
    for j in range(0, whole, 4):  # four sums at a time, which don't wait for each other; R is zero above its diagonal
        a = b = c = d = 0.0
        for k in range(j + 4):
            x = space[_X, k]
            a += root[j, k] * x
            b += root[j + 1, k] * x
            c += root[j + 2, k] * x
            d += root[j + 3, k] * x
        space[_COORDS, j], space[_COORDS, j + 1], space[_COORDS, j + 2], space[_COORDS, j + 3] = a, b, c, d
    for j in range(whole, p):
        a = 0.0
        for k in range(j + 1):
            a += root[j, k] * space[_X, k]
        space[_COORDS, j] = a
    pre_mean = var = 0.0
    for j in range(p):
        var += space[_COORDS, j] ** 2
        pre_mean += space[0, j] * space[_X, j]
    var *= grow
    input_var = 0.0
    for k in range(X_var.shape[1]):
        marginal = 0.0
        for j in range(bias + k, p):
            marginal += root[j, bias + k] ** 2
        input_var += X_var[i, k] * (space[0, bias + k] ** 2 + grow * marginal)
    alpha, kappa, left = scalar_step(rule, running, pre_mean, var, var, input_var, y)
    if not isfinite(alpha):
        return False, 0.0, 0.0
    scale = sqrt(grow)
    share = left
    for j in range(p):
        space[_GAIN, j] = 0.0
        share += kappa * grow * space[_COORDS, j] ** 2
        space[_SHRINK, j] = share
    for j in range(p):  # on their own, so that roots and quotients are taken side by side
        space[_SHRINK, j] = sqrt(max(space[_SHRINK, j], 0.0))
        space[_INVERSE, j] = 1.0 / space[_SHRINK, j]
    before = sqrt(max(left, 0.0))
    before_inverse = 1.0 / before if before > _TINY else 0.0
    for j in range(p):
        coord, after = scale * space[_COORDS, j], space[_SHRINK, j]
        if coord == 0.0 or after <= _TINY:
            for k in range(j + 1):
                root[j, k] *= scale
            continue
        inverse = space[_INVERSE, j]
        keep = scale * before * inverse
        mix = kappa * coord * inverse * before_inverse
        lift = scale * coord
        for k in range(j + 1):
            entry, gain = root[j, k], space[_GAIN, k]
            root[j, k] = keep * entry - mix * gain
            space[_GAIN, k] = gain + lift * entry
        before, before_inverse = after, inverse
    for k in range(p):
        space[0, k] += alpha * space[_GAIN, k]
    return True, pre_mean, var + input_var


@compiled
def row_root(
    x: FloatArray, y: float, rule: FloatArray, running: FloatArray, space: FloatArray, root: FloatArray
) -> bool:
    """Learn one row; False, and nothing changed, if there is anything wrong with it."""
    if x.shape[0] != space.shape[1] - rule[2, 0] or not suits(rule, y):
        return False
    X = x.reshape(1, -1)
    learned, _, _ = learn_row_root(X, X[:, :0], 0, y, rule, running, space, root)
    return learned


@compiled
def rows_root(
    X: FloatArray,
    X_var: FloatArray,
    y: FloatArray,
    rule: FloatArray,
    running: FloatArray,
    space: FloatArray,
    root: FloatArray,
    out: FloatArray,
) -> int:
    """Learn rows into ``C = R'R``, ``R`` lower triangular: Carlson's update, see `onepass.beliefs.full`."""
    for i in range(X.shape[0]):
        noise = running[NOISE]
        learned, pre_mean, pre_var = learn_row_root(X, X_var, i, y[i], rule, running, space, root)
        if not learned:
            return i
        _note(out, i, pre_mean, pre_var, noise)
    return len(X)


@compiled
def rows_dense(
    X: FloatArray,
    X_var: FloatArray,
    y: FloatArray,
    rule: FloatArray,
    running: FloatArray,
    process_noise: FloatArray,
    cancelled: float,
    space: FloatArray,
    cov: FloatArray,
    out: FloatArray,
) -> tuple[int, bool]:
    """Learn rows into the lower triangle of ``C`` itself, in Fortran order.

    Rows learned, and whether it stopped there because ``C`` would lose its digits.
    """
    bias, forgetting = int(rule[2, 0]), rule[3, 0]
    mean, x, gain = space[0], space[1], space[2]
    p = mean.shape[0]
    drifting = process_noise.shape[0] > 0
    trace = 0.0
    for j in range(p):
        trace += cov[j, j]
    for i in range(X.shape[0]):
        if not _load(x, X, i, bias) or not isfinite(y[i]):
            return i, False
        pre_mean = added = 0.0
        for j in range(p):
            drift = process_noise[j] if drifting else 0.0
            gain[j] = drift * x[j]
            added += drift
            pre_mean += mean[j] * x[j]
        grow = 1.0
        if forgetting < 1.0 and trace + added <= forgetting * rule[3, 1]:
            grow = 1.0 / forgetting
        for j in range(p):
            below = 0.0
            for k in range(j + 1, p):
                gain[k] += cov[k, j] * x[j]
                below += cov[k, j] * x[k]
            gain[j] += cov[j, j] * x[j] + below
        var = scale = input_var = 0.0
        for j in range(p):
            gain[j] *= grow
            var += x[j] * gain[j]
            scale += grow * cov[j, j] * x[j] ** 2
        if var < cancelled * scale:
            return i, True
        if X_var.shape[0]:
            for k in range(X.shape[1]):
                drift = process_noise[bias + k] if drifting else 0.0
                marginal = grow * (cov[bias + k, bias + k] + drift)
                input_var += X_var[i, k] * (mean[bias + k] ** 2 + marginal)
        before = running.copy()
        alpha, kappa, left = scalar_step(rule, running, pre_mean, var, var, input_var, y[i])
        if not isfinite(alpha):
            return i, False
        if left < cancelled:
            running[:] = before
            return i, True
        _note(out, i, pre_mean, var + input_var, before[NOISE])
        trace = grow * (trace + added)
        for j in range(p):
            if drifting:
                cov[j, j] += process_noise[j]
            mean[j] += alpha * gain[j]
            trace -= kappa * gain[j] ** 2
            step = kappa * gain[j]
            for k in range(j, p):
                cov[k, j] = grow * cov[k, j] - step * gain[k]
    return len(X), False


@compiled
def rows_diagonal(
    X: FloatArray,
    X_var: FloatArray,
    y: FloatArray,
    rule: FloatArray,
    running: FloatArray,
    prior_var: FloatArray,
    process_noise: FloatArray,
    mean: FloatArray,
    variance: FloatArray,
    out: FloatArray,
) -> int:
    """Learn rows into independent weights."""
    bias, forgetting = int(rule[2, 0]), rule[3, 0]
    p = mean.shape[0]
    x = np.empty(p)
    for i in range(X.shape[0]):
        if not _load(x, X, i, bias) or not isfinite(y[i]):
            return i
        pre_mean = var = prior = 0.0
        for j in range(p):
            pre_mean += mean[j] * x[j]
            var += variance[j] * x[j] * x[j]
        for j in range(process_noise.shape[0]):
            var += process_noise[j] * x[j] * x[j]
        wide = var
        if forgetting < 1.0:
            for j in range(p):
                prior += prior_var[j] * x[j] * x[j]
            wide = max(var, min(var / forgetting, prior))
        input_var = 0.0
        if X_var.shape[0]:
            for k in range(X.shape[1]):
                drift = process_noise[bias + k] if process_noise.shape[0] else 0.0
                input_var += X_var[i, k] * (mean[bias + k] ** 2 + variance[bias + k] + drift)
        noise = running[NOISE]
        alpha, kappa, left = scalar_step(rule, running, pre_mean, var, wide, input_var, y[i])
        if not isfinite(alpha):
            return i
        _note(out, i, pre_mean, var + input_var, noise)
        for j in range(process_noise.shape[0]):
            variance[j] += process_noise[j]
        for j in range(p):
            gain = variance[j] * x[j]
            mean[j] += alpha * gain
            # 1 - kappa c_j x_j, from the share that the whole row left.
            variance[j] *= max(left + kappa * (var - gain * x[j]), 0.0)
    return len(X)


@compiled
def rows_sparse(
    data: FloatArray,
    indices: IntArray,
    indptr: IntArray,
    y: FloatArray,
    rule: FloatArray,
    running: FloatArray,
    prior_var: FloatArray,
    process_noise: FloatArray,
    mean: FloatArray,
    variance: FloatArray,
    out: FloatArray,
) -> int:
    """Learn sparse rows into independent weights, touching only what is not zero.

    Process noise of the untouched weights is made up when they are next touched, or at the end.
    """
    bias, forgetting = int(rule[2, 0]), rule[3, 0]
    n = len(indptr) - 1
    drifting = process_noise.shape[0] > 0
    last = np.zeros(mean.shape[0] if drifting else 0, dtype=np.int64)
    learned = n
    for i in range(n):
        low, high = indptr[i], indptr[i + 1]
        pre_mean = var = total = 0.0
        if bias:
            if drifting:
                variance[0] += process_noise[0] * (i + 1 - last[0])
                last[0] = i + 1
            pre_mean, var = mean[0], variance[0]
        for k in range(low, high):
            j, value = indices[k] + bias, data[k]
            if drifting:
                variance[j] += process_noise[j] * (i + 1 - last[j])
                last[j] = i + 1
            pre_mean += mean[j] * value
            var += variance[j] * value * value
            total += value * 0.0
        if total != 0.0 or not isfinite(y[i]):
            learned = i
            break
        wide = var
        if forgetting < 1.0:
            prior = prior_var[0] if bias else 0.0
            for k in range(low, high):
                prior += prior_var[indices[k] + bias] * data[k] * data[k]
            wide = max(var, min(var / forgetting, prior))
        noise = running[NOISE]
        alpha, kappa, left = scalar_step(rule, running, pre_mean, var, wide, 0.0, y[i])
        if not isfinite(alpha):
            learned = i
            break
        _note(out, i, pre_mean, var, noise)
        if bias:
            gain = variance[0]
            mean[0] += alpha * gain
            variance[0] *= max(left + kappa * (var - gain), 0.0)
        for k in range(low, high):
            j, value = indices[k] + bias, data[k]
            gain = variance[j] * value
            mean[j] += alpha * gain
            variance[j] *= max(left + kappa * (var - gain * value), 0.0)
    if drifting:
        for j in range(mean.shape[0]):
            variance[j] += process_noise[j] * (learned - last[j])
    return learned
