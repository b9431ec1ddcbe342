"""Moment matches of likelihoods with one output: the update of the pre-activation ``a ~ N(mean, var)`` by a target.

With ``Z = ∫ p(y|a) N(a; mean, var) da`` the tilted density ``p(y|a) N(a)/Z`` has the mean ``mean + score var`` and the
variance ``var - information var²``, where ``score = dlogZ/dmean`` and ``information = -d²logZ/dmean²``. A `Match` has
``log Z``, these two, and the ratio ``1 - information var`` of the variance after to that before, with the digits that
the difference would lose when a precise target meets a vague belief.

One class per likelihood and activation for which the match is exact (those for counts are in `count_matches`), and
the paper's rule (``Kalman...``), which takes target and pre-activation for jointly Gaussian and needs only the
activation's moments.

A target that may not be trusted, see `outliers`, has a mixture of matches: the usual one, and those of the ways in
which it is not to be trusted. With each one's share ``r`` in the mixture's density, ``score = E_r[score]``,
``information = E_r[information] - Var_r[score]`` and the ratio ``E_r[ratio] + var Var_r[score]``.
"""

import cython
import numpy as np
from cython.cimports.libc.math import INFINITY, NAN, exp, expm1, fabs, floor, isfinite, lgamma, log, log1p, sqrt
from cython.cimports.onepass.engine.moments import (
    N_PROBITS,
    PROBIT_SCALES,
    PROBIT_WEIGHTS,
    CompiledActivation,
    PiecewiseMoments,
)
from cython.cimports.onepass.engine.outliers import N_WAYS, N_WIDE, NOISE_SCALES, Coupling, log_rarity
from cython.cimports.onepass.engine.special import (
    FEW_HERMITE,
    FEW_HERMITE_WEIGHTS,
    HERMITE,
    HERMITE_WEIGHTS,
    LOG_2PI,
    log_cdf_slopes,
    log_ndtr,
    ndtr,
    pdf,
    truncated,
)

_TINY = cython.declare(cython.double, 1e-200)  # what is smaller is nothing; quotients of what is larger are finite
_FLOOR = cython.declare(cython.double, 1e-120)  # the square of its inverse stays within float64
_SMALLEST = cython.declare(cython.double, 2.2250738585072014e-308)
_LOG_HALF = cython.declare(cython.double, -0.6931471805599453)
_MOST_COPIES = cython.declare(cython.double, 1000.0)  # of a row, that are learned one after the other
_MOST_UNINFORMATIVE = cython.declare(cython.double, 0.9)  # of the targets, say nothing
_LABEL_RESOLUTION = cython.declare(cython.double, 1e-14)  # 1 - f is known to rounding, some 1e-16


class CompiledLikelihood:
    """A likelihood around an activation, as compiled loops call it."""

    def __init__(self, activation: CompiledActivation):
        self.activation = activation

    def match(self, mean, var, y, noise):
        """Match the moments of the tilted density; each likelihood overrides this."""
        return Match(NAN, NAN, NAN, NAN)

    def accepts(self, y):
        """Whether a finite number can be a target."""
        return True

    def error_of(self, mean, var, y):
        """Error of the output's mean, and variance of the output; none for labels and counts, which can't be far."""
        return 0.0, 1.0

    def match_noises(self, mean, var, y, n, noises, matches):
        """Match a target once for each of ``n`` noise variances."""
        i: cython.Py_ssize_t
        for i in range(n):
            matches[i] = self.match(mean, var, y, noises[i])

    def log_uninformative(self, y):
        """Log density of a target that says nothing, not being trusted; NaN for likelihoods without such a density."""
        return NAN

    def wrong_given_uninformative(self):
        """The share of targets that say nothing and are wrong; the others are right by chance."""
        return 1.0

    def doubt(self, usual, mean, var, y, noise, trust):
        """Mix the match of a trusted target with those of one that isn't; by default with one that says nothing."""
        wrong_given_uninformative = self.wrong_given_uninformative()
        return uninformative_doubt(
            usual, var, self.log_uninformative(y), trust.outlier_share(), wrong_given_uninformative
        )

    def match_rows(self, mean, var, y, noise) -> "FloatArray":
        """Match every row: log Z, score, information and variance ratio, ``(4, n)``."""
        result = np.empty((4, mean.shape[0]))
        out: cython.double[:, ::1] = result
        i: cython.Py_ssize_t
        with cython.nogil:
            for i in range(mean.shape[0]):
                match = self.match(mean[i], var[i], y[i], noise[i])
                out[0, i] = match.log_z
                out[1, i] = match.score
                out[2, i] = match.information
                out[3, i] = match.variance_ratio
        self.raise_pending()
        return result

    def raise_pending(self) -> None:
        """Raise the exception of a function in Python that was stored because compiled loops can't raise."""
        self.activation.raise_pending()

    def __reduce__(self):
        return type(self), (self.activation,)


