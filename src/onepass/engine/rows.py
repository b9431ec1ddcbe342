"""The row kernels: one compiled loop over the rows, for each form of the belief.

Every kernel returns the number of rows it learned: all of them, or the index of the first that is not finite, before
which nothing of that row was written. ``out`` receives each row's mean, variance and noise from before its update, if
it has room for them.
"""

from math import isfinite, sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onepass.engine.compiled import compiled
from onepass.engine.tilts import scalar_step, suits
from onepass.gaussian import FloatArray
from onepass.observations import NOISE

__all__ = ["row_root", "rows_dense", "rows_diagonal", "rows_root", "rows_sparse"]

IntArray = NDArray[np.integer[Any]]
_NOTHING = np.empty(0)


@compiled
def _load(x: FloatArray, row: FloatArray, bias: int) -> bool:
    """Copy a row behind the bias's constant 1; whether all of it is finite."""
    if bias:
        x[0] = 1.0
    total = 0.0
    for k in range(row.shape[0]):
        x[bias + k] = row[k]
        total += row[k] * 0.0
    return total == 0.0


@compiled
def _note(out: FloatArray, i: int, pre_mean: float, pre_var: float, noise: float) -> None:
    if out.shape[0]:
        out[i, 0] = pre_mean
        out[i, 1] = pre_var
        out[i, 2] = noise


@compiled
def _row_root(
    row: FloatArray,
    row_var: FloatArray,
    y: float,
    rule: FloatArray,
    running: FloatArray,
    space: FloatArray,
    root: FloatArray,
) -> tuple[bool, float, float]:
    """Learn a row into ``C = R'R``; whether it could be, and its mean and variance from before."""
    bias, forgetting = int(rule[2, 0]), rule[3, 0]
    mean, x, coords, gain, shrink = space[0], space[1], space[2], space[3], space[4]
    p = mean.shape[0]
    if not _load(x, row, bias) or not isfinite(y):
        return False, 0.0, 0.0
    grow = 1.0
    if forgetting < 1.0:
        trace = 0.0
        for j in range(p):
            for k in range(j + 1):
                trace += root[j, k] ** 2
        if trace <= forgetting * rule[3, 1]:
            grow = 1.0 / forgetting
    pre_mean = var = 0.0
    for j in range(p):
        coord = 0.0
        for k in range(j + 1):
            coord += root[j, k] * x[k]
        coords[j] = coord
        var += coord * coord
        pre_mean += mean[j] * x[j]
    var *= grow
    input_var = 0.0
    for k in range(row_var.shape[0]):
        marginal = 0.0
        for j in range(bias + k, p):
            marginal += root[j, bias + k] ** 2
        input_var += row_var[k] * (mean[bias + k] ** 2 + grow * marginal)
    alpha, kappa, left = scalar_step(rule, running, pre_mean, var, var, input_var, y)
    if not isfinite(alpha):
        return False, 0.0, 0.0
    scale = sqrt(grow)
    share = left
    for j in range(p):
        gain[j] = 0.0
        coords[j] *= scale
        share += kappa * coords[j] ** 2
        shrink[j] = share
    for j in range(p):  # on their own, so that the square roots are taken side by side
        shrink[j] = sqrt(max(shrink[j], 0.0))
    before = sqrt(max(left, 0.0))
    for j in range(p):
        coord, after = coords[j], shrink[j]
        if coord == 0.0 or after == 0.0:
            for k in range(j + 1):
                root[j, k] *= scale
            continue
        keep = scale * (before / after)
        mix = kappa * coord / (after * before) if before > 0.0 else 0.0
        lift = scale * coord
        for k in range(j + 1):
            entry = root[j, k]
            root[j, k] = keep * entry - mix * gain[k]
            gain[k] += lift * entry
        before = after
    for k in range(p):
        mean[k] += alpha * gain[k]
    return True, pre_mean, var + input_var


