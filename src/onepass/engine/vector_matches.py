"""Moment matches of likelihoods with several outputs: the update of the outputs ``o ~ N(mean, cov)`` of a network.

With ``Z = ∫ p(y|o) N(o; mean, cov) do``, the score is the gradient of ``log Z`` in the mean and the information minus
its second derivative, so that with ``c = C J``, the covariance of weights and outputs, the belief takes the step ``c
score`` and ``-c information c'``. A Gaussian site ``exp(h'o - o'precision o/2)`` with ``h = precision mean + shift``
makes the same step; refinement stores the site, to remove it later.

A target that may not be trusted, see `outliers`, has the mixture of the matches that it would have in each way:
``score = E_r[score]``, ``information = E_r[information] - Cov_r[score]``, with each way's share ``r`` in the density.

An output whose target is NaN was not observed: it has no score and no information, and what is learned is the match of
the others, as if they were all there is. Noise, calibration and trust follow what was observed, and nothing else.

One class per likelihood; the one for classes is in `class_matches`. Nothing here knows about weights or layers.
"""

from typing import NamedTuple, Self

import cython
import numpy as np
from cython.cimports.libc.math import INFINITY, NAN, exp, fabs, isfinite, isnan, log, sqrt
from cython.cimports.onepass.engine.gumbel import N_TERMS
from cython.cimports.onepass.engine.matches import CompiledLikelihood, copies_after, copies_now, uninformative_shares
from cython.cimports.onepass.engine.outliers import (
    N_WAYS,
    NOISE_SCALES,
    Trust,
    far_log_density,
    log_rarity,
)
from cython.cimports.onepass.engine.small_matrices import apply, diagonalise, factorise, invert, is_positive
from cython.cimports.onepass.engine.special import LOG_2PI

from onepass._typing import FloatArray

NOISE_FLOOR = 1e-6
SCALE_START_WEIGHT = 10.0
SCALE_GAIN, SCALE_CLIP = 3.0, 9.0
OUTPUT_NOISE_START, OUTPUT_NOISE_START_WEIGHT = 0.02, 10.0
ALONE = 2.0  # times that an unusual variance of an output counts where a network predicts alone
ROUNDING = 1e-12  # share of a variance that a step may add to it by rounding alone
LEAST_LEFT = 1e-12  # of a variance, in one direction, by one row
LOG_NOISE_BOUNDS = (float(np.log(1e-6)), 30.0)  # the log noise variance is cut there: targets are of unit scale

_NOISE_FLOOR = cython.declare(cython.double, NOISE_FLOOR)
_SCALE_GAIN = cython.declare(cython.double, SCALE_GAIN)
_SCALE_START_WEIGHT = cython.declare(cython.double, SCALE_START_WEIGHT)
_SCALE_CLIP = cython.declare(cython.double, SCALE_CLIP)
_ALONE = cython.declare(cython.double, ALONE)
# A site is removed only if at least this share of its own noise is left of the difference; else it stays.
_SITE_MARGIN = cython.declare(cython.double, 1e-3)
_ROUNDING = cython.declare(cython.double, ROUNDING)
_LOW = cython.declare(cython.double, LOG_NOISE_BOUNDS[0])
_HIGH = cython.declare(cython.double, LOG_NOISE_BOUNDS[1])
_LEAST_LOG = cython.declare(cython.double, float(np.log(1e-12)))  # of a noise of one output that is learned
_LARGEST_LOG = cython.declare(cython.double, float(np.log(1e6)))
_FARTHEST = cython.declare(cython.double, 10.0)  # errors count as at most so many deviations under the widest noise
_LEAST_RATIO = cython.declare(cython.double, 0.1)  # one row leaves at least this share of the variance of a log noise
_LEAST_VARIANCE = cython.declare(cython.double, 1e-8)  # below it a log noise counts as known
_LARGEST = cython.declare(cython.double, 1e294)  # of variances and squares: over the least noise it is within float64
# Times the variance: the most that the square of an error counts where targets may not be trusted.
_FARTHEST_NEAR = cython.declare(cython.double, 1e6)
_NODES = cython.declare(cython.double[43])  # in standard deviations of the log noise
_LOG_WEIGHTS = cython.declare(cython.double[43])
_nodes = np.linspace(-7.0, 7.0, N_NODES)
_FEW_NODES = cython.declare(cython.double[13])  # the same for a noise of one output, which is learned faster
for _i, _node in enumerate(np.linspace(-4.5, 4.5, 13)):
    _FEW_NODES[_i] = _node
for _i, _log_weight in enumerate(-0.5 * _nodes**2 - np.log(np.exp(-0.5 * _nodes**2).sum())):
    _NODES[_i], _LOG_WEIGHTS[_i] = _nodes[_i], _log_weight


class NetworkProgress:
    """All that learning changes in a network besides its belief; of each output, ``(K,)``, the noise and a scale.

    `step.PerceptronProgress` is its counterpart. A perceptron has a belief about its one noise, exact enough to
    re-weigh the rows of the past by it. A network's errors come from its linearisation as well, so it has a running
    estimate of each output's noise, and a scale that calibrates what it predicts.

    Parameters
    ----------
    noise : noise variances as they are now
    noise_weight : how much information each rests on; 0 where it is fixed
    scale : predictive scales, by which all variances of a prediction are multiplied
    scale_weight : how many rows each rests on; 0 where it is fixed
    usual_var : mean of the outputs' variances in the rows learned, each before it was learned; 0 where it is not known
    largest : squares of the largest errors so far; at first, how far the prior reaches
    trust : which rows are to be trusted; all of them by default

    Attributes
    ----------
    row_weight : how many copies, above 0, the row that comes now counts as
    row_evidence : what the row that was matched last adds to the log evidence: the log density of all its copies
    log_evidence : sum of the log predictive densities of all rows
    n_seen : rows learned
    """

    def __init__(self, noise, noise_weight, scale, scale_weight, usual_var, largest, trust: Trust = None):
        self.trust, self.factor = Trust() if trust is None else trust, 1.0
        self.row_weight, self.row_evidence, self.log_evidence, self.n_seen = 1.0, 0.0, 0.0, 0
        given = (noise, noise_weight, scale, scale_weight, usual_var, largest)
        arrays = [np.array(part, dtype=np.float64, order="C") for part in given]
        self.noise, self.noise_weight, self.scale, self.scale_weight, self.usual_var, self.largest = arrays
        view: cython.double[::1] = self.noise
        self.noise_of = cython.address(view[0])
        view = self.noise_weight
        self.noise_weight_of = cython.address(view[0])
        view = self.scale
        self.scale_of = cython.address(view[0])
        view = self.scale_weight
        self.scale_weight_of = cython.address(view[0])
        view = self.usual_var
        self.usual_var_of = cython.address(view[0])
        view = self.largest
        self.largest_of = cython.address(view[0])

    @staticmethod
    def start(n_outputs, noise, calibrate, outliers=0.0) -> NetworkProgress:
        """Before the first row; a ``noise`` of None is learned, and a share of rows are ``outliers``."""
        learned = noise is None
        return NetworkProgress(
            np.full(n_outputs, OUTPUT_NOISE_START if learned else noise),
            np.full(n_outputs, OUTPUT_NOISE_START_WEIGHT if learned else 0.0),
            np.ones(n_outputs),
            np.full(n_outputs, SCALE_START_WEIGHT if calibrate else 0.0),
            np.zeros(n_outputs),
            np.zeros(n_outputs),
            Trust.start(outliers),
        )

    def begin_anew(self) -> None:
        """After a jump of the truth, forget how well the noise is known.

        If nothing else is kept either, the noise may be as large as the errors of the last rows that were far off.
        """
        if self.trust.starts_over():
            self.noise[:] = np.where(self.noise_weight > 0.0, self.trust.far_square, self.noise)
            self.scale[:], self.largest[:] = 1.0, self.trust.far_square
            np.minimum(self.scale_weight, SCALE_START_WEIGHT, out=self.scale_weight)
        self.trust.reset_after_jump()
        np.minimum(self.noise_weight, OUTPUT_NOISE_START_WEIGHT, out=self.noise_weight)

    def restart_calibration(self) -> None:
        """Begin the predictive scale anew, if it is learned."""
        if self.scale_weight[0] > 0.0:
            self.scale[:], self.scale_weight[:] = 1.0, SCALE_START_WEIGHT

    def widened(self) -> NetworkProgress:
        """A copy to predict from, whose scales are wider while they rest on few rows."""
        wider = self.copy()
        wider.scale[:] *= widening(self.scale_weight)
        return wider

    def widened_scale(self, k):
        """The predictive scale of an output, wider while it rests on few rows: see `widening`."""
        weight = max(self.scale_weight_of[k], _SCALE_START_WEIGHT)
        wider = weight / (weight - 2.0 * _SCALE_GAIN) if self.scale_weight_of[k] > 0.0 else 1.0
        return wider * self.scale_of[k]

    def calibrated_var(self, k, var, noise, scale, times):
        """Variance of a target of output ``k`` at a scale, if an unusual variance of the output counts so many times.

        See `onepass.likelihoods.calibration.excess_var`.
        """
        usual = self.usual_var_of[k]
        total = scale * (var + noise)
        return total + (times * max(scale, 1.0) - scale) * (var - usual) if 0.0 < usual < var else total

    def is_calibrated(self):
        """Whether predictive scales are learned; else they are 1."""
        return self.scale_weight_of[0] > 0.0

    def with_noise_times(self, factor) -> NetworkProgress:
        """A copy whose noise is multiplied by a factor."""
        changed = self.copy()
        changed.noise[:] *= factor
        return changed

    def copy(self) -> Self:
        """Make an independent copy."""
        return NetworkProgress(*self.to_array(), self.trust.copy())

    def to_array(self) -> FloatArray:
        """All numbers, ``(6, K)``, as files have them."""
        return np.stack([self.noise, self.noise_weight, self.scale, self.scale_weight, self.usual_var, self.largest])

    def assign(self, array) -> None:
        """Take over the numbers that `to_array` gave."""
        self.noise[:], self.noise_weight[:], self.scale[:], self.scale_weight[:] = array[:4]
        self.usual_var[:], self.largest[:] = array[4:]

    def __reduce__(self):
        return NetworkProgress, (*self.to_array(), self.trust)


