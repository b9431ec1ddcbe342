"""A matrix-normal belief about the weights of one layer: the covariance of ``W`` is ``B ⊗ A``.

``A`` is over its inputs and ``B`` over its outputs, so that 300 units with 785 inputs take 0.7 million numbers and not
55 billion. Both are stored as square roots, ``A = P P'`` and ``B = Q Q'``. Inputs of the first layer that were 0 in all
rows are apart: their weights are independent and have the prior's variances.

A sum of covariances ``B ⊗ A``, or of precisions, is no such product. Where the belief drifts or forgets, the sum is
projected on the nearest product: that of the least divergence from it. In the eigenvectors of the factors, in units of
a prior with independent weights, both sums are diagonal, and the projection is that of a matrix of variances on an
outer product of two vectors. That step leaves no weight vaguer than the prior: without this bound idle weights of units
that are known would pull up those of all others, and with drift more at every step.

What is merged are partial traces of the precision ``B⁻¹ ⊗ A⁻¹``, which add up: the mean over outputs ``T_A = tr(B⁻¹)/m
A⁻¹`` of its diagonal blocks, and the like mean over inputs ``T_B = tr(A⁻¹)/n B⁻¹``. A product is known by them, ``T_B ⊗
T_A / τ`` with ``τ`` the mean of all weights' precisions; what they make of a sum is an approximation of it that keeps
both partial traces, and that is exact where the beliefs differ in one factor only.
"""

from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from onepass._typing import FloatArray
from onepass.beliefs.base import Natural
from onepass.beliefs.forgetting import reciprocals
from onepass.beliefs.full import covariance_root
from onepass.engine.network_layers import LayerForm, release
from onepass.engine.vector_matches import LEAST_LEFT
from onepass.layers import Wiring

__all__ = ["KroneckerGaussian", "nearest_outer_product"]

_SWEEPS = 30
_AGREED = 1e-12


def nearest_outer_product(values: FloatArray, largest: float = np.inf) -> tuple[FloatArray, FloatArray]:
    """Vectors ``b`` and ``a`` whose outer product, with no entry above ``largest``, is nearest to variances ``(m, n)``.

    Nearest is the Gaussian of the least divergence from the one with these variances: ``a`` are the means of the
    columns over ``b``, and ``b`` those of the rows over ``a``, or the largest that they may be. In logarithms of ``a``
    and ``b`` the divergence is convex, so alternating between the two finds the nearest with the bound too.

    Examples
    --------
    >>> b, a = nearest_outer_product(np.array([[1.0, 2.0], [2.0, 4.0]]))
    >>> np.outer(b, a)
    array([[1., 2.],
           [2., 4.]])
    """
    outer, inner = np.zeros(values.shape[0]), np.zeros(values.shape[1])
    rows, cols = values.any(axis=1), values.any(axis=0)  # others are known, and say nothing of the rest
    if not rows.any():
        return outer, inner
    unknown = values[np.ix_(rows, cols)]
    own, across = unknown.mean(axis=1), np.zeros(unknown.shape[1])
    for _ in range(_SWEEPS):
        own /= own.max()
        before, across = across, np.minimum((unknown / own[:, None]).mean(axis=0), largest)
        own = np.minimum((unknown / across).mean(axis=1), largest / across.max())
        if np.allclose(across, before, rtol=_AGREED, atol=0.0):
            break
    outer[rows], inner[cols] = own, across
    return outer, inner


