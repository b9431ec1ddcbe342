"""Covariance structures of networks: between which weights correlations are kept. One class per name in ``covariance``.

A structure has the layout of the weights and makes the belief; it computes everything that depends on the form of the
covariance (variances of the pre-activations, covariance of the outputs) and calls the compiled kernel that learns. Any
division into blocks of neighbouring neurons is a subclass of `BlockStructure` with another ``cut``. A form that is not
made of such blocks needs a belief, a kernel in `onepass.engine`, and a subclass of `Structure` here, with `register`.
"""

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any, ClassVar, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from onepass._typing import FloatArray
from onepass._validation import one_of
from onepass.beliefs.block import BlockGaussian
from onepass.beliefs.cost import choose_covariance, default_rank
from onepass.beliefs.diagonal import DiagonalGaussian
from onepass.beliefs.full import FullGaussian
from onepass.beliefs.kronecker import KroneckerGaussian
from onepass.beliefs.layered import FullLayer, KroneckerLayer, LayeredGaussian
from onepass.beliefs.layout import Layout
from onepass.beliefs.low_rank import LowRankGaussian, capacity
from onepass.engine.network import learn_blocks, look_blocks
from onepass.engine.network_batch import learn_batches
from onepass.engine.network_diagonal import learn_diagonal, look_diagonal
from onepass.engine.network_layers import LayerForm, LayerShape, OpenBlock, learn_layers
from onepass.engine.network_low_rank import learn_low_rank, look_low_rank
from onepass.engine.network_records import BlockShape, NetworkRule, NetworkShape, Sites, TrainingPass
from onepass.engine.separate_outputs import learn_separate
from onepass.engine.threads import threads_for
from onepass.engine.vector_matches import NoiseState

__all__ = [
    "STRUCTURES",
    "BlockStructure",
    "Covariance",
    "FullCovariance",
    "Structure",
    "count_numbers",
    "make_structure",
    "register",
]


