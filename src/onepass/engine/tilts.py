"""Update rules for compiled code, one row at a time: the twins of `onepass.likelihoods.univariate`.

`scalar_step` is all of a row's learning that is not linear algebra. How a rule is laid out is said in
`onepass.engine.moments`.
"""

from math import exp, expm1, floor, isfinite, lgamma, log, log1p, sqrt

import numpy as np

from onepass._typing import FloatArray
from onepass.activations.sigmoid import SCALES, WEIGHTS
from onepass.engine.compiled import compiled, inlined
from onepass.engine.moments import PIECES, moments
from onepass.engine.special import log_cdf_slopes, log_ndtr, ndtr, pdf, truncated
from onepass.likelihoods.univariate import (
    EVIDENCE,
    LABEL_RESOLUTION,
    NOISE,
    NOISE_FLOOR,
    NOISE_RATE,
    NOISE_START_ROWS,
    NOISE_WEIGHT,
    NOISE_WINDOW,
    SEEN,
)
from onepass.mathematics.gaussian import gauss_hermite, gauss_legendre

__all__ = [
    "ADF_COUNT",
    "ADF_NOISE",
    "ADF_PROBIT",
    "ADF_SIGMOID",
    "ADF_STEP",
    "KALMAN_COUNT",
    "KALMAN_LABEL",
    "KALMAN_NOISE",
    "scalar_step",
    "suits",
    "tilt",
]

ADF_SIGMOID, ADF_PROBIT, ADF_STEP, ADF_NOISE, ADF_COUNT, KALMAN_NOISE, KALMAN_LABEL, KALMAN_COUNT = range(8)

_TINY = 1e-200
_FLOOR = 1e-120
_SMALLEST = float(np.finfo(np.float64).tiny)
_NODES, _NODE_WEIGHTS = gauss_hermite(11)
_UNIT_NODES, _UNIT_WEIGHTS = gauss_legendre(32)
_P, _LOG_P, _LAMBDA = WEIGHTS, np.log(WEIGHTS), SCALES
_LOG_2PI = log(2.0 * np.pi)

Tilted = tuple[float, float, float, float, float]


@inlined
def tilt(rule: FloatArray, mean: float, var: float, y: float, noise: float) -> Tilted:
    """``log Z``, ``alpha``, ``kappa``, ``left`` and, for Gaussian noise, the expected squared residual."""
    kind = rule[0, 0]
    if kind == ADF_SIGMOID:
        return _label_sigmoid(mean, var, y)
    if kind == ADF_NOISE:
        return _noisy_pieces(rule, mean, var, y, noise)
    if kind == ADF_PROBIT:
        sign = 2.0 * y - 1.0
        k = 1.0 / sqrt(1.0 + var)
        z = sign * k * mean
        r, q, _ = log_cdf_slopes(z)
        kappa = min(k * k * q, 1.0 / (var + 1.0))
        return log_ndtr(z), sign * k * r, kappa, 1.0 - kappa * var, 0.0
    if kind == ADF_STEP:
        sign = 2.0 * y - 1.0
        var = max(var, _SMALLEST)
        k = 1.0 / sqrt(var)
        z = min(max(sign * k * mean, -1e100), 1e100)
        r, q, left = log_cdf_slopes(z)
        return log_ndtr(z), sign * k * r, q / var, left, 0.0
    if kind == ADF_COUNT:
        return _count(mean, var, y)
    return _kalman(rule, mean, var, y, noise)


@compiled
def suits(rule: FloatArray, y: float) -> bool:
    """Whether a target can be one, as the observation's own `check` has it."""
    kind = rule[0, 0]
    if kind in (ADF_NOISE, KALMAN_NOISE):
        return True
    if kind in (ADF_COUNT, KALMAN_COUNT):
        return y >= 0.0 and y == floor(y)
    return y == 0.0 or y == 1.0


@compiled
def _kalman(rule: FloatArray, mean: float, var: float, y: float, noise: float) -> Tilted:
    mu, var_y, slope = moments(rule, mean, var)
    if rule[0, 0] == KALMAN_NOISE:
        total = max(var_y + noise, _TINY)
        log_z = -0.5 * (log(total) + _LOG_2PI + (y - mu) ** 2 / total)
    elif rule[0, 0] == KALMAN_LABEL:
        noise = max(mu * (1.0 - mu) - var_y, 0.0)
        log_z = log(max(mu if y > 0.5 else 1.0 - mu, _TINY))
    else:
        noise = mu
        rate = max(mu, _TINY)
        shape = 1.0 / min(max(var_y / (rate * rate), 1e-8), 1e12)
        log_z = lgamma(y + shape) - lgamma(shape) - lgamma(y + 1.0) - shape * log1p(rate / shape)
        if y > 0.0:
            log_z += y * log(rate / (rate + shape))
    total = var_y + noise
    resolution = LABEL_RESOLUTION if rule[0, 0] == KALMAN_LABEL else _TINY
    if var < max(1e-30 * mean * mean, _TINY) or total < resolution:
        return log_z, 0.0, 0.0, 1.0, 0.0
    bound = sqrt(total / var)
    slope = min(max(slope, -bound), bound)
    unexplained = var_y - slope * slope * var
    if abs(unexplained) < 1e-15 * var_y:  # rounding alone, which may be more than the noise
        unexplained = 0.0
    left = max(unexplained + noise, 0.0) / total
    return log_z, slope * (y - mu) / total, slope * slope / total, left, 0.0


