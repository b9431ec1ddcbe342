"""Forecasters, one value at a time: members forecast, their forecasts are scored as values arrive, and weigh them.

At an *origin* all members forecast the next ``horizon`` values, and the forecasts are kept. As values arrive the errors
are noted; when the last of them has come, the next origin is there, after a pause if the origins would otherwise all
fall on the same hour of the day, say. A member's share in forecasts is ``exp(-error / (0.2 best))``, of the mean
absolute errors of its forecasts, the last ones weighted most: nothing is refitted or held out.

The deviation of the combined forecast is the mean of its members' (not that of their mixture, which would add what they
disagree about). It is multiplied by the square root of the size of this series' earlier errors in such deviations,
drawn towards that of all series of a fleet, and by their size at this phase of the season; intervals are these
deviations times a quantile that is tracked by step. What is tracked is in the sizing vector, which all series share:
see `empty_sizing`. The first forecast of a series, from a handful of values, is often far off, and its error says
nothing about later ones: such errors size nothing but other first forecasts.

A value far from what was expected is held back as if it were missing: the expectation takes its place. If the next
ones are at least half as far on the same side, the level has moved. Then the origin of the values moves by as much, so
that nothing that was learned about changes and seasons is lost.
"""

import cython
import numpy as np
from cython.cimports.libc.math import NAN, exp, fabs, log, sqrt
from cython.cimports.libc.string import memmove
from cython.cimports.onepass.engine.lag_rollout import LagBelief, check_size, posterior, roll_out
from cython.cimports.onepass.engine.lag_sums import (
    AT_CHANGES,
    AT_ERROR_SIZE,
    AT_EVIDENCE,
    AT_FAR,
    AT_FORECASTS,
    AT_HIGHEST,
    AT_LAST,
    AT_LENGTH,
    AT_LOG_ORIGIN,
    AT_LOWEST,
    AT_MISSING,
    AT_N_CHANGES,
    AT_OBSERVED,
    AT_ORIGIN,
    AT_OUTLIERS,
    AT_PHASE,
    AT_POSITIVE,
    AT_READY,
    AT_RUN,
    AT_SCORED,
    AT_SIZE,
    AT_SIZED,
    AT_SQUARED_ERRORS,
    AT_STEP,
    KIND_INPUT,
    MEMBER_NOISE,
    MEMBER_STD,
    MEMBER_TIER,
    VIEW_LENGTH,
    Equations,
    Member,
    Plan,
    SeriesView,
    equations,
    fill_columns,
    input_scale,
    push,
)

_EXPECTED = cython.declare(cython.double, 5.0)  # weights that count as being as far from the prior's mean as it expects
_AS_EXPECTED = cython.declare(cython.double, 1e12)  # so many that the prior is taken as it is
_TEMPERATURE = cython.declare(cython.double, 0.2)
_UNTRIED = cython.declare(cython.double, 1.5)  # times the worst error, for a member without any
_YOUNG = cython.declare(cython.double, 12.0)  # values before which a series' forecasts are young
_FIRST = cython.declare(cython.double, 4.0)  # values at the first forecast that is scored, of most members
_YOUNG_WEIGHT = cython.declare(cython.double, 0.05)  # of their errors, relative to later ones, in members' shares
_YOUNG_RATE = cython.declare(cython.double, 0.05)
_OUTSIDE_PER_LOG = cython.declare(cython.double, 0.25)  # that the logarithm of a normal 95 % quantile is changed by
_PRIOR_TESTS = cython.declare(cython.double, 2.5)  # tests that the population's ratio counts as
_PRIOR_VISITS = cython.declare(cython.double, 12.0)  # errors at a phase that a size like that of other phases counts as
_MOST_VISITS = cython.declare(cython.double, 20.0)  # from which on older errors at a phase are forgotten
_MOST_Z = cython.declare(cython.double, 15.0)
_MOST_OUTLIERS = cython.declare(cython.double, 0.01)  # a series with a larger share of them has heavy tails
_SHIFTED = cython.declare(cython.double, 3.0)  # values in a row, on the same side, that are a new level
_EXPLODED = cython.declare(cython.double, 3.0)  # ranges of the series that a forecast may be away from its last value
_MOST_LOG = cython.declare(cython.double, 690.0)
_MOST_RELATIVE = cython.declare(cython.double, 3.0)
_WRONG_SHARE = cython.declare(cython.double, 0.02)  # of values that may be anywhere, in the evidence
_NEAR = cython.declare(cython.Py_ssize_t, 4)  # steps on either side that a quantile is tracked with
_KEPT = cython.declare(cython.double, 0.994)  # of the sums of squared errors, with each further one
_OUTSIDE = cython.declare(cython.double, 0.05)
_HALF_LOG_2PI = cython.declare(cython.double, 0.9189385332046727)
_MEAN_DISTANCE = cython.declare(cython.double, 0.7978845608028654)