def widening(scale_weight) -> FloatArray:
    """How much wider than its estimate a predictive scale is that rests on few rows; 1 where it is fixed.

    Each row moves the scale by ``gain / weight``, so it is a mean of about ``ν = weight / gain`` squared errors, and a
    target is Student-t distributed: its variance is ``ν / (ν - 2)`` times that of a Gaussian with the estimated scale.
    """
    weight = np.maximum(scale_weight, SCALE_START_WEIGHT)
    return np.where(scale_weight > 0.0, weight / (weight - 2.0 * SCALE_GAIN), 1.0)


class VectorMatch:
    """Score, information and site of one target, and the memory in which they are computed; for one thread."""

    def __init__(self, size: cython.Py_ssize_t):
        self.size = size
        square = size * size
        self.memory = np.zeros(10 * size + 8 * square + size * N_TERMS + MOST_NODES * (size + 2))
        view: cython.double[::1] = self.memory
        start = cython.address(view[0])
        self.score, self.shift, self.vector = start, start + size, start + 2 * size
        self.log_p, self.variances, self.centre = start + 3 * size, start + 4 * size, start + 5 * size
        start += 6 * size
        self.information, self.precision = start, start + square
        self.first, self.second, self.third = start + 2 * square, start + 3 * square, start + 4 * square
        start += 5 * square
        self.terms = start
        self.node_weights = start + size * N_TERMS
        self.slopes = self.node_weights + MOST_NODES
        self.mixed_score = self.slopes + (size + 1) * MOST_NODES
        self.mixed_information = self.mixed_score + size
        self.own_information = self.mixed_information + square
        self.copy_mean = self.own_information + size
        self.copy_shift = self.copy_mean + size
        self.copy_cov = self.copy_shift + size
        self.copy_precision = self.copy_cov + square
        self.likely_memory = np.zeros(size, dtype=np.intp)
        indices: cython.Py_ssize_t[::1] = self.likely_memory
        self.likely = cython.address(indices[0])
        self.n_likely, self.unlikely, self.unlikely_square, self.origin, self.coarsest = 0, 0.0, 0.0, 0.0, 0.0

    def leave_out_widening(self, cov):
        """Make no step in the directions in which a target would make the outputs ``N(mean, cov)`` less certain.

        In one pass such a step is right; but a site of negative precision, which stays while the others are linearised
        anew around it, may leave nothing of a precision. Without any, the belief is never wider than the prior.
        """
        n = self.size
        i: cython.Py_ssize_t
        j: cython.Py_ssize_t
        k: cython.Py_ssize_t
        root, shares, vectors = self.first, self.second, self.third
        factorise(n, cov, root)
        # The shares of the variance that the step explains are the eigenvalues of root' information root.
        for i in range(n):
            for j in range(n):
                entry = 0.0
                for k in range(j, n):
                    entry += self.information[i * n + k] * root[k * n + j]
                vectors[i * n + j] = entry
        for i in range(n):
            for j in range(n):
                entry = 0.0
                for k in range(i, n):
                    entry += root[k * n + i] * vectors[k * n + j]
                shares[i * n + j] = entry
        diagonalise(n, shares, vectors)
        widens: cython.bint = False
        for j in range(n):
            share = shares[j * n + j]
            if share >= -_ROUNDING:
                continue
            widens = True
            # The direction u of which root' u is the eigenvector, and the score's part along it.
            for i in range(n - 1, -1, -1):
                entry = vectors[i * n + j]
                for k in range(i + 1, n):
                    entry -= root[k * n + i] * self.vector[k]
                self.vector[i] = entry / root[i * n + i] if root[i * n + i] > 0.0 else 0.0
            for i in range(n):
                for k in range(n):
                    self.information[i * n + k] -= share * self.vector[i] * self.vector[k]
        if widens:
            fill_site(cov, self)

    def clear(self):
        """Make no step."""
        i: cython.Py_ssize_t
        for i in range(self.size):
            self.score[i] = 0.0
            self.shift[i] = 0.0
        for i in range(self.size * self.size):
            self.information[i] = 0.0
            self.precision[i] = 0.0


class OutputMatch(NamedTuple):
    """The update of a belief ``N(mean, cov)`` about the outputs by a target.

    With ``c`` the covariance of the weights and the outputs, the step is ``c score`` and ``-c information c'``. A
    Gaussian site ``exp(h'o - o'precision o/2)`` on the outputs ``o``, with ``h = precision mean + shift``, makes the
    same step; refinement stores the site to remove it later.
    """

    log_density: float
    score: "FloatArray"  # (K,)
    information: "FloatArray"  # (K, K)
    precision: "FloatArray"  # (K, K)
    shift: "FloatArray"  # (K,)