@compiled
def _label_sigmoid(mean: float, var: float, y: float) -> Tilted:
    sign = 2.0 * y - 1.0
    m = sign * mean
    if var <= 0.5:
        e = exp(-abs(m))
        up, down = (1.0 / (1.0 + e), e / (1.0 + e)) if m > 0.0 else (e / (1.0 + e), 1.0 / (1.0 + e))
        std = sqrt(var)
        middle = _NODES.shape[0] // 2
        gain = _NODE_WEIGHTS[middle]
        first, second, third = gain * down, gain * down * down, gain * up * down
        for i in range(middle):  # the nodes come in pairs: one exponential serves two
            e = exp(_NODES[i] * std)
            for side in range(2):
                # s and 1 - s at the node, the former over s at the mean.
                ratio = e / (down + up * e) if side == 0 else 1.0 / (down * e + up)
                rest = down / (down + up * e) if side == 0 else down * e / (down * e + up)
                weight = _NODE_WEIGHTS[i] * ratio
                gain += weight
                first += weight * rest
                second += weight * rest * rest
                third += weight * up * ratio * rest
        alpha = first / gain
        kappa = third / gain - (second / gain - alpha * alpha)
        log_z = log(up * gain) if m > -30.0 else m + log(gain)
    else:
        tail = m < -0.5 * var
        log_z, alpha, kappa = _probits(-(m + var) if tail else m, var)
        if tail:
            log_z += m + 0.5 * var
            alpha = 1.0 - alpha
    kappa = min(max(kappa, 0.0), 1.0 / (var + 4.0))
    return log_z, sign * alpha, kappa, 1.0 - kappa * var, 0.0


@compiled
def _probits(mean: float, var: float) -> tuple[float, float, float]:
    if mean * mean < 9.0 * var:  # then |k mean| < 3, and the plain sums keep their digits
        total = first = bend = 0.0
        for i in range(_P.shape[0]):
            k = _LAMBDA[i] / sqrt(1.0 + _LAMBDA[i] ** 2 * var)
            z = k * mean
            slope = _P[i] * k * pdf(z)
            total += _P[i] * ndtr(z)
            first += slope
            bend += slope * k * z
        alpha = first / total
        return log(total), alpha, alpha * alpha + bend / total
    top = -np.inf
    for i in range(_P.shape[0]):
        k = _LAMBDA[i] / sqrt(1.0 + _LAMBDA[i] ** 2 * var)
        top = max(top, _LOG_P[i] + log_ndtr(k * mean))
    total = first = second = third = 0.0
    for i in range(_P.shape[0]):
        k = _LAMBDA[i] / sqrt(1.0 + _LAMBDA[i] ** 2 * var)
        z = k * mean
        part = exp(_LOG_P[i] + log_ndtr(z) - top)
        r, q, _ = log_cdf_slopes(z)
        total += part
        first += part * k * r
        second += part * (k * r) ** 2
        third += part * k * k * q
    alpha = first / total
    return top + log(total), alpha, third / total - (second / total - alpha * alpha)


@compiled
def _piece(rule: FloatArray, i: int, mean: float, v: float, y: float, noise: float) -> Tilted:
    """One piece's log mass, alpha, kappa, share left and expected squared residual."""
    slope = rule[0, i]
    total = noise + slope * slope * v
    residual = y - rule[1, i] - slope * mean
    std = sqrt(v) * sqrt(noise / total)
    centre = mean + v * slope * residual / total
    log_mass, shift, var, shrinkage = truncated((rule[2, i] - centre) / std, (rule[3, i] - centre) / std)
    log_part = log_mass - 0.5 * (min(residual * (residual / total), 1e300) + log(total) + _LOG_2PI)
    gap = residual * (noise / total) - slope * std * shift
    return (
        log_part,
        slope * residual / total + std / v * shift,
        slope * slope / total + noise / total * shrinkage / v,
        noise / total * var,
        gap * gap + (slope * std) ** 2 * var,
    )


