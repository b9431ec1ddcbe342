"""A Gaussian belief about the weights of a network whose layers are independent, each in a form of its own.

A wide layer has a matrix-normal belief: the covariance of its weights ``W`` is ``B ⊗ A``, ``A`` over its inputs and
``B`` over its outputs, so that 300 units with 785 inputs take 0.7 million numbers and not 55 billion. A small layer,
and the filters of a convolution, have a full covariance. Each is stored as a square root: ``A = P P'``, ``B = Q Q'``,
and full ``C = Q Q'``, see `onepass.engine.network_layers`. Inputs of the first layer that were 0 in all rows are apart:
their weights are independent and have the prior's variances.

A sum of covariances ``B ⊗ A``, or of precisions, is no such product. Where the belief drifts, forgets or is merged, the
sum is projected on the nearest product: that of the least divergence from it. In the eigenvectors of the factors, in
units of a prior with independent weights, both sums are diagonal, and the projection is that of a matrix of variances
on an outer product of two vectors. That step leaves no weight vaguer than the prior: without this bound idle weights
of units that are known would pull up those of all others, and with drift more at every step.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import rq

from onepass._typing import FloatArray
from onepass.beliefs.diagonal import DiagonalGaussian
from onepass.beliefs.forgetting import fade_root, lowered, prior_gap
from onepass.beliefs.full import FullGaussian
from onepass.beliefs.kronecker import KroneckerGaussian
from onepass.engine.network_layers import FARTHEST, LayerForm, release

__all__ = ["FullLayer", "KroneckerLayer", "LayeredGaussian", "nearest_outer_product"]

_SWEEPS = 30
_AGREED = 1e-12
_LEAST_LEFT = 1e-12  # of a variance, in one direction, by one row


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


class FullLayer:
    """The weights of a small layer, with all correlations between them."""

    def __init__(self, form: LayerForm, mean: FloatArray, values: FloatArray) -> None:
        self.mean: FloatArray = mean
        self.root: FloatArray = values.reshape(form.width, form.width)

    def start(self, variance: FloatArray, is_first: bool = False) -> None:
        """Make the weights independent."""
        self.root[...] = np.diag(np.sqrt(variance))

    @property
    def cov(self) -> FloatArray:
        """The covariance of the weights, ``(p, p)``."""
        return np.asarray(self.root @ self.root.T)

    def variances(self) -> FloatArray:
        """Of all weights, ``(p,)``."""
        return np.asarray(np.square(self.root).sum(axis=1))

    def project(self, jacobian: FloatArray) -> FloatArray:
        """``C J``."""
        return np.asarray((jacobian @ self.root) @ self.root.T)

    def step(self, jacobian: FloatArray, information: FloatArray) -> None:
        """``C -= C J M J'C``: what is left between the roots, ``I - E'M E``, has a root by its eigenvalues."""
        projected = jacobian @ self.root
        values, vectors = np.linalg.eigh(np.eye(len(self.root)) - projected.T @ information @ projected)
        self.root[...] = self.root @ (vectors * np.sqrt(np.maximum(values, 0.0))) @ vectors.T

    def sample(self, n: int, rng: np.random.Generator) -> FloatArray:
        """Draw how far weights are off their mean, ``(n, p)``."""
        return np.asarray(rng.standard_normal((n, len(self.mean))) @ self.root.T)

    def forget(self, keep: float, towards: FloatArray, gap: FloatArray) -> None:
        """See `onepass.beliefs.forgetting`."""
        # Which has the roots R of C = R'R.
        root, shift = fade_root(_triangle(self.root).T, np.sqrt(towards), gap, keep)
        self.root[...] = root.T
        self.mean += shift

    def drift(self, share: float, prior_variance: FloatArray) -> None:
        """``C <- (1 - share) C + share C0``."""
        both = np.hstack([np.sqrt(1.0 - share) * self.root, np.diag(np.sqrt(share * prior_variance))])
        self.root[...] = _triangle(both)

    def take_over(self, fewer: Any, positions: NDArray[np.int64]) -> None:
        """Take what a belief about the weights at some ``positions`` has learned; the others stay as they are."""
        self.mean[positions] = fewer.mean
        self.root[np.ix_(positions, positions)] = fewer.root

    def part(self) -> FullGaussian:
        """As a belief of its own, in double precision, with the root ``R'R = C``."""
        root = np.ascontiguousarray(_triangle(self.root).T)
        return FullGaussian.from_arrays(self.mean.astype(np.float64), root=root)

    def assign(self, part: FullGaussian) -> None:
        """Take the numbers of such a belief."""
        self.mean[...], self.root[...] = part.mean, part.to_root().T


