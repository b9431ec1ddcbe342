"""The scalar part of learning a row: the moment match, the learned noise, the evidence and the row's site.

What the noise is, is a belief too: the log of its variance is Gaussian, with the mean ``log noise`` and the variance
``2 / noise_weight`` (a row of known weights has an information of a half about it, so that the weight counts rows). The
density of a target is then a mixture over noises, proper whatever was learned before; `learn_scalar` scores a row with
it before anything is learned from it.

A target that is not to be trusted, see `outliers`, is one of a mixture: the noise is learned from it as far as it is
trusted, and the weights by what the mixture says.

A row of a weight below 1 has its likelihood to that power: of its match the site is taken to it, which for Gaussian
noise is exact, and so is what it says about the noise.

A row that is learned again, by expectation propagation, first has its previous contribution removed: its *site*, the
Gaussian factors by which it multiplied the beliefs about its pre-activation and about the log noise.
"""

import cython
import numpy as np
from cython.cimports.libc.math import INFINITY, NAN, exp, isfinite, isnan, log, sqrt
from cython.cimports.onepass.engine.matches import Match
from cython.cimports.onepass.engine.outliers import SOON, Trust

NOISE_FLOOR = 1e-12
NOISE_START, NOISE_START_WEIGHT = 0.1, 2.0 / 9.0  # before the first row its log has a standard deviation of 3
SITE_SIZE = N_SITE  # numbers of a row's site
# Mean, variance, noise and log density of a row from before its update, its distrust, the log odds of a jump after it.
RECORD_SIZE = N_RECORD
STATE_SIZE = N_NUMBERS  # of the numbers of a `LearningState`, without those of its trust
# Where each number stands in `LearningState.to_array`.
NOISE, NOISE_WEIGHT, NOISE_WINDOW, LOG_EVIDENCE, N_SEEN = range(5)
_LOWEST = cython.declare(cython.double, float(np.log(NOISE_FLOOR)))
_HIGHEST = cython.declare(cython.double, 600.0)
# So many standard deviations above its mean is the log noise that weights are learned with; one, once it is known.
_CAUTION = cython.declare(cython.double, 1.4)
# Rows that a learned noise rests on after a jump of the truth: what was known of it may not hold any more.
_WEIGHT_AFTER_JUMP = cython.declare(cython.double, 1.0)
_KNOWN = cython.declare(cython.double, 0.15)  # a standard deviation of the log noise that is small
# The most information about the log noise that a row may have: twice that of known weights.
_MOST_INFORMATION = cython.declare(cython.double, 1.0)
# A site is removed only if at least this share of the precision remains; else it stays.
_SITE_MARGIN = cython.declare(cython.double, 1e-6)
# Sites go this share of the way to their new values: going all of it, noise and weights of few rows can overshoot.
_DAMPING = cython.declare(cython.double, 0.7)
_FAMILIAR = cython.declare(cython.double, 0.6)  # one that is moderate
# Nodes of the log noise, in standard deviations: many evenly spaced ones while it is vague, so that they are no further
# apart than a residual's own resolution; Gauss-Hermite's seven, then two, as it becomes known.
_NODES = cython.declare(cython.double[85])
_LOG_WEIGHTS = cython.declare(cython.double[85])


def _fill_nodes():
    even = [np.linspace(-5.5, 5.5, N_VAGUE), np.linspace(-5.0, 5.0, N_ROUGH)]
    rules = [(nodes, np.exp(-0.5 * nodes**2)) for nodes in even]
    rules += [np.polynomial.hermite_e.hermegauss(count) for count in (N_FEW, 2)]
    start = 0
    for nodes, weights in rules:
        for i, (node, weight) in enumerate(zip(nodes, weights / weights.sum(), strict=True)):
            _NODES[start + i], _LOG_WEIGHTS[start + i] = node, np.log(weight)
        start += len(nodes)


_fill_nodes()