class ForecastWorkspace:
    """Memory for the forecasts of one series at a time, over so many steps."""

    def __init__(self, plan, horizon):
        p, m = plan.most_weights, plan.n_members
        check_size(p, horizon)
        self.horizon = horizon
        self.matrix, self.targets, self.mean, self.cov = np.zeros(p * p), np.zeros(p), np.zeros(p), np.zeros(p * p)
        self.joint, self.past = np.zeros((p + horizon) ** 2), np.zeros(plan.longest + 1)
        self.mixed = np.zeros((1 + horizon) * horizon)
        self.columns = np.zeros(horizon * p + p)
        self.inputs = np.zeros(horizon * plan.n_inputs + 1)
        self.space = np.zeros(p + plan.longest + 2)
        self.far = plan.outliers  # deviations from which on a value is held back
        self.expected, self.expected_std = np.nan, 0.0  # of the last value before it was learned; 0 if not known
        self.ends, self.devs, self.shares = np.zeros(horizon), np.zeros(horizon), np.zeros(m)
        means, deviations, correlation = np.zeros((m, horizon)), np.zeros((m, horizon)), np.zeros((horizon, horizon))
        self.means, self.deviations, self.correlation = means, deviations, correlation
        self.arrays = means, deviations, correlation, np.asarray(self.shares)


def empty_sizing(horizon: cython.Py_ssize_t) -> "FloatArray":
    """What all series' errors say about the widths of intervals, before any forecast was scored.

    ``SIZING_SCORED`` is the number of forecasts that were scored, and ``SIZING_SERIES`` that of the series they were
    of: they only set how fast the rest is learned. From ``SIZING_HEAD`` on there are, for each step, the mean absolute
    error in deviations, and then, for each step, the 95 % quantile of absolute errors in deviations that were
    multiplied by this size and by those of the series. ``SIZING_RATIO`` is the median over forecasts of the mean error,
    relative to the sizes of the steps. ``SIZING_YOUNG`` is what the intervals of a series with 4 values are multiplied
    by; the factor falls to 1 with 12 values.

    Apart from the two numbers, all entries are running estimates; `combine_sizings` makes one vector of those of parts.
    """
    found = np.zeros(SIZING_HEAD + 2 * horizon)
    found[SIZING_RATIO] = 1.0
    found[SIZING_YOUNG] = 2.0
    found[SIZING_HEAD : SIZING_HEAD + horizon] = _MEAN_DISTANCE
    found[SIZING_HEAD + horizon :] = 2.0
    return found


def combine_sizings(before: "FloatArray", after: "list[FloatArray]") -> "FloatArray":
    """What intervals are sized with after several parts of the series, each of which went on from ``before``.

    The numbers of forecasts and series add up. All others move by the mean of the parts' moves (the sizes of steps
    themselves, the others their logarithms), weighted by the forecasts that each scored. As these would come one after
    the other in one process, the mean is multiplied: by the number of parts where few forecasts moved a number a
    little, by 1 where a part's forecasts were enough to move it all the way.
    """
    scored = np.array([own[SIZING_SCORED] - before[SIZING_SCORED] for own in after])
    total = scored.sum()
    shares = scored / total if total > 0.0 else np.full(len(after), 1.0 / len(after))  # series may all be young
    rates = np.full(len(before), _size_rate(before[SIZING_SCORED], before[SIZING_SERIES]))
    rates[SIZING_RATIO] *= 2.0
    rates[SIZING_YOUNG] = _OUTSIDE_PER_LOG * _YOUNG_RATE
    steps = (SIZING_HEAD + len(before)) // 2
    rates[steps:] = _OUTSIDE_PER_LOG * _quantile_rate(before[SIZING_SCORED], before[SIZING_SERIES])
    times = np.ones(len(before))
    if total > 0.0:
        times = (1.0 - (1.0 - rates) ** total) / (1.0 - (1.0 - rates) ** (scored @ scored / total))
    parts = np.array(after)
    found = before + times * (shares @ (parts - before))
    found = np.maximum(found, 0.5 * np.minimum(before, parts.min(axis=0)))
    tracked = np.r_[SIZING_RATIO, SIZING_YOUNG, steps : len(before)]
    moves = shares @ np.log(parts[:, tracked] / before[tracked])
    found[tracked] = before[tracked] * np.exp(times[tracked] * moves)
    counts = [SIZING_SCORED, SIZING_SERIES]
    found[counts] = before[counts] + (parts - before)[:, counts].sum(axis=0)
    return np.asarray(found)


