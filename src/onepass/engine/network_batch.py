"""Learning of several rows as one step: matrix-matrix products in place of matrix-vector ones.

All rows of a batch are linearised at the belief before it, so the covariance is read and written only for ``C J'`` and
for the step of the whole batch. In between, each row's moment match updates the outputs of the rows after it, by
matrices of the size of the batch.
"""

import cython
import numpy as np
from cython.cimports.libc.math import expm1, isfinite, log1p
from cython.cimports.onepass.engine.network import fill_weight_jacobian, forward, move_towards
from cython.cimports.onepass.engine.network_records import BlockShape, CompiledPass, NetworkRule, Signals
from cython.cimports.onepass.engine.vector_matches import NetworkProgress, VectorMatch
from scipy.linalg.blas import dgemm, dsymm, dsyrk, sgemm, ssymm, ssyrk

_BLAS = {np.dtype(np.float64): (dsymm, dsyrk, dgemm), np.dtype(np.float32): (ssymm, ssyrk, sgemm)}


def learn_batches(
    work: CompiledPass,
    batch: cython.Py_ssize_t,
    shape: BlockShape,
    rule: NetworkRule,
    noise: NetworkProgress,
    mean,
    cov,
) -> int:
    """Learn a pass, ``batch`` rows per step, in place; return the number of rows learned.

    They are all rows, or fewer where one is not finite; the batch of that row leaves no trace in the belief.
    """
    n_rows = work.order.shape[0]
    for first in range(0, n_rows, batch):
        count = min(batch, n_rows - first)
        learned = _learn_batch(work, first, count, shape, rule, noise, mean, cov)
        if learned < count or (work.is_first and noise.trust.is_alarmed()):
            return first + learned
    return n_rows


def _learn_batch(work, first, count, shape, rule, noise, mean, cov):
    symm, syrk, gemm = _BLAS[mean.dtype]
    blocks = _blocks(shape, cov)
    if rule.drift > 0.0:
        move_rows(shape, rule, count, cov)
    outputs = np.empty((count, shape.n_outputs))
    jacobian = np.empty((count * shape.n_outputs, shape.size), dtype=mean.dtype)
    linearise_rows(work, first, shape, rule, mean, cov, outputs, jacobian)
    gains = np.empty_like(jacobian)
    with np.errstate(over="ignore", invalid="ignore"):  # a row that overflows is found below
        for part, block in blocks:  # of whose transpose, in Fortran's order, the upper triangle counts
            gains[:, part] = symm(1.0, block.T, jacobian[:, part].T).T
        joint = np.ascontiguousarray(jacobian @ gains.T, dtype=np.float64)
    score, information = np.zeros(len(joint)), np.zeros_like(joint)
    learned = match_in_turn(work, first, rule, noise, outputs, joint, score, information)
    step = score.astype(gains.dtype) @ gains
    if learned < count or not np.isfinite(step).all():
        return min(learned, count - 1)
    mean += step
    observed = np.flatnonzero(information.diagonal())
    if len(observed) < len(information):  # the others were not observed
        if len(observed) == 0:
            return learned
        gains, information = gains[observed], np.ascontiguousarray(information[np.ix_(observed, observed)])
    try:
        root = np.linalg.cholesky(information).T.astype(gains.dtype) @ gains
    except np.linalg.LinAlgError:  # some direction learns nothing, or is less certain than before
        root, weighted = None, information.astype(gains.dtype) @ gains
    for part, block in blocks:
        if root is not None:
            syrk(-1.0, root[:, part].T, beta=1.0, c=block.T, overwrite_c=1)
        else:
            gemm(-1.0, weighted[:, part].T, gains[:, part], beta=1.0, c=block.T, overwrite_c=1)
        diagonal = block.reshape(block.size)[:: len(block) + 1]
        np.maximum(diagonal, 0.0, out=diagonal)
    return learned


def _blocks(shape, cov):
    """The weights of each block, and a view of it."""
    blocks = []
    for b in range(shape.n_blocks):
        size = shape.cuts[b + 1] - shape.cuts[b]
        view = cov[shape.offsets[b] : shape.offsets[b + 1]].reshape(size, size)
        blocks.append((slice(shape.cuts[b], shape.cuts[b + 1]), view))
    return blocks


def move_rows(shape: BlockShape, rule: NetworkRule, count: cython.Py_ssize_t, cov: Real[::1]):
    """Let the weights drift for as long as ``count`` rows take."""
    share: cython.double = -expm1(count * log1p(-rule.drift))
    move_towards(shape, cython.address(cov[0]), share, cython.address(rule.prior_var[0]))


