"""Kernels for many small perceptrons side by side, and the table that finds them by their keys.

Each perceptron is one record of ``HEAD + p + p (p + 1)/2`` numbers: noise, evidence and number of rows, the index of
its prior and the time of its last row; then the mean of the weights; then the lower triangle of the covariance's root,
row after row. Where not every target is trusted, the numbers of a `Trust` follow. The root stays packed, without the
zeros above its diagonal (half a gigabyte for a million perceptrons), while the kernel of a single perceptron updates
it.
"""

import cython
import numpy as np
from cython.cimports.libc.string import memcpy
from cython.cimports.onepass.engine.outliers import Trust
from cython.cimports.onepass.engine.rows import learn_row_root, scratch_size
from cython.cimports.onepass.engine.step import LearningState, score_row


def learn_fleet(X, y, slots, order, rule, noise_window, clock, records, out):
    """Learn rows, each into the record of its slot, in the given order.

    Returns the number of rows learned, fewer than all if one can't be. ``out`` receives mean, variance, noise and log
    density from before each row, its distrust and the log odds of a jump after it, if it has room for them.
    """
    d: cython.Py_ssize_t = X.shape[1]
    p: cython.Py_ssize_t = d + rule.bias
    n: cython.Py_ssize_t
    i: cython.Py_ssize_t
    learned: cython.Py_ssize_t = order.shape[0]
    space: cython.double[::1] = np.empty(scratch_size(rule, p))
    state: LearningState = _state_of(noise_window, records.shape[1] - _trust_place(p))
    with cython.nogil:
        for n in range(order.shape[0]):
            i = order[n]
            record = cython.address(records[slots[i], 0])
            prior = _prior_of(rule, record)
            _read(record, p, state)
            if state.trust.is_alarmed():
                _return_to_prior(record, p, prior)
                state.begin_anew()
            noise = state.noise
            seen = learn_row_root(
                cython.address(X[i, 0]),
                cython.NULL,
                d,
                y[i],
                rule,
                state,
                record + HEAD,
                record + HEAD + p,
                True,
                prior if rule.period else cython.NULL,
                cython.address(space[0]),
                cython.NULL,
            )
            if not seen.learned:
                learned = n
                break
            _write(record, p, state)
            record[AT_TOUCHED] = clock
            if out.shape[0]:
                out[i, 0] = seen.pre_mean
                out[i, 1] = seen.pre_var
                out[i, 2] = noise
                out[i, 3] = state.log_density
                out[i, 4] = state.trust.distrust
                out[i, 5] = state.trust.suspicion
    rule.likelihood.raise_pending()
    return learned


def _prior_of(rule, record):
    """What a key's forgetting goes towards, and what it returns to after an alarm; or NULL."""
    if rule.priors.shape[0] == 0:
        return cython.NULL
    return cython.address(rule.priors[cython.cast(cython.Py_ssize_t, record[AT_PRIOR]), 0])


def _trust_place(p):
    """Where the numbers of a record's trust stand, if it has them."""
    return HEAD + p + p * (p + 1) // 2


def _state_of(noise_window, n_trust):
    """A state to read records into, which have so many numbers for their trust."""
    return LearningState(noise_window=noise_window, trust=Trust(np.ones(n_trust)))


def _read(record, p, state):
    """Take a key's running quantities from its record."""
    state.noise = record[AT_NOISE]
    state.noise_weight = record[AT_NOISE_WEIGHT]
    state.log_evidence = record[AT_EVIDENCE]
    state.n_seen = record[AT_SEEN]
    if state.trust.active:
        state.trust.read(record + _trust_place(p))


def _write(record, p, state):
    """Put a key's running quantities into its record."""
    record[AT_NOISE] = state.noise
    record[AT_NOISE_WEIGHT] = state.noise_weight
    record[AT_EVIDENCE] = state.log_evidence
    record[AT_SEEN] = state.n_seen
    if state.trust.active:
        state.trust.write(record + _trust_place(p))


def _return_to_prior(record, p, prior):
    """Give a key the covariance of its prior."""
    memcpy(record + HEAD + p, prior + p, (p * (p + 1) // 2) * cython.sizeof(cython.double))


def project_fleet(X, slots, bias, records, prior):
    """Mean and variance of ``x'w`` and the noise for every row, ``(n, 3)``; slot -1 is the prior's record."""
    d: cython.Py_ssize_t = X.shape[1]
    p: cython.Py_ssize_t = d + bias
    i: cython.Py_ssize_t
    j: cython.Py_ssize_t
    k: cython.Py_ssize_t
    result = np.empty((X.shape[0], 3))
    out: cython.double[:, ::1] = result
    space: cython.double[::1] = np.ones(p)
    x = cython.address(space[0])
    with cython.nogil:
        for i in range(X.shape[0]):
            record = cython.address(records[slots[i], 0]) if slots[i] >= 0 else cython.address(prior[0])
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
            out[i, 0] = mean
            out[i, 1] = var
            out[i, 2] = record[AT_NOISE]
    return result


def distrust_fleet(X, y, slots, rule, records, prior):
    """Probability that each target is not to be trusted, ``(n,)``; slot -1 is the prior's record."""
    p: cython.Py_ssize_t = X.shape[1] + rule.bias
    i: cython.Py_ssize_t
    result = np.empty(X.shape[0])
    out: cython.double[::1] = result
    seen: cython.double[:, ::1] = project_fleet(X, slots, rule.bias, records, prior)
    state: LearningState = _state_of(np.inf, records.shape[1] - _trust_place(p))
    with cython.nogil:
        for i in range(X.shape[0]):
            _read(cython.address(records[slots[i], 0]) if slots[i] >= 0 else cython.address(prior[0]), p, state)
            _, out[i] = score_row(rule.likelihood, state, seen[i, 0], seen[i, 1], y[i])
    rule.likelihood.raise_pending()
    return result


# The table: open addressing with linear probing. An entry is a slot plus one, 0 where there is none; the keys
# themselves are in ``slot_keys``, by slot.


def _home(key, mask):
    mixed = cython.cast(cython.ulonglong, key) * cython.cast(cython.ulonglong, 0x9E3779B97F4A7C15)
    return cython.cast(cython.Py_ssize_t, (mixed ^ (mixed >> 32)) & cython.cast(cython.ulonglong, mask))


def find_keys(keys, table, slot_keys):
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


def put_keys(slots, table, slot_keys):
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


def remove_keys(slots, table, slot_keys):
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
