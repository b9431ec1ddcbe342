"""Kernels for many small perceptrons side by side, and the table that finds them by their keys.

Each perceptron is one record, see `onepass.beliefs.records`. Its root is packed, since half of a triangular
matrix is zeros and a million of them are half a gigabyte. For a row it is unpacked, learned by the very kernel of a
single perceptron, and packed again.
"""

import numpy as np
from numpy.typing import NDArray

from onepass._typing import FloatArray
from onepass.beliefs.records import AT_EVIDENCE, AT_NOISE, AT_NOISE_WEIGHT, AT_SEEN, AT_TOUCHED, HEAD
from onepass.engine.compiled import compiled, inlined
from onepass.engine.rows import learn_row_root
from onepass.likelihoods.univariate import EVIDENCE, NOISE, NOISE_WEIGHT, NOISE_WINDOW, SEEN

__all__ = ["find_keys", "learn_fleet", "project_fleet", "put_keys", "remove_keys"]

Slots = NDArray[np.int64]
Table = NDArray[np.int32]

_MIX = np.uint64(0x9E3779B97F4A7C15)
_FOLD = np.uint64(32)


@inlined
def _load(record: FloatArray, running: FloatArray, space: FloatArray, root: FloatArray) -> None:
    running[NOISE] = record[AT_NOISE]
    running[NOISE_WEIGHT] = record[AT_NOISE_WEIGHT]
    running[EVIDENCE] = record[AT_EVIDENCE]
    running[SEEN] = record[AT_SEEN]
    p = space.shape[1]
    for j in range(p):
        space[0, j] = record[HEAD + j]
    at = HEAD + p
    for j in range(p):
        for k in range(j + 1):
            root[j, k] = record[at]
            at += 1


@inlined
def _store(record: FloatArray, running: FloatArray, space: FloatArray, root: FloatArray) -> None:
    record[AT_NOISE] = running[NOISE]
    record[AT_NOISE_WEIGHT] = running[NOISE_WEIGHT]
    record[AT_EVIDENCE] = running[EVIDENCE]
    record[AT_SEEN] = running[SEEN]
    p = space.shape[1]
    for j in range(p):
        record[HEAD + j] = space[0, j]
    at = HEAD + p
    for j in range(p):
        for k in range(j + 1):
            record[at] = root[j, k]
            at += 1


@compiled
def learn_fleet(
    X: FloatArray,
    y: FloatArray,
    slots: Slots,
    order: Slots,
    rule: FloatArray,
    window: float,
    clock: float,
    records: FloatArray,
    out: FloatArray,
) -> int:
    """Learn rows, each into the record of its slot, in the given order; how many, fewer than all if one can't be.

    Rows of one slot that stand together in the order are unpacked once. ``out`` receives mean, variance and noise from
    before each row, if it has room for them.
    """
    p = X.shape[1] + int(rule[2, 0])
    space, root, running = np.zeros((5, p)), np.zeros((p, p)), np.zeros(5)
    running[NOISE_WINDOW] = window
    nothing = X[:, :0]
    current = np.int64(-1)
    for n in range(order.shape[0]):
        i = order[n]
        if slots[i] != current:
            if current >= 0:
                _store(records[current], running, space, root)
            current = slots[i]
            _load(records[current], running, space, root)
            records[current, AT_TOUCHED] = clock
        noise = running[NOISE]
        learned, pre_mean, pre_var = learn_row_root(X, nothing, i, y[i], rule, running, space, root)
        if not learned:
            return n
        if out.shape[0]:
            out[i, 0] = pre_mean
            out[i, 1] = pre_var
            out[i, 2] = noise
    if current >= 0:
        _store(records[current], running, space, root)
    return len(order)


@compiled
def project_fleet(X: FloatArray, slots: Slots, bias: int, records: FloatArray, prior: FloatArray) -> FloatArray:
    """Mean and variance of ``x'w`` and the noise for every row, ``(n, 3)``; slot -1 is the prior's record."""
    p = X.shape[1] + bias
    out, x = np.empty((X.shape[0], 3)), np.ones(p)
    for i in range(X.shape[0]):
        record = records[slots[i]] if slots[i] >= 0 else prior
        mean = var = 0.0
        for j in range(X.shape[1]):
            x[bias + j] = X[i, j]
        at = HEAD + p
        for j in range(p):
            mean += record[HEAD + j] * x[j]
            coord = 0.0
            for k in range(j + 1):
                coord += record[at + k] * x[k]
            at += j + 1
            var += coord * coord
        out[i, 0] = mean
        out[i, 1] = var
        out[i, 2] = record[AT_NOISE]
    return out


# The table: open addressing with linear probing. An entry is a slot plus one, 0 where there is none; the keys
# themselves stand in ``held``, by slot.


@inlined
def _home(key: int, mask: int) -> np.int64:
    mixed = np.uint64(key) * _MIX
    return np.int64((mixed ^ (mixed >> _FOLD)) & np.uint64(mask))


@compiled
def find_keys(keys: Slots, table: Table, held: Slots) -> Slots:
    """Slot of each key, -1 for those that are not there."""
    slots, mask = np.empty(len(keys), dtype=np.int64), table.shape[0] - 1
    for i in range(len(keys)):
        at = _home(keys[i], mask)
        while table[at] != 0 and held[table[at] - 1] != keys[i]:
            at = (at + 1) & mask
        slots[i] = table[at] - 1
    return slots


@compiled
def put_keys(slots: Slots, table: Table, held: Slots) -> None:
    """Enter the keys held in these slots, none of which is in the table yet."""
    mask = table.shape[0] - 1
    for i in range(len(slots)):
        at = _home(held[slots[i]], mask)
        while table[at] != 0:
            at = (at + 1) & mask
        table[at] = slots[i] + 1


@compiled
def remove_keys(slots: Slots, table: Table, held: Slots) -> None:
    """Take the keys held in these slots out; what had to make way for them moves back."""
    mask = table.shape[0] - 1
    for i in range(len(slots)):
        hole = _home(held[slots[i]], mask)
        while table[hole] - 1 != slots[i]:
            hole = (hole + 1) & mask
        at = hole
        while True:
            at = (at + 1) & mask
            if table[at] == 0:
                break
            # An entry may fill the hole if its own place is not between the two.
            home = _home(held[table[at] - 1], mask)
            if ((at - home) & mask) >= ((at - hole) & mask):
                table[hole] = table[at]
                hole = at
        table[hole] = 0