def _size_rate(n, n_series):
    """How far the sizes of errors follow a further forecast, after ``n`` of so many series."""
    return 3.0 / (120.0 + min(n, 900.0 + 3.0 * n_series))


def _quantile_rate(n, n_series):
    """How far the logarithm of a quantile follows the share outside in a further forecast."""
    return 1.0 / _OUTSIDE_PER_LOG / (200.0 + min(n, n_series))


def _forecast_member(plan, number, record, priors, inputs, work, keep, means, devs):
    """Means and deviations of a member's forecasts, the covariance in ``work.joint``; False if there are none.

    With ``keep`` the weights are kept for the steps ahead.
    """
    h: cython.Py_ssize_t
    k: cython.Py_ssize_t
    member: Member = plan.member(number, record)
    view: SeriesView = plan.view(member.view, record)
    tier = cython.cast(cython.Py_ssize_t, member.state[MEMBER_TIER])
    if tier < 0 or (view.logarithm and record[AT_POSITIVE] == 0.0):
        return False
    rows: Equations = equations(
        cython.address(member),
        cython.address(view),
        tier,
        cython.address(work.matrix[0]),
        cython.address(work.targets[0]),
    )
    belief: LagBelief = posterior(
        cython.address(rows),
        priors + member.tiers[3 * tier + 2],
        cython.address(member),
        member.state[MEMBER_NOISE],
        _EXPECTED,
        cython.address(work.mean[0]),
        cython.address(work.cov[0]),
    )
    if not belief.known:
        return False
    n_past: cython.Py_ssize_t = min(member.tiers[3 * tier], cython.cast(cython.Py_ssize_t, view.state[VIEW_LENGTH]))
    for k in range(n_past):
        work.past[k] = (view.past[k] - rows.centre) / rows.scale
    time = record[AT_LENGTH] + record[AT_PHASE]
    for h in range(work.horizon):
        before = inputs + (h - view.difference) * plan.n_inputs
        if view.difference == 0:
            before = cython.NULL
        elif h < view.difference:
            before = record + plan.at_inputs + (view.difference - 1 - h) * plan.n_inputs
        columns = cython.address(work.columns[h * member.n_columns])
        fill_columns(cython.address(member), time + h, inputs + h * plan.n_inputs, before, columns)
        for k in range(member.n_columns):
            if member.kinds[k] == KIND_INPUT:
                columns[k] /= input_scale(cython.address(member), k)
    horizon = work.horizon
    p = belief.p
    roll_out(
        cython.address(belief),
        member.lags,
        cython.address(work.past[0]),
        cython.address(work.columns[0]),
        view.difference,
        horizon,
        cython.address(work.joint[0]),
        cython.address(work.ends[0]),
        cython.address(work.mixed[0]),
    )
    past = record + (plan.at_log_past if view.logarithm else plan.at_past)
    reach = _EXPLODED * (record[AT_HIGHEST] - record[AT_LOWEST]) + 1e-9 * fabs(record[AT_LAST])
    for h in range(horizon):
        z = rows.centre + rows.scale * work.ends[h]
        if view.difference > 0:
            z += past[view.difference - 1 - h % view.difference]
        dev = rows.scale * sqrt(max(work.joint[(p + h) * (p + horizon) + p + h], 1e-18))
        if view.logarithm:
            z = exp(min(z + record[AT_LOG_ORIGIN], _MOST_LOG))
            dev = z * min(dev, _MOST_RELATIVE)
        else:
            z += record[AT_ORIGIN]
        if not (fabs(z - record[AT_LAST]) <= reach and dev <= reach):
            return False
        means[h] = z
        devs[h] = dev
    if keep:
        member.state[MEMBER_NOISE] = belief.noise
        _keep_belief(
            cython.address(member),
            cython.address(view),
            belief.n_lags,
            belief.mean,
            belief.noise,
            rows.centre,
            rows.scale,
        )
    return True


def _keep_belief(member, view, n_lags, mean, noise, centre, scale):
    """Keep weights in the units of the view."""
    i: cython.Py_ssize_t
    total = 0.0
    for i in range(member.n_lags):
        member.weights[i] = mean[i] if i < n_lags else 0.0
        total += member.weights[i]
    for i in range(member.n_columns):
        member.weights[member.n_lags + i] = mean[n_lags + i] * scale
        if member.kinds[i] == KIND_INPUT:
            member.weights[member.n_lags + i] /= input_scale(member, i)
    member.weights[member.n_lags] += centre * (1.0 - total)
    member.state[MEMBER_STD] = scale * sqrt(noise)


