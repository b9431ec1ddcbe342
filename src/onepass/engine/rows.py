"""The row kernels: one compiled loop over the rows for each form of the belief.

Every kernel returns the number of rows it learned: all of them; or up to the one that raised an alarm, see `outliers`,
which the caller answers; or the index of the first that is not finite, of which nothing was written. The belief may be
in single or double precision.
"""

import cython
import numpy as np
from cython.cimports.libc.math import NAN, expm1, fabs, fmod, isfinite, log, log1p, sqrt
from cython.cimports.libc.stdlib import free, malloc
from cython.cimports.libc.string import memcpy
from cython.cimports.onepass.engine.noise import AllRows, Response, tridiagonalise
from cython.cimports.onepass.engine.one_row import OneRow
from cython.cimports.onepass.engine.outliers import Trust
from cython.cimports.onepass.engine.step import PerceptronProgress, Site, learn_noise, learn_row, learn_scalar

_TINY = cython.declare(cython.double, 1e-100)  # the square root of a share of the variance that is none
EXHAUSTED = 1e-24  # squares that are all rounding, of a vector of Lanczos's method
_EXHAUSTED = cython.declare(cython.double, EXHAUSTED)


class Rows:
    """Rows to learn in their order.

    Parameters
    ----------
    X : (n, d) array or csr_array, without the bias's constant
    y : (n,) array
    X_var : (n, d) variances of the inputs, or empty
    record : (n, RECORD_SIZE) array that receives what each row was predicted from, see `step.RowRecord`; or empty
    sites : (n, SITE_SIZE) array of what each row contributed, see `step.Site`, NaN before it was learned; or empty
    """

    def __init__(self, X, y, X_var, record, sites):
        self.X, self.y, self.X_var, self.record, self.sites = X, y, X_var, record, sites
        self.inputs = X if isinstance(X, np.ndarray) else np.empty((0, X.shape[1]))
        self.targets, self.input_vars, self.records, self.kept_sites = y, X_var, record, sites

    def __len__(self):
        return self.targets.shape[0]

    def part(self, start, stop) -> Rows:
        """Some of the rows."""
        if start == 0 and stop >= len(self):
            return self
        return Rows(*(array[start:stop] for array in (self.X, self.y, self.X_var, self.record, self.sites)))

    def row(self, i):
        """A row of those that are not sparse."""
        row: Row = Row(x=cython.NULL, x_var=cython.NULL, d=self.inputs.shape[1], y=self.targets[i], site=cython.NULL)
        row.x = cython.address(self.inputs[i, 0])
        if self.input_vars.shape[0]:
            row.x_var = cython.address(self.input_vars[i, 0])
        if self.kept_sites.shape[0]:
            row.site = cython.cast(cython.pointer(Site), cython.address(self.kept_sites[i, 0]))
        return row

    def finish(self, i, state, seen, noise, noise_weight):
        """Record a row that was learned at a noise; whether the caller is to answer an alarm before the next one."""
        if self.records.shape[0]:
            state.record_row(self.records, i, seen.pre_mean, seen.pre_var, noise, noise_weight)
        return state.trust.is_alarmed() and self.kept_sites.shape[0] == 0


class PerceptronRule:
    """How a perceptron learns a row, apart from its belief.

    Parameters
    ----------
    likelihood : CompiledLikelihood
    bias : 1 where a constant 1 precedes every row
    period : rows between two steps of forgetting; 0 for none
    keep : share of the rows' precision that such a step keeps
    priors : (n, p + p (p + 1)/2) array
        What is forgotten towards, and what rows are re-weighed against: the mean and the lower triangle of the
        covariance's root, row after row, of each prior; empty where the caller does both, or neither is done.
    centre, precisions : (p,) arrays
        Mean and precisions of the prior for beliefs that are not kept as roots; empty where the noise is fixed or
        weights are correlated.
    """

    def __init__(
        self,
        likelihood,
        bias: int,
        period: int = 0,
        keep: float = 1.0,
        priors=None,
        centre=(),
        precisions=(),
    ):
        self.likelihood, self.bias, self.period, self.keep = likelihood, bias, period, keep
        self.priors = np.ascontiguousarray(np.empty((0, 0)) if priors is None else priors, dtype=np.float64)
        self.coupled = len(self.priors) > 0 and _is_coupled(np.asarray(self.priors))
        self.centre, self.precisions = np.array(centre, dtype=np.float64), np.array(precisions, dtype=np.float64)

    def prior(self, number, p):
        """A prior of ``p`` weights, if there is any."""
        prior: Prior = Prior(p=p, coupled=self.coupled, values=cython.NULL)
        if self.priors.shape[0]:
            prior.values = cython.address(self.priors[number, 0])
        return prior

    def __reduce__(self):
        arrays = (np.asarray(self.priors), np.asarray(self.centre), np.asarray(self.precisions))
        return PerceptronRule, (self.likelihood, self.bias, self.period, self.keep, *arrays)


class Wander:
    """How the weights move before each row: ``C <- kept C + diag(added)``.

    Parameters
    ----------
    kept : share of the covariance that is left
    added : (p,) array, empty where weights don't move
    """

    def __init__(self, kept: float, added):
        self.kept, self.added = kept, added

    def __reduce__(self):
        return Wander, (self.kept, np.asarray(self.added))


def _is_coupled(priors):
    """Whether weights are correlated in some prior."""
    p = int(np.sqrt(2 * priors.shape[1] + 2.25) - 1.5 + 0.5)  # from p + p (p + 1)/2 numbers
    below, across = np.tril_indices(p)
    return bool(priors[:, p:][:, below != across].any())


