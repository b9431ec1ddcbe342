"""Anomaly scores, one value at a time: how odd a value and those before it are, and when that is an alarm.

A value's error is divided by the deviation that was predicted, and by a running size of such ratios whose median is the
one of Student's distribution with two degrees of freedom. Its surprise is ``-log`` of its tail probability there.

How rare that is, the series' own past says: its rarity, ``-log`` of the share of larger surprises. The quantiles of
10 % and 1 % are tracked, and ``rarity = log(10) (surprise / q_10) ** slope`` goes through both: Gaussian, exponential
and power-law errors are close to such a curve. Evidence is half the rarity of the value, or the running mean of
rarities if that is more: a run of slightly odd values. How rare such evidence is, its own past says in the same way:
that is the score, and a threshold then has the rate of alarms asked for. Trackers only count how often they are
exceeded, so a wild value moves none of them far.

A value that raises an alarm alone is a spike, or the first one of a new level: it is if the next two values are on the
same side, by at least half as much, of what was there a season before (without a season, before the alarm). Values that
are very far off are held back by the forecaster until that is known.
"""

import cython
import numpy as np
from cython.cimports.libc.math import INFINITY, NAN, exp, fabs, log, sqrt
from cython.cimports.onepass.engine.forecasting import ForecastWorkspace, _learn
from cython.cimports.onepass.engine.lag_sums import (
    AT_ERROR_SIZE,
    AT_HIGHEST,
    AT_LAST,
    AT_LOWEST,
    AT_MISSING,
    AT_OBSERVED,
    AT_ORIGIN,
    AT_READY,
    Plan,
)

_LOG_10 = cython.declare(cython.double, 2.302585092994046)
_LOG_2 = cython.declare(cython.double, 0.6931471805599453)
_MEDIAN = cython.declare(cython.double, 0.816496580927726)  # of |t|, t of Student's distribution with 2 degrees
_SIZE_RATE = cython.declare(cython.double, 0.01)
_LEAST_LOG_SIZE = cython.declare(cython.double, -2.3)  # the deviation of a series that hardly ever changes
_MOST_LOG_SIZE = cython.declare(cython.double, 7.0)
_TAIL_RATE = cython.declare(cython.double, 0.2)
_EVIDENCE_RATE = cython.declare(cython.double, 0.05)  # evidence stays high for a while: an event must not count often
_MEAN_RATE = cython.declare(cython.double, 0.25)
_ODD = cython.declare(cython.double, 1.5)  # a mean of rarities that one in ten exceeds
_TAIL_PRIOR = cython.declare(cython.double, 100.0)  # values that the first quantiles count as
_MEMORY_10 = cython.declare(cython.double, 1000.0)  # values that a quantile remembers
_MEMORY_1 = cython.declare(cython.double, 4000.0)
_LEAST_SLOPE = cython.declare(cython.double, 1.0)  # that of a power law
_MOST_SLOPE = cython.declare(cython.double, 4.0)
_MOST_RARITY = cython.declare(cython.double, 20.0)  # of a single value, in the mean
_WARM_UP = cython.declare(cython.double, 50.0)  # values before the first alarm
_FAR = cython.declare(cython.double, 6.0)  # predicted deviations: a value is held back if it is an alarm of its own
_GROSS = cython.declare(cython.double, 20.0)  # and not nearer than the first number, or farther than the second
_CONFIRMED = cython.declare(cython.double, 2.0)  # values after a spike that show a new level
_MOST_MISSING = cython.declare(cython.double, 100.0)


def first_state() -> "FloatArray":
    """What a scorer knows before the first value."""
    state = np.zeros(STATE_SIZE)
    state[AT_MEAN] = 1.0
    state[AT_CONFIRMED] = -1.0
    state[AT_SURPRISES : AT_SURPRISES + 2] = np.log([1.9, 3.0])
    state[AT_EVIDENCES : AT_EVIDENCES + 2] = np.log([1.6, 2.6])
    return state


