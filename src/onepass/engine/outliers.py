"""Rows that are not to be trusted: how many there are, and whether too many come at once.

A target is trusted or not. A trusted one is as the likelihood says. One that is not says little: a number has far more
noise, a label or class may be any, a count too. `Trust` counts how often each was the case, as the matches of
`onepass.engine.matches` and `onepass.engine.vector_matches` find it, so that shares are learned and not guessed. What
is known of the shares is a Dirichlet density. Given a row it becomes a mixture of such densities, one for each way; the
one with the same mean, and the same variance of the share of trusted rows, replaces it. So a row that leaves open in
which way it came about counts as less than one row, and the shares stay free to move.

The share of wrong labels and the scale of the weights are confounded: labels of small weights are uncertain, and so are
labels that are often wrong. The two are learned together, as a Gaussian pair with the Fisher information of each row:
when the share moves, the *scale* of the weights moves with it, by what the rows so far say about the pair. Where the
past fades, past rows say nothing about the scale as it is now, and the share is learned on its own.

Single rows are ignored in this way, but a jump of the truth would be ignored too, for ever. So `Trust` watches how fast
distrusted rows come (Page's cumulative sum test), compared with their share among the last rows: soon after a jump it
is alarmed, and the model returns to the covariance of its prior, from which a few rows lead to the new truth. If there
is another alarm soon after, the new targets are beyond the reach of the prior, or of the noise: the model starts over
in their units.

Where no outliers are expected, one absurd target must still not ruin a model. There a number's density is Gaussian up
to `FAR` predicted standard deviations and falls with the square of the distance beyond, so that the influence of a row
vanishes with its distance: such a row is *set aside*, which means counted and not learned, if its error is also far
larger than any before, and than what the prior reaches: a model may be too sure of itself. When `_MOST_IN_A_ROW` rows
in succession are set aside, they are no accident: the targets have changed, and the model starts over in their units.
"""

import cython
import numpy as np
from cython.cimports.libc.math import INFINITY, exp, fabs, log, log1p, sqrt
from cython.cimports.onepass.engine.special import LOG_2PI
from scipy.special import expit

from onepass._typing import FloatArray

# Times the noise variance: the components of targets that are not trusted, and how an outlier's share is divided.
SCALES = (10.0, 1e2, 1e4, 1e6, 1e8)
_DIVISION = (0.4, 0.2, 0.2, 0.1, 0.1)
TRUST_SIZE, GUARD_SIZE = N_TRUST, N_GUARD  # numbers of a `Trust`, and of one that expects no outliers
TRUST_SINCE_ALARM, TRUST_SIGNED = 11, (7, 14)  # which of them counts the rows since an alarm, and which may be negative
FAR = 30.0  # predicted standard deviations beyond which a number is set aside
# Of these, how many count rows by the way in which they came about, and how many, with those, add up over rows.
TRUST_WAYS, TRUST_COUNTS = N_WAYS, N_COUNTS
_START_WEIGHT = cython.declare(cython.double, 20.0)  # rows that the shares count as before the first
# The same for the numbers of perceptrons: with less, some hundred clean rows leave so small a
# share that, among several rates of drift, one spike passes for a movement.
_FIRM_START_WEIGHT = 100.0
_LEAST_LEFT = cython.declare(cython.double, 1e-6)  # share of a count that must be left when a row's is removed
_LEAST_COUNT = 1e-3  # rows that a way counts as if what several models have added up to is less than none
_LIMIT = cython.declare(cython.double, 10.5)  # log odds of a jump that raise the alarm
_SUSPECTED = cython.declare(cython.double, 4.0)  # those that more than one distrusted row brings about
# The log odds right after an alarm: if the next rows are distrusted too, the model soon starts over.
_AFTER_ALARM = cython.declare(cython.double, 5.0)
# Share of rows that are still trusted after a jump of the truth: of numbers, and of labels, classes and counts.
_TRUSTED_AFTER_JUMP = cython.declare(cython.double, 0.1)
_TRUSTED_UNINFORMATIVE_AFTER_JUMP = cython.declare(cython.double, 0.5)
_LEAST_SHARE = cython.declare(cython.double, 0.02)  # that is expected of rows not to be trusted, however few there were
# The most that is expected of them: if most numbers are not trusted, then it is the model that is wrong.
_MOST_SHARE = cython.declare(cython.double, 0.5)
# Rows over which the recent share of distrusted numbers is taken: a tenth of those so far, within these bounds. From 2
# to 40 % of outliers the test then raises a few false alarms in a million rows, and one after a jump within 4 to 15
# rows.
_LEAST_RECENT = cython.declare(cython.double, 15.0)
_MOST_RECENT = cython.declare(cython.double, 50.0)
# Rows after the start, or an alarm, before labels, classes or counts may raise one: a young model may be wrong as often
# as one whose truth has jumped.
_PATIENCE = cython.declare(cython.double, 200.0)
_MOST_WRONG = cython.declare(cython.double, 0.45)  # of the labels: if half of them are, they say nothing
# Information about the log of the scale of the weights before the first row; its linearisation holds where it is known.
_SCALE_INFORMATION = cython.declare(cython.double, 5.0)
_MOST_CORRELATION = cython.declare(cython.double, 0.99)  # squared, of share and scale
# The weights are rescaled when their log scale has moved by so many of its standard deviations, or when so many times
# more is known about it than the last time.
_SHIFT_STDS = cython.declare(cython.double, 0.1)
_SHIFT_GROWN = cython.declare(cython.double, 1.2)
_FAR_GAIN = cython.declare(cython.double, 0.25)  # of the last row in the mean log square of errors that are distrusted
_FAR = cython.declare(cython.double, FAR)
_FAR_LATELY = cython.declare(cython.double, 10.0)  # times the largest error so far, which a far one exceeds as well
_FIRST_JUDGED = cython.declare(cython.double, 30.0)  # rows before it is known what is far
_MOST_IN_A_ROW = cython.declare(cython.double, 12.0)  # rows that are set aside before the model starts over
NOISE_SCALES = cython.declare(cython.double[5])
for _i, _scale in enumerate(SCALES):
    NOISE_SCALES[_i] = _scale