class Structure:
    """How the belief about the weights of a network is structured; ``sizes`` are those of its `Layout`."""

    name: ClassVar[str]
    """In arguments and files."""
    input_major: ClassVar[bool] = False
    """Whether the weights of one input stand together, instead of those of one neuron."""
    learns_batches: ClassVar[bool] = True
    """Whether several rows can make one step."""
    convolves: ClassVar[bool] = False
    """Whether layers can be convolutions."""
    drifts_in_steps: ClassVar[bool] = False
    """Whether the weights' drift is computed once for many rows, and not by the kernel before each."""
    for_wide_layers: ClassVar[bool] = False
    """Whether it is made for layers of very many weights, which have a prior of their own."""
    keeps_sites: ClassVar[bool] = False
    """Whether the contribution of a row can be removed again, as ``refine="ep"`` does."""

    def __init__(self, sizes: tuple[Any, ...]) -> None:
        self.layout: Layout = Layout(sizes, input_major=self.input_major)
        if self.layout.has_convolutions and not self.convolves:
            raise ValueError(
                f"convolutions need covariance='auto', 'kronecker' or a form per layer such as ('full', 'kronecker'), "
                f"got covariance={self.name!r}"
            )

    @classmethod
    def cut(cls, layout: Layout) -> NDArray[np.int64]:
        """The first weight of each independent block, and the number of weights, ``(blocks + 1,)``."""
        raise NotImplementedError

    @property
    def cuts(self) -> NDArray[np.int64]:
        """`cut` of this network."""
        return self.cut(self.layout)

    @property
    def widest(self) -> int:
        """Rows of the largest matrix that has to be factorised for the belief to forget."""
        return int(np.diff(self.cuts).max())

    @classmethod
    def n_numbers(cls, layout: Layout) -> int:
        """How many numbers the covariance has in a file."""
        return int(np.square(np.diff(cls.cut(layout))).sum())

    def start(self, mean: FloatArray, variance: FloatArray) -> Any:
        """Make a belief with independent weights."""
        raise NotImplementedError

    def arrays(self, belief: Any) -> dict[str, FloatArray]:
        """Views of all numbers of a belief, by their names in files; writing to them changes the belief."""
        raise NotImplementedError

    def parts(self, belief: Any) -> tuple[FullGaussian | DiagonalGaussian | KroneckerGaussian, ...]:
        """The independent parts of a belief, each with natural parameters of its own: what merging adds up."""
        raise NotImplementedError

    def join(self, parts: Sequence[Any]) -> Any:
        """Put `parts` together again."""
        raise NotImplementedError

    def check(self, belief: Any, check_definite: Callable[[FloatArray], None]) -> None:
        """Raise a ValueError for a belief from a file whose covariance is not positive semi-definite."""

    def take_over(self, belief: Any, fewer: Any, positions: NDArray[np.int64]) -> None:
        """Put what is known of a network with fewer inputs or outputs into a belief; all else stays at the prior.

        Parameters
        ----------
        belief, fewer : of this structure, and about the other network
        positions : of the other network's weights among these
        """
        belief.take_over(fewer, positions)

    def own_variances(self, belief: Any) -> list[Callable[[FloatArray], FloatArray]]:
        """For each layer the variance that inputs ``(n, n_in + 1)`` give its units by their weights, ``(n, n_out)``."""
        raise NotImplementedError

    def covariance_with_outgoing(self, belief: Any) -> FloatArray | None:
        """Covariance of each output weight with the weights into its unit, ``(K, H, n_in + 1)``; None where zero."""
        return None

    def output_covariance(self, belief: Any, signals: Any) -> FloatArray:
        """``J'C J`` for the `onepass.models.network.propagation.Signals` of ``n`` rows, ``(n, K, K)``."""
        raise NotImplementedError

    @property
    def numbers_per_row(self) -> int:
        """How many numbers per output the signals and derivatives of a row take."""
        return self.layout.size

    def learn(
        self, belief: Any, noise: NoiseState, rule: NetworkRule, work: TrainingPass, batch: int, sites: Sites | None
    ) -> int:
        """Learn a pass in place by the compiled kernel.

        Returns the number of rows learned, fewer than all if one is not finite.
        """
        raise NotImplementedError(f"covariance={self.name!r} has no compiled kernel; use kernel='reference'")

    def look(self, belief: Any, rule: NetworkRule, row: FloatArray) -> tuple[FloatArray, FloatArray] | None:
        """Means ``(K,)`` and covariance ``(K, K)`` of the outputs of a row ``(d,)``; None without a compiled kernel."""
        return None

    def open_block(self, belief: Any) -> OpenBlock | None:
        """What predicts and learns rows that come one per call, or None where `learn` does that as fast."""
        return None

    def start_sites(self, n: int) -> Sites:
        """Memory for the contributions of ``n`` rows, where `keeps_sites`."""
        raise NotImplementedError


Covariance: TypeAlias = str | Sequence[str]
"""The name of a structure, or the form of each layer."""
Registered = TypeVar("Registered", bound=type[Structure])
STRUCTURES: dict[str, type[Structure]] = {}


def register(kind: Registered) -> Registered:
    """Let networks choose a structure by its name."""
    STRUCTURES[kind.name] = kind
    return kind


def make_structure(covariance: Covariance, sizes: tuple[Any, ...]) -> Structure:
    """Make the structure of a user's choice; ``"auto"`` is the richest that is not too large.

    A tuple has the form of each layer, of layers that are independent.
    """
    if isinstance(covariance, (tuple, list)):
        return LayeredCovariance(sizes, tuple(covariance))
    one_of(covariance, ("auto", *STRUCTURES), "covariance")
    return STRUCTURES[choose_covariance(Layout(sizes)) if covariance == "auto" else str(covariance)](sizes)


def count_numbers(covariance: Covariance, layout: Layout) -> int:
    """How many numbers a covariance has, before anything of its size is made."""
    if isinstance(covariance, (tuple, list)):
        return layered_numbers(layout, check_forms(layout, tuple(covariance)))
    return STRUCTURES[str(one_of(covariance, tuple(STRUCTURES), "covariance"))].n_numbers(layout)


