"""The running sums of lag regressions on one series, as many numbers as the longest lag and not its square.

A member of a forecaster regresses a *view* of the series (its values or their logarithms ``z``, or differences of
them) on lags of that view and on columns: 1, waves, inputs. Of the sums over rows that its posterior needs,

    S[i, j] = sum of rate^(n - 1 - t) u[t - i] u[t - j]   over the rows t = L .. n - 1, with L the longest lag,

only those of the target, ``S[0, k]``, are kept. The others follow along each diagonal, because a row later everything
has moved by one lag:

    S[i + 1, j + 1] = (S[i, j] - u[n - 1 - i] u[n - 1 - j]) / rate + rate^(n - 1 - L) u[L - 1 - i] u[L - 1 - j].

This takes the first ``L`` and the last ``L`` values of the view. A series of two years of weeks thus needs hundreds of
numbers for a member and not thousands, and a value is learned in a time proportional to the longest lag.

A short series can't fill long lags. A member therefore begins with its short ones (its first *tier*) and takes longer
ones as soon as the series is twice as long; as all values are then still among the first and the last ones, its sums
are made anew for the longer lag.

A record has the numbers at `AT_LENGTH` and so on, the last values, what `forecasting` keeps, then views and members.
"""

import cython
import numpy as np
from cython.cimports.libc.math import cos, pow, sin, sqrt
from cython.cimports.libc.string import memmove, memset

_KIND_COS = cython.declare(cython.Py_ssize_t, 1)
_KIND_SIN = cython.declare(cython.Py_ssize_t, 2)


