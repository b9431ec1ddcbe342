"""The scalar part of learning a row: the moment match, the learned noise, the evidence and the row's site.

What the noise is, is a belief too: the log of its variance is Gaussian, with the mean ``log noise`` and the variance
``2 / noise_weight`` (a row of known weights has an information of a half about it, so that the weight counts rows). The
density of a target is then a mixture over noises, proper whatever was learned before; a row is scored with it before
anything is learned from it.

Around a linear output, with a full covariance and weights that don't drift, the weights are learned at one noise, the
*reference*. When the belief about the noise has moved, all rows so far are re-weighed to a new reference, see `noise`,
so that it does not matter how well the noise was known when a row came: the posterior of weights and noise is that of
all rows, in any order.

A target that is not to be trusted, see `outliers`, is one of a mixture: the noise is learned from it as far as it is
trusted, and the weights by what the mixture says.

A row of weight ``w`` counts as ``w`` copies of it. Around a linear output that has a closed form; otherwise the copies
are learned one after the other, all in the scalars of the row's own direction, and a fraction of a copy by the power of
its site; Gaussian noise is then learned from the first of them.

A row that is learned again, by expectation propagation, first has its previous contribution removed: its *site*, the
Gaussian factors by which it multiplied the beliefs about its pre-activation and about the log noise.
"""

from typing import NamedTuple

import cython
import numpy as np
from cython.cimports.libc.math import INFINITY, NAN, exp, fabs, isfinite, isnan, log, sqrt
from cython.cimports.onepass.engine.matches import Match, copies_after, copies_now
from cython.cimports.onepass.engine.noise import N_STEPS, AllRows, Response, marginal_noise, respond, squares_left
from cython.cimports.onepass.engine.outliers import N_WAYS, Trust, far_log_density
from cython.cimports.onepass.engine.special import LOG_2PI

from onepass._typing import FloatArray
from onepass.engine.noise import NOISE_FLOOR

NOISE_START, NOISE_START_WEIGHT = 0.1, 2.0 / 9.0  # before the first row its log has a standard deviation of 3
SITE_SIZE = cython.sizeof(Site) // cython.sizeof(cython.double)
# The numbers of a `PerceptronProgress` in the order of `PerceptronProgress.to_array`, without those of its trust.
STATE_FIELDS = (
    *("noise", "noise_weight", "noise_window", "log_evidence", "n_seen", "largest", "reference", "squares", "weight"),
    *("copies", "trusted_copies", "log_start", "start_weight", "last_log_noise", "last_seen", "last_noise_weight"),
    "total",
)
STATE_SIZE = len(STATE_FIELDS)
NOISE, NOISE_WEIGHT, NOISE_WINDOW, LOG_EVIDENCE, N_SEEN, LARGEST, REFERENCE = range(7)  # places of the first of them
_START_WEIGHT = cython.declare(cython.double, NOISE_START_WEIGHT)
_LOWEST = cython.declare(cython.double, float(np.log(NOISE_FLOOR)))
_HIGHEST = cython.declare(cython.double, 600.0)
_LEAST_NOISE = cython.declare(cython.double, NOISE_FLOOR)
_LARGEST_NOISE = cython.declare(cython.double, float(np.exp(600.0)))
# So many standard deviations above its mean is the log noise with which weights are learned that are not re-weighed;
# one, once it is known: with too small a noise they would stay wrong for good.
_CAUTION = cython.declare(cython.double, 1.4)
# Rows are re-weighed when the belief about the log noise has moved, in its own units, by a square of so much per
# squared weight, up to 1, as the work grows with the weights; by so much of the log at least.
_MOVED_PER_WEIGHT = cython.declare(cython.double, 0.0012)
_MOVED = cython.declare(cython.double, 0.04)
_SURPRISE = cython.declare(cython.double, 2.5)  # standard deviations by which one row would move the log noise
_WEIGHTS_PER_ROW = cython.declare(cython.double, 32.0)  # that a row pays for; one, if they are many
_LARGE = cython.declare(cython.Py_ssize_t, 150)
_RAMP = cython.declare(cython.double, 10.0)  # rows over which the copies of rows begin to tell of the noise
_SAME = cython.declare(cython.double, 0.01)  # a relative change of the reference that is not worth a re-weighing
_KNOWN = cython.declare(cython.double, 0.15)  # a standard deviation of the log noise that is small
_VAGUE = cython.declare(cython.double, 0.5)  # one from which on a single step of `noise.Response` is not enough
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