@compiled
def _noisy_pieces(rule: FloatArray, mean: float, var: float, y: float, noise: float) -> Tilted:
    noise = max(noise, _FLOOR)
    reach = abs(mean)
    for i in range(PIECES, rule.shape[1] - 1):
        reach = max(reach, abs(rule[3, i]))
    known = max(1e-30 * reach * reach, _FLOOR)
    v = max(var, known)
    # One pass over the pieces: sums relative to the largest so far, the spread of alpha by Welford's update.
    top = -np.inf
    z = alpha = spread = kappa = left = square = 0.0
    for i in range(PIECES, rule.shape[1]):
        log_part, a, ka, le, sq = _piece(rule, i, mean, v, y, noise)
        if log_part > top:
            shrink = exp(max(top - log_part, -745.0)) if z > 0.0 else 0.0
            z, spread, kappa, left, square = z * shrink, spread * shrink, kappa * shrink, left * shrink, square * shrink
            top = log_part
        part = exp(max(log_part - top, -745.0)) if log_part - top > -700.0 else 0.0
        if part > 0.0:
            z += part
            gap = a - alpha
            alpha += gap * part / z
            spread += part * gap * (a - alpha)
            kappa += part * ka
            left += part * le
            square += part * sq
    spread /= z
    log_z = top + log(z)
    if var < known:
        return log_z, 0.0, 0.0, 1.0, square / z
    return log_z, alpha, min(kappa / z - spread, 1.0 / v), left / z + v * spread, square / z


@compiled
def _drop(h: float, rate: float, var: float) -> float:
    return rate * (expm1(h) - h) + 0.5 * h * h / var


@compiled
def _count(mean: float, var: float, y: float) -> Tilted:
    v = min(max(var, 1e-20), 1e12)
    # The mode solves (a - mean)/v = y - e^a: Newton's method on the log of the rate's share, from its upper side.
    target = mean + v * y
    omega = _wright_omega(target + log(v))
    mode = target - omega
    rate = exp(min(max(mode, -300.0), 300.0))
    z = first = second = away = spread = 0.0
    for half in range(2):
        side = -1.0 if half == 0 else 1.0
        root = sqrt(72.0 / rate)
        reach = min(sqrt(72.0 * v), log1p(36.0 / rate + root) if half == 1 else 36.0 / rate + 1.0 + root)
        for _ in range(8):
            slope = rate * side * expm1(side * reach) + reach / v
            reach -= (_drop(side * reach, rate, v) - 36.0) / slope
        for i in range(_UNIT_NODES.shape[0]):
            h = side * reach * _UNIT_NODES[i]
            weight = reach * _UNIT_WEIGHTS[i] * exp(-_drop(h, rate, v))
            rise = rate * expm1(h)
            z += weight
            first += weight * rise
            second += weight * rise * rise
            away += weight * h
            spread += weight * h * h
    centre = first / z
    kappa = min(max(rate + centre - (second / z - centre * centre), 0.0), 1.0 / v)
    left = (spread / z - (away / z) ** 2) / v
    peak = y * mode - rate - lgamma(y + 1.0) - 0.5 * (mode - mean) ** 2 / v
    return peak + log(z) - 0.5 * (log(v) + _LOG_2PI), (mode - mean) / v - centre, kappa, left, 0.0


@compiled
def _wright_omega(x: float) -> float:
    """Solve ``w + log w = x`` for ``w > 0``."""
    if x < -30.0:
        return exp(x)
    w = x - log(x) if x > 2.0 else (0.567 + 0.41 * x if x > -1.0 else exp(x))
    for _ in range(6):  # Halley's steps: each triples the digits
        gap = w + log(w) - x
        slope = 1.0 + 1.0 / w
        w -= gap / (slope + 0.5 * gap / (w * w * slope))
    return w


@compiled
def scalar_step(
    rule: FloatArray, running: FloatArray, mean: float, var: float, wide: float, input_var: float, y: float
) -> tuple[float, float, float]:
    """Learn all of a row but the weights; return ``alpha, kappa, left`` of the belief's step.

    ``var`` is what the belief says of ``J'w``, ``wide`` that variance after forgetting in the row's own direction,
    ``input_var`` what uncertain inputs add. A row that can't be learned gives NaN and changes nothing.
    """
    if running[NOISE_WEIGHT] > 0.0 and running[SEEN] < NOISE_START_ROWS:
        running[NOISE] = max(running[NOISE], (y - moments(rule, mean, wide + input_var)[0]) ** 2)
    noise = running[NOISE]
    log_z, alpha, kappa, left, square = tilt(rule, mean, wide + input_var, y, noise)
    share = left
    left += kappa * input_var
    if not (isfinite(wide) and isfinite(alpha * wide) and isfinite(alpha + kappa + left + log_z)):
        return np.nan, np.nan, np.nan
    if running[NOISE_WEIGHT] > 0.0:
        if rule[0, 0] == KALMAN_NOISE:
            total = wide + input_var
            mu, var_y, _ = moments(rule, mean + alpha * total, total * share)
            square = (y - mu) ** 2 + var_y
        running[NOISE_WEIGHT] += min(share, 1.0) ** 2
        step = max(min(NOISE_RATE / running[NOISE_WEIGHT], 1.0), 1.0 / running[NOISE_WINDOW])
        running[NOISE] = max(noise + step * (square - noise), NOISE_FLOOR)
    running[EVIDENCE] += log_z
    running[SEEN] += 1.0
    if wide != var:
        ratio = wide / var
        alpha, kappa, left = alpha * ratio, kappa * ratio * ratio - (ratio - 1.0) / var, left * ratio
    return alpha, kappa, left