class OutputRecord(NamedTuple):
    """What rows are predicted from, ``(n, K)`` each.

    Mean, variance, noise and predictive scale of each output, what not knowing the noise adds to the variance of a
    target, how many rows the scale rests on, and the variance usual in them.
    """

    mean: "FloatArray"
    var: "FloatArray"
    noise: "FloatArray"
    scale: "FloatArray"
    unknown_noise: "FloatArray"
    scale_weight: "FloatArray"
    usual_var: "FloatArray"

    @staticmethod
    def of(records) -> OutputRecord:
        """The parts of the array, ``(n, 7, K)``, that kernels fill; to be changed in place."""
        return OutputRecord(*records.swapaxes(0, 1))


OUTPUT_RECORD_SIZE = len(OutputRecord._fields)


class VectorLikelihood:
    """A likelihood with ``n_outputs`` outputs, as compiled loops call it."""

    def __init__(self, n_outputs: int):
        self.n_outputs = self.size = self.n_columns = n_outputs

    def match(self, mean, cov, target, state, out):
        """Fill the match of a target, which may not be trusted, and return its log density."""
        if self.is_unobserved(target):
            state.row_evidence = 0.0
            return self.match_nothing(state, out)
        if not state.trust.active:
            log_z = self.set_aside(mean, cov, target, state, out)
            if state.trust.distrust > 0.0:
                state.row_evidence = state.row_weight * log_z
                return log_z
        if state.row_weight > 1.0 and not (self.copies_in_closed_form and not state.trust.active):
            return self.match_copies(mean, cov, target, state, out)
        log_z = self.match_once(mean, cov, target, state, out)
        state.row_evidence = state.row_weight * log_z
        if state.row_weight != 1.0:
            if self.copies_in_closed_form and not state.trust.active:
                state.row_evidence = self.match_power(mean, cov, target, state, out)
            else:
                temper(self.size, state.row_weight, cov, out)
        return log_z

    def match_power(self, mean, cov, target, state, out):
        """Fill the match of all copies of a target, where it has a closed form, and return the log density of them."""
        return NAN

    def match_once(self, mean, cov, target, state, out):
        """Fill the match of one copy of a target."""
        log_z = self.match_trusted(mean, cov, target, state, out)
        if state.trust.active:
            log_z = self.doubt(log_z, mean, cov, target, state, out)
        return log_z

    def match_copies(self, mean, cov, target, state, out):
        """Fill the match of several copies of a target, which are learned one after the other; the first one's density.

        The sites of the copies add up; what each of them meets is the belief about the outputs after those before it.
        """
        n = self.size
        i: cython.Py_ssize_t
        j: cython.Py_ssize_t
        for i in range(n):
            out.copy_mean[i] = mean[i]
            out.copy_shift[i] = 0.0
        for i in range(n * n):
            out.copy_cov[i] = cov[i]
            out.copy_precision[i] = 0.0
        first = 0.0
        evidence = 0.0
        left = state.row_weight
        while left > 0.0:
            part = copies_now(left, state.row_weight)
            log_z = self.match_once(out.copy_mean, out.copy_cov, target, state, out)
            evidence += part * log_z
            if left == state.row_weight:
                first = log_z
            # The site, about the mean before the first copy.
            for i in range(n):
                shift = out.shift[i]
                for j in range(n):
                    shift += out.precision[i * n + j] * (out.copy_mean[j] - mean[j])
                out.copy_shift[i] += part * shift
            for i in range(n * n):
                out.copy_precision[i] += part * out.precision[i]
            self.step_of_copies(cov, out)
            for i in range(n):
                out.copy_mean[i] = mean[i]
                for j in range(n):
                    out.copy_mean[i] += cov[i * n + j] * out.score[j]
            subtract_information(n, cov, out.information, out.copy_cov, out.first)
            left = copies_after(left, part)
        state.row_evidence = evidence
        return first

    def step_of_copies(self, cov, out):
        """Fill score and information of the site that copies have added up to: ``(I + precision cov)⁻¹`` of it."""
        n = self.size
        i: cython.Py_ssize_t
        carry_over(1.0, out.copy_precision, out.copy_shift, cov, out.information, out.score, out)
        for i in range(n):
            out.shift[i] = out.copy_shift[i]
        for i in range(n * n):
            out.precision[i] = out.copy_precision[i]

    def set_aside(self, mean, cov, target, state, out):
        """Note that a row is not set aside; only numbers can be far off."""
        state.trust.note_near()
        return 0.0

    def match_trusted(self, mean, cov, target, state, out):
        """Fill the match of a target that is trusted and return its log density; each likelihood overrides this."""
        return -INFINITY

    def is_unobserved(self, target):
        """Whether nothing of a target was observed."""
        k: cython.Py_ssize_t = 0
        while k < self.n_columns and isnan(target[k]):
            k += 1
        return k == self.n_columns

    def match_nothing(self, state, out):
        """Fill the match of a row without any target, of which there is nothing to distrust."""
        shares: cython.double[N_WAYS]
        i: cython.Py_ssize_t
        out.clear()
        for i in range(N_WAYS):
            shares[i] = 1.0 if i == 0 else 0.0
        state.trust.note(shares, False, 0.0)
        return 0.0

    def match_separate(self, mean, cov, target, state, out):
        """Fill the match of outputs that are independent, and stay so: no more than each one's own information.

        Of ``cov`` only the diagonal is not zero. Returns the log density.
        """
        log_z = self.match(mean, cov, target, state, out)
        k: cython.Py_ssize_t
        for k in range(self.size):
            out.own_information[k] = out.information[k * self.size + k]
        return log_z

    def log_uninformative(self, target):
        """Log density of a target that says nothing, not being trusted; labels and counts override this."""
        return NAN

    def wrong_given_uninformative(self, target):
        """How many targets that say nothing are wrong; the others are right by chance."""
        return 1.0

    def doubt(self, log_z, mean, cov, target, state, out):
        """Mix the match of a trusted target with those of one that isn't; by default with one that says nothing."""
        size = self.size
        i: cython.Py_ssize_t
        j: cython.Py_ssize_t
        log_z, says = self.note_uninformative(log_z, target, state)
        for i in range(size):
            for j in range(size):
                scatter = says * (1.0 - says) * out.score[i] * out.score[j]
                out.information[i * size + j] = says * out.information[i * size + j] - scatter
        for i in range(size):
            out.score[i] *= says
        fill_site(cov, out)
        return log_z

    def note_uninformative(self, log_z, target, state):
        """The log density of a target that may say nothing, and how probable it is that it says something."""
        shares: cython.double[N_WAYS]
        i: cython.Py_ssize_t
        log_z, says, wrong = uninformative_shares(
            log_z, self.log_uninformative(target), state.trust.outlier_share(), self.wrong_given_uninformative(target)
        )
        for i in range(N_WAYS):
            shares[i] = 0.0
        shares[0] = 1.0 - wrong
        shares[1] = wrong
        state.trust.note(shares, True, 0.0)
        return log_z, says

    def expected_noise(self, mean, cov, state, k):
        """Variance of the noise of output ``k`` that these outputs expect."""
        return state.noise_of[k]

    def marginals(self, mean, cov, centre, var, out):
        """Fill means and variances, ``(K,)``, of what predictions are made from."""
        k: cython.Py_ssize_t
        for k in range(self.n_outputs):
            centre[k] = mean[k]
            var[k] = max(cov[k * self.size + k], 0.0)

    def update_noise(self, mean, cov, target, state, gain, bound):
        """Update what runs along by a row that was matched: the trust, and the noise by the row's error."""
        if self.is_unobserved(target):
            return
        state.trust.learn()
        if state.trust.active or state.trust.distrust == 0.0:
            self.move_noise(mean, cov, target, state, gain, bound)

    def move_noise(self, mean, cov, target, state, gain, bound):
        """Update the learned noise by a row's error, as far as the row is trusted; labels have no noise."""

    def describe(self, mean, cov, state, record, out):
        """Fill what a row is predicted from, ``(7, K)``: see `OutputRecord`."""
        n = self.n_outputs
        k: cython.Py_ssize_t
        for k in range(n):
            record[2 * n + k] = self.expected_noise(mean, cov, state, k)
            record[3 * n + k] = state.scale_of[k]
            record[4 * n + k] = 0.0
            record[5 * n + k] = state.scale_weight_of[k]
            record[6 * n + k] = state.usual_var_of[k]
        self.marginals(mean, cov, record, record + n, out)

    def moment_match(self, mean, cov, target, state: NetworkProgress) -> OutputMatch:
        """The `OutputMatch` of one target."""
        out = VectorMatch(self.size)
        means: cython.double[::1] = np.array(mean, dtype=np.float64)
        covs: cython.double[:, ::1] = np.array(cov, dtype=np.float64, order="C")
        targets: cython.double[::1] = np.array(target, dtype=np.float64)
        log_density = self.match(
            cython.address(means[0]), cython.address(covs[0, 0]), cython.address(targets[0]), state, out
        )
        self.raise_pending()
        return OutputMatch(
            log_density,
            as_array(out.score, self.size),
            as_array(out.information, self.size * self.size).reshape(self.size, self.size),
            as_array(out.precision, self.size * self.size).reshape(self.size, self.size),
            as_array(out.shift, self.size),
        )

    def separate_match(
        self,
        mean: cython.const[cython.double][::1],
        var: cython.const[cython.double][::1],
        target: cython.const[cython.double][::1],
        state: NetworkProgress,
    ) -> tuple[float, "FloatArray", "FloatArray"]:
        """Log density, score and own information, ``(size,)`` each, of one target of independent outputs."""
        out = VectorMatch(self.size)
        cov: cython.double[:, ::1] = np.diag(var)
        log_density = self.match_separate(
            cython.address(mean[0]), cython.address(cov[0, 0]), cython.address(target[0]), state, out
        )
        return log_density, as_array(out.score, self.size), as_array(out.own_information, self.size)

    def keep(self, mean, cov, state, into):
        """Fill all that the density of a target follows from, just before it is learned.

        Mean ``(size,)`` and covariance ``(size, size)`` of the outputs, the noise ``(6, K)``, and the trust in targets.
        """
        i: cython.Py_ssize_t
        n = self.n_outputs
        for i in range(self.size):
            into[i] = mean[i]
        into += self.size
        for i in range(self.size * self.size):
            into[i] = cov[i]
        into += self.size * self.size
        for i in range(n):
            into[i] = state.noise_of[i]
            into[n + i] = state.noise_weight_of[i]
            into[2 * n + i] = state.scale_of[i]
            into[3 * n + i] = state.scale_weight_of[i]
            into[4 * n + i] = state.usual_var_of[i]
            into[5 * n + i] = state.largest_of[i]
        state.trust.write(into + 6 * n)

    def memory_of(self, n_rows, state: NetworkProgress) -> FloatArray:
        """Memory for what `keep` fills of so many rows."""
        numbers = state.to_array().size + state.trust.to_array().size
        return np.empty((n_rows, self.size * (self.size + 1) + numbers))

    def kept(
        self,
        means: cython.const[cython.double][:, ::1],
        covs: cython.const[cython.double][:, :, ::1],
        state: NetworkProgress,
    ) -> FloatArray:
        """What `keep` fills of rows that a state predicts."""
        result = self.memory_of(means.shape[0], state)
        rows: cython.double[:, ::1] = result
        i: cython.Py_ssize_t
        for i in range(means.shape[0]):
            self.keep(cython.address(means[i, 0]), cython.address(covs[i, 0, 0]), state, cython.address(rows[i, 0]))
        return result

    def calibrate(self, mean, cov, state, times):
        """Calibrate outputs and noise, where they can be, with the predictive scales, which are 1 after that."""

    def score_kept(self, row, noise_scale, target, state, out):
        """Log density of a target under what a network predicts, from what was kept, which is overwritten.

        Rows to come and rows that were learned are scored here alike, so what is predicted is what is scored. In a
        mixture the noise is multiplied by a scale ``(K,)``; alone (NULL) predictive scales are wider while they rest on
        few rows.
        """
        alone: cython.bint = noise_scale == cython.NULL
        k: cython.Py_ssize_t
        n = self.n_outputs
        cov = row + self.size
        noise = cov + self.size * self.size
        for k in range(n):
            state.noise_of[k] = noise[k] if alone else noise[k] * noise_scale[k]
            state.noise_weight_of[k] = noise[n + k]
            state.scale_of[k] = noise[2 * n + k]
            state.scale_weight_of[k] = noise[3 * n + k]
            state.usual_var_of[k] = noise[4 * n + k]
            state.largest_of[k] = noise[5 * n + k]
            if alone:
                state.scale_of[k] = state.widened_scale(k)
        state.trust.read(noise + 6 * n)
        self.calibrate(row, cov, state, _ALONE if alone else 1.0)
        return self.match(row, cov, target, state, out)

    def state_of(self, row):
        """The noise and the trust of what was kept of a row, to be used by `score_kept`."""
        noise, trust = np.split(np.asarray(row)[self.size * (self.size + 1) :], [6 * self.n_outputs])
        return NetworkProgress(*noise.reshape(6, self.n_outputs), Trust(trust))

    def score_rows(
        self,
        kept,
        targets: cython.const[cython.double][:, ::1],
        noise_scale: cython.const[cython.double][:, ::1],
    ) -> FloatArray:
        """Log density of each row's target, and how far it is distrusted, ``(2, n)``, from what `keep` filled.

        With the noise of a mixture, see `score_kept`, ``(n, K)``; without rows for a network alone.
        """
        result = np.empty((2, len(kept)))
        if not len(kept):
            return result
        scores: cython.double[:, ::1] = result
        rows: cython.double[:, ::1] = np.array(kept, order="C")
        state: NetworkProgress = self.state_of(kept[0])
        out = VectorMatch(self.size)
        alone: cython.bint = noise_scale.shape[0] == 0
        times: cython.pointer(cython.const[cython.double]) = cython.NULL
        i: cython.Py_ssize_t
        with cython.nogil:
            for i in range(rows.shape[0]):
                if not alone:
                    times = cython.address(noise_scale[i, 0])
                scores[0, i] = self.score_kept(
                    cython.address(rows[i, 0]), times, cython.address(targets[i, 0]), state, out
                )
                scores[1, i] = state.trust.distrust
        self.raise_pending()
        return result

    def records(
        self,
        means: cython.const[cython.double][:, ::1],
        covs: cython.const[cython.double][:, :, ::1],
        state: NetworkProgress,
    ) -> FloatArray:
        """What each row is predicted from, ``(n, 7, K)``: see `OutputRecord`."""
        result = np.empty((means.shape[0], OUTPUT_RECORD_SIZE, self.n_outputs))
        rows: cython.double[:, :, ::1] = result
        out = VectorMatch(self.size)
        i: cython.Py_ssize_t
        with cython.nogil:
            for i in range(means.shape[0]):
                self.describe(
                    cython.address(means[i, 0]),
                    cython.address(covs[i, 0, 0]),
                    state,
                    cython.address(rows[i, 0, 0]),
                    out,
                )
        return result

    def learn_noise(
        self,
        mean: cython.const[cython.double][::1],
        cov: cython.const[cython.double][:, ::1],
        target: cython.const[cython.double][::1],
        state: NetworkProgress,
        gain: cython.double,
        bound: cython.double,
    ) -> None:
        """Let a row's error, with the variance it was predicted with, move the noise and the predictive scale.

        A ``gain`` above 1 lets early rows fade, whose errors came of the network's own ignorance; ``bound`` is the most
        information that the noise may rest on.
        """
        self.update_noise(
            cython.address(mean[0]), cython.address(cov[0, 0]), cython.address(target[0]), state, gain, bound
        )

    def accepts(self, target):
        """Whether finite numbers, or NaN, can be the target of a row that comes alone."""
        return False

    def raise_pending(self) -> None:
        """Raise the exception of a function in Python that was stored because compiled loops can't raise."""

    def __reduce__(self):
        return type(self), (self.n_outputs,)


