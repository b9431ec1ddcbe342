"""Compiled twins of `onepass.likelihoods.multivariate`: what a target does to the outputs' belief."""

from math import exp, log, pi, sqrt

import numpy as np

from onepass._typing import FloatArray
from onepass.engine.compiled import compiled
from onepass.engine.moments import SIGMOID, make_rule, sigmoid
from onepass.engine.tilts import ADF_SIGMOID, tilt
from onepass.engine.varying import noise_given, tilt_pair
from onepass.likelihoods.multivariate import (
    BERNOULLI,
    CATEGORICAL,
    GAUSSIAN,
    NOISE,
    NOISE_FLOOR,
    NOISE_WEIGHT,
    ODDS_STEPS,
    SCALE,
    SCALE_CLIP,
    SCALE_GAIN,
    SCALE_WEIGHT,
    SITE_MARGIN,
    VARYING,
)

__all__ = ["learn_scales", "note", "read", "removal"]

_LABEL_RULE = make_rule(ADF_SIGMOID, SIGMOID, (1.0, 1.0, 0.0), np.zeros((4, 1)), 0, 1.0, 1.0)


@compiled
def _inverse(matrix: FloatArray) -> tuple[FloatArray, float]:
    """Inverse and log determinant (of the absolute value), by elimination with row exchange; ``matrix`` is used up."""
    n = matrix.shape[0]
    result, log_det = np.eye(n), 0.0
    for c in range(n):
        pivot = c
        for r in range(c + 1, n):
            if abs(matrix[r, c]) > abs(matrix[pivot, c]):
                pivot = r
        if pivot != c:
            for k in range(n):
                matrix[c, k], matrix[pivot, k] = matrix[pivot, k], matrix[c, k]
                result[c, k], result[pivot, k] = result[pivot, k], result[c, k]
        log_det += log(abs(matrix[c, c]))
        scale = 1.0 / matrix[c, c]
        for k in range(n):
            matrix[c, k] *= scale
            result[c, k] *= scale
        for r in range(n):
            factor = matrix[r, c]
            if r != c and factor != 0.0:
                for k in range(n):
                    matrix[r, k] -= factor * matrix[c, k]
                    result[r, k] -= factor * result[c, k]
    return result, log_det


@compiled
def read(
    kind: int,
    mean: FloatArray,
    cov: FloatArray,
    target: FloatArray,
    noise: FloatArray,
    pull: FloatArray,
    drop: FloatArray,
    precision: FloatArray,
    shift: FloatArray,
) -> float:
    """Fill a `onepass.likelihoods.multivariate.Reading` and return its log density."""
    n = mean.shape[0]
    if kind == CATEGORICAL:
        return _read_class(mean, cov, int(target[0]), pull, drop, precision, shift)
    if kind == BERNOULLI:
        log_z, alpha, kappa, left, _ = tilt(_LABEL_RULE, mean[0], cov[0, 0], target[0], 0.0)
        pull[0], drop[0, 0] = alpha, kappa
        precision[0, 0], shift[0] = kappa / left, alpha / left
        return log_z
    if kind == VARYING:
        return _read_pairs(mean, cov, target, pull, drop, precision, shift)
    precision[:] = 0.0
    for k in range(n):
        precision[k, k] = 1.0 / noise[k]
        shift[k] = (target[k] - mean[k]) / noise[k]
    if n == 1:
        total, error = cov[0, 0] + noise[0], target[0] - mean[0]
        pull[0], drop[0, 0] = error / total, 1.0 / total
        return float(-0.5 * (log(2.0 * pi * total) + error * error / total))
    whole = cov.copy()
    for k in range(n):
        whole[k, k] += noise[k]
    inverted, log_det = _inverse(whole)
    square = 0.0
    for k in range(n):
        pull[k] = 0.0
        for m in range(n):
            drop[k, m] = inverted[k, m]
            pull[k] += inverted[k, m] * (target[m] - mean[m])
        square += pull[k] * (target[k] - mean[k])
    return float(-0.5 * (n * log(2.0 * pi) + log_det + square))