def copies_now(left, whole):
    """How many of the copies that are left of a row are learned next: one, the rest, or more where there are many."""
    return min(left, max(whole / _MOST_COPIES, 1.0))


def copies_after(left, part):
    """How many copies are left after so many were learned."""
    return left - part if left - part > 1e-9 else 0.0


def uninformative_shares(log_z, log_uninformative, wrong_share, wrong_given_uninformative):
    """A target that may say nothing: its log density, how probable it is that it says something, and that it is wrong.

    So many of all targets are wrong, and of those that say nothing. Labels that are flipped with probability ``e`` have
    ``Z = e + (1 - 2 e) Z_0``: a share of ``2 e`` says nothing, and half of them are wrong.
    """
    share = min(wrong_share / wrong_given_uninformative, _MOST_UNINFORMATIVE)
    own = log1p(-share) + log_z
    other = log(share) + log_uninformative
    mixed = max(own, other) + log1p(exp(-fabs(own - other)))
    says = exp(own - mixed)
    # A wrong label is one that says nothing and is not the one that would have been expected anyway.
    wrong = (1.0 - says) * (1.0 if wrong_given_uninformative == 1.0 else -expm1(min(log_z, 0.0)))
    return mixed, says, wrong


def uninformative_doubt(usual, var, log_uninformative, wrong_share, wrong_given_uninformative):
    """Mix a match with a target that says nothing: see `uninformative_shares`."""
    doubt: Doubt
    log_z, says, wrong = uninformative_shares(usual.log_z, log_uninformative, wrong_share, wrong_given_uninformative)
    i: cython.Py_ssize_t
    for i in range(N_WAYS):
        doubt.shares[i] = 0.0
    doubt.uninformative = True
    doubt.has_coupling = False
    doubt.coupling = Coupling(share_score=0.0, scale_score=0.0, share_root=0.0, scale_root=0.0)
    doubt.shares[0] = 1.0 - wrong
    doubt.shares[1] = wrong
    doubt.match = Match(log_z, 0.0, 0.0, 1.0)
    if says > 0.0:  # the score of a target that can't be may be infinite
        score = says * usual.score
        scatter = (1.0 - says) * score * usual.score
        ratio = says * usual.variance_ratio + (1.0 - says) + var * scatter
        doubt.match = Match(log_z, score, says * usual.information - scatter, ratio)
    return doubt


class LabelLikelihood(CompiledLikelihood):
    """Labels 0 and 1."""

    def accepts(self, y):
        """Take 0 and 1 only."""
        return y == 0.0 or y == 1.0

    def log_uninformative(self, y):
        """Either label is as probable."""
        return _LOG_HALF

    def wrong_given_uninformative(self):
        """Half of them."""
        return 0.5

    def doubt(self, usual, mean, var, y, noise, trust):
        """The share of wrong labels and the scale of the weights are confounded."""
        wrong_share = trust.outlier_share()
        doubt = CompiledLikelihood.doubt(self, usual, mean, var, y, noise, trust)
        # The probability of the label is e + (1 - 2e) f, and f = Z its probability if it is right.
        e = min(wrong_share, 0.5 * _MOST_UNINFORMATIVE)
        f = exp(min(usual.log_z, 0.0))
        p = exp(doubt.match.log_z)
        std = sqrt(p * (e - (1.0 - 2.0 * e) * expm1(min(usual.log_z, 0.0))))
        scale_slope = (1.0 - 2.0 * e) * f * usual.score * mean
        if isfinite(scale_slope) and std > 0.0:
            doubt.has_coupling = True
            doubt.coupling.share_score = (1.0 - 2.0 * f) / p
            doubt.coupling.scale_score = scale_slope / p
            doubt.coupling.share_root = (1.0 - 2.0 * f) / std
            doubt.coupling.scale_root = scale_slope / std
        return doubt


