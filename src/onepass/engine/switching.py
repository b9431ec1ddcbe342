"""Weights of hypotheses that compete row after row: Bayes' rule, where the truth may switch from one to another.

Before each row any hypothesis may take over with a small probability. So none ever loses all of its weight, and one
that has been wrong for long can be right again within a few rows.
"""

import cython
import numpy as np
from cython.cimports.libc.math import INFINITY, exp, log


def _weigh(count, log_densities, stride, switching, weights, before, after):
    """Weigh ``count`` hypotheses by a row's log densities, ``stride`` apart; the log density of their mixture."""
    k: cython.Py_ssize_t
    most = -INFINITY
    for k in range(count):
        before[k] = weights[k]
        after[k] = weights[k]
        most = max(most, log_densities[k * stride])
    if most == -INFINITY:  # impossible under all of them: it says nothing of which one is right
        return most
    total = 0.0
    for k in range(count):
        gap = log_densities[k * stride] - most
        after[k] = weights[k] * (exp(gap) if gap < 0.0 else 1.0)
        total += after[k]
    for k in range(count):
        after[k] /= total
        weights[k] = (1.0 - switching) * after[k] + switching / count
    return most + log(total)


def switch_rows(log_densities, weights, switching, evidence):
    """Weigh hypotheses by the log densities ``(K, n)`` that each predicted for rows, one row after the other.

    ``weights``, ``(K,)``, are those before the first row, and are changed to those before the next one. Returned are the
    weights before each row and after it, ``(n, K)``, the log density of each row under the mixture, ``(n,)``, and
    ``evidence`` with these added.
    """
    count: cython.Py_ssize_t = log_densities.shape[0]
    n: cython.Py_ssize_t = log_densities.shape[1]
    i: cython.Py_ssize_t
    before = np.empty((n, count))
    after = np.empty((n, count))
    mixture = np.empty(n)
    before_view: cython.double[:, ::1] = before
    after_view: cython.double[:, ::1] = after
    mixture_view: cython.double[::1] = mixture
    for i in range(n):
        mixture_view[i] = _weigh(
            count,
            cython.address(log_densities[0, i]),
            n,
            switching,
            cython.address(weights[0]),
            cython.address(before_view[i, 0]),
            cython.address(after_view[i, 0]),
        )
        evidence += mixture_view[i]
    return before, after, mixture, evidence