class BlockStructure(Structure):
    """Independent blocks of neighbouring neurons, each with a full covariance.

    A subclass defines ``name`` and ``cut``, which returns some of ``layout.unit_starts``, always the first and last.
    """

    def __init__(self, sizes: tuple[Any, ...]) -> None:
        super().__init__(sizes)
        self._shape = BlockShape(self.layout.widths, self.layout.starts, self.layout.unit_starts, self.cuts)

    def start(self, mean: FloatArray, variance: FloatArray) -> BlockGaussian:
        """Make a belief with independent weights."""
        return BlockGaussian(mean, variance, self.cuts)

    def arrays(self, belief: BlockGaussian) -> dict[str, FloatArray]:
        """The mean, and all blocks one behind the other."""
        return {"mean": belief.mean, "covariance": belief.values}

    def parts(self, belief: BlockGaussian) -> tuple[FullGaussian, ...]:
        """One per block."""
        return belief.parts()

    def join(self, parts: Sequence[FullGaussian]) -> BlockGaussian:
        """Put the blocks together again."""
        return BlockGaussian.from_parts(parts)

    def check(self, belief: BlockGaussian, check_definite: Callable[[FloatArray], None]) -> None:
        """Check every block."""
        for _, block in belief.blocks():
            check_definite(block)

    def unit_blocks(self, belief: BlockGaussian) -> list[FloatArray]:
        """Covariance of each unit's own weights, ``(n_out, n_in + 1, n_in + 1)`` per layer."""
        wholes, cuts = belief.cov, self.cuts
        units = []
        for begin, end in pairwise(self.layout.unit_starts):
            b = int(np.searchsorted(cuts, begin, side="right")) - 1
            local = slice(begin - cuts[b], end - cuts[b])
            units.append(wholes[b][local, local])
        edges = np.concatenate([[0], np.cumsum(self.layout.widths[1:])])
        return [np.stack(units[low:high]) for low, high in pairwise(edges)]

    def own_variances(self, belief: BlockGaussian) -> list[Callable[[FloatArray], FloatArray]]:
        """``z'C z`` with the covariance of each unit's own weights."""

        def quadratic(units: list[slice]) -> Callable[[FloatArray], FloatArray]:
            return lambda z: np.stack([belief.quadratic_form(unit, z) for unit in units], axis=-1)

        units = [slice(int(begin), int(end)) for begin, end in pairwise(self.layout.unit_starts)]
        edges = np.concatenate([[0], np.cumsum(self.layout.widths[1:])])
        return [quadratic(units[low:high]) for low, high in pairwise(edges)]

    def output_covariance(self, belief: BlockGaussian, signals: Any) -> FloatArray:
        """By the derivatives in all weights."""
        return belief.project_outputs(signals.weight_jacobian(self.layout))[1]

    def learn(
        self,
        belief: BlockGaussian,
        noise: NoiseState,
        rule: NetworkRule,
        work: TrainingPass,
        batch: int,
        sites: Sites | None,
    ) -> int:
        """Learn row by row, or in batches by products of matrices."""
        if batch > 1:
            with threads_for(len(belief.mean)):
                return int(learn_batches(work, batch, self._shape, rule, noise, belief.mean, belief.values))
        return int(learn_blocks(work, self._shape, rule, noise, sites, belief.mean, belief.values))

    def look(self, belief: BlockGaussian, rule: NetworkRule, row: FloatArray) -> tuple[FloatArray, FloatArray] | None:
        """As the kernel does before it learns a row."""
        return look_blocks(row, self._shape, rule, belief.mean, belief.values)

    def start_sites(self, n: int) -> Sites:
        """Memory for the contributions of ``n`` rows."""
        return Sites(n, self._shape)


@register
class FullCovariance(BlockStructure):
    """Correlations between all weights."""

    name = "full"
    keeps_sites = True

    @classmethod
    def cut(cls, layout: Layout) -> NDArray[np.int64]:
        """One block."""
        return layout.starts[[0, -1]]

    def covariance_with_outgoing(self, belief: BlockGaussian) -> FloatArray | None:
        """Taken from the covariance of the last two layers."""
        layout = self.layout
        if layout.n_layers < 2:
            return None
        n_in, n_hidden, n_out = layout.widths[-3] + 1, layout.widths[-2], layout.widths[-1]
        _, block = next(belief.blocks())  # what is wanted lies below its diagonal: there is no need to mirror it
        cov = block[layout.starts[-2] :, layout.starts[-3] : layout.starts[-2]]
        whole = cov.reshape(n_out, n_hidden + 1, n_hidden, n_in)
        units = np.arange(n_hidden)
        return np.asarray(whole[:, units, units])


