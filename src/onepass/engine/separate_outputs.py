"""Learning of perceptrons with several outputs, such as a softmax, whose weights correlate within each output only.

The outputs are then independent before each row, and their match needs no more than their variances; what a row costs
grows as the number of outputs does. Small blocks are updated row by row. Large ones are updated in blocks of rows as
in `blocks`: the inputs of all rows are known in advance, so ``C X'`` is one product for many rows, what a row needs
of the rows before it follows by a recursion among the rows, and the result is that of learning row by row.
"""

from typing import Any, NamedTuple

import cython
import numpy as np
from cython.cimports.libc.math import fabs, isfinite
from cython.cimports.onepass.engine.network import move_towards, project_one
from cython.cimports.onepass.engine.vector_matches import VectorMatch
from scipy.linalg.blas import dsymm, dsyrk, dtrsm, ssymm, ssyrk, strsm

_BLAS = {np.dtype(np.float64): (dsymm, dtrsm, dsyrk), np.dtype(np.float32): (ssymm, strsm, ssyrk)}
_WIDE = 96  # weights of an output from which on blocks of rows are faster
_ROWS = 64  # of a block
_MOST_DRIFT = 0.1  # beyond it what is left of a covariance after a block of rows is next to nothing
# A row that lowers a variance by less than this share is not worth touching a block for: a million of them would lower
# it by a ten-thousandth.
_NEGLIGIBLE = cython.declare(cython.double, 1e-10)


class Recursion(NamedTuple):
    """What the rows of a block make of each other."""

    scores: Any  # (outputs, rows)
    informations: Any  # (outputs, rows)
    mixing: Any  # of the earlier rows' steps in the gain of each, (outputs, rows, rows)


class OutputWorkspace:
    """Memory for one row: each output's mean and covariance, of which the diagonal counts, and its gain ``C z``."""

    def __init__(self, shape: BlockShape):
        n: cython.Py_ssize_t = shape.n_outputs
        self.memory = np.zeros(shape.size + shape.widest + n * n + n)
        view: cython.double[::1] = self.memory
        start = cython.address(view[0])
        self.gain, self.inputs = start, start + shape.size
        self.cov = self.inputs + shape.widest
        self.mean = self.cov + n * n


def learn_separate(work: CompiledPass, shape: BlockShape, rule: NetworkRule, noise: NetworkProgress, mean, cov) -> int:
    """Learn a pass in place; returns the number of rows learned, fewer if one is not finite or raised an alarm."""
    if shape.width[0] + 1 < _WIDE or rule.drift > _MOST_DRIFT:
        return learn_row_by_row(work, shape, rule, noise, mean, cov)
    n_rows = work.order.shape[0]
    for first in range(0, n_rows, _ROWS):
        count = min(_ROWS, n_rows - first)
        learned = _learn_block(work, first, count, shape, rule, noise, mean, cov)
        if learned < count or (work.is_first and noise.trust.is_alarmed()):
            return first + learned
    return n_rows


def learn_row_by_row(
    work: CompiledPass, shape: BlockShape, rule: NetworkRule, noise: NetworkProgress, mean: Real[::1], cov: Real[::1]
):
    """Learn a pass of which each row touches the blocks; returns the number of rows learned, as `learn_separate`."""
    space = OutputWorkspace(shape)
    match = VectorMatch(shape.n_outputs)
    with cython.nogil:
        learned = _learn_rows(work, shape, rule, noise, cython.address(mean[0]), cython.address(cov[0]), space, match)
    return learned


def _learn_rows(work, shape, rule, noise, mean, cov, space, match):
    t: cython.Py_ssize_t
    k: cython.Py_ssize_t
    j: cython.Py_ssize_t
    n = shape.n_outputs
    width = shape.width[0] + 1
    n_rows = work.order.shape[0]
    z = space.inputs
    z[0] = 1.0
    for t in range(n_rows):
        i = work.order[t]
        for j in range(width - 1):
            z[1 + j] = work.rows[i, j]
        if rule.drift > 0.0:
            move_towards(shape, cov, rule.drift, cython.address(rule.prior_var[0]))
        for k in range(n):
            weights = mean + k * width
            gain = space.gain + k * width
            project_one(width, cov + k * width * width, z, gain)
            pre_mean = 0.0
            var = 0.0
            for j in range(width):
                pre_mean += weights[j] * z[j]
                var += gain[j] * z[j]
            space.mean[k] = pre_mean
            space.cov[k * (n + 1)] = max(var, 0.0)
        if not match_row(work, i, rule, noise, space.mean, space.cov, match):
            return t
        for k in range(n):
            weights = mean + k * width
            gain = space.gain + k * width
            score = match.score[k]
            for j in range(width):
                weights[j] += score * gain[j]
            information = match.own_information[k]
            if fabs(information) * space.cov[k * (n + 1)] > _NEGLIGIBLE:
                _downdate(width, information, cov + k * width * width, gain)
        if work.is_first and noise.trust.is_alarmed():
            return t + 1
    return n_rows


def match_row(work, i, rule, noise, mean, cov, match):
    """Match a row and write down what is known of it; False, with nothing written, where it is not finite."""
    target = cython.address(work.targets[i, 0])
    work.start_row(i, noise)
    density = rule.likelihood.match_separate(mean, cov, target, noise, match)
    k: cython.Py_ssize_t
    total = density
    n = rule.likelihood.size
    for k in range(n):
        total += match.score[k] * cov[k * (n + 1)]
    if not isfinite(total):
        return False
    work.write_down(i, density, rule, mean, cov, noise, match)
    work.finish_row(i, rule, mean, cov, noise)
    return True