class RowRecord(NamedTuple):
    """What the kernels record of rows, ``(n,)`` each; all but the odds of a jump are from before the row's update."""

    mean: "FloatArray"  # of the pre-activation
    var: "FloatArray"
    noise: "FloatArray"
    noise_weight: "FloatArray"  # how many rows it rests on; 0 where it is fixed
    log_density: "FloatArray"
    distrust: "FloatArray"
    suspicion: "FloatArray"  # log odds of a jump
    evidence: "FloatArray"  # log density of as many copies of the row as it counts for

    @staticmethod
    def of(records) -> RowRecord:
        """A copy of the columns of an array ``(n, RECORD_SIZE)``."""
        return RowRecord(*records.T.copy())


class PerceptronProgress:
    """All that learning changes in a perceptron besides its belief; `vector_matches.NetworkProgress` is for networks.

    Parameters
    ----------
    noise : the noise variance as it is now; where it is learned, the middle of the belief about it
    noise_weight : how many rows it rests on; 0 where it is fixed
    noise_window : the most rows it rests on
    trust : which rows are to be trusted; all of them by default

    Attributes
    ----------
    log_evidence : sum of the log predictive densities of all rows
    n_seen : rows learned
    largest : square of the largest error so far; at first, how far the prior reaches
    reference : noise that the weights are learned with; 0 where rows are not re-weighed
    squares, weight : what rows have added up, see `noise`: the squares left at the reference, and their weights
    copies, trusted_copies : weights of rows beyond 1, and the share of them that tells of the noise
    log_start, start_weight : the log noise before the first row, and how many rows that rests on
    last_log_noise, last_noise_weight : belief about the noise when all rows were last asked about it
    last_seen : how many there were
    total : log evidence of all rows that the weights were learned from, also of those that were not scored
    log_density : that of the last row, before it was learned
    row_evidence : the same of as many copies of the row as it counts for
    row_weights : weights of the rows to come, or None where they are all 1
    """

    def __init__(
        self,
        noise: float = 0.0,
        noise_weight: float = 0.0,
        noise_window: float = np.inf,
        trust: Trust = None,
    ):
        self.noise, self.noise_weight, self.noise_window = noise, noise_weight, noise_window
        self.trust = Trust() if trust is None else trust
        self.row_weights = None

    def start_reweighing(self):
        """Let rows be re-weighed as their noise is learned, starting from the present one."""
        self.reference = self.noise
        self.log_start = self.last_log_noise = log(self.noise)
        self.start_weight = self.last_noise_weight = self.noise_weight

    @property
    def learns_noise(self) -> bool:
        """Whether the noise is learned."""
        return self.noise_weight > 0.0

    def copy(self) -> PerceptronProgress:
        """Make an independent copy."""
        made = PerceptronProgress(trust=self.trust.copy())
        made.assign(self)
        made.row_weights = self.row_weights
        return made

    def assign(self, other):
        """Take over another state's numbers."""
        self.noise, self.noise_weight, self.noise_window = other.noise, other.noise_weight, other.noise_window
        self.log_evidence, self.n_seen = other.log_evidence, other.n_seen
        self.reference, self.squares, self.weight = other.reference, other.squares, other.weight
        self.copies, self.trusted_copies = other.copies, other.trusted_copies
        self.log_start, self.start_weight = other.log_start, other.start_weight
        self.last_log_noise, self.last_seen = other.last_log_noise, other.last_seen
        self.last_noise_weight, self.total, self.largest = other.last_noise_weight, other.total, other.largest
        self.pending = False
        self.n_weighted = other.n_weighted
        self.trust.assign(other.trust)

    def count_row(self):
        """Count a row that was learned for what is far, and for what is not to be trusted."""
        self.trust.learn()
        if not self.trust.active:
            self.largest = self.trust.largest_square(self.largest, self.square, self.total_var)

    def weigh(self, weights) -> None:
        """Take weights ``(n,)`` of the next rows, in their order; None for rows that count once."""
        self.row_weights, self.n_weighted = weights, 0

    def row_weight(self):
        """Weight of the row that comes now."""
        return 1.0 if self.row_weights is None else self.row_weights[self.n_weighted]

    def to_array(self) -> FloatArray:
        """All numbers as files have them; after them, where not all is trusted, those of the trust."""
        return np.concatenate([[getattr(self, name) for name in STATE_FIELDS], self.trust.to_array()])

    @staticmethod
    def from_array(numbers) -> PerceptronProgress:
        """Take what `to_array` gave."""
        made = PerceptronProgress(trust=Trust(numbers[STATE_SIZE:]))
        for name, number in zip(STATE_FIELDS, numbers, strict=False):
            setattr(made, name, number)
        return made

    def record_row(self, records, i, mean, var, noise, noise_weight):
        """Record a row that was just learned; the noise and its weight are those from before."""
        row = cython.address(records[i, 0])
        row[RECORD_MEAN] = mean
        row[RECORD_VAR] = var
        row[RECORD_NOISE] = noise
        row[RECORD_NOISE_WEIGHT] = noise_weight
        row[RECORD_LOG_DENSITY] = self.log_density
        row[RECORD_DISTRUST] = self.trust.distrust
        row[RECORD_SUSPICION] = self.trust.suspicion
        row[RECORD_EVIDENCE] = self.row_evidence

    def begin_anew(self):
        """Go on after a jump of the truth; if nothing is kept, the noise is not known any more either."""
        if self.trust.starts_over():
            self.start_over()
        self.trust.reset_after_jump()

    def start_over(self):
        """Forget what was learned of the noise; it may be as large as the errors of the last rows that were far off.

        Where rows are not re-weighed, the noise that weights are learned with is the cautious one; it is that large.
        """
        self.largest = self.trust.far_square
        if self.noise_weight == 0.0:
            return
        caution = 0.0 if self.reference > 0.0 else _CAUTION * sqrt(2.0 / _START_WEIGHT)
        self.noise = exp(min(max(log(self.trust.far_square) - caution, _LOWEST), _HIGHEST))
        self.noise_weight = _START_WEIGHT
        if self.reference > 0.0:
            self.squares = 0.0
            self.weight = 0.0
            self.copies = 0.0
            self.trusted_copies = 0.0
            self.total = 0.0
            self.last_seen = self.n_seen
            self.start_reweighing()

    def is_due(self, size):
        """Whether the rows so far are to be re-weighed before the next one, which takes a decomposition of this size.

        A large one waits until there are rows that pay for it.
        """
        per_row = _WEIGHTS_PER_ROW if size < _LARGE else 1.0
        if self.reference == 0.0 or self.n_seen - self.last_seen < size / per_row:
            return False
        gap = log(self.noise) - self.last_log_noise
        grown = self.noise_weight - self.last_noise_weight
        square = 0.5 * self.noise_weight * max(gap * gap - _MOVED * _MOVED, 0.0)
        square += 0.5 * grown * grown / (self.noise_weight * max(self.last_noise_weight, 1e-300))
        return square > min(_MOVED_PER_WEIGHT * size * size, 1.0)

    def response_steps(self):
        """How many steps of `noise.Response` say how a row changes with the noise; none where it is not learned."""
        if self.reference == 0.0:
            return 0
        return N_STEPS if self.noise_weight * _VAGUE * _VAGUE <= 2.0 else 1

    def new_reference(self, all_rows):
        """Move to a new reference and return the share ``old / new`` by which the rows' precision changes."""
        old = self.reference
        n = all_rows.n_directions
        # As long as there are hardly more rows than directions a row fits exactly, and so do its copies: they would
        # make the noise vanish.
        self.trusted_copies = min(max((self.weight - n) / min(_RAMP, 2.0 * n), 0.0), 1.0)
        mean, var, total, new = marginal_noise(
            all_rows,
            old,
            self.squares,
            self.weight + self.trusted_copies * self.copies,
            self.log_start,
            self.start_weight,
            log(self.noise),
            sqrt(2.0 / self.noise_weight),
        )
        self.last_seen = self.n_seen
        self.last_noise_weight = self.noise_weight
        left = squares_left(all_rows, new, old, self.squares)
        if not isfinite(mean + var + total + new + left):  # targets beyond 1e70: as it was is the best that is known
            return 1.0
        self.noise = exp(mean)
        self.noise_weight = 2.0 / var
        self.last_noise_weight = self.noise_weight
        self.log_evidence += total - self.total
        self.total = total
        self.last_log_noise = mean
        if fabs(old / new - 1.0) <= _SAME:
            return 1.0
        self.squares = left
        self.reference = new
        return old / new

    def reweigh(
        self,
        diagonal: cython.double[::1],
        below: cython.double[::1],
        square: cython.double,
        log_det: cython.double,
        n_directions: cython.double,
    ) -> float:
        """See `new_reference` and `noise.AllRows`, for callers in Python."""
        n: cython.Py_ssize_t = diagonal.shape[0]
        all_rows: AllRows = AllRows(
            n=n,
            diagonal=cython.address(diagonal[0]),
            below=cython.address(below[0]),
            square=square,
            log_det=log_det,
            n_directions=n_directions,
        )
        return self.new_reference(cython.address(all_rows))

    def __reduce__(self):
        return PerceptronProgress.from_array, (self.to_array(),)


