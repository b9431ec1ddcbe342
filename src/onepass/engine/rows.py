"""The row kernels: one compiled loop over the rows for each form of the belief.

Every kernel returns the number of rows it learned: all of them, or the index of the first that is not finite, of which
nothing was written. ``out``, if it is not empty, receives mean, variance, noise and log density of each row before its
update. ``sites``, if they are not empty, are what each row contributed, ``(n, 4)``, see `step.learn_site`. The belief
may be in single or double precision.
"""

import cython
import numpy as np
from cython.cimports.libc.math import isfinite, sqrt
from cython.cimports.onepass.engine.step import N_SITE, LearningState, learn_scalar, learn_site

_TINY = cython.declare(cython.double, 1e-100)  # the square root of a share of the variance that is none


class RowRule:
    """How a perceptron learns a row, apart from its belief.

    Parameters
    ----------
    likelihood : CompiledLikelihood
    bias : 1 where a constant 1 stands before every row
    forgetting : in (0, 1]
    prior_trace : sum of the weights' prior variances, which forgetting does not pass
    """

    def __init__(self, likelihood, bias: int, forgetting: float, prior_trace: float):
        self.likelihood, self.bias = likelihood, bias
        self.forgetting, self.prior_trace = forgetting, prior_trace

    def __reduce__(self):
        return RowRule, (self.likelihood, self.bias, self.forgetting, self.prior_trace)


def _load(x, row, d, bias):
    """Copy a row behind the bias's constant 1; whether all of it is finite."""
    if bias:
        x[0] = 1.0
    total = 0.0
    k: cython.Py_ssize_t
    for k in range(d):
        x[bias + k] = row[k]
        total += row[k] * 0.0
    return total == 0.0