def log_rarity(log_scale):
    """Minus the log of how rare the widest noise is if it is larger than the largest of the scales.

    So that one target, however far off, weighs no model against another, that noise grows with the target's square. Its
    density would then fall as ``1/|y|``, which has no integral; with this factor it has one.
    """
    return 2.0 * log1p(max(log_scale - log(NOISE_SCALES[N_WIDE - 1]), 0.0))


def far_log_density(error, var):
    """Log density of a number that is set aside: as at the limit, and from there with the distance squared."""
    return -0.5 * (LOG_2PI + log(var) + _FAR * _FAR) - 2.0 * log(fabs(error) / sqrt(var) / _FAR)


def jump_probability(suspicion) -> FloatArray:
    """Probability of a jump of the truth, from the log odds that rows have added to those before any."""
    return expit(np.asarray(suspicion) - _LIMIT)


class Trust:
    """Counts of trusted rows, and of those not trusted by the kind of doubt.

    Parameters
    ----------
    numbers : those that `to_array` gave; none where no outliers are expected

    Attributes
    ----------
    active : whether outliers are expected
    distrust : probability that the last row was not to be trusted
    rows : rows that were counted
    suspicion : log odds of a jump that the last rows have added to those before any
    rows_since_alarm : rows since the last alarm
    recent_share : share of the last rows that were not trusted
    scale_shift : by how much the log scale of the weights is still to be moved
    n_far : rows that were set aside
    far_square : geometric mean of the squared errors of those that were set aside, or distrusted, last
    """

    def __init__(self, numbers=()):
        given = np.array(numbers, dtype=np.float64)
        self.active = given.size == N_TRUST
        self.distrust, self.uninformative = 0.0, False
        self.n_far, self.far_square, self.square = 0.0, 0.0, 0.0
        self.learns_scale, self.has_coupling = True, False
        i: cython.Py_ssize_t
        for i in range(N_WAYS):
            self.last[i] = 0.0
            self.counts[i] = 0.0
        view: cython.double[::1] = given if given.size else np.zeros(N_GUARD)
        self.read(cython.address(view[0]))

    @staticmethod
    def start(outliers, firm=False) -> Trust:
        """Before the first row, if this share of rows is not to be trusted; a ``firm`` one changes more slowly."""
        if outliers == 0.0:
            return Trust()
        shares = np.array([1.0 - outliers, *(outliers * np.array(_DIVISION))])
        return Trust.after((_FIRM_START_WEIGHT if firm else _START_WEIGHT) * shares)

    @staticmethod
    def after(counts) -> Trust:
        """Before the next row, if so many were trusted, and so many by each way of not being so.

        After these may come what the rows have said about the share of wrong labels and the scale of the weights, and
        their number, as in `to_array`. Where no outliers are expected, the number is that of the rows set aside.
        """
        if len(counts) < N_WAYS:
            return Trust([*counts, 0.0, 0.0, 0.0])
        sums = np.zeros(N_COUNTS)
        sums[: len(counts)] = counts
        sums[:N_WAYS] = np.where(sums[:N_WAYS] < 0.0, _LEAST_COUNT, sums[:N_WAYS])
        recent = 1.0 - sums[0] / sums[:N_WAYS].sum()
        known = _SCALE_INFORMATION + sums[N_COUNTS - 2]
        return Trust([*sums, 0.0, INFINITY, 0.0, recent, 0.0, _SCALE_INFORMATION, known])

    @property
    def shares(self) -> FloatArray:
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
        distrusted = 0.0  # not 1 less the share trusted, in which a tiny share would be lost
        i: cython.Py_ssize_t
        for i in range(1, N_WAYS):
            distrusted += self.counts[i]
        return distrusted / self.weight()

    def note(self, shares, uninformative, square):
        """Keep how probable each way is for a row, whether one that is not trusted says nothing, and a squared error.

        The error is that of a number, of which one that is not trusted has more noise.
        """
        i: cython.Py_ssize_t
        for i in range(N_WAYS):
            self.last[i] = shares[i]
        self.distrust = 1.0 - shares[0]
        self.uninformative = uninformative
        self.square = square
        self.has_coupling = False

    def note_coupling(self, coupling):
        """Keep what a label says about the share of wrong ones and the scale of the weights."""
        self.coupling = coupling
        self.has_coupling = True

    def judges(self):
        """Whether it is known by now what is far, where no outliers are expected."""
        return not self.active and self.rows_since_alarm >= _FIRST_JUDGED

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
        self.watch()
        self.count_copy()

    def count_copy(self):
        """Count what was noted of a row, or of one more copy of it, for the shares alone."""
        if self.has_coupling and self.learns_scale:
            self.count_with_scale()
        else:
            self.count()

    def watch(self):
        """Add the log odds of a jump of the truth that the row has: its density after one over that without.

        Numbers are compared with the recent share of distrusted ones: outliers that become more frequent are not a
        jump, as long as most rows are still trusted.
        """
        share = self.outlier_share()
        if not self.uninformative:
            share = max(share, self.recent_share)
        share = min(max(share, _LEAST_SHARE), _MOST_SHARE)
        trusted = _TRUSTED_UNINFORMATIVE_AFTER_JUMP if self.uninformative else _TRUSTED_AFTER_JUMP
        ratio = self.last[0] * trusted / (1.0 - share) + self.distrust * (1.0 - trusted) / share
        if self.distrust > 0.5 and self.square > 0.0:
            last = log(self.square)
            known = log(self.far_square) if self.suspicion > 0.0 and self.far_square > 0.0 else last
            self.far_square = exp(known + _FAR_GAIN * (last - known))
        self.suspicion = max(self.suspicion + log(ratio), 0.0)
        rows = min(max(0.1 * self.weight(), _LEAST_RECENT), _MOST_RECENT)
        self.recent_share += (self.distrust - self.recent_share) / rows
        self.rows_since_alarm += 1.0
        self.rows += 1.0
        if self.uninformative and min(self.rows_since_alarm, self.rows) < _PATIENCE:
            self.suspicion = 0.0

    def count(self):
        """Match the Dirichlet density of the shares to the mixture that it is after the row.

        With ``a`` rows trusted, ``b`` not, and a probability ``r`` that this one is, the share of trusted rows has the
        densities ``Beta(a + 1, b)`` and ``Beta(a, b + 1)`` with these probabilities; ``n`` then follows from its
        variance.
        """
        i: cython.Py_ssize_t
        n = self.weight()
        a = self.counts[0]
        b = 0.0  # not n - a, in which a tiny share would be lost
        for i in range(1, N_WAYS):
            b += self.counts[i]
        r = self.last[0]
        own = (a + r) * (b + 1.0 - r) * (n + 2.0)
        after = own / (r * (a + 1.0) * b + (1.0 - r) * a * (b + 1.0) + r * (1.0 - r) * (n + 2.0)) - 1.0
        for i in range(N_WAYS):
            self.counts[i] = (self.counts[i] + self.last[i]) / (n + 1.0) * after

    def remove_counts(self, site):
        """Remove what a row has added to the counts, if something is left of each; whether that was done."""
        i: cython.Py_ssize_t
        for i in range(N_WAYS):
            if not self.counts[i] - site[i] >= _LEAST_LEFT * self.counts[i]:
                return False
        for i in range(N_WAYS):
            self.counts[i] -= site[i]
        return True

    def add_counts(self, site):
        """Add what a row has added before."""
        i: cython.Py_ssize_t
        for i in range(N_WAYS):
            self.counts[i] += site[i]

    def add_to(self, site):
        """Add the counts to a row's site."""
        i: cython.Py_ssize_t
        for i in range(N_WAYS):
            site[i] += self.counts[i]

    def replace_counts(self, shares, share_of_way, site):
        """Count a row again instead of what it has added before, and keep in its site what it adds now.

        The site goes a share of the way from what it was to that.
        """
        i: cython.Py_ssize_t
        before: cython.double[N_WAYS]
        for i in range(N_WAYS):
            self.counts[i] -= site[i]
            before[i] = self.counts[i]
            self.last[i] = shares[i]
        self.count()
        for i in range(N_WAYS):
            site[i] += share_of_way * (self.counts[i] - before[i] - site[i])
            self.counts[i] = before[i] + site[i]

    def count_with_scale(self):
        """Learn the share of wrong labels together with the scale of the weights.

        In the Gaussian pair of the share and the log scale, the share moves by its score, less what of it the scale
        explains, and the scale with it. What is known of the share is what the scale leaves open of the information of
        all rows; as a number of rows that is its inverse variance times ``share (1 - share)``.
        """
        row = self.coupling
        share = self.outlier_share()
        explained = self.correlation()
        self.share_information += row.share_root * row.share_root
        self.cross_information += row.share_root * row.scale_root
        self.scale_information += row.scale_root * row.scale_root
        left = 1.0 - self.correlation()
        rows = (self.weight() - _START_WEIGHT) * left / (1.0 - explained)
        rows += share * (1.0 - share) * row.share_root * row.share_root * left
        rows = _START_WEIGHT + max(rows, 0.0)
        slope = self.scale_slope()
        move = share * (1.0 - share) / (rows + 1.0) * (row.share_score + slope * row.scale_score)
        after = min(share + min(max(move, -0.5 * share), 0.5 * (1.0 - share)), _MOST_WRONG)
        self.scale_shift += slope * (after - share)
        self.counts[0] = rows * (1.0 - after)
        self.counts[1] = rows * after
        i: cython.Py_ssize_t
        for i in range(2, N_WAYS):
            self.counts[i] = 0.0

    def correlation(self):
        """The squared correlation of the share of wrong labels and the log scale of the weights."""
        both = self.share_information * (self.scale_information + self.prior_information)
        return min(self.cross_information * self.cross_information / both, _MOST_CORRELATION) if both > 0.0 else 0.0

    def scale_slope(self):
        """By how much the log scale moves as the share of wrong labels does."""
        return max(-self.cross_information / (self.scale_information + self.prior_information), 0.0)

    def scale_var(self):
        """Variance of the log scale of the weights if the share of wrong labels is not known."""
        slope = self.scale_slope()
        share = self.outlier_share()
        own = 1.0 / (self.scale_information + self.prior_information)
        return own + slope * slope * share * (1.0 - share) / (self.weight() + 1.0)

    def is_shifted(self):
        """Whether the weights are to be rescaled before the next row."""
        known = self.scale_information + self.prior_information
        if not self.active or known == _SCALE_INFORMATION:
            return False
        return fabs(self.scale_shift) > _SHIFT_STDS / sqrt(known) or known > _SHIFT_GROWN * self.last_information

    def finish_shift(self, prior_information):
        """Go on after the weights were rescaled; so much their prior says about their log scale now."""
        self.scale_shift = 0.0
        self.prior_information = _SCALE_INFORMATION + prior_information
        self.last_information = self.scale_information + self.prior_information

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
            self.rows_since_alarm = min(self.rows_since_alarm + 1.0, _FIRST_JUDGED)

    def has_jumped(self):
        """Whether the truth has jumped, by what is known so far."""
        return self.suspicion > _LIMIT

    def is_alarmed(self):
        """Whether the belief is to be changed before the next row: the truth or the scale of the weights has moved."""
        return self.has_jumped() or self.is_shifted()

    def starts_over(self):
        """Whether nothing of what was learned before a jump is kept.

        That is so if there was another alarm shortly before, or where no outliers are expected: the new targets are
        beyond the reach of the prior, or the noise has changed.
        """
        return not self.active or (self.rows_since_alarm < SOON and self.far_square > 0.0)

    def reset_after_jump(self):
        """Begin anew after a jump."""
        self.suspicion = 0.0 if self.starts_over() else _AFTER_ALARM
        self.rows_since_alarm = 0.0
        if self.active:
            self.recent_share = self.outlier_share()
            self.share_information = 0.0
            self.cross_information = 0.0
            self.scale_information = 0.0
            self.finish_shift(0.0)

    def far_off(self):
        """Probability that the last row's noise was more than 100 times the usual one, ten deviations and more.

        Once a jump is suspected, every distrusted row counts as far off: a noise that grows with them would hide it.
        """
        if self.suspicion > _SUSPECTED:
            return self.distrust
        return self.last[3] + self.last[4] + self.last[5]

    def own_share_of_square(self):
        """What of the last row's squared error is due to the usual noise, if that is larger in outliers as assumed.

        An error a few times as large as the noise counts in full: it may well be the network's own, and without it the
        noise would shrink, by which even more rows would be distrusted. So does every error while most rows are
        distrusted: then it is the noise that is too small.
        """
        if max(self.outlier_share(), self.recent_share) > _MOST_SHARE:
            return 1.0
        i: cython.Py_ssize_t
        share = self.last[0] + self.last[1]
        for i in range(1, N_WIDE):
            share += self.last[i + 1] / NOISE_SCALES[i]
        return share

    def assign(self, other):
        """Take over another's numbers."""
        numbers: cython.double[N_TRUST]
        other.write(numbers)
        self.read(numbers)

    def read(self, numbers):
        """Take over the numbers that `write` wrote."""
        if not self.active:
            self.n_far = numbers[0]
            self.suspicion = numbers[1]
            self.rows_since_alarm = numbers[2]
            self.far_square = numbers[3]
            return
        i: cython.Py_ssize_t
        for i in range(N_WAYS):
            self.counts[i] = numbers[i]
        numbers += N_WAYS
        self.share_information = numbers[0]
        self.cross_information = numbers[1]
        self.scale_information = numbers[2]
        self.rows = numbers[3]
        self.suspicion = numbers[4]
        self.rows_since_alarm = numbers[5]
        self.far_square = numbers[6]
        self.recent_share = numbers[7]
        self.scale_shift = numbers[8]
        self.prior_information = numbers[9]
        self.last_information = numbers[10]

    def write(self, numbers):
        """Write the numbers that `to_array` gives."""
        if not self.active:
            numbers[0] = self.n_far
            numbers[1] = self.suspicion
            numbers[2] = self.rows_since_alarm
            numbers[3] = self.far_square
            return
        i: cython.Py_ssize_t
        for i in range(N_WAYS):
            numbers[i] = self.counts[i]
        numbers += N_WAYS
        numbers[0] = self.share_information
        numbers[1] = self.cross_information
        numbers[2] = self.scale_information
        numbers[3] = self.rows
        numbers[4] = self.suspicion
        numbers[5] = self.rows_since_alarm
        numbers[6] = self.far_square
        numbers[7] = self.recent_share
        numbers[8] = self.scale_shift
        numbers[9] = self.prior_information
        numbers[10] = self.last_information

    def copy(self) -> Trust:
        """Make an independent copy."""
        return Trust(self.to_array())

    def to_array(self) -> FloatArray:
        """All numbers, as files have them.

        Counts, the information about the share of wrong labels and the scale of the weights, rows, suspicion, rows
        since an alarm, the size of errors, the recent share, and what is known of the scale; where no outliers are
        expected, the rows set aside, suspicion, rows since an alarm as far as they count, and the size of errors.
        """
        numbers = np.empty(N_TRUST if self.active else N_GUARD)
        view: cython.double[::1] = numbers
        self.write(cython.address(view[0]))
        return numbers

    def __reduce__(self):
        return Trust, (self.to_array(),)