class LearningState:
    """All that learning changes besides the belief itself.

    Parameters
    ----------
    noise : the noise variance as it is now; where it is learned, the middle of the belief about it
    noise_weight : how many rows it rests on; 0 where it is fixed
    noise_window : the most rows it rests on
    log_evidence : sum of the log predictive densities of all rows
    n_seen : rows learned
    trust : which rows are to be trusted; all of them by default

    Attributes
    ----------
    log_density : that of the last row, before it was learned
    row_weights : weights in (0, 1] of the rows to come, or None where they are all 1
    """

    def __init__(
        self,
        noise: float = 0.0,
        noise_weight: float = 0.0,
        noise_window: float = np.inf,
        log_evidence: float = 0.0,
        n_seen: float = 0.0,
        trust: Trust = None,
    ):
        self.noise, self.noise_weight, self.noise_window = noise, noise_weight, noise_window
        self.log_evidence, self.n_seen = log_evidence, n_seen
        self.log_density = 0.0
        self.trust = Trust() if trust is None else trust
        self.row_weights, self.n_weighted = None, 0

    @property
    def learns_noise(self):
        """Whether the noise is learned."""
        return self.noise_weight > 0.0

    def copy(self):
        """Make an independent copy."""
        made = LearningState(*self.to_array()[:N_NUMBERS], self.trust.copy())
        made.row_weights, made.n_weighted = self.row_weights, self.n_weighted
        return made

    def assign(self, other):
        """Take over another state's numbers."""
        self.noise, self.noise_weight, self.noise_window = other.noise, other.noise_weight, other.noise_window
        self.log_evidence, self.n_seen = other.log_evidence, other.n_seen
        self.n_weighted = other.n_weighted
        self.trust.assign(other.trust)

    def weigh(self, weights):
        """Take weights ``(n,)`` of the next rows, in their order; None for rows that count in full."""
        self.row_weights, self.n_weighted = weights, 0

    def row_weight(self):
        """Weight of the row that comes now."""
        return 1.0 if self.row_weights is None else self.row_weights[self.n_weighted]

    def to_array(self):
        """All numbers, ``(5,)``, as they stand in files; those of the trust after them where not all is trusted."""
        own = [self.noise, self.noise_weight, self.noise_window, self.log_evidence, self.n_seen]
        return np.concatenate([own, self.trust.to_array()])

    @staticmethod
    def from_array(numbers):
        """Take what `to_array` gave."""
        return LearningState(*numbers[:N_NUMBERS], Trust(numbers[N_NUMBERS:]))

    def begin_anew(self):
        """Go on after an alarm; if another one came soon before, the noise may have changed, and is known no more."""
        if self.trust.calm_down() < SOON and self.noise_weight > 0.0:
            self.noise_weight = min(self.noise_weight, _WEIGHT_AFTER_JUMP)

    def __reduce__(self):
        return LearningState.from_array, (self.to_array(),)


def _tilt(likelihood, mean, var, y, log_noise, std):
    """Match a target whose log noise is ``N(log_noise, std²)``: a mixture of the matches at nodes of the log noise.

    With each node's share ``r`` in the mixture's density, ``score = E_r[score]``, ``information = E_r[information] -
    Var_r[score]`` and the ratio ``E_r[ratio] + var Var_r[score]``, which is positive as every ratio is.
    """
    noises: cython.double[62]
    matches: Match[62]
    shares: cython.double[62]
    known: cython.bint = std < _KNOWN
    start: cython.Py_ssize_t = 0
    n: cython.Py_ssize_t = N_VAGUE
    if known:
        start = N_VAGUE + N_ROUGH + N_FEW
        n = 2
    elif std < _FAMILIAR:
        start = N_VAGUE + N_ROUGH
        n = N_FEW
    elif std < 1.0:
        start = N_VAGUE
        n = N_ROUGH
    i: cython.Py_ssize_t
    for i in range(n):
        noises[i] = exp(min(max(log_noise + std * _NODES[start + i], _LOWEST), _HIGHEST))
    if not known:
        noises[n] = exp(min(max(log_noise + _CAUTION * std, _LOWEST), _HIGHEST))
    likelihood.match_noises(mean, var, y, n if known else n + 1, noises, matches)
    top = -INFINITY
    for i in range(n):
        shares[i] = _LOG_WEIGHTS[start + i] + matches[i].log_z
        top = max(top, shares[i])
    mass = 0.0
    score = 0.0
    move = 0.0
    for i in range(n):
        shares[i] = exp(shares[i] - top)
        mass += shares[i]
        score += shares[i] * matches[i].score
        move += shares[i] * _NODES[start + i]
    score /= mass
    move /= mass
    information = 0.0
    ratio = 0.0
    scatter = 0.0
    spread = 0.0
    for i in range(n):
        information += shares[i] * matches[i].information
        ratio += shares[i] * matches[i].variance_ratio
        scatter += shares[i] * (matches[i].score - score) * (matches[i].score - score)
        spread += shares[i] * (_NODES[start + i] - move) * (_NODES[start + i] - move)
    scatter /= mass
    cautious = matches[1 if known else n]
    weight = 2.0 / (std * std)
    if known:  # two nodes have no posterior variance to speak of: the information to be expected of the row
        share = min(max(cautious.variance_ratio, 0.0), 1.0)
        weight += share * share
    else:
        weight = min(weight * mass / max(spread, 1e-3), weight + 2.0 * _MOST_INFORMATION)
    return Tilt(
        Match(top + log(mass), score, information / mass - scatter, ratio / mass + var * scatter),
        cautious,
        min(max(log_noise + std * move, _LOWEST), _HIGHEST),
        weight,
    )


