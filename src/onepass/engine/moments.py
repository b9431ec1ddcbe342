"""Mean, variance and expected slope of an activation ``f(a)`` under ``a ~ N(mean, var)``, one class per activation.

Each class has its formula in ``at``, per number, which compiled loops call; ``moments`` is the same over arrays. Every
formula has its exact limit at a variance of zero, is accurate in all tails and never gives a negative variance.
`PythonMoments` wraps an activation that is written in Python.
"""

import cython
import numpy as np
from cython.cimports.libc.math import NAN, exp, expm1, fabs, log1p, sqrt
from cython.cimports.onepass.engine.special import HERMITE, HERMITE_WEIGHTS, ndtr, pdf, sigmoid
from numpy.polynomial.hermite_e import hermegauss
from numpy.polynomial.legendre import leggauss

# The sigmoid as a mixture of probits, ``Σ p Φ(λ a)``: the minimax fit of eight of them by ``scripts/fit_sigmoid.py``,
# sup |error| = 9.7e-8, sup |error| e^(0.4 |a|) = 1.1e-7.
WEIGHTS = np.array(
    (
        0.00015682321399135214,
        0.0060717825964197,
        0.051383974858443725,
        0.1762352738027478,
        0.31527147222670693,
        0.30552897333949225,
        0.13131933599509205,
        0.01403236396710612,
    )
)
SCALES = np.array(
    (
        0.21155475378601113,
        0.26796359688989824,
        0.33779097885357784,
        0.42925156050366364,
        0.5515052832409671,
        0.714663167826643,
        0.9323612687673016,
        1.2348705916375078,
    )
)
for _i in range(8):
    PROBIT_WEIGHTS[_i] = WEIGHTS[_i]
    PROBIT_SCALES[_i] = SCALES[_i]

_PI = cython.declare(cython.double, 3.141592653589793)
_SMALL = cython.declare(cython.double, 0.5)  # the variance up to which Gauss-Hermite nodes beat the mixture
_TINY = cython.declare(cython.double, 2.2250738585072014e-308)
_FAR = cython.declare(cython.double, 40.0)  # beyond so many deviations density and tail are zero in float64
_MAX_EXPONENT = cython.declare(cython.double, 300.0)

_WIDE = cython.declare(cython.double[21])
_WIDE_WEIGHTS = cython.declare(cython.double[21])
_UNIT = cython.declare(cython.double[24])
_UNIT_WEIGHTS = cython.declare(cython.double[24])
# log(1 + e^-a) and the measure on nodes that crowd towards 0; beyond 36 it is below rounding.
_SIDE = cython.declare(cython.double[48])
_SIDE_VALUES = cython.declare(cython.double[48])
_SIDE_WEIGHTS = cython.declare(cython.double[48])
for _i, (_node, _weight) in enumerate(zip(*hermegauss(21), strict=True)):
    _WIDE[_i], _WIDE_WEIGHTS[_i] = _node if _i != 10 else 0.0, _weight / np.sqrt(2.0 * np.pi)
for _i, (_node, _weight) in enumerate(zip(*leggauss(24), strict=True)):
    _UNIT[_i], _UNIT_WEIGHTS[_i] = 0.5 * (_node + 1.0), 0.5 * _weight
for _i, (_node, _weight) in enumerate(zip(*leggauss(48), strict=True)):
    _SIDE[_i] = 36.0 * (0.5 * (_node + 1.0)) ** 2
    _SIDE_VALUES[_i] = np.log1p(np.exp(-_SIDE[_i]))
    _SIDE_WEIGHTS[_i] = 72.0 * 0.5 * (_node + 1.0) * 0.5 * _weight


