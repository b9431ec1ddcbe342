"""What a target says about the K outputs of a network: `univariate` for more than one pre-activation.

A head sees the belief ``N(mean, S)`` about the outputs and a target, and answers with a `Reading`. Nothing here knows
about weights or layers.
"""

from typing import Any, NamedTuple

import numpy as np
from scipy.special import expit, logsumexp, softmax

from onepass._typing import FloatArray
from onepass._validation import as_floats
from onepass.activations import Sigmoid
from onepass.likelihoods.heteroscedastic import noise_given, tilt_pair

__all__ = [
    "BERNOULLI",
    "CATEGORICAL",
    "GAUSSIAN",
    "HEADS",
    "NOISE",
    "NOISE_FLOOR",
    "NOISE_WEIGHT",
    "ODDS_STEPS",
    "SCALE",
    "SCALE_CLIP",
    "SCALE_GAIN",
    "SCALE_WEIGHT",
    "SITE_MARGIN",
    "VARYING",
    "Predictive",
    "Reading",
    "as_network_targets",
    "check_outputs",
    "choose_head",
    "expected_noise",
    "learn_scales",
    "marginals",
    "predictive",
    "read",
    "removal",
    "restart_calibration",
    "start_scales",
    "widened",
]

GAUSSIAN, BERNOULLI, CATEGORICAL, VARYING = range(4)
HEADS = {"gaussian": GAUSSIAN, "bernoulli": BERNOULLI, "categorical": CATEGORICAL}  # by the name of the observation

# What runs along for every output, a row each of one array (4, K): the noise variance, how much information it rests
# on (0: it is fixed), the predictive scale and the rows it rests on (0: it is fixed).
NOISE, NOISE_WEIGHT, SCALE, SCALE_WEIGHT = range(4)
_NOISE_START, _NOISE_START_WEIGHT, NOISE_FLOOR = 0.02, 10.0, 1e-6
_SCALE_START_WEIGHT = 10.0
SCALE_GAIN, SCALE_CLIP = 3.0, 9.0
# A site is taken back only if at least this share of its own noise is left of the difference; else it stays.
SITE_MARGIN = 1e-3
ODDS_STEPS = 4  # of Newton, on a function that is all but straight
_PAIRS = 100_000  # of classes held at a time, which bounds the memory of a prediction
_SIGMOID = Sigmoid()


class Reading(NamedTuple):
    """What a target does to a belief ``N(a, S)`` about the outputs.

    The step is ``c pull`` and ``-c drop c'``. It is the step that a Gaussian site ``exp(h'o - o'precision o/2)`` on the
    outputs ``o`` makes, with ``h = precision a + shift``; refinement keeps the site to take it back later.
    """

    log_density: float
    pull: FloatArray  # (K,)
    drop: FloatArray  # (K, K)
    precision: FloatArray  # (K, K)
    shift: FloatArray  # (K,)


def choose_head(observation: str, *, varying: bool) -> int:
    """What reads targets of this kind; ``varying`` has their noise depend on the input."""
    if varying and observation != "gaussian":
        raise ValueError(f"noise='heteroscedastic' is for observation='gaussian', got observation={observation!r}")
    return VARYING if varying else HEADS[observation]


def start_scales(n_outputs: int, noise: float | str, calibrate: bool) -> FloatArray:
    """Noise and predictive scale before the first row; a ``noise`` that is no number is learned."""
    scales, learned = np.zeros((4, n_outputs)), isinstance(noise, str)
    scales[NOISE], scales[SCALE] = _NOISE_START if learned else noise, 1.0
    scales[NOISE_WEIGHT] = _NOISE_START_WEIGHT if learned else 0.0
    scales[SCALE_WEIGHT] = _SCALE_START_WEIGHT if calibrate else 0.0
    return scales


def restart_calibration(scales: FloatArray) -> None:
    """Begin the predictive scale anew, if there is one."""
    if scales[SCALE_WEIGHT, 0] > 0.0:
        scales[SCALE], scales[SCALE_WEIGHT] = 1.0, _SCALE_START_WEIGHT


def check_outputs(kind: int, n_outputs: int) -> None:
    """See to it that the number of outputs suits the targets."""
    if kind == BERNOULLI and n_outputs != 1:
        raise ValueError(f"n_outputs must be 1 for observation='bernoulli', got {n_outputs}")
    if kind == CATEGORICAL and n_outputs < 2:
        raise ValueError(f"n_outputs must be the number of classes, at least 2, got {n_outputs}")


