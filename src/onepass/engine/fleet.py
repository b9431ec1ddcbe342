"""Kernels for many small perceptrons side by side, and the table that finds them by their keys.

Each perceptron is one record of ``HEAD + p + p (p + 1)/2`` numbers: noise, evidence and number of rows, the index of
its prior and the time of its last row; then the mean of the weights; then the lower triangle of the covariance's root,
row after row. Where rows are re-weighed as their noise is learned, the numbers that this takes follow, and last those
of a `Trust`. The root stays packed, without the zeros above its diagonal (half a gigabyte for a million perceptrons),
while the kernel of a single perceptron updates it.
"""

from typing import NamedTuple

import cython
import numpy as np
from cython.cimports.libc.math import floor, pow, sqrt
from cython.cimports.libc.string import memcpy
from cython.cimports.onepass.engine.noise import Response
from cython.cimports.onepass.engine.outliers import N_GUARD, Trust
from cython.cimports.onepass.engine.rows import Row, forget_root, learn_row_root, rescale_root, scratch_size
from cython.cimports.onepass.engine.step import PerceptronProgress, score_row


class Projection(NamedTuple):
    """What rows are predicted from, ``(n,)`` each."""

    mean: "FloatArray"  # of x'w
    var: "FloatArray"
    noise: "FloatArray"
    noise_weight: "FloatArray"  # how many rows the noise rests on
    distrust: "FloatArray"  # probability that the target is not to be trusted; 0 without targets


def learn_fleet(X, y, weights, slots, order, rule, noise_window, clock, records, out):
    """Learn rows, each into the record of its slot, in the given order; ``weights`` are None where they are all 1.

    Returns the number of rows learned, fewer than all if one can't be. ``out``, ``(n, RECORD_SIZE)`` or empty, receives
    what each was predicted from: see `step.RowRecord`.
    """
    d: cython.Py_ssize_t = X.shape[1]
    p: cython.Py_ssize_t = d + rule.bias
    n: cython.Py_ssize_t
    i: cython.Py_ssize_t
    learned: cython.Py_ssize_t = order.shape[0]
    space: cython.double[::1] = np.empty(scratch_size(rule, p))
    n_behind: cython.Py_ssize_t = records.shape[1] - _end_of_belief(p)
    reweighs: cython.bint = n_behind == N_REWEIGHED + N_GUARD
    state: PerceptronProgress = _state_of(noise_window, n_behind)
    state.trust.learns_scale = rule.period == 0
    state.weigh(None if weights is None else weights[np.asarray(order)])
    with cython.nogil:
        for n in range(order.shape[0]):
            i = order[n]
            record = cython.address(records[slots[i], 0])
            prior = _prior_of(rule, record, p)
            _read(record, p, reweighs, state)
            if state.trust.is_alarmed():
                _answer_alarm(record, prior, state, cython.address(space[0]))
            noise, noise_weight = state.noise, state.noise_weight
            row: Row = Row(x=cython.address(X[i, 0]), x_var=cython.NULL, d=d, y=y[i], site=cython.NULL)
            seen = learn_row_root(
                cython.address(row),
                rule,
                state,
                record + HEAD,
                record + HEAD + p,
                True,
                cython.address(prior),
                True,
                cython.address(space[0]),
            )
            if not seen.learned:
                learned = n
                break
            _write(record, p, reweighs, state)
            record[AT_TOUCHED] = clock
            if out.shape[0]:
                state.record_row(out, i, seen.pre_mean, seen.pre_var, noise, noise_weight)
    rule.likelihood.raise_pending()
    return learned


def _prior_of(rule, record, p):
    """What a key's forgetting goes towards, and what it returns to after an alarm."""
    return rule.prior(cython.cast(cython.Py_ssize_t, record[AT_PRIOR]), p)


def _end_of_belief(p):
    """Where the numbers behind a record's belief begin, if it has any."""
    return HEAD + p + p * (p + 1) // 2


def _state_of(noise_window, n_behind):
    """A state to read records into, which have so many numbers behind their belief."""
    n_trust = N_GUARD if n_behind == N_REWEIGHED + N_GUARD else n_behind
    return PerceptronProgress(noise_window=noise_window, trust=Trust(np.ones(n_trust)))