class CompiledActivation:
    """An activation as compiled loops call it."""

    def at(self, mean, var):
        """Mean, variance and expected slope; each activation overrides this."""
        return NAN, NAN, NAN

    def one(self, mean, var):
        """Mean, variance and expected slope of one number, without the arrays of `moments`."""
        found = self.at(mean, var)
        self.raise_pending()
        return found

    def moments(self, mean, var) -> "FloatArray":
        """Mean, variance and expected slope of every entry, ``(3, n)``."""
        result = np.empty((3, mean.shape[0]))
        out: cython.double[:, ::1] = result
        i: cython.Py_ssize_t
        with cython.nogil:
            for i in range(mean.shape[0]):
                out[0, i], out[1, i], out[2, i] = self.at(mean[i], var[i])
        self.raise_pending()
        return result

    def raise_pending(self) -> None:
        """Raise the exception of a function in Python that was stored because compiled loops can't raise."""


class RescaledMoments(CompiledActivation):
    """``offset + outer * base(inner * a)``."""

    def __init__(self, base: CompiledActivation, inner: float, outer: float, offset: float):
        self.base, self.inner, self.outer, self.offset = base, inner, outer, offset

    def at(self, mean, var):
        """Moments of the base, rescaled."""
        m, v, slope = self.base.at(self.inner * mean, self.inner * self.inner * var)
        return self.offset + self.outer * m, self.outer * self.outer * v, self.outer * self.inner * slope

    def raise_pending(self):
        """Raise the exception of the base, if any."""
        self.base.raise_pending()

    def __reduce__(self):
        return RescaledMoments, (self.base, self.inner, self.outer, self.offset)


class NarrowedMoments(CompiledActivation):
    """The base, with a share of the variance."""

    def __init__(self, base: CompiledActivation, share: float):
        self.base, self.share = base, share

    def at(self, mean, var):
        """Moments of the base."""
        return self.base.at(mean, self.share * var)

    def raise_pending(self):
        """Those of the base."""
        self.base.raise_pending()

    def __reduce__(self):
        return NarrowedMoments, (self.base, self.share)


class PiecewiseMoments(CompiledActivation):
    """Straight pieces: slope, intercept, start and end of each, ``(4, k)``, neighbours of one slope joined."""

    def __init__(self, pieces):
        self.pieces = np.array(pieces, dtype=np.float64, order="C")
        self.n_pieces = self.pieces.shape[1]
        self.identity = self.n_pieces == 1 and self.pieces[0, 0] == 1.0 and self.pieces[1, 0] == 0.0

    def at(self, mean, var):
        """Sum the moments of a Gaussian cut to each piece; with two pieces equations (12), (13) and (21)."""
        k = self.n_pieces
        slopes = cython.address(self.pieces[0, 0])
        intercepts = cython.address(self.pieces[1, 0])
        ends = cython.address(self.pieces[3, 0])
        if k == 1:
            return slopes[0] * mean + intercepts[0], slopes[0] * slopes[0] * var, slopes[0]
        std = sqrt(var)
        scale = sqrt(max(var, _TINY))
        mu = 0.0
        slope = 0.0
        z = -_FAR
        density = 0.0
        tail = 0.0
        i: cython.Py_ssize_t
        for i in range(k):
            top = _FAR if i == k - 1 else min(max((ends[i] - mean) / scale, -_FAR), _FAR)
            density_top = pdf(top) if i < k - 1 else 0.0
            tail_top = ndtr(-fabs(top)) if i < k - 1 else 0.0
            mass = _mass(z, tail, top, tail_top)
            mu += (slopes[i] * mean + intercepts[i]) * mass + slopes[i] * std * (density - density_top)
            slope += slopes[i] * mass
            z = top
            density = density_top
            tail = tail_top
        # Centred on the mean before squaring: E[f²] - mean² would cancel.
        var_y = 0.0
        z = -_FAR
        density = 0.0
        tail = 0.0
        for i in range(k):
            top = _FAR if i == k - 1 else min(max((ends[i] - mean) / scale, -_FAR), _FAR)
            density_top = pdf(top) if i < k - 1 else 0.0
            tail_top = ndtr(-fabs(top)) if i < k - 1 else 0.0
            mass = _mass(z, tail, top, tail_top)
            gap = slopes[i] * mean + intercepts[i] - mu
            second = mass + z * density - top * density_top
            var_y += gap * gap * mass + 2.0 * gap * slopes[i] * std * (density - density_top)
            var_y += slopes[i] * slopes[i] * var * second
            z = top
            density = density_top
            tail = tail_top
        return mu, max(var_y, 0.0), slope

    def __reduce__(self):
        return PiecewiseMoments, (np.asarray(self.pieces),)