def _match_noise(likelihood, mean, var, y, log_noise, std):
    """Match a target whose log noise is ``N(log_noise, std²)``: a mixture of the matches at nodes of the log noise.

    With each node's share ``r`` in the mixture's density, ``score = E_r[score]``, ``information = E_r[information] -
    Var_r[score]`` and the ratio ``E_r[ratio] + var Var_r[score]``, which is positive as every ratio is.
    """
    noises: cython.double[62]
    matches: Match[62]
    shares: cython.double[62]
    known: cython.bint = std < _KNOWN
    start: cython.Py_ssize_t
    n: cython.Py_ssize_t
    start, n = _nodes_for(std)
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
    variance = 0.0
    for i in range(n):
        information += shares[i] * matches[i].information
        ratio += shares[i] * matches[i].variance_ratio
        scatter += shares[i] * (matches[i].score - score) * (matches[i].score - score)
        variance += shares[i] * (_NODES[start + i] - move) * (_NODES[start + i] - move)
    scatter /= mass
    cautious = matches[1 if known else n]
    weight = 2.0 / (std * std)
    if known:  # two nodes have no posterior variance to speak of: the information to be expected of the row
        share = min(max(cautious.variance_ratio, 0.0), 1.0)
        weight += share * share
    else:
        weight = min(weight * mass / max(variance, 1e-3), weight + 2.0 * _MOST_INFORMATION)
    return NoiseMatch(
        Match(top + log(mass), score, information / mass - scatter, ratio / mass + var * scatter),
        cautious,
        min(max(log_noise + std * move, _LOWEST), _HIGHEST),
        weight,
    )