class NoiseLikelihood(CompiledLikelihood):
    """Gaussian noise; the noise of targets that are not to be trusted is larger."""

    def error_of(self, mean, var, y):
        """Error of the output's mean, and variance of the output."""
        if self.linear:
            return y - mean, var
        output_mean, output_var, _ = self.activation.at(mean, var)
        return y - output_mean, output_var

    def doubt(self, usual, mean, var, y, noise, trust):
        """Mix the matches with all noises; the widest is as wide as a target that is far off, which moves nothing."""
        doubt: Doubt
        noises: cython.double[N_WIDE]
        matches: Match[N_WAYS]
        k: cython.Py_ssize_t
        for k in range(N_WIDE):
            noises[k] = noise * NOISE_SCALES[k]
        noises[N_WIDE - 1] = max(noises[N_WIDE - 1], min(y * y, 1e307))
        self.match_noises(mean, var, y, N_WIDE, noises, cython.address(matches[1]))
        matches[N_WIDE].log_z -= log_rarity(log(noises[N_WIDE - 1]) - log(max(noise, _TINY)))
        matches[0] = usual
        doubt.uninformative = False
        doubt.has_coupling = False
        top = -INFINITY
        for k in range(N_WAYS):
            if trust.counts[k] > 0.0:
                top = max(top, matches[k].log_z)
        mass = 0.0
        score = 0.0
        total = 0.0
        for k in range(N_WAYS):
            total += trust.counts[k]
            doubt.shares[k] = trust.counts[k] * exp(min(matches[k].log_z - top, 0.0))
            if doubt.shares[k] > 0.0:  # the score of a target that can't be may be infinite
                mass += doubt.shares[k]
                score += doubt.shares[k] * matches[k].score
        score /= mass
        information = 0.0
        ratio = 0.0
        scatter = 0.0
        for k in range(N_WAYS):
            doubt.shares[k] /= mass
            if doubt.shares[k] > 0.0:
                gap = matches[k].score - score
                information += doubt.shares[k] * matches[k].information
                ratio += doubt.shares[k] * matches[k].variance_ratio
                scatter += doubt.shares[k] * gap * gap
        doubt.match = Match(top + log(mass / total), score, information - scatter, ratio + var * scatter)
        return doubt


def sigmoid_label(mean, var, y):
    """A label whose probability is the sigmoid's, to 1e-7 of the posterior standard deviation.

    In the orientation in which the label is 1: for a small variance by five or eleven Gauss-Hermite nodes, with
    ``score = E~[1 - s]`` and ``information = E~[s (1 - s)] - Var~[1 - s]`` under the tilted weights; above, by the
    mixture of probits, with the tail identity ``Z(m, v) = e^{m + v/2} Z(-(m + v), v)``.
    """
    sign = 2.0 * y - 1.0
    m = sign * mean
    log_z: cython.double
    score: cython.double
    information: cython.double
    if var <= 0.5:
        e = exp(-fabs(m))
        up = 1.0 / (1.0 + e) if m > 0.0 else e / (1.0 + e)
        down = e / (1.0 + e) if m > 0.0 else 1.0 / (1.0 + e)
        std = sqrt(var)
        # The smaller the variance, the fewer nodes: five are right to 1e-11 up to 0.02.
        half = 2 if var <= 0.02 else 5
        nodes = cython.address(FEW_HERMITE[0]) if var <= 0.02 else cython.address(HERMITE[0])
        weights = cython.address(FEW_HERMITE_WEIGHTS[0]) if var <= 0.02 else cython.address(HERMITE_WEIGHTS[0])
        gain = weights[half]
        first = gain * down
        second = gain * down * down
        third = gain * up * down
        for i in range(half):  # the nodes come in pairs: one exponential serves two
            e = exp(nodes[i] * std)
            # s and 1 - s at the node, the former over s at the mean.
            share = 1.0 / (down + up * e)
            ratio = e * share
            rest = down * share
            weight = weights[i] * ratio
            gain += weight
            first += weight * rest
            second += weight * rest * rest
            third += weight * up * ratio * rest
            ratio = 1.0 / (down * e + up)
            rest = down * e * ratio
            weight = weights[i] * ratio
            gain += weight
            first += weight * rest
            second += weight * rest * rest
            third += weight * up * ratio * rest
        score = first / gain
        information = third / gain - (second / gain - score * score)
        log_z = log(up * gain) if m > -30.0 else m + log(gain)
    elif m < -0.5 * var:
        log_z, score, information = _probits(-(m + var), var)
        log_z += m + 0.5 * var
        score = 1.0 - score
    else:
        log_z, score, information = _probits(m, var)
    # -(log s)'' is at most 1/4, so by Cramer-Rao the variance left is at least 1/(1/v + 1/4).
    information = min(max(information, 0.0), 1.0 / (var + 4.0))
    return Match(log_z, sign * score, information, 1.0 - information * var)


