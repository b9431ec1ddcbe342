"""A Gaussian belief about all weights of a network, cut into blocks that are independent of each other.

One block is the full covariance; one per layer or one per neuron are cheaper. Learning is the same rank-K step for
every division into blocks: with ``J`` the derivatives of the K outputs in the weights, ``c = C J`` and ``S = J'c``, the
mean changes by ``c score`` and the covariance by ``-c information c'``; entries between two blocks stay zero.
"""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Self

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.blas import dsymm, dsymv

from onepass._arrays import check_definite
from onepass._typing import FloatArray
from onepass.beliefs.diagonal import DiagonalGaussian
from onepass.beliefs.forgetting import Forgetting, fade_blocks, prior_gap
from onepass.beliefs.full import FullGaussian, mirrored
from onepass.beliefs.network import NetworkBelief, UnitVariances
from onepass.engine.network import learn_blocks, look_blocks
from onepass.engine.network_batch import learn_batches
from onepass.engine.network_records import BlockShape, CompiledPass, NetworkRule, Sites
from onepass.engine.network_rows import NetworkRow
from onepass.engine.separate_outputs import learn_separate
from onepass.engine.threads import threads_for
from onepass.engine.vector_matches import NetworkProgress
from onepass.layers.layout import Layout

__all__ = ["BlockGaussian", "FullCovariance", "LayerBlocks", "NeuronBlocks"]