def carry_over(factor, matrix, vector, cov, new_matrix, new_vector, space):
    """Fill ``(I + factor matrix cov)⁻¹`` of a matrix and of a vector, which turns a site into a step or the reverse."""
    n = space.size
    i: cython.Py_ssize_t
    j: cython.Py_ssize_t
    k: cython.Py_ssize_t
    for i in range(n):
        for j in range(n):
            entry = 0.0
            for k in range(n):
                entry += matrix[i * n + k] * cov[k * n + j]
            space.second[i * n + j] = (1.0 if i == j else 0.0) + factor * entry
    invert(n, space.second, space.third)
    apply(n, space.third, matrix, vector, new_matrix, new_vector)


def fill_site(cov, out):
    """Fill precision and shift of the site that makes the step of score and information."""
    carry_over(-1.0, out.information, out.score, cov, out.precision, out.shift, out)


def temper(n, weight, cov, out):
    """Take the site of a match to a power: the step becomes ``weight (I - (1 - weight) information cov)⁻¹`` of it."""
    i: cython.Py_ssize_t
    carry_over(weight - 1.0, out.information, out.score, cov, out.first, out.vector, out)
    for i in range(n):
        out.score[i] = weight * out.vector[i]
        out.shift[i] *= weight
    for i in range(n * n):
        out.information[i] = weight * out.first[i]
        out.precision[i] *= weight


