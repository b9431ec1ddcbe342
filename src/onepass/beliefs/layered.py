"""A Gaussian belief about the weights of a network whose layers are independent, each in a form of its own.

A wide layer has a matrix-normal belief, see `onepass.beliefs.kronecker`. A small layer, and the filters of a
convolution, have a full covariance. Each is stored as a square root, see `onepass.engine.network_layers`, so any finite
numbers make a covariance and there is nothing to check in a file.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import rq

from onepass._typing import FloatArray
from onepass._validation import one_of
from onepass.beliefs.diagonal import DiagonalGaussian
from onepass.beliefs.forgetting import fade_root, prior_gap
from onepass.beliefs.full import FullGaussian
from onepass.beliefs.kronecker import KroneckerGaussian
from onepass.beliefs.network import NetworkBelief, UnitVariances
from onepass.engine.network_layers import FARTHEST, LayerForm, LayerShape, OpenBlock, learn_layers
from onepass.engine.network_records import CompiledPass, NetworkRule, Sites
from onepass.engine.threads import threads_for
from onepass.engine.vector_matches import NetworkProgress
from onepass.layers import Wiring
from onepass.layers.layout import Layout

__all__ = ["FullLayer", "LayeredGaussian"]


class FullLayer:
    """The weights of a small layer, or of filters, with all correlations between them: ``C = Q Q'``.

    It is the full Gaussian in the form that the kernel of layers needs: any root, while `FullGaussian` keeps a
    triangular one.
    """

    name: ClassVar[str] = "full"
    factorises: ClassVar[bool] = False
    takes_shared_weights: ClassVar[bool] = True

    def __init__(self, mean: FloatArray, root: FloatArray) -> None:
        self.mean, self.root = mean, root

    @classmethod
    def within(cls, form: LayerForm, mean: FloatArray, values: FloatArray) -> Self:
        """Make the belief about a layer from the numbers in these arrays."""
        return cls(mean, values.reshape(form.width, form.width))

    @staticmethod
    def n_numbers(rows: int, cols: int) -> int:
        """Of the root."""
        return (rows * cols) ** 2

    @staticmethod
    def multiply_adds(rows: int, cols: int, n_outputs: int) -> int:
        """Of a row: the root is read for every unit, then projected, turned and moved by all outputs."""
        return rows * cols**2 + 3 * n_outputs * (rows * cols) ** 2 + 4 * rows * cols

    def start(self, variance: FloatArray, is_first: bool = False) -> None:
        """Make the weights independent."""
        self.root[...] = np.diag(np.sqrt(variance))

    @property
    def cov(self) -> FloatArray:
        """The covariance of the weights, ``(p, p)``."""
        return np.asarray(self.root @ self.root.T)

    def marginal_variances(self) -> FloatArray:
        """Of all weights, ``(p,)``."""
        return np.asarray(np.square(self.root).sum(axis=1))

    def own_variance(self, z: FloatArray) -> FloatArray:
        """The variance that inputs give each unit: ``z'C z`` with its own covariance."""
        units = self.root.reshape(-1, z.shape[-1], len(self.root))
        blocks = units @ units.swapaxes(1, 2)
        return np.stack([((z @ block) * z).sum(axis=-1) for block in blocks], axis=-1)

    def output_covariance(self, wiring: Wiring, z: FloatArray, jacobian: FloatArray) -> FloatArray:
        """``J'C J``, from derivatives in the units."""
        in_weights = wiring.weight_jacobian(z, jacobian)
        projected = in_weights.reshape(*in_weights.shape[:2], -1) @ self.root
        return np.asarray(projected @ projected.swapaxes(1, 2))

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


LayerBelief = FullLayer | KroneckerGaussian
Forms = tuple[str, ...] | None
_FORMS: dict[str, type[FullLayer] | type[KroneckerGaussian]] = {
    kind.name: kind for kind in (KroneckerGaussian, FullLayer)
}


