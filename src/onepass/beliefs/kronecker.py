"""A matrix-normal belief about the weights of one layer in parameters that add up, for merging.

The precision of weights ``W`` with the covariance ``B ⊗ A`` is ``B⁻¹ ⊗ A⁻¹``, and a sum of such products is none. Its
partial traces are sums, though: the mean over outputs ``T_A = tr(B⁻¹)/m A⁻¹`` of the precision's diagonal blocks, and
the like mean over inputs ``T_B = tr(A⁻¹)/n B⁻¹``. A product is known by them, ``T_B ⊗ T_A / τ`` with ``τ`` the mean of
all weights' precisions, so they are what is added and subtracted; what they make of a sum is an approximation of it
that keeps both partial traces, and that is exact where the beliefs differ in one factor only.
"""

from dataclasses import dataclass
from typing import Self

import numpy as np

from onepass._typing import FloatArray
from onepass.beliefs.base import Natural
from onepass.beliefs.full import covariance_root

__all__ = ["KroneckerGaussian"]


@dataclass(frozen=True)
class KroneckerGaussian:
    """A Gaussian about weights ``(m, n)`` whose covariance is ``B ⊗ A``, in double precision.

    Examples
    --------
    >>> belief = KroneckerGaussian(np.ones((2, 3)), np.eye(2), np.diag([1.0, 0.5, 0.5]))
    >>> natural = belief.natural(np.zeros((2, 3)))
    >>> natural.precision_mean
    array([[1., 4., 4.],
           [1., 4., 4.]])
    >>> KroneckerGaussian.from_natural(natural.precision, natural.precision_mean, np.zeros((2, 3))).mean
    array([[1., 1., 1.],
           [1., 1., 1.]])
    """

    mean: FloatArray
    """``(m, n)``."""
    output_root: FloatArray
    """Any root ``Q`` of ``B = Q Q'``, ``(m, m)``."""
    input_root: FloatArray
    """Any root ``R`` of ``A = R R'``, ``(n, n)``."""

    def natural(self, centre: FloatArray) -> Natural:
        """Restate the belief by the partial traces of its precision, ``T_A`` and then ``T_B`` in one vector."""
        outer, inner = _inverse(self.output_root), _inverse(self.input_root)
        gap = outer @ (self.mean - centre) @ inner.T
        n_out, n_in = gap.shape
        volume = n_in * np.linalg.slogdet(self.output_root)[1] + n_out * np.linalg.slogdet(self.input_root)[1]
        # The trace of a precision is the sum of the squares of its root.
        over_inputs = np.square(outer).sum() / n_out * (inner.T @ inner)
        over_outputs = np.square(inner).sum() / n_in * (outer.T @ outer)
        traces = np.concatenate([over_inputs.ravel(), over_outputs.ravel()])
        return Natural(traces, outer.T @ gap @ inner, float(0.5 * np.square(gap).sum() + volume))

    @classmethod
    def from_natural(cls, precision: FloatArray, precision_mean: FloatArray, centre: FloatArray) -> Self:
        """Make the belief whose `natural` parameters these are; a ValueError where there is none."""
        n_out, n_in = centre.shape
        over_inputs, over_outputs = np.split(precision, [n_in**2])
        inner = covariance_root(over_inputs.reshape(n_in, n_in))
        outer = covariance_root(over_outputs.reshape(n_out, n_out))
        outer *= np.sqrt(over_inputs[:: n_in + 1].mean())
        shift = outer.T @ (outer @ precision_mean @ inner.T) @ inner
        return cls(centre + shift, outer.T, inner.T)


def _inverse(root: FloatArray) -> FloatArray:
    try:
        inverse = np.linalg.inv(root)
    except np.linalg.LinAlgError:
        inverse = np.full_like(root, np.inf)
    if not np.isfinite(inverse).all():
        raise ValueError("the covariance is singular, so it has no precision: some weights are known exactly")
    return np.asarray(inverse)