class BlockGaussian(NetworkBelief):
    """A Gaussian whose covariance is made of blocks of neighbouring neurons, of which the lower triangles count.

    A subclass defines ``name`` and ``cut``. Blocks are kept as the covariance and not as a root: the kernels of
    networks read parts of it for every unit, and subtract one outer product per row and output.

    Examples
    --------
    >>> belief = LayerBlocks(Layout((1, 1, 1)), np.zeros(4), np.ones(4))
    >>> J = np.array([[1.0, 0.0, 2.0, 0.0]])
    >>> gain, cov = belief.project_outputs(J)
    >>> belief.step(gain, J, score=np.array([0.5]), information=np.array([[0.1]]))
    >>> belief.mean, belief.marginal_variances()
    (array([0.5, 0. , 1. , 0. ]), array([0.9, 1. , 0.6, 1. ]))
    """

    @classmethod
    def cut(cls, layout: Layout) -> NDArray[np.int64]:
        """The first weight of each independent block, and the number of weights, ``(blocks + 1,)``.

        These are some of ``layout.unit_starts``, always the first and the last.
        """
        raise NotImplementedError

    @classmethod
    def n_numbers(cls, layout: Layout) -> int:
        """Those of all blocks."""
        return int(np.square(np.diff(cls.cut(layout))).sum())

    def _prepare(self, layout: Layout) -> None:
        super()._prepare(layout)
        self.cuts = self.cut(layout)
        self.offsets: NDArray[np.int64] = np.concatenate([[0], np.cumsum(np.diff(self.cuts) ** 2)]).astype(np.int64)
        self._shape = BlockShape(layout.widths, layout.starts, layout.unit_starts, self.cuts)

    def _start(self, variance: FloatArray) -> None:
        for part, block in self.blocks():
            np.fill_diagonal(block, variance[part])

    @property
    def widest(self) -> int:
        """Weights of the largest block."""
        return int(np.diff(self.cuts).max())

    def check(self) -> None:
        """Raise a ValueError for a block that is not positive semi-definite."""
        for _, block in self.blocks():
            check_definite(block)

    def blocks(self) -> Iterator[tuple[slice, FloatArray]]:
        """The weights of each block, and a view of it whose lower triangle counts."""
        for b, (begin, end) in enumerate(pairwise(self.cuts)):
            view = self.values[self.offsets[b] : self.offsets[b + 1]].reshape(end - begin, end - begin)
            yield slice(int(begin), int(end)), view

    @property
    def cov(self) -> list[FloatArray]:
        """The blocks of the covariance, whole."""
        return [mirrored(block) for _, block in self.blocks()]

    def project_outputs(self, jacobian: FloatArray) -> tuple[FloatArray, FloatArray]:
        """``c = C J`` and ``S = J'C J`` for derivatives ``(..., K, p)``: ``(..., K, p)`` and ``(..., K, K)``."""
        gain = np.empty(jacobian.shape, dtype=np.float64)
        for part, block in self.blocks():
            gain[..., part] = _product(jacobian[..., part], block)
        return gain, gain @ jacobian.swapaxes(-1, -2)

    def quadratic_form(self, part: slice, rows: FloatArray) -> FloatArray:
        """``x'C x`` with the covariance of some weights of one block, for rows ``(..., weights)``: ``(...)``."""
        b = int(np.searchsorted(self.cuts, part.start, side="right")) - 1
        begin, end = self.cuts[b], self.cuts[b + 1]
        block = self.values[self.offsets[b] : self.offsets[b + 1]].reshape(end - begin, end - begin)
        local = slice(part.start - begin, part.stop - begin)
        return np.asarray((_product(rows, block[local, local]) * rows).sum(axis=-1))

    def step(self, gain: FloatArray, jacobian: FloatArray, score: FloatArray, information: FloatArray) -> None:
        """Take the rank-K step ``m += c score``, ``C -= c information c'``."""
        self.mean += score @ gain
        for part, block in self.blocks():
            block -= gain[:, part].T @ information @ gain[:, part]

    def marginal_variances(self) -> FloatArray:
        """Variance of each weight, ``(p,)``."""
        return np.concatenate([np.diag(block) for _, block in self.blocks()])

    def parts(self) -> tuple[FullGaussian, ...]:
        """Each block as a belief of its own, in double precision."""
        return tuple(
            FullGaussian(self.mean[part].astype(np.float64), mirrored(block).astype(np.float64))
            for part, block in self.blocks()
        )

    def join(self, parts: Sequence[FullGaussian]) -> Self:
        """Put beliefs about the blocks together."""
        mean = np.concatenate([part.mean for part in parts])
        belief = type(self)(self.layout, mean, np.zeros(len(mean)))
        for (_, block), part in zip(belief.blocks(), parts, strict=True):
            block[...] = part.cov
        return belief

    def take_over(self, fewer: Self, positions: NDArray[np.int64]) -> None:
        """Take what a belief about some of these weights has learned; the others stay as they are.

        The ``positions`` of those weights rise, and fall into the first blocks in their order.
        """
        self.mean[positions] = fewer.mean
        for (part, block), (other_part, other) in zip(self.blocks(), fewer.blocks(), strict=False):
            own = positions[other_part] - part.start
            block[np.ix_(own, own)] = other

    def negate(self, positions: NDArray[np.int64]) -> None:
        """Change the sign of the weights of an output: of their means, and of their correlations with all others."""
        super().negate(positions)
        signs = np.ones(len(self.mean))
        signs[positions] = -1.0
        for part, block in self.blocks():
            block *= np.outer(signs[part], signs[part])

    def diffuse(self, process_noise: FloatArray) -> None:
        """Let the weights wander: add ``process_noise`` to their variances."""
        for part, block in self.blocks():
            block[np.diag_indices(len(block))] += process_noise[part]

    def forget(self, keep: float, prior: DiagonalGaussian) -> None:
        """Let rows count ``keep`` of what they did and the prior the rest: see `onepass.beliefs.forgetting`."""
        variances = self.marginal_variances()
        towards, gap = prior_gap(self.mean, variances, prior.mean, prior.variance)
        sizes = np.diff(self.cuts)
        runs = np.flatnonzero(np.diff(sizes, prepend=0))  # blocks of one size that follow each other
        for first, last in pairwise([*runs, len(sizes)]):
            size = sizes[first]
            part = slice(self.cuts[first], self.cuts[last])
            stack = self.values[self.offsets[first] : self.offsets[last]].reshape(-1, size, size)
            shift = fade_blocks(stack, towards[part].reshape(-1, size), gap[part].reshape(-1, size), keep)
            self.mean[part] += shift.ravel()

    def drift(self, share: float, prior: DiagonalGaussian) -> None:
        """Let the weights move by a share of the prior's variance: ``C <- (1 - share) C + share C0``."""
        self.values *= 1.0 - share
        self.diffuse(share * prior.variance)

    def sample(self, n: int, rng: np.random.Generator) -> FloatArray:
        """Draw weights, ``(n, p)``."""
        draws = rng.standard_normal((n, len(self.mean)))
        for part, block in self.blocks():
            values, vectors = np.linalg.eigh(mirrored(block).astype(np.float64))
            draws[:, part] = (draws[:, part] * np.sqrt(np.maximum(values, 0.0))) @ vectors.T
        return draws + self.mean

    def unit_blocks(self) -> list[FloatArray]:
        """Covariance of each unit's own weights, ``(n_out, n_in + 1, n_in + 1)`` per layer."""
        wholes, cuts = self.cov, self.cuts
        units = []
        for begin, end in pairwise(self.layout.unit_starts):
            b = int(np.searchsorted(cuts, begin, side="right")) - 1
            local = slice(begin - cuts[b], end - cuts[b])
            units.append(wholes[b][local, local])
        return [np.stack(units[low:high]) for low, high in pairwise(self._first_units)]

    @property
    def _first_units(self) -> NDArray[np.int64]:
        """The number of the first unit of each layer, and that of all units."""
        return np.concatenate([[0], np.cumsum(self.layout.widths[1:])])

    def own_variances(self) -> list[UnitVariances]:
        """``z'C z`` with the covariance of each unit's own weights."""

        def quadratic(units: list[slice]) -> UnitVariances:
            return lambda z: np.stack([self.quadratic_form(unit, z) for unit in units], axis=-1)

        units = [slice(int(begin), int(end)) for begin, end in pairwise(self.layout.unit_starts)]
        return [quadratic(units[low:high]) for low, high in pairwise(self._first_units)]

    def learn_pass(
        self, noise: NetworkProgress, rule: NetworkRule, work: CompiledPass, batch: int, sites: Sites | None
    ) -> int:
        """Learn row by row, or in batches by products of matrices."""
        if batch > 1:
            with threads_for(len(self.mean)):
                return int(learn_batches(work, batch, self._shape, rule, noise, self.mean, self.values))
        return int(learn_blocks(work, self._shape, rule, noise, sites, self.mean, self.values))

    def look(self, rule: NetworkRule, row: FloatArray) -> tuple[FloatArray, FloatArray] | None:
        """As the kernel does before it learns a row."""
        return look_blocks(row, self._shape, rule, self.mean, self.values)

    def row_learner(
        self,
        rule: NetworkRule,
        noise: NetworkProgress,
        noise_gain: float,
        forgetting: Forgetting,
        prior: DiagonalGaussian,
    ) -> NetworkRow | None:
        """Only in double precision: in single, a row may overflow that could be looked at."""
        if self.mean.dtype != np.float64:
            return None

        later = self.copy() if forgetting.period else self  # new memory each time would cost a third of a step

        def fade() -> tuple[FloatArray, FloatArray]:
            later.mean[:], later.values[:] = self.mean, self.values
            with threads_for(len(self.mean)), np.errstate(over="ignore", invalid="ignore"):
                later.forget(forgetting.keep, prior)
            return later.mean, later.values

        arrays = (self.mean, self.values)
        return NetworkRow(self._shape, rule, noise, *arrays, noise_gain, forgetting.period, fade)

    def start_sites(self, n: int) -> Sites:
        """Memory for the contributions of ``n`` rows."""
        return Sites(n, self._shape)