def subtract_information(n, cov, information, left, space):
    """``left = cov - cov information cov``: what a step leaves of a covariance."""
    i: cython.Py_ssize_t
    j: cython.Py_ssize_t
    k: cython.Py_ssize_t
    for i in range(n):
        for j in range(n):
            entry = 0.0
            for k in range(n):
                entry += cov[i * n + k] * information[k * n + j]
            space[i * n + j] = entry
    for i in range(n):
        for j in range(n):
            entry = cov[i * n + j]
            for k in range(n):
                entry -= space[i * n + k] * cov[k * n + j]
            left[i * n + j] = entry


def temper_separate(n, weight, cov, out):
    """The same for independent outputs, of which each one's own information is known."""
    k: cython.Py_ssize_t
    for k in range(n):
        share = weight / (1.0 - (1.0 - weight) * out.own_information[k] * cov[k * (n + 1)])
        out.score[k] *= share
        out.own_information[k] *= share


def as_array(values, n):
    """Numbers in an array of their own."""
    result = np.empty(n)
    view: cython.double[::1] = result
    i: cython.Py_ssize_t
    for i in range(n):
        view[i] = values[i]
    return result


class NoisyNumbers(VectorLikelihood):
    """Numbers with Gaussian noise; noise and calibration are learned from the errors."""

    def accepts(self, target):
        """Any number; of several, some may not be observed."""
        k: cython.Py_ssize_t
        for k in range(self.n_columns):
            if not isfinite(target[k]) and not (self.n_columns > 1 and isnan(target[k])):
                return False
        return True

    def calibrate_cov(self, cov, state, times):
        """Calibrate the variances of outputs, and with them the covariances: see `NetworkProgress.calibrated_var`.

        Those of a log noise stay as they are.
        """
        n = self.size
        i: cython.Py_ssize_t
        k: cython.Py_ssize_t
        for k in range(self.n_outputs):
            var = cov[k * (n + 1)]
            share = state.calibrated_var(k, var, 0.0, state.scale_of[k], times) / var if var > 0.0 else 1.0
            root = sqrt(share)
            for i in range(n):
                cov[k * n + i] *= root
                cov[i * n + k] *= root
        for k in range(self.n_outputs):
            state.scale_of[k] = 1.0
            state.scale_weight_of[k] = state.usual_var_of[k] = 0.0

    def noise_change(self, expected, square, total, state, k):
        """A row's information about the noise, and by how much it would change it; each kind overrides this."""
        return 0.0, 0.0

    def set_aside(self, mean, cov, target, state, out):
        """Make no step and return the log density if a target is absurdly far from its prediction: see `outliers`.

        Far is what is so by the variance that the network alone predicts.
        """
        k: cython.Py_ssize_t
        farthest = 0.0
        log_z = 0.0
        for k in range(self.n_outputs):
            if isnan(target[k]):
                continue
            error = target[k] - mean[k]
            var = max(cov[k * self.size + k], 0.0)
            noise = self.expected_noise(mean, cov, state, k)
            total = state.calibrated_var(k, var, noise, state.widened_scale(k), _ALONE)
            if state.trust.is_far(error, total, state.largest_of[k]):
                log_z += far_log_density(error, total)
                if fabs(error) > fabs(farthest):
                    farthest = error
            else:
                log_z -= 0.5 * (LOG_2PI + log(total) + error * (error / total))
        if farthest == 0.0:
            state.trust.note_near()
        else:
            state.trust.note_far(farthest)
            out.clear()
        return log_z

    def doubt(self, log_z, mean, cov, target, state, out):
        """Mix the matches with all noises; the widest is so wide that no target, however far off, moves anything.

        One sum over the ways, relative to the heaviest so far.
        """
        shares: cython.double[N_WAYS]
        size = self.size
        k: cython.Py_ssize_t
        i: cython.Py_ssize_t
        j: cython.Py_ssize_t
        widest = NOISE_SCALES[N_WAYS - 2]
        square = 0.0
        for k in range(self.n_outputs):
            if not isnan(target[k]):
                error = min(fabs(target[k] - mean[k]), 1e150)
                square = max(square, error * error)
                noise = self.expected_noise(mean, cov, state, k)
                widest = max(widest, min(target[k] * target[k], _LARGEST) / noise)
        for k in range(self.n_outputs):
            if not isnan(target[k]):
                widest = min(widest, _LARGEST / self.expected_noise(mean, cov, state, k))
        top = self.log_share(0, log_z, mean, cov, target, state, out)
        shares[0] = top
        total = state.trust.counts[0]
        mass = 1.0
        for i in range(size):
            out.mixed_score[i] = out.score[i]
            for j in range(size):
                out.mixed_information[i * size + j] = out.information[i * size + j] - out.score[i] * out.score[j]
        for k in range(1, N_WAYS):
            state.factor = NOISE_SCALES[k - 1] if k < N_WAYS - 1 else widest
            log_z = self.match_trusted(mean, cov, target, state, out) - log_rarity(log(state.factor))
            shares[k] = self.log_share(k, log_z, mean, cov, target, state, out)
            total += state.trust.counts[k]
            keep = 1.0
            if shares[k] > top:
                keep = exp(top - shares[k])
                top = shares[k]
            own = exp(shares[k] - top) if shares[k] > -INFINITY else 0.0
            mass = keep * mass + own
            for i in range(size):
                out.mixed_score[i] = _add(keep, out.mixed_score[i], own, out.score[i])
                for j in range(size):
                    entry = out.information[i * size + j] - out.score[i] * out.score[j]
                    out.mixed_information[i * size + j] = _add(keep, out.mixed_information[i * size + j], own, entry)
        state.factor = 1.0
        for k in range(N_WAYS):
            shares[k] = exp(shares[k] - top) / mass
        state.trust.note(shares, False, square)
        for i in range(size):
            out.score[i] = out.mixed_score[i] / mass
        for i in range(size):
            for j in range(size):
                mixed = out.mixed_information[i * size + j] / mass
                out.information[i * size + j] = mixed + out.score[i] * out.score[j]
        fill_site(cov, out)
        return top + log(mass / total)

    def log_share(self, way, log_z, mean, cov, target, state, out):
        """Log of a way's share in the density, but for a constant; a square may be beyond float64."""
        found = log(state.trust.counts[way]) + self.calibrated(log_z, mean, cov, target, state, out)
        return found if isfinite(found) else -INFINITY

    def calibrated(self, log_z, mean, cov, target, state, out):
        """The log density of a match with calibrated variances."""
        return log_z

    def move_noise(self, mean, cov, target, state, gain, bound):
        """Move the running means of the noise and of the squared errors over their predicted variance.

        By rows that are not far off, as far as their errors are due to the usual noise. Further copies of a row tell
        nothing of the noise: a network has weights enough to fit them exactly.
        """
        near = min(state.row_weight, 1.0) * (1.0 - state.trust.far_off())
        k: cython.Py_ssize_t
        for k in range(self.n_outputs):
            if isnan(target[k]):
                continue
            expected = self.expected_noise(mean, cov, state, k)
            total = cov[k * self.size + k] + expected
            square = (target[k] - mean[k]) * (target[k] - mean[k])
            if state.trust.active:  # next to nothing of what is far off may still be much
                square = min(square, _FARTHEST_NEAR * total) * state.trust.own_share_of_square()
            else:
                state.largest_of[k] = state.trust.largest_square(state.largest_of[k], square, total)
            if state.noise_weight_of[k] > 0.0:
                information, change = self.noise_change(expected, square, total, state, k)
                weight = min(state.noise_weight_of[k] + near * information, bound)
                state.noise_weight_of[k] = weight
                state.noise_of[k] = max(state.noise_of[k] + min(gain * near / weight, 1.0) * change, _NOISE_FLOOR)
            if state.scale_weight_of[k] > 0.0:
                state.scale_weight_of[k] += near
                step = min(near * _SCALE_GAIN / state.scale_weight_of[k], 1.0)
                state.scale_of[k] += step * (min(square / total, _SCALE_CLIP) - state.scale_of[k])
                if near > 0.0:  # unlike the scale, it starts from nothing but the first row
                    step = min(near * _SCALE_GAIN / (state.scale_weight_of[k] - _SCALE_START_WEIGHT), 1.0)
                    state.usual_var_of[k] += step * (cov[k * self.size + k] - state.usual_var_of[k])