def as_network_targets(value: Any, n_rows: int, n_outputs: int, kind: int, single: bool) -> FloatArray:
    """``value`` as targets ``(n_rows, K)``, or ``(n_rows, 1)`` labels."""
    columns = n_outputs if kind in (GAUSSIAN, VARYING) else 1
    targets = as_floats(value, "y")
    allowed: list[tuple[int, ...]] = [(n_rows,)] if columns == 1 else []
    allowed += [(n_rows, columns), *([(columns,)] if single else []), *([()] if single and columns == 1 else [])]
    if targets.shape not in allowed:
        shapes = " or ".join(str(shape) for shape in dict.fromkeys(allowed))
        raise ValueError(f"y must have shape {shapes}, got shape {targets.shape}")
    targets = np.ascontiguousarray(targets.reshape(n_rows, columns))
    most = 1 if kind == BERNOULLI else n_outputs - 1
    bad = (targets < 0) | (targets > most) | (targets != np.floor(targets))
    if kind in (BERNOULLI, CATEGORICAL) and bad.any():
        where = int(np.flatnonzero(bad)[0])
        raise ValueError(f"y must hold labels 0 to {most}, got {targets[where, 0]:g} at index {where}")
    return targets


class Predictive(NamedTuple):
    """Mean of a target, its variance by not knowing the weights, and the rest of it; each ``(n, K)``."""

    mean: FloatArray
    var: FloatArray
    rest: FloatArray


def predictive(kind: int, mean: FloatArray, var: FloatArray, noise: FloatArray, scale: FloatArray) -> Predictive:
    """What is predicted from `marginals`, ``(n, K)``; for classes their probabilities."""
    if kind in (GAUSSIAN, VARYING):
        return Predictive(mean, scale * var, scale * noise)
    output = _SIGMOID.moments(mean, var)
    p = output.mean if kind == BERNOULLI else output.mean / output.mean.sum(axis=1, keepdims=True)
    return Predictive(p, output.var, np.maximum(p * (1.0 - p) - output.var, 0.0))


def read(kind: int, mean: FloatArray, cov: FloatArray, target: FloatArray, noise: FloatArray) -> Reading:
    """Read a target: ``(K,)`` numbers, or ``(1,)`` label or class."""
    if kind == BERNOULLI:
        return _read_label(float(mean[0]), float(cov[0, 0]), float(target[0]))
    if kind == CATEGORICAL:
        return _read_class(mean, cov, int(target[0]))
    if kind == VARYING:
        return _read_pairs(mean, cov, target)
    error = target - mean
    total = cov + np.diag(noise)
    drop = np.asarray(np.linalg.inv(total), dtype=np.float64)
    log_density = -0.5 * (np.linalg.slogdet(2.0 * np.pi * total)[1] + error @ drop @ error)
    return Reading(float(log_density), drop @ error, drop, np.diag(1.0 / noise), error / noise)


def _read_label(mean: float, var: float, label: float) -> Reading:
    tilt = _SIGMOID.tilt_by_label(mean, var, label)
    alpha, kappa = np.array([float(tilt.alpha)]), np.array([[float(tilt.kappa)]])
    return Reading(float(tilt.log_z), alpha, kappa, kappa / tilt.left, alpha / tilt.left)


def _read_pairs(mean: FloatArray, cov: FloatArray, target: FloatArray) -> Reading:
    """Numbers whose noise depends on the input: one pair ``(f, log noise)`` after the other."""
    n = len(target)
    log_density, pull, drop = 0.0, np.zeros(2 * n), np.zeros((2 * n, 2 * n))
    for k in range(n):
        pair = [k, n + k]
        now = mean[pair] + cov[pair] @ pull
        left = cov[pair] - cov[pair] @ drop @ cov  # after the pairs before
        tilt = tilt_pair(float(target[k] - now[0]), left[:, pair], float(now[1]))
        through = np.eye(2 * n)[:, pair] - drop @ cov[:, pair]
        pull += through @ tilt.pull
        drop += through @ tilt.drop @ through.T
        log_density += tilt.log_z
    back = np.linalg.inv(np.eye(2 * n) - drop @ cov)
    precision = back @ drop
    return Reading(log_density, pull, drop, 0.5 * (precision + precision.T), back @ pull)