def _mass(low, low_tail, high, high_tail):
    """Mass of the standard normal between two ends, each with the smaller of the masses beyond and before it."""
    if low > 0.0:
        return low_tail - high_tail
    if high > 0.0:
        return 1.0 - high_tail - low_tail
    return high_tail - low_tail


def _tail_and_slope(mean, var):
    """``E[s(-a)]`` and ``E[s'(a)]`` by the mixture."""
    tail = 0.0
    slope = 0.0
    for i in range(N_PROBITS):
        k = PROBIT_SCALES[i] / sqrt(1.0 + PROBIT_SCALES[i] * PROBIT_SCALES[i] * var)
        tail += PROBIT_WEIGHTS[i] * ndtr(-k * mean)
        slope += PROBIT_WEIGHTS[i] * k * pdf(k * mean)
    return tail, slope


def _sigmoid_moments(mean, var):
    """Moments of the sigmoid, on the side where it is small and mirrored by ``s(-a) = 1 - s(a)``.

    For a small variance the integrand is so smooth that eleven Gauss-Hermite nodes are enough. The increments at the
    nodes are taken by ``s(b + h) - s(b) = s(b) s(-b) E / (1 + s(b) E)``, ``E = expm1(h)``: nothing cancels, at any
    distance. Above, the mixture of probits serves. Its tails are Gaussian where the sigmoid's are exponential, so
    wherever the mass lies in the left tail the identities ``s = e^a s(-a)`` and ``s² = e^{2a} (s(-a) - s'(a))`` move
    the integral to the right, where the mixture is good: a factor ``e^a`` only shifts the mean of a Gaussian by its
    variance.
    """
    n = -fabs(mean)
    low: cython.double
    if var <= _SMALL:
        up = sigmoid(n)
        down = sigmoid(-n)
        std = sqrt(var)
        shift = 0.0
        slope = 0.0
        for i in range(11):
            growth = expm1(HERMITE[i] * std)
            d = up * down * growth / (1.0 + up * growth)
            shift += HERMITE_WEIGHTS[i] * d
            slope += HERMITE_WEIGHTS[i] * (up + d) * (down - d)
        var_y = 0.0
        for i in range(11):
            growth = expm1(HERMITE[i] * std)
            gap = up * down * growth / (1.0 + up * growth) - shift
            var_y += HERMITE_WEIGHTS[i] * gap * gap
        low = up + shift
    elif n < -0.5 * var:
        scale = exp(n + 0.5 * var)
        tail, tail_slope = _tail_and_slope(n + var, var)
        low = scale * tail
        second = scale * tail_slope
        if n < -1.5 * var:
            tail, tail_slope = _tail_and_slope(n + 2.0 * var, var)
            second = exp(2.0 * (n + var)) * (tail - tail_slope)
        var_y = max(second - low * low, 0.0)
        slope = low - second
    else:
        low, slope = _tail_and_slope(-n, var)
        var_y = max(low - slope - low * low, 0.0)
    return (1.0 - low if mean > 0.0 else low), var_y, slope


class SigmoidMoments(CompiledActivation):
    """The sigmoid, near-exactly."""

    def at(self, mean, var):
        """By nodes or by the mixture of probits."""
        return _sigmoid_moments(mean, var)


class PaperSigmoidMoments(CompiledActivation):
    """The sigmoid as the paper approximates it: equations (8), (11) and (20)."""

    def at(self, mean, var):
        """One scaled probit stands in for the sigmoid, and the sigmoid for the probit again."""
        lam2 = _PI / 8.0
        t = sqrt(1.0 + lam2 * var)
        lam = sqrt(lam2)
        up = sigmoid(mean / t)
        # 1 - 1/t = (t² - 1) / (t (t + 1)): no cancellation for small variances.
        return (
            up,
            up * sigmoid(-mean / t) * (lam2 * var / (t * (t + 1.0))),
            lam / t * pdf(lam * mean / t),
        )