def learn_scalar(likelihood, state, mean, var, input_var, y):
    """Learn all of a row but the weights; return the score, information and variance ratio of the belief's step.

    ``var`` is the variance of ``J'w``, ``input_var`` the variance that uncertain inputs add. A row that can't be
    learned gives NaN and changes nothing. Around a linear output, the noise is learned by `learn_noise`, which the
    caller calls once it knows how the belief's step went.
    """
    row_weight = state.row_weight()
    if not state.trust.active:
        error, total = _error_of(likelihood, state, mean, var + input_var, y)
        if error != error:  # an activation of the user's has failed
            return NAN, NAN, NAN
        if state.trust.is_far(error, total, state.largest):
            return _set_aside(state, error, total, row_weight)
        state.trust.note_near()
        state.square = error * error
        state.total_var = total
    if state.reference > 0.0:
        score, information, ratio = _linear_step(mean, var, input_var, y, state.reference, row_weight)
        square = row_weight * (y - mean) * (y - mean)
        if not (isfinite(var) and isfinite(score * var) and isfinite(score + information + ratio + square)):
            return NAN, NAN, NAN
        state.pending = True
        state.error = y - mean
        state.var = var
        state.input_var = input_var
        state.pending_weight = row_weight
        state.n_weighted += 1
        return score, information, ratio
    state.row_evidence = 0.0
    known_noise: cython.bint = likelihood.linear and state.noise_weight == 0.0 and state.noise > 0.0
    if known_noise and row_weight != 1.0 and input_var == 0.0 and not state.trust.active:
        score, information, ratio = _linear_copies(state, mean, var, y, row_weight)
    elif row_weight <= 1.0:
        score, information, ratio = _learn_copy(likelihood, state, mean, var, input_var, y, row_weight, True)
    else:
        score, information, ratio = _learn_copies(likelihood, state, mean, var, input_var, y, row_weight)
    if isfinite(score):
        state.n_seen += 1.0
        state.n_weighted += 1
    return score, information, ratio


def _learn_copies(likelihood, state, mean, var, input_var, y, row_weight):
    """Learn a row that counts more than once, copy after copy; see `learn_scalar`."""
    score = 0.0
    information = 0.0
    ratio = 1.0
    left = row_weight
    log_density = NAN
    while left > 0.0:
        part = copies_now(left, row_weight)
        first: cython.bint = left == row_weight
        own_score, own_information, own_ratio = _learn_copy(likelihood, state, mean, var, input_var, y, part, first)
        if not isfinite(own_score):
            return NAN, NAN, NAN
        if first:
            log_density = state.log_density
        left = copies_after(left, part)
        # One step after the other in one direction is a step in it.
        score += own_score * ratio
        information += own_information * ratio * ratio
        ratio *= own_ratio
        mean += own_score * var
        var *= own_ratio
    state.log_density = log_density
    return score, information, ratio