@compiled
def _read_pairs(
    mean: FloatArray,
    cov: FloatArray,
    target: FloatArray,
    pull: FloatArray,
    drop: FloatArray,
    precision: FloatArray,
    shift: FloatArray,
) -> float:
    """One pair ``(f, log noise)`` after the other; ``drop`` and ``pull`` add up what all of them say."""
    size, n = mean.shape[0], target.shape[0]
    own_pull, own_drop, through, whole = np.empty(2), np.empty((2, 2)), np.empty((size, 2)), np.empty((size, size))
    left, now, log_density = np.empty((2, 2)), np.empty(2), 0.0
    pull[:] = 0.0
    drop[:] = 0.0
    for k in range(n):
        # What the pairs before have left of this one: I - drop cov, its columns.
        for i in range(size):
            for side in range(2):
                column = k + side * n
                entry = 1.0 if i == column else 0.0
                for j in range(size):
                    entry -= drop[i, j] * cov[j, column]
                through[i, side] = entry
        for side in range(2):
            row = k + side * n
            now[side] = mean[row]
            for j in range(size):
                now[side] += cov[row, j] * pull[j]
            for other in range(2):
                total = 0.0
                for j in range(size):
                    total += cov[row, j] * through[j, other]
                left[side, other] = total
        log_density += tilt_pair(target[k] - now[0], left[0, 0], left[0, 1], left[1, 1], now[1], own_pull, own_drop)
        for i in range(size):
            pull[i] += through[i, 0] * own_pull[0] + through[i, 1] * own_pull[1]
            first = through[i, 0] * own_drop[0, 0] + through[i, 1] * own_drop[1, 0]
            second = through[i, 0] * own_drop[0, 1] + through[i, 1] * own_drop[1, 1]
            for j in range(size):
                drop[i, j] += first * through[j, 0] + second * through[j, 1]
    for i in range(size):
        for j in range(size):
            entry = 1.0 if i == j else 0.0
            for m in range(size):
                entry -= drop[i, m] * cov[m, j]
            whole[i, j] = entry
    back, _ = _inverse(whole)
    _reading(back, drop, pull, shift, precision)
    return float(log_density)


@compiled
def _read_class(
    mean: FloatArray,
    cov: FloatArray,
    label: int,
    pull: FloatArray,
    drop: FloatArray,
    precision: FloatArray,
    shift: FloatArray,
) -> float:
    n = mean.shape[0]
    log_p, q = np.empty(n), np.empty((n, n))
    _class_slopes(mean, cov, log_p, q)
    fisher = np.zeros((n, n))
    for c in range(n):
        p = exp(log_p[c])
        for k in range(n):
            for m in range(n):
                fisher[k, m] += p * q[c, k] * q[c, m]
    sign = -1.0 if _leaves_enough(fisher, cov) else 1.0
    whole = np.empty((n, n))
    for k in range(n):
        for m in range(n):
            entry = 1.0 if k == m else 0.0
            for j in range(n):
                entry += sign * fisher[k, j] * cov[j, m]
            whole[k, m] = entry
    factor, _ = _inverse(whole)
    if sign < 0.0:
        pull[:] = q[label]
        drop[:] = fisher
        _reading(factor, fisher, q[label], shift, precision)
    else:
        shift[:] = q[label]
        precision[:] = fisher
        _reading(factor, fisher, q[label], pull, drop)
    return float(log_p[label])


@compiled
def _leaves_enough(drop: FloatArray, cov: FloatArray) -> bool:
    """Whether a drop leaves as much as any label must."""
    n = cov.shape[0]
    wide = cov.copy()
    for k in range(n):
        wide[k, k] += 2.0
    root = _root(wide)
    half = np.zeros((n, n))
    inner = np.zeros((n, n))
    for k in range(n):
        for m in range(n):
            for a in range(m, n):
                half[k, m] += drop[k, a] * root[a, m]
    for k in range(n):
        for m in range(n):
            total = 0.0
            for a in range(k, n):
                total += root[a, k] * half[a, m]
            inner[k, m] = (1.0 if k == m else 0.0) - total
    return bool(_is_positive(inner))


@compiled
def _pair_odds(mean: float, var: float) -> tuple[float, float]:
    """Log odds of an uncertain logit and their slope in its mean."""
    won, up, _, _, _ = tilt(_LABEL_RULE, mean, var, 1.0, 0.0)
    lost, down, _, _, _ = tilt(_LABEL_RULE, mean, var, 0.0, 0.0)
    return won - lost, up - down