def _read(record, p, reweighs, state):
    """Take a key's running quantities from its record."""
    state.noise = record[AT_NOISE]
    state.noise_weight = record[AT_NOISE_WEIGHT]
    state.log_evidence = record[AT_EVIDENCE]
    state.n_seen = record[AT_SEEN]
    state.largest = record[AT_LARGEST]
    behind = record + _end_of_belief(p)
    if reweighs:
        state.reference = behind[OF_REFERENCE]
        state.squares = behind[OF_SQUARES]
        state.weight = behind[OF_WEIGHT]
        state.copies = behind[OF_COPIES]
        state.trusted_copies = behind[OF_TRUSTED_COPIES]
        state.log_start = behind[OF_LOG_START]
        state.start_weight = behind[OF_START_WEIGHT]
        state.last_log_noise = behind[OF_LAST_LOG_NOISE]
        state.last_seen = behind[OF_LAST_SEEN]
        state.last_noise_weight = behind[OF_LAST_NOISE_WEIGHT]
        state.total = behind[OF_TOTAL]
        behind += N_REWEIGHED
    state.trust.read(behind)


def _write(record, p, reweighs, state):
    """Put a key's running quantities into its record."""
    record[AT_NOISE] = state.noise
    record[AT_NOISE_WEIGHT] = state.noise_weight
    record[AT_EVIDENCE] = state.log_evidence
    record[AT_SEEN] = state.n_seen
    record[AT_LARGEST] = state.largest
    behind = record + _end_of_belief(p)
    if reweighs:
        behind[OF_REFERENCE] = state.reference
        behind[OF_SQUARES] = state.squares
        behind[OF_WEIGHT] = state.weight
        behind[OF_COPIES] = state.copies
        behind[OF_TRUSTED_COPIES] = state.trusted_copies
        behind[OF_LOG_START] = state.log_start
        behind[OF_START_WEIGHT] = state.start_weight
        behind[OF_LAST_LOG_NOISE] = state.last_log_noise
        behind[OF_LAST_SEEN] = state.last_seen
        behind[OF_LAST_NOISE_WEIGHT] = state.last_noise_weight
        behind[OF_TOTAL] = state.total
        behind += N_REWEIGHED
    state.trust.write(behind)


def _answer_alarm(record, prior, state, space):
    """Change a key's belief before its next row, if the truth has jumped, or the scale of the weights."""
    if state.trust.has_jumped():
        _return_to_prior(record, prior, state)
        state.begin_anew()
    else:
        rescale_root(prior, state.trust, record + HEAD, record + HEAD + prior.p, True, space)


def _return_to_prior(record, prior, state):
    """Give a key the covariance of its prior; where its targets have changed, also the mean, and a wider covariance.

    Its rows are not re-weighed any more then: the prior that it shares with other keys is not the one it started over
    from.
    """
    p = prior.p
    size: cython.Py_ssize_t = p * (p + 1) // 2
    memcpy(record + HEAD + p, prior.values + p, size * cython.sizeof(cython.double))
    if not state.trust.starts_over():
        return
    memcpy(record + HEAD, prior.values, p * cython.sizeof(cython.double))
    i: cython.Py_ssize_t
    reach = 0.0
    for i in range(size):
        reach += prior.values[p + i] * prior.values[p + i]
    times = sqrt(max(state.trust.far_square / max(reach, 1e-300), 1.0))
    for i in range(size):
        record[HEAD + p + i] *= times
    state.reference = 0.0


def _record_ahead(record, rows, p, reweighs, rule, state, later, space):
    """The record by which a row so many ahead is predicted: the key's own or, if that changes before, ``later``.

    The key's running quantities are then in ``state``.
    """
    _read(record, p, reweighs, state)
    prior = _prior_of(rule, record, p)
    if rows == 0 or prior.values == cython.NULL:
        return record
    steps = 0.0
    if rule.period > 0:  # those at the multiples of the period from the rows seen on, the first row's left out
        steps = floor((state.n_seen + rows - 1.0) / rule.period) - floor(max(state.n_seen - 1.0, 0.0) / rule.period)
    alarmed = state.trust.is_alarmed()
    if steps == 0.0 and not alarmed:
        return record
    memcpy(later, record, _end_of_belief(p) * cython.sizeof(cython.double))
    if alarmed:
        _answer_alarm(later, prior, state, space)
    if steps > 0.0:
        forget_root(prior, pow(rule.keep, steps), later + HEAD, later + HEAD + p, True, space)
    return later


def project_fleet(X, slots, ahead, rule, records, prior) -> "Projection":
    """Return a `Projection` of every row so many ``ahead``; slot -1 is the prior's record."""
    return Projection(*_project(X, np.empty(0), slots, ahead, rule, records, prior))


def distrust_fleet(X, y, slots, ahead, rule, records, prior) -> "FloatArray":
    """Probability that each target is not to be trusted, ``(n,)``; see `project_fleet`."""
    return Projection(*_project(X, y, slots, ahead, rule, records, prior)).distrust