def learn_scalar(likelihood, state, mean, var, input_var, y):
    """Learn all of a row but the weights; return the score, information and variance ratio of the belief's step.

    ``var`` is the variance of ``J'w``, ``input_var`` the variance that uncertain inputs add. A row that can't be
    learned gives NaN and changes nothing.

    An unknown noise and the weights are not independent, as beliefs kept apart pretend: if the noise is larger than
    expected, so are the errors of the weights. So the weights are learned with a noise that is a little larger than
    expected, by less and less as more is known of it: weights learned with too small a noise would stay wrong for good.
    """
    total = var + input_var
    noise = state.noise
    noise_weight = state.noise_weight
    learns_noise: cython.bint = noise_weight > 0.0
    if learns_noise:
        tilt = _tilt(likelihood, mean, total, y, log(noise), sqrt(2.0 / noise_weight))
        match = tilt.cautious
        match.log_z = tilt.match.log_z
    else:
        match = likelihood.match(mean, total, y, noise)
    trusted = 1.0
    doubts: cython.bint = state.trust.active
    if doubts:
        doubt = likelihood.doubt(match, mean, total, y, noise, state.trust)
        match.log_z = doubt.match.log_z
        trusted = doubt.shares[0]
        if state.trust.calm >= 0.0:
            match = doubt.match
    if learns_noise:
        noise, noise_weight = _learned_noise(tilt, log(noise), noise_weight, trusted)
        noise_weight = min(noise_weight, state.noise_window)
    log_z = match.log_z
    score = match.score
    information = match.information
    ratio = match.variance_ratio + information * input_var
    row_weight = state.row_weight()
    if row_weight != 1.0:
        # The site's precision and shift, times the weight, as the step that they make.
        after = row_weight + (1.0 - row_weight) * ratio
        score *= row_weight / after
        information *= row_weight / after
        ratio /= after
        if learns_noise:
            noise, noise_weight = _tempered_noise(state, noise, noise_weight, row_weight)
    if not (isfinite(var) and isfinite(score * var) and isfinite(score + information + ratio + log_z)):
        return NAN, NAN, NAN
    if not isfinite(noise + noise_weight):
        return NAN, NAN, NAN
    state.noise = noise
    state.noise_weight = noise_weight
    state.log_density = log_z
    state.log_evidence += row_weight * log_z
    state.n_seen += 1.0
    state.n_weighted += 1
    if doubts:
        state.trust.note(doubt.shares, doubt.blank)
        state.trust.learn()
    return score, information, ratio


def _learned_noise(tilt, log_noise, weight, trusted):
    """The noise and its weight after a row that is trusted so far: a mixture of the belief after it and that before."""
    if trusted == 1.0:
        return exp(tilt.log_noise), tilt.noise_weight
    if trusted == 0.0:  # of a target beyond all bounds the belief after it may not be a number
        return exp(log_noise), weight
    move = tilt.log_noise - log_noise
    var = trusted * 2.0 / tilt.noise_weight + (1.0 - trusted) * (2.0 / weight + trusted * move * move)
    return exp(log_noise + trusted * move), 2.0 / var


def _tempered_noise(state, noise, noise_weight, row_weight):
    """The noise and its weight after a row whose site, of the log noise, counts so much."""
    weight = state.noise_weight + row_weight * (noise_weight - state.noise_weight)
    before = (1.0 - row_weight) * state.noise_weight * log(state.noise)
    return exp((before + row_weight * noise_weight * log(noise)) / weight), weight


def learn_site(likelihood, state, mean, var, input_var, y, site):
    """Learn a row and keep its site or, if it has one, learn the row again; returns what `learn_scalar` does.

    ``site`` has the precision and the shift (precision times mean) of the factor of ``J'w``, then those of the log
    noise's; NaN before the row was learned. A row learned again is no new evidence.
    """
    if not isnan(site[0]):
        return _learn_again(likelihood, state, mean, var, input_var, y, site)
    weight = state.noise_weight
    log_noise = log(state.noise) if weight > 0.0 else 0.0
    score, information, ratio = learn_scalar(likelihood, state, mean, var, input_var, y)
    site[0] = information / ratio
    site[1] = (score + information * mean) / ratio
    site[2] = 0.5 * (state.noise_weight - weight)
    site[3] = 0.5 * (log(state.noise) * state.noise_weight - log_noise * weight) if weight > 0.0 else 0.0
    return score, information, ratio


