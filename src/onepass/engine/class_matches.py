"""Moment matches of one class among several, whose logits are the outputs of a network.

The class is the one whose logit plus a Gumbel variable of its own is largest. For independent logits its probability is
an integral over one dimension, ``∫ f_y(u) Π F_j(u) du``, with the distribution functions and densities of `gumbel`:
given the largest value ``u``, the logits are independent. All that is needed of it, for any number of classes, are
weighted means over some twenty nodes.

Correlated logits are matched as the independent ones whose differences have the same variances, as nearly as can be;
only differences matter. What is learned is a Gaussian site, which then meets the covariance as it is.
"""

import cython
from cython.cimports.libc.math import INFINITY, exp, expm1, fabs, floor, log, log1p, sqrt
from cython.cimports.onepass.engine.gumbel import (
    N_TERMS,
    log_pdf,
    prepare_logit,
    rough_cdf_slopes,
    rough_pdf_slopes,
    scaled_cdf,
)
from cython.cimports.onepass.engine.matches import copies_after, copies_now, sigmoid_label
from cython.cimports.onepass.engine.small_matrices import add_square, divide_by_root, factorise
from cython.cimports.onepass.engine.vector_matches import (
    MOST_NODES,
    VectorLikelihood,
    VectorMatch,
    as_array,
    temper_separate,
)
from numpy.polynomial.laguerre import laggauss
from numpy.polynomial.legendre import leggauss