class Plan:
    """Which members a forecaster has, and where their numbers are in the record of a series.

    Parameters
    ----------
    settings : dict
        ``views``: (logarithm, difference) of each; ``members``: of each (view, rate, lags, kinds, frequencies,
        tiers), where kinds are those of columns: 0 for the constant, which comes first, 1 for a cosine, 2 for a sine, 3
        for an input; and tiers are numbers of lags. ``horizon``, ``n_tests``, ``n_inputs``, ``season``; ``pause``:
        values between the end of one test forecast and the start of the next; and ``outliers``: deviations from which
        on a value is held back. Of each member also ``start`` and ``precision``: means and inverse variances, in units
        of the noise, of the prior of its weights (of lags, then of columns) as long as no other one is given.
    """

    def __init__(self, settings):
        self.settings = settings
        views, members = settings["views"], settings["members"]
        self.horizon, self.n_tests = settings["horizon"], settings["n_tests"]
        self.n_inputs, self.season = settings["n_inputs"], settings["season"]
        self.pause, self.outliers = settings["pause"], settings["outliers"]
        self.n_views, self.n_members = len(views), len(members)
        longest = [max([max(m["lags"]) for m in members if m["view"] == v], default=1) for v in range(len(views))]
        self.longest = max(longest)
        self.longest_difference = max(1, self.season, *[view[1] for view in views])
        reach = [2 * k + 3 + view[1] for k, view in zip(longest, views, strict=True)]
        self.input_memory = max(reach) if self.n_inputs else 0
        at = HEAD
        self.at_past, at = at, at + self.longest_difference
        self.at_log_past, at = at, at + self.longest_difference
        self.at_shares, at = at, at + self.n_members
        self.at_pending, at = at, at + self.n_members * self.horizon
        self.at_combined, at = at, at + 3 * self.horizon
        self.at_errors, at = at, at + 2 * self.n_members * self.horizon  # sums of errors, and of their weights
        self.at_phases, at = at, at + self.season  # sizes of errors by phase, less 1
        self.at_inputs, at = at, at + self.input_memory * self.n_inputs
        rows = []
        for (logarithm, difference), k in zip(views, longest, strict=True):
            rows.append((logarithm, difference, k, at))
            at += VIEW_HEAD + 2 * k + 2
        self._views = np.array(rows, dtype=np.intp)
        self._lay_out_members(members, at)

    def _lay_out_members(self, members, at):
        """Find a place for each member from ``at`` on."""
        rows, tiers, lags, kinds, frequencies, start, precision = [], [], [], [], [], [], []
        prior_at = 0
        self.n_weights = []
        for m in members:
            n_lags, n_columns, k = len(m["lags"]), len(m["kinds"]), max(m["lags"])
            row = [m["view"], n_lags, n_columns, k, at, len(lags), len(kinds), len(tiers), len(m["tiers"]), len(start)]
            rows.append(row)
            for n in m["tiers"]:
                p = n + n_columns
                tiers.append((m["lags"][n - 1], n, prior_at))
                prior_at += 1 + p + p * p
            lags += m["lags"]
            kinds += m["kinds"]
            frequencies += m["frequencies"]
            start += m["start"]
            precision += m["precision"]
            self.n_weights.append(n_lags + n_columns)
            at += MEMBER_HEAD + k + 1 + (1 + n_lags) * n_columns + n_columns * n_columns + n_lags + n_columns
        self.size, self.most_weights = at, max(self.n_weights)
        self._members = np.array(rows, dtype=np.intp)
        self.tiers = np.array(tiers, dtype=np.intp)
        self.lags, self.kinds = np.array(lags, dtype=np.intp), np.array(kinds, dtype=np.intp)
        self.frequencies = np.array(frequencies)
        self.start, self.precision = np.array(start), np.array(precision)
        self.rates = np.array([m["rate"] for m in members])

    def __reduce__(self):
        return Plan, (self.settings,)

    def __deepcopy__(self, memo):
        return self  # it never changes

    def tier_places(self, member: cython.Py_ssize_t) -> "Any":
        """Largest lag, number of weights, and place of the prior, of each tier of a member."""
        first, n = self._members[member, 7], self._members[member, 8]
        columns = self._members[member, 2]
        return [(row[0], row[1] + columns, row[2]) for row in np.asarray(self.tiers)[first : first + n].tolist()]

    def empty_priors(self) -> "FloatArray":
        """Room for the priors of all tiers of all members; none is set."""
        return np.zeros(sum(1 + p + p * p for m in range(self.n_members) for _, p, _ in self.tier_places(m)))

    def begin(self, record: cython.double[::1], phase: float) -> None:
        """Make an empty record, of a series that begins at a phase."""
        record[:] = 0.0
        record[AT_STEP] = -1.0
        record[AT_POSITIVE] = 1.0
        record[AT_ERROR_SIZE] = 1.0
        record[AT_PHASE] = phase
        m: cython.Py_ssize_t
        for m in range(self.n_members):
            record[self._members[m, 4] + MEMBER_TIER] = -1.0

    def view(self, number, record):
        """One view of a record."""
        found: SeriesView
        found.logarithm = self._views[number, 0] != 0
        found.difference = self._views[number, 1]
        found.longest = self._views[number, 2]
        found.state = record + self._views[number, 3]
        found.past = found.state + VIEW_HEAD
        found.first = found.past + found.longest + 2
        return found

    def member(self, number, record):
        """One member of a record."""
        found: Member
        found.view = self._members[number, 0]
        found.n_lags = self._members[number, 1]
        found.n_columns = self._members[number, 2]
        found.longest = self._members[number, 3]
        found.n_tiers = self._members[number, 8]
        found.rate = self.rates[number]
        found.lags = cython.address(self.lags[self._members[number, 5]])
        found.kinds = cython.address(self.kinds[self._members[number, 6]])
        found.frequencies = cython.address(self.frequencies[self._members[number, 6]])
        found.tiers = cython.address(self.tiers[self._members[number, 7], 0])
        found.start = cython.address(self.start[self._members[number, 9]])
        found.precision = cython.address(self.precision[self._members[number, 9]])
        found.state = record + self._members[number, 4]
        found.products = found.state + MEMBER_HEAD
        found.mixed = found.products + found.longest + 1
        found.columns = found.mixed + (1 + found.n_lags) * found.n_columns
        found.weights = found.columns + found.n_columns * found.n_columns
        return found