class KroneckerGaussian:
    """A Gaussian about weights ``(m, n)`` whose covariance is ``B ⊗ A``; the arrays given are changed in place.

    Parameters
    ----------
    mean : (m, n) array
    output_root : (m, m) array
        Any root ``Q`` of ``B = Q Q'``.
    input_root : (n, n) array
        Any root ``P`` of ``A = P P'``.
    idle : (n,) array, optional
        Prior variances of inputs that were 0 so far, and 0 of all others.
    prior_outputs : (m,) array, optional
        By which the idle variances are multiplied for each output.

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

    name: ClassVar[str] = "kronecker"
    factorises: ClassVar[bool] = True
    takes_shared_weights: ClassVar[bool] = False

    def __init__(
        self,
        mean: FloatArray,
        output_root: FloatArray,
        input_root: FloatArray,
        idle: FloatArray | None = None,
        prior_outputs: FloatArray | None = None,
    ) -> None:
        self.mean, self.output_root, self.input_root = mean, output_root, input_root
        self.idle: FloatArray = np.zeros(mean.shape[1]) if idle is None else idle
        self.prior_outputs: FloatArray = np.zeros(len(mean)) if prior_outputs is None else prior_outputs

    @classmethod
    def within(cls, form: LayerForm, mean: FloatArray, values: FloatArray) -> Self:
        """Make the belief about a layer from the numbers in these arrays."""
        rows, cols = form.rows, form.cols
        inner, outer, idle, prior = np.split(values, np.cumsum([cols**2, rows**2, cols]))
        return cls(mean.reshape(rows, cols), outer.reshape(rows, rows), inner.reshape(cols, cols), idle, prior)

    @staticmethod
    def n_numbers(rows: int, cols: int) -> int:
        """Of both roots, and of the prior's variances."""
        return rows**2 + cols**2 + cols + rows

    @staticmethod
    def multiply_adds(rows: int, cols: int, n_outputs: int) -> int:
        """Of a row: one root is read twice and moved; the other is projected, turned and moved by all outputs."""
        return 3 * cols**2 + 3 * n_outputs * rows**2 + 4 * rows * cols

    def start(self, variance: FloatArray, is_first: bool = False) -> None:
        """Make the weights independent, with the nearest variances of this form; all inputs of the data are idle."""
        outer, inner = nearest_outer_product(variance.reshape(self.mean.shape))
        self.prior_outputs[...] = outer
        self.idle[...] = 0.0
        if is_first:
            self.idle[1:] = inner[1:]
        self.input_root[...] = np.diag(np.sqrt(np.where(self.idle > 0.0, 0.0, inner)))
        self.output_root[...] = np.diag(np.sqrt(outer))

    @property
    def is_seen(self) -> NDArray[np.bool_]:
        """Which inputs are in the product."""
        return np.asarray(self.idle == 0.0)

    @property
    def cov(self) -> tuple[FloatArray, FloatArray]:
        """``B`` over the outputs and ``A`` over the inputs, idle ones as they would join the product."""
        root = self._whole_input_root()
        return self.output_root @ self.output_root.T, root @ root.T

    def _whole_input_root(self) -> FloatArray:
        root, idle = self.input_root.copy(), np.flatnonzero(self.idle)
        release(idle, root, self.output_root, self.idle, self.prior_outputs)
        return root

    def marginal_variances(self) -> FloatArray:
        """Of all weights, ``(p,)``."""
        outer, inner = (np.square(root).sum(axis=1) for root in (self.output_root, self.input_root))
        return (np.outer(outer, inner) + np.outer(self.prior_outputs, self.idle)).ravel()

    def own_variance(self, z: FloatArray) -> FloatArray:
        """The variance that inputs ``(..., n)`` give each unit: ``B_uu z'A z``, and the prior's for idle inputs."""
        own = np.square(self.output_root).sum(axis=1)
        return np.asarray(
            np.multiply.outer(np.square(z @ self.input_root).sum(axis=-1), own)
            + np.multiply.outer(np.square(z) @ self.idle, self.prior_outputs)
        )

    def output_covariance(self, wiring: Wiring, z: FloatArray, jacobian: FloatArray) -> FloatArray:
        """``D B D' z'A z``, and ``D B0 D'`` for idle inputs, from derivatives in the units ``(n, K, m)``."""
        projected = jacobian @ self.output_root
        scale = np.square(z @ self.input_root).sum(axis=-1)
        cov = scale[:, None, None] * (projected @ projected.swapaxes(1, 2))
        if self.idle.any():
            scale = np.square(z) @ self.idle
            cov += scale[:, None, None] * ((jacobian * self.prior_outputs) @ jacobian.swapaxes(1, 2))
        return np.asarray(cov)

    def project(self, jacobian: FloatArray) -> FloatArray:
        """``C J``."""
        shaped = jacobian.reshape(*jacobian.shape[:-1], *self.mean.shape)
        product = self.output_root @ (self.output_root.T @ shaped @ self.input_root) @ self.input_root.T
        return (product + self.prior_outputs[:, None] * shaped * self.idle).reshape(jacobian.shape)

    def step(self, jacobian: FloatArray, information: FloatArray) -> None:
        """The nearest ``B ⊗ A`` to the posterior covariance, after one step of moment matching from the old one.

        ``A`` is the posterior's mean over outputs in units of the old ``B``, and ``B`` that over inputs in units of the
        old ``A``; a common scale is at its optimum. Idle inputs that the row has seen join the product before.
        """
        n_out, n_cols = self.mean.shape
        shaped = jacobian.reshape(-1, n_out, n_cols)
        new = np.flatnonzero((self.idle > 0.0) & shaped.any(axis=(0, 1)))
        release(new, self.input_root, self.output_root, self.idle, self.prior_outputs)
        self.idle[new] = 0.0
        n_in = np.count_nonzero(self.is_seen)
        # All in units of the old roots, which may be singular: X = Q'J P.
        seen = self.output_root.T @ shaped @ self.input_root
        informed = np.tensordot(information, seen, axes=1)
        inner = np.eye(n_cols) - np.einsum("kui,kuj->ij", seen, informed) / n_out
        outer = np.eye(n_out) - np.einsum("kui,kvi->uv", seen, informed) / n_in
        # The mean of the posterior's variances in units of the new factors.
        (inner_root, inner_inverse), (outer_root, outer_inverse) = _root_and_inverse(inner), _root_and_inverse(outer)
        total = (np.trace(inner_inverse) - n_cols + n_in) * np.trace(outer_inverse)
        total -= np.einsum("uv,kvi,ij,kuj->", outer_inverse, seen, inner_inverse, informed, optimize=True)
        self.input_root[...] = self.input_root @ inner_root
        self.output_root[...] = np.sqrt(total / (n_out * n_in)) * self.output_root @ outer_root

    def sample(self, n: int, rng: np.random.Generator) -> FloatArray:
        """Draw how far weights are off their mean, ``(n, p)``."""
        draws = rng.standard_normal((n, *self.mean.shape))
        idle = np.sqrt(np.outer(self.prior_outputs, self.idle))
        return (self.output_root @ draws @ self.input_root.T + idle * draws).reshape(n, -1)

    def forget(self, keep: float, towards: FloatArray, gap: FloatArray) -> None:
        """The nearest belief to ``(k C⁻¹ + (1 - k) C0⁻¹)⁻¹``; the mean moves as this one's does."""
        base = _PriorBasis(self, towards)
        faded = base.variances / (keep + (1.0 - keep) * base.variances)
        seen = self.is_seen
        gap = gap.reshape(self.mean.shape)[:, seen]
        self.mean[:, seen] += (1.0 - keep) * base.scaled(faded * base.unscaled(gap))
        base.assign(faded)

    def drift(self, share: float, prior_variance: FloatArray) -> None:
        """The nearest belief to ``(1 - share) C + share C0``."""
        base = _PriorBasis(self, prior_variance)
        base.assign((1.0 - share) * base.variances + share)

    def take_over(self, fewer: Any, positions: NDArray[np.int64]) -> None:
        """Take what a belief about the first of these outputs, or of these inputs, has learned.

        Other outputs have the same correlations between inputs, and on average over these the variances that they had;
        other inputs likewise.
        """
        n_rows, n_cols = fewer.mean.shape
        started = np.square(self.input_root).sum(axis=1) + self.idle
        by_inputs = (np.square(fewer.input_root).sum(axis=1) / started[:n_cols])[fewer.is_seen]
        by_outputs = np.square(fewer.output_root).sum(axis=1) / np.square(self.output_root[:n_rows]).sum(axis=1)
        self.output_root /= np.sqrt(by_inputs.mean())
        self.input_root /= np.sqrt(by_outputs.mean())
        self.mean.reshape(-1)[positions] = fewer.mean.ravel()
        self.idle[:n_cols] = fewer.idle
        self.input_root[:n_cols, :n_cols] = fewer.input_root
        self.output_root[:n_rows, :n_rows] = fewer.output_root

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

    def part(self) -> Self:
        """A copy in double precision, for merging; idle inputs join the product."""
        numbers = (self.mean, self.output_root, self._whole_input_root())
        return type(self)(*(array.astype(np.float64) for array in numbers))

    def assign(self, part: Self) -> None:
        """Take the numbers of such a belief."""
        self.mean[...], self.output_root[...], self.input_root[...] = part.mean, part.output_root, part.input_root
        self.idle[...] = 0.0