_PI_8 = cython.declare(cython.double, 0.39269908169872414)  # π/8: one probit for the sigmoid
_ODDS_STEPS = cython.declare(cython.int, 4)  # of Newton's method, on a function that is all but straight
_COARSE = cython.declare(cython.double, 1.3)  # of the first nodes, in deviations; their midpoints come next
_TOLERANCE = cython.declare(cython.double, 1e-3)  # change by the midpoints; what they leave is about its square
_DRIFT = cython.declare(cython.double, 3e-4)  # of the integral of a slope, which is zero, in peak widths
_NEGLIGIBLE = cython.declare(cython.double, 16.0)  # nodes so far below the highest, in logs, end the range
_FAINT = cython.declare(cython.double, 1e-2)  # a slope below which the density's own tail serves probabilities
_NARROW = cython.declare(cython.double, 0.3)  # variances up to which the nodes for known logits serve
_NARROWEST = cython.declare(cython.double, 0.1)  # and up to which eight of them do
_MOVED = cython.declare(cython.double, 0.1)  # deviations by which correlations must move a mean to matter
_MOST_STEPS = cython.declare(cython.int, 12)  # of the first nodes to one side
_MOST_PANELS = cython.declare(cython.int, MOST_NODES // 16)  # to one side, of eight nodes
_PANEL = cython.declare(cython.double, 1.3)  # deviations that a panel spans
_PANEL_FALL = cython.declare(cython.double, 3.0)  # by which it may fall, in logs
_NEAR = cython.declare(cython.double, 0.3)  # deviations from the peak that nodes may be centred at
_UNIT_TOLERANCE = cython.declare(cython.double, 2e-5)  # of the sum of all probabilities
_SWEEPS = cython.declare(cython.int, 10)
_COARSEST = cython.declare(cython.double, 2e-3)  # root of the relative error of a unlikely class's slope, about
_COARSEST_NODE = cython.declare(cython.double, 2e-2)  # the most that it may be at a node that matters
_DIVERGES = cython.declare(cython.double, 0.25)  # from where on it tells that the series does not serve at all
_UNLIKELY = cython.declare(cython.double, 0.03)  # expected e^(logit - u) up to which a class may be unlikely
_WEIGHTY = cython.declare(cython.double, -9.0)  # log of a node's share of the highest from which it matters so
_LAGUERRE = cython.declare(cython.double[20])  # of rules with 8 and 12
_LAGUERRE_LOG_WEIGHTS = cython.declare(cython.double[20])
for _start, _count in ((0, 8), (8, 12)):
    for _i, (_node, _weight) in enumerate(zip(*laggauss(_count), strict=True), _start):
        _LAGUERRE[_i], _LAGUERRE_LOG_WEIGHTS[_i] = log(_node), log(_weight) + _node - log(_node)
_LEGENDRE = cython.declare(cython.double[8])  # over [0, 1]
_LEGENDRE_LOG_WEIGHTS = cython.declare(cython.double[8])
for _i, (_node, _weight) in enumerate(zip(*leggauss(8), strict=True)):
    _LEGENDRE[_i], _LEGENDRE_LOG_WEIGHTS[_i] = 0.5 * (_node + 1.0), log(0.5 * _weight)


def separate(n, mean, cov, out):
    """Fill means and variances of the independent logits that stand for the correlated ones, and prepare them.

    Least squares of the variances of all differences, pairs weighted by how probable their classes are: in closed form
    for equal weights, from which sweeps go on, one variance after the other, none negative. What covariance is still
    lacking moves the means, to first order as it moves the probabilities.
    """
    v = out.variances
    j: cython.Py_ssize_t
    k: cython.Py_ssize_t
    total = 0.0
    widest = 0.0
    for j in range(n):
        out.centre[j] = mean[j]
        v[j] = 0.0
        for k in range(n):
            v[j] += max(cov[j * n + j] + cov[k * n + k] - 2.0 * cov[j * n + k], 0.0)
        total += v[j]
        widest = max(widest, v[j])
    for j in range(n):
        v[j] = max((v[j] - total / (2.0 * (n - 1))) / (n - 2), 0.0)
    # Independent logits are found so; only others take the sweeps.
    worst = 0.0
    for j in range(n):
        for k in range(j):
            worst = max(worst, fabs(cov[j * n + j] + cov[k * n + k] - 2.0 * cov[j * n + k] - v[j] - v[k]))
    if worst > 1e-9 * widest:
        weight = out.log_p
        rough_probabilities(n, mean, out)
        for j in range(n):
            weight[j] += 0.3 / n
        for _ in range(_SWEEPS):
            for j in range(n):
                gap = weight[j] * v[j]
                for k in range(n):
                    gap += weight[k] * (cov[j * n + j] + cov[k * n + k] - 2.0 * cov[j * n + k] - v[k])
                v[j] = max(gap / (1.3 - weight[j]), 0.0)
        rough_probabilities(n, mean, out)
        common = 0.0
        for j in range(n):
            common += 2.0 * weight[j] * v[j]
        flattened = sqrt(1.0 + _PI_8 * common)
        for j in range(n):
            move = 0.5 * (cov[j * n + j] - v[j]) + weight[j] * v[j]
            for k in range(n):
                move -= cov[j * n + k] * weight[k]
            out.centre[j] += move / flattened
    for j in range(n):
        prepare_logit(v[j], out.terms + j * N_TERMS)
    out.n_likely = n
    out.unlikely = 0.0
    out.unlikely_square = 0.0
    out.coarsest = 0.0


def is_diagonal(n, cov):
    """Whether logits are independent."""
    j: cython.Py_ssize_t
    k: cython.Py_ssize_t
    for j in range(n):
        for k in range(j):
            if cov[j * n + k] != 0.0:
                return False
    return True


def log_sum(n, values):
    """Log of the sum of exponentials."""
    j: cython.Py_ssize_t
    top = -INFINITY
    total = 0.0
    for j in range(n):
        top = max(top, values[j])
    for j in range(n):
        total += exp(values[j] - top)
    return top + log(total)


def keep_all(n, mean, cov, out):
    """Prepare independent logits, each with terms of its own."""
    j: cython.Py_ssize_t
    for j in range(n):
        out.likely[j] = j
        out.centre[j] = mean[j]
        out.variances[j] = max(cov[j * n + j], 0.0)
        prepare_logit(out.variances[j], out.terms + j * N_TERMS)
    out.n_likely = n
    out.unlikely = 0.0
    out.unlikely_square = 0.0
    out.coarsest = 0.0


def keep_likely(n, mean, cov, label, out):
    """Prepare independent logits: the likely ones, the label's or the likeliest in any case; the others together.

    Where ``q = E e^(a - u)`` is small, ``log F = -q + (e^v - 1) q²/2`` but for ``(e^v - 1)² (e^v + 2) q³/6``, the next
    cumulant of ``e^(a - u)``. So the unlikely classes together are a quadratic in ``e^-u``, and the slope of each is
    right to the square of ``coarsest``, times that of ``e^(origin - u)``.
    """
    j: cython.Py_ssize_t
    at: cython.Py_ssize_t = 0
    sure: cython.Py_ssize_t = max(label, 0)
    if label < 0:
        for j in range(n):
            if mean[j] > mean[sure]:
                sure = j
    out.unlikely = 0.0
    out.unlikely_square = 0.0
    out.coarsest = 0.0
    for j in range(n):
        var = max(cov[j * n + j], 0.0)
        gap = mean[j] - out.origin + 1.5 * var
        if j != sure and gap < 0.0 and var < 100.0:
            q = exp(mean[j] - out.origin + 0.5 * var)
            growth = expm1(var)
            coarse = q * growth * sqrt(0.5 * (growth + 3.0))
            if coarse < _COARSEST and q < _UNLIKELY:
                out.unlikely += q
                out.unlikely_square += q * q * growth
                out.coarsest = max(out.coarsest, coarse)
                continue
        out.likely[at] = j
        out.centre[at] = mean[j]
        out.variances[at] = var
        prepare_logit(var, out.terms + at * N_TERMS)
        at += 1
    out.n_likely = at


def unlikely_curvature(t, out):
    """The unlikely classes' factor of ``t²/2``; none so far down that the quadratic would rise again."""
    return out.unlikely_square if out.coarsest * t < _DIVERGES else 0.0


def total_slope(slopes, out):
    """The derivative in ``u``, but for the sign, of all classes' terms at a node."""
    j: cython.Py_ssize_t
    t = slopes[out.n_likely]
    total = (unlikely_curvature(t, out) * t - out.unlikely) * t
    for j in range(out.n_likely):
        total += slopes[j]
    return total


def rough_probabilities(n, mean, out):
    """Fill probabilities, in ``log_p``, by logits shrunk as one probit for the sigmoid says."""
    j: cython.Py_ssize_t
    top = -INFINITY
    total = 0.0
    for j in range(n):
        top = max(top, mean[j])
    for j in range(n):
        out.log_p[j] = exp((mean[j] - top) / sqrt(1.0 + _PI_8 * out.variances[j]))
        total += out.log_p[j]
    for j in range(n):
        out.log_p[j] /= total


def evaluate(n, mean, label, u, slopes, out):
    """Log of the label's integrand at ``u``, and its gradient in the means; without a label (-1) that of ``Π F``.

    The slopes of the likely classes are followed by ``e^(origin - u)``, of which those of the unlikely ones are made.
    """
    total = 0.0
    slopes[n] = 0.0
    if out.unlikely > 0.0:
        t = exp(out.origin - u)
        slopes[n] = t
        total = (0.5 * unlikely_curvature(t, out) * t - out.unlikely) * t
    product = 1.0
    j: cython.Py_ssize_t
    for j in range(n):
        x = mean[j] - u
        terms = out.terms + j * N_TERMS
        if j == label:
            value, slope = log_pdf(x, out.variances[j], terms)
            slopes[j] = slope
            total += value
            continue
        scale, cdf, slope = scaled_cdf(x, out.variances[j], terms)
        slopes[j] = -slope
        total -= scale
        product *= cdf
        if product < 1e-200:
            total += log(product)
            product = 1.0
        if label < 0 and slope < _FAINT:
            log_f, _ = log_pdf(x, out.variances[j], terms)
            slopes[j] = -exp(log_f + scale) / cdf
    return total + log(product)


def rough_slopes(n, mean, label, u, out):
    """First and minus the second derivative of the log integrand in ``u``, if Gumbel variables were Gaussian."""
    first = 0.0
    second = 0.0
    j: cython.Py_ssize_t
    for j in range(n):
        if j == label:
            slope, bend = rough_pdf_slopes(mean[j] - u, out.variances[j])
        else:
            slope, bend = rough_cdf_slopes(mean[j] - u, out.variances[j])
        first += slope
        second += bend
    if out.unlikely > 0.0:
        slope = out.unlikely * exp(out.origin - u)
        first += slope
        second += slope
    return first, max(second, 1e-200)


def rough_peak(n, mean, label, out):
    """Where an integrand peaks and how sharply if Gumbel variables were Gaussian, by Newton's method within bounds.

    The density of the largest value, without a label (-1), peaks where the square of the first derivative of
    ``log Π F`` is minus the second.
    """
    j: cython.Py_ssize_t
    low = -INFINITY
    high = -INFINITY
    for j in range(n):
        far = 8.0 * sqrt(2.0 + out.variances[j])
        if label < 0 or j == label:
            low = max(low, mean[j] - (far if label < 0 else 0.0))
        high = max(high, mean[j] + far)
    u = 0.5 * (low + high) if label < 0 else low + 0.5
    sharpness = 1.0
    for _ in range(80):
        first, second = rough_slopes(n, mean, label, u, out)
        if label < 0:
            first = max(first, 1e-100)
            sharpness = second / first
            gap = log(first / sharpness)
            near = _NEAR
        else:
            sharpness = second
            gap = first
            near = _NEAR * sqrt(second)
        if fabs(gap) < near:
            break
        if gap > 0.0:
            low = u
        else:
            high = u
        u += gap / sharpness
        if not low < u < high:
            u = 0.5 * (low + high)
    return Peak(u, sharpness)


def find_peak(n, mean, label, out):
    """Where the label's integrand peaks and how sharply, to a part of its width: from the rough one by secants."""
    peak = rough_peak(n, mean, label, out)
    slopes = out.slopes
    low = -INFINITY
    high = INFINITY
    last_u = 0.0
    last_gap = 0.0
    i: cython.Py_ssize_t
    for i in range(12):
        evaluate(n, mean, label, peak.u, slopes, out)
        gap = -total_slope(slopes, out)
        if i > 0 and fabs(peak.u - last_u) > 1e-9 * fabs(peak.u):
            sharpness = -(gap - last_gap) / (peak.u - last_u)
            if sharpness > 0.1 * peak.sharpness:
                peak.sharpness = min(sharpness, 10.0 * peak.sharpness)
        # One secant in any case, for the sharpness.
        if fabs(gap) < (_NEAR if i > 0 else 1e-3) * sqrt(peak.sharpness):
            break
        if gap > 0.0:
            low = peak.u
        else:
            high = peak.u
        last_u = peak.u
        last_gap = gap
        # Slopes grow exponentially to the left of a peak.
        peak.u += (log(1.0 + gap) if gap > 0.0 else gap) / peak.sharpness
        if not low < peak.u < high:
            peak.u = 0.5 * (low + high)
    return peak


def stretch(y, sharpness):
    """Solve ``U + e^-U - 1 = sharpness y²/2`` for the ``U`` with the sign of ``y``; with its derivative.

    ``e^-(U + e^-U)`` is the shape of the integrand for known logits, and for uncertain ones nearly so; in terms of
    ``y`` it is nearly Gaussian, and evenly spaced nodes serve best.
    """
    s = sqrt(sharpness) * y
    # The series serves where the equation would cancel, and as a start; on the far left the logarithm does.
    U = s * (1.0 + s * (1.0 / 6.0 + s / 36.0))
    if fabs(s) < 1e-2:
        return U, sqrt(sharpness) * (1.0 + s * (1.0 / 3.0 + s / 12.0))
    level = 0.5 * s * s
    if s < -2.0:
        U = -log(1.0 - s + level)
    elif s > 2.0:
        U = 1.0 + level
    for _ in range(8):
        e = exp(-U)
        change = (U + e - 1.0 - level) / (1.0 - e)
        U -= change
        if fabs(change) < 1e-4 * fabs(U):
            break
    return U, sharpness * y / (1.0 - exp(-U))


def share_weights(count, out):
    """Turn the logs of the nodes' weights into shares of the integral, whose log is returned."""
    weights = out.node_weights
    i: cython.Py_ssize_t
    top = -INFINITY
    total = 0.0
    for i in range(count):
        top = max(top, weights[i])
    for i in range(count):
        weights[i] = exp(weights[i] - top)
        total += weights[i]
    for i in range(count):
        weights[i] /= total
    return top + log(total)


def largest_fall(count, label, out):
    """``e^(origin - u)`` at the lowest node that matters."""
    i: cython.Py_ssize_t
    top = -INFINITY
    for i in range(count):
        top = max(top, node_value(i, label, out))
    fall = 0.0
    for i in range(count):
        if node_value(i, label, out) > top + _WEIGHTY:
            fall = max(fall, out.slopes[i * (out.n_likely + 1) + out.n_likely])
    return fall


def node_value(i, label, out):
    """Log of a node's part of the integral, be it a label's or of all classes."""
    if label >= 0:
        return out.node_weights[i]
    slope = -total_slope(out.slopes + i * (out.n_likely + 1), out)
    return out.node_weights[i] + log(max(slope, 1e-300))


def spread_slopes(n, mean, cov, count, out):
    """Put the slopes of all classes at every node in place of those of the likely ones.

    From the last on, so that none is overwritten that is still to be moved.
    """
    m = out.n_likely
    factor = out.third
    bend = out.third + n
    i: cython.Py_ssize_t
    j: cython.Py_ssize_t
    at: cython.Py_ssize_t
    for j in range(n):
        out.centre[j] = mean[j]
        out.variances[j] = max(cov[j * n + j], 0.0)
        factor[j] = exp(min(mean[j] - out.origin + 0.5 * out.variances[j], 0.0))
        bend[j] = factor[j] * factor[j] * expm1(min(out.variances[j], 100.0))
    for i in range(count - 1, -1, -1):
        old = out.slopes + i * (m + 1)
        slopes = out.slopes + i * (n + 1)
        t = old[m]
        slopes[n] = t
        at = m
        for j in range(n - 1, -1, -1):
            if at > 0 and out.likely[at - 1] == j:
                at -= 1
                slopes[j] = old[at]
            else:
                slopes[j] = (bend[j] * t - factor[j]) * t
    out.n_likely = n
    out.unlikely = 0.0
    out.unlikely_square = 0.0


def position(label, out):
    """Where a class, or -1, stands among the likely ones."""
    i: cython.Py_ssize_t
    for i in range(out.n_likely):
        if out.likely[i] == label:
            return i
    return -1


class CategoricalOutputs(VectorLikelihood):
    """One of K classes, whose logits are the outputs."""

    def __init__(self, n_outputs: int):
        self.n_outputs = self.size = n_outputs
        self.n_columns = 1

    def accepts(self, target):
        """The number of a class."""
        return 0.0 <= target[0] < self.n_outputs and target[0] == floor(target[0])

    def log_uninformative(self, target):
        """Any class is as probable."""
        return -log(cython.cast(cython.double, self.n_outputs))

    def wrong_given_uninformative(self, target):
        """All but those that are right by chance."""
        return 1.0 - 1.0 / self.n_outputs

    def match_trusted(self, mean, cov, target, state, out):
        """The moments of all logits given the label; two logits are one label of their difference, exactly.

        Correlations that the independent logits lack move the mean under the label as well, by what they lack times
        the score: where that is much, the label is matched again around the moved mean.
        """
        n = self.n_outputs
        label = cython.cast(cython.Py_ssize_t, target[0])
        if n == 2:
            return self.match_two(mean, cov, label, out)
        if is_diagonal(n, cov):
            log_z = self.average_nodes(self.place_likely(mean, cov, label, out), label, out)
        else:
            separate(n, mean, cov, out)
            log_z = self.average_nodes(self.place_nodes(label, out), label, out)
            for _ in range(3):
                if not self.move_centre(mean, cov, out):
                    break
                self.average_nodes(self.place_nodes(label, out), label, out)
        self.find_site(mean, out)
        self.meet_covariance(cov, out)
        return log_z

    def match_two(self, mean, cov, label, out):
        """The match of a label whose logit is the difference of two."""
        var = max(cov[0] + cov[3] - 2.0 * cov[1], 0.0)
        pair = sigmoid_label(mean[0] - mean[1], var, 1.0 - label)
        i: cython.Py_ssize_t
        for i in range(4):
            sign = 1.0 if i in (0, 3) else -1.0
            out.information[i] = sign * pair.information
            out.precision[i] = sign * pair.information / pair.variance_ratio
        for i in range(2):
            sign = 1.0 if i == 0 else -1.0
            out.score[i] = sign * pair.score
            out.shift[i] = sign * pair.score / pair.variance_ratio
        return pair.log_z

    def match_separate(self, mean, cov, target, state, out):
        """The match of independent logits, whose cost grows as the number of likely classes does."""
        if self.n_outputs == 2:
            return VectorLikelihood.match_separate(self, mean, cov, target, state, out)
        if state.row_weight > 1.0:
            return self.match_separate_copies(mean, cov, target, state, out)
        log_z = self.match_separate_once(mean, cov, target, state, out)
        state.row_evidence = state.row_weight * log_z
        if state.row_weight < 1.0:
            temper_separate(self.n_outputs, state.row_weight, cov, out)
        return log_z

    def match_separate_once(self, mean, cov, target, state, out):
        """The match of one copy of a label."""
        label = cython.cast(cython.Py_ssize_t, target[0])
        log_z = self.match_logits(mean, cov, label, out)
        if state.trust.active:
            log_z = self.doubt_separate(log_z, target, state, out)
        return log_z

    def match_separate_copies(self, mean, cov, target, state, out):
        """The match of several copies of a label, one after the other; the first one's log probability.

        Steps that follow each other in one direction are a step in it: see `step.learn_scalar`.
        """
        n = self.n_outputs
        k: cython.Py_ssize_t
        ratios = out.copy_precision
        for k in range(n):
            out.copy_mean[k] = mean[k]
            out.copy_cov[k * (n + 1)] = cov[k * (n + 1)]
            out.copy_shift[k] = 0.0
            out.copy_precision[n + k] = 0.0
            ratios[k] = 1.0
        first = 0.0
        evidence = 0.0
        left = state.row_weight
        while left > 0.0:
            part = copies_now(left, state.row_weight)
            log_z = self.match_separate_once(out.copy_mean, out.copy_cov, target, state, out)
            evidence += part * log_z
            if left == state.row_weight:
                first = log_z
            if part != 1.0:
                temper_separate(n, part, out.copy_cov, out)
            for k in range(n):
                var = out.copy_cov[k * (n + 1)]
                out.copy_shift[k] += out.score[k] * ratios[k]
                out.copy_precision[n + k] += out.own_information[k] * ratios[k] * ratios[k]
                ratio = max(1.0 - out.own_information[k] * var, 0.0)
                out.copy_mean[k] += out.score[k] * var
                out.copy_cov[k * (n + 1)] = var * ratio
                ratios[k] *= ratio
            left = copies_after(left, part)
        for k in range(n):
            out.score[k] = out.copy_shift[k]
            out.own_information[k] = out.copy_precision[n + k]
        state.row_evidence = evidence
        return first

    def match_logits(self, mean, cov, label, out):
        """Score and own information of independent logits; the label's log probability.

        A logit's information is the covariance, over the nodes, of its slope and the sum of all others: what its
        differences from them say. No label leaves less than ``(V⁻¹ + 1/2)⁻¹``.
        """
        n = self.n_outputs
        count = self.place_likely(mean, cov, label, out)
        log_z = share_weights(count, out)
        score = out.score
        information = out.own_information
        i: cython.Py_ssize_t
        j: cython.Py_ssize_t
        self.fill_score(count, out)
        middle = 0.0
        for j in range(n):
            middle += score[j]
            information[j] = 0.0
        for i in range(count):
            weight = out.node_weights[i]
            if weight > 1e-16:
                slopes = out.slopes + i * (n + 1)
                away = total_slope(slopes, out) - middle
                for j in range(n):
                    own = slopes[j] - score[j]
                    information[j] += weight * own * (away - own)
        for j in range(n):
            information[j] = min(max(information[j], 0.0), 1.0 / (2.0 + out.variances[j]))
        score[label] -= middle
        return log_z

    def place_likely(self, mean, cov, label, out):
        """Place nodes for independent logits, fill the slopes of all classes there and return the number of nodes.

        Faint classes together cost no more at a node than an exponential. Where nodes that matter are so far below that
        they are not unlikely there, fewer are.
        """
        n = self.n_outputs
        out.origin = log_sum(n, mean)
        for _ in range(3):
            keep_likely(n, mean, cov, label, out)
            count = self.place_nodes(position(label, out), out)
            if out.n_likely == n:
                return count
            fall = largest_fall(count, label, out)
            if out.coarsest * fall <= _COARSEST_NODE:
                spread_slopes(n, mean, cov, count, out)
                return count
            out.origin -= log(fall)
        keep_all(n, mean, cov, out)
        return self.place_nodes(label, out)

    def fill_score(self, count, out):
        """The mean of the slopes over the nodes."""
        n = self.n_outputs
        i: cython.Py_ssize_t
        j: cython.Py_ssize_t
        for j in range(n):
            out.score[j] = 0.0
        for i in range(count):
            weight = out.node_weights[i]
            if weight > 1e-16:
                slopes = out.slopes + i * (n + 1)
                for j in range(n):
                    out.score[j] += weight * slopes[j]

    def doubt_separate(self, log_z, target, state, out):
        """Mix the match of a trusted label with one that says nothing."""
        log_z, says = self.note_uninformative(log_z, target, state)
        j: cython.Py_ssize_t
        for j in range(self.n_outputs):
            scatter = says * (1.0 - says) * out.score[j] * out.score[j]
            out.own_information[j] = says * out.own_information[j] - scatter
            out.score[j] *= says
        return log_z

    def average_nodes(self, count, label, out):
        """Score and information, in ``first``, of independent logits around ``centre``; the label's log probability.

        Off its diagonal the information is minus the covariance of the slopes over the nodes. All slopes rise with
        ``u``, so no entry is positive; and adding a number to all logits changes nothing, so rows sum to 0. Made so,
        the information is that of differences, and never negative.
        """
        n = self.n_outputs
        log_z = share_weights(count, out)
        weights = out.node_weights
        score = out.score
        information = out.first
        i: cython.Py_ssize_t
        j: cython.Py_ssize_t
        k: cython.Py_ssize_t
        self.fill_score(count, out)
        for i in range(n * n):
            information[i] = 0.0
        for i in range(count):
            if weights[i] <= 1e-16:
                continue
            for j in range(n):
                out.vector[j] = out.slopes[i * (n + 1) + j] - score[j]
            for j in range(n):
                share = weights[i] * out.vector[j]
                for k in range(j):
                    information[j * n + k] -= share * out.vector[k]
        rest = 0.0
        for j in range(n):
            if j != label:
                rest += score[j]
            for k in range(j):
                entry = min(information[j * n + k], 0.0)
                information[j * n + k] = entry
                information[k * n + j] = entry
                information[j * n + j] -= entry
                information[k * n + k] -= entry
        score[label] = -rest
        return log_z

    def place_nodes(self, label, out):
        """Fill the slopes at all nodes and the logs of the nodes' weights; return the number of nodes.

        Where all logits are narrow the integrand is that of known logits times something smooth: Gauss-Laguerre nodes.
        Else evenly spaced nodes over the stretched range, and midpoints until they change little. Without a label (-1)
        the nodes serve the integrals of all classes, whose sum is the density of the largest value; there may be none.
        """
        n = out.n_likely
        j: cython.Py_ssize_t
        widest = 0.0
        for j in range(n):
            widest = max(widest, out.variances[j])
        if widest <= _NARROW:
            return self.laguerre_nodes(label, widest <= _NARROWEST, out)
        peak = find_peak(n, out.centre, label, out) if label >= 0 else rough_peak(n, out.centre, -1, out)
        lattice = Lattice(peak.u, peak.sharpness, 1.0, 0.0, 0.0, 0, -INFINITY, 0.0, 0.0, 0.0)
        if label >= 0:
            lattice.shape = peak.sharpness
        if not self.start_lattice(cython.address(lattice), label, out):
            return self.panel_nodes(peak.u, label, out) if label >= 0 else 0
        step = _COARSE
        for _ in range(2):
            before = lattice.total
            self.add_midpoints(cython.address(lattice), step, label, out)
            step *= 0.5
            if fabs(lattice.total - 2.0 * before) > _TOLERANCE * lattice.total:
                continue
            # The integral of a label's slope is zero, which a total that agrees by chance does not show.
            if label < 0 or fabs(lattice.drift) <= _DRIFT * sqrt(peak.sharpness) * lattice.total:
                for j in range(lattice.count):
                    out.node_weights[j] += log(step)
                return lattice.count
        return self.panel_nodes(peak.u, label, out) if label >= 0 else 0

    def laguerre_nodes(self, label, few, out):
        """The nodes for known logits, eight or twelve around the log of the sum of their exponentials."""
        n = out.n_likely
        i: cython.Py_ssize_t
        top = log_sum(n, out.centre)
        if out.unlikely > 0.0:
            top += log1p(out.unlikely * exp(out.origin - top))
        start = 0 if few else 8
        count = 8 if few else 12
        for i in range(count):
            value = evaluate(n, out.centre, label, top - _LAGUERRE[start + i], out.slopes + i * (n + 1), out)
            out.node_weights[i] = value + _LAGUERRE_LOG_WEIGHTS[start + i]
        return count

    def add_node(self, lattice, y, label, out):
        """Evaluate one more node, and return the log of its part of the integral, be it a label's or of all classes."""
        n = out.n_likely
        i = lattice.count
        U, derivative = stretch(y, lattice.shape)
        slopes = out.slopes + i * (n + 1)
        value = evaluate(n, out.centre, label, lattice.u + U / lattice.scale, slopes, out) + log(
            derivative / lattice.scale
        )
        out.node_weights[i] = value
        lattice.count = i + 1
        slope = -total_slope(slopes, out)
        if label < 0:
            value += log(max(slope, 1e-300))
        if i == 0:
            lattice.first = value
        lattice.top = max(lattice.top, value)
        part = exp(value - lattice.first)
        lattice.total += part
        lattice.drift += part * slope
        return value

    def start_lattice(self, lattice, label, out):
        """Nodes from the peak to both sides, until they are negligible; False where they are never."""
        self.add_node(lattice, 0.0, label, out)
        for _ in range(_MOST_STEPS):
            lattice.high += _COARSE
            if self.add_node(lattice, lattice.high, label, out) < lattice.top - _NEGLIGIBLE:
                break
        else:
            return False
        for _ in range(_MOST_STEPS):
            lattice.low -= _COARSE
            if self.add_node(lattice, lattice.low, label, out) < lattice.top - _NEGLIGIBLE:
                return True
        return False

    def add_midpoints(self, lattice, step, label, out):
        """Halve the distance of the nodes."""
        i: cython.Py_ssize_t
        between = cython.cast(cython.Py_ssize_t, (lattice.high - lattice.low) / step + 0.5)
        for i in range(between):
            self.add_node(lattice, lattice.low + (i + 0.5) * step, label, out)

    def panel_nodes(self, u, label, out):
        """Nodes for logits of very different scales: Gauss-Legendre panels to both sides of the peak.

        A panel is as wide as the integrand bends at both its ends, if Gumbel variables were Gaussian, and falls, as it
        did at the end of the panel before.
        """
        n = out.n_likely
        top = -INFINITY
        count: cython.Py_ssize_t = 0
        side: cython.int
        for side in range(2):
            sign = 1.0 if side == 0 else -1.0
            at = u
            fall = 0.0
            for _ in range(_MOST_PANELS):
                width = min(
                    _PANEL / sqrt(rough_slopes(n, out.centre, label, at, out)[1]), _PANEL_FALL / max(fall, 1e-100)
                )
                while width * sqrt(rough_slopes(n, out.centre, label, at + sign * width, out)[1]) > 1.5 * _PANEL:
                    width *= 0.7
                value, fall = self.add_panel(at, sign * width, count, label, out)
                count += 8
                at += sign * width
                top = max(top, out.node_weights[count - 8])
                if value < top - _NEGLIGIBLE - 4.0:
                    break
        return count

    def add_panel(self, start, width, count, label, out):
        """Evaluate eight nodes; the integrand's log at the last, weighted, and how fast it fell before."""
        n = out.n_likely
        i: cython.Py_ssize_t
        value = 0.0
        before = 0.0
        for i in range(8):
            before = value
            value = evaluate(
                n, out.centre, label, start + width * _LEGENDRE[i], out.slopes + (count + i) * (n + 1), out
            )
            out.node_weights[count + i] = value + _LEGENDRE_LOG_WEIGHTS[i] + log(fabs(width))
        return value + log(fabs(width)), (before - value) / (fabs(width) * (_LEGENDRE[7] - _LEGENDRE[6]))

    def move_centre(self, mean, cov, out):
        """Move the mean by the covariance that the independent logits lack times the score; whether that is much."""
        n = self.n_outputs
        j: cython.Py_ssize_t
        k: cython.Py_ssize_t
        middle = 0.0
        for j in range(n):
            move = mean[j] - out.centre[j] - out.variances[j] * out.score[j]
            for k in range(n):
                move += cov[j * n + k] * out.score[k]
            out.vector[j] = move
            middle += move / n
        much: cython.bint = False
        for j in range(n):
            much = much or fabs(out.vector[j] - middle) > _MOVED * sqrt(1.0 + out.variances[j])
        if much:
            for j in range(n):
                out.centre[j] += out.vector[j] - middle
        return much

    def find_site(self, mean, out):
        """The site that makes the step of the independent logits, as a sum of squares and so never negative.

        With the information ``A`` and the variances ``V``, ``precision = A + A V^½ (1 - V^½ A V^½)⁻¹ V^½ A``. No label
        leaves less than ``(V⁻¹ + 1/2)⁻¹``; where rounding would, the information itself is a site that leaves enough.
        """
        n = self.n_outputs
        v = out.variances
        i: cython.Py_ssize_t
        j: cython.Py_ssize_t
        k: cython.Py_ssize_t
        widest = 0.0
        for j in range(n):
            widest = max(widest, v[j])
            out.vector[j] = sqrt(v[j])
        for j in range(n):
            for k in range(n):
                entry = out.vector[j] * out.first[j * n + k] * out.vector[k]
                out.second[j * n + k] = (1.0 if j == k else 0.0) - entry
        factorise(n, out.second, out.third)
        enough: cython.bint = True
        for j in range(n):
            root = out.third[j * n + j]
            enough = enough and root * root > 1.0 / (2.0 + widest)
        for i in range(n * n):
            out.precision[i] = out.first[i]
        if enough:
            for j in range(n):
                for k in range(n):
                    out.second[j * n + k] = out.first[j * n + k] * out.vector[k]
            divide_by_root(n, out.second, out.third)
            add_square(n, out.second, out.precision)
        for j in range(n):
            out.vector[j] = v[j] * out.score[j] + (out.centre[j] - mean[j])
        for j in range(n):
            out.shift[j] = out.score[j]
            for k in range(n):
                out.shift[j] += out.precision[j * n + k] * out.vector[k]

    def meet_covariance(self, cov, out):
        """Score and information of the site under the covariance as it is.

        With ``precision = BB'``, ``information = B (1 + B' cov B)⁻¹ B'``: it leaves something of any covariance.
        """
        n = self.n_outputs
        B = out.second
        product = out.third
        inner = out.first
        i: cython.Py_ssize_t
        j: cython.Py_ssize_t
        k: cython.Py_ssize_t
        factorise(n, out.precision, B)
        for i in range(n * n):
            product[i] = 0.0
            inner[i] = 0.0
            out.information[i] = 0.0
        for i in range(n):
            for j in range(n):
                entry = cov[i * n + j]
                for k in range(j + 1):
                    product[i * n + k] += entry * B[j * n + k]
        for j in range(n):
            inner[j * n + j] = 1.0
        for j in range(n):
            for i in range(j + 1):
                entry = B[j * n + i]
                for k in range(n):
                    inner[i * n + k] += entry * product[j * n + k]
        factorise(n, inner, out.third)
        for j in range(n):
            if out.third[j * n + j] == 0.0:  # lost to rounding; so less is learned
                out.third[j * n + j] = sqrt(inner[j * n + j])
        divide_by_root(n, B, out.third)
        add_square(n, B, out.information)
        for j in range(n):
            out.vector[j] = 0.0
            for k in range(n):
                out.vector[j] += cov[j * n + k] * out.shift[k]
        for j in range(n):
            out.score[j] = out.shift[j]
            for k in range(n):
                out.score[j] -= out.information[j * n + k] * out.vector[k]

    def class_probabilities(self, mean, cov, out):
        """Fill the log probabilities of all classes, on nodes that serve all of them.

        They sum to 1 but for some 1e-6, which is taken out. Where logits have very different scales the density of the
        largest value may have several peaks, and nodes miss some: then each class has nodes of its own.
        """
        n = self.n_outputs
        log_p = out.log_p
        i: cython.Py_ssize_t
        j: cython.Py_ssize_t
        if n == 2:
            var = max(cov[0] + cov[3] - 2.0 * cov[1], 0.0)
            for j in range(2):
                log_p[j] = sigmoid_label(mean[0] - mean[1], var, 1.0 - j).log_z
            return
        if is_diagonal(n, cov):
            count = self.place_likely(mean, cov, -1, out)
        else:
            separate(n, mean, cov, out)
            count = self.place_nodes(-1, out)
        for j in range(n):
            log_p[j] = 0.0
        total = 0.0
        for i in range(count):
            weight = exp(out.node_weights[i])
            for j in range(n):
                log_p[j] -= weight * out.slopes[i * (n + 1) + j]
        for j in range(n):
            total += log_p[j]
        if fabs(total - 1.0) > _UNIT_TOLERANCE:
            total = 0.0
            for j in range(n):  # the terms of some may be missing
                prepare_logit(out.variances[j], out.terms + j * N_TERMS)
            for j in range(n):
                log_p[j] = self.integral(j, out)
                total += log_p[j]
        for j in range(n):
            log_p[j] = log(max(log_p[j] / total, 1e-300))

    def integral(self, label, out):
        """The probability of one class, on nodes of its own."""
        i: cython.Py_ssize_t
        count = self.place_nodes(label, out)
        total = 0.0
        for i in range(count):
            total += exp(out.node_weights[i])
        return total

    def marginals(self, mean, cov, centre, var, out):
        """Means and variances of the log odds of each class against all others.

        They are taken for Gaussian, with the variance of their first order and the mean that gives the class its
        probability. Those of two classes are Gaussian: the difference of the logits.
        """
        n = self.n_outputs
        k: cython.Py_ssize_t
        m: cython.Py_ssize_t
        j: cython.Py_ssize_t
        if n == 2:
            centre[0] = mean[0] - mean[1]
            centre[1] = -centre[0]
            var[0] = var[1] = max(cov[0] + cov[3] - 2.0 * cov[1], 0.0)
            return
        self.class_probabilities(mean, cov, out)
        log_p = out.log_p
        independent = is_diagonal(n, cov)
        gradient = out.vector
        for k in range(n):
            top = -INFINITY
            total = 0.0
            for m in range(n):
                if m != k:
                    top = max(top, log_p[m])
            for m in range(n):
                gradient[m] = -exp(log_p[m] - top) if m != k else 0.0
                total -= gradient[m]
            for m in range(n):
                gradient[m] = gradient[m] / total if m != k else 1.0
            odds_var = 0.0
            for j in range(n):
                entry = cov[j * n + j] * gradient[j]
                if not independent:
                    for m in range(j):
                        entry += 2.0 * cov[j * n + m] * gradient[m]
                odds_var += gradient[j] * entry
            odds_var = max(odds_var, 0.0)
            wanted = log_p[k] - top - log(total)
            at = wanted * sqrt(1.0 + _PI_8 * odds_var)
            for _ in range(_ODDS_STEPS):
                log_odds, slope = label_odds(at, odds_var)
                at -= (log_odds - wanted) / slope
            centre[k] = at
            var[k] = odds_var

    def log_probabilities(
        self, mean: cython.const[cython.double][::1], cov: cython.const[cython.double][:, ::1]
    ) -> "FloatArray":
        """Log probabilities of the classes, ``(K,)``."""
        out = VectorMatch(self.n_outputs)
        self.class_probabilities(cython.address(mean[0]), cython.address(cov[0, 0]), out)
        return as_array(out.log_p, self.n_outputs)


def label_odds(mean, var):
    """Log odds of an uncertain logit, and their derivative in its mean."""
    won = sigmoid_label(mean, var, 1.0)
    lost = sigmoid_label(mean, var, 0.0)
    return won.log_z - lost.log_z, won.score - lost.score