def learn_row_root(x, x_var, d, y, rule, state, mean, root, packed, scratch, site):
    """Learn a row into ``C = R'R``, ``R`` lower triangular; whether it could be, and its mean and variance from before.

    Carlson's update, see `onepass.beliefs.full`. ``packed`` roots are stored without the zeros; ``scratch`` has
    room for four rows of ``R``.
    """
    p: cython.Py_ssize_t = d + rule.bias
    bias: cython.Py_ssize_t = rule.bias
    j: cython.Py_ssize_t
    k: cython.Py_ssize_t
    end: cython.Py_ssize_t
    row_x = scratch
    coords = scratch + p
    gain = scratch + 2 * p
    shrink = scratch + 3 * p
    seen: Seen = Seen(False, 0.0, 0.0)
    if not _load(row_x, x, d, rule.bias) or y * 0.0 != 0.0:
        return seen
    growth = 1.0
    if rule.forgetting < 1.0:
        trace = 0.0
        for j in range(p):
            r = root + (j * (j + 1) // 2 if packed else j * p)
            for k in range(j + 1):
                trace += r[k] * r[k]
        if trace <= rule.forgetting * rule.prior_trace:
            growth = 1.0 / rule.forgetting
    whole: cython.Py_ssize_t = 0 if packed else p - p % 4
    for j in range(0, whole, 4):  # four sums at a time, which don't wait for each other; R is zero above its diagonal
        r0 = root + j * p
        r1 = r0 + p
        r2 = r1 + p
        r3 = r2 + p
        s0 = 0.0
        s1 = 0.0
        s2 = 0.0
        s3 = 0.0
        for k in range(j + 4):
            s0 += r0[k] * row_x[k]
            s1 += r1[k] * row_x[k]
            s2 += r2[k] * row_x[k]
            s3 += r3[k] * row_x[k]
        coords[j] = s0
        coords[j + 1] = s1
        coords[j + 2] = s2
        coords[j + 3] = s3
    for j in range(whole, p):
        r = root + (j * (j + 1) // 2 if packed else j * p)
        s0 = 0.0
        for k in range(j + 1):
            s0 += r[k] * row_x[k]
        coords[j] = s0
    pre_mean = 0.0
    var = 0.0
    for j in range(p):
        var += coords[j] * coords[j]
        pre_mean += mean[j] * row_x[j]
    var *= growth
    input_var = 0.0
    if x_var != cython.NULL:
        for k in range(d):
            marginal = 0.0
            for j in range(bias + k, p):
                r = root + (j * (j + 1) // 2 if packed else j * p)
                marginal += r[bias + k] * r[bias + k]
            input_var += x_var[k] * (mean[bias + k] * mean[bias + k] + growth * marginal)
    if site == cython.NULL:
        score, information, ratio = learn_scalar(rule.likelihood, state, pre_mean, var, var, input_var, y)
    else:
        score, information, ratio = learn_site(rule.likelihood, state, pre_mean, var, input_var, y, site)
    if not isfinite(score):
        return seen
    scale = sqrt(growth)
    share = ratio
    for j in range(p):
        gain[j] = 0.0
        share += information * growth * coords[j] * coords[j]
        shrink[j] = share
    for j in range(p):  # on their own, so that roots and quotients are taken side by side
        shrink[j] = sqrt(max(shrink[j], 0.0))
        row_x[j] = 1.0 / shrink[j]  # the row itself is not needed any more
    before = sqrt(max(ratio, 0.0))
    before_inverse = 1.0 / before if before > _TINY else 0.0
    for j in range(p):
        r = root + (j * (j + 1) // 2 if packed else j * p)
        coord = scale * coords[j]
        after = shrink[j]
        if coord == 0.0 or after <= _TINY:
            for k in range(j + 1):
                r[k] = r[k] * scale
            continue
        inverse = row_x[j]
        keep = scale * before * inverse
        mix = information * coord * inverse * before_inverse
        lift = scale * coord
        # To a multiple of four, which vectors like: beyond the diagonal R and the gain so far are zero and stay so.
        end = j + 1 if packed else min(p, j + 4 - j % 4)
        for k in range(end):
            entry = r[k]
            so_far = gain[k]
            r[k] = keep * entry - mix * so_far
            gain[k] = so_far + lift * entry
        before = after
        before_inverse = inverse
    for k in range(p):
        mean[k] += score * gain[k]
    seen.learned = True
    seen.pre_mean = pre_mean
    seen.pre_var = var + input_var
    return seen


class RowLearner:
    """Learns and predicts one row at a time with a belief stored as a root, with next to no overhead.

    It refers to the belief's own arrays. For any input that needs more than the simplest checks a call changes nothing
    and returns False, and `predict` returns None; the caller then goes through the complete validation.
    """

    def __init__(self, rule, state, mean, root):
        self.rule, self.state, self.mean, self.root = rule, state, mean, root
        self.scratch = np.empty(4 * len(mean))

    def call(self, x, y):
        """Learn a row of the right type."""
        if x.shape[0] + self.rule.bias != self.mean.shape[0] or not self.rule.likelihood.accepts(y):
            return False
        return learn_row_root(
            cython.address(x[0]),
            cython.NULL,
            x.shape[0],
            y,
            self.rule,
            self.state,
            cython.address(self.mean[0]),
            cython.address(self.root[0, 0]),
            False,
            cython.address(self.scratch[0]),
            cython.NULL,
        ).learned

    def __call__(self, x, y):
        """Learn a row, ``(d,)``, and its target; whether that was done."""
        try:
            learned = self.call(x, y)
        except (TypeError, ValueError, OverflowError):  # not float64, not contiguous, no number: the long way
            return False
        if not learned:
            self.rule.likelihood.raise_pending()  # here, or it would be raised after the long way had succeeded
        return learned

    def project(self, x):
        """Predict a row of the right type; several threads may do so at a time, so nothing is written."""
        d: cython.Py_ssize_t = x.shape[0]
        p: cython.Py_ssize_t = self.mean.shape[0]
        bias: cython.Py_ssize_t = self.rule.bias
        j: cython.Py_ssize_t
        k: cython.Py_ssize_t
        if d + bias != p:
            return None
        pre_mean = 0.0
        pre_var = 0.0
        for j in range(p):
            root = cython.address(self.root[j, 0])
            coord = root[0] if bias else 0.0
            for k in range(bias, j + 1):
                coord += root[k] * x[k - bias]
            pre_mean += self.mean[j] * (x[j - bias] if j >= bias else 1.0)
            pre_var += coord * coord
        if not isfinite(pre_mean + pre_var):
            return None
        mean, var, slope = self.rule.likelihood.activation.at(pre_mean, pre_var)
        self.rule.likelihood.raise_pending()
        return (mean, var, slope), pre_mean, pre_var

    def predict(self, x):
        """Moments of the output, and mean and variance of the pre-activation, for a row ``(d,)``; or None."""
        try:
            return self.project(x)
        except (TypeError, ValueError):
            return None


def rows_root(X, X_var, y, rule, state, mean, root, out, sites):
    """Learn rows into ``C = R'R``, ``R`` lower triangular."""
    n: cython.Py_ssize_t = X.shape[0]
    i: cython.Py_ssize_t
    uncertain: cython.bint = X_var.shape[0] > 0
    noted: cython.bint = out.shape[0] > 0
    learned: cython.Py_ssize_t = n
    scratch = np.empty(4 * mean.shape[0], dtype=np.asarray(mean).dtype)
    space: Real[::1] = scratch
    with cython.nogil:
        for i in range(n):
            noise = state.noise
            seen = learn_row_root(
                cython.address(X[i, 0]),
                cython.address(X_var[i, 0]) if uncertain else cython.NULL,
                X.shape[1],
                y[i],
                rule,
                state,
                cython.address(mean[0]),
                cython.address(root[0, 0]),
                False,
                cython.address(space[0]),
                cython.address(sites[i, 0]) if sites.shape[0] else cython.NULL,
            )
            if not seen.learned:
                learned = i
                break
            if noted:
                out[i, 0] = seen.pre_mean
                out[i, 1] = seen.pre_var
                out[i, 2] = noise
                out[i, 3] = state.log_density
                out[i, 4] = state.trust.distrust
    rule.likelihood.raise_pending()
    return learned


def rows_dense(X, X_var, y, rule, state, process_noise, cancelled, mean, cov, out, sites):
    """Learn rows into the lower triangle of ``C`` itself, in Fortran order.

    Returns the rows learned, and whether it stopped there because ``C`` would lose its digits.
    """
    n: cython.Py_ssize_t = X.shape[0]
    d: cython.Py_ssize_t = X.shape[1]
    p: cython.Py_ssize_t = mean.shape[0]
    bias: cython.Py_ssize_t = rule.bias
    i: cython.Py_ssize_t
    j: cython.Py_ssize_t
    k: cython.Py_ssize_t
    drifting: cython.bint = process_noise.shape[0] > 0
    uncertain: cython.bint = X_var.shape[0] > 0
    learned: cython.Py_ssize_t = n
    digits_lost: cython.bint = False
    space = np.empty((2, p), dtype=np.asarray(mean).dtype)
    view: Real[:, ::1] = space
    x = cython.address(view[0, 0])
    gain = cython.address(view[1, 0])
    before: LearningState = state.copy()
    site: cython.double[N_SITE]  # written only if the row is learned here
    with cython.nogil:
        trace = 0.0
        for j in range(p):
            trace += cov[j, j]
        for i in range(n):
            if not _load(x, cython.address(X[i, 0]), d, rule.bias) or not isfinite(y[i]):
                learned = i
                break
            pre_mean = 0.0
            added = 0.0
            for j in range(p):
                drift = process_noise[j] if drifting else 0.0
                gain[j] = drift * x[j]
                added += drift
                pre_mean += mean[j] * x[j]
            growth = 1.0
            if rule.forgetting < 1.0 and trace + added <= rule.forgetting * rule.prior_trace:
                growth = 1.0 / rule.forgetting
            for j in range(p):
                column = cython.address(cov[0, j])
                below = 0.0
                here = x[j]
                for k in range(j + 1, p):
                    gain[k] += column[k] * here
                    below += column[k] * x[k]
                gain[j] += column[j] * here + below
            var = 0.0
            terms = 0.0
            for j in range(p):
                gain[j] = gain[j] * growth
                var += x[j] * gain[j]
                terms += growth * cov[j, j] * x[j] * x[j]
            if var < cancelled * terms:
                learned = i
                digits_lost = True
                break
            input_var = 0.0
            if uncertain:
                for k in range(d):
                    drift = process_noise[bias + k] if drifting else 0.0
                    marginal = growth * (cov[bias + k, bias + k] + drift)
                    input_var += X_var[i, k] * (mean[bias + k] * mean[bias + k] + marginal)
            before.assign(state)
            if sites.shape[0]:
                for k in range(N_SITE):
                    site[k] = sites[i, k]
                score, information, ratio = learn_site(rule.likelihood, state, pre_mean, var, input_var, y[i], site)
            else:
                score, information, ratio = learn_scalar(rule.likelihood, state, pre_mean, var, var, input_var, y[i])
            if not isfinite(score):
                learned = i
                break
            if ratio < cancelled:
                state.assign(before)
                learned = i
                digits_lost = True
                break
            for k in range(N_SITE if sites.shape[0] else 0):
                sites[i, k] = site[k]
            if out.shape[0]:
                out[i, 0] = pre_mean
                out[i, 1] = var + input_var
                out[i, 2] = before.noise
                out[i, 3] = state.log_density
                out[i, 4] = state.trust.distrust
            trace = growth * (trace + added)
            for j in range(p):
                if drifting:
                    cov[j, j] += process_noise[j]
                mean[j] += score * gain[j]
                trace -= information * gain[j] * gain[j]
                step = information * gain[j]
                column = cython.address(cov[0, j])
                for k in range(j, p):
                    column[k] = growth * column[k] - step * gain[k]
    rule.likelihood.raise_pending()
    return learned, digits_lost


def rows_diagonal(X, X_var, y, rule, state, prior_var, process_noise, mean, variance, out):
    """Learn rows into independent weights."""
    n: cython.Py_ssize_t = X.shape[0]
    d: cython.Py_ssize_t = X.shape[1]
    p: cython.Py_ssize_t = mean.shape[0]
    bias: cython.Py_ssize_t = rule.bias
    i: cython.Py_ssize_t
    j: cython.Py_ssize_t
    k: cython.Py_ssize_t
    drifting: cython.bint = process_noise.shape[0] > 0
    learned: cython.Py_ssize_t = n
    row = np.empty(p)
    x: cython.double[::1] = row
    with cython.nogil:
        for i in range(n):
            if not _load(cython.address(x[0]), cython.address(X[i, 0]), d, rule.bias) or not isfinite(y[i]):
                learned = i
                break
            pre_mean = 0.0
            var = 0.0
            for j in range(p):
                pre_mean += mean[j] * x[j]
                var += variance[j] * x[j] * x[j]
            if drifting:
                for j in range(p):
                    var += process_noise[j] * x[j] * x[j]
            wide = var
            if rule.forgetting < 1.0:
                prior = 0.0
                for j in range(p):
                    prior += prior_var[j] * x[j] * x[j]
                wide = max(var, min(var / rule.forgetting, prior))
            input_var = 0.0
            if X_var.shape[0]:
                for k in range(d):
                    drift = process_noise[bias + k] if drifting else 0.0
                    input_var += X_var[i, k] * (mean[bias + k] * mean[bias + k] + variance[bias + k] + drift)
            noise = state.noise
            score, information, ratio = learn_scalar(rule.likelihood, state, pre_mean, var, wide, input_var, y[i])
            if not isfinite(score):
                learned = i
                break
            if out.shape[0]:
                out[i, 0] = pre_mean
                out[i, 1] = var + input_var
                out[i, 2] = noise
                out[i, 3] = state.log_density
                out[i, 4] = state.trust.distrust
            if drifting:
                for j in range(p):
                    variance[j] += process_noise[j]
            for j in range(p):
                gain = variance[j] * x[j]
                mean[j] += score * gain
                # 1 - information c_j x_j, from the share that the whole row left.
                variance[j] *= max(ratio + information * (var - gain * x[j]), 0.0)
    rule.likelihood.raise_pending()
    return learned


def rows_sparse(data, indices, indptr, y, rule, state, prior_var, process_noise, mean, variance, out):
    """Learn sparse rows into independent weights, touching only what is not zero.

    Process noise of the untouched weights is made up when they are next touched, or at the end.
    """
    n: cython.Py_ssize_t = indptr.shape[0] - 1
    p: cython.Py_ssize_t = mean.shape[0]
    bias: cython.Py_ssize_t = rule.bias
    i: cython.Py_ssize_t
    j: cython.Py_ssize_t
    k: cython.Py_ssize_t
    low: cython.Py_ssize_t
    high: cython.Py_ssize_t
    drifting: cython.bint = process_noise.shape[0] > 0
    learned: cython.Py_ssize_t = n
    touched = np.zeros(p if drifting else 0, dtype=np.int64)  # the row before which noise was last made up
    last: cython.longlong[::1] = touched
    with cython.nogil:
        for i in range(n):
            low = indptr[i]
            high = indptr[i + 1]
            pre_mean = 0.0
            var = 0.0
            finite = 0.0
            if bias:
                if drifting:
                    variance[0] += process_noise[0] * (i + 1 - last[0])
                    last[0] = i + 1
                pre_mean = mean[0]
                var = variance[0]
            for k in range(low, high):
                j = indices[k] + bias
                value = data[k]
                if drifting:
                    variance[j] += process_noise[j] * (i + 1 - last[j])
                    last[j] = i + 1
                pre_mean += mean[j] * value
                var += variance[j] * value * value
                finite += value * 0.0
            if finite != 0.0 or not isfinite(y[i]):
                learned = i
                break
            wide = var
            if rule.forgetting < 1.0:
                prior = prior_var[0] if bias else 0.0
                for k in range(low, high):
                    prior += prior_var[indices[k] + bias] * data[k] * data[k]
                wide = max(var, min(var / rule.forgetting, prior))
            noise = state.noise
            score, information, ratio = learn_scalar(rule.likelihood, state, pre_mean, var, wide, 0.0, y[i])
            if not isfinite(score):
                learned = i
                break
            if out.shape[0]:
                out[i, 0] = pre_mean
                out[i, 1] = var
                out[i, 2] = noise
                out[i, 3] = state.log_density
                out[i, 4] = state.trust.distrust
            if bias:
                gain = variance[0]
                mean[0] += score * gain
                variance[0] *= max(ratio + information * (var - gain), 0.0)
            for k in range(low, high):
                j = indices[k] + bias
                value = data[k]
                gain = variance[j] * value
                mean[j] += score * gain
                variance[j] *= max(ratio + information * (var - gain * value), 0.0)
        if drifting:
            for j in range(p):
                variance[j] += process_noise[j] * (learned - last[j])
    rule.likelihood.raise_pending()
    return learned