def _error_of(likelihood, state, mean, var, y):
    """Error of a number's prediction and its variance, noise included; no error for what is not a number."""
    error, output_var = likelihood.error_of(mean, var, y)
    return error, output_var + state.noise


def _set_aside(state, error, var, row_weight):
    """Count a row that is set aside, see `outliers`, and make no step."""
    state.trust.note_far(error)
    state.trust.learn()
    state.log_density = far_log_density(error, var)
    state.row_evidence = row_weight * state.log_density
    state.log_evidence += state.row_evidence
    state.n_seen += 1.0
    state.n_weighted += 1
    return 0.0, 0.0, 1.0


def _linear_step(mean, var, input_var, y, noise, row_weight):
    """The step of a row around a linear output: ``row_weight`` copies are one with a part of the noise."""
    own = noise / row_weight + input_var
    total = var + own
    return (y - mean) / total, 1.0 / total, own / total


def _linear_copies(state, mean, var, y, row_weight):
    """Learn a row of any weight around a linear output whose noise is known; see `learn_scalar`."""
    score, information, ratio = _linear_step(mean, var, 0.0, y, state.noise, row_weight)
    z = state.noise
    evidence = _log_copies(y - mean, var, z, log(z), row_weight, row_weight)
    if not (isfinite(var) and isfinite(score * var) and isfinite(score + information + ratio + evidence)):
        return NAN, NAN, NAN
    state.log_density = _log_copies(y - mean, var, z, log(z), 1.0, 1.0)
    state.row_evidence = evidence
    state.log_evidence += evidence
    state.count_row()
    return score, information, ratio


def learn_noise(state, response):
    """Learn the noise from a row for which that was left open, and score the row.

    ``response`` says what its variance and error would have been at another noise, see `noise`.
    """
    if not state.pending:
        return
    state.pending = False
    w = state.pending_weight
    e = state.error
    v = state.var
    s = state.reference
    state.square = e * e
    state.total_var = v + state.input_var + state.noise
    noise = state.noise
    std = sqrt(2.0 / state.noise_weight)
    noise_copies = min(w, 1.0) + state.trusted_copies * max(w - 1.0, 0.0)
    log_density, move, variance = _noise_mixture(e, v, state.input_var, w, noise_copies, response, s, noise, std)
    state.log_evidence += log_density
    state.row_evidence = log_density
    state.total += log_density
    if w != 1.0:
        state.log_density, _, _ = _noise_mixture(e, v, state.input_var, 1.0, 1.0, response, s, noise, std)
    else:
        state.log_density = log_density
    if std < _KNOWN:  # the information to be expected of the row
        own = response.diagonal[0] if response.n > 0 else 1.0  # share of the variance that is the prior's
        share = (s + (1.0 - own) * v) / (s + v + state.input_var)
        weight = state.noise_weight + (w * share * share if w < 1.0 else share * share + noise_copies - 1.0)
        slope = move / std
        shift = min(max(2.0 * slope / weight, -1.0), 1.0)
    else:
        weight = min(
            2.0 / max(variance, 1e-3 * std * std), state.noise_weight + 2.0 * _MOST_INFORMATION * max(noise_copies, 1.0)
        )
        shift = std * move
    state.noise = min(max(noise * exp(shift), _LEAST_NOISE), _LARGEST_NOISE)
    state.noise_weight = min(weight, state.noise_window)
    if fabs(move) > _SURPRISE:  # further than one row can tell: all of them are asked before the next
        state.last_noise_weight = 0.0
        state.last_seen = 0.0
    state.squares += w * e * (e / (1.0 + w * (v + state.input_var) / s))
    state.weight += min(w, 1.0)
    state.copies += max(w - 1.0, 0.0)
    state.n_seen += 1.0
    state.count_row()


def learn_noise_from(state, numbers: cython.const[cython.double][:, ::1]) -> None:
    """See `learn_noise`, for callers in Python: diagonal, what is below it, and pull of the response, ``(3, n)``."""
    response: Response
    _read_response(numbers, cython.address(response))
    learn_noise(state, cython.address(response))


def _read_response(numbers, response):
    """Take a response from an array ``(3, n)``."""
    i: cython.Py_ssize_t
    response.n = min(numbers.shape[1], N_STEPS)
    for i in range(response.n):
        response.diagonal[i] = numbers[0, i]
        response.below[i] = numbers[1, i]
        response.pull[i] = numbers[2, i]


