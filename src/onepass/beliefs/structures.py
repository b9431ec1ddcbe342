"""Covariance structures of networks: between which weights correlations are kept. One class per name in ``covariance``.

A structure has the layout of the weights and makes the belief; it computes everything that depends on the form of the
covariance (variances of the pre-activations, covariance of the outputs) and calls the compiled kernel that learns. Any
division into blocks of neighbouring neurons is a subclass of `BlockStructure` with another ``cut``. A form that is not
made of such blocks needs a belief, a kernel in `onepass.engine`, and a subclass of `Structure` here, with `register`.
"""

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any, ClassVar, TypeVar

import numpy as np
from numpy.typing import NDArray

from onepass._typing import FloatArray
from onepass._validation import one_of
from onepass.beliefs.block import BlockGaussian
from onepass.beliefs.diagonal import DiagonalGaussian
from onepass.beliefs.full import FullGaussian
from onepass.beliefs.layout import Layout
from onepass.engine.network import learn_blocks
from onepass.engine.network_batch import learn_batches
from onepass.engine.network_diagonal import learn_diagonal
from onepass.engine.network_records import BlockShape, NetworkRule, NetworkShape, Sites, TrainingPass
from onepass.engine.separate_outputs import learn_separate
from onepass.engine.threads import threads_for
from onepass.engine.vector_matches import NoiseState

__all__ = ["STRUCTURES", "BlockStructure", "Structure", "choose_structure", "make_structure", "register"]

# Limits of "auto": weights of a full covariance (a row then costs about a millisecond), and numbers in
# the blocks of all neurons together (32 MB).
_FULL_WEIGHTS = 2_000
_NEURON_NUMBERS = 4_000_000


class Structure:
    """How the belief about the weights of a network is structured; ``widths`` are those of its layers."""

    name: ClassVar[str]
    """In arguments and files."""
    input_major: ClassVar[bool] = False
    """Whether the weights of one input stand together, instead of those of one neuron."""
    learns_batches: ClassVar[bool] = True
    """Whether several rows can make one step."""
    keeps_sites: ClassVar[bool] = False
    """Whether the contribution of a row can be removed again, as ``refine="ep"`` does."""

    def __init__(self, widths: tuple[int, ...]) -> None:
        self.layout = Layout(widths, input_major=self.input_major)

    @classmethod
    def cut(cls, layout: Layout) -> NDArray[np.int64]:
        """The first weight of each independent block, and the number of weights, ``(blocks + 1,)``."""
        raise NotImplementedError

    @property
    def cuts(self) -> NDArray[np.int64]:
        """`cut` of this network."""
        return self.cut(self.layout)

    @classmethod
    def n_numbers(cls, widths: tuple[int, ...]) -> int:
        """How many numbers the covariance has in a file."""
        return int(np.square(np.diff(cls.cut(Layout(widths)))).sum())

    def start(self, mean: FloatArray, variance: FloatArray) -> Any:
        """Make a belief with independent weights."""
        raise NotImplementedError

    def arrays(self, belief: Any) -> dict[str, FloatArray]:
        """Views of all numbers of a belief, by their names in files; writing to them changes the belief."""
        raise NotImplementedError

    def parts(self, belief: Any) -> tuple[FullGaussian | DiagonalGaussian, ...]:
        """The independent parts of a belief, each with natural parameters of its own: what merging adds up."""
        raise NotImplementedError

    def join(self, parts: Sequence[Any]) -> Any:
        """Put `parts` together again."""
        raise NotImplementedError

    def check(self, belief: Any, check_definite: Callable[[FloatArray], None]) -> None:
        """Raise a ValueError for a belief from a file whose covariance is not positive semi-definite."""

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

    def start_sites(self, n: int) -> Sites:
        """Memory for the contributions of ``n`` rows, where `keeps_sites`."""
        raise NotImplementedError


Registered = TypeVar("Registered", bound=type[Structure])
STRUCTURES: dict[str, type[Structure]] = {}


def register(kind: Registered) -> Registered:
    """Let networks choose a structure by its name."""
    STRUCTURES[kind.name] = kind
    return kind


def make_structure(name: str, widths: tuple[int, ...]) -> Structure:
    """Make the structure of a user's choice; ``"auto"`` is the richest that is not too large."""
    one_of(name, ("auto", *STRUCTURES), "covariance")
    return STRUCTURES[choose_structure(widths) if name == "auto" else name](widths)


def choose_structure(widths: tuple[int, ...]) -> str:
    """Resolve ``covariance="auto"``."""
    if Layout(widths).size <= _FULL_WEIGHTS:
        return "full"
    return "neuron" if NeuronBlocks.n_numbers(widths) <= _NEURON_NUMBERS else "diagonal"


class BlockStructure(Structure):
    """Independent blocks of neighbouring neurons, each with a full covariance.

    A subclass defines ``name`` and ``cut``, which returns some of ``layout.unit_starts``, always the first and last.
    """

    def __init__(self, widths: tuple[int, ...]) -> None:
        super().__init__(widths)
        self._shape = BlockShape(widths, self.layout.starts, self.layout.unit_starts, self.cuts)

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

        def quadratic(blocks: FloatArray) -> Callable[[FloatArray], FloatArray]:
            return lambda z: np.stack([((z @ block) * z).sum(axis=1) for block in blocks], axis=1)

        return [quadratic(blocks) for blocks in self.unit_blocks(belief)]

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
        cov = belief.cov[0][layout.starts[-2] :, layout.starts[-3] : layout.starts[-2]]
        whole = cov.reshape(n_out, n_hidden + 1, n_hidden, n_in)
        units = np.arange(n_hidden)
        return np.asarray(whole[:, units, units])


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


@register
class IndependentWeights(Structure):
    """No correlations; the derivatives with respect to the weights are never computed one by one."""

    name = "diagonal"
    input_major = True
    learns_batches = False

    def __init__(self, widths: tuple[int, ...]) -> None:
        super().__init__(widths)
        self._shape = NetworkShape(widths, self.layout.starts)

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