def _triangle(root: FloatArray) -> FloatArray:
    """The upper triangular root of the same covariance, whose own may have more columns than rows."""
    upper, _ = rq(root.astype(np.float64), mode="economic", check_finite=False)
    return np.asarray(upper)


class KroneckerLayer:
    """The weights of a wide layer, whose covariance is ``B ⊗ A``."""

    def __init__(self, form: LayerForm, mean: FloatArray, values: FloatArray) -> None:
        self.mean = mean
        self.weights: FloatArray = mean.reshape(form.rows, form.cols)
        split = form.cols**2
        self.input_root: FloatArray = values[:split].reshape(form.cols, form.cols)
        ends = split + np.array([0, form.rows**2, form.rows**2 + form.cols])
        self.output_root: FloatArray = values[ends[0] : ends[1]].reshape(form.rows, form.rows)
        self.idle: FloatArray = values[ends[1] : ends[2]]
        self.prior_outputs: FloatArray = values[ends[2] :]

    def start(self, variance: FloatArray, is_first: bool = False) -> None:
        """Make the weights independent, with the nearest variances of this form; all inputs of the data are idle."""
        outer, inner = nearest_outer_product(variance.reshape(self.weights.shape))
        self.prior_outputs[...] = outer
        self.idle[...] = 0.0
        if is_first:
            self.idle[:-1] = inner[:-1]
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

    def variances(self) -> FloatArray:
        """Of all weights, ``(p,)``."""
        outer, inner = (np.square(root).sum(axis=1) for root in (self.output_root, self.input_root))
        return (np.outer(outer, inner) + np.outer(self.prior_outputs, self.idle)).ravel()

    def project(self, jacobian: FloatArray) -> FloatArray:
        """``C J``."""
        shaped = jacobian.reshape(*jacobian.shape[:-1], *self.weights.shape)
        product = self.output_root @ (self.output_root.T @ shaped @ self.input_root) @ self.input_root.T
        return (product + self.prior_outputs[:, None] * shaped * self.idle).reshape(jacobian.shape)

    def step(self, jacobian: FloatArray, information: FloatArray) -> None:
        """The nearest ``B ⊗ A`` to the posterior covariance, after one step of moment matching from the old one.

        ``A`` is the posterior's mean over outputs in units of the old ``B``, and ``B`` that over inputs in units of the
        old ``A``; a common scale is at its optimum. Idle inputs that the row has seen join the product before.
        """
        n_out, n_cols = self.weights.shape
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
        draws = rng.standard_normal((n, *self.weights.shape))
        idle = np.sqrt(np.outer(self.prior_outputs, self.idle))
        return (self.output_root @ draws @ self.input_root.T + idle * draws).reshape(n, -1)

    def forget(self, keep: float, towards: FloatArray, gap: FloatArray) -> None:
        """The nearest belief to ``(k C⁻¹ + (1 - k) C0⁻¹)⁻¹``; the mean moves as this one's does."""
        base = _PriorBasis(self, towards)
        faded = base.variances / (keep + (1.0 - keep) * base.variances)
        seen = self.is_seen
        gap = gap.reshape(self.weights.shape)[:, seen]
        self.weights[:, seen] += (1.0 - keep) * base.scaled(faded * base.unscaled(gap))
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
        n_rows, n_cols = fewer.weights.shape
        columns = positions[:n_cols]  # of the first output's weights
        started = np.square(self.input_root).sum(axis=1) + self.idle
        by_inputs = (np.square(fewer.input_root).sum(axis=1) / started[columns])[fewer.is_seen]
        by_outputs = np.square(fewer.output_root).sum(axis=1) / np.square(self.output_root[:n_rows]).sum(axis=1)
        self.output_root /= np.sqrt(by_inputs.mean())
        self.input_root /= np.sqrt(by_outputs.mean())
        self.mean[positions] = fewer.mean
        self.idle[columns] = fewer.idle
        self.input_root[columns] = 0.0
        self.input_root[np.ix_(columns, columns)] = fewer.input_root
        self.output_root[:n_rows, :n_rows] = fewer.output_root

    def part(self) -> KroneckerGaussian:
        """As a belief of its own, in double precision; idle inputs join the product."""
        return KroneckerGaussian(
            *(numbers.astype(np.float64) for numbers in (self.weights, self.output_root, self._whole_input_root()))
        )

    def assign(self, part: KroneckerGaussian) -> None:
        """Take the numbers of such a belief."""
        self.weights[...], self.output_root[...], self.input_root[...] = part.mean, part.output_root, part.input_root
        self.idle[...] = 0.0