def scratch_size(rule, p):
    """Numbers that `learn_row_root` needs room for: four rows, and to forget the prior's share and a way back."""
    return 4 * p if rule.priors.shape[0] == 0 else 10 * p + 3 * (p * (p + 1) // 2)


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _start(p: cython.Py_ssize_t, j: cython.Py_ssize_t, packed: cython.bint) -> cython.Py_ssize_t:
    """Where row ``j`` of a root begins, which is stored with its zeros or, ``packed``, without."""
    return j * (j + 1) // 2 if packed else j * p


def _prior_row(prior, j):
    """Row ``j`` of a prior's root."""
    return prior.values + prior.p + j * (j + 1) // 2


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _inverse(value: cython.double) -> cython.double:
    """The inverse, or 0 of 0: what the prior knows exactly does not move."""
    return 1.0 / value if value != 0.0 else 0.0


def forget_root(prior, keep, mean, root, packed, space):
    """Forget towards a prior, ``P <- k P + (1 - k) P0`` and the same for ``P m``, in a root ``C = R'R``.

    A share ``k`` above 1 makes the rows count more, as when they are re-weighed to a smaller noise.

    With ``S = R R0^-1`` and ``M = k I + (1 - k) S S' = L L'`` the new root is ``L^-1 R``: nothing is subtracted, and
    ``M`` is never singular, as ``S S'`` is at most the identity. A weight, or combination of weights, that the prior
    knows exactly stays as it is.
    """
    i: cython.Py_ssize_t
    j: cython.Py_ssize_t
    k: cython.Py_ssize_t
    p = prior.p
    half: cython.Py_ssize_t = p * (p + 1) // 2
    fade = 1.0 - keep
    ratio = space
    factor = space + half
    pull = space + 2 * half
    pivot = pull + p  # inverses of the diagonal of L
    faded = pivot + p
    _relative_root(prior, mean, root, packed, ratio, pull, pivot)
    for i in range(p):
        _factor_row(i, keep, fade, ratio, factor, pivot, faded)
        low = factor + i * (i + 1) // 2
        _subtract_rows(p, i, low, root, packed)
        total = pull[i]
        for j in range(i):
            total -= low[j] * pull[j]
        scale = pivot[i]
        r = root + _start(p, i, packed)
        for k in range(i + 1):
            r[k] *= scale
        pull[i] = total * scale
    for i in range(p):
        r = root + _start(p, i, packed)
        total = fade * pull[i]
        for k in range(i + 1):
            mean[k] += total * r[k]


def _relative_root(prior, mean, root, packed, ratio, pull, space):
    """Fill ``S = R R0^-1``, packed, and ``S R0'^-1 (m0 - m)``; ``space`` has room for ``2 p`` numbers."""
    i: cython.Py_ssize_t
    j: cython.Py_ssize_t
    k: cython.Py_ssize_t
    p = prior.p
    gap = space
    inverse = space + p  # of the diagonal of R0
    for j in range(p):
        gap[j] = prior.values[j] - mean[j]
    for j in range(p - 1, -1, -1):
        prior_row = _prior_row(prior, j)
        inverse[j] = _inverse(prior_row[j])
        gap[j] *= inverse[j]
        if prior.coupled:
            for k in range(j):
                gap[k] -= prior_row[k] * gap[j]
    for i in range(p):
        r = root + _start(p, i, packed)
        s = ratio + i * (i + 1) // 2
        for k in range(i + 1):
            s[k] = r[k]
        if prior.coupled:
            for j in range(i, 0, -1):
                prior_row = _prior_row(prior, j)
                for k in range(j):
                    s[k] -= s[j] * inverse[j] * prior_row[k]
        total = 0.0
        for k in range(i + 1):
            s[k] *= inverse[k]
            total += s[k] * gap[k]
        pull[i] = total


def _subtract_rows(p, i, factor, root, packed):
    """Subtract ``factor`` of each row before row ``i`` of a root from that row, four at a time."""
    j: cython.Py_ssize_t
    k: cython.Py_ssize_t
    r = root + _start(p, i, packed)
    whole: cython.Py_ssize_t = i - i % 4
    for j in range(0, whole, 4):
        r0 = root + _start(p, j, packed)
        r1 = r0 + (j + 1 if packed else p)
        r2 = r1 + (j + 2 if packed else p)
        r3 = r2 + (j + 3 if packed else p)
        w0 = factor[j]
        w1 = factor[j + 1]
        w2 = factor[j + 2]
        w3 = factor[j + 3]
        for k in range(j + 1):
            r[k] -= w0 * r0[k] + w1 * r1[k] + w2 * r2[k] + w3 * r3[k]
        r[j + 1] -= w1 * r1[j + 1] + w2 * r2[j + 1] + w3 * r3[j + 1]
        r[j + 2] -= w2 * r2[j + 2] + w3 * r3[j + 2]
        r[j + 3] -= w3 * r3[j + 3]
    for j in range(whole, i):
        r0 = root + _start(p, j, packed)
        w0 = factor[j]
        for k in range(j + 1):
            r[k] -= w0 * r0[k]


def _factor_row(i, keep, fade, ratio, factor, pivot, s):
    """Row ``i`` of the Cholesky factor of ``k I + (1 - k) S S'``, packed as ``S``, and the inverse of its last entry.

    ``s`` has room for a row of ``S``.
    """
    j: cython.Py_ssize_t
    k: cython.Py_ssize_t
    m: cython.Py_ssize_t
    entries: cython.double[4]
    for j in range(i + 1):
        s[j] = fade * ratio[i * (i + 1) // 2 + j]
    low = factor + i * (i + 1) // 2
    for j in range(0, i + 1, 4):  # four columns at a time
        s0 = ratio + j * (j + 1) // 2
        f0 = factor + j * (j + 1) // 2
        columns: cython.Py_ssize_t = min(4, i + 1 - j)
        if columns == 4:
            s1 = s0 + j + 1
            s2 = s1 + j + 2
            s3 = s2 + j + 3
            f1 = f0 + j + 1
            f2 = f1 + j + 2
            f3 = f2 + j + 3
            e0 = 0.0
            e1 = 0.0
            e2 = 0.0
            e3 = 0.0
            for k in range(j):
                e0 += s[k] * s0[k] - low[k] * f0[k]
                e1 += s[k] * s1[k] - low[k] * f1[k]
                e2 += s[k] * s2[k] - low[k] * f2[k]
                e3 += s[k] * s3[k] - low[k] * f3[k]
            entries[0] = e0
            entries[1] = e1
            entries[2] = e2
            entries[3] = e3
        else:
            for m in range(columns):
                e0 = 0.0
                for k in range(j):
                    e0 += s[k] * ratio[(j + m) * (j + m + 1) // 2 + k] - low[k] * factor[(j + m) * (j + m + 1) // 2 + k]
                entries[m] = e0
        for m in range(columns):  # the rest, whose own entries the one before had to be known for
            s0 = ratio + (j + m) * (j + m + 1) // 2
            f0 = factor + (j + m) * (j + m + 1) // 2
            e0 = entries[m] + s[j + m] * s0[j + m]
            for k in range(j, j + m):
                e0 += s[k] * s0[k] - low[k] * f0[k]
            low[j + m] = e0 * pivot[j + m] if j + m < i else sqrt(max(keep + e0, min(keep, 1.0)))
    pivot[i] = 1.0 / low[i]


def _copy_belief(p, mean, root, packed, saved, back):
    """Keep a belief or, ``back``, return to the one that was kept."""
    j: cython.Py_ssize_t
    _copy(p, mean, saved, back)
    saved += p
    for j in range(p):
        _copy(j + 1, root + _start(p, j, packed), saved, back)
        saved += j + 1


def _copy(n, values, saved, back):
    k: cython.Py_ssize_t
    for k in range(n):
        if back:
            values[k] = saved[k]
        else:
            saved[k] = values[k]


def _forgets_now(rule, state):
    """Whether a step of forgetting comes before the next row."""
    return rule.period > 0 and state.n_seen > 0.0 and fmod(state.n_seen, rule.period) == 0.0


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _load(
    x: cython.pointer(Real),
    row: cython.pointer(cython.const[cython.double]),
    d: cython.Py_ssize_t,
    bias: cython.Py_ssize_t,
) -> cython.bint:
    """Copy a row behind the bias's constant 1; whether all of it is finite."""
    if bias:
        x[0] = 1.0
    total = 0.0  # of magnitudes: products with zero, which are NaN for infinity, are optimised away
    k: cython.Py_ssize_t
    for k in range(d):
        x[bias + k] = row[k]
        total += fabs(row[k])
    return isfinite(total)


def learn_row_root(row, rule, state, mean, root, packed, prior, forgets, scratch):
    """Learn a row into ``C = R'R``, ``R`` lower triangular; whether it could be, and its mean and variance from before.

    Carlson's update, see `onepass.beliefs.full`. ``packed`` roots are stored without the zeros; ``prior`` is what rows
    are re-weighed against and, if the kernel ``forgets``, what the rule's forgetting goes towards; where there is none,
    the caller does both. ``scratch`` has room for `scratch_size` numbers.
    """
    p: cython.Py_ssize_t = row.d + rule.bias
    j: cython.Py_ssize_t
    x = scratch
    coords = scratch + p
    gain = scratch + 2 * p
    shrink = scratch + 3 * p
    has_prior: cython.bint = prior.values != cython.NULL
    seen: Seen = Seen(learned=False, digits_lost=False, pre_mean=0.0, pre_var=0.0)
    if not _load(x, row.x, row.d, rule.bias) or not isfinite(row.y):
        return seen
    forgets = forgets and has_prior and _forgets_now(rule, state)
    saved = scratch + 9 * p + p * (p + 1)
    if forgets:
        _copy_belief(p, mean, root, packed, saved, False)
        forget_root(prior[0], rule.keep, mean, root, packed, scratch + 4 * p)
    _root_coordinates(p, root, packed, x, coords)
    pre_mean = 0.0
    var = 0.0
    for j in range(p):
        var += coords[j] * coords[j]
        pre_mean += mean[j] * x[j]
    input_var = 0.0 if row.x_var == cython.NULL else _root_input_var(row, rule.bias, p, mean, root, packed)
    score, information, ratio = learn_row(rule.likelihood, state, pre_mean, var, input_var, row.y, row.site)
    if not isfinite(score):
        if forgets:
            _copy_belief(p, mean, root, packed, saved, True)
        return seen
    response: Response
    steps: cython.Py_ssize_t = state.response_steps() if state.pending and has_prior else 0
    if steps > 1:
        _respond_root(prior[0], steps, coords, var, mean, root, packed, cython.address(response))
    _shrink_root(p, information, ratio, coords, root, packed, gain, shrink, x)  # the row is not needed any more
    if state.pending:
        if steps <= 1:
            respond_once(p, var, gain, mean, rule, prior[0], cython.address(response))
        learn_noise(state, cython.address(response))
    for j in range(p):
        mean[j] += score * gain[j]
    if has_prior and state.is_due(p):
        _reweigh_root(prior[0], state, mean, root, packed, scratch + 4 * p)
    seen.learned = True
    seen.pre_mean = pre_mean
    seen.pre_var = var + input_var
    return seen


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _root_coordinates(
    p: cython.Py_ssize_t,
    root: cython.pointer(Real),
    packed: cython.bint,
    x: cython.pointer(Real),
    coords: cython.pointer(Real),
) -> cython.void:
    """Fill ``R x``; four sums at a time, which don't wait for each other, where ``R`` has zeros above its diagonal."""
    j: cython.Py_ssize_t
    k: cython.Py_ssize_t
    whole: cython.Py_ssize_t = 0 if packed else p - p % 4
    for j in range(0, whole, 4):
        r0 = root + j * p
        r1 = r0 + p
        r2 = r1 + p
        r3 = r2 + p
        s0 = 0.0
        s1 = 0.0
        s2 = 0.0
        s3 = 0.0
        for k in range(j + 4):
            s0 += r0[k] * x[k]
            s1 += r1[k] * x[k]
            s2 += r2[k] * x[k]
            s3 += r3[k] * x[k]
        coords[j] = s0
        coords[j + 1] = s1
        coords[j + 2] = s2
        coords[j + 3] = s3
    for j in range(whole, p):
        r = root + _start(p, j, packed)
        s0 = 0.0
        for k in range(j + 1):
            s0 += r[k] * x[k]
        coords[j] = s0


def _root_input_var(row, bias, p, mean, root, packed):
    """The variance that uncertain inputs add to the pre-activation."""
    j: cython.Py_ssize_t
    k: cython.Py_ssize_t
    total = 0.0
    for k in range(bias, p):
        marginal = 0.0
        for j in range(k, p):
            entry = root[_start(p, j, packed) + k]
            marginal += entry * entry
        total += row.x_var[k - bias] * (mean[k] * mean[k] + marginal)
    return total


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _shrink_root(
    p: cython.Py_ssize_t,
    information: cython.double,
    ratio: cython.double,
    coords: cython.pointer(Real),
    root: cython.pointer(Real),
    packed: cython.bint,
    gain: cython.pointer(Real),
    shrink: cython.pointer(Real),
    inverses: cython.pointer(Real),
) -> cython.void:
    """Carlson's update of a root, and the gain ``C x``; the last two have room for what the update needs."""
    j: cython.Py_ssize_t
    k: cython.Py_ssize_t
    end: cython.Py_ssize_t
    share = ratio
    for j in range(p):
        gain[j] = 0.0
        share += information * coords[j] * coords[j]
        shrink[j] = share
    for j in range(p):  # on their own, so that roots and quotients are taken side by side
        shrink[j] = sqrt(max(shrink[j], 0.0))
        inverses[j] = 1.0 / shrink[j]
    before = sqrt(max(ratio, 0.0))
    before_inverse = 1.0 / before if before > _TINY else 0.0
    for j in range(p):
        r = root + _start(p, j, packed)
        coord = coords[j]
        after = shrink[j]
        if coord == 0.0 or after <= _TINY:
            continue
        inverse = inverses[j]
        keep = before * inverse
        mix = information * coord * inverse * before_inverse
        # To a multiple of four, which vectors like: beyond the diagonal R and the gain so far are zero and stay so.
        end = j + 1 if packed else min(p, j + 4 - j % 4)
        for k in range(end):
            entry = r[k]
            so_far = gain[k]
            r[k] = keep * entry - mix * so_far
            gain[k] = so_far + coord * entry
        before = after
        before_inverse = inverse


def respond_once(p, var, gain, mean, rule, prior, response):
    """Fill the first step of a row's response to the noise, see `noise`; none where the prior's weights correlate.

    ``prior`` is for rules without mean and precisions of their own.
    """
    response.n = 0
    by_rule: cython.bint = rule.precisions.shape[0] > 0
    if var <= 0.0 or not (by_rule or (prior.values != cython.NULL and not prior.coupled)):
        return
    j: cython.Py_ssize_t
    own = 0.0
    pull = 0.0
    for j in range(p):
        if by_rule:
            precise = gain[j] * rule.precisions[j]
            centre = rule.centre[j]
        else:
            entry = _prior_row(prior, j)[j]  # of the root, whose square is a variance
            precise = gain[j] / (entry * entry) if entry != 0.0 else 0.0
            centre = prior.values[j]
        own += gain[j] * precise
        pull += precise * (mean[j] - centre)
    response.n = 1
    response.diagonal[0] = min(own / var, 1.0)
    response.below[0] = 0.0
    response.pull[0] = pull


def _respond_root(prior, steps, coords, var, mean, root, packed, response):
    """Fill a row's response to the noise, see `noise`, from its coordinates ``r = R x``: Lanczos's method."""
    p = prior.p
    i: cython.Py_ssize_t
    j: cython.Py_ssize_t
    k: cython.Py_ssize_t
    response.n = 0
    gap = cython.cast(cython.p_double, malloc(4 * p * cython.sizeof(cython.double))) if var > 0.0 else cython.NULL
    if gap == cython.NULL:
        return
    vector = gap + p
    before = gap + 2 * p
    image = gap + 3 * p
    _whitened_gap(prior, mean, gap)
    length = sqrt(var)
    for j in range(p):
        vector[j] = coords[j] / length
        before[j] = 0.0
    below = 0.0
    for i in range(steps):
        for k in range(p):
            image[k] = 0.0
        for j in range(p):
            r = root + _start(p, j, packed)
            entry = vector[j]
            for k in range(j + 1):
                image[k] += entry * r[k]
        _whiten(prior, image)
        own = 0.0
        pull = 0.0
        for k in range(p):
            own += image[k] * image[k]
            pull += image[k] * gap[k]
        response.n = i + 1
        response.diagonal[i] = min(own, 1.0)
        response.below[i] = 0.0
        response.pull[i] = length * pull
        if i + 1 == steps:
            break
        _unwhiten(prior, image)
        square = 0.0
        for j in range(p):
            r = root + _start(p, j, packed)
            total = -own * vector[j] - below * before[j]
            for k in range(j + 1):
                total += r[k] * image[k]
            before[j] = vector[j]
            vector[j] = total
            square += total * total
        if square <= _EXHAUSTED * own * own:
            break
        below = sqrt(square)
        response.below[i] = below
        for j in range(p):
            vector[j] /= below
    free(gap)


def _reweigh_root(prior, state, mean, root, packed, space):
    """Move to a new reference of the noise and re-weigh all rows so far to it, in a root: see `noise`.

    ``space`` has room for what `forget_root` needs.
    """
    p = prior.p
    memory = cython.cast(cython.p_double, malloc((p + 1) * (p + 5) * cython.sizeof(cython.double)))
    if memory == cython.NULL:
        return
    all_rows = _ask_root(prior, mean, root, packed, memory)
    keep = state.new_reference(cython.address(all_rows))
    free(memory)
    if keep != 1.0:
        forget_root(prior, keep, mean, root, packed, space)


def rescale_root(prior, trust, mean, root, packed, space):
    """Move the scale of the weights as the share of wrong labels has moved, in a root ``C = R'R``: see `outliers`.

    What rows have said about the weights is rescaled, not what the prior says: of the way ``m - m0`` from the prior's
    mean that is ``d = (I - C P0) (m - m0)``. The covariance gets so much of ``d d'`` that the log scale has the
    variance that it has if the share is not known. ``space`` has room for ``3 p`` numbers.
    """
    j: cython.Py_ssize_t
    k: cython.Py_ssize_t
    p = prior.p
    gap = space
    way = space + p
    image = space + 2 * p
    _whitened_gap(prior, mean, gap)
    prior_information = 0.0
    for j in range(p):
        prior_information += gap[j] * gap[j]
    for j in range(p):  # P0 (m - m0) = R0^-1 of it
        prior_row = _prior_row(prior, j)
        for k in range(j):
            gap[j] -= prior_row[k] * gap[k]
        gap[j] *= _inverse(prior_row[j])
    for j in range(p):
        way[j] = mean[j] - prior.values[j]
        image[j] = way[j]
    information = 0.0  # (m - m0)'P (m - m0), the square of R'^-1 (m - m0)
    for j in range(p - 1, -1, -1):
        row = root + _start(p, j, packed)
        image[j] *= _inverse(row[j])
        information += image[j] * image[j]
        for k in range(j):
            image[k] -= row[k] * image[j]
    for j in range(p):
        row = root + _start(p, j, packed)
        entry = 0.0
        for k in range(j + 1):
            entry += row[k] * gap[k]
        for k in range(j + 1):
            way[k] -= row[k] * entry
    times = expm1(trust.scale_shift)
    wider = sqrt(max(trust.scale_var() - 1.0 / information, 0.0)) if information > 0.0 else 0.0
    for j in range(p):
        mean[j] += times * way[j]
        way[j] *= wider
    for j in range(p - 1, -1, -1):  # rotate the row ``way`` into the root
        row = root + _start(p, j, packed)
        length = sqrt(row[j] * row[j] + way[j] * way[j])
        if length == 0.0:
            continue
        cosine = row[j] / length
        sine = way[j] / length
        for k in range(j + 1):
            old = row[k]
            row[k] = cosine * old + sine * way[k]
            way[k] = cosine * way[k] - sine * old
    trust.finish_shift(prior_information)


def rescaled(
    prior: cython.const[cython.double][::1], trust: Trust, mean: cython.double[::1], root: cython.double[:, ::1]
) -> None:
    """See `rescale_root`, for callers in Python; in place."""
    space: cython.double[::1] = np.empty(3 * mean.shape[0])
    rescale_root(
        Prior(p=mean.shape[0], coupled=True, values=cython.address(prior[0])),
        trust,
        cython.address(mean[0]),
        cython.address(root[0, 0]),
        False,
        cython.address(space[0]),
    )


def _whitened_gap(prior, mean, gap):
    """Fill the way of the mean from the prior's, in units of the prior: ``R0'^-1 (m - m0)``."""
    j: cython.Py_ssize_t
    for j in range(prior.p):
        gap[j] = mean[j] - prior.values[j]
    _whiten(prior, gap)


def _whiten(prior, vector):
    """``R0'^-1 vector``, in place; 0 where the prior knows a weight exactly."""
    j: cython.Py_ssize_t
    k: cython.Py_ssize_t
    for j in range(prior.p - 1, -1, -1):
        prior_row = _prior_row(prior, j)
        vector[j] *= _inverse(prior_row[j])
        if prior.coupled:
            for k in range(j):
                vector[k] -= prior_row[k] * vector[j]


def _unwhiten(prior, vector):
    """``R0^-1 vector``, in place."""
    j: cython.Py_ssize_t
    k: cython.Py_ssize_t
    for j in range(prior.p):
        prior_row = _prior_row(prior, j)
        if prior.coupled:
            for k in range(j):
                vector[j] -= prior_row[k] * vector[k]
        vector[j] *= _inverse(prior_row[j])


def _ask_root(prior, mean, root, packed, memory):
    """What all rows say about their noise, see `noise`: ``Ω`` made tridiagonal, bordered by the mean's way ``b``.

    ``memory`` has room for ``(p + 1) (p + 5)`` numbers, which the result refers to.
    """
    i: cython.Py_ssize_t
    j: cython.Py_ssize_t
    k: cython.Py_ssize_t
    p = prior.p
    n: cython.Py_ssize_t = p + 1
    matrix = memory + 4 * n  # (n, n), of which the first coordinate is the border
    below = memory
    diagonal = memory + n
    s = memory + 2 * n
    _whitened_gap(prior, mean, s)
    for i in range(n):
        for k in range(i + 1):
            matrix[i * n + k] = 0.0
        if i > 0:
            matrix[i * n] = s[i - 1]
    log_det = 0.0
    n_directions = 0.0
    for i in range(p):  # Ω = S'S with S = R R0^-1, of which this is a row
        r = root + _start(p, i, packed)
        prior_row = _prior_row(prior, i)
        if prior_row[i] != 0.0 and r[i] != 0.0:
            log_det += 2.0 * log(fabs(r[i] / prior_row[i]))
            n_directions += 1.0
        for k in range(i + 1):
            s[k] = r[k]
        for j in range(i, -1, -1):
            prior_row = _prior_row(prior, j)
            s[j] *= _inverse(prior_row[j])
            if prior.coupled:
                for k in range(j):
                    s[k] -= s[j] * prior_row[k]
        for j in range(i + 1):
            entry = s[j]
            row = matrix + (j + 1) * n + 1
            for k in range(j + 1):
                row[k] += entry * s[k]
    tridiagonalise(n, matrix, below, memory + 2 * n)
    for i in range(p):
        diagonal[i] = min(matrix[(i + 1) * (n + 1)], 1.0)  # more is rounding
    below[p] = 0.0
    return AllRows(
        n=p,
        diagonal=diagonal,
        below=below + 1,
        square=below[0] * below[0],
        log_det=log_det,
        n_directions=n_directions,
    )


class RowLearner(OneRow):
    """Learns and predicts one row at a time with a belief stored as a root: see `one_row`."""

    def __init__(self, rule, state, mean, root):
        self.rule, self.state, self.mean, self.root = rule, state, mean, root
        self.scratch, self.prior = np.empty(scratch_size(rule, len(mean))), self.rule.prior(0, len(mean))
        self.saved, self.saved_state = None, None

    def attempt(self, x, y):
        """Keep the belief, to go back to, and learn the row."""
        target: cython.double = y
        p: cython.Py_ssize_t = self.mean.shape[0]
        if self.saved_state is None:
            self.saved, self.saved_state = np.empty(p * (p + 1)), self.state.copy()
        saved = cython.address(self.saved[0])
        self.saved_state.assign(self.state)
        memcpy(saved, cython.address(self.mean[0]), p * cython.sizeof(cython.double))
        memcpy(saved + p, cython.address(self.root[0, 0]), p * p * cython.sizeof(cython.double))
        if not self.call(x, target):
            self.undo()
            return False
        return True

    def score(self):
        """That of the row learned last."""
        return self.state.log_density

    def undo(self):
        """Take back the belief that was kept."""
        p: cython.Py_ssize_t = self.mean.shape[0]
        saved = cython.address(self.saved[0])
        self.state.assign(self.saved_state)
        memcpy(cython.address(self.mean[0]), saved, p * cython.sizeof(cython.double))
        memcpy(cython.address(self.root[0, 0]), saved + p, p * p * cython.sizeof(cython.double))

    def raise_pending(self):
        """That of the likelihood."""
        self.rule.likelihood.raise_pending()

    def call(self, x, y):
        """Learn a row of the right type."""
        if x.shape[0] + self.rule.bias != self.mean.shape[0] or not self.rule.likelihood.accepts(y):
            return False
        if self.state.trust.is_alarmed():
            return False
        row: Row = Row(x=cython.address(x[0]), x_var=cython.NULL, d=x.shape[0], y=y, site=cython.NULL)
        return self.learn_row(cython.address(row))

    def learn_row(self, row):
        """Learn a row of the right length."""
        return learn_row_root(
            row,
            self.rule,
            self.state,
            cython.address(self.mean[0]),
            cython.address(self.root[0, 0]),
            False,
            cython.address(self.prior),
            True,
            cython.address(self.scratch[0]),
        ).learned

    def __call__(self, x, y):
        """Learn a row, ``(d,)``, and its target; whether that was done. One row alone needs no way back."""
        try:
            learned = self.call(x, y)
        except (TypeError, ValueError, OverflowError):  # not float64, not contiguous, no number: the long way
            return False
        if not learned:
            self.rule.likelihood.raise_pending()  # here, or it would be raised after the long way had succeeded
        return learned

    def describe(self, x):
        """Mean, variance and slope of the output, mean and variance of the pre-activation.

        The row is the next one, before which weights may drift. Where the past fades before it, that goes the long way.
        Several threads may ask at a time, so nothing is written.
        """
        d: cython.Py_ssize_t = x.shape[0]
        p: cython.Py_ssize_t = self.mean.shape[0]
        bias: cython.Py_ssize_t = self.rule.bias
        j: cython.Py_ssize_t
        if d + bias != p or self.state.trust.is_alarmed() or _forgets_now(self.rule, self.state):
            return None
        pre_mean = 0.0
        for j in range(p):
            pre_mean += self.mean[j] * (x[j - bias] if j >= bias else 1.0)
        pre_var = self.variance(x)
        if not isfinite(pre_mean + pre_var):
            return None
        mean, var, slope = self.rule.likelihood.activation.at(pre_mean, pre_var)
        self.rule.likelihood.raise_pending()
        return mean, var, slope, pre_mean, pre_var

    def variance(self, x):
        """Variance of the pre-activation."""
        p: cython.Py_ssize_t = self.mean.shape[0]
        bias: cython.Py_ssize_t = self.rule.bias
        j: cython.Py_ssize_t
        k: cython.Py_ssize_t
        total = 0.0
        for j in range(p):
            root = cython.address(self.root[j, 0])
            coord = root[0] if bias else 0.0
            for k in range(bias, j + 1):
                coord += root[k] * x[k - bias]
            total += coord * coord
        return total


class DenseRowLearner(RowLearner):
    """The same with a belief stored as the covariance itself, of which ``root`` has the columns' lower parts as rows.

    A row that would cost the covariance its digits goes the long way, too.
    """

    def __init__(self, rule, state, wander, cancelled, mean, cov):
        RowLearner.__init__(self, rule, state, mean, cov.T)
        self.wander, self.cancelled, self.before = wander, cancelled, state.copy()

    def learn_row(self, row):
        """Learn a row of the right length."""
        return learn_row_dense(
            row,
            self.rule,
            self.state,
            self.before,
            self.wander,
            self.cancelled,
            cython.address(self.mean[0]),
            cython.address(self.root[0, 0]),
            cython.address(self.scratch[0]),
        ).learned

    def variance(self, x):
        """Variance of the pre-activation, after the weights have moved."""
        p: cython.Py_ssize_t = self.mean.shape[0]
        bias: cython.Py_ssize_t = self.rule.bias
        j: cython.Py_ssize_t
        k: cython.Py_ssize_t
        total = 0.0
        added = 0.0
        for j in range(p):
            column = cython.address(self.root[j, 0])
            here = x[j - bias] if j >= bias else 1.0
            below = 0.5 * column[j] * here
            for k in range(j + 1, p):
                below += column[k] * x[k - bias]  # k is not the bias, which is first
            total += 2.0 * here * below
            added += self.wander.added[j] * here * here
        return self.wander.kept * max(total, 0.0) + added


def rows_root(
    rows: Rows,
    rule: PerceptronRule,
    state: PerceptronProgress,
    mean: Real[::1],
    root: Real[:, ::1],
    forgets: cython.bint,
) -> int:
    """Learn rows into ``C = R'R``, ``R`` lower triangular, and forget between them unless the caller does."""
    n: cython.Py_ssize_t = rows.targets.shape[0]
    p: cython.Py_ssize_t = mean.shape[0]
    i: cython.Py_ssize_t
    learned: cython.Py_ssize_t = n
    space: Real[::1] = np.empty(scratch_size(rule, p), dtype=np.asarray(mean).dtype)
    prior: Prior = rule.prior(0, p)
    with cython.nogil:
        for i in range(n):
            noise, noise_weight = state.noise, state.noise_weight
            row: Row = rows.row(i)
            seen = learn_row_root(
                cython.address(row),
                rule,
                state,
                cython.address(mean[0]),
                cython.address(root[0, 0]),
                False,
                cython.address(prior),
                forgets,
                cython.address(space[0]),
            )
            if not seen.learned:
                learned = i
                break
            if rows.finish(i, state, seen, noise, noise_weight) or (prior.values == cython.NULL and state.is_due(p)):
                learned = i + 1
                break
    rule.likelihood.raise_pending()
    return learned


def learn_row_dense(row, rule, state, before, wander, cancelled, mean, cov, scratch):
    """Learn a row into the lower triangle of ``C`` itself, in Fortran order, its weights moving before.

    As `learn_row_root`, but nothing is learned either where ``C`` would lose its digits. ``before`` receives the state
    from before; ``scratch`` has room for two rows of ``C``.
    """
    bias: cython.Py_ssize_t = rule.bias
    p: cython.Py_ssize_t = row.d + bias
    j: cython.Py_ssize_t
    k: cython.Py_ssize_t
    kept: cython.double = wander.kept
    drifting: cython.bint = wander.added.shape[0] > 0
    added = cython.address(wander.added[0]) if drifting else cython.NULL
    x = scratch
    gain = scratch + p
    seen: Seen = Seen(learned=False, digits_lost=False, pre_mean=0.0, pre_var=0.0)
    if not _load(x, row.x, row.d, rule.bias) or not isfinite(row.y):
        return seen
    _multiply_lower(p, cov, x, gain)
    pre_mean, var, terms, input_var = 0.0, 0.0, 0.0, 0.0
    for j in range(p):
        if drifting:
            gain[j] = kept * gain[j] + added[j] * x[j]
        pre_mean += mean[j] * x[j]
        var += x[j] * gain[j]
        terms += kept * cov[j * p + j] * x[j] * x[j]
    if var < cancelled * terms:
        seen.digits_lost = True
        return seen
    if row.x_var != cython.NULL:
        for k in range(bias, p):
            marginal = kept * cov[k * (p + 1)] + (added[k] if drifting else 0.0)
            input_var += row.x_var[k - bias] * (mean[k] * mean[k] + marginal)
    before.assign(state)
    if row.site != cython.NULL:
        old_site: Site = row.site[0]
    score, information, ratio = learn_row(rule.likelihood, state, pre_mean, var, input_var, row.y, row.site)
    seen.digits_lost = isfinite(score) and ratio < cancelled
    if not isfinite(score) or seen.digits_lost:  # nothing has changed
        state.assign(before)
        if row.site != cython.NULL:
            row.site[0] = old_site
        return seen
    if state.pending:
        response: Response
        respond_once(p, var, gain, mean, rule, Prior(p=p, coupled=False, values=cython.NULL), cython.address(response))
        learn_noise(state, cython.address(response))
    for j in range(p):
        mean[j] += score * gain[j]
        step = information * gain[j]
        column = cov + j * p
        column[j] = kept * column[j] + (added[j] if drifting else 0.0) - step * gain[j]
        for k in range(j + 1, p):
            column[k] = kept * column[k] - step * gain[k]
    seen.learned = True
    seen.pre_mean = pre_mean
    seen.pre_var = var + input_var
    return seen


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _multiply_lower(
    p: cython.Py_ssize_t, cov: cython.pointer(Real), x: cython.pointer(Real), product: cython.pointer(Real)
) -> cython.void:
    """Fill ``C x`` from the lower triangle of ``C``, in Fortran order."""
    j: cython.Py_ssize_t
    k: cython.Py_ssize_t
    for j in range(p):
        product[j] = 0.0
    whole: cython.Py_ssize_t = p - p % 4
    for j in range(0, whole, 4):  # four columns at a time below their common corner, as in `_root_coordinates`
        c0 = cov + j * p
        c1 = c0 + p
        c2 = c1 + p
        c3 = c2 + p
        x0 = x[j]
        x1 = x[j + 1]
        x2 = x[j + 2]
        x3 = x[j + 3]
        s0 = c0[j] * x0 + c0[j + 1] * x1 + c0[j + 2] * x2 + c0[j + 3] * x3
        s1 = c0[j + 1] * x0 + c1[j + 1] * x1 + c1[j + 2] * x2 + c1[j + 3] * x3
        s2 = c0[j + 2] * x0 + c1[j + 2] * x1 + c2[j + 2] * x2 + c2[j + 3] * x3
        s3 = c0[j + 3] * x0 + c1[j + 3] * x1 + c2[j + 3] * x2 + c3[j + 3] * x3
        for k in range(j + 4, p):
            here = x[k]
            product[k] += c0[k] * x0 + c1[k] * x1 + c2[k] * x2 + c3[k] * x3
            s0 += c0[k] * here
            s1 += c1[k] * here
            s2 += c2[k] * here
            s3 += c3[k] * here
        product[j] += s0
        product[j + 1] += s1
        product[j + 2] += s2
        product[j + 3] += s3
    for j in range(whole, p):
        column = cov + j * p
        below = 0.0
        here = x[j]
        for k in range(j + 1, p):
            product[k] += column[k] * here
            below += column[k] * x[k]
        product[j] += column[j] * here + below


def rows_dense(
    rows: Rows,
    rule: PerceptronRule,
    state: PerceptronProgress,
    wander: Wander,
    cancelled: cython.double,
    mean: Real[::1],
    cov: Real[::1, :],
) -> tuple[int, bool]:
    """Learn rows into the lower triangle of ``C`` itself, in Fortran order.

    Returns the rows learned, and whether it stopped there because ``C`` would lose its digits.
    """
    n: cython.Py_ssize_t = rows.targets.shape[0]
    p: cython.Py_ssize_t = mean.shape[0]
    i: cython.Py_ssize_t
    learned: cython.Py_ssize_t = n
    digits_lost: cython.bint = False
    space: Real[::1] = np.empty(2 * p, dtype=np.asarray(mean).dtype)
    before: PerceptronProgress = state.copy()
    with cython.nogil:
        for i in range(n):
            row: Row = rows.row(i)
            seen = learn_row_dense(
                cython.address(row),
                rule,
                state,
                before,
                wander,
                cancelled,
                cython.address(mean[0]),
                cython.address(cov[0, 0]),
                cython.address(space[0]),
            )
            if not seen.learned:
                learned = i
                digits_lost = seen.digits_lost
                break
            if rows.finish(i, state, seen, before.noise, before.noise_weight) or state.is_due(p):
                learned = i + 1
                break
    rule.likelihood.raise_pending()
    return learned, digits_lost


def rows_diagonal(
    rows: Rows, rule: PerceptronRule, state: PerceptronProgress, wander: Wander, mean: Real[::1], variance: Real[::1]
) -> int:
    """Learn rows into independent weights."""
    n: cython.Py_ssize_t = rows.targets.shape[0]
    p: cython.Py_ssize_t = mean.shape[0]
    bias: cython.Py_ssize_t = rule.bias
    i: cython.Py_ssize_t
    j: cython.Py_ssize_t
    kept: cython.double = wander.kept
    added = wander.added
    drifting: cython.bint = added.shape[0] > 0
    learned: cython.Py_ssize_t = n
    x: cython.double[::1] = np.empty(p)
    with cython.nogil:
        for i in range(n):
            row = rows.row(i)
            if not _load(cython.address(x[0]), row.x, row.d, rule.bias) or not isfinite(row.y):
                learned = i
                break
            pre_mean = 0.0
            var = 0.0
            for j in range(p):
                pre_mean += mean[j] * x[j]
                own = kept * variance[j] + added[j] if drifting else variance[j]
                var += own * x[j] * x[j]
            input_var = 0.0
            if row.x_var != cython.NULL:
                for j in range(bias, p):
                    own = kept * variance[j] + added[j] if drifting else variance[j]
                    input_var += row.x_var[j - bias] * (mean[j] * mean[j] + own)
            noise, noise_weight = state.noise, state.noise_weight
            score, information, ratio = learn_scalar(rule.likelihood, state, pre_mean, var, input_var, row.y)
            if not isfinite(score):
                learned = i
                break
            if drifting:
                for j in range(p):
                    variance[j] = kept * variance[j] + added[j]
            for j in range(p):
                _step_weight(cython.address(mean[j]), cython.address(variance[j]), x[j], score, information, ratio, var)
            seen = Seen(learned=True, digits_lost=False, pre_mean=pre_mean, pre_var=var + input_var)
            if rows.finish(i, state, seen, noise, noise_weight):
                learned = i + 1
                break
    rule.likelihood.raise_pending()
    return learned


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _step_weight(
    mean: cython.pointer(Real),
    variance: cython.pointer(Real),
    x: cython.double,
    score: cython.double,
    information: cython.double,
    ratio: cython.double,
    var: cython.double,
) -> cython.void:
    """The step of an independent weight with the input ``x``, in a row of the variance ``var``."""
    gain = variance[0] * x
    mean[0] += score * gain
    # 1 - information c_j x_j, from the share that the whole row left.
    variance[0] *= max(ratio + information * (var - gain * x), 0.0)


def _wandered(variance, kept, added, n):
    """A variance after ``n`` times ``variance <- kept variance + added``."""
    if kept == 1.0 or n == 0.0:
        return variance + added * n
    faded = expm1(n * log1p(kept - 1.0))  # kept^n - 1
    return variance + variance * faded + added * faded / (kept - 1.0)


def rows_sparse(
    rows: Rows,
    data: cython.const[cython.double][::1],
    indices: cython.const[Index][::1],
    indptr: cython.const[Index][::1],
    rule: PerceptronRule,
    state: PerceptronProgress,
    wander: Wander,
    mean: Real[::1],
    variance: Real[::1],
) -> int:
    """Learn sparse rows into independent weights, touching only what is not zero.

    Drift and process noise of the untouched weights are made up when they are next touched, or at the end.
    """
    bias: cython.Py_ssize_t = rule.bias
    i: cython.Py_ssize_t
    j: cython.Py_ssize_t
    k: cython.Py_ssize_t
    kept: cython.double = wander.kept
    added = wander.added
    drifting: cython.bint = added.shape[0] > 0
    learned: cython.Py_ssize_t = rows.targets.shape[0]
    last: cython.longlong[::1] = np.zeros(added.shape[0], dtype=np.int64)  # rows that drift was made up for
    with cython.nogil:
        for i in range(rows.targets.shape[0]):
            low: cython.Py_ssize_t = indptr[i] - bias  # the bias is an entry of 1 before the others
            high: cython.Py_ssize_t = indptr[i + 1]
            pre_mean, var, finite = 0.0, 0.0, 0.0
            for k in range(low, high):
                is_input: cython.bint = k >= low + bias
                j = indices[k] + bias if is_input else 0
                value = data[k] if is_input else 1.0
                if drifting:
                    variance[j] = _wandered(variance[j], kept, added[j], i + 1 - last[j])
                    last[j] = i + 1
                pre_mean += mean[j] * value
                var += variance[j] * value * value
                finite += fabs(value)
            noise, noise_weight = state.noise, state.noise_weight
            score, information, ratio = NAN, NAN, NAN
            if isfinite(finite) and isfinite(rows.targets[i]):
                score, information, ratio = learn_scalar(rule.likelihood, state, pre_mean, var, 0.0, rows.targets[i])
            if not isfinite(score):
                learned = i
                break
            for k in range(low, high):
                is_input = k >= low + bias
                j = indices[k] + bias if is_input else 0
                value = data[k] if is_input else 1.0
                v = cython.address(variance[j])
                _step_weight(cython.address(mean[j]), v, value, score, information, ratio, var)
            seen: Seen = Seen(learned=True, digits_lost=False, pre_mean=pre_mean, pre_var=var)
            if rows.finish(i, state, seen, noise, noise_weight):
                learned = i + 1
                break
        for j in range(last.shape[0]):
            variance[j] = _wandered(variance[j], kept, added[j], learned - last[j])
    rule.likelihood.raise_pending()
    return learned