class FullCovariance(BlockGaussian):
    """Correlations between all weights."""

    name = "full"
    meaning = "all correlations between weights are kept"
    keeps_sites = True
    couples_layers = True

    @classmethod
    def cut(cls, layout: Layout) -> NDArray[np.int64]:
        """One block."""
        return layout.starts[[0, -1]]

    def covariance_with_outgoing(self) -> FloatArray | None:
        """Taken from the covariance of the last two layers."""
        layout = self.layout
        if layout.n_layers < 2:
            return None
        n_in, n_hidden, n_out = layout.widths[-3] + 1, layout.widths[-2], layout.widths[-1]
        _, block = next(self.blocks())  # what is wanted lies below its diagonal: there is no need to mirror it
        cov = block[layout.starts[-2] :, layout.starts[-3] : layout.starts[-2]]
        whole = cov.reshape(n_out, n_hidden + 1, n_hidden, n_in)
        units = np.arange(n_hidden)
        return np.asarray(whole[:, 1 + units, units])


class LayerBlocks(BlockGaussian):
    """Correlations between the weights of a layer."""

    name = "layer"
    meaning = "correlations between weights of one layer are kept"

    @classmethod
    def cut(cls, layout: Layout) -> NDArray[np.int64]:
        """One block per layer."""
        return layout.starts


class NeuronBlocks(BlockGaussian):
    """Correlations between the weights of a neuron."""

    name = "neuron"
    meaning = "correlations between weights of one unit are kept"
    separate_units = True
    # Some one or two milliseconds.
    most_multiply_adds = 12_000_000

    @classmethod
    def cut(cls, layout: Layout) -> NDArray[np.int64]:
        """One block per neuron."""
        return layout.unit_starts

    @classmethod
    def multiply_adds(cls, layout: Layout) -> int:
        """Half of each block read, and the same written."""
        return sum(3 * rows * cols**2 // 2 for rows, cols in layout.shapes)

    def learn_pass(
        self, noise: NetworkProgress, rule: NetworkRule, work: CompiledPass, batch: int, sites: Sites | None
    ) -> int:
        """Without hidden layers the outputs are independent before each row: these have a kernel of their own."""
        if self.layout.n_layers > 1 or batch > 1:
            return super().learn_pass(noise, rule, work, batch, sites)
        with threads_for(self.layout.widths[0] + 1):
            return int(learn_separate(work, self._shape, rule, noise, self.mean, self.values))

    def look(self, rule: NetworkRule, row: FloatArray) -> tuple[FloatArray, FloatArray] | None:
        """Only with hidden layers: without, very many outputs would take memory for the derivatives of each in all."""
        return super().look(rule, row) if self.layout.n_layers > 1 else None

    def row_learner(
        self,
        rule: NetworkRule,
        noise: NetworkProgress,
        noise_gain: float,
        forgetting: Forgetting,
        prior: DiagonalGaussian,
    ) -> NetworkRow | None:
        """Only with hidden layers, as in `learn_pass`."""
        given = (rule, noise, noise_gain, forgetting, prior)
        return super().row_learner(*given) if self.layout.n_layers > 1 else None


def _product(rows: FloatArray, block: FloatArray) -> FloatArray:
    """Rows ``(..., size)`` times a block whose lower triangle counts, without making it whole, which costs far more."""
    flat = np.ascontiguousarray(rows, dtype=np.float64).reshape(-1, len(block))
    # BLAS has columns where NumPy has rows: what is below the diagonal here is above it there.
    if len(flat) == 1:
        return np.asarray(dsymv(1.0, block.T, flat[0], lower=0)).reshape(rows.shape)
    return np.asarray(dsymm(1.0, block.T, flat.T, lower=0).T).reshape(rows.shape)