@register
class LowRankCovariance(Structure):
    """Correlations between all weights, in the directions known best; in the others none."""

    name = "low_rank"
    drifts_in_steps = True
    learns_batches = False

    def __init__(self, sizes: tuple[Any, ...]) -> None:
        super().__init__(sizes)
        self._shape = NetworkShape(self.layout.widths, self.layout.starts)
        self.rank: int = default_rank(self.layout.size)

    @property
    def widest(self) -> int:
        """Columns: what takes a factorisation is the matrix of their products."""
        return capacity(self.layout.size, self.layout.widths[-1], self.rank)

    @classmethod
    def n_numbers(cls, layout: Layout) -> int:
        """Those of the diagonal and of the columns."""
        return LowRankGaussian.n_numbers(layout.size, layout.widths[-1], default_rank(layout.size))

    def start(self, mean: FloatArray, variance: FloatArray) -> LowRankGaussian:
        """Make a belief with independent weights."""
        return LowRankGaussian(mean, variance, self.layout.widths[-1], self.rank)

    def arrays(self, belief: LowRankGaussian) -> dict[str, FloatArray]:
        """The mean; and the diagonal, the columns and their number one behind the other."""
        return {"mean": belief.mean, "covariance": belief.values}

    def parts(self, belief: LowRankGaussian) -> tuple[FullGaussian, ...]:
        """One, with a full covariance; a ValueError where that is too large."""
        return (belief.to_full(),)

    def join(self, parts: Sequence[FullGaussian]) -> LowRankGaussian:
        """The nearest belief of this form to the only part."""
        (belief,) = parts
        return LowRankGaussian.from_full(belief, self.layout.widths[-1], self.rank)

    def check(self, belief: LowRankGaussian, check_definite: Callable[[FloatArray], None]) -> None:
        """By a matrix of the columns' size."""
        belief.check()

    def _unit_columns(self, belief: LowRankGaussian) -> list[FloatArray]:
        """``U`` of each layer, ``(n_out, n_in + 1, columns)``."""
        columns = belief.cov_root[:, : belief.n_columns]
        starts = pairwise(self.layout.starts)
        return [columns[a:b].reshape(*shape, -1) for (a, b), shape in zip(starts, self.layout.shapes, strict=True)]

    def own_variances(self, belief: LowRankGaussian) -> list[Callable[[FloatArray], FloatArray]]:
        """``Σ z² v - (U'z)²`` with the diagonal and the columns of each unit's own weights."""

        def quadratic(variance: FloatArray, columns: FloatArray) -> Callable[[FloatArray], FloatArray]:
            return lambda z: z**2 @ variance.T - np.stack([np.square(z @ own).sum(axis=-1) for own in columns], axis=-1)

        return [
            quadratic(*own) for own in zip(self.layout.layers(belief.variance), self._unit_columns(belief), strict=True)
        ]

    def covariance_with_outgoing(self, belief: LowRankGaussian) -> FloatArray | None:
        """Only the columns couple weights of different layers."""
        if self.layout.n_layers < 2:
            return None
        *_, entering, outgoing = self._unit_columns(belief)
        return np.asarray(-np.einsum("khc,hic->khi", outgoing[:, :-1], entering, optimize=True))

    def output_covariance(self, belief: LowRankGaussian, signals: Any) -> FloatArray:
        """By the derivatives in all weights."""
        return belief.output_covariance(signals.weight_jacobian(self.layout))

    def learn(
        self,
        belief: LowRankGaussian,
        noise: NoiseState,
        rule: NetworkRule,
        work: TrainingPass,
        batch: int,
        sites: Sites | None,
    ) -> int:
        """Learn row by row, and compress the belief whenever there is no room for another one."""
        numbers = (belief.mean, belief.variance, belief.precision_root, belief.cov_root, belief.used, belief.rounding)
        learned = 0
        while True:
            if belief.is_full:  # also before the first row, if an interrupt came before the last compression
                with threads_for(self.widest), np.errstate(over="ignore", invalid="ignore"):
                    belief.compress()
            # Still full, it is not finite, which the check of what was learned is to find.
            if belief.is_full or (work.is_first and noise.trust.is_alarmed()):
                return learned
            learned += learn_low_rank(work, learned, self._shape, rule, noise, *numbers)
            if not belief.is_full:
                return learned

    def look(self, belief: LowRankGaussian, rule: NetworkRule, row: FloatArray) -> tuple[FloatArray, FloatArray]:
        """As the kernel does before it learns a row."""
        numbers = (belief.mean, belief.variance, belief.cov_root, belief.used, belief.rounding)
        return look_low_rank(row, self._shape, rule, *numbers)