class LayeredGaussian(NetworkBelief):
    """A Gaussian about the weights of a network whose layers are independent, each ``B ⊗ A`` or full.

    Parameters
    ----------
    layout, mean, variance : as of every `NetworkBelief`; variances become the nearest that the layers can have
    forms : ``"kronecker"`` or ``"full"``, one per layer; by default Kronecker but for layers whose units share weights
    """

    name = "kronecker"
    meaning = "correlations between weights of one layer are kept, as inputs' times units'"
    takes_shared_weights = True
    for_wide_layers = True
    drifts_in_steps = True
    learns_batches = False
    most_multiply_adds = 40_000_000

    @classmethod
    def check_layout(cls, layout: Layout, **settings: Any) -> None:
        """Raise a ValueError unless there is a form for every layer that it can have."""
        forms = settings.get("forms") or _default_forms(layout)
        if len(forms) != layout.n_layers:
            raise ValueError(
                f"covariance must have one form for each of the {layout.n_layers} layers of weights, got {forms}"
            )
        for number, (layer, form) in enumerate(zip(layout.stack, forms, strict=True)):
            one_of(form, tuple(_FORMS), f"covariance[{number}]")
            if layer.shares_weights and not _FORMS[form].takes_shared_weights:
                raise ValueError(f"covariance[{number}] must be 'full' for {layer}, got {form!r}")

    @classmethod
    def n_numbers(cls, layout: Layout, forms: Forms = None) -> int:
        """Those of all layers."""
        shapes = zip(layout.shapes, forms or _default_forms(layout), strict=True)
        return sum(_FORMS[form].n_numbers(*shape) for shape, form in shapes)

    @classmethod
    def multiply_adds(cls, layout: Layout, forms: Forms = None) -> int:
        """Those of all layers."""
        shapes = zip(layout.shapes, forms or _default_forms(layout), strict=True)
        return sum(_FORMS[form].multiply_adds(*shape, layout.widths[-1]) for shape, form in shapes)

    def _prepare(self, layout: Layout, forms: Forms = None) -> None:
        super()._prepare(layout)
        self.settings = {"forms": forms}
        self.forms = forms or _default_forms(layout)
        self._shape = LayerShape(
            tuple(
                LayerForm(_FORMS[form].factorises, own.n_in, own.rows, own.cols, own.patches, own.pools, own.pool_size)
                for own, form in zip(layout.wirings, self.forms, strict=True)
            )
        )

    def _bind(self, mean: FloatArray, values: FloatArray) -> None:
        super()._bind(mean, values)
        table = self._shape.table
        parts = np.split(values, np.cumsum([form.n_numbers for form in table])[:-1])
        given = zip(self.forms, table, self._split(mean), parts, strict=True)
        self.layers: tuple[LayerBelief, ...] = tuple(
            _FORMS[name].within(form, own, numbers) for name, form, own, numbers in given
        )

    def _start(self, variance: FloatArray) -> None:
        for number, (layer, part) in enumerate(zip(self.layers, self._split(variance), strict=True)):
            layer.start(part, number == 0)

    @property
    def covariance(self) -> Any:
        """The forms that were given, or the name."""
        return self.settings["forms"] or self.name

    def _split(self, flat: FloatArray) -> list[FloatArray]:
        """The part of each layer of vectors ``(..., p)``."""
        ends = self.layout.starts[1:]
        return np.split(flat, ends[:-1], axis=-1)

    @property
    def cov(self) -> list[Any]:
        """Of each layer its covariance, or a pair: ``B`` over its outputs and ``A`` over its inputs."""
        return [layer.cov for layer in self.layers]

    @property
    def widest(self) -> int:
        """Of all roots."""
        return int(max(max(form.width, form.cols) for form in self._shape.table))

    def parts(self) -> tuple[FullGaussian | KroneckerGaussian, ...]:
        """One per layer."""
        return tuple(layer.part() for layer in self.layers)

    def join(self, parts: Sequence[Any]) -> Self:
        """Put beliefs about the layers together."""
        belief = type(self)(self.layout, np.zeros(self.layout.size), np.zeros(self.layout.size), **self.settings)
        for layer, part in zip(belief.layers, parts, strict=True):
            layer.assign(part)
        return belief

    def take_over(self, fewer: Self, positions: NDArray[np.int64]) -> None:
        """Take what a belief about a network with fewer inputs or outputs has learned, at these positions."""
        start = other_start = 0
        for layer, other in zip(self.layers, fewer.layers, strict=True):
            layer.take_over(other, positions[other_start : other_start + other.mean.size] - start)
            start, other_start = start + layer.mean.size, other_start + other.mean.size

    def marginal_variances(self) -> FloatArray:
        """Variance of each weight, ``(p,)``."""
        return np.concatenate([layer.marginal_variances() for layer in self.layers])

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

    def own_variances(self) -> list[UnitVariances]:
        """By the form of each layer."""
        return [layer.own_variance for layer in self.layers]

    def output_covariance(self, signals: Any) -> FloatArray:
        """The sum over layers."""
        given = zip(self.layers, self.layout.wirings, signals.inputs, signals.output_jacobian, strict=True)
        return np.asarray(sum(layer.output_covariance(*own) for layer, *own in given))

    @property
    def numbers_per_row(self) -> int:
        """Those of the widest layer, or of what all its positions see."""
        return max(
            int(max(form.n_in, own.units, own.patches.size, form.rows * form.cols * (not form.is_kronecker)))
            for form, own in zip(self._shape.table, self.layout.wirings, strict=True)
        )

    def learn_pass(
        self, noise: NetworkProgress, rule: NetworkRule, work: CompiledPass, batch: int, sites: Sites | None
    ) -> int:
        """Learn in blocks of rows, whose result is that of one row after the other."""
        # What is not finite is found by the check of what was learned.
        # Within a block there is too little to share between threads.
        with threads_for(0), np.errstate(over="ignore", invalid="ignore"):
            return int(learn_layers(work, self._shape, rule, noise, self.mean, self.values))

    def open_block(self) -> OpenBlock:
        """A block of rows that stays open over calls."""
        return OpenBlock(self._shape, self.mean, self.values)


def _default_forms(layout: Layout) -> tuple[str, ...]:
    """A dense layer has the covariance ``B ⊗ A``, the filters of a convolution a full one."""
    kinds = (FullLayer if layer.shares_weights else KroneckerGaussian for layer in layout.stack)
    return tuple(kind.name for kind in kinds)