def _add(keep, old, own, new):
    """``keep old + own new``, where nothing of what can't be is kept, be it infinite."""
    return (keep * old if keep > 0.0 else 0.0) + (own * new if own > 0.0 else 0.0)


class GaussianOutputs(NoisyNumbers):
    """Numbers with independent Gaussian noise, one variance per output."""

    def __init__(self, n_outputs: int):
        VectorLikelihood.__init__(self, n_outputs)
        self.copies_in_closed_form = True  # copies divide the noise

    def match_trusted(self, mean, cov, target, state, out):
        """The Kalman step: ``information = (cov + noise)⁻¹``, ``score = information (target - mean)``.

        Of the outputs that were observed; to be inverted, the matrix has a row of the identity in the others' place.
        """
        n = self.n_outputs
        i: cython.Py_ssize_t
        k: cython.Py_ssize_t
        if n == 1:
            noise = state.factor * state.noise_of[0]
            total = cov[0] + noise
            error = target[0] - mean[0]
            out.precision[0] = 1.0 / noise
            out.shift[0] = error / noise
            out.score[0] = error / total
            out.information[0] = 1.0 / total
            return -0.5 * (LOG_2PI + log(total) + error * (error / total))
        for i in range(n * n):
            out.precision[i] = 0.0
            out.first[i] = cov[i]
        observed: cython.Py_ssize_t = n
        for k in range(n):
            if isnan(target[k]):
                out.shift[k] = 0.0
                out.vector[k] = 0.0
                for i in range(n):
                    out.first[k * n + i] = 0.0
                    out.first[i * n + k] = 0.0
                out.first[k * n + k] = 1.0
                observed -= 1
            else:
                noise = state.factor * state.noise_of[k]
                out.precision[k * n + k] = 1.0 / noise
                out.vector[k] = target[k] - mean[k]
                out.shift[k] = out.vector[k] / noise
                out.first[k * n + k] += noise
        log_det = invert(n, out.first, out.information)
        square = 0.0
        for i in range(n):
            out.score[i] = 0.0
            for k in range(n):
                out.score[i] += out.information[i * n + k] * out.vector[k]
            square += out.score[i] * out.vector[i]
        if observed < n:
            for k in range(n):
                if isnan(target[k]):
                    out.information[k * n + k] = 0.0
        return -0.5 * (observed * LOG_2PI + log_det + square)

    def match_power(self, mean, cov, target, state, out):
        """Copies divide the noise: ``N(y; o, s)^w`` is ``N(y; o, s/w)`` times what does not depend on ``o``."""
        weight = state.row_weight
        state.factor = 1.0 / weight
        log_z = self.match_trusted(mean, cov, target, state, out)
        state.factor = 1.0
        k: cython.Py_ssize_t
        for k in range(self.n_outputs):
            if not isnan(target[k]):
                log_noise = LOG_2PI + log(state.noise_of[k])
                log_z += 0.5 * (log_noise - log(weight) - weight * log_noise)
        return log_z

    def calibrated(self, log_z, mean, cov, target, state, out):
        """What is far off is so by the errors as they turned out to be."""
        k: cython.Py_ssize_t
        for k in range(self.n_outputs):
            if isnan(target[k]):
                continue
            var = max(cov[k * self.size + k], 0.0)
            noise = state.factor * state.noise_of[k]
            scale = state.calibrated_var(k, var, noise, state.scale_of[k], 1.0) / (var + noise)
            square = out.score[k] * (target[k] - mean[k])
            log_z += 0.5 * (square - square / scale - log(scale))
        return log_z

    def calibrate(self, mean, cov, state, times):
        """Scale variances, and the noise."""
        k: cython.Py_ssize_t
        for k in range(self.n_outputs):
            state.noise_of[k] *= state.scale_of[k]
        self.calibrate_cov(cov, state, times)

    def noise_change(self, expected, square, total, state, k):
        """As in `step`: with ``share`` of the variance left by the row, ``share² (error² - total)``.

        That is exactly how far the row's expected squared residual after the step is from the noise now, and ``share²``
        is what the row knows about the noise.
        """
        information = (expected / total) * (expected / total)
        return information, information * (square - total)