def _error(plan, record, member, horizon):
    """Mean absolute error of a member's last forecasts over the first steps; NaN without any."""
    h: cython.Py_ssize_t
    errors = record + plan.at_errors + member * plan.horizon
    weights = errors + plan.n_members * plan.horizon
    total = 0.0
    known = 0.0
    for h in range(horizon):
        total += errors[h]
        known += weights[h]
    return total / known if known > 0.0 else NAN


def _weigh(plan, record, horizon, shares):
    """Turn ``shares``, 1 for members that have forecasts and 0 for others, into those members' shares."""
    m: cython.Py_ssize_t
    worst = -1.0
    for m in range(plan.n_members):
        error = _error(plan, record, m, horizon)
        if error == error:
            worst = max(worst, error)
    best = -1.0
    for m in range(plan.n_members):
        if shares[m] > 0.0:
            error = _error(plan, record, m, horizon)
            if error != error:
                error = 1.0 if worst < 0.0 else _UNTRIED * worst
            if best < 0.0 or error < best:
                best = error
    total = 0.0
    for m in range(plan.n_members):
        if shares[m] > 0.0:
            error = _error(plan, record, m, horizon)
            if error != error:
                error = 1.0 if worst < 0.0 else _UNTRIED * worst
            shares[m] = exp(-(error - best) / (_TEMPERATURE * max(best, 1e-300)))
            total += shares[m]
    if total > 0.0:
        for m in range(plan.n_members):
            shares[m] /= total


def _ratio(record, sizing):
    """Mean size of this series' earlier errors relative to all series', drawn towards what is typical."""
    return (_PRIOR_TESTS * sizing[SIZING_RATIO] + record[AT_SIZE]) / (_PRIOR_TESTS + record[AT_SIZED])


def _phase(plan, record, ahead):
    """Place of a step in the record's sizes by phase of the season; steps behind are negative."""
    return cython.cast(cython.Py_ssize_t, record[AT_LENGTH] + record[AT_PHASE] + ahead) % plan.season


def _spread(plan, record, sizing, step):
    """What a deviation is multiplied by, before the quantile."""
    found = sqrt(_ratio(record, sizing)) * sizing[SIZING_HEAD + min(step, plan.horizon - 1)] / _MEAN_DISTANCE
    if plan.season > 1:
        found *= 1.0 + record[plan.at_phases + _phase(plan, record, step)]
    if record[AT_LENGTH] < _YOUNG:
        found *= 1.0 + (sizing[SIZING_YOUNG] - 1.0) * min((_YOUNG - record[AT_LENGTH]) / (_YOUNG - _FIRST), 1.0)
    return found


def _start_forecasts(plan, record, priors, sizing, work):
    """Let all members forecast from here, and keep what they say."""
    m: cython.Py_ssize_t
    h: cython.Py_ssize_t
    j: cython.Py_ssize_t
    horizon = plan.horizon
    pending = record + plan.at_pending
    shares = record + plan.at_shares
    for h in range(horizon if plan.n_inputs else 0):  # those to come are not known yet
        for j in range(plan.n_inputs):
            work.inputs[h * plan.n_inputs + j] = record[plan.at_inputs + j]
    ready: cython.bint = False
    for m in range(plan.n_members):
        known: cython.bint = _forecast_member(
            plan,
            m,
            record,
            priors,
            cython.address(work.inputs[0]),
            work,
            True,
            pending + m * horizon,
            cython.address(work.deviations[m, 0]),
        )
        shares[m] = 1.0 if known else 0.0
        ready = ready or known
        if not known:
            for h in range(horizon):
                pending[m * horizon + h] = NAN
    record[AT_READY] = 1.0 if ready else 0.0
    record[AT_STEP] = -1.0
    if not ready:
        return
    _weigh(plan, record, horizon, shares)
    record[AT_STEP] = 0.0
    combined = record + plan.at_combined
    for h in range(horizon):
        mean = 0.0
        dev = 0.0
        for m in range(plan.n_members):
            if shares[m] > 0.0:
                mean += shares[m] * pending[m * horizon + h]
                dev += shares[m] * work.deviations[m, h]
        combined[h] = mean
        combined[horizon + h] = dev
        combined[2 * horizon + h] = dev * _spread(plan, record, sizing, h)