def _noise_mixture(e, v, input_var, w, noise_copies, response, s, noise, std):
    """Log density of ``w`` copies of a target over nodes of the log noise, and mean and variance of these after it.

    Of these, ``noise_copies`` count for the noise. The mean is in standard deviations from that before.
    Where the noise is known well, the first two derivatives of the log density in the log noise serve instead of
    nodes, and the mean is the slope times the standard deviation.
    """
    if std < _KNOWN:
        return _known_noise_density(e, v, input_var, w, noise_copies, response, s, noise, std)
    log_noise = log(noise)
    shares: cython.double[61]
    start: cython.Py_ssize_t
    n: cython.Py_ssize_t
    start, n = _nodes_for(std)
    top = -INFINITY
    i: cython.Py_ssize_t
    for i in range(n):
        log_z = min(max(log_noise + std * _NODES[start + i], _LOWEST), _HIGHEST)
        z = exp(log_z)
        factor, change = respond(response, z / s)
        shares[i] = _LOG_WEIGHTS[start + i] + _log_copies(e + change, v * factor + input_var, z, log_z, w, noise_copies)
        top = max(top, shares[i])
    mass = 0.0
    move = 0.0
    for i in range(n):
        shares[i] = exp(shares[i] - top)
        mass += shares[i]
        move += shares[i] * _NODES[start + i]
    move /= mass
    variance = 0.0
    for i in range(n):
        variance += shares[i] * (_NODES[start + i] - move) * (_NODES[start + i] - move)
    return top + log(mass), move, variance / mass * std * std


def _known_noise_density(e, v, input_var, w, noise_copies, response, s, noise, std):
    """See `_noise_mixture`, for a log noise with a small standard deviation."""
    factor, change = respond(response, noise / s)
    error = e + change
    total = noise + w * (v * factor + input_var)
    share = noise / total
    square = min(w * error * (error / total), 1e150)
    log_density = -0.5 * (noise_copies * (LOG_2PI + log(noise)) + square)
    slope = -0.5 * (noise_copies - 1.0 + share - square * share)
    curvature = -0.5 * (share * (1.0 - share) * (1.0 - square) + square * share * share)
    # Of e^(slope t + curvature t²/2) under N(0, std²), which no wild target makes infinite.
    variance = std * std / max(1.0 - curvature * std * std, 0.1)
    log_density += 0.5 * min(slope * slope * variance, square) + 0.5 * log(share * (variance / (std * std)))
    return log_density, slope * std, 0.0


def _log_copies(error, var, noise, log_noise, w, noise_copies):
    """Log density of ``w`` copies of a target, ``noise_copies`` of which count for the noise."""
    total = noise + w * var
    return -0.5 * (noise_copies * (LOG_2PI + log_noise) + log(total / noise) + min(w * error * (error / total), 1e300))


def _nodes_for(std):
    """Where the nodes start that a log noise of this standard deviation needs, and how many they are."""
    if std < _KNOWN:
        return N_VAGUE + N_ROUGH + N_FEW, 2
    if std < _FAMILIAR:
        return N_VAGUE + N_ROUGH, N_FEW
    if std < 1.0:
        return N_VAGUE, N_ROUGH
    return 0, N_VAGUE


def _learn_copy(likelihood, state, mean, var, input_var, y, row_weight, first):
    """Learn a row that counts once, or a part of it, or a little more; see `learn_scalar`.

    Only the ``first`` copy of a number tells of the noise: weights that are hardly known, or drift, fit the others
    exactly. And only the first copy of any target may hint at a jump: the others are not rows of their own.
    """
    total = var + input_var
    noise = state.noise
    noise_weight = state.noise_weight
    learns_noise: cython.bint = noise_weight > 0.0
    if learns_noise:
        unknown = _match_noise(likelihood, mean, total, y, log(noise), sqrt(2.0 / noise_weight))
        match = unknown.cautious
        match.log_z = unknown.match.log_z
    else:
        match = likelihood.match(mean, total, y, noise)
    trusted = 1.0
    doubts: cython.bint = state.trust.active
    if doubts:
        doubt = likelihood.doubt(match, mean, total, y, noise, state.trust)
        trusted = doubt.shares[0]
        match = doubt.match
    learns_noise = learns_noise and (first or not likelihood.continuous)
    if learns_noise:
        noise, noise_weight = _learned_noise(unknown, log(noise), noise_weight, trusted)
        noise_weight = min(noise_weight, state.noise_window)
    log_z = match.log_z
    score = match.score
    information = match.information
    ratio = match.variance_ratio + information * input_var
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
    state.row_evidence += row_weight * log_z
    if doubts:
        error, _ = likelihood.error_of(mean, total, y)
        state.trust.note(doubt.shares, doubt.uninformative, min(error * error, 1e300))
        if doubt.has_coupling:
            state.trust.note_coupling(doubt.coupling)
    if first:
        state.count_row()
    elif doubts:
        state.trust.count_copy()
    return score, information, ratio