def fill_columns(member, time, inputs, before, columns):
    """The columns of a row at a time: 1, waves, inputs; of differences changes of inputs since ``before``."""
    j: cython.Py_ssize_t
    for j in range(member.n_columns):
        kind = member.kinds[j]
        if kind == _KIND_COS:
            columns[j] = cos(member.frequencies[j] * time)
        elif kind == _KIND_SIN:
            columns[j] = sin(member.frequencies[j] * time)
        elif kind == KIND_INPUT:
            k = cython.cast(cython.Py_ssize_t, member.frequencies[j])
            columns[j] = inputs[k] - before[k] if before != cython.NULL else inputs[k]
        else:
            columns[j] = 1.0


def push(plan, record, plain, logarithm, variance, space):
    """Add a value, less its origin, and its logarithm, to all views and members; ``variance`` is that of a belief.

    The variance of the logarithm is that relative to the value. ``space`` has room for the columns of a member. The
    inputs of the row are in the record already.
    """
    v: cython.Py_ssize_t
    m: cython.Py_ssize_t
    time = record[AT_LENGTH] + record[AT_PHASE]
    value = record[AT_ORIGIN] + plain
    for v in range(plan.n_views):
        view: SeriesView = plan.view(v, record)
        if view.logarithm and record[AT_POSITIVE] == 0.0:
            continue
        if not _push_view(plan, cython.address(view), record, logarithm if view.logarithm else plain):
            continue
        n = cython.cast(cython.Py_ssize_t, view.state[VIEW_LENGTH])
        own = variance / max(value * value, 1e-300) if view.logarithm else variance
        for m in range(plan.n_members):
            member: Member = plan.member(m, record)
            if member.view != v:
                continue
            tier = cython.cast(cython.Py_ssize_t, member.state[MEMBER_TIER])
            if tier + 1 < member.n_tiers and n >= 2 * member.tiers[3 * (tier + 1)] + 2:
                member.state[MEMBER_TIER] = tier + 1
                _rebuild(plan, cython.address(member), cython.address(view), record, space)
            elif tier >= 0:
                inputs = record + plan.at_inputs
                before = _before(view.difference, inputs, plan.n_inputs)
                fill_columns(cython.address(member), time, inputs, before, space)
                _add_row(cython.address(member), cython.address(view), tier, view.past, space)
            member.state[MEMBER_FILLED] = member.rate * member.state[MEMBER_FILLED] + own
    _shift(plan.longest_difference, record + plan.at_past, plain)
    _shift(plan.longest_difference, record + plan.at_log_past, logarithm)
    record[AT_LENGTH] += 1.0


def _before(difference, inputs, n_inputs):
    """The inputs from which a row's inputs differ, in a record; NULL for a view without differences."""
    if difference == 0:  # in two steps, since the type of a choice with NULL loses its const
        return cython.NULL
    return inputs + difference * n_inputs


def _push_view(plan, view, record, value):
    """Add a value to a view; whether the series is long enough for its difference."""
    if view.difference > 0:
        if record[AT_LENGTH] < view.difference:
            return False
        past = record + (plan.at_log_past if view.logarithm else plan.at_past)
        value -= past[view.difference - 1]
    n = cython.cast(cython.Py_ssize_t, view.state[VIEW_LENGTH])
    if n < view.longest:
        view.first[n] = value
    _shift(view.longest + 2, view.past, value)
    view.state[VIEW_LENGTH] += 1.0
    apart = value - view.state[VIEW_MEAN]
    view.state[VIEW_MEAN] += apart / (n + 1.0)
    view.state[VIEW_SQUARES] += apart * (value - view.state[VIEW_MEAN])
    return True


