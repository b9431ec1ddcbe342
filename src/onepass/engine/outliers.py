"""Rows that are not to be trusted: how many there are, and whether too many come at once.

A target is trusted or not. A trusted one is as the likelihood says. One that is not says little: a number has far more
noise, a label or class may be any, a count too. `Trust` counts how often each was the case, as the matches of
`onepass.engine.matches` and `onepass.engine.vector_matches` find it, so that shares are learned and not guessed.

Single rows are ignored in this way, but a jump of the truth would be ignored too, for ever. So `Trust` watches how fast
distrusted rows come (Page's cumulative sum test): soon after a jump it is alarmed, and the model returns to the
covariance of its prior, from which a few rows lead to the new truth.

Where no outliers are expected, one absurd target must still not ruin a model. There a number's density is Gaussian up
to `FAR` predicted standard deviations and falls with the square of the distance beyond, so that the influence of a row
vanishes with its distance: such a row is *set aside*, which means counted and not learned, if its error is also far
larger than any before, and than what the prior reaches: a model may be too sure of itself. When `_MOST_IN_A_ROW` rows
in succession are set aside, they are no accident: the targets have changed, and the model starts over in their units.
"""

import cython
import numpy as np
from cython.cimports.libc.math import INFINITY, exp, fabs, log, log1p, sqrt
from scipy.special import expit

# Times the noise variance: the components of targets that are not trusted, and how an outlier's share is divided.
SCALES = (10.0, 1e2, 1e4, 1e6, 1e8)
_DIVISION = (0.4, 0.2, 0.2, 0.1, 0.1)
TRUST_SIZE, GUARD_SIZE = N_TRUST, N_GUARD  # numbers of a `Trust`, and of one that expects no outliers
FAR = 30.0  # predicted standard deviations beyond which a number is set aside
TRUST_COUNTS = N_WAYS  # of which so many are counts
_START_WEIGHT = 20.0  # rows that the shares count as before the first
# The shares after a jump of the truth, of unknown size: of numbers, and of labels, classes and counts.
_AFTER_JUMP = ((0.1, 0.35, 0.25, 0.2, 0.05, 0.05), (0.5, 0.5, 0.0, 0.0, 0.0, 0.0))
_LEAST_SHARE = 0.02  # that is expected of rows not to be trusted, however few there were
_LIMIT = cython.declare(cython.double, 10.0)  # log odds of a jump that raise the alarm
# So many times more probable after a jump than without one is a number that is not trusted, at least, while most are:
# rows after a jump are counted too, and soon there would seem to be so many outliers that more are no surprise.
_LEAST_RATIO = cython.declare(cython.double, 3.0)
_MOST = cython.declare(cython.double, 0.62)
# Rows after the start, or an alarm, before labels, classes or counts may raise one: a young model may be wrong as often
# as one whose truth has jumped.
_PATIENCE = cython.declare(cython.double, 200.0)
_FAR = cython.declare(cython.double, FAR)
_FAR_LATELY = cython.declare(cython.double, 10.0)  # times the largest error so far, which a far one exceeds as well
_FIRST_JUDGED = cython.declare(cython.double, 30.0)  # rows before it is known what is far
_MOST_IN_A_ROW = cython.declare(cython.double, 12.0)  # rows that are set aside before the model starts over
_LOG_2PI = cython.declare(cython.double, 1.8378770664093453)
_GRACE = cython.declare(cython.double, 5.0)  # rows that are learned as if they were trusted
NOISE_SCALES = cython.declare(cython.double[5])
_LEAST = cython.declare(cython.double[6])
_JUMPED = cython.declare(cython.double[12])  # those of numbers, then the others


def _fill():
    for i, scale in enumerate(SCALES):
        NOISE_SCALES[i] = scale
        _LEAST[i + 1] = _LEAST_SHARE * _DIVISION[i]
    for kind in range(2):
        for i in range(N_WAYS):
            _JUMPED[kind * N_WAYS + i] = _AFTER_JUMP[kind][i]


_fill()


def log_rarity(log_scale):
    """Minus the log of how rare the widest noise is if it is larger than the largest of the scales.

    So that one target, however far off, weighs no model against another, that noise grows with the target's square. Its
    density would then fall as ``1/|y|``, of which there is no integral; with this it has one.
    """
    return 2.0 * log1p(max(log_scale - log(NOISE_SCALES[N_WIDE - 1]), 0.0))