def _score(plan, record, sizing, y, held_back):
    """Note the errors of the pending forecasts of a value; NaN if it is missing.

    A value that was held back says nothing about members, but does about intervals.
    """
    m: cython.Py_ssize_t
    horizon = plan.horizon
    h = cython.cast(cython.Py_ssize_t, record[AT_STEP])
    errors = record + plan.at_errors
    weights = errors + plan.n_members * horizon
    if h == 0:  # older forecasts count less
        kept = 1.0 - 1.0 / plan.n_tests
        for m in range(2 * plan.n_members * horizon):
            errors[m] *= kept
        record[AT_SIZE] *= kept
        record[AT_SIZED] *= kept
    young: cython.bint = _was_young(record, h)
    weight = _YOUNG_WEIGHT if young else 1.0
    for m in range(plan.n_members):
        at = m * horizon + h
        error = fabs(y - record[plan.at_pending + at])
        if error == error and not held_back:
            errors[at] += weight * error
            weights[at] += weight
    combined = record + plan.at_combined
    error = fabs(y - combined[h])
    if error == error and not held_back:
        record[AT_SQUARED_ERRORS] = _KEPT * record[AT_SQUARED_ERRORS] + error * error
        record[AT_FORECASTS] = _KEPT * record[AT_FORECASTS] + max(combined[h], 0.0)
    combined[h] = error / max(combined[2 * horizon + h], 1e-300)  # from now on the error in spreads
    z = _in_deviations(plan, record, h)
    if z == z and not young:
        record[AT_SIZE] += z / (sizing[SIZING_HEAD + h] * horizon)
        record[AT_SIZED] += 1.0 / horizon
    record[AT_STEP] += 1.0


def _in_deviations(plan, record, h):
    """The error of a step that has been scored, in predicted deviations; NaN if its value was missing."""
    combined = record + plan.at_combined + h
    horizon = plan.horizon
    if combined[0] != combined[0]:
        return NAN
    return min(combined[0] * combined[2 * horizon] / max(combined[horizon], 1e-300), _MOST_Z)


def _was_young(record, since):
    """Whether a series had few values so many values ago."""
    return record[AT_LENGTH] - since < _YOUNG


def _outside(plan, record, quantile, first, stop):
    """The share of errors of some steps that were beyond a quantile, less what it ought to be; 0 if none is known."""
    k: cython.Py_ssize_t
    combined = record + plan.at_combined
    outside = 0.0
    known = 0.0
    for k in range(first, stop):
        if combined[k] == combined[k]:
            outside += 1.0 if combined[k] > quantile else 0.0
            known += 1.0
    return outside / known - _OUTSIDE if known > 0.0 else 0.0


def _finish(plan, record, sizing):
    """Learn from a forecast whose values have all come how wide intervals must be."""
    h: cython.Py_ssize_t
    horizon = plan.horizon
    sizes = sizing + SIZING_HEAD
    quantiles = sizes + horizon
    record[AT_SCORED] += 1.0
    if _was_young(record, horizon):
        for h in range(horizon):
            sizing[SIZING_YOUNG] *= exp(_YOUNG_RATE / horizon * _outside(plan, record, quantiles[h], h, h + 1))
        sizing[SIZING_YOUNG] = max(sizing[SIZING_YOUNG], 1.0)
        return
    ratio = 0.0
    known = 0.0
    for h in range(horizon):
        z = _in_deviations(plan, record, h)
        if z == z:
            ratio += z / sizes[h]
            known += 1.0
    if known == 0.0:
        return
    ratio /= known
    if plan.season > 1 and ratio > 0.0:
        _learn_phases(plan, record, sizes, ratio)
    if record[AT_SIZED] * horizon < known + 1e-6:  # nothing came before
        sizing[SIZING_SERIES] += 1.0
    n = sizing[SIZING_SCORED]
    rate = _size_rate(n, sizing[SIZING_SERIES])
    sizing[SIZING_RATIO] *= exp(2.0 * rate * (1.0 if ratio > sizing[SIZING_RATIO] else -1.0))  # to the median
    quantile_rate = _quantile_rate(n, sizing[SIZING_SERIES])
    for h in range(horizon):
        z = _in_deviations(plan, record, h)
        if z == z:
            sizes[h] += rate * (z - sizes[h])
        quantiles[h] *= exp(
            quantile_rate * _outside(plan, record, quantiles[h], max(h - _NEAR, 0), min(h + _NEAR + 1, horizon))
        )
    sizing[SIZING_SCORED] += 1.0