def _add_row(member, view, tier, past, columns):
    """Add a row whose target is ``past[0]`` and whose lag k is ``past[k]``."""
    i: cython.Py_ssize_t
    j: cython.Py_ssize_t
    q = member.n_columns
    longest = member.tiers[3 * tier]
    n_lags = member.tiers[3 * tier + 1]
    rate = member.rate
    target = past[0]
    for i in range(longest + 1):
        member.products[i] = rate * member.products[i] + target * past[i]
    for j in range(q):
        member.mixed[j] = rate * member.mixed[j] + target * columns[j]
    for i in range(n_lags):
        value = past[member.lags[i]]
        row = member.mixed + (1 + i) * q
        for j in range(q):
            row[j] = rate * row[j] + value * columns[j]
    for i in range(q):
        for j in range(q):
            member.columns[i * q + j] = rate * member.columns[i * q + j] + columns[i] * columns[j]
    member.state[MEMBER_WEIGHT] = rate * member.state[MEMBER_WEIGHT] + 1.0


def _rebuild(plan, member, view, record, space):
    """Make a member's sums anew for the lags of its tier; the view has no more than twice as many values, and two."""
    t: cython.Py_ssize_t
    i: cython.Py_ssize_t
    n = cython.cast(cython.Py_ssize_t, view.state[VIEW_LENGTH])
    tier = cython.cast(cython.Py_ssize_t, member.state[MEMBER_TIER])
    longest = member.tiers[3 * tier]
    q = member.n_columns
    window = space + q
    memset(member.products, 0, (member.longest + 1) * cython.sizeof(cython.double))
    memset(member.mixed, 0, ((1 + member.n_lags) * q + q * q) * cython.sizeof(cython.double))
    member.state[MEMBER_WEIGHT] = 0.0
    start = record[AT_LENGTH] + record[AT_PHASE] - (n - 1)
    for t in range(longest, n):
        for i in range(longest + 1):
            back = n - 1 - (t - i)
            window[i] = view.past[back] if back < view.longest + 2 else view.first[t - i]
        inputs = record + plan.at_inputs + (n - 1 - t) * plan.n_inputs
        fill_columns(member, start + t, inputs, _before(view.difference, inputs, plan.n_inputs), space)
        _add_row(member, view, tier, window, space)


def equations(member, view, tier, matrix, targets):
    """The sums over a member's rows with the lags of a tier, no longer than its own, in standardised units.

    Weights are those of lags, then those of columns. Values are standardised to mean 0 and deviation 1, differences to
    deviation 1.
    """
    i: cython.Py_ssize_t
    j: cython.Py_ssize_t
    q = member.n_columns
    found: Equations
    found.n_lags = member.tiers[3 * tier + 1]
    found.longest = member.tiers[3 * cython.cast(cython.Py_ssize_t, member.state[MEMBER_TIER])]
    found.p = found.n_lags + q
    found.matrix = matrix
    found.targets = targets
    found.weight = member.state[MEMBER_WEIGHT]
    found.centre = 0.0 if view.difference else view.state[VIEW_MEAN]
    scale = sqrt(max(view.state[VIEW_SQUARES], 0.0) / max(view.state[VIEW_LENGTH], 1.0))
    found.scale = scale if scale > 1e-150 else 1.0
    _lag_products(member, view, cython.address(found))
    centre = found.centre
    inverse = 1.0 / found.scale
    square = inverse * inverse
    p = found.p
    n_lags = found.n_lags
    total = member.columns[0] * centre * centre
    own = 2.0 * centre * member.mixed[0]
    found.squares = (member.products[0] + member.state[MEMBER_FILLED] - own + total) * square
    for i in range(n_lags):
        of_lag = centre * member.mixed[(1 + i) * q]
        lagged = member.products[member.lags[i]] - centre * member.mixed[0] - of_lag + total
        targets[i] = lagged * square
        for j in range(i + 1):
            entry = matrix[i * p + j] - of_lag - centre * member.mixed[(1 + j) * q] + total
            matrix[i * p + j] = entry * square
        matrix[i * p + i] += member.state[MEMBER_FILLED] * square
    for i in range(q):
        targets[n_lags + i] = (member.mixed[i] - centre * member.columns[i]) * inverse
        row = matrix + (n_lags + i) * p
        for j in range(n_lags):
            row[j] = (member.mixed[(1 + j) * q + i] - centre * member.columns[i]) * inverse
        for j in range(i + 1):
            row[n_lags + j] = member.columns[i * q + j]
    found.n_inputs = 0
    for j in range(q):
        if member.kinds[j] == KIND_INPUT:
            found.n_inputs += 1
            _scale(cython.address(found), n_lags + j, input_scale(member, j))
    for i in range(p):
        for j in range(i):
            matrix[j * p + i] = matrix[i * p + j]
    return found