def expected_noise(kind: int, mean: FloatArray, var: FloatArray, noise: FloatArray) -> FloatArray:
    """Variance of the noise that outputs with these means and variances, ``(..., outputs)``, have around them."""
    if kind != VARYING:
        return np.broadcast_to(noise, mean.shape)
    n = mean.shape[-1] // 2
    return noise_given(mean[..., n:], var[..., n:])


def widened(
    kind: int, mean: FloatArray, cov: FloatArray, noise: FloatArray, scale: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Outputs and noise as predictions have them: all variances of a target times the predictive scale."""
    n = len(scale)
    root, moved = np.ones(mean.shape[-1]), mean.copy()
    root[:n] = np.sqrt(scale)
    if kind == VARYING:
        moved[..., n:] += np.log(scale)
    return moved, cov * np.outer(root, root), noise * scale


def _read_class(mean: FloatArray, cov: FloatArray, label: int) -> Reading:
    """The joint step on all logits: the one that the probabilities' expected slopes make, as Kalman's does.

    With ``q`` the gradients of the log probabilities in the logits' means, a row each, that is ``pull = q[label]`` and
    ``drop = Σ p q q'``, what the label drops on average.
    """
    log_p, q = _class_slopes(mean, cov)
    drop = (q.T * np.exp(log_p)) @ q
    # -(log p)'' is at most 1/2 in any direction, so no label leaves less than (S⁻¹ + 1/2)⁻¹. Three odds that contradict
    # each other may; what they drop is then taken for the precision of a site, which leaves something in any case.
    root = np.linalg.cholesky(cov + 2.0 * np.eye(len(mean)))
    if np.linalg.eigvalsh(root.T @ drop @ root).max() < 1.0:
        rest = np.linalg.inv(np.eye(len(mean)) - drop @ cov)
        precision = rest @ drop
        return Reading(float(log_p[label]), q[label], drop, 0.5 * (precision + precision.T), rest @ q[label])
    shrink = np.linalg.inv(np.eye(len(mean)) + drop @ cov)
    dropped = shrink @ drop
    return Reading(float(log_p[label]), shrink @ q[label], 0.5 * (dropped + dropped.T), drop, q[label])


class _Pairs(NamedTuple):
    """What is known of each class against each other one alone, each ``(..., K, K)``: two classes are one label."""

    odds: FloatArray  # log odds, exact
    steep: FloatArray  # their slopes in the difference of the two logits
    flat_var: FloatArray  # variance of the difference, flattened as one probit would


def _pairs(mean: FloatArray, cov: FloatArray) -> _Pairs:
    """Compare classes in pairs, from logits ``(..., K)`` and covariances ``(..., K, K)``."""
    n_classes = mean.shape[-1]
    first, second = np.triu_indices(n_classes, 1)
    own = np.diagonal(cov, axis1=-2, axis2=-1)
    var = np.maximum(own[..., first] + own[..., second] - 2.0 * cov[..., first, second], 0.0)
    won, lost = (_SIGMOID.tilt_by_label(mean[..., first] - mean[..., second], var, label) for label in (1.0, 0.0))
    odds, steep, flat_var = np.zeros((3, *mean.shape, n_classes))
    odds[..., first, second] = won.log_z - lost.log_z
    odds[..., second, first] = lost.log_z - won.log_z
    steep[..., first, second] = steep[..., second, first] = won.alpha - lost.alpha
    flat_var[..., first, second] = flat_var[..., second, first] = var / (1.0 + np.pi / 8.0 * var)
    return _Pairs(odds, steep, flat_var)


def _log_probabilities(pairs: _Pairs) -> FloatArray:
    """Log probabilities of the classes, ``(..., K)``.

    For known logits ``1/p_k`` is the sum of all odds against ``k``. For uncertain ones that is a start (Daunizeau
    2017); what it lacks to be right to second order, a common factor aside, is ``Σ_j v_kj p_j p_k / (p_j + p_k)``,
    with ``v`` flattened so that it holds its ground where much is uncertain.
    """
    log_p = -logsumexp(-pairs.odds, axis=-1)
    log_p -= logsumexp(log_p, axis=-1, keepdims=True)
    log_p += (pairs.flat_var * expit(pairs.odds) * np.exp(log_p)[..., None, :]).sum(axis=-1)
    return np.asarray(log_p - logsumexp(log_p, axis=-1, keepdims=True))


def _class_slopes(mean: FloatArray, cov: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Log probabilities ``(K,)`` and their gradients in the logits' means, ``(K, K)``."""
    pairs = _pairs(mean, cov)
    log_p = _log_probabilities(pairs)
    against = softmax(-pairs.odds, axis=1) * pairs.steep
    gradients = np.diag(against.sum(axis=1)) - against
    return log_p, gradients - np.exp(log_p) @ gradients


def marginals(kind: int, mean: FloatArray, cov: FloatArray) -> tuple[FloatArray, FloatArray]:
    """What is predicted from, ``(n, K)``: means and variances of the outputs, for classes of their log odds.

    The log odds of a class against all others are taken for Gaussian, with the variance of their first order and the
    mean that gives the class its probability.
    """
    if kind != CATEGORICAL:
        return mean, np.maximum(np.diagonal(cov, axis1=1, axis2=2), 0.0)
    centre, var = np.empty_like(mean), np.empty_like(mean)
    chunk = max(_PAIRS // mean.shape[1] ** 2, 1)
    for start in range(0, len(mean), chunk):
        part = slice(start, start + chunk)
        centre[part], var[part] = _rest_odds(mean[part], cov[part])
    return centre, var


def _rest_odds(mean: FloatArray, cov: FloatArray) -> tuple[FloatArray, FloatArray]:
    log_p = _log_probabilities(_pairs(mean, cov))
    others = np.where(np.eye(mean.shape[1], dtype=bool), -np.inf, log_p[:, None, :])
    log_rest = logsumexp(others, axis=2)
    slope = np.eye(mean.shape[1]) - np.exp(others - log_rest[..., None])
    var = np.maximum(np.einsum("nki,nij,nkj->nk", slope, cov, slope), 0.0)
    wanted = log_p - log_rest
    centre = wanted * np.sqrt(1.0 + np.pi / 8.0 * var)
    for _ in range(ODDS_STEPS):
        won, lost = (_SIGMOID.tilt_by_label(centre, var, label) for label in (1.0, 0.0))
        centre = centre - (won.log_z - lost.log_z - wanted) / (won.alpha - lost.alpha)
    return centre, var


def removal(
    cov: FloatArray, precision: FloatArray, h: FloatArray, values: FloatArray
) -> tuple[FloatArray, FloatArray] | None:
    """Pull and drop that take a site back, from outputs that are ``values``; None where it can't be taken.

    It can't be where what is left would be no covariance, or next to none.
    """
    n = len(h)
    if np.linalg.eigvals(precision @ cov).real.max() >= 1.0 - SITE_MARGIN:
        return None
    shrink = np.linalg.inv(np.eye(n) - precision @ cov)
    drop = -shrink @ precision
    return shrink @ (precision @ values - h), 0.5 * (drop + drop.T)


def learn_scales(
    kind: int,
    scales: FloatArray,
    mean: FloatArray,
    cov: FloatArray,
    target: FloatArray,
    gain: float,
    most: float,
) -> None:
    """Let a row's errors, with the variances they were predicted with, move the noise and the predictive scale.

    The noise moves as in `univariate.learn_noise`: ``share² (error² - total)`` is exactly how far the row's
    expected squared residual after the step is from the noise now, and ``share²`` what the row knows about it. A
    ``gain`` above 1 lets early rows fade, whose errors came of the network's own ignorance.
    """
    if kind not in (GAUSSIAN, VARYING):
        return
    n = len(target)
    error, var = target - mean[:n], np.diag(cov)
    noise = expected_noise(kind, mean, var, scales[NOISE])
    total = var[:n] + noise
    if scales[NOISE_WEIGHT, 0] > 0.0:
        information = (noise / total) ** 2
        away = information * (error**2 - total)
        if kind == VARYING:  # the noise has a head of its own, and this is but its mean over the rows
            information, away = np.ones(n), noise - scales[NOISE]
        scales[NOISE_WEIGHT] = np.minimum(scales[NOISE_WEIGHT] + information, most)
        step = np.minimum(gain / scales[NOISE_WEIGHT], 1.0)
        scales[NOISE] = np.maximum(scales[NOISE] + step * away, NOISE_FLOOR)
    if scales[SCALE_WEIGHT, 0] > 0.0:
        scales[SCALE_WEIGHT] += 1.0
        step = np.minimum(SCALE_GAIN / scales[SCALE_WEIGHT], 1.0)
        scales[SCALE] += step * (np.minimum(error**2 / total, SCALE_CLIP) - scales[SCALE])