def _learn_again(likelihood, state, mean, var, input_var, y, site):
    """Replace the site of a row by what the row says given all the others; a site that can't be removed stays."""
    noise_precision = 0.5 * state.noise_weight
    learns_noise: cython.bint = noise_precision > 0.0
    row_weight = state.row_weight()
    state.n_weighted += 1
    left = 1.0 - site[0] * var
    noise_left = noise_precision - site[2]
    if not (left > _SITE_MARGIN and noise_left >= _SITE_MARGIN * noise_precision):
        return 0.0, 0.0, 1.0
    # The cavity: the beliefs without the row.
    cavity_var = var / left
    cavity_mean = (mean - site[1] * var) / left
    new: cython.double[N_SITE]
    if learns_noise:
        noise_shift = log(state.noise) * noise_precision - site[3]
        log_noise = min(max(noise_shift / noise_left, _LOWEST), _HIGHEST)
        tilt = _tilt(likelihood, cavity_mean, cavity_var + input_var, y, log_noise, 1.0 / sqrt(noise_left))
        match = tilt.match
        noise = exp(log_noise)
    else:
        noise = state.noise
        match = likelihood.match(cavity_mean, cavity_var + input_var, y, noise)
    trusted = 1.0
    if state.trust.active:
        doubt = likelihood.doubt(match, cavity_mean, cavity_var + input_var, y, noise, state.trust)
        match = doubt.match
        trusted = doubt.shares[0]
    new[2] = 0.0
    new[3] = 0.0
    if learns_noise:
        noise, weight = _learned_noise(tilt, log_noise, 2.0 * noise_left, trusted)
        new[2] = _towards(site[2], row_weight * (0.5 * weight - noise_left))
        new[3] = _towards(site[3], row_weight * (0.5 * weight * log(noise) - noise_left * log_noise))
    ratio = match.variance_ratio + match.information * input_var
    new[0] = _towards(site[0], row_weight * match.information / ratio)
    new[1] = _towards(site[1], row_weight * (match.score + match.information * cavity_mean) / ratio)
    after = left + new[0] * var  # the precision with the new site over that with the old one
    if not (ratio > 0.0 and after > _SITE_MARGIN and isfinite(after + new[1] + new[2] + new[3])):
        return 0.0, 0.0, 1.0
    if learns_noise:
        noise_left += new[2]
        if not noise_left > _SITE_MARGIN * noise_precision:
            return 0.0, 0.0, 1.0
        state.noise = exp(min(max((noise_shift + new[3]) / noise_left, _LOWEST), _HIGHEST))
        state.noise_weight = 2.0 * noise_left
    score = (new[1] - site[1] - mean * (new[0] - site[0])) / after
    information = (new[0] - site[0]) / after
    i: cython.Py_ssize_t
    for i in range(N_SITE):
        site[i] = new[i]
    return score, information, 1.0 / after


def _towards(old, new):
    return old + _DAMPING * (new - old)


def learn_with_site(
    likelihood, state, mean: cython.double, var: cython.double, input_var: cython.double, y: cython.double, site
):
    """See `learn_site`, for callers in Python; ``site`` is an array ``(4,)``."""
    view: cython.double[::1] = site
    return learn_site(likelihood, state, mean, var, input_var, y, cython.address(view[0]))


def score_row(likelihood, state, mean, var, y):
    """Log density that `learn_scalar` would score a target with, and how far it would distrust it."""
    if state.noise_weight > 0.0:
        match = _tilt(likelihood, mean, var, y, log(state.noise), sqrt(2.0 / state.noise_weight)).match
    else:
        match = likelihood.match(mean, var, y, state.noise)
    if not state.trust.active:
        return match.log_z, 0.0
    doubt = likelihood.doubt(match, mean, var, y, state.noise, state.trust)
    return doubt.match.log_z, 1.0 - doubt.shares[0]


def score_rows(likelihood, state, mean, var, y):
    """See `score_row`; for all rows, ``(2, n)``."""
    result = np.empty((2, mean.shape[0]))
    out: cython.double[:, ::1] = result
    i: cython.Py_ssize_t
    with cython.nogil:
        for i in range(mean.shape[0]):
            out[0, i], out[1, i] = score_row(likelihood, state, mean[i], var[i], y[i])
    likelihood.raise_pending()
    return result