def _learned_noise(after, log_noise, weight, trusted):
    """The noise and its weight after a row that is trusted so far: a mixture of the belief after it and that before."""
    if trusted == 1.0:
        return exp(after.log_noise), after.noise_weight
    if trusted == 0.0:  # of a target beyond all bounds the belief after it may not be a number
        return exp(log_noise), weight
    move = after.log_noise - log_noise
    var = trusted * 2.0 / after.noise_weight + (1.0 - trusted) * (2.0 / weight + trusted * move * move)
    return exp(log_noise + trusted * move), 2.0 / var


def _tempered_noise(state, noise, noise_weight, row_weight):
    """The noise and its weight after a row whose site, of the log noise, counts so much."""
    weight = state.noise_weight + row_weight * (noise_weight - state.noise_weight)
    before = (1.0 - row_weight) * state.noise_weight * log(state.noise)
    return exp((before + row_weight * noise_weight * log(noise)) / weight), weight


def learn_row(likelihood, state, mean, var, input_var, y, site):
    """Learn a row, keep its site unless it is NULL or, if it has one, learn the row again; as `learn_scalar`.

    A row learned again is no new evidence. Shares are learned on their own here: a row that is learned again says what
    it does given the weights and shares that all the others lead to.
    """
    if site == cython.NULL:
        return learn_scalar(likelihood, state, mean, var, input_var, y)
    if not isnan(site.precision):
        return _learn_again(likelihood, state, mean, var, input_var, y, site)
    weight = state.noise_weight
    log_noise = log(state.noise) if weight > 0.0 else 0.0
    i: cython.Py_ssize_t
    for i in range(N_WAYS):
        site.counts[i] = -state.trust.counts[i]
    state.trust.learns_scale = False
    score, information, ratio = learn_scalar(likelihood, state, mean, var, input_var, y)
    state.trust.learns_scale = True
    state.trust.add_to(site.counts)
    site.precision = information / ratio
    site.shift = (score + information * mean) / ratio
    site.noise_precision = 0.5 * (state.noise_weight - weight)
    site.noise_shift = 0.5 * (log(state.noise) * state.noise_weight - log_noise * weight) if weight > 0.0 else 0.0
    return score, information, ratio


def _cavity(state, mean, var, site):
    """The beliefs without a row; see `Cavity`."""
    cavity: Cavity = Cavity(left=0.0, mean=0.0, var=0.0, log_noise=0.0, noise_precision=0.0, noise_shift=0.0)
    noise_precision = 0.5 * state.noise_weight
    left = 1.0 - site.precision * var
    noise_left = noise_precision - site.noise_precision
    if not (left > _SITE_MARGIN and noise_left >= _SITE_MARGIN * noise_precision):
        return cavity
    cavity.left = left
    cavity.mean = (mean - site.shift * var) / left
    cavity.var = var / left
    if noise_precision > 0.0:
        cavity.noise_precision = noise_left
        cavity.noise_shift = log(state.noise) * noise_precision - site.noise_shift
        cavity.log_noise = min(max(cavity.noise_shift / noise_left, _LOWEST), _HIGHEST)
    return cavity