def _root_and_inverse(left: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The symmetric root of what is left of a covariance, in units of it, and the inverse."""
    # Another root would mix up the columns, those of idle inputs with others.
    values, vectors = np.linalg.eigh(left)
    values = np.maximum(values, _LEAST_LEFT)
    return (vectors * np.sqrt(values)) @ vectors.T, (vectors / values) @ vectors.T


class _PriorBasis:
    """The eigenvectors of a layer's factors in units of a prior with independent weights; idle inputs are left out."""

    def __init__(self, layer: KroneckerLayer, prior_variance: FloatArray) -> None:
        seen = layer.is_seen
        prior = prior_variance.astype(np.float64).reshape(layer.weights.shape)[:, seen]
        outer, inner = nearest_outer_product(prior)
        self.layer, self.outer_unit, self.inner_unit = layer, np.sqrt(outer), np.sqrt(inner)
        self.seen = np.ix_(seen, seen)
        self.outer, self.outer_vectors = _eigen(layer.output_root, self.outer_unit)
        self.inner, self.inner_vectors = _eigen(layer.input_root[self.seen], self.inner_unit)
        self.variances = np.outer(self.outer, self.inner)

    def unscaled(self, weights: FloatArray) -> FloatArray:
        """Weights in these coordinates, as the transpose of `scaled` takes them."""
        units = lowered(self.outer_unit)[:, None] * weights * lowered(self.inner_unit)
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
    vectors, values, _ = np.linalg.svd(lowered(unit)[:, None] * root.astype(np.float64))
    return np.square(values), vectors


class LayeredGaussian:
    """A Gaussian about the weights of a network whose layers are independent.

    Parameters
    ----------
    mean, variance : (p,) arrays
    forms : one per layer
    """

    def __init__(self, mean: FloatArray, variance: FloatArray, forms: Sequence[LayerForm]) -> None:
        self.forms: tuple[LayerForm, ...] = tuple(forms)
        self._bind(np.array(mean), np.zeros(sum(form.n_numbers for form in forms), dtype=np.asarray(mean).dtype))
        for number, (layer, part) in enumerate(zip(self.layers, self._split(variance), strict=True)):
            layer.start(part, number == 0)

    def _bind(self, mean: FloatArray, values: FloatArray) -> None:
        self.mean: FloatArray = mean
        self.values: FloatArray = values
        layers: list[FullLayer | KroneckerLayer] = []
        at = 0
        for form, own in zip(self.forms, self._split(mean), strict=True):
            kind = KroneckerLayer if form.is_kronecker else FullLayer
            layers.append(kind(form, own, values[at : at + form.n_numbers]))
            at += form.n_numbers
        self.layers: tuple[FullLayer | KroneckerLayer, ...] = tuple(layers)

    def _split(self, flat: FloatArray) -> list[FloatArray]:
        """The part of each layer of vectors ``(..., p)``."""
        ends = np.cumsum([form.rows * form.cols for form in self.forms])
        return np.split(flat, ends[:-1], axis=-1)

    @property
    def cov(self) -> list[Any]:
        """Of each layer its covariance, or a pair: ``B`` over its outputs and ``A`` over its inputs."""
        return [layer.cov for layer in self.layers]

    def copy(self) -> Self:
        """Make an independent copy."""
        twin = object.__new__(type(self))
        twin.forms = self.forms
        twin._bind(self.mean.copy(), self.values.copy())
        return twin

    def parts(self) -> tuple[FullGaussian | KroneckerGaussian, ...]:
        """Each layer as a belief of its own, for its natural parameters."""
        return tuple(layer.part() for layer in self.layers)

    @classmethod
    def from_parts(cls, parts: Sequence[Any], forms: Sequence[LayerForm]) -> Self:
        """Put beliefs about the layers together."""
        size = sum(part.mean.size for part in parts)
        belief = cls(np.zeros(size), np.zeros(size), forms)
        for layer, part in zip(belief.layers, parts, strict=True):
            layer.assign(part)
        return belief

    def __reduce__(self) -> Any:
        return _restored, (type(self), self.forms, self.mean, self.values)

    def take_over(self, fewer: "LayeredGaussian", positions: NDArray[np.int64]) -> None:
        """Take what a belief about a network with fewer inputs or outputs has learned, whose weights stand there."""
        start = other_start = 0
        for layer, other in zip(self.layers, fewer.layers, strict=True):
            layer.take_over(other, positions[other_start : other_start + len(other.mean)] - start)
            start, other_start = start + len(layer.mean), other_start + len(other.mean)

    def marginal_variances(self) -> FloatArray:
        """Variance of each weight, ``(p,)``."""
        return np.concatenate([layer.variances() for layer in self.layers])

    def project_outputs(self, jacobian: FloatArray) -> tuple[FloatArray, FloatArray]:
        """``c = C J`` and ``S = J'C J`` for derivatives ``(..., K, p)``: ``(..., K, p)`` and ``(..., K, K)``."""
        parts = zip(self.layers, self._split(jacobian), strict=True)
        gain = np.concatenate([layer.project(part) for layer, part in parts], axis=-1)
        return gain, gain @ jacobian.swapaxes(-1, -2)

    def step(self, gain: FloatArray, jacobian: FloatArray, score: FloatArray, information: FloatArray) -> None:
        """Take the rank-K step ``m += c score``, and give each layer the nearest covariance to ``C - c M c'``.

        With hidden layers the mean does not move farther than the network may be taken for linear.
        """
        length = np.sqrt(score @ (gain @ jacobian.T) @ score)
        near = 1.0 if len(self.layers) == 1 or length <= FARTHEST else FARTHEST / length
        self.mean += near * score @ gain
        with self._found_later():
            for layer, part in zip(self.layers, self._split(jacobian), strict=True):
                layer.step(part, information)

    def forget(self, keep: float, prior: DiagonalGaussian) -> None:
        """Let rows count ``keep`` of what they did and the prior the rest: see `onepass.beliefs.forgetting`."""
        towards, gap = prior_gap(self.mean, self.marginal_variances(), prior.mean, prior.variance)
        with self._found_later():
            for layer, own, way in zip(self.layers, self._split(towards), self._split(gap), strict=True):
                layer.forget(keep, own, way)

    def drift(self, share: float, prior: DiagonalGaussian) -> None:
        """Let the weights move by a share of the prior's variance: ``C <- (1 - share) C + share C0``."""
        with self._found_later():
            for layer, own in zip(self.layers, self._split(prior.variance), strict=True):
                layer.drift(share, own)

    @contextmanager
    def _found_later(self) -> Iterator[None]:
        """For steps that can't be taken as numbers are not finite, which the check of what was learned is to find."""
        try:
            yield
        except np.linalg.LinAlgError:
            self.values[...] = np.nan

    def sample(self, n: int, rng: np.random.Generator) -> FloatArray:
        """Draw weights, ``(n, p)``."""
        return np.asarray(self.mean + np.concatenate([layer.sample(n, rng) for layer in self.layers], axis=1))


def _restored(kind: Any, forms: Any, mean: FloatArray, values: FloatArray) -> Any:
    belief = object.__new__(kind)
    belief.forms = forms
    belief._bind(mean, values)
    return belief
