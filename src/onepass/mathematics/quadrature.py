"""Nodes and weights of the integrals that are not closed forms."""

import numpy as np

from onepass._typing import FloatArray

__all__ = ["gauss_hermite"]


def gauss_hermite(n: int) -> tuple[FloatArray, FloatArray]:
    """Nodes and weights of the expectation under a standard normal; ``n`` odd, the middle node exactly zero."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(n)
    nodes[n // 2] = 0.0
    return nodes, weights / weights.sum()