def _learn_phases(plan, record, sizes, ratio):
    """Learn from a forecast whose values have all come how large errors are by phase, relative to their mean."""
    h: cython.Py_ssize_t
    visits = record[AT_SCORED] * plan.horizon / plan.season
    for h in range(plan.horizon):
        z = _in_deviations(plan, record, h)
        if z == z:
            own = record + plan.at_phases + _phase(plan, record, h - plan.horizon)
            own[0] += (z / (sizes[h] * ratio) - 1.0 - own[0]) / (_PRIOR_VISITS + min(visits, _MOST_VISITS))


def _one_ahead(plan, record, work):
    """Mean and deviation of the next value, by the weights of the last origin."""
    m: cython.Py_ssize_t
    i: cython.Py_ssize_t
    mean = 0.0
    std = 0.0
    total = 0.0
    for m in range(plan.n_members):
        member: Member = plan.member(m, record)
        view: SeriesView = plan.view(member.view, record)
        share = record[plan.at_shares + m]
        if share < 1e-6 or member.state[MEMBER_STD] <= 0.0 or (view.logarithm and record[AT_POSITIVE] == 0.0):
            continue
        inputs = record + plan.at_inputs
        before = inputs + view.difference * plan.n_inputs
        if view.difference == 0:
            before = cython.NULL
        time = record[AT_LENGTH] + record[AT_PHASE]
        fill_columns(cython.address(member), time, inputs, before, cython.address(work.columns[0]))
        z = 0.0
        for i in range(member.n_lags):
            if member.weights[i] != 0.0:
                z += member.weights[i] * view.past[member.lags[i] - 1]
        for i in range(member.n_columns):
            z += member.weights[member.n_lags + i] * work.columns[i]
        if view.difference > 0:
            past = record + (plan.at_log_past if view.logarithm else plan.at_past)
            z += past[view.difference - 1]
        dev = member.state[MEMBER_STD]
        if view.logarithm:
            z = exp(min(z + record[AT_LOG_ORIGIN], _MOST_LOG))
            dev *= z
        else:
            z += record[AT_ORIGIN]
        mean += share * z
        std += share * dev
        total += share
    if total <= 0.0:
        return NAN, 0.0
    reach = _EXPLODED * (record[AT_HIGHEST] - record[AT_LOWEST])
    mean = min(max(mean / total, record[AT_LOWEST] - reach), record[AT_HIGHEST] + reach)
    if record[AT_POSITIVE] == 1.0:
        mean = max(mean, 0.5 * record[AT_LOWEST])
    return mean, std / total * record[AT_ERROR_SIZE]


def _accept(record, y, mean, std, far):
    """The value to learn in the place of one that was observed, and its variance; moves the level if it has moved."""
    error = y - mean
    z = error / max(std, 1e-300)
    record[AT_EVIDENCE] += (
        log(
            (1.0 - _WRONG_SHARE) * exp(-0.5 * min(z * z, 1400.0))
            + _WRONG_SHARE * 0.1 * exp(-0.005 * min(z * z, 140000.0))
        )
        - log(max(std, 1e-300))
        - _HALF_LOG_2PI
    )
    record[AT_ERROR_SIZE] += 0.03 * (min(fabs(z) / _MEAN_DISTANCE, 6.0) * record[AT_ERROR_SIZE] - record[AT_ERROR_SIZE])
    record[AT_ERROR_SIZE] = min(max(record[AT_ERROR_SIZE], 0.3), 30.0)
    goes_on: cython.bint = record[AT_RUN] * z > 0.0
    if fabs(z) < (0.5 * far if goes_on else far) or record[AT_OUTLIERS] > 1.0 + _MOST_OUTLIERS * record[AT_OBSERVED]:
        record[AT_RUN] = 0.0
        return y, 0.0
    if not goes_on:  # the first one on this side
        record[AT_RUN] = 0.0
        record[AT_FAR] = 0.0
    record[AT_RUN] += 1.0 if z > 0.0 else -1.0
    record[AT_FAR] += error
    if fabs(record[AT_RUN]) < _SHIFTED:
        record[AT_OUTLIERS] += 1.0
        return mean, std * std
    shift = record[AT_FAR] / fabs(record[AT_RUN])
    record[AT_RUN] = 0.0
    record[AT_ORIGIN] += shift
    if record[AT_POSITIVE] == 1.0:
        record[AT_LOG_ORIGIN] += log(max(mean + shift, 0.1 * y) / mean)
    return y, 0.0