def _project(X, y, slots, ahead, rule, records, prior):
    """The parts of a `Projection`, ``(5, n)``."""
    d: cython.Py_ssize_t = X.shape[1]
    bias: cython.Py_ssize_t = rule.bias
    p: cython.Py_ssize_t = d + bias
    i: cython.Py_ssize_t
    j: cython.Py_ssize_t
    k: cython.Py_ssize_t
    result = np.zeros((5, X.shape[0]))
    out: cython.double[:, ::1] = result
    space: cython.double[::1] = np.ones(p)
    x = cython.address(space[0])
    later: cython.double[::1] = np.empty(_end_of_belief(p))
    scratch: cython.double[::1] = np.empty(scratch_size(rule, p))
    n_behind: cython.Py_ssize_t = records.shape[1] - _end_of_belief(p)
    reweighs: cython.bint = n_behind == N_REWEIGHED + N_GUARD
    state: PerceptronProgress = _state_of(np.inf, n_behind)
    scores: cython.bint = y.shape[0] > 0
    response: Response
    response.n = 0  # how far a target is distrusted does not depend on it
    with cython.nogil:
        for i in range(X.shape[0]):
            record = cython.address(records[slots[i], 0]) if slots[i] >= 0 else cython.address(prior[0])
            record = _record_ahead(
                record, ahead[i], p, reweighs, rule, state, cython.address(later[0]), cython.address(scratch[0])
            )
            mean = 0.0
            var = 0.0
            for j in range(d):
                x[bias + j] = X[i, j]
            root = record + HEAD + p
            for j in range(p):
                mean += record[HEAD + j] * x[j]
                coord = 0.0
                for k in range(j + 1):
                    coord += root[k] * x[k]
                root += j + 1
                var += coord * coord
            out[PROJECTED_MEAN, i] = mean
            out[PROJECTED_VAR, i] = var
            out[PROJECTED_NOISE, i] = state.noise
            out[PROJECTED_NOISE_WEIGHT, i] = state.noise_weight
            if scores:
                _, out[PROJECTED_DISTRUST, i] = score_row(
                    rule.likelihood, state, mean, var, 0.0, cython.address(response), y[i]
                )
    rule.likelihood.raise_pending()
    return result


# The table: open addressing with linear probing. An entry is a slot plus one, 0 where there is none; the keys
# themselves are in ``slot_keys``, by slot.


def _home(key, mask):
    mixed = cython.cast(cython.ulonglong, key) * cython.cast(cython.ulonglong, 0x9E3779B97F4A7C15)
    return cython.cast(cython.Py_ssize_t, (mixed ^ (mixed >> 32)) & cython.cast(cython.ulonglong, mask))


def find_keys(keys, table, slot_keys) -> "NDArray[Any]":
    """Slot of each key, -1 for those that are not there."""
    mask: cython.Py_ssize_t = table.shape[0] - 1
    at: cython.Py_ssize_t
    i: cython.Py_ssize_t
    result = np.empty(keys.shape[0], dtype=np.int64)
    slots: cython.longlong[::1] = result
    with cython.nogil:
        for i in range(keys.shape[0]):
            at = _home(keys[i], mask)
            while table[at] != 0 and slot_keys[table[at] - 1] != keys[i]:
                at = (at + 1) & mask
            slots[i] = table[at] - 1
    return result


def put_keys(slots, table, slot_keys) -> None:
    """Add the keys of these slots, none of which is in the table yet."""
    mask: cython.Py_ssize_t = table.shape[0] - 1
    at: cython.Py_ssize_t
    i: cython.Py_ssize_t
    with cython.nogil:
        for i in range(slots.shape[0]):
            at = _home(slot_keys[slots[i]], mask)
            while table[at] != 0:
                at = (at + 1) & mask
            table[at] = slots[i] + 1


def remove_keys(slots, table, slot_keys) -> None:
    """Remove the keys of these slots; entries that were displaced by them move back."""
    mask: cython.Py_ssize_t = table.shape[0] - 1
    at: cython.Py_ssize_t
    hole: cython.Py_ssize_t
    home: cython.Py_ssize_t
    i: cython.Py_ssize_t
    with cython.nogil:
        for i in range(slots.shape[0]):
            hole = _home(slot_keys[slots[i]], mask)
            while table[hole] - 1 != slots[i]:
                hole = (hole + 1) & mask
            at = hole
            while True:
                at = (at + 1) & mask
                if table[at] == 0:
                    break
                # An entry may fill the hole if its own place is not between the two.
                home = _home(slot_keys[table[at] - 1], mask)
                if ((at - home) & mask) >= ((at - hole) & mask):
                    table[hole] = table[at]
                    hole = at
            table[hole] = 0