def _learn_again(likelihood, state, mean, var, input_var, y, site):
    """Replace the site of a row by what the row says given all the others; a site that can't be removed stays."""
    learns_noise: cython.bint = state.noise_weight > 0.0
    row_weight = state.row_weight()
    state.n_weighted += 1
    if state.reference > 0.0:  # no other row changes what a row says
        return 0.0, 0.0, 1.0
    cavity: Cavity = _cavity(state, mean, var, site)
    if cavity.left == 0.0:
        return 0.0, 0.0, 1.0
    total_var = cavity.var + input_var
    error, total = _error_of(likelihood, state, cavity.mean, total_var, y)
    if state.trust.is_far(error, total, state.largest):
        return 0.0, 0.0, 1.0
    if learns_noise:
        std = 1.0 / sqrt(cavity.noise_precision)
        unknown = _match_noise(likelihood, cavity.mean, total_var, y, cavity.log_noise, std)
        match = unknown.match
        noise = exp(cavity.log_noise)
    else:
        noise = state.noise
        match = likelihood.match(cavity.mean, total_var, y, noise)
    trusted = 1.0
    recounts: cython.bint = state.trust.active and state.trust.remove_counts(site.counts)
    if state.trust.active:
        doubt = likelihood.doubt(match, cavity.mean, total_var, y, noise, state.trust)
        match = doubt.match
        trusted = doubt.shares[0]
        if recounts:
            state.trust.add_counts(site.counts)
    new: Site = site[0]
    if learns_noise:
        noise, weight = _learned_noise(unknown, cavity.log_noise, 2.0 * cavity.noise_precision, trusted)
        own = 0.5 * weight - cavity.noise_precision
        new.noise_precision = _towards(site.noise_precision, row_weight * own)
        own = 0.5 * weight * log(noise) - cavity.noise_precision * cavity.log_noise
        new.noise_shift = _towards(site.noise_shift, row_weight * own)
    ratio = match.variance_ratio + match.information * input_var
    new.precision = _towards(site.precision, row_weight * match.information / ratio)
    new.shift = _towards(site.shift, row_weight * (match.score + match.information * cavity.mean) / ratio)
    after = cavity.left + new.precision * var  # the precision with the new site over that with the old one
    if not (ratio > 0.0 and after > _SITE_MARGIN and isfinite(after + new.shift)):
        return 0.0, 0.0, 1.0
    if learns_noise and not _replace_noise(state, cython.address(cavity), cython.address(new)):
        return 0.0, 0.0, 1.0
    score = (new.shift - site.shift - mean * (new.precision - site.precision)) / after
    information = (new.precision - site.precision) / after
    site[0] = new
    if recounts:
        state.trust.replace_counts(doubt.shares, _DAMPING, site.counts)
    return score, information, 1.0 / after


def _replace_noise(state, cavity, new):
    """Move the belief about the noise to the cavity's and a row's new site; whether that is a belief."""
    precision = cavity.noise_precision + new.noise_precision
    if not (isfinite(precision + new.noise_shift) and precision > _SITE_MARGIN * 0.5 * state.noise_weight):
        return False
    state.noise = exp(min(max((cavity.noise_shift + new.noise_shift) / precision, _LOWEST), _HIGHEST))
    state.noise_weight = 2.0 * precision
    return True


def _towards(old, new):
    return old + _DAMPING * (new - old)


def learn_with_site(
    likelihood, state, mean: cython.double, var: cython.double, input_var: cython.double, y: cython.double, site
) -> tuple[float, float, float]:
    """See `learn_row`, for callers in Python; ``site`` is an array ``(SITE_SIZE,)``."""
    view: cython.double[::1] = site
    own = cython.cast(cython.pointer(Site), cython.address(view[0]))
    return learn_row(likelihood, state, mean, var, input_var, y, own)


def score_row(likelihood, state, mean, own_var, input_var, response, y):
    """Log density that `learn_scalar` would score a target with, and how far it would distrust it."""
    var = own_var + input_var
    error, total = _error_of(likelihood, state, mean, var, y)
    if state.trust.is_far(error, total, state.largest):
        return far_log_density(error, total), 1.0
    if state.reference > 0.0:
        log_density, _, _ = _noise_mixture(
            y - mean,
            own_var,
            input_var,
            1.0,
            1.0,
            response,
            state.reference,
            state.noise,
            sqrt(2.0 / state.noise_weight),
        )
        return log_density, 0.0
    if state.noise_weight > 0.0:
        match = _match_noise(likelihood, mean, var, y, log(state.noise), sqrt(2.0 / state.noise_weight)).match
    else:
        match = likelihood.match(mean, var, y, state.noise)
    if not state.trust.active:
        return match.log_z, 0.0
    doubt = likelihood.doubt(match, mean, var, y, state.noise, state.trust)
    return doubt.match.log_z, 1.0 - doubt.shares[0]


def score_rows(likelihood, state, mean, var, input_var, responses, y) -> FloatArray:
    """See `score_row`; for all rows, ``(2, n)``. ``responses`` are those of `learn_noise_from`, ``(n, 3, steps)``."""
    result = np.empty((2, mean.shape[0]))
    out: cython.double[:, ::1] = result
    i: cython.Py_ssize_t
    response: Response
    with cython.nogil:
        for i in range(mean.shape[0]):
            _read_response(responses[i], cython.address(response))
            out[0, i], out[1, i] = score_row(
                likelihood, state, mean[i], var[i], input_var[i], cython.address(response), y[i]
            )
    likelihood.raise_pending()
    return result