def match_pair(error, f_var, cross, a_var, log_noise):
    """Match a pair ``(f, a)`` by a target ``y ~ N(f, e^a)`` that is ``error`` away from ``E f``.

    ``f`` is taken apart into what follows from ``a``, with the slope ``b``, and an independent rest with variance
    ``s``. Given ``a`` all about the rest is known in closed form, so the moments of the tilted pair are sums over one
    dimension: over fixed nodes of ``a``, evenly spaced, where such sums converge as fast as any. What is learned about
    ``a`` and the rest is then put together again.

    Far-off targets are bounded on both sides: no row moves ``a`` further than the nodes reach, and none pulls ``f``
    harder than one ten deviations away under the widest noise among the nodes.
    """
    share: cython.double[43]
    scaled: cython.double[43]
    inverse: cython.double[43]
    var = max(a_var, _LEAST_VARIANCE)
    std = sqrt(var)
    b = cross / var
    s = max(f_var - b * cross, 0.0)
    widest = s + exp(min(max(log_noise + std * _NODES[N_NODES - 1], _LOW), _HIGH))
    near = min(max(error, -_FARTHEST * sqrt(widest)), _FARTHEST * sqrt(widest))
    top = -INFINITY
    i: cython.Py_ssize_t
    for i in range(N_NODES):
        total = s + exp(min(max(log_noise + std * _NODES[i], _LOW), _HIGH))
        inverse[i] = 1.0 / total
        scaled[i] = (near - b * std * _NODES[i]) * inverse[i]
        share[i] = _LOG_WEIGHTS[i] - 0.5 * (LOG_2PI + log(total) + scaled[i] * scaled[i] * total)
        top = max(top, share[i])
    mass = 0.0
    away = 0.0
    score = 0.0
    for i in range(N_NODES):
        share[i] = exp(share[i] - top)
        mass += share[i]
        away += share[i] * _NODES[i]
        score += share[i] * scaled[i]
    away /= mass
    score /= mass
    ratio = 0.0
    information = 0.0
    mixed = 0.0
    for i in range(N_NODES):
        x = _NODES[i] - away
        u = scaled[i] - score
        ratio += share[i] * x * x
        information += share[i] * (inverse[i] - u * u)
        mixed -= share[i] * u * x
    ratio = max(ratio / mass, _LEAST_RATIO)
    information /= mass
    mixed /= mass * std
    both = mixed - b * information
    # Beyond the limit all is as under the widest noise.
    return PairMatch(
        top + log(mass) - min(0.5 * (error - near) * ((error + near) / widest), _LARGEST),
        score,
        away / std - b * score,
        information,
        both,
        (1.0 - ratio) / var - b * (mixed + both),
    )


def log_copies(error, var, noise, weight):
    """Log of the mean of ``N(error; f, noise)^weight`` over ``f ~ N(0, var)``: the density of so many copies."""
    grown = noise + weight * var
    return -0.5 * (weight * (LOG_2PI + log(noise)) + log(grown / noise) + error * (error * weight / grown))


def noise_given(mean, var):
    """``E[e^a]`` for ``a ~ N(mean, var)``."""
    return exp(min(max(mean + 0.5 * var, _LOW), _HIGH))


class HeteroscedasticOutputs(NoisyNumbers):
    """Numbers whose noise depends on the input: output ``K + k`` is the log of the noise variance of output ``k``.

    Before any data the log noise of an input like those that are learned is ``N(log_noise, log_noise_var)``.
    """

    def __init__(self, n_outputs: int, log_noise: cython.double, log_noise_var: cython.double):
        self.may_widen = True  # a large error may well be noise
        self.n_outputs = self.n_columns = n_outputs
        self.size = 2 * n_outputs
        self.log_noise, self.log_noise_var = log_noise, log_noise_var

    def __reduce__(self):
        return HeteroscedasticOutputs, (self.n_outputs, self.log_noise, self.log_noise_var)

    def calibrate(self, mean, cov, state, times):
        """Scale variances, and shift the logs of the noise."""
        k: cython.Py_ssize_t
        for k in range(self.n_outputs):
            mean[self.n_outputs + k] += log(state.scale_of[k])
        self.calibrate_cov(cov, state, times)

    def match_trusted(self, mean, cov, target, state, out):
        """One pair ``(f, log noise)`` after the other; score and information are the sums over all."""
        size = self.size
        n = self.n_outputs
        i: cython.Py_ssize_t
        j: cython.Py_ssize_t
        k: cython.Py_ssize_t
        side: cython.Py_ssize_t
        other: cython.Py_ssize_t
        now: cython.double[2]
        left: cython.double[4]
        through = out.first  # (size, 2): what the pairs before have left of this one, columns of I - information cov
        log_density = 0.0
        for i in range(size):
            out.score[i] = 0.0
        for i in range(size * size):
            out.information[i] = 0.0
        for k in range(n):
            if isnan(target[k]):
                continue
            for i in range(size):
                for side in range(2):
                    column = k + side * n
                    entry = 1.0 if i == column else 0.0
                    for j in range(size):
                        entry -= out.information[i * size + j] * cov[j * size + column]
                    through[2 * i + side] = entry
            for side in range(2):
                row = k + side * n
                now[side] = mean[row]
                for j in range(size):
                    now[side] += cov[row * size + j] * out.score[j]
                for other in range(2):
                    entry = 0.0
                    for j in range(size):
                        entry += cov[row * size + j] * through[2 * j + other]
                    left[2 * side + other] = entry
            pair = match_pair(target[k] - now[0], left[0], left[1], left[3], now[1] + log(state.factor))
            log_density += pair.log_z
            for i in range(size):
                out.score[i] += through[2 * i] * pair.score + through[2 * i + 1] * pair.log_noise_score
                first = through[2 * i] * pair.information + through[2 * i + 1] * pair.cross_information
                second = through[2 * i] * pair.cross_information + through[2 * i + 1] * pair.log_noise_information
                for j in range(size):
                    out.information[i * size + j] += first * through[2 * j] + second * through[2 * j + 1]
        fill_site(cov, out)
        return log_density

    def match_copies(self, mean, cov, target, state, out):
        """Only the first copy tells of the noise; the others are about ``f`` alone, at the noise that is expected."""
        size = self.size
        i: cython.Py_ssize_t
        k: cython.Py_ssize_t
        log_z = self.match_once(mean, cov, target, state, out)
        for i in range(size):
            out.copy_shift[i] = out.shift[i]
        for i in range(size * size):
            out.copy_precision[i] = out.precision[i]
        state.row_evidence = log_z
        more = (state.row_weight - 1.0) * (1.0 - state.trust.distrust)
        subtract_information(size, cov, out.information, out.copy_cov, out.first)
        for k in range(self.n_outputs):
            if not isnan(target[k]):
                noise = self.expected_noise(mean, cov, state, k)
                error = target[k] - mean[k]
                for i in range(size):
                    error -= cov[k * size + i] * out.score[i]
                state.row_evidence += log_copies(error, max(out.copy_cov[k * (size + 1)], 0.0), noise, more)
                out.copy_precision[k * size + k] += more / noise
                out.copy_shift[k] += more * (target[k] - mean[k]) / noise
        self.step_of_copies(cov, out)
        return log_z

    def expected_noise(self, mean, cov, state, k):
        """``E[e^a]`` of the output that is the log noise."""
        at = self.n_outputs + k
        return noise_given(mean[at], cov[at * self.size + at])

    def describe(self, mean, cov, state, record, out):
        """Tell the noise from what is not known of it: ``e^{E a}`` is noise, and the rest of ``E[e^a]`` ignorance.

        Far from the data a belief about the log noise may be wider than it was before any, by which ``E[e^a]`` soon is
        astronomical. There it falls back to the prior: its variance is no more than the prior's, and its mean as much
        nearer to the prior's as the variance had to shrink.
        """
        n = self.n_outputs
        k: cython.Py_ssize_t
        self.marginals(mean, cov, record, record + n, out)
        for k in range(n):
            a_mean = mean[n + k]
            a_var = cov[(n + k) * self.size + n + k]
            if a_var > self.log_noise_var:
                a_mean = self.log_noise + (a_mean - self.log_noise) * (self.log_noise_var / a_var)
                a_var = self.log_noise_var
            noise = noise_given(a_mean, 0.0)
            record[2 * n + k] = noise
            record[3 * n + k] = state.scale_of[k]
            record[4 * n + k] = noise_given(a_mean, a_var) - noise
            record[5 * n + k] = state.scale_weight_of[k]
            record[6 * n + k] = state.usual_var_of[k]

    def noise_change(self, expected, square, total, state, k):
        """The noise has outputs of its own; what runs along is but its mean over the rows."""
        return 1.0, expected - state.noise_of[k]


