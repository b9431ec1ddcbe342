"""The Gaussian belief over all weights of a network, cut into blocks that are independent of each other.

One block is the full covariance; one a layer, one a neuron or one a weight are the cheaper structures. Whatever the
cut, learning is the same rank-K step on it: with ``J`` the slopes of the K outputs in the weights, ``c = C J`` and
``S = J'c``, the mean moves by ``c pull`` and the covariance by ``-c drop c'``, of which the blocks keep their part.
"""

from collections.abc import Iterator
from itertools import pairwise
from typing import Self

import numpy as np

from onepass._typing import FloatArray
from onepass.beliefs.layout import Layout

__all__ = ["STRUCTURES", "BlockGaussian", "LayeredDiagonal", "choose_structure", "make_belief"]

STRUCTURES = ("full", "layer", "neuron", "diagonal")

# What "auto" takes for too much: weights of a full covariance (a row then costs about a millisecond), and numbers in
# the blocks of all neurons together (32 MB).
_FULL_WEIGHTS = 2_000
_NEURON_NUMBERS = 4_000_000


def choose_structure(widths: tuple[int, ...]) -> str:
    """Resolve ``covariance="auto"``: the richest structure that is not too large."""
    layout = Layout(widths)
    if layout.size <= _FULL_WEIGHTS:
        return "full"
    numbers = int(np.square(np.diff(layout.unit_starts)).sum())
    return "neuron" if numbers <= _NEURON_NUMBERS else "diagonal"


class BlockGaussian:
    """A Gaussian whose covariance is made of blocks, of which the lower triangles are held.

    Parameters
    ----------
    layout : Layout
    structure : {"full", "layer", "neuron"}
    mean, variance : (p,) arrays
    """

    def __init__(self, layout: Layout, structure: str, mean: FloatArray, variance: FloatArray) -> None:
        self.layout, self.structure = layout, structure
        self.mean = np.array(mean)
        self.cuts = layout.cuts(structure)
        sizes = np.diff(self.cuts)
        self.offsets = np.concatenate([[0], np.cumsum(sizes**2)]).astype(np.int64)
        self.values = np.zeros(int(self.offsets[-1]), dtype=self.mean.dtype)
        for part, block in self.blocks():
            np.fill_diagonal(block, variance[part])

    def blocks(self) -> Iterator[tuple[slice, FloatArray]]:
        """The weights of each block, and a view of it whose lower triangle holds."""
        for b, (begin, end) in enumerate(pairwise(self.cuts)):
            view = self.values[self.offsets[b] : self.offsets[b + 1]].reshape(end - begin, end - begin)
            yield slice(int(begin), int(end)), view

    @property
    def cov(self) -> list[FloatArray]:
        """The blocks of the covariance, whole."""
        return [_mirrored(block) for _, block in self.blocks()]

    @property
    def arrays(self) -> dict[str, FloatArray]:
        """All numbers of the state."""
        return {"mean": self.mean, "covariance": self.values}

    def copy(self) -> Self:
        """Make an independent copy."""
        twin = object.__new__(type(self))
        twin.__dict__.update(self.__dict__)
        twin.mean, twin.values = self.mean.copy(), self.values.copy()
        return twin

    def unit_blocks(self) -> list[FloatArray]:
        """Covariance of each unit's own weights, ``(n_out, n_in + 1, n_in + 1)`` a layer."""
        wholes = self.cov
        units = []
        begins = self.layout.unit_starts
        for begin, end in pairwise(begins):
            b = int(np.searchsorted(self.cuts, begin, side="right")) - 1
            local = slice(begin - self.cuts[b], end - self.cuts[b])
            units.append(wholes[b][local, local])
        edges = np.concatenate([[0], np.cumsum(self.layout.widths[1:])])
        return [np.stack(units[low:high]) for low, high in pairwise(edges)]

    def last_hidden_with_outgoing(self) -> FloatArray | None:
        """Covariance of each output weight with the weights into its unit, ``(K, H, n_in + 1)``; None where zero."""
        layout = self.layout
        if self.structure != "full" or layout.n_layers < 2:
            return None
        n_in, n_hidden, n_out = layout.widths[-3] + 1, layout.widths[-2], layout.widths[-1]
        cov = self.cov[0][layout.starts[-2] :, layout.starts[-3] : layout.starts[-2]]
        whole = cov.reshape(n_out, n_hidden + 1, n_hidden, n_in)
        units = np.arange(n_hidden)
        return np.asarray(whole[:, units, units])

    def project(self, slopes: FloatArray) -> tuple[FloatArray, FloatArray]:
        """``c = C J`` and ``S = J'C J`` for slopes ``(..., K, p)``: ``(..., K, p)`` and ``(..., K, K)``."""
        gain = np.empty(slopes.shape, dtype=np.float64)
        for part, block in self.blocks():
            gain[..., part] = slopes[..., part] @ _mirrored(block)
        return gain, gain @ slopes.swapaxes(-1, -2)

    def step(self, gain: FloatArray, slopes: FloatArray, pull: FloatArray, drop: FloatArray) -> None:
        """Take the rank-K step ``m += c pull``, ``C -= c drop c'``."""
        self.mean += pull @ gain
        for part, block in self.blocks():
            block -= gain[:, part].T @ drop @ gain[:, part]

    def marginal_variances(self) -> FloatArray:
        """Variance of each weight, ``(p,)``."""
        return np.concatenate([np.diag(block) for _, block in self.blocks()])

    def inflate(self, factor: float) -> None:
        """Multiply the covariance by ``factor``."""
        self.values *= factor

    def sample(self, n: int, rng: np.random.Generator) -> FloatArray:
        """Draw weights, ``(n, p)``."""
        draws = rng.standard_normal((n, len(self.mean)))
        for part, block in self.blocks():
            values, vectors = np.linalg.eigh(_mirrored(block).astype(np.float64))
            draws[:, part] = (draws[:, part] * np.sqrt(np.maximum(values, 0.0))) @ vectors.T
        return draws + self.mean