def far_log_density(error, var):
    """Log density of a number that is set aside: as at the limit, and from there with the distance squared."""
    return -0.5 * (_LOG_2PI + log(var) + _FAR * _FAR) - 2.0 * log(fabs(error) / sqrt(var) / _FAR)


def jump_probability(suspicion):
    """Probability of a jump of the truth, from the log odds that rows have added to those before any."""
    return expit(np.asarray(suspicion) - _LIMIT)


class Trust:
    """How many rows were trusted, and how many by which way of not being so.

    Parameters
    ----------
    numbers : those that `to_array` gave; none where no outliers are expected

    Attributes
    ----------
    active : whether outliers are expected
    distrust : probability that the last row was not to be trusted
    noise_scale : times the noise that was expected, how large that of the last row was, most probably
    n_far : rows that were set aside
    far_square : geometric mean of the squared errors of those that were set aside last, in succession
    """

    def __init__(self, numbers=()):
        given = np.array(numbers, dtype=np.float64)
        self.active = given.size == N_TRUST
        self.distrust, self.blank = 0.0, False
        self.n_far, self.far_square, self.noise_scale = 0.0, 0.0, 1.0
        i: cython.Py_ssize_t
        for i in range(N_WAYS):
            self.last[i] = 0.0
            self.counts[i] = 0.0
        view: cython.double[::1] = given if given.size else np.zeros(N_GUARD)
        self.read(cython.address(view[0]))

    @staticmethod
    def start(outliers):
        """Before the first row, if this share of rows is not to be trusted."""
        if outliers == 0.0:
            return Trust()
        shares = np.array([1.0 - outliers, *(outliers * np.array(_DIVISION))])
        return Trust.after(_START_WEIGHT * shares)

    @staticmethod
    def after(counts):
        """Before the next row, if so many were trusted, and so many by each way of not being so.

        Where no outliers are expected, if so many were set aside.
        """
        return Trust([*counts, 0.0, INFINITY, 1.0] if len(counts) == N_WAYS else [*counts, 0.0, 0.0, 0.0])

    @property
    def shares(self):
        """Share of the rows that were trusted, then of those that were not, in each way."""
        counts = self.to_array()[:N_WAYS]
        return counts / counts.sum()

    def weight(self):
        """How many rows the shares rest on."""
        total = 0.0
        i: cython.Py_ssize_t
        for i in range(N_WAYS):
            total += self.counts[i]
        return total

    def outlier_share(self):
        """Share of rows that were not trusted."""
        return 1.0 - self.counts[0] / self.weight()

    def note(self, shares, blank):
        """Keep how probable each way is for a row; whether one that is not trusted says nothing, or has more noise."""
        i: cython.Py_ssize_t
        for i in range(N_WAYS):
            self.last[i] = shares[i]
        self.distrust = 1.0 - shares[0]
        self.blank = blank

    def judges(self):
        """Whether it is known by now what is far, where no outliers are expected."""
        return not self.active and self.calm >= _FIRST_JUDGED

    def is_far(self, error, var, largest):
        """Whether a number is set aside; ``largest`` is the square of the largest error before.

        Right after one that was, the predicted deviations alone decide: a small target among others in new units
        must not hide the change.
        """
        if not self.judges() or fabs(error) <= _FAR * sqrt(var):
            return False
        return self.suspicion > 0.0 or fabs(error) > _FAR_LATELY * sqrt(largest)

    def note_near(self):
        """Keep that a row is not set aside."""
        self.distrust = 0.0

    def note_far(self, error):
        """Keep that a row is set aside, and how far it is off."""
        self.distrust = 1.0
        self.last[0] = error * error if fabs(error) < 1e150 else 1e300

    def largest_square(self, largest, square, var):
        """The square of the largest error so far, after one more that was predicted with a variance.

        The error of an input far outside, of which a large one was to be expected, counts as much less.
        """
        return max(largest, min(square, 1e300) * (largest / var if var > largest else 1.0))

    def learn(self):
        """Count the row that was noted, and watch how fast those that are distrusted come."""
        if not self.active:
            self.count_far()
            return
        if self.calm < 0.0:
            self.calm += 1.0
            return
        i: cython.Py_ssize_t
        total = self.weight()
        jumped = cython.address(_JUMPED[N_WAYS if self.blank else 0])
        # The row's density if the truth has jumped over that if it has not.
        least = 0.0 if self.blank or self.counts[0] < _MOST * total else _LEAST_RATIO
        ratio = 0.0
        for i in range(N_WAYS):
            times = jumped[i] / max(self.counts[i] / total, _LEAST[i])
            ratio += self.last[i] * (times if i == 0 else max(times, least))
            self.counts[i] += self.last[i]
        self.suspicion = max(self.suspicion + log(ratio), 0.0)
        self.calm += 1.0
        if self.blank and min(self.calm, total) < _PATIENCE:
            self.suspicion = 0.0
        best: cython.Py_ssize_t = 0
        for i in range(N_WAYS):
            if self.last[i] > self.last[best]:
                best = i
        self.noise_scale = 1.0 if best == 0 else NOISE_SCALES[best - 1]

    def count_far(self):
        """Count the row that was noted, if it was set aside."""
        if self.distrust > 0.0:
            rows = self.suspicion / _LIMIT * _MOST_IN_A_ROW
            known = log(self.far_square) if rows > 0.0 and self.far_square > 0.0 else log(self.last[0])
            self.far_square = exp(known + (log(self.last[0]) - known) / (rows + 1.0))
            self.suspicion += (1.0 + 1e-9) * _LIMIT / _MOST_IN_A_ROW
            self.n_far += 1.0
        else:
            self.suspicion = max(self.suspicion - (1.0 + 1e-9) * _LIMIT / _MOST_IN_A_ROW, 0.0)
            self.calm = min(self.calm + 1.0, _FIRST_JUDGED)

    def is_alarmed(self):
        """Whether the truth has jumped, as far as can be told."""
        return self.suspicion > _LIMIT

    def calm_down(self):
        """Begin anew after an alarm; return how many rows there were since the one before.

        If there were few, the new truth may be beyond the prior's reach: then the next rows are learned as if they were
        trusted, for which ``calm`` counts from below 0.
        """
        rows = self.calm
        self.suspicion = 0.0
        self.calm = -_GRACE if self.active and rows < SOON else 0.0
        return rows

    def far_off(self):
        """Probability that the last row's noise was more than 100 times the usual one, ten deviations and more."""
        return self.last[3] + self.last[4] + self.last[5]

    def assign(self, other):
        """Take over another's numbers."""
        i: cython.Py_ssize_t
        for i in range(N_WAYS):
            self.counts[i] = other.counts[i]
        self.suspicion = other.suspicion
        self.calm = other.calm
        self.noise_scale = other.noise_scale
        self.n_far = other.n_far
        self.far_square = other.far_square

    def read(self, numbers):
        """Take over the numbers that `write` wrote."""
        if not self.active:
            self.n_far = numbers[0]
            self.suspicion = numbers[1]
            self.calm = numbers[2]
            self.far_square = numbers[3]
            return
        i: cython.Py_ssize_t
        for i in range(N_WAYS):
            self.counts[i] = numbers[i]
        self.suspicion = numbers[N_WAYS]
        self.calm = numbers[N_WAYS + 1]
        self.noise_scale = numbers[N_WAYS + 2]

    def write(self, numbers):
        """Write the numbers that `to_array` gives."""
        if not self.active:
            numbers[0] = self.n_far
            numbers[1] = self.suspicion
            numbers[2] = self.calm
            numbers[3] = self.far_square
            return
        i: cython.Py_ssize_t
        for i in range(N_WAYS):
            numbers[i] = self.counts[i]
        numbers[N_WAYS] = self.suspicion
        numbers[N_WAYS + 1] = self.calm
        numbers[N_WAYS + 2] = self.noise_scale

    def copy(self):
        """Make an independent copy."""
        return Trust(self.to_array())

    def to_array(self):
        """All numbers, as they stand in files.

        Counts, suspicion, rows since an alarm, and times the noise of the last row; where no outliers are expected,
        the rows set aside, suspicion, rows since an alarm as far as they count, and the size of errors.
        """
        numbers = np.empty(N_TRUST if self.active else N_GUARD)
        view: cython.double[::1] = numbers
        self.write(cython.address(view[0]))
        return numbers

    def __reduce__(self):
        return Trust, (self.to_array(),)