def _shift_pending(plan, record, shift):
    """Move the pending forecasts of values to come to a new level."""
    m: cython.Py_ssize_t
    h: cython.Py_ssize_t
    for h in range(cython.cast(cython.Py_ssize_t, max(record[AT_STEP], 0.0)), plan.horizon):
        record[plan.at_combined + h] += shift
        for m in range(plan.n_members):
            record[plan.at_pending + m * plan.horizon + h] += shift


def _learn(plan, record, y, inputs, priors, sizing, work):
    """Learn one value, NaN if it is missing."""
    j: cython.Py_ssize_t
    observed: cython.bint = y == y
    if record[AT_OBSERVED] == 0.0 and not observed:
        record[AT_PHASE] += 1.0
        return
    if plan.n_inputs:
        q = plan.n_inputs
        own = record + plan.at_inputs
        memmove(own + q, own, (plan.input_memory - 1) * q * cython.sizeof(cython.double))
        for j in range(q):
            own[j] = inputs[j]
    if observed and record[AT_OBSERVED] == 0.0:
        record[AT_ORIGIN] = y
        record[AT_LOWEST] = y
        record[AT_HIGHEST] = y
        record[AT_LAST] = y
        if y > 0.0:
            record[AT_LOG_ORIGIN] = log(y)
    mean = record[AT_LAST]
    std = 0.0
    if record[AT_READY] > 0.0:
        mean, std = _one_ahead(plan, record, work)
        if mean != mean:
            mean = record[AT_LAST]
    if observed and y <= 0.0:
        record[AT_POSITIVE] = 0.0
    work.expected = mean
    work.expected_std = std
    value = y if observed else mean
    variance = 0.0
    if not observed:
        record[AT_MISSING] += 1.0
        variance = std * std * min(record[AT_MISSING], 10.0)
    elif std > 0.0 and record[AT_MISSING] == 0.0:
        level = record[AT_ORIGIN]
        value, variance = _accept(record, y, mean, std, work.far)
        if record[AT_ORIGIN] != level:
            _shift_pending(plan, record, record[AT_ORIGIN] - level)
    if record[AT_STEP] >= 0.0:
        _score(plan, record, sizing, y, observed and variance > 0.0)
    if observed:
        record[AT_MISSING] = 0.0
        record[AT_OBSERVED] += 1.0
        record[AT_LAST] = y
        record[AT_LOWEST] = min(record[AT_LOWEST], y)
        record[AT_HIGHEST] = max(record[AT_HIGHEST], y)
    plain = value - record[AT_ORIGIN]
    if record[AT_LENGTH] >= plan.season:
        record[AT_CHANGES] += fabs(plain - record[plan.at_past + plan.season - 1])
        record[AT_N_CHANGES] += 1.0
    logarithm = log(value) - record[AT_LOG_ORIGIN] if record[AT_POSITIVE] == 1.0 and value > 0.0 else 0.0
    push(plan, record, plain, logarithm, variance, cython.address(work.space[0]))
    if record[AT_STEP] >= plan.horizon:
        _finish(plan, record, sizing)
        record[AT_STEP] = -1.0 - plan.pause
    elif record[AT_STEP] < -1.0:
        record[AT_STEP] += 1.0
    if record[AT_STEP] == -1.0:
        _start_forecasts(plan, record, priors, sizing, work)


def learn_values(
    plan: Plan,
    y: cython.const[cython.double][::1],
    X: cython.const[cython.double][:, ::1],
    slots: cython.const[cython.longlong][::1],
    records: cython.double[:, ::1],
    priors: cython.const[cython.double][::1],
    sizing: cython.double[::1],
    work: ForecastWorkspace,
) -> None:
    """Learn values ``(n,)`` in their order, each into the record of its slot; NaN is missing."""
    i: cython.Py_ssize_t
    with cython.nogil:
        for i in range(y.shape[0]):
            _learn(
                plan,
                cython.address(records[slots[i], 0]),
                y[i],
                cython.address(X[i, 0]),
                cython.address(priors[0]),
                cython.address(sizing[0]),
                work,
            )