class SeparateOutputs(VectorLikelihood):
    """Outputs with a target each, independent given the outputs: each is matched as a perceptron's."""

    def __init__(self, n_outputs: int, one: CompiledLikelihood):
        VectorLikelihood.__init__(self, n_outputs)
        self.one = one

    def __reduce__(self):
        return SeparateOutputs, (self.n_outputs, self.one)

    def accepts(self, target):
        """What each output accepts; of several, some may not be observed."""
        k: cython.Py_ssize_t
        for k in range(self.n_outputs):
            if isnan(target[k]) and self.n_outputs > 1:
                continue
            if not (isfinite(target[k]) and self.one.accepts(target[k])):
                return False
        return True

    def match_trusted(self, mean, cov, target, state, out):
        """One target after the other, given those before: exact where one was observed.

        Each is a site of its own output alone; score and information are those of all of them.
        """
        n = self.n_outputs
        i: cython.Py_ssize_t
        j: cython.Py_ssize_t
        k: cython.Py_ssize_t
        through = out.vector  # what the targets before have left of this one, a column of I - information cov
        log_density = 0.0
        out.clear()
        for k in range(n):
            if isnan(target[k]):
                continue
            now = mean[k]
            for i in range(n):
                now += cov[k * n + i] * out.score[i]
                entry = 1.0 if i == k else 0.0
                for j in range(n):
                    entry -= out.information[i * n + j] * cov[j * n + k]
                through[i] = entry
            left = 0.0
            for i in range(n):
                left += cov[k * n + i] * through[i]
            own = self.one.match(now, max(left, 0.0), target[k], state.noise_of[k])
            log_density += own.log_z
            for i in range(n):
                out.score[i] += through[i] * own.score
                for j in range(n):
                    out.information[i * n + j] += through[i] * own.information * through[j]
            out.precision[k * n + k] = own.information / own.variance_ratio
            out.shift[k] = out.precision[k * n + k] * (now - mean[k]) + own.score / own.variance_ratio
        return log_density

    def log_uninformative(self, target):
        """That of all outputs that were observed."""
        total = 0.0
        k: cython.Py_ssize_t
        for k in range(self.n_outputs):
            total += 0.0 if isnan(target[k]) else self.one.log_uninformative(target[k])
        return total

    def wrong_given_uninformative(self, target):
        """All but those that are right by chance, in every output."""
        right = 1.0
        k: cython.Py_ssize_t
        for k in range(self.n_outputs):
            right *= 1.0 if isnan(target[k]) else 1.0 - self.one.wrong_given_uninformative()
        return 1.0 - right

    def move_noise(self, mean, cov, target, state, gain, bound):
        """Match the belief about each learned noise; ``bound`` is the most rows that it rests on."""
        share = min(state.row_weight, 1.0)
        k: cython.Py_ssize_t
        for k in range(self.n_outputs):
            if isnan(target[k]) or not (state.noise_weight_of[k] > 0.0 and state.trust.distrust < 0.5):
                continue
            after, weight = self.match_noise(mean[k], cov[k * (self.size + 1)], target[k], state, k)
            if share != 1.0:  # what the row says about the log of the noise, to that power
                before = (1.0 - share) * state.noise_weight_of[k]
                own = share * weight
                weight = before + own
                after = exp((before * log(state.noise_of[k]) + own * log(after)) / weight)
            state.noise_of[k] = after
            state.noise_weight_of[k] = min(weight, bound)

    def match_noise(self, mean, var, y, state, k):
        """The belief about a noise after a target: its middle, and how many rows it rests on.

        The log of the noise is Gaussian with the variance ``2 / weight``, and moment-matched to the target at nodes of
        it, as `step` does for perceptrons.
        """
        shares: cython.double[13]
        weight = state.noise_weight_of[k]
        std = sqrt(2.0 / weight)
        middle = log(min(max(state.noise_of[k], 1e-12), 1e12))
        top = -INFINITY
        i: cython.Py_ssize_t
        for i in range(13):
            at = exp(min(max(middle + std * _FEW_NODES[i], _LEAST_LOG), _LARGEST_LOG))
            shares[i] = self.one.match(mean, var, y, at).log_z - 0.5 * _FEW_NODES[i] * _FEW_NODES[i]
            top = max(top, shares[i])
        mass = 0.0
        move = 0.0
        variance = 0.0
        for i in range(13):
            shares[i] = exp(shares[i] - top)
            mass += shares[i]
            move += shares[i] * _FEW_NODES[i]
        move /= mass
        for i in range(13):
            variance += shares[i] * (_FEW_NODES[i] - move) * (_FEW_NODES[i] - move)
        after = exp(min(max(middle + std * move, _LEAST_LOG), _LARGEST_LOG))
        return after, min(weight * mass / max(variance, 1e-3), weight + 2.0)

    def raise_pending(self):
        """That of the match of each output."""
        self.one.raise_pending()


def remove_site(cov, precision, h, values, out):
    """Fill score and information of the step that removes a site from outputs that are ``values``.

    False where what is left would be no covariance, or next to none.
    """
    n = out.size
    i: cython.Py_ssize_t
    j: cython.Py_ssize_t
    k: cython.Py_ssize_t
    # With cov = LL' the eigenvalues of cov precision are those of L'precision L, which must stay below 1.
    root = out.first
    half = out.second
    inner = out.third
    factorise(n, cov, root)
    for i in range(n):
        for k in range(n):
            entry = 0.0
            for j in range(k, n):
                entry += precision[i * n + j] * root[j * n + k]
            half[i * n + k] = entry
    for i in range(n):
        for k in range(n):
            entry = 1.0 - _SITE_MARGIN if i == k else 0.0
            for j in range(i, n):
                entry -= root[j * n + i] * half[j * n + k]
            inner[i * n + k] = entry
    if not is_positive(n, inner):
        return False
    for i in range(n):
        out.vector[i] = -h[i]
        for k in range(n):
            out.vector[i] += precision[i * n + k] * values[k]
    carry_over(-1.0, precision, out.vector, cov, out.information, out.score, out)
    for i in range(n * n):
        out.information[i] = -out.information[i]
    return True


def site_removal(
    cov: cython.const[cython.double][:, ::1],
    precision: cython.const[cython.double][:, ::1],
    h: cython.const[cython.double][::1],
    values: cython.const[cython.double][::1],
) -> tuple["FloatArray", "FloatArray"] | None:
    """Score and information of the step that removes a site, or None where it can't be removed."""
    n = h.shape[0]
    out = VectorMatch(n)
    removable = remove_site(
        cython.address(cov[0, 0]), cython.address(precision[0, 0]), cython.address(h[0]), cython.address(values[0]), out
    )
    if not removable:
        return None
    return as_array(out.score, n), as_array(out.information, n * n).reshape(n, n)