@compiled
def _normalise(log_p: FloatArray) -> None:
    top, total = log_p.max(), 0.0
    for k in range(log_p.shape[0]):
        total += exp(log_p[k] - top)
    log_p -= top + log(total)


@compiled
def _class_slopes(mean: FloatArray, cov: FloatArray, log_p: FloatArray, q: FloatArray) -> None:
    """Log probabilities and, a row each, their gradients in the logits' means."""
    n = mean.shape[0]
    odds, steep, flat_var = np.zeros((n, n)), np.zeros((n, n)), np.zeros((n, n))
    for k in range(n):
        for m in range(k + 1, n):
            var = max(cov[k, k] + cov[m, m] - 2.0 * cov[k, m], 0.0)
            odds[k, m], steep[k, m] = _pair_odds(mean[k] - mean[m], var)
            odds[m, k], steep[m, k] = -odds[k, m], steep[k, m]
            flat_var[k, m] = flat_var[m, k] = var / (1.0 + pi / 8.0 * var)
    for k in range(n):
        top, total = 0.0, 0.0
        for m in range(n):
            top = max(top, -odds[k, m])
        for m in range(n):
            total += exp(-odds[k, m] - top)
        log_p[k] = -top - log(total)
        q[k, k] = 0.0
        for m in range(n):
            if m != k:
                q[k, m] = -exp(-odds[k, m] - top) / total * steep[k, m]
        for m in range(n):
            if m != k:
                q[k, k] -= q[k, m]
    _normalise(log_p)
    p = np.exp(log_p)
    for k in range(n):
        for m in range(n):
            log_p[k] += flat_var[k, m] * sigmoid(odds[k, m]) * p[m]
    _normalise(log_p)
    for m in range(n):
        mean_slope = 0.0
        for k in range(n):
            mean_slope += exp(log_p[k]) * q[k, m]
        for k in range(n):
            q[k, m] -= mean_slope


@compiled
def _reading(shrink: FloatArray, precision: FloatArray, shift: FloatArray, pull: FloatArray, drop: FloatArray) -> None:
    """``pull = shrink shift`` and ``drop = shrink precision``, made symmetric."""
    n = shrink.shape[0]
    for k in range(n):
        pull[k] = 0.0
        for m in range(n):
            pull[k] += shrink[k, m] * shift[m]
            drop[k, m] = 0.0
            for j in range(n):
                drop[k, m] += shrink[k, j] * precision[j, m]
    for k in range(n):
        for m in range(k):
            drop[k, m] = drop[m, k] = 0.5 * (drop[k, m] + drop[m, k])


@compiled
def removal(
    cov: FloatArray, precision: FloatArray, h: FloatArray, values: FloatArray, pull: FloatArray, drop: FloatArray
) -> bool:
    """The step that takes a site back; False where what is left would be no covariance, or next to none."""
    n = cov.shape[0]
    # With cov = LL': the eigenvalues of cov precision are those of L'precision L, which must stay below 1.
    root = _root(cov)
    inner = np.zeros((n, n))
    whole = np.empty((n, n))
    shift = np.empty(n)
    for k in range(n):
        for m in range(n):
            total = product = 0.0
            for a in range(n):
                product += precision[k, a] * cov[a, m]
                for b in range(n):
                    total += root[a, k] * precision[a, b] * root[b, m]
            inner[k, m] = (1.0 - SITE_MARGIN if k == m else 0.0) - total
            whole[k, m] = (1.0 if k == m else 0.0) - product
    if not _is_positive(inner):
        return False
    for k in range(n):
        shift[k] = -h[k]
        for m in range(n):
            shift[k] += precision[k, m] * values[m]
    shrink, _ = _inverse(whole)
    _reading(shrink, precision, shift, pull, drop)
    for k in range(n):
        for m in range(n):
            drop[k, m] = -drop[k, m]
    return True


