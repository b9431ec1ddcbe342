"""A small perceptron as one row of numbers, so that a million of them are one array.

A record begins with the running quantities: noise variance and its weight, log evidence, number of rows, which prior it
started from, and when it last learned. Then come the mean of the weights and, row by row, the lower triangle of the
covariance's square root. Where not every target is trusted, the numbers of a `onepass.engine.outliers.Trust` follow.
"""

import numpy as np

from onepass._typing import FloatArray
from onepass.engine.fleet import AT_EVIDENCE, AT_NOISE, AT_NOISE_WEIGHT, AT_PRIOR, AT_SEEN, AT_TOUCHED, HEAD

__all__ = [
    "AT_EVIDENCE",
    "AT_NOISE",
    "AT_NOISE_WEIGHT",
    "AT_PRIOR",
    "AT_SEEN",
    "AT_TOUCHED",
    "HEAD",
    "check_records",
    "covariances_of",
    "make_record",
    "means_of",
    "natural_of",
    "packed_roots",
    "record_width",
    "roots_of",
    "trusts_of",
]


_NO_TRUST = np.empty(0)


def record_width(size: int) -> int:
    """Return the length of the record of a perceptron with ``size`` weights, without its trust."""
    return HEAD + size + size * (size + 1) // 2


def make_record(
    mean: FloatArray, root: FloatArray, noise: float, noise_weight: float, trust: FloatArray = _NO_TRUST
) -> FloatArray:
    """Make the record of a belief that has learned no rows."""
    head = np.zeros(HEAD)
    head[AT_NOISE], head[AT_NOISE_WEIGHT] = noise, noise_weight
    return np.concatenate([head, mean, root[np.tril_indices(len(mean))], trust])


def means_of(records: FloatArray, size: int) -> FloatArray:
    """Return the means of the weights, ``(n, p)``."""
    return records[:, HEAD : HEAD + size]


def roots_of(records: FloatArray, size: int) -> FloatArray:
    """Return the square roots of the covariances, lower triangular, ``(n, p, p)``.

    Examples
    --------
    >>> record = make_record(np.zeros(2), np.array([[1.0, 0.0], [2.0, 3.0]]), 0.1, 0.0)
    >>> roots_of(record[None], 2)[0]
    array([[1., 0.],
           [2., 3.]])
    """
    roots = np.zeros((len(records), size, size))
    below, across = np.tril_indices(size)
    roots[:, below, across] = records[:, HEAD + size : record_width(size)]
    return roots


def covariances_of(records: FloatArray, size: int) -> FloatArray:
    """Return the covariances of the weights, ``(n, p, p)``."""
    roots = roots_of(records, size)
    return roots.swapaxes(1, 2) @ roots


def packed_roots(covs: FloatArray) -> FloatArray:
    """Return the square roots of covariances ``(n, p, p)`` as records have them, ``R`` with ``R'R = C``.

    Examples
    --------
    >>> cov = np.array([[[2.0, 1.0], [1.0, 3.0]]])
    >>> record = np.concatenate([np.zeros(HEAD + 2), packed_roots(cov)[0]])
    >>> bool(np.allclose(covariances_of(record[None], 2), cov))
    True
    """
    # Cholesky's factor from the last weight to the first is upper triangular.
    upper = np.linalg.cholesky(covs[:, ::-1, ::-1])[:, ::-1, ::-1]
    below, across = np.tril_indices(covs.shape[1])
    return np.asarray(upper.swapaxes(1, 2)[:, below, across])


def trusts_of(records: FloatArray, size: int) -> FloatArray:
    """Return the numbers of the trust in targets, ``(n, 9)``, or ``(n, 0)`` where all are trusted."""
    return records[:, record_width(size) :]


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
