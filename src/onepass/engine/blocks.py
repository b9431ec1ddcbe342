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
from cython.cimports.onepass.engine.rows import _respond_once
from cython.cimports.onepass.engine.step import learn_noise, learn_scalar, learn_site
from scipy.linalg.blas import dsymm, dsyrk, dtrsm, ssymm, ssyrk, strsm

__all__ = ["ALARMED", "CANCELLED", "DIGITS_LOST", "NOT_FINITE", "block_size", "learn_block"]

_BLAS = {np.dtype(np.float64): (dsymm, dtrsm, dsyrk), np.dtype(np.float32): (ssymm, strsm, ssyrk)}
# Below these shares of its own terms a variance has lost so many digits that ``C`` itself can't hold it.
# Why no row of a block was learned; the alarm is raised by one that is not the last.
DIGITS_LOST, ALARMED, NOT_FINITE = LOST, STOPPED, WRONG
CANCELLED = {np.dtype(np.float64): 1e-8, np.dtype(np.float32): 1e-3}


def block_size(size):
    """How many rows make a block: the products want more of them the larger the covariance, the recursion fewer."""
    return 64 if size < 768 else 128


def block_scalars(
    products, growth, terms, pre_mean, y, rule, state, cancelled, scores, informations, mixing, noted, out, sites
):
    """Run the recursion among the rows of a block.

    Returns the number of rows learned, or why none was. ``products`` holds ``x_k' C x_i`` and becomes ``h``.
    All in units in which the covariance keeps all of itself as weights drift; ``growth`` has these of each row.
    ``noted`` receives error, variance and weight of the rows from which `block_noise` is to learn the noise.
    """
    b: cython.Py_ssize_t = products.shape[0]
    i: cython.Py_ssize_t
    j: cython.Py_ssize_t
    k: cython.Py_ssize_t
    learned: cython.Py_ssize_t = b
    with cython.nogil:
        for i in range(b):
            here = cython.address(products[i, 0])
            for j in range(i):
                earlier = cython.address(products[j, 0])
                mix = informations[j] * earlier[i]
                mixing[i, j] = mix
                for k in range(i, b):
                    here[k] -= mix * earlier[k]
            mixing[i, i] = 1.0
            var = growth[i] * max(here[i], 0.0)
            if here[i] < cancelled * terms[i]:
                learned = LOST
                break
            noise = state.noise
            if sites.shape[0]:
                site = cython.address(sites[i, 0])
                score, information, ratio = learn_site(rule.likelihood, state, pre_mean[i], var, 0.0, y[i], site)
            else:
                score, information, ratio = learn_scalar(rule.likelihood, state, pre_mean[i], var, 0.0, y[i])
            if not isfinite(score):
                learned = i
                break
            if ratio < cancelled:
                learned = LOST
                break
            if state.pending:
                noted[0, i] = state.error
                noted[1, i] = var
                noted[2, i] = state.pending_weight
                state.pending = False
            if out.shape[0]:
                out[i, 0] = pre_mean[i]
                out[i, 1] = var
                out[i, 2] = noise
                out[i, 3] = state.log_density
                out[i, 4] = state.trust.distrust
                out[i, 5] = state.trust.suspicion
                out[i, 6] = state.row_evidence
            scores[i] = score * growth[i]
            informations[i] = information * growth[i]
            for k in range(i + 1, b):
                pre_mean[k] += scores[i] * here[k]
            if i < b - 1 and state.trust.is_alarmed() and sites.shape[0] == 0:
                learned = STOPPED
                break
            if state.reference > 0.0 and state.trust.distrust > 0.0:  # set aside, of which `block_noise` knows nothing
                learned = STOPPED
                break
    rule.likelihood.raise_pending()
    return learned


