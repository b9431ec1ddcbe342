"""An activation from any function, whose moments are computed by quadrature."""

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from onepass._typing import FloatArray
from onepass._validation import as_count
from onepass.activations.base import Moments, broadcast

__all__ = ["Quadrature", "gauss_hermite"]


class Quadrature:
    """Any function as an activation, with its moments computed by Gauss-Hermite quadrature.

    It is accurate for smooth functions that change little over one standard deviation of their input; for functions
    with kinks use `PiecewiseLinear`, which is exact.

    Parameters
    ----------
    function : callable
        Vectorised, from an array to an array of the same shape.
    n_nodes : int
        Number of points at which the function is evaluated, odd; take more for functions that bend more.

    Examples
    --------
    >>> import numpy as np
    >>> from onepass import Quadrature
    >>> swish = Quadrature(lambda a: a / (1 + np.exp(-a)))
    >>> print(f"{swish.moments(0.5, 0.1).mean:.4f}")
    0.3329
    """

    _STEP = 1e-4  # below this width the slope is that of the function smoothed over it: E[z f]/std cancels

    def __init__(self, function: Callable[[FloatArray], FloatArray], n_nodes: int = 51) -> None:
        if not callable(function):
            raise TypeError(f"function must be callable, got {function!r}")
        if as_count(n_nodes, "n_nodes") % 2 == 0:
            raise ValueError(f"n_nodes must be odd, got {n_nodes}")
        self.function = function
        self._nodes, self._weights = gauss_hermite(n_nodes)

    def __repr__(self) -> str:
        return f"Quadrature({self.function!r}, n_nodes={len(self._nodes)})"

    def __call__(self, a: ArrayLike, /) -> FloatArray:
        """Value at ``a``."""
        return np.asarray(self.function(np.asarray(a, dtype=np.float64)), dtype=np.float64)

    def moments(self, mean: ArrayLike, var: ArrayLike, /) -> Moments:
        """Sums over the nodes; the slope is ``cov(a, f) / var``."""
        mean, var = (value[..., None] for value in broadcast(mean, var))
        values = self(mean + np.sqrt(var) * self._nodes)
        mu_y = values @ self._weights
        width = np.maximum(np.sqrt(var), self._STEP)
        slope = self(mean + width * self._nodes) @ (self._weights * self._nodes) / width[..., 0]
        return Moments(mu_y, (values - mu_y[..., None]) ** 2 @ self._weights, slope)


def gauss_hermite(n: int) -> tuple[FloatArray, FloatArray]:
    """Nodes and weights of the expectation under a standard normal; ``n`` odd, the middle node exactly zero."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(n)
    nodes[n // 2] = 0.0
    return nodes, weights / weights.sum()
