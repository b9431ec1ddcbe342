"""A small perceptron as one row of numbers, so that a million of them are one array.

A record begins with the running quantities: noise variance and its weight, log evidence, number of rows, which prior it
started from, and when it last learned. Then come the mean of the weights and, row by row, the lower triangle of the
covariance's square root. The numbers of a `onepass.engine.outliers.Trust` follow.
"""

import numpy as np

from onepass._typing import FloatArray
from onepass.engine.fleet import (
    AT_EVIDENCE,
    AT_LARGEST,
    AT_NOISE,
    AT_NOISE_WEIGHT,
    AT_PRIOR,
    AT_SEEN,
    AT_TOUCHED,
    HEAD,
    N_REWEIGHED,
)
from onepass.engine.outliers import GUARD_SIZE
from onepass.engine.step import (
    LARGEST,
    LOG_EVIDENCE,
    N_SEEN,
    NOISE,
    NOISE_WEIGHT,
    NOISE_WINDOW,
    STATE_SIZE,
    PerceptronProgress,
)

__all__ = [
    "AT_EVIDENCE",
    "AT_NOISE",
    "AT_NOISE_WEIGHT",
    "AT_PRIOR",
    "AT_SEEN",
    "AT_TOUCHED",
    "HEAD",
    "check_records",
    "make_record",
    "means_of",
    "natural_of",
    "packed_mixtures",
    "record_width",
    "reweighed_of",
    "roots_of",
    "running_of",
    "trusts_of",
]


# The running quantities in the head, and their positions.
_RUNNING = [NOISE, NOISE_WEIGHT, LOG_EVIDENCE, N_SEEN, LARGEST]
_IN_HEAD = [AT_NOISE, AT_NOISE_WEIGHT, AT_EVIDENCE, AT_SEEN, AT_LARGEST]


def record_width(size: int) -> int:
    """Return the length of the record of a perceptron with ``size`` weights, without what follows its belief."""
    return HEAD + size + size * (size + 1) // 2


def make_record(mean: FloatArray, root: FloatArray, state: PerceptronProgress) -> FloatArray:
    """Make the record of a belief and of what runs along with it."""
    running = state.to_array()
    head = np.zeros(HEAD)
    head[_IN_HEAD] = running[_RUNNING]
    behind = running[STATE_SIZE - N_REWEIGHED :] if state.reference else running[STATE_SIZE:]
    return np.concatenate([head, mean, root[np.tril_indices(len(mean))], behind])


def running_of(record: FloatArray, size: int, window: float) -> FloatArray:
    """Return the numbers of a record's `PerceptronProgress`, with a noise window and the trust."""
    running = np.zeros(STATE_SIZE)
    running[_RUNNING], running[NOISE_WINDOW] = record[_IN_HEAD], window
    reweighed = reweighed_of(record[None], size)[0]
    running[STATE_SIZE - len(reweighed) :] = reweighed
    return np.concatenate([running, trusts_of(record[None], size)[0]])


def means_of(records: FloatArray, size: int) -> FloatArray:
    """Return the means of the weights, ``(n, p)``."""
    return records[:, HEAD : HEAD + size]


def roots_of(records: FloatArray, size: int) -> FloatArray:
    """Return the square roots of the covariances, lower triangular, ``(n, p, p)``.

    Examples
    --------
    >>> record = make_record(np.zeros(2), np.array([[1.0, 0.0], [2.0, 3.0]]), PerceptronProgress(0.1))
    >>> roots_of(record[None], 2)[0]
    array([[1., 0.],
           [2., 3.]])
    """
    roots = np.zeros((len(records), size, size))
    below, across = np.tril_indices(size)
    roots[:, below, across] = records[:, HEAD + size : record_width(size)]
    return roots


def packed_mixtures(first: FloatArray, second: FloatArray, share: FloatArray) -> FloatArray:
    """Roots of ``(1 - share) C_1 + share C_2``, packed as records have them, from those of both, ``(n, p, p)``.

    By QR, as the sum of two covariances that are all but singular need not be positive definite after rounding.

    Examples
    --------
    >>> roots = np.array([[[1.0, 0.0], [2.0, 3.0]]])
    >>> packed_mixtures(roots, 5.0 * roots, np.array([0.0]))
    array([[1., 2., 3.]])
    """
    weights = np.sqrt(np.stack([1.0 - share, share]))[:, :, None, None]
    both = np.concatenate([weights[0] * first, weights[1] * second], axis=1)
    # From the last weight to the first, so that the triangle is a lower one.
    root = np.asarray(np.linalg.qr(both[:, :, ::-1], mode="r"))[:, ::-1, ::-1]
    root = root * np.where(np.diagonal(root, axis1=1, axis2=2) < 0.0, -1.0, 1.0)[:, :, None]
    below, across = np.tril_indices(first.shape[1])
    return np.asarray(root[:, below, across])


def reweighed_of(records: FloatArray, size: int) -> FloatArray:
    """Return the numbers by which rows are re-weighed, a view ``(n, 11)``, or ``(n, 0)`` where they are not."""
    behind = records[:, record_width(size) :]
    return behind[:, : N_REWEIGHED if behind.shape[1] == N_REWEIGHED + GUARD_SIZE else 0]


def trusts_of(records: FloatArray, size: int) -> FloatArray:
    """Return the numbers of the trust in targets, ``(n, 17)``, or ``(n, 4)`` where no outliers are expected."""
    return records[:, record_width(size) + reweighed_of(records, size).shape[1] :]


def natural_of(records: FloatArray, size: int) -> tuple[FloatArray, FloatArray]:
    """Return the precisions ``P``, ``(n, p, p)``, and ``P m``, ``(n, p)``."""
    try:
        factors = np.linalg.inv(roots_of(records, size))
    except np.linalg.LinAlgError:
        raise ValueError("a covariance is singular, so it has no precision: some weights are known exactly") from None
    precisions = factors @ factors.swapaxes(1, 2)
    return precisions, np.einsum("nij,nj->ni", precisions, means_of(records, size))


def check_records(records: FloatArray, n_priors: int) -> None:
    """Raise a ValueError for records that learning can't produce."""
    counts = np.delete(records[:, :HEAD], AT_EVIDENCE, axis=1)
    if (counts < 0.0).any():
        raise ValueError(f"records contain {counts.min():g} among their counts, which must not be negative")
    which = records[:, AT_PRIOR]
    if (which != np.floor(which)).any() or (which >= n_priors).any():
        raise ValueError("records name a prior that is not there")