@register
class LayerBlocks(BlockStructure):
    """Correlations between the weights of a layer."""

    name = "layer"

    @classmethod
    def cut(cls, layout: Layout) -> NDArray[np.int64]:
        """One block per layer."""
        return layout.starts


def _covariance_by_units(own_variances: list[Callable[[FloatArray], FloatArray]], signals: Any) -> FloatArray:
    """The covariance of the outputs where units are independent: each adds ``D D'`` times its weights' variance."""
    total = np.zeros((*signals.mean.shape, signals.mean.shape[1]))
    for own, jacobian, z in zip(own_variances, signals.output_jacobian, signals.inputs, strict=True):
        total += (jacobian * own(z)[:, None, :]) @ jacobian.swapaxes(1, 2)
    return total


@register
class NeuronBlocks(BlockStructure):
    """Correlations between the weights of a neuron."""

    name = "neuron"

    @classmethod
    def cut(cls, layout: Layout) -> NDArray[np.int64]:
        """One block per neuron."""
        return layout.unit_starts

    def output_covariance(self, belief: BlockGaussian, signals: Any) -> FloatArray:
        """Unit by unit."""
        return _covariance_by_units(self.own_variances(belief), signals)

    @property
    def numbers_per_row(self) -> int:
        """Those of the widest layer."""
        return max(self.layout.widths)

    def learn(
        self,
        belief: BlockGaussian,
        noise: NoiseState,
        rule: NetworkRule,
        work: TrainingPass,
        batch: int,
        sites: Sites | None,
    ) -> int:
        """Without hidden layers the outputs are independent before each row: these have a kernel of their own."""
        if self.layout.n_layers > 1 or batch > 1:
            return super().learn(belief, noise, rule, work, batch, sites)
        with threads_for(self.layout.widths[0] + 1):
            return int(learn_separate(work, self._shape, rule, noise, belief.mean, belief.values))

    def look(self, belief: BlockGaussian, rule: NetworkRule, row: FloatArray) -> tuple[FloatArray, FloatArray] | None:
        """Only with hidden layers: without, very many outputs would take memory for the derivatives of each in all."""
        return super().look(belief, rule, row) if self.layout.n_layers > 1 else None