@compiled
def _root(matrix: FloatArray) -> FloatArray:
    """Cholesky factor; a direction without variance gets a column of zeros."""
    n = matrix.shape[0]
    root = np.zeros((n, n))
    for j in range(n):
        left = matrix[j, j]
        for k in range(j):
            left -= root[j, k] ** 2
        if left <= 1e-14 * matrix[j, j]:
            continue
        root[j, j] = sqrt(left)
        for i in range(j + 1, n):
            entry = matrix[i, j]
            for k in range(j):
                entry -= root[i, k] * root[j, k]
            root[i, j] = entry / root[j, j]
    return root


@compiled
def _is_positive(matrix: FloatArray) -> bool:
    """Whether a symmetric matrix is positive definite."""
    n = matrix.shape[0]
    for j in range(n):  # elimination without exchange: all pivots are positive
        if not matrix[j, j] > 0.0:
            return False
        for i in range(j + 1, n):
            factor = matrix[i, j] / matrix[j, j]
            for k in range(j, n):
                matrix[i, k] -= factor * matrix[j, k]
    return True


@compiled
def _expected_noise(kind: int, mean: FloatArray, cov: FloatArray, scales: FloatArray, k: int) -> float:
    if kind != VARYING:
        return float(scales[NOISE, k])
    at = scales.shape[1] + k
    return noise_given(mean[at], cov[at, at])


@compiled
def learn_scales(
    kind: int,
    scales: FloatArray,
    mean: FloatArray,
    cov: FloatArray,
    target: FloatArray,
    gain: float,
    most: float,
) -> None:
    """Let a row's errors move the noise and the predictive scale."""
    if kind != GAUSSIAN and kind != VARYING:
        return
    for k in range(target.shape[0]):
        noise = _expected_noise(kind, mean, cov, scales, k)
        total = cov[k, k] + noise
        square = (target[k] - mean[k]) ** 2
        if scales[NOISE_WEIGHT, k] > 0.0:
            information = (noise / total) ** 2
            away = information * (square - total)
            if kind == VARYING:  # the noise has a head of its own, and this is but its mean over the rows
                information, away = 1.0, noise - scales[NOISE, k]
            weight = min(scales[NOISE_WEIGHT, k] + information, most)
            scales[NOISE_WEIGHT, k] = weight
            scales[NOISE, k] = max(scales[NOISE, k] + min(gain / weight, 1.0) * away, NOISE_FLOOR)
        if scales[SCALE_WEIGHT, k] > 0.0:
            scales[SCALE_WEIGHT, k] += 1.0
            step = min(SCALE_GAIN / scales[SCALE_WEIGHT, k], 1.0)
            scales[SCALE, k] += step * (min(square / total, SCALE_CLIP) - scales[SCALE, k])


@compiled
def note(kind: int, record: FloatArray, i: int, mean: FloatArray, cov: FloatArray, scales: FloatArray) -> None:
    """Write down what a row is predicted from, the noise and the scale, if there is room."""
    if record.shape[0]:
        for k in range(scales.shape[1]):
            record[i, 0, k] = mean[k]
            record[i, 1, k] = cov[k, k]
            record[i, 2, k] = _expected_noise(kind, mean, cov, scales, k)
            record[i, 3, k] = scales[SCALE, k]
        if kind == CATEGORICAL:
            _rest_odds(mean, cov, record[i, 0], record[i, 1])


@compiled
def _rest_odds(mean: FloatArray, cov: FloatArray, centre: FloatArray, var: FloatArray) -> None:
    """Means and variances of the log odds of each class against all others."""
    n = mean.shape[0]
    log_p, share = np.empty(n), np.empty((n, n))
    _class_slopes(mean, cov, log_p, share)
    for k in range(n):
        top, total = -np.inf, 0.0
        for m in range(n):
            if m != k:
                top = max(top, log_p[m])
        for m in range(n):
            share[k, m] = -exp(log_p[m] - top) if m != k else 0.0
            total -= share[k, m]
        for m in range(n):
            share[k, m] = share[k, m] / total if m != k else 1.0
        spread = 0.0
        for a in range(n):
            for b in range(n):
                spread += share[k, a] * cov[a, b] * share[k, b]
        spread = max(spread, 0.0)
        wanted = log_p[k] - top - log(total)
        at = wanted * sqrt(1.0 + pi / 8.0 * spread)
        for _ in range(ODDS_STEPS):
            odds, slope = _pair_odds(at, spread)
            at -= (odds - wanted) / slope
        centre[k], var[k] = at, spread
