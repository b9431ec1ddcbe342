"""Weights of hypotheses that compete row after row: Bayes' rule, where the truth may switch from one to another.

Before each row any hypothesis may take over with a small probability. So none ever loses all of its weight, and one
that has been wrong for long can be right again within a few rows.
"""

import cython
import numpy as np
from cython.cimports.libc.math import INFINITY, exp, log


def _weigh(count, log_densities, stride, entries, weights, before, after):
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
    switching = 0.0
    for k in range(count):
        switching += entries[k]
    for k in range(count):
        after[k] /= total
        weights[k] = (1.0 - switching) * after[k] + entries[k]
    return most + log(total)


class Switching:
    """Weights of hypotheses, and what the mixture of these has been worth.

    Parameters
    ----------
    weights : (K,) array
        Those with which the next row is predicted.
    entries : (K,) array
        Probability that each hypothesis takes over before a row, whichever was right so far.
    log_evidence : sum of the log densities of all rows under the mixture

    Attributes
    ----------
    posterior : (n, K) array
        Weights after each row of the last call of `learn`.
    """

    def __init__(self, weights, entries, log_evidence: float = 0.0):
        self.values = np.array(weights, dtype=np.float64)
        self.entries, self.log_evidence = np.array(entries, dtype=np.float64), log_evidence
        self.posterior, self.memory = np.empty((0, len(self.values))), np.empty((2, len(self.values)))

    @property
    def weights(self) -> FloatArray:
        """The weights with which the next row is predicted, ``(K,)``."""
        return np.array(self.values)

    def copy(self) -> Switching:
        """Make an independent copy."""
        twin = Switching(self.values, self.entries, self.log_evidence)
        twin.posterior = self.posterior
        return twin

    def __reduce__(self):
        return Switching, (np.asarray(self.values), np.asarray(self.entries), self.log_evidence)

    def learn_row(self, log_densities):
        """Weigh by the log densities ``(K,)`` of one row, as `learn` does."""
        self.log_evidence += _weigh(
            self.values.shape[0],
            cython.address(log_densities[0]),
            1,
            cython.address(self.entries[0]),
            cython.address(self.values[0]),
            cython.address(self.memory[0, 0]),
            cython.address(self.memory[1, 0]),
        )

    def learn(self, log_densities) -> tuple["FloatArray", "FloatArray"]:
        """Weigh by the log densities ``(K, n)`` that each predicted for rows, one row after the other.

        Returned are the weights before each row, ``(n, K)``, and its log density under the mixture, ``(n,)``.
        """
        count: cython.Py_ssize_t = log_densities.shape[0]
        n: cython.Py_ssize_t = log_densities.shape[1]
        i: cython.Py_ssize_t
        before = np.empty((n, count))
        mixture = np.empty(n)
        self.posterior = np.empty((n, count))
        before_view: cython.double[:, ::1] = before
        after_view: cython.double[:, ::1] = self.posterior
        mixture_view: cython.double[::1] = mixture
        for i in range(n):
            mixture_view[i] = _weigh(
                count,
                cython.address(log_densities[0, i]),
                n,
                cython.address(self.entries[0]),
                cython.address(self.values[0]),
                cython.address(before_view[i, 0]),
                cython.address(after_view[i, 0]),
            )
            self.log_evidence += mixture_view[i]
        return before, mixture