def _probits(mean, var):
    """Log Z, score and information of ``Σ p Φ(λ a)``.

    With ``k = λ/sqrt(1 + λ² var)``, ``Z = Σ p Φ(k mean)``. Weighted by each probit's share of it, and with the slopes
    ``r, q`` of ``log Φ``: ``score = E[k r]``, ``information = E[k² q] - Var[k r]``.
    """
    total = 0.0
    first = 0.0
    second = 0.0
    third = 0.0
    if mean * mean < 9.0 * var:  # then |k mean| < 3, and the plain sums keep their digits
        for i in range(N_PROBITS):
            k = PROBIT_SCALES[i] / sqrt(1.0 + PROBIT_SCALES[i] * PROBIT_SCALES[i] * var)
            z = k * mean
            slope = PROBIT_WEIGHTS[i] * k * pdf(z)
            total += PROBIT_WEIGHTS[i] * ndtr(z)
            first += slope
            second += slope * k * z
        score = first / total
        return log(total), score, score * score + second / total
    top = -INFINITY
    for i in range(N_PROBITS):
        k = PROBIT_SCALES[i] / sqrt(1.0 + PROBIT_SCALES[i] * PROBIT_SCALES[i] * var)
        top = max(top, log(PROBIT_WEIGHTS[i]) + log_ndtr(k * mean))
    for i in range(N_PROBITS):
        k = PROBIT_SCALES[i] / sqrt(1.0 + PROBIT_SCALES[i] * PROBIT_SCALES[i] * var)
        z = k * mean
        part = exp(log(PROBIT_WEIGHTS[i]) + log_ndtr(z) - top)
        r, q, _ = log_cdf_slopes(z)
        total += part
        first += part * k * r
        second += part * (k * r) * (k * r)
        third += part * k * k * q
    score = first / total
    return top + log(total), score, third / total - (second / total - score * score)


class SigmoidLabel(LabelLikelihood):
    """Labels around a sigmoid."""

    def match(self, mean, var, y, noise):
        """See `sigmoid_label`."""
        return sigmoid_label(mean, var, y)


class ProbitLabel(LabelLikelihood):
    """Labels around a probit, exactly."""

    def match(self, mean, var, y, noise):
        """One probit: ``Z = Φ(k mean)``."""
        sign = 2.0 * y - 1.0
        k = 1.0 / sqrt(1.0 + var)
        z = sign * k * mean
        r, q, _ = log_cdf_slopes(z)
        information = min(k * k * q, 1.0 / (var + 1.0))  # Cramer-Rao: -(log Φ)'' is at most 1
        return Match(log_ndtr(z), sign * k * r, information, 1.0 - information * var)


class StepLabel(LabelLikelihood):
    """Labels around a step, exactly: the Gaussian cut to one side of zero."""

    def match(self, mean, var, y, noise):
        """The slopes of ``log Φ``."""
        sign = 2.0 * y - 1.0
        var = max(var, _SMALLEST)
        k = 1.0 / sqrt(var)
        z = min(max(sign * k * mean, -1e100), 1e100)
        r, q, rest = log_cdf_slopes(z)
        return Match(log_ndtr(z), sign * k * r, q / var, rest)  # not k² q, which may round to more than 1/var


def _piece(pieces, i, mean, v, y, noise):
    """Match a target if ``a`` lies on one piece: a product of two Gaussians, truncated to the piece."""
    slope = pieces[0, i]
    total = noise + slope * slope * v
    residual = y - pieces[1, i] - slope * mean
    std = sqrt(v) * sqrt(noise / total)
    centre = mean + v * slope * residual / total
    log_mass, shift, var, shrinkage = truncated((pieces[2, i] - centre) / std, (pieces[3, i] - centre) / std)
    return Match(
        log_mass - 0.5 * (min(residual * (residual / total), 1e300) + log(total) + LOG_2PI),
        slope * residual / total + std / v * shift,
        slope * slope / total + noise / total * shrinkage / v,
        noise / total * var,
    )