def block_noise(state, rule, noted, gains, scores, mean, out):
    """Learn the noise from the rows of a block whose steps are known, up to the one after which it is re-weighed.

    ``gains``, ``(p, b)``, are ``c`` of each row; ``mean`` is moved along with them.
    """
    i: cython.Py_ssize_t
    j: cython.Py_ssize_t
    p: cython.Py_ssize_t = mean.shape[0]
    learned: cython.Py_ssize_t = noted.shape[1]
    response: Response
    with cython.nogil:
        for i in range(noted.shape[1]):
            state.pending = True
            state.error = noted[0, i]
            state.var = noted[1, i]
            state.input_var = 0.0
            state.pending_weight = noted[2, i]
            if out.shape[0]:
                out[i, 2] = state.noise
            gain = cython.address(gains[0, i])
            _respond_once(p, noted[1, i], gain, cython.address(mean[0]), rule, cython.NULL, cython.address(response))
            learn_noise(state, cython.address(response))
            for j in range(p):
                mean[j] += scores[i] * gain[j]
            if out.shape[0]:
                out[i, 3] = state.log_density
                out[i, 6] = state.row_evidence
            if state.is_due(p):
                learned = i + 1
                break
    return learned


def learn_block(rows, y, rule, state, kept, added, mean, cov, out, sites):
    """Learn one block of rows, the bias among them, into the lower triangle of ``cov`` (Fortran order), in place.

    Before each row the weights move, ``C <- kept C + diag(added)``, unless ``added`` is empty.
    Returns the number of rows learned: all, or fewer where the rows so far are to be re-weighed before the next one.
    Or `DIGITS_LOST` where ``cov`` would lose its digits, `ALARMED`, or `NOT_FINITE` where a row is not finite: then
    nothing has changed.
    """
    symm, trsm, syrk = _BLAS[cov.dtype]
    b = len(rows)
    diagonal = np.diag(cov)
    gains = symm(1.0, cov, rows.T, lower=1)  # C X', (p, b)
    products = np.ascontiguousarray(rows @ gains, dtype=np.float64)
    terms = np.square(rows) @ diagonal
    growth = kept ** np.arange(1.0, b + 1.0)
    # Before row i the variances have been added i + 1 times, of which all but the last have faded since.
    times = np.cumsum(1.0 / growth)
    if len(added):
        products += times[:, None] * ((rows * added) @ rows.T)
        gains += ((rows * added) * times[:, None]).T
    scores, informations, mixing = np.empty(b), np.empty(b), np.zeros((b, b), order="F")
    progress, new_sites, noted = state.copy(), sites.copy(), np.empty((3, b))
    learned = block_scalars(
        products,
        growth,
        np.asarray(terms, dtype=np.float64),
        np.asarray(rows @ mean, dtype=np.float64),
        y,
        rule,
        progress,
        CANCELLED[cov.dtype],
        scores,
        informations,
        mixing,
        noted,
        out,
        new_sites,
    )
    if learned != b:
        return learned if learned < 0 else NOT_FINITE
    steps = trsm(1.0, mixing.astype(cov.dtype, order="F"), gains, side=1, lower=1, trans_a=1, diag=1, overwrite_b=1)
    if state.reference:
        first = progress.n_weighted - b
        gains = np.asfortranarray(steps, dtype=np.float64)
        b = block_noise(progress, rule, noted, gains, scores, mean.astype(np.float64), out)
        progress.n_weighted = first + b
        steps, scores, informations = steps[:, :b], scores[:b], informations[:b]
    state.assign(progress)
    sites[:b] = new_sites[:b]
    mean += steps @ scores.astype(cov.dtype)
    for sign in (1.0, -1.0):  # a widening row has a negative information
        part = sign * informations > 0.0
        if part.any():
            scaled = np.asfortranarray(steps[:, part] * np.sqrt(sign * informations[part]).astype(cov.dtype))
            syrk(-sign, scaled, beta=1.0, c=cov, lower=1, overwrite_c=1)
    if len(added):
        cov[np.diag_indices(len(mean))] += times[b - 1] * added
        if kept != 1.0:
            cov *= growth[b - 1]
    return b