@compiled
def row_root(
    x: FloatArray, y: float, rule: FloatArray, running: FloatArray, space: FloatArray, root: FloatArray
) -> bool:
    """Learn one row; False, and nothing changed, if there is anything wrong with it."""
    if x.shape[0] != space.shape[1] - rule[2, 0] or not suits(rule, y):
        return False
    learned, _, _ = _row_root(x, _NOTHING, y, rule, running, space, root)
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
    """Learn rows into ``C = R'R``, ``R`` lower triangular: Carlson's update, see `onepass.posterior.Full`."""
    for i in range(X.shape[0]):
        noise = running[NOISE]
        row_var = X_var[i] if X_var.shape[0] else X[i, :0]
        learned, pre_mean, pre_var = _row_root(X[i], row_var, y[i], rule, running, space, root)
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
    space: FloatArray,
    cov: FloatArray,
    out: FloatArray,
) -> int:
    """Learn rows into the lower triangle of ``C`` itself, in Fortran order."""
    bias, forgetting = int(rule[2, 0]), rule[3, 0]
    mean, x, gain = space[0], space[1], space[2]
    p = mean.shape[0]
    trace = 0.0
    for j in range(p):
        trace += cov[j, j]
    for i in range(X.shape[0]):
        if not _load(x, X[i], bias) or not isfinite(y[i]):
            return i
        for j in range(process_noise.shape[0]):
            cov[j, j] += process_noise[j]
            trace += process_noise[j]
        if forgetting < 1.0 and trace <= forgetting * rule[3, 1]:
            trace /= forgetting
            for j in range(p):
                for k in range(j, p):
                    cov[k, j] /= forgetting
        pre_mean = 0.0
        for j in range(p):
            gain[j] = 0.0
            pre_mean += mean[j] * x[j]
        for j in range(p):
            below = 0.0
            for k in range(j + 1, p):
                gain[k] += cov[k, j] * x[j]
                below += cov[k, j] * x[k]
            gain[j] += cov[j, j] * x[j] + below
        var = 0.0
        for j in range(p):
            var += x[j] * gain[j]
        var = max(var, 0.0)
        input_var = 0.0
        if X_var.shape[0]:
            for k in range(X.shape[1]):
                input_var += X_var[i, k] * (mean[bias + k] ** 2 + cov[bias + k, bias + k])
        noise = running[NOISE]
        alpha, kappa, _ = scalar_step(rule, running, pre_mean, var, var, input_var, y[i])
        if not isfinite(alpha):
            return i
        _note(out, i, pre_mean, var + input_var, noise)
        for j in range(p):
            mean[j] += alpha * gain[j]
            trace -= kappa * gain[j] ** 2
            step = kappa * gain[j]
            for k in range(j, p):
                cov[k, j] -= step * gain[k]
            cov[j, j] = max(cov[j, j], 0.0)
    return len(X)


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
        if not _load(x, X[i], bias) or not isfinite(y[i]):
            return i
        for j in range(process_noise.shape[0]):
            variance[j] += process_noise[j]
        pre_mean = var = prior = 0.0
        for j in range(p):
            pre_mean += mean[j] * x[j]
            var += variance[j] * x[j] * x[j]
        wide = var
        if forgetting < 1.0:
            for j in range(p):
                prior += prior_var[j] * x[j] * x[j]
            wide = max(var, min(var / forgetting, prior))
        input_var = 0.0
        if X_var.shape[0]:
            for k in range(X.shape[1]):
                input_var += X_var[i, k] * (mean[bias + k] ** 2 + variance[bias + k])
        noise = running[NOISE]
        alpha, kappa, _ = scalar_step(rule, running, pre_mean, var, wide, input_var, y[i])
        if not isfinite(alpha):
            return i
        _note(out, i, pre_mean, var + input_var, noise)
        for j in range(p):
            gain = variance[j] * x[j]
            mean[j] += alpha * gain
            variance[j] *= max(1.0 - kappa * gain * x[j], 0.0)
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
        alpha, kappa, _ = scalar_step(rule, running, pre_mean, var, wide, 0.0, y[i])
        if not isfinite(alpha):
            learned = i
            break
        _note(out, i, pre_mean, var, noise)
        if bias:
            gain = variance[0]
            mean[0] += alpha * gain
            variance[0] *= max(1.0 - kappa * gain, 0.0)
        for k in range(low, high):
            j, value = indices[k] + bias, data[k]
            gain = variance[j] * value
            mean[j] += alpha * gain
            variance[j] *= max(1.0 - kappa * gain * value, 0.0)
    if drifting:
        for j in range(mean.shape[0]):
            variance[j] += process_noise[j] * (learned - last[j])
    return learned