def _straight(pieces, mean, v, y, noise):
    """Match a target around the only piece there is: a product of two Gaussians."""
    slope = pieces[0, 0]
    total = noise + slope * slope * v
    residual = y - pieces[1, 0] - slope * mean
    return Match(
        -0.5 * (min(residual * (residual / total), 1e300) + log(total) + LOG_2PI),
        slope * residual / total,
        slope * slope / total,
        noise / total,
    )


class NoisyPieces(NoiseLikelihood):
    """Gaussian noise around straight pieces, exactly: a sum over pieces of Gaussians cut to them."""

    def __init__(self, activation: PiecewiseMoments):
        self.activation = self.pieces = activation
        self.linear = activation.identity
        self.continuous = True

    def match(self, mean, var, y, noise):
        """Sum over the pieces, each weighted by its mass."""
        pieces = self.pieces.pieces
        k: cython.Py_ssize_t = self.pieces.n_pieces
        i: cython.Py_ssize_t
        noise = max(noise, _FLOOR)
        far = fabs(mean)
        for i in range(k - 1):
            far = max(far, fabs(pieces[3, i]))
        # A variance that is nothing beside the mean would overflow the distance to a knot; nor can it be learned.
        known = max(1e-30 * far * far, _FLOOR)
        v = max(var, known)
        if k == 1 and var >= known:
            return _straight(pieces, mean, v, y, noise)
        # One pass: sums relative to the heaviest piece so far, in weight and in score. Centred on any other piece the
        # scatter of the scores would be a difference of large numbers, and rounding could outgrow the variance left.
        top = -INFINITY
        centre = 0.0
        z = 0.0
        first = 0.0
        second = 0.0
        information = 0.0
        left = 0.0
        for i in range(k):
            part = _piece(pieces, i, mean, v, y, noise)
            if part.log_z > top:
                shrink = exp(max(top - part.log_z, -745.0)) if z > 0.0 else 0.0
                move = centre - part.score
                second = shrink * (second + move * (2.0 * first + move * z))
                first = shrink * (first + move * z)
                z *= shrink
                information *= shrink
                left *= shrink
                top = part.log_z
                centre = part.score
            weight = exp(part.log_z - top) if part.log_z - top > -700.0 else 0.0
            if weight > 0.0:
                gap = part.score - centre
                z += weight
                first += weight * gap
                second += weight * gap * gap
                information += weight * part.information
                left += weight * part.variance_ratio
        first /= z
        scatter = max(second / z - first * first, 0.0)
        if var < known:
            return Match(top + log(z), 0.0, 0.0, 1.0)
        return Match(
            top + log(z),
            centre + first,
            min(information / z - scatter, 1.0 / v),
            left / z + v * scatter,
        )


def _kalman(mean, var, y, output_mean, output_var, slope, noise, log_z, resolution):
    """Treat ``y`` and ``a`` as jointly Gaussian: the paper's rule, equation (17).

    With ``A = E[f'(a)] = sigma_ya²/sigma_a²`` and ``S = Var y`` the gain ``k = sigma_ya²/S`` moves the mean of ``a`` by
    ``k (y - mu_y)`` and its variance by ``-k sigma_ya²``; divided by ``sigma_a²`` and ``sigma_a⁴`` these are
    ``score = A (y - mu_y)/S`` and ``information = A²/S``.
    """
    total = output_var + noise
    # The pre-activation is known (up to the rounding of its mean), or the target is: there is nothing to learn.
    if var < max(1e-30 * mean * mean, _TINY) or total < resolution:
        return Match(log_z, 0.0, 0.0, 1.0)
    # The guard: the paper's three approximations together may break Cauchy-Schwarz, A² v <= S, and with it the
    # covariance; the slope is cut to what it allows. Never so for exact moments, nor around the paper's sigmoid from a
    # noise of 0.00733 on, around its tanh from 0.02932 on.
    bound = sqrt(total / var)
    slope = min(max(slope, -bound), bound)
    # The noise kept apart from what the slope explains: the same as 1 - information var, without its cancellation.
    # What is unexplained by rounding alone may still be more than the noise.
    unexplained = output_var - slope * slope * var
    if fabs(unexplained) < 1e-15 * output_var:
        unexplained = 0.0
    ratio = max(unexplained + noise, 0.0) / total
    return Match(log_z, slope * (y - output_mean) / total, slope * slope / total, ratio)