def _downdate(width, information, cov, gain):
    """``C -= information gain gain'`` on the lower triangle of a block; no variance becomes negative."""
    i: cython.Py_ssize_t
    j: cython.Py_ssize_t
    for i in range(width):
        row = cov + i * width
        factor = information * gain[i]
        for j in range(i + 1):
            row[j] -= factor * gain[j]
        row[i] = max(row[i], 0.0)


def _learn_block(
    work: CompiledPass,
    first: cython.Py_ssize_t,
    count: cython.Py_ssize_t,
    shape: BlockShape,
    rule: NetworkRule,
    noise: NetworkProgress,
    mean,
    cov,
):
    """Learn one block of rows; returns how many of them, up to one that raised an alarm or before one not finite."""
    symm = _BLAS[mean.dtype][0]
    n, width = shape.n_outputs, shape.width[0] + 1
    weights, blocks = mean.reshape(n, width), cov.reshape(n, width, width)
    rows = np.ones((count, width), dtype=mean.dtype)
    rows[:, 1:] = np.asarray(work.rows)[np.asarray(work.order)[first : first + count]]
    growth = (1.0 - rule.drift) ** np.arange(1.0, count + 1.0)
    # Before row i the variances have been added i + 1 times, of which all but the last have faded since.
    times = np.cumsum(1.0 / growth)
    added = rule.drift * np.asarray(rule.prior_var).reshape(n, width)
    gains, products = [], np.empty((n, count, count))
    with np.errstate(over="ignore", invalid="ignore"):  # a row that overflows is found by its match
        for k in range(n):  # of whose block's transpose, in Fortran's order, the upper triangle counts
            gain = symm(1.0, blocks[k].T, rows.T)
            if rule.drift > 0.0:
                gain += (rows * added[k] * times[:, None]).T
            products[k] = (rows @ gain).T
            gains.append(gain)
        outputs = np.ascontiguousarray(rows @ weights.T, dtype=np.float64)
    found = Recursion(np.zeros((n, count)), np.zeros((n, count)), np.zeros((n, count, count)))
    learned = match_rows(work, first, rule, noise, growth, outputs, products, found)
    for k in range(n):
        if learned > 0:
            _step(learned, weights[k], blocks[k], gains[k], Recursion(*(part[k] for part in found)))
            if rule.drift > 0.0:
                blocks[k] *= growth[learned - 1]
                blocks[k].reshape(-1)[:: width + 1] += growth[learned - 1] * times[learned - 1] * added[k]
    return learned


def match_rows(
    work: CompiledPass,
    first: cython.Py_ssize_t,
    rule: NetworkRule,
    noise: NetworkProgress,
    growth: cython.const[cython.double][::1],
    outputs: cython.double[:, ::1],
    products: cython.double[:, :, ::1],
    found: Recursion,
):
    """Run the recursion among the rows of a block, of each output; returns the number of rows learned.

    ``products`` holds ``x_i' C x_k`` of each output and becomes that with the covariance before row ``i``. All in units
    in which the covariance keeps all of itself as weights drift; ``growth`` has these of each row.
    """
    n: cython.Py_ssize_t = products.shape[0]
    b: cython.Py_ssize_t = products.shape[1]
    i: cython.Py_ssize_t
    j: cython.Py_ssize_t
    k: cython.Py_ssize_t
    m: cython.Py_ssize_t
    learned: cython.Py_ssize_t = b
    scores: cython.double[:, ::1] = found.scores
    informations: cython.double[:, ::1] = found.informations
    mixing: cython.double[:, :, ::1] = found.mixing
    match = VectorMatch(n)
    memory = np.zeros(n * n)
    cov: cython.double[::1] = memory
    with cython.nogil:
        for i in range(b):
            for k in range(n):
                here = cython.address(products[k, i, 0])
                for j in range(i):
                    if informations[k, j] == 0.0:
                        continue
                    earlier = cython.address(products[k, j, 0])
                    mix = informations[k, j] * earlier[i]
                    mixing[k, i, j] = mix
                    for m in range(i, b):
                        here[m] -= mix * earlier[m]
                mixing[k, i, i] = 1.0
                cov[k * (n + 1)] = growth[i] * max(here[i], 0.0)
            at = work.order[first + i]
            if not match_row(work, at, rule, noise, cython.address(outputs[i, 0]), cython.address(cov[0]), match):
                learned = i
                break
            for k in range(n):
                here = cython.address(products[k, i, 0])
                scores[k, i] = match.score[k] * growth[i]
                if fabs(match.own_information[k]) * cov[k * (n + 1)] > _NEGLIGIBLE:
                    informations[k, i] = match.own_information[k] * growth[i]
                for m in range(i + 1, b):
                    outputs[m, k] += scores[k, i] * here[m]
            if work.is_first and noise.trust.is_alarmed():
                learned = i + 1
                break
    return learned


def _step(learned, mean, cov, gains, found):
    """Let a block of rows, as many of it as were learned, update one output's weights."""
    _, trsm, syrk = _BLAS[mean.dtype]
    mixing = found.mixing[:learned, :learned].astype(mean.dtype, order="F")
    steps = trsm(1.0, mixing, gains[:, :learned], side=1, lower=1, trans_a=1, diag=1)
    mean += steps @ found.scores[:learned].astype(mean.dtype)
    informations = found.informations[:learned]
    for sign in (1.0, -1.0):  # a widening row has a negative information
        part = sign * informations > 0.0
        if part.any():
            scaled = np.asfortranarray(steps[:, part] * np.sqrt(sign * informations[part]).astype(mean.dtype))
            syrk(-sign, scaled, beta=1.0, c=cov.T, overwrite_c=1)
    diagonal = cov.reshape(cov.size)[:: len(cov) + 1]
    np.maximum(diagonal, 0.0, out=diagonal)