def _probit_variance(mean, var):
    """Variance of ``Φ(a)``, as one positive integral.

    It is a difference of Owen's T functions, ``2 [T(h, 1) - T(h, x0)]`` with ``h = mean/sqrt(1 + var)`` and
    ``x0 = 1/sqrt(1 + 2 var)``, which cancels; their integrand over ``[x0, 1]`` does not. It is cut where it has
    dropped by e⁻³².
    """
    h2 = min(mean * mean / (1.0 + var), 1e5)
    x0 = 1.0 / sqrt(1.0 + 2.0 * var)
    drop = 64.0 / max(h2, 1e-3)
    width = min(2.0 * var / (1.0 + 2.0 * var) / (1.0 + x0), drop / (x0 + sqrt(x0 * x0 + drop)))
    total = 0.0
    for i in range(24):
        step = width * _UNIT[i]
        total += _UNIT_WEIGHTS[i] * exp(-0.5 * h2 * step * (2.0 * x0 + step)) / (1.0 + (x0 + step) * (x0 + step))
    return exp(-min(0.5 * h2 * (1.0 + x0 * x0), 745.0)) * total * width / _PI


class ProbitMoments(CompiledActivation):
    """``Φ(a)``, exactly."""

    def at(self, mean, var):
        """Mean and slope are a probit and a density again; the variance is one integral."""
        k = 1.0 / sqrt(1.0 + var)
        return ndtr(k * mean), _probit_variance(mean, var), k * pdf(k * mean)


class StepMoments(CompiledActivation):
    """The Heaviside step; at a variance of 0 its slope is 0, also at the jump, where it has no finite value."""

    def at(self, mean, var):
        """The mass above zero."""
        z = min(max(mean / sqrt(max(var, _TINY)), -_FAR), _FAR)
        if var < _TINY:
            return ndtr(z), 0.0, 0.0
        return ndtr(z), ndtr(z) * ndtr(-z), pdf(z) / sqrt(var)


def _mirror(mean, var, low, low_var, low_slope):
    """Moments at ``mean`` from those at ``-|mean|`` of a function with ``f(a) = a + f(-a)``."""
    if mean > 0.0:
        return mean + low, max(var + low_var - 2.0 * var * low_slope, 0.0), 1.0 - low_slope
    return low, low_var, low_slope


class GeluMoments(CompiledActivation):
    """``a Φ(a)``: mean and slope by Stein's lemma; the variance by two routes, each sound where the other cancels."""

    def at(self, mean, var):
        """Moments for a negative mean, where they keep their digits, mirrored."""
        n = -fabs(mean)
        k = 1.0 / sqrt(1.0 + var)
        cdf = ndtr(k * n)
        density = pdf(k * n)
        mu = n * cdf + var * k * density
        slope = cdf + n * k * k * k * density
        if var <= 1.0:
            # var (E f')² + var² ∫ (1 - r) E[f''(X) f''(Y)] dr over correlations r of X and Y, f'' = (2 - a²) φ(a): all
            # terms are positive. The nodes are in 1 - r, cut where the exponential has dropped by e⁻³².
            n2 = min(n * n, 1e5)
            wide = 1.0 + 2.0 * var
            width = min(1.0, 32.0 * wide * wide / (max(var, 1e-12) * (n2 + 32.0 * wide)))
            total = 0.0
            for i in range(24):
                q = var * width * _UNIT[i]
                plus = wide - q
                minus = 1.0 + q
                m = n2 / (plus * plus)
                along = 1.0 - 1.0 / plus
                across = q / minus
                tau = 0.5 * (along + across)
                cov = 0.5 * (along - across)
                fourth = (2.0 - m - tau) * (2.0 - m - tau) + 4.0 * m * cov + 2.0 * cov * cov
                total += _UNIT_WEIGHTS[i] * q * exp(-min(n2 / plus, 745.0)) / sqrt(plus * minus) * fourth
            var_y = var * slope * slope + var * width * total / (2.0 * _PI)
        else:
            # E[a² Φ²] by Stein's lemma, with E[Φ²] = Φ(k n)² + Var Φ.
            s = sqrt(1.0 + var * k * k)
            inner = n * k * k / s
            square = cdf * cdf + _probit_variance(n, var)
            second = (
                (n * n + var) * square
                + 4.0 * n * var * k * density * ndtr(inner)
                + 2.0 * var * var * k * k * k * density * (pdf(inner) / s - n * ndtr(inner))
            )
            var_y = max(second - mu * mu, 0.0)
        return _mirror(mean, var, mu, var_y, slope)