class LayeredDiagonal:
    """A Gaussian with independent weights: memory and time in proportion to their number.

    Parameters
    ----------
    layout : Layout
    mean, variance : (p,) arrays
    """

    structure = "diagonal"

    def __init__(self, layout: Layout, mean: FloatArray, variance: FloatArray) -> None:
        self.layout = layout
        self.mean, self.variance = np.array(mean), np.array(variance)

    @property
    def cov(self) -> FloatArray:
        """The variances, ``(p,)``."""
        return self.variance.copy()

    @property
    def arrays(self) -> dict[str, FloatArray]:
        """All numbers of the state."""
        return {"mean": self.mean, "covariance": self.variance}

    def copy(self) -> Self:
        """Make an independent copy."""
        return type(self)(self.layout, self.mean, self.variance)

    def project(self, slopes: FloatArray) -> tuple[FloatArray, FloatArray]:
        """``c = C J`` and ``S = J'C J`` for slopes ``(..., K, p)``."""
        gain = slopes * self.variance
        return gain, gain @ slopes.swapaxes(-1, -2)

    def step(self, gain: FloatArray, slopes: FloatArray, pull: FloatArray, drop: FloatArray) -> None:
        """Take the step ``m += c pull`` and the diagonal of ``C -= c drop c'``."""
        self.mean += pull @ gain
        # As a factor, so that rounding can't make a variance negative.
        self.variance *= np.maximum(1.0 - ((drop @ gain) * slopes).sum(axis=0), 0.0)

    def marginal_variances(self) -> FloatArray:
        """Variance of each weight, ``(p,)``."""
        return self.variance.copy()

    def inflate(self, factor: float) -> None:
        """Multiply the variances by ``factor``."""
        self.variance *= factor

    def sample(self, n: int, rng: np.random.Generator) -> FloatArray:
        """Draw weights, ``(n, p)``."""
        return np.asarray(self.mean + rng.standard_normal((n, len(self.mean))) * np.sqrt(self.variance))


def make_belief(
    layout: Layout, structure: str, mean: FloatArray, variance: FloatArray
) -> BlockGaussian | LayeredDiagonal:
    """Start a belief with independent weights."""
    if structure == "diagonal":
        return LayeredDiagonal(layout, mean, variance)
    return BlockGaussian(layout, structure, mean, variance)


def _mirrored(block: FloatArray) -> FloatArray:
    """The whole of a block whose lower triangle holds."""
    return np.asarray(np.tril(block) + np.tril(block, -1).T)
