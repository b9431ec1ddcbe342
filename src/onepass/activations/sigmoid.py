"""The sigmoid, whose Gaussian integrals have no closed form: near-exact, and as the paper approximates them.

Near-exact: for a small variance the integrand is so smooth that eleven Gauss-Hermite nodes are enough; for a larger one
the sigmoid is a mixture of probits ``Σ p Φ(λ a)``, whose Gaussian integrals are probits again. The mixture is fitted by
``scripts/fit_sigmoid.py``. Its tails are Gaussian where the sigmoid's are exponential, so wherever the mass lies in the
left tail the identity ``s(a) = e^a s(-a)`` moves the integral to the right, where the mixture is good: a factor ``e^a``
only shifts the mean of a Gaussian by its variance.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit, log_expit, log_ndtr, ndtr

from onepass._typing import FloatArray
from onepass.activations.base import Moments, Tilt, broadcast
from onepass.mathematics.gaussian import gauss_hermite, log_cdf_slopes, pdf

__all__ = ["SCALES", "WEIGHTS", "PaperSigmoid", "Sigmoid", "tilt_by_probits"]

# The minimax fit of eight probits: sup |error| = 9.7e-8, sup |error| e^(0.4 |a|) = 1.1e-7.
WEIGHTS = np.array(
    [
        0.00015682321399135214,
        0.0060717825964197,
        0.051383974858443725,
        0.1762352738027478,
        0.31527147222670693,
        0.30552897333949225,
        0.13131933599509205,
        0.01403236396710612,
    ]
)
SCALES = np.array(
    [
        0.21155475378601113,
        0.26796359688989824,
        0.33779097885357784,
        0.42925156050366364,
        0.5515052832409671,
        0.714663167826643,
        0.9323612687673016,
        1.2348705916375078,
    ]
)
_SMALL = 0.5  # the variance up to which the Gauss-Hermite nodes are better than the mixture
_NODES, _NODE_WEIGHTS = gauss_hermite(11)


@dataclass(frozen=True)
class Sigmoid:
    """The sigmoid ``s(a) = 1 / (1 + exp(-a))`` with near-exact moments.

    Relative errors against quadrature, in all tails, for variances in 1e-6..1e4: mean below 1e-8, variance below 1e-7,
    slope below 2e-8. The tilted mean and variance are right to 1e-7 of the posterior standard deviation.

    Examples
    --------
    >>> mean, var, slope = Sigmoid().moments(0.0, 1.0)
    >>> print(f"{mean:.3f} {var:.3f} {slope:.3f}")
    0.500 0.043 0.207
    """

    def __call__(self, a: ArrayLike, /) -> FloatArray:
        """Value ``s(a)``."""
        return np.asarray(expit(np.asarray(a, dtype=np.float64)))

    def moments(self, mean: ArrayLike, var: ArrayLike, /) -> Moments:
        """Moments, computed on the side where the sigmoid is small and mirrored by ``s(-a) = 1 - s(a)``."""
        mean, var = broadcast(mean, var)
        n = -np.abs(mean)
        small = var <= _SMALL
        by_nodes = _moments_by_nodes(n, np.where(small, var, 0.0))
        by_mixture = _moments_by_mixture(n, np.where(small, 1.0, var))
        low, var_y, slope = (np.where(small, a, b) for a, b in zip(by_nodes, by_mixture, strict=True))
        return Moments(np.where(mean > 0, 1.0 - low, low), var_y, slope)

    def tilt_by_label(self, mean: ArrayLike, var: ArrayLike, label: ArrayLike, /) -> Tilt:
        """Tilt by a label, in the orientation in which the label is 1."""
        mean, var, label = broadcast(mean, var, label)
        sign = 2.0 * label - 1.0
        m = sign * mean
        small = var <= _SMALL
        nodes = _tilt_by_nodes(m, np.where(small, var, 0.0))
        # The tail identity: Z(m, v) = e^{m + v/2} Z(-(m + v), v).
        v = np.where(small, 1.0, var)
        tail = m < -0.5 * v
        mixture = tilt_by_probits(np.where(tail, -(m + v), m), v, WEIGHTS, SCALES)
        log_z = np.where(tail, m + 0.5 * v, 0.0) + mixture.log_z
        alpha = np.where(tail, 1.0 - mixture.alpha, mixture.alpha)
        # -(log s)'' is at most 1/4, so by Cramer-Rao the variance left is at least 1/(1/v + 1/4).
        kappa = np.clip(np.where(small, nodes.kappa, mixture.kappa), 0.0, 1.0 / (var + 4.0))
        log_z = np.where(small, nodes.log_z, log_z)
        return Tilt(log_z, sign * np.where(small, nodes.alpha, alpha), kappa, 1.0 - kappa * var)


def _increments(b: FloatArray, var: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """``s(b)``, ``s(-b)``, ``d`` and ``d / s(b)`` for ``d = s(b + z sqrt(var)) - s(b)`` at every node ``z``.

    From ``s(b + h) - s(b) = s(b) s(-b) E / (1 + s(b) E)``, ``E = expm1(h)``: nothing cancels, at any distance.
    """
    up, down = expit(b)[..., None], expit(-b)[..., None]
    growth = np.expm1(_NODES * np.sqrt(var)[..., None])
    relative = down * growth / (1.0 + up * growth)
    return up, down, up * relative, relative


def _moments_by_nodes(n: FloatArray, var: FloatArray) -> Moments:
    up, down, d, _ = _increments(n, var)
    shift = d @ _NODE_WEIGHTS
    return Moments(
        up[..., 0] + shift,
        (d - shift[..., None]) ** 2 @ _NODE_WEIGHTS,
        ((up + d) * (down - d)) @ _NODE_WEIGHTS,
    )


def _tail_and_slope(mean: FloatArray, var: FloatArray) -> tuple[FloatArray, FloatArray]:
    """``E[s(-a)]`` and ``E[s'(a)]`` by the mixture."""
    k = SCALES / np.sqrt(1.0 + SCALES**2 * var[..., None])
    z = k * mean[..., None]
    return ndtr(-z) @ WEIGHTS, (k * pdf(z)) @ WEIGHTS


def _moments_by_mixture(n: FloatArray, var: FloatArray) -> Moments:
    """Moments for ``n <= 0``, where ``s = e^a s(-a)`` and ``s² = e^a s' = e^{2a} (s(-a) - s'(a))``.

    Each factor ``e^a`` is a shift of the mean by ``var``, made where the mass of the integral is in the left tail.
    """
    tail, deep = n < -0.5 * var, n < -1.5 * var
    scale = np.exp(np.where(tail, n + 0.5 * var, 0.0))
    low, slope = _tail_and_slope(np.where(tail, n + var, -n), var)
    deep_low, deep_slope = _tail_and_slope(np.where(deep, n + 2.0 * var, 0.0), var)
    mean = scale * low
    second = np.where(
        deep,
        np.exp(np.where(deep, 2.0 * (n + var), 0.0)) * (deep_low - deep_slope),
        scale * np.where(tail, slope, low - slope),
    )
    return Moments(mean, np.maximum(second - mean**2, 0.0), np.where(tail, mean - second, slope))


def _tilt_by_nodes(m: FloatArray, var: FloatArray) -> Tilt:
    """``alpha = E~[1 - s]`` and ``kappa = E~[s (1 - s)] - Var~[1 - s]`` under the tilted weights."""
    up, down, d, relative = _increments(m, var)
    gain = 1.0 + relative @ _NODE_WEIGHTS  # Z / s(m)
    weights = _NODE_WEIGHTS * (1.0 + relative) / gain[..., None]
    s, rest = up + d, down - d
    alpha = (weights * rest).sum(axis=-1)
    kappa = (weights * s * rest).sum(axis=-1) - (weights * (rest - alpha[..., None]) ** 2).sum(axis=-1)
    return Tilt(log_expit(m) + np.log(gain), alpha, kappa, 1.0 - kappa * var)


def tilt_by_probits(mean: FloatArray, var: FloatArray, weights: FloatArray, scales: FloatArray) -> Tilt:
    """Tilt by ``Σ p Φ(λ a)``, in the log domain.

    With ``k = λ/sqrt(1 + λ² var)``, ``Z = Σ p Φ(k mean)``. Weighted by each probit's share of it, and with the slopes
    ``r, q`` of ``log Φ``: ``alpha = E[k r]``, ``kappa = E[k² q] - Var[k r]``.
    """
    k = scales / np.sqrt(1.0 + scales**2 * var[..., None])
    z = k * mean[..., None]
    log_parts = np.log(weights) + log_ndtr(z)
    top = log_parts.max(axis=-1, keepdims=True)
    parts = np.exp(log_parts - top)
    total = parts.sum(axis=-1, keepdims=True)
    share = parts / total
    r, q, _ = log_cdf_slopes(z)
    alpha = (share * k * r).sum(axis=-1)
    kappa = (share * k**2 * q).sum(axis=-1) - (share * (k * r - alpha[..., None]) ** 2).sum(axis=-1)
    return Tilt((top + np.log(total))[..., 0], alpha, kappa, 1.0 - kappa * var)


@dataclass(frozen=True)
class PaperSigmoid:
    """The sigmoid with the approximate moments of the paper.

    One scaled probit ``Φ(λ a)``, ``λ² = π/8``, stands in for the sigmoid, and the sigmoid for the probit again. Errors
    against quadrature for means in -20..20 and variances in 1e-6..1e4: mean below 0.018, variance below 0.016, slope
    below 0.009.

    Examples
    --------
    >>> mean, var, slope = PaperSigmoid().moments(0.0, 1.0)
    >>> print(f"{mean:.3f} {var:.3f} {slope:.3f}")
    0.500 0.038 0.212
    """

    def __call__(self, a: ArrayLike, /) -> FloatArray:
        """Value ``s(a)``."""
        return Sigmoid()(a)

    def moments(self, mean: ArrayLike, var: ArrayLike, /) -> Moments:
        """Moments by equations (muy_sigmoid), (sigmay_sigmoidapprox) and (backward_sigmaya-sigmoid-final)."""
        mean, var = broadcast(mean, var)
        lam2 = np.pi / 8.0
        t = np.sqrt(1.0 + lam2 * var)
        mu_y = expit(mean / t)
        # 1 - 1/t = (t² - 1) / (t (t + 1)): no cancellation for small variances.
        var_y = mu_y * expit(-mean / t) * (lam2 * var / (t * (t + 1.0)))
        lam = np.sqrt(lam2)
        return Moments(mu_y, var_y, lam / t * pdf(lam * mean / t))