@register
class IndependentWeights(Structure):
    """No correlations; the derivatives with respect to the weights are never computed one by one."""

    name = "diagonal"
    input_major = True
    learns_batches = False

    def __init__(self, sizes: tuple[Any, ...]) -> None:
        super().__init__(sizes)
        self._shape = NetworkShape(self.layout.widths, self.layout.starts)

    @classmethod
    def cut(cls, layout: Layout) -> NDArray[np.int64]:
        """Every weight is a block of its own."""
        return np.arange(layout.size + 1, dtype=np.int64)

    def start(self, mean: FloatArray, variance: FloatArray) -> DiagonalGaussian:
        """Make a belief with independent weights."""
        return DiagonalGaussian(mean, variance)

    def arrays(self, belief: DiagonalGaussian) -> dict[str, FloatArray]:
        """The mean and the variances."""
        return {"mean": belief.mean, "covariance": belief.variance}

    def check(self, belief: DiagonalGaussian, check_definite: Callable[[FloatArray], None]) -> None:
        """Take variances from 0 on."""
        if (belief.variance < 0.0).any():
            raise ValueError(f"covariance has the entry {belief.variance.min():g}, which must not be negative")

    def take_over(self, belief: DiagonalGaussian, fewer: DiagonalGaussian, positions: NDArray[np.int64]) -> None:
        """Weight by weight."""
        belief.mean[positions], belief.variance[positions] = fewer.mean, fewer.variance

    def parts(self, belief: DiagonalGaussian) -> tuple[DiagonalGaussian, ...]:
        """One, of all weights."""
        return (DiagonalGaussian(belief.mean.astype(np.float64), belief.variance.astype(np.float64)),)

    def join(self, parts: Sequence[DiagonalGaussian]) -> DiagonalGaussian:
        """Take the only part."""
        (belief,) = parts
        return belief

    def own_variances(self, belief: DiagonalGaussian) -> list[Callable[[FloatArray], FloatArray]]:
        """``Σ z² Var w``."""

        def quadratic(variance: FloatArray) -> Callable[[FloatArray], FloatArray]:
            return lambda z: z**2 @ variance.T

        return [quadratic(variance) for variance in self.layout.layers(belief.variance)]

    def output_covariance(self, belief: DiagonalGaussian, signals: Any) -> FloatArray:
        """Unit by unit: its weights add ``D² Σ z² Var w``."""
        return _covariance_by_units(self.own_variances(belief), signals)

    @property
    def numbers_per_row(self) -> int:
        """Those of the widest layer."""
        return max(self.layout.widths)

    def learn(
        self,
        belief: DiagonalGaussian,
        noise: NoiseState,
        rule: NetworkRule,
        work: TrainingPass,
        batch: int,
        sites: Sites | None,
    ) -> int:
        """Learn row by row."""
        return int(learn_diagonal(work, self._shape, rule, noise, belief.mean, belief.variance))

    def look(self, belief: DiagonalGaussian, rule: NetworkRule, row: FloatArray) -> tuple[FloatArray, FloatArray]:
        """As the kernel does before it learns a row."""
        return look_diagonal(row, self._shape, rule, belief.mean, belief.variance)


LAYER_FORMS = ("kronecker", "full")


def check_forms(layout: Layout, forms: tuple[str, ...]) -> tuple[str, ...]:
    """Raise a ValueError unless there is a form for every layer that it can have."""
    if len(forms) != layout.n_layers:
        raise ValueError(
            f"covariance must have one form for each of the {layout.n_layers} layers of weights, got {forms}"
        )
    for number, (size, form) in enumerate(zip(layout.sizes[1:], forms, strict=True)):
        one_of(form, LAYER_FORMS, f"covariance[{number}]")
        if form == "kronecker" and not isinstance(size, int):
            raise ValueError(f"covariance[{number}] must be 'full' for {size}, got 'kronecker'")
    return forms


def layered_numbers(layout: Layout, forms: tuple[str, ...]) -> int:
    """How many numbers the roots of all layers have, and the prior's variances of Kronecker ones."""
    shapes = zip(layout.shapes, forms, strict=True)
    return sum(
        rows**2 + cols**2 + rows + cols if form == "kronecker" else (rows * cols) ** 2 for (rows, cols), form in shapes
    )