def _root_and_inverse(left: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The symmetric root of what is left of a covariance, in units of it, and the inverse."""
    # Another root would mix up the columns, those of idle inputs with others.
    values, vectors = np.linalg.eigh(left)
    values = np.maximum(values, LEAST_LEFT)
    return (vectors * np.sqrt(values)) @ vectors.T, (vectors / values) @ vectors.T


class _PriorBasis:
    """The eigenvectors of a layer's factors in units of a prior with independent weights; idle inputs are left out."""

    def __init__(self, layer: KroneckerGaussian, prior_variance: FloatArray) -> None:
        seen = layer.is_seen
        prior = prior_variance.astype(np.float64).reshape(layer.mean.shape)[:, seen]
        outer, inner = nearest_outer_product(prior)
        self.layer, self.outer_unit, self.inner_unit = layer, np.sqrt(outer), np.sqrt(inner)
        self.seen = np.ix_(seen, seen)
        self.outer, self.outer_vectors = _eigen(layer.output_root, self.outer_unit)
        self.inner, self.inner_vectors = _eigen(layer.input_root[self.seen], self.inner_unit)
        self.variances = np.outer(self.outer, self.inner)

    def unscaled(self, weights: FloatArray) -> FloatArray:
        """Weights in these coordinates, as the transpose of `scaled` takes them."""
        units = reciprocals(self.outer_unit)[:, None] * weights * reciprocals(self.inner_unit)
        return np.asarray(self.outer_vectors.T @ units @ self.inner_vectors)

    def scaled(self, values: FloatArray) -> FloatArray:
        """Coordinates as weights."""
        units = self.outer_vectors @ values @ self.inner_vectors.T
        return np.asarray(self.outer_unit[:, None] * units * self.inner_unit)

    def assign(self, variances: FloatArray) -> None:
        """Give the layer the nearest belief with these variances along the eigenvectors that is within the prior."""
        outer, inner = nearest_outer_product(variances, largest=1.0)
        self.layer.output_root[...] = self.outer_unit[:, None] * self.outer_vectors * np.sqrt(outer)
        self.layer.input_root[self.seen] = self.inner_unit[:, None] * self.inner_vectors * np.sqrt(inner)


def _eigen(root: FloatArray, unit: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Eigenvalues and eigenvectors of a covariance in units, from its root: nothing is squared."""
    vectors, values, _ = np.linalg.svd(reciprocals(unit)[:, None] * root.astype(np.float64))
    return np.square(values), vectors


def _inverse(root: FloatArray) -> FloatArray:
    try:
        inverse = np.linalg.inv(root)
    except np.linalg.LinAlgError:
        inverse = np.full_like(root, np.inf)
    if not np.isfinite(inverse).all():
        raise ValueError("the covariance is singular, so it has no precision: some weights are known exactly")
    return np.asarray(inverse)