def _two_sided(z):
    """Tail probability of Student's distribution with two degrees of freedom, precise far out."""
    root = sqrt(2.0 + z * z)
    return 2.0 / (root * (root + fabs(z)))


def _distance(tail):
    """The distance with this two-sided tail probability."""
    p = min(tail, 1.0)
    return sqrt(2.0) * (1.0 - p) / sqrt(max(p * (2.0 - p), 1e-300))


def _slope(tail):
    return min(max(_LOG_2 / max(tail[1] - tail[0], 1e-9), _LEAST_SLOPE), _MOST_SLOPE)


def _rarity(tail, x):
    """``-log`` of the share of earlier values that were larger."""
    return _LOG_10 * exp(_slope(tail) * (log(x) - tail[0])) if x > 0.0 else 0.0


def _with_rarity(tail, rarity):
    return exp(tail[0] + log(rarity / _LOG_10) / _slope(tail))


def _track(tail, x, n, rate):
    at = log(max(x, 1e-300))
    tail[0] += rate / (0.1 * min(n, _MEMORY_10)) * ((1.0 if at > tail[0] else 0.0) - 0.1)
    tail[1] += rate / (0.01 * min(n, _MEMORY_1)) * ((1.0 if at > tail[1] else 0.0) - 0.01)
    tail[1] = max(tail[1], tail[0] + 0.1)


def _limit(state, side, rarest):
    """How far, in sizes, a value may be from what is expected before it is an alarm of its own."""
    surprise = _with_rarity(state + AT_SURPRISES, 2.0 * _with_rarity(state + AT_EVIDENCES, rarest))
    p = exp(-surprise)
    return _distance(p if side == 0 else 2.0 * p)


def _score(state, z, side, found):
    """Fill in the tail and the score of a value; returns the rarity of the evidence."""
    p = _two_sided(z)
    if side != 0:
        p = 0.5 * p if z * side > 0.0 else 1.0 - 0.5 * p
    surprise = -log(p)
    n = state[AT_N] + _TAIL_PRIOR
    own = _rarity(state + AT_SURPRISES, surprise)
    _track(state + AT_SURPRISES, surprise, n, _TAIL_RATE)
    state[AT_MEAN] += _MEAN_RATE * (min(own, _MOST_RARITY) - state[AT_MEAN])
    evidence = max(0.5 * own, state[AT_MEAN])
    rarity = _rarity(state + AT_EVIDENCES, evidence)
    _track(state + AT_EVIDENCES, evidence, n, _EVIDENCE_RATE)
    state[AT_N] += 1.0
    rate = max(1.0 / (state[AT_N] + 5.0), _SIZE_RATE)
    state[AT_LOG_SIZE] += rate if fabs(z) > _MEDIAN else -rate
    state[AT_LOG_SIZE] = min(max(state[AT_LOG_SIZE], _LEAST_LOG_SIZE), _MOST_LOG_SIZE)
    found[FOUND_TAIL] = exp(-own)
    found[FOUND_SCORE] = 1.0 - exp(-rarity)
    return rarity


def _has_moved(state, y, reference):
    """Whether the values after a spike have shown by now that it was the first one of a new level."""
    if state[AT_CONFIRMED] < 0.0:
        return False
    if (y - reference) * state[AT_JUMP] < 0.5 * state[AT_JUMP] * state[AT_JUMP]:
        state[AT_CONFIRMED] = -1.0
        return False
    state[AT_CONFIRMED] += 1.0
    if state[AT_CONFIRMED] < _CONFIRMED:
        return False
    state[AT_CONFIRMED] = -1.0
    return True


def _alarm(state, rarity, rarest, alone, moved, quiet):
    """Kind of the alarm that a value raises, or none."""
    kind = NO_ALARM
    if moved:
        kind = LEVEL
    elif rarity >= rarest and state[AT_QUIET] <= 0.0 and state[AT_N] > _WARM_UP:
        kind = SPIKE if alone else RUN
    if rarity >= rarest or moved:
        state[AT_QUIET] = quiet
    elif state[AT_QUIET] > 0.0:
        state[AT_QUIET] -= 1.0
    return kind