def forecast_series(
    plan: Plan,
    record: cython.double[::1],
    inputs: cython.const[cython.double][:, ::1],
    priors: cython.const[cython.double][::1],
    sizing: cython.const[cython.double][::1],
    work: ForecastWorkspace,
) -> "FloatArray":
    """Means, deviations and quantiles by step, ``(3, h)``; members' own and their shares are in ``work``.

    NaN where no member has a forecast. ``work.correlation`` receives the correlations of the steps.
    """
    m: cython.Py_ssize_t
    h: cython.Py_ssize_t
    k: cython.Py_ssize_t
    horizon = work.horizon
    steps: cython.Py_ssize_t = min(horizon, plan.horizon)
    known: cython.bint = False
    work.correlation[:, :] = 0.0
    found = np.zeros((3, horizon))
    result: cython.double[:, ::1] = found
    covariances: cython.double[:, :, ::1] = np.zeros((plan.n_members, horizon, horizon))
    with cython.nogil:
        for m in range(plan.n_members):
            work.shares[m] = 0.0
            if _forecast_member(
                plan,
                m,
                cython.address(record[0]),
                cython.address(priors[0]),
                cython.address(inputs[0, 0]),
                work,
                False,
                cython.address(work.means[m, 0]),
                cython.address(work.deviations[m, 0]),
            ):
                work.shares[m] = 1.0
                known = True
                member: Member = plan.member(m, cython.address(record[0]))
                p = member.tiers[3 * cython.cast(cython.Py_ssize_t, member.state[MEMBER_TIER]) + 1] + member.n_columns
                for h in range(horizon):
                    for k in range(horizon):
                        covariances[m, h, k] = work.joint[(p + h) * (p + horizon) + p + k]
        _weigh(plan, cython.address(record[0]), steps, cython.address(work.shares[0]))
        for h in range(horizon):
            for m in range(plan.n_members):
                share = work.shares[m]
                if share > 0.0:
                    result[0, h] += share * work.means[m, h]
                    result[1, h] += share * work.deviations[m, h]
                    for k in range(horizon):
                        own = sqrt(max(covariances[m, h, h] * covariances[m, k, k], 1e-300))
                        work.correlation[h, k] += share * covariances[m, h, k] / own
            result[1, h] *= _spread(plan, cython.address(record[0]), cython.address(sizing[0]), h)
            result[2, h] = sizing[SIZING_HEAD + plan.horizon + min(h, plan.horizon - 1)]
    if not known:
        found[:] = np.nan
    return found


def posterior_weights(
    plan: Plan,
    record: cython.double[::1],
    member: cython.Py_ssize_t,
    tier: cython.Py_ssize_t,
    priors: cython.const[cython.double][::1],
    work: ForecastWorkspace,
) -> "tuple[FloatArray, FloatArray] | None":
    """Mean and covariance of a member's weights, standardised, with the lags of a tier; None for too short a series."""
    own: Member = plan.member(member, cython.address(record[0]))
    view: SeriesView = plan.view(own.view, cython.address(record[0]))
    if tier > own.state[MEMBER_TIER] or (view.logarithm and record[AT_POSITIVE] == 0.0):
        return None
    rows: Equations = equations(
        cython.address(own),
        cython.address(view),
        tier,
        cython.address(work.matrix[0]),
        cython.address(work.targets[0]),
    )
    belief: LagBelief = posterior(
        cython.address(rows),
        cython.address(priors[0]) + own.tiers[3 * tier + 2],
        cython.address(own),
        0.0,
        _AS_EXPECTED,
        cython.address(work.mean[0]),
        cython.address(work.cov[0]),
    )
    p = belief.p
    return (np.array(work.mean[:p]), np.array(work.cov[: p * p]).reshape(p, p)) if belief.known else None


def member_regression(
    plan: Plan,
    record: cython.double[::1],
    member: cython.Py_ssize_t,
    inputs: cython.const[cython.double][:, ::1],
    priors: cython.const[cython.double][::1],
    work: ForecastWorkspace,
) -> "tuple[FloatArray, FloatArray]":
    """A member's weights, of lags first, and its view's last values, most recent first, both in the view's units.

    They are those of its forecast over the steps of the workspace, which there must be. The record keeps the weights:
    give a copy.
    """
    own: Member = plan.member(member, cython.address(record[0]))
    view: SeriesView = plan.view(own.view, cython.address(record[0]))
    _forecast_member(
        plan,
        member,
        cython.address(record[0]),
        cython.address(priors[0]),
        cython.address(inputs[0, 0]),
        work,
        True,
        cython.address(work.means[member, 0]),
        cython.address(work.deviations[member, 0]),
    )
    weights, past = np.zeros(own.n_lags + own.n_columns), np.zeros(view.longest + 2)
    k: cython.Py_ssize_t
    for k in range(len(weights)):
        weights[k] = own.weights[k]
    for k in range(len(past)):
        past[k] = view.past[k]
    return weights, past[: cython.cast(cython.Py_ssize_t, min(view.state[VIEW_LENGTH], len(past)))]
