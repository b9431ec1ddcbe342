"""Moment matches of counts whose rate is the exponential of the pre-activation: Poisson and negative binomial.

A negative binomial count with the mean ``m = e^a`` and the dispersion ``d`` has the variance ``m + d m²``; ``d = 0`` is
Poisson. The log of its probability is concave in ``a``, with the slope ``(y - m)/(1 + d m)``, so the tilted density has
one mode. Its mass lies on both sides of the mode, each side as wide as the density takes to drop by e⁻³⁶ and smooth
over it, which fixed nodes integrate: right to 1e-8 of the posterior's deviation. One set of formulas serves both
counts, for they keep their digits at a dispersion of next to nothing.
"""

import cython
from cython.cimports.libc.math import exp, expm1, fabs, lgamma, log, log1p, sqrt
from cython.cimports.onepass.engine.matches import CountLikelihood, Match
from cython.cimports.onepass.engine.special import LOG_2PI, UNIT, UNIT_WEIGHTS, wright_omega

# Before the first row the log of a learned dispersion has a standard deviation of 2.
DISPERSION_START, DISPERSION_START_WEIGHT = 0.1, 0.5
_DROP = cython.declare(cython.double, 36.0)  # e^-36 is below rounding
_NO_DISPERSION = cython.declare(cython.double, 1e-100)  # of which nothing is left in any sum
_MOST_DISPERSION = cython.declare(cython.double, 1e12)


def _log_normaliser(y, shape):
    """``log Γ(y + shape) - log Γ(shape) - y log shape - log y!``; the large terms of Stirling's series cancel first."""
    if shape < 10.0:
        return lgamma(y + shape) - lgamma(shape) - y * log(shape) - lgamma(y + 1.0)
    total = y + shape
    rest = (1.0 / total - 1.0 / shape) / 12.0 - (total**-3 - shape**-3) / 360.0 + (total**-5 - shape**-5) / 1260.0
    return (total - 0.5) * log1p(y / shape) - y + rest - lgamma(y + 1.0)


def _side(h, p, trials, var):
    """At a distance ``h`` from the mode: how far the log density lies below its peak, and how far the share ``p`` rose.

    The share is ``m d/(1 + m d)``, ``p`` at the mode, and the slope of the log probability ``y - trials share``.
    """
    if h > 30.0:  # where e^h is all there is of the rate, and may be infinite
        left = p + (1.0 - p) * exp(-h)
        return trials * (h + log(left) - p * h) + 0.5 * h * h / var, p * (1.0 - p) / left
    rise = expm1(h)
    grown = p * rise
    share = 1.0 + grown
    if fabs(grown) > 1e-17:
        grown = log1p(grown)
    return trials * (grown - p * h) + 0.5 * h * h / var, p * (1.0 - p) * rise / share


def _mode(mean, var, y, dispersion):
    """Where the tilted density is highest: between the mean and the mode of a Poisson count, whose slope is steeper."""
    # The Poisson mode solves (a - mean)/v = y - e^a; with w = v e^a that is w + log w = mean + v y + log v.
    target = mean + var * y
    omega = wright_omega(target + log(var))
    mode = log(omega / var) if omega > 1.0 else target - omega
    if dispersion <= _NO_DISPERSION:
        return mode
    low = min(mean, mode)
    high = max(mean, mode)
    for _ in range(100):
        rate = exp(min(max(mode, -300.0), 300.0))
        share = 1.0 + dispersion * rate
        slope = (y - rate) / share - (mode - mean) / var
        if slope > 0.0:
            low = mode
        else:
            high = mode
        step = slope / ((1.0 + dispersion * y) * (rate / share) / share + 1.0 / var)
        new = mode + step
        if not low < new < high:
            new = 0.5 * (low + high)
        if fabs(new - mode) <= 1e-15 * (1.0 + fabs(mode)):
            break
        mode = new
    return mode


def _width(side, p, trials, var):
    """The distance from the mode, on one side, at which the density has dropped by e⁻³⁶, or somewhat farther."""
    rate = trials * p
    root = sqrt(2.0 * _DROP / rate)
    # What the Gaussian takes alone, or a Poisson count, which is less than this count takes.
    width = min(sqrt(2.0 * _DROP * var), log1p(_DROP / rate + root) if side > 0.0 else _DROP / rate + 1.0 + root)
    drop, risen = _side(side * width, p, trials, var)
    while drop < _DROP:
        width *= 2.0
        drop, risen = _side(side * width, p, trials, var)
    for _ in range(12):  # Newton's method from beyond: the drop is convex
        if drop < _DROP + 4.0:
            break
        width -= (drop - _DROP) / (side * trials * risen + width / var)
        drop, risen = _side(side * width, p, trials, var)
    return width


def count_match(mean, var, y, dispersion):
    """Match a count, by its own slopes where little changes and by the tilted moments where much does."""
    v = min(max(var, 1e-20), 1e12)
    dispersion = min(max(dispersion, _NO_DISPERSION), _MOST_DISPERSION)
    shape = 1.0 / dispersion
    mode = _mode(mean, v, y, dispersion)
    rate = exp(min(max(mode, -300.0), 300.0))
    trials = y + shape
    p = dispersion * rate / (1.0 + dispersion * rate)
    if p > 0.9999999999999999:  # a rate that is infinite beside the dispersion: the count says nothing more of it
        p = 0.9999999999999999
    z = 0.0
    first = 0.0
    second = 0.0
    bend = 0.0
    away = 0.0
    wide = 0.0
    for half in range(2):
        side = -1.0 if half == 0 else 1.0
        width = _width(side, p, trials, v)
        for i in range(32):
            h = side * width * UNIT[i]
            drop, risen = _side(h, p, trials, v)
            weight = width * UNIT_WEIGHTS[i] * exp(-drop)
            rise = trials * risen
            z += weight
            first += weight * rise
            second += weight * rise * rise
            bend += weight * trials * (p + risen) * (1.0 - p - risen)
            away += weight * h
            wide += weight * h * h
    centre = first / z
    away /= z
    ratio = (wide / z - away * away) / v
    # The tilted moments keep their digits unless nothing changes; the slopes, of a rate with a large variance, do not.
    if ratio < 0.5 or v > 1.0:
        score = (mode - mean + away) / v
        information = (1.0 - ratio) / v
    else:  # score = E~[l'], information = E~[-l''] - Var~[l'], with l the log probability
        score = (mode - mean) / v - centre
        information = min(max(bend / z - (second / z - centre * centre), 0.0), 1.0 / v)
    # log(1 + d e^mode) is mode + log d where that is large, also for a mode at which the rate was bounded.
    over = mode + log(dispersion)
    peak = -y * log(dispersion) - shape * over if over > 40.0 else y * mode - trials * log1p(dispersion * rate)
    peak += _log_normaliser(y, shape) - 0.5 * (mode - mean) * (mode - mean) / v
    return Match(peak + log(z) - 0.5 * (log(v) + LOG_2PI), score, information, ratio)


class PoissonCount(CountLikelihood):
    """A count with the rate ``e^a``."""

    def match(self, mean, var, y, noise):
        """See `count_match`."""
        return count_match(mean, var, y, 0.0)


class NegativeBinomialCount(CountLikelihood):
    """A count with the mean ``e^a`` and the variance ``e^a + noise e^2a``."""

    def match(self, mean, var, y, noise):
        """See `count_match`."""
        return count_match(mean, var, y, noise)