class LayeredCovariance(Structure):
    """Independent layers, each with a covariance of its own form: ``B ⊗ A``, or full.

    They are kept as roots, so any finite numbers of a file make a covariance and there is nothing to `check`.
    """

    convolves = True
    for_wide_layers = True
    drifts_in_steps = True
    learns_batches = False

    def __init__(self, sizes: tuple[Any, ...], forms: tuple[str, ...]) -> None:
        super().__init__(sizes)
        self.forms: tuple[str, ...] = check_forms(self.layout, forms)
        table = tuple(
            LayerForm(form == "kronecker", own.n_in, own.rows, own.cols, own.patches, own.pools, own.pool_size)
            for own, form in zip(self.layout.wirings, forms, strict=True)
        )
        self._shape = LayerShape(table)

    @property
    def name(self) -> Any:  # type: ignore[override]
        """The form of each layer."""
        return self.forms

    @property
    def widest(self) -> int:
        """Of all roots."""
        return max(max(form.width, form.cols) for form in self._shape.table)

    def start(self, mean: FloatArray, variance: FloatArray) -> LayeredGaussian:
        """Make a belief with independent weights, and the nearest variances that its layers can have."""
        return LayeredGaussian(mean, variance, self._shape.table)

    def arrays(self, belief: LayeredGaussian) -> dict[str, FloatArray]:
        """The mean, and the roots of all layers one behind the other."""
        return {"mean": belief.mean, "covariance": belief.values}

    def parts(self, belief: LayeredGaussian) -> tuple[FullGaussian | KroneckerGaussian, ...]:
        """One per layer."""
        return belief.parts()

    def join(self, parts: Sequence[FullGaussian | KroneckerGaussian]) -> LayeredGaussian:
        """Put the layers together again."""
        return LayeredGaussian.from_parts(parts, self._shape.table)

    def own_variances(self, belief: LayeredGaussian) -> list[Callable[[FloatArray], FloatArray]]:
        """``B_uu z'A z`` and the prior's for idle inputs, or ``z'C z`` with each unit's own covariance."""

        def quadratic(layer: FullLayer | KroneckerLayer, form: LayerForm) -> Callable[[FloatArray], FloatArray]:
            if isinstance(layer, KroneckerLayer):
                own = np.square(layer.output_root).sum(axis=1)
                return lambda z: (
                    np.multiply.outer(np.square(z @ layer.input_root).sum(axis=-1), own)
                    + np.multiply.outer(np.square(z) @ layer.idle, layer.prior_outputs)
                )
            units = layer.root.reshape(form.rows, form.cols, -1)
            blocks = units @ units.swapaxes(1, 2)
            return lambda z: np.stack([((z @ block) * z).sum(axis=-1) for block in blocks], axis=-1)

        return [quadratic(layer, form) for layer, form in zip(belief.layers, belief.forms, strict=True)]

    def output_covariance(self, belief: LayeredGaussian, signals: Any) -> FloatArray:
        """The sum over layers of ``D B D' z'A z`` and ``D B0 D'`` for idle inputs, or of ``J'C J``."""
        total = np.zeros((*signals.mean.shape, signals.mean.shape[1]))
        for number, layer in enumerate(belief.layers):
            if isinstance(layer, KroneckerLayer):
                jacobian, z = signals.output_jacobian[number], signals.inputs[number]
                projected = jacobian @ layer.output_root
                scale = np.square(z @ layer.input_root).sum(axis=-1)
                total += scale[:, None, None] * (projected @ projected.swapaxes(1, 2))
                if layer.idle.any():
                    scale = np.square(z) @ layer.idle
                    total += scale[:, None, None] * ((jacobian * layer.prior_outputs) @ jacobian.swapaxes(1, 2))
            else:
                jacobian = signals.layer_jacobian(number)
                projected = jacobian.reshape(*jacobian.shape[:2], -1) @ layer.root
                total += projected @ projected.swapaxes(1, 2)
        return total

    @property
    def numbers_per_row(self) -> int:
        """Those of the widest layer, or of what all its positions see."""
        return max(
            max(form.n_in, own.units, own.patches.size, form.rows * form.cols * (not form.is_kronecker))
            for form, own in zip(self._shape.table, self.layout.wirings, strict=True)
        )

    def learn(
        self,
        belief: LayeredGaussian,
        noise: NoiseState,
        rule: NetworkRule,
        work: TrainingPass,
        batch: int,
        sites: Sites | None,
    ) -> int:
        """Learn in blocks of rows, whose result is that of one row after the other."""
        # What is not finite is found by the check of what was learned.
        # Within a block there is too little to share between threads.
        with threads_for(0), np.errstate(over="ignore", invalid="ignore"):
            return int(learn_layers(work, self._shape, rule, noise, belief.mean, belief.values))

    def open_block(self, belief: LayeredGaussian) -> OpenBlock:
        """A block of rows that stays open over calls."""
        return OpenBlock(self._shape, belief.mean, belief.values)


@register
class KroneckerCovariance(LayeredCovariance):
    """Independent layers; a dense one has the covariance ``B ⊗ A``, the filters of a convolution a full one."""

    name = "kronecker"

    def __init__(self, sizes: tuple[Any, ...]) -> None:
        super().__init__(sizes, kronecker_forms(Layout(sizes)))

    @classmethod
    def n_numbers(cls, layout: Layout) -> int:
        """Those of the roots."""
        return layered_numbers(layout, kronecker_forms(layout))


def kronecker_forms(layout: Layout) -> tuple[str, ...]:
    """Full for filters, Kronecker for dense layers."""
    return tuple("kronecker" if isinstance(size, int) else "full" for size in layout.sizes[1:])