def linearise_rows(
    work: CompiledPass,
    first: cython.Py_ssize_t,
    shape: BlockShape,
    rule: NetworkRule,
    mean: Real[::1],
    cov: Real[::1],
    outputs: cython.double[:, ::1],
    jacobian: Real[:, ::1],
):
    """Fill the means of the outputs ``(b, K)`` and their derivatives in the weights ``(b K, p)``."""
    signals = Signals(shape)
    t: cython.Py_ssize_t
    k: cython.Py_ssize_t
    n = shape.n_outputs
    with cython.nogil:
        for t in range(outputs.shape[0]):
            x = cython.address(work.rows[work.order[first + t], 0])
            forward(
                shape, rule.activation, 1.0, cython.NULL, cython.address(mean[0]), cython.address(cov[0]), x, signals
            )
            for k in range(n):
                outputs[t, k] = signals.mean[k]
                fill_weight_jacobian(shape, signals, k, cython.address(jacobian[t * n + k, 0]))
    rule.activation.raise_pending()


def match_in_turn(
    work: CompiledPass,
    first: cython.Py_ssize_t,
    rule: NetworkRule,
    noise: NetworkProgress,
    outputs: cython.double[:, ::1],
    joint: cython.double[:, ::1],
    score: cython.double[::1],
    information: cython.double[:, ::1],
):
    """Match the rows of a batch one after the other; fill the score and the information of them all.

    ``joint`` is the covariance of all rows' outputs. Returns the number of rows matched.
    """
    t: cython.Py_ssize_t
    n: cython.Py_ssize_t = outputs.shape[1]
    matched: cython.Py_ssize_t = outputs.shape[0]
    match = VectorMatch(n)
    mean: cython.double[::1] = np.empty(n)
    cov: cython.double[::1] = np.empty(n * n)
    through: cython.double[:, ::1] = np.empty((n, joint.shape[0]))
    weighted: cython.double[::1] = np.empty(joint.shape[0])
    m = cython.address(mean[0])
    c = cython.address(cov[0])
    with cython.nogil:
        for t in range(outputs.shape[0]):
            i = work.order[first + t]
            _fill_through(t * n, joint, information, through)
            _fill_outputs(t, outputs, joint, score, through, m, c)
            work.start_row(i, noise)
            density = rule.likelihood.match(m, c, cython.address(work.targets[i, 0]), noise, match)
            if not isfinite(density):
                matched = t
                break
            work.write_down(i, density, rule, m, c, noise, match)
            _add_match(t * n + n, match, through, weighted, score, information)
            work.finish_row(i, rule, m, c, noise)
    return matched


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _fill_through(
    begin: cython.Py_ssize_t,
    joint: cython.double[:, ::1],
    information: cython.double[:, ::1],
    through: cython.double[:, ::1],
) -> cython.void:
    """Fill the rows of ``I - joint information`` of the row whose outputs begin there.

    They end where this row's outputs end, since later rows have added nothing.
    """
    j: cython.Py_ssize_t
    k: cython.Py_ssize_t
    for k in range(through.shape[0]):
        row = cython.address(through[k, 0])
        for j in range(begin + through.shape[0]):
            row[j] = 0.0
        for j in range(begin):
            _multiply_add(begin, -joint[begin + k, j], cython.address(information[j, 0]), row)
        row[begin + k] = 1.0


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _fill_outputs(
    t: cython.Py_ssize_t,
    outputs: cython.double[:, ::1],
    joint: cython.double[:, ::1],
    score: cython.double[::1],
    through: cython.double[:, ::1],
    mean: cython.p_double,
    cov: cython.p_double,
) -> cython.void:
    """Fill mean and covariance of a row's outputs after the rows before it."""
    j: cython.Py_ssize_t
    k: cython.Py_ssize_t
    m: cython.Py_ssize_t
    n: cython.Py_ssize_t = outputs.shape[1]
    begin: cython.Py_ssize_t = t * n
    for k in range(n):
        mean[k] = outputs[t, k]
        for j in range(begin):
            mean[k] += joint[begin + k, j] * score[j]
        row = cython.address(through[k, 0])
        for m in range(k + 1):
            here = cython.address(joint[begin + m, 0])
            total = 0.0
            for j in range(begin + n):
                total += row[j] * here[j]
            if k == m:
                total = max(total, 0.0)
            cov[k * n + m] = total
            cov[m * n + k] = total


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _add_match(
    end: cython.Py_ssize_t,
    match: VectorMatch,
    through: cython.double[:, ::1],
    weighted: cython.double[::1],
    score: cython.double[::1],
    information: cython.double[:, ::1],
) -> cython.void:
    """Add a row's match to the score and the information of all rows, up to the end of its outputs."""
    j: cython.Py_ssize_t
    k: cython.Py_ssize_t
    m: cython.Py_ssize_t
    n: cython.Py_ssize_t = through.shape[0]
    total = cython.address(weighted[0])
    for k in range(n):
        row = cython.address(through[k, 0])
        for j in range(end):
            total[j] = 0.0
        for m in range(n):
            _multiply_add(end, match.information[k * n + m], cython.address(through[m, 0]), total)
        for j in range(end):
            score[j] += row[j] * match.score[k]
            _multiply_add(end, row[j], total, cython.address(information[j, 0]))


def _multiply_add(n, factor, values, total):
    """``total += factor values``."""
    j: cython.Py_ssize_t
    for j in range(n):
        total[j] += factor * values[j]
