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

from onepass._typing import FloatArray
from onepass.beliefs.diagonal import DiagonalGaussian
from onepass.beliefs.forgetting import fade_blocks, prior_gap
from onepass.beliefs.full import FullGaussian

__all__ = ["BlockGaussian"]


class BlockGaussian:
    """A Gaussian whose covariance is made of blocks, of which the lower triangles count.

    Parameters
    ----------
    mean, variance : (p,) arrays
    cuts : (blocks + 1,) array
        The weights at which blocks begin, and the end.

    Examples
    --------
    >>> belief = BlockGaussian(np.zeros(3), np.ones(3), np.array([0, 2, 3]))
    >>> J = np.array([[1.0, 0.0, 2.0]])
    >>> gain, cov = belief.project_outputs(J)
    >>> belief.step(gain, J, score=np.array([0.5]), information=np.array([[0.1]]))
    >>> belief.mean, belief.cov[1]
    (array([0.5, 0. , 1. ]), array([[0.6]]))
    """

    def __init__(self, mean: FloatArray, variance: FloatArray, cuts: NDArray[np.int64]) -> None:
        self.mean: FloatArray = np.array(mean)
        self.cuts = cuts
        self.offsets: NDArray[np.int64] = np.concatenate([[0], np.cumsum(np.diff(cuts) ** 2)]).astype(np.int64)
        self.values: FloatArray = np.zeros(int(self.offsets[-1]), dtype=self.mean.dtype)
        for part, block in self.blocks():
            np.fill_diagonal(block, variance[part])

    def blocks(self) -> Iterator[tuple[slice, FloatArray]]:
        """The weights of each block, and a view of it whose lower triangle counts."""
        for b, (begin, end) in enumerate(pairwise(self.cuts)):
            view = self.values[self.offsets[b] : self.offsets[b + 1]].reshape(end - begin, end - begin)
            yield slice(int(begin), int(end)), view

    @property
    def cov(self) -> list[FloatArray]:
        """The blocks of the covariance, whole."""
        return [_mirrored(block) for _, block in self.blocks()]

    def copy(self) -> Self:
        """Make an independent copy."""
        twin = object.__new__(type(self))
        twin.__dict__.update(self.__dict__)
        twin.mean, twin.values = self.mean.copy(), self.values.copy()
        return twin

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
        """Each block as a belief of its own, in double precision, for its natural parameters."""
        return tuple(
            FullGaussian(self.mean[part].astype(np.float64), _mirrored(block).astype(np.float64))
            for part, block in self.blocks()
        )

    @classmethod
    def from_parts(cls, parts: Sequence[FullGaussian]) -> Self:
        """Put beliefs about the blocks together."""
        mean = np.concatenate([part.mean for part in parts])
        cuts = np.concatenate([[0], np.cumsum([len(part.mean) for part in parts])]).astype(np.int64)
        belief = cls(mean, np.zeros(len(mean)), cuts)
        for (_, block), part in zip(belief.blocks(), parts, strict=True):
            block[...] = part.cov
        return belief

    def take_over(self, fewer: "BlockGaussian", positions: NDArray[np.int64]) -> None:
        """Take what a belief about some of these weights has learned; the others stay as they are.

        The ``positions`` of those weights rise, and fall into the first blocks in their order.
        """
        self.mean[positions] = fewer.mean
        for (part, block), (other_part, other) in zip(self.blocks(), fewer.blocks(), strict=False):
            own = positions[other_part] - part.start
            block[np.ix_(own, own)] = other

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
            values, vectors = np.linalg.eigh(_mirrored(block).astype(np.float64))
            draws[:, part] = (draws[:, part] * np.sqrt(np.maximum(values, 0.0))) @ vectors.T
        return draws + self.mean


def _product(rows: FloatArray, block: FloatArray) -> FloatArray:
    """Rows ``(..., size)`` times a block whose lower triangle counts, without making it whole, which costs far more."""
    flat = np.ascontiguousarray(rows, dtype=np.float64).reshape(-1, len(block))
    # BLAS has columns where NumPy has rows: what is below the diagonal here is above it there.
    if len(flat) == 1:
        return np.asarray(dsymv(1.0, block.T, flat[0], lower=0)).reshape(rows.shape)
    return np.asarray(dsymm(1.0, block.T, flat.T, lower=0).T).reshape(rows.shape)


def _mirrored(block: FloatArray) -> FloatArray:
    """The whole of a block whose lower triangle counts."""
    return np.asarray(np.tril(block) + np.tril(block, -1).T)
