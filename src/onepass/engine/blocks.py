"""The block kernel: the row-by-row result in matrix-matrix products, for large covariances.

A pass over the rows is sequential only in two scalars per row. For a block of rows everything they need of the
covariance is one small matrix, ``h_ik = x_i' C_i x_k`` with ``C_i`` the covariance before row ``i``, which follows from
``X C X'`` by a recursion among the rows; the covariance itself is then touched twice per block, once for ``C X'`` and
once for a symmetric rank-b update of its lower triangle.
"""

import cython
import numpy as np
from cython.cimports.libc.math import isfinite
from cython.cimports.onepass.engine.noise import Response
from cython.cimports.onepass.engine.rows import PerceptronRule, Prior, Rows, Wander, respond_once
from cython.cimports.onepass.engine.step import (
    RECORD_EVIDENCE,
    RECORD_LOG_DENSITY,
    RECORD_NOISE,
    RECORD_NOISE_WEIGHT,
    PerceptronProgress,
    Site,
    learn_noise,
    learn_row,
)
from scipy.linalg.blas import dsymm, dsyrk, dtrsm, ssymm, ssyrk, strsm

__all__ = ["ALARMED", "CANCELLED", "DIGITS_LOST", "NOT_FINITE", "block_size", "learn_block"]

_BLAS = {np.dtype(np.float64): (dsymm, dtrsm, dsyrk), np.dtype(np.float32): (ssymm, strsm, ssyrk)}
# Why no row of a block was learned; the alarm is raised by one that is not the last.
DIGITS_LOST, ALARMED, NOT_FINITE = LOST, STOPPED, WRONG
# Below these shares of its own terms a variance has lost so many digits that ``C`` itself can't hold it.
CANCELLED = {np.dtype(np.float64): 1e-8, np.dtype(np.float32): 1e-3}


def block_size(size) -> int:
    """How many rows make a block: the products want more of them the larger the covariance, the recursion fewer."""
    return 64 if size < 768 else 128


@cython.final
@cython.cclass
class _Block:
    """A block of rows, all in units in which the covariance keeps all of itself as weights drift.

    Parameters
    ----------
    rows : those of the block, of which it takes targets, records and sites
    inputs : (b, p) array, the bias among them
    wander : how the weights move before each row
    mean, cov : of the belief, the lower triangle in Fortran order
    """

    rows: Rows
    cancelled: cython.double  # share of its terms below which a variance has lost its digits
    growth: cython.double[::1]  # the unit of each row, (b,)
    times: object  # how often variances have been added before each row, of which all but the last have faded since
    terms: cython.double[::1]  # sums of the squares that make each row's variance, (b,)
    products: cython.double[:, ::1]  # x_k' C x_i, which become h, (b, b)
    pre_mean: cython.double[::1]
    sites: cython.double[:, ::1]  # copies, as a block may not be learned
    gains: object  # C X', (p, b)
    scores: cython.double[::1]
    informations: cython.double[::1]
    mixing: cython.double[::1, :]
    # Error, variance and weight of the rows from which `learn_noise_of` is to learn the noise.
    errors: cython.double[::1]
    variances: cython.double[::1]
    weights: cython.double[::1]

    def __init__(self, rows: Rows, inputs, wander: Wander, mean, cov):
        b, added = len(inputs), np.asarray(wander.added)
        self.rows, self.cancelled = rows, CANCELLED[cov.dtype]
        self.gains = _BLAS[cov.dtype][0](1.0, cov, inputs.T, lower=1)
        products = np.ascontiguousarray(inputs @ self.gains, dtype=np.float64)
        growth = wander.kept ** np.arange(1.0, b + 1.0)
        self.times = np.cumsum(1.0 / growth)
        if len(added):
            products += self.times[:, None] * ((inputs * added) @ inputs.T)
            self.gains += ((inputs * added) * self.times[:, None]).T
        self.growth, self.products = growth, products
        self.terms = np.asarray(np.square(inputs) @ np.diag(cov), dtype=np.float64)
        self.pre_mean = np.asarray(inputs @ mean, dtype=np.float64)
        self.sites = rows.sites.copy()
        self.mixing = np.zeros((b, b), order="F")
        self.scores, self.informations = np.empty(b), np.empty(b)
        self.errors, self.variances, self.weights = np.empty(b), np.empty(b), np.empty(b)

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    def project(self, i: cython.Py_ssize_t) -> cython.void:
        """Make row ``i`` of the products ``h``, from those of the rows before."""
        j: cython.Py_ssize_t
        k: cython.Py_ssize_t
        here = cython.address(self.products[i, 0])
        for j in range(i):
            earlier = cython.address(self.products[j, 0])
            mix = self.informations[j] * earlier[i]
            self.mixing[i, j] = mix
            for k in range(i, self.products.shape[0]):
                here[k] -= mix * earlier[k]
        self.mixing[i, i] = 1.0

    @cython.cfunc
    def learn_scalars(self, rule: PerceptronRule, state: PerceptronProgress) -> cython.Py_ssize_t:
        """Run the recursion among the rows; the number of rows learned, or why none was."""
        b: cython.Py_ssize_t = self.products.shape[0]
        i: cython.Py_ssize_t
        k: cython.Py_ssize_t
        keeps_sites: cython.bint = self.sites.shape[0] > 0
        site: cython.pointer(Site) = cython.NULL
        learned: cython.Py_ssize_t = b
        with cython.nogil:
            for i in range(b):
                self.project(i)
                here = cython.address(self.products[i, 0])
                mean = self.pre_mean[i]
                var = self.growth[i] * max(here[i], 0.0)
                if here[i] < self.cancelled * self.terms[i]:
                    learned = LOST
                    break
                noise, noise_weight = state.noise, state.noise_weight
                if keeps_sites:
                    site = cython.cast(cython.pointer(Site), cython.address(self.sites[i, 0]))
                y = self.rows.targets[i]
                score, information, ratio = learn_row(rule.likelihood, state, mean, var, 0.0, y, site)
                if not isfinite(score):
                    learned = i
                    break
                if ratio < self.cancelled:
                    learned = LOST
                    break
                if state.pending:
                    self.errors[i] = state.error
                    self.variances[i] = var
                    self.weights[i] = state.pending_weight
                    state.pending = False
                if self.rows.records.shape[0]:
                    state.record_row(self.rows.records, i, mean, var, noise, noise_weight)
                self.scores[i] = score * self.growth[i]
                self.informations[i] = information * self.growth[i]
                for k in range(i + 1, b):
                    self.pre_mean[k] += self.scores[i] * here[k]
                # A row that was set aside has left nothing for `learn_noise_of` to learn from.
                set_aside: cython.bint = state.reference > 0.0 and state.trust.distrust > 0.0
                if set_aside or (i < b - 1 and state.trust.is_alarmed() and not keeps_sites):
                    learned = STOPPED
                    break
        rule.likelihood.raise_pending()
        return learned

    @cython.cfunc
    def learn_noise_of(
        self, rule: PerceptronRule, state: PerceptronProgress, gains: cython.double[::1, :], mean: cython.double[::1]
    ) -> cython.Py_ssize_t:
        """Learn the noise from the rows, whose steps are known, up to the one after which it is re-weighed.

        ``gains``, ``(p, b)``, are ``c`` of each row; ``mean`` is moved along with them.
        """
        i: cython.Py_ssize_t
        j: cython.Py_ssize_t
        p: cython.Py_ssize_t = mean.shape[0]
        records: cython.double[:, ::1] = self.rows.records
        learned: cython.Py_ssize_t = self.scores.shape[0]
        prior: Prior = Prior(p=p, coupled=False, values=cython.NULL)
        response: Response
        with cython.nogil:
            for i in range(self.scores.shape[0]):
                state.pending = True
                state.error = self.errors[i]
                state.var = self.variances[i]
                state.input_var = 0.0
                state.pending_weight = self.weights[i]
                noise, noise_weight = state.noise, state.noise_weight
                gain = cython.address(gains[0, i])
                respond_once(p, state.var, gain, cython.address(mean[0]), rule, prior, cython.address(response))
                learn_noise(state, cython.address(response))
                for j in range(p):
                    mean[j] += self.scores[i] * gain[j]
                if records.shape[0]:
                    records[i, RECORD_NOISE] = noise
                    records[i, RECORD_NOISE_WEIGHT] = noise_weight
                    records[i, RECORD_LOG_DENSITY] = state.log_density
                    records[i, RECORD_EVIDENCE] = state.row_evidence
                if state.is_due(p):
                    learned = i + 1
                    break
        return learned