class KalmanNoise(NoiseLikelihood):
    """Gaussian noise around any activation, by the paper's rule."""

    def __init__(self, activation: CompiledActivation):
        self.activation = activation
        self.linear = activation.identity
        self.continuous = True

    def match(self, mean, var, y, noise):
        """The paper's rule with ``S = Var f(a) + noise``."""
        match: Match
        self.match_noises(mean, var, y, 1, cython.address(noise), cython.address(match))
        return match

    def match_noises(self, mean, var, y, n, noises, matches):
        """The moments of the activation serve all noises."""
        i: cython.Py_ssize_t
        mu, var_y, slope = self.activation.at(mean, var)
        for i in range(n):
            total = max(var_y + noises[i], _TINY)
            log_z = -0.5 * (log(total) + LOG_2PI + min((y - mu) * ((y - mu) / total), 1e300))
            matches[i] = _kalman(mean, var, y, mu, var_y, slope, noises[i], log_z, _TINY)


class KalmanLabel(LabelLikelihood):
    """Labels around any activation between 0 and 1, by the paper's rule with a label's own variance."""

    def match(self, mean, var, y, noise):
        """The paper's rule with ``S = mu_y (1 - mu_y)``."""
        mu, var_y, slope = self.activation.at(mean, var)
        log_z = log(max(mu if y > 0.5 else 1.0 - mu, _TINY))
        return _kalman(mean, var, y, mu, var_y, slope, max(mu * (1.0 - mu) - var_y, 0.0), log_z, _LABEL_RESOLUTION)


def log_negative_binomial(y, mean, var):
    """Log probability of a count whose rate has this mean and variance: a gamma stands in for the rate's density."""
    rate = max(mean, _TINY)
    # A variance of next to nothing counts as little.
    shape = 1.0 / min(max(var / (rate * rate), 1e-8), 1e12)
    log_p = lgamma(y + shape) - lgamma(shape) - lgamma(y + 1.0) - shape * log1p(rate / shape)
    if y > 0.0:
        log_p += y * log(rate / (rate + shape))
    return log_p


class CountLikelihood(CompiledLikelihood):
    """Counts; the noise is their dispersion, 0 for Poisson counts."""

    def accepts(self, y):
        """Take whole numbers from 0 on."""
        return y >= 0.0 and y == floor(y)

    def log_uninformative(self, y):
        """Any count may come, ``y`` with the probability ``1/((y + 1)(y + 2))``."""
        return -log(y + 1.0) - log(y + 2.0)


class KalmanCount(CountLikelihood):
    """Counts around any activation that is never negative, by the paper's rule with a count's own variance."""

    def match(self, mean, var, y, noise):
        """The paper's rule with ``S = Var f(a) + mu_y + noise E[f(a)²]``."""
        mu, var_y, slope = self.activation.at(mean, var)
        over = noise * (mu * mu + var_y)
        return _kalman(mean, var, y, mu, var_y, slope, mu + over, log_negative_binomial(y, mu, var_y + over), _TINY)


class PythonLikelihood(CompiledLikelihood):
    """A likelihood written in Python: an object with ``moment_match(activation, mean, var, y)``."""

    def __init__(self, activation: CompiledActivation, likelihood, python_activation):
        self.activation = activation
        self.likelihood, self.python_activation, self.error = likelihood, python_activation, None

    def accepts(self, y):
        """Whether ``check`` raises nothing; where it does, the caller validates again and gets the error itself."""
        accepted: cython.bint = False
        with cython.gil:
            try:
                self.likelihood.check(np.array([y]))
                accepted = True
            except Exception:
                pass
        return accepted

    def log_uninformative(self, y):
        """Call the object; an exception is stored for `raise_pending`, and the density is then NaN."""
        density: cython.double = NAN
        with cython.gil:
            try:
                density = self.likelihood.log_outlier_density(y)
            except BaseException as error:
                self.error = error
        return density

    def match(self, mean, var, y, noise):
        """Call the object; an exception is stored for `raise_pending`, and the match is then NaN."""
        log_z: cython.double = NAN
        score: cython.double = NAN
        information: cython.double = NAN
        ratio: cython.double = NAN
        with cython.gil:
            try:
                log_z, score, information, ratio = self.likelihood.moment_match(self.python_activation, mean, var, y)
            except BaseException as error:
                self.error = error
        return Match(log_z, score, information, ratio)

    def raise_pending(self):
        """Raise the exception that the objects raised since the last call, if any."""
        error, self.error = self.error, None
        if error is not None:
            raise error
        self.activation.raise_pending()

    def __reduce__(self):
        return PythonLikelihood, (self.activation, self.likelihood, self.python_activation)