def input_scale(member, column):
    """What an input is divided by: its deviation so far, or its size where it has always been the same."""
    weight = max(member.state[MEMBER_WEIGHT], 1.0)
    mean_square = member.columns[column * member.n_columns + column] / weight
    mean = member.columns[column * member.n_columns] / weight
    variance = mean_square - mean * mean
    if variance > 1e-9 * mean_square and variance > 1e-300:
        return sqrt(variance)
    return sqrt(mean_square) if mean_square > 1e-300 else 1.0


def _scale(found, at, scale):
    """Divide a column by its scale."""
    k: cython.Py_ssize_t
    for k in range(found.p):
        if k <= at:
            found.matrix[at * found.p + k] /= scale
        if k >= at:
            found.matrix[k * found.p + at] /= scale
    found.targets[at] /= scale


def _lag_products(member, view, found):
    """Fill the lower triangle of the lags' products, as the sums have them: along each diagonal, see the module."""
    a: cython.Py_ssize_t
    b: cython.Py_ssize_t
    i: cython.Py_ssize_t
    n = view.state[VIEW_LENGTH]
    longest = found.longest
    inverse = 1.0 / member.rate
    start = pow(member.rate, n - 1.0 - longest)
    for b in range(found.n_lags):  # the diagonals that have a pair of lags, each from its first pair on
        for a in range(b + 1):
            found.matrix[b * found.p + a] = 0.0
    last = member.lags[found.n_lags - 1]
    k: cython.Py_ssize_t
    for k in range(last):
        product = member.products[k]
        a = 0
        b = 0
        for i in range(last - k):
            product = (product - view.past[i] * view.past[i + k]) * inverse
            product += start * view.first[longest - 1 - i] * view.first[longest - 1 - i - k]
            while a < found.n_lags and member.lags[a] < i + 1:
                a += 1
            while b < found.n_lags and member.lags[b] < i + 1 + k:
                b += 1
            if b == found.n_lags:
                break
            if member.lags[a] == i + 1 and member.lags[b] == i + 1 + k:
                found.matrix[b * found.p + a] = product


def _shift(n, values, value):
    """Put a value before the others, of which the last one is lost."""
    memmove(values + 1, values, (n - 1) * cython.sizeof(cython.double))
    values[0] = value


def normal_equations(plan: Plan, record: cython.double[::1], member: cython.Py_ssize_t) -> "Any":
    """A member's sums, standardised: matrix ``(p, p)``, targets ``(p,)``, squares of targets, sum of weights."""
    own: Member = plan.member(member, cython.address(record[0]))
    view: SeriesView = plan.view(own.view, cython.address(record[0]))
    tier = cython.cast(cython.Py_ssize_t, own.state[MEMBER_TIER])
    if tier < 0:
        raise ValueError("the series is too short for this member")
    p = own.tiers[3 * tier + 1] + own.n_columns
    matrix = np.zeros((p, p))
    targets = np.zeros(p)
    into: cython.double[:, ::1] = matrix
    beside: cython.double[::1] = targets
    found = equations(
        cython.address(own), cython.address(view), tier, cython.address(into[0, 0]), cython.address(beside[0])
    )
    return matrix, targets, found.squares, found.weight