def _score_constant(y, value, n, rarest, side, found):
    """Score a value after ``n`` others that were all the same: by Laplace's rule, the next differs once in n + 1.

    Returns whether it is an alarm.
    """
    found[FOUND_EXPECTED] = value
    found[FOUND_LOW] = value if side <= 0 else -INFINITY
    found[FOUND_HIGH] = value if side >= 0 else INFINITY
    if y != y:
        return False
    found[FOUND_TAIL] = 1.0 / (n + 1.0) if y < found[FOUND_LOW] or y > found[FOUND_HIGH] else 1.0
    found[FOUND_SCORE] = 1.0 - found[FOUND_TAIL]
    if n < _WARM_UP or -log(found[FOUND_TAIL]) < rarest:
        return False
    found[FOUND_KIND] = SPIKE
    return True


def score_values(
    plan: Plan,
    y: cython.const[cython.double][::1],
    X: cython.const[cython.double][:, ::1],
    record: cython.double[::1],
    priors: cython.const[cython.double][::1],
    sizing: cython.double[::1],
    work: ForecastWorkspace,
    state: cython.double[::1],
    rarest: cython.double,
    side: cython.int,
    quiet: cython.double,
    found: cython.double[:, ::1],
) -> None:
    """Score values ``(n,)`` in their order, each before it is learned, into the columns of ``found``.

    ``rarest`` is ``-log`` of the rate of false alarms; ``side`` is 1 or -1 if only values above or below are anomalies.
    """
    i: cython.Py_ssize_t
    j: cython.Py_ssize_t
    with cython.nogil:
        for i in range(y.shape[0]):
            own = cython.address(state[0])
            row = cython.address(found[i, 0])
            limit = _limit(own, side, rarest)
            size = exp(state[AT_LOG_SIZE])
            # After missing values what is expected is less certain; the forecaster's own running size is not robust.
            wider = sqrt(1.0 + min(record[AT_MISSING], _MOST_MISSING)) / record[AT_ERROR_SIZE]
            work.far = min(max(limit * size * wider, _FAR), _GROSS)
            ready: cython.bint = record[AT_READY] > 0.0
            n_before = record[AT_OBSERVED]
            constant: cython.bint = n_before > 0.0 and record[AT_LOWEST] == record[AT_HIGHEST]
            last = record[AT_LAST]
            reference = state[AT_BEFORE]
            if plan.season > _CONFIRMED:
                reference = record[plan.at_past + plan.season - 1] + record[AT_ORIGIN]
            _learn(
                plan,
                cython.address(record[0]),
                y[i],
                cython.address(X[i, 0]),
                cython.address(priors[0]),
                cython.address(sizing[0]),
                work,
            )
            row[FOUND_KIND] = NO_ALARM
            for j in range(FOUND_KIND):
                row[j] = NAN
            std = work.expected_std * wider
            if not ready or not std > 0.0:
                if constant and _score_constant(y[i], last, n_before, rarest, side, row):
                    state[AT_QUIET] = quiet
                continue
            row[FOUND_EXPECTED] = work.expected
            row[FOUND_LOW] = work.expected - limit * size * std if side <= 0 else -INFINITY
            row[FOUND_HIGH] = work.expected + limit * size * std if side >= 0 else INFINITY
            if y[i] != y[i]:
                continue
            outside: cython.bint = y[i] < row[FOUND_LOW] or y[i] > row[FOUND_HIGH]
            alone: cython.bint = outside or state[AT_MEAN] <= _ODD  # nothing odd came before
            rarity = _score(own, (y[i] - work.expected) / (size * std), side, row)
            moved: cython.bint = _has_moved(own, y[i], reference)
            row[FOUND_KIND] = _alarm(own, rarity, rarest, alone, moved, quiet)
            if row[FOUND_KIND] == SPIKE:
                state[AT_CONFIRMED] = 0.0
                state[AT_JUMP] = y[i] - work.expected
                state[AT_BEFORE] = last