class SoftplusMoments(CompiledActivation):
    """``log(1 + e^a)``, the integral of the sigmoid, so that its slope is the sigmoid's mean."""

    def at(self, mean, var):
        """The rest by nodes around the mean, or as ReLU plus a correction near zero; mirrored."""
        n = -fabs(mean)
        slope, var_y, _ = _sigmoid_moments(n, var)
        std = sqrt(var)
        # Far left f is nearly e^a, and the nodes stay good for longer.
        if var <= 1.0 or (var <= 4.0 and n < -4.0 * (1.0 + var)):
            s = sigmoid(n)
            shift = 0.0
            var_y = 0.0
            for i in range(21):  # f(n + h) - f(n) = log1p(s(n) expm1(h)): no cancellation
                shift += _WIDE_WEIGHTS[i] * log1p(s * expm1(_WIDE[i] * std))
            for i in range(21):
                gap = log1p(s * expm1(_WIDE[i] * std)) - shift
                var_y += _WIDE_WEIGHTS[i] * gap * gap
            mu = log1p(exp(n)) + shift
        else:
            z = n / std
            mu = max(std * pdf(z) + n * ndtr(z), 0.0)
            square = max((n * n + var) * ndtr(z) + n * std * pdf(z), 0.0)
            for i in range(48):
                right = pdf((_SIDE[i] - n) / std) / std
                left = pdf((-_SIDE[i] - n) / std) / std
                value = _SIDE_VALUES[i]
                weight = _SIDE_WEIGHTS[i]
                mu += (right + left) * weight * value
                square += right * 2.0 * weight * _SIDE[i] * value + (right + left) * weight * value * value
            var_y = max(square - mu * mu, 0.0)
        # Var f >= var (E f')² always; far out it is all that is left of the difference.
        return _mirror(mean, var, mu, max(var_y, var * slope * slope), slope)


class ExponentialMoments(CompiledActivation):
    """``e^a``, a log-normal; exponents are cut, so that a hopeless belief gives huge numbers and not infinite ones."""

    def at(self, mean, var):
        """``E = e^{mean + var/2}``, which is also the slope, and ``Var = E² (e^var - 1)``."""
        rate = exp(min(max(mean + 0.5 * var, -_MAX_EXPONENT), _MAX_EXPONENT))
        std = min(rate * sqrt(expm1(min(var, _MAX_EXPONENT))), 1e150)
        return rate, std * std, rate


class PythonMoments(CompiledActivation):
    """An activation written in Python: an object with ``moments(mean, var)``."""

    def __init__(self, activation):
        self.activation = activation
        self.error = None

    def at(self, mean, var):
        """Call the object; an exception is stored for `raise_pending`, and the moments are then NaN."""
        m: cython.double = NAN
        v: cython.double = NAN
        slope: cython.double = NAN
        with cython.gil:
            try:
                m, v, slope = self.activation.moments(mean, var)
            except BaseException as error:
                self.error = error
        return m, v, slope

    def raise_pending(self):
        """Raise the exception that the object raised since the last call, if any."""
        error, self.error = self.error, None
        if error is not None:
            raise error

    def __reduce__(self):
        return PythonMoments, (self.activation,)