def learn_block(rows: Rows, inputs, rule: PerceptronRule, state: PerceptronProgress, wander: Wander, mean, cov) -> int:
    """Learn one block of rows, with ``inputs`` that have the bias, into the lower triangle of ``cov``, in place.

    Before each row the weights move as ``wander`` says; ``cov`` is in Fortran order.
    Returns the number of rows learned: all, or fewer where the rows so far are to be re-weighed before the next one.
    Or `DIGITS_LOST` where ``cov`` would lose its digits, `ALARMED`, or `NOT_FINITE` where a row is not finite: then
    nothing has changed.
    """
    _, trsm, syrk = _BLAS[cov.dtype]
    b = len(inputs)
    block = _Block(rows, inputs, wander, mean, cov)
    progress = state.copy()
    learned = block.learn_scalars(rule, progress)
    if learned != b:
        return learned if learned < 0 else NOT_FINITE
    mixing = np.asarray(block.mixing).astype(cov.dtype, order="F")
    steps = trsm(1.0, mixing, block.gains, side=1, lower=1, trans_a=1, diag=1, overwrite_b=1)
    if state.reference:
        first = progress.n_weighted - b
        gains = np.asfortranarray(steps, dtype=np.float64)
        b = block.learn_noise_of(rule, progress, gains, mean.astype(np.float64))
        progress.n_weighted = first + b
    scores, informations = np.asarray(block.scores)[:b], np.asarray(block.informations)[:b]
    steps = steps[:, :b]
    state.assign(progress)
    rows.sites[:b] = block.sites[:b]
    mean += steps @ scores.astype(cov.dtype)
    for sign in (1.0, -1.0):  # a widening row has a negative information
        part = sign * informations > 0.0
        if part.any():
            scaled = steps if part.all() else np.asfortranarray(steps[:, part])  # no copy of what is not needed again
            scaled *= np.sqrt(sign * informations[part]).astype(cov.dtype)
            syrk(-sign, scaled, beta=1.0, c=cov, lower=1, overwrite_c=1)
    if len(wander.added):
        cov[np.diag_indices(len(mean))] += block.times[b - 1] * np.asarray(wander.added)
        if wander.kept != 1.0:
            cov *= block.growth[b - 1]
    return b
