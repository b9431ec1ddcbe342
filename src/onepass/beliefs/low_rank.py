"""A Gaussian belief about all weights of a network, of which only the best known directions are kept jointly.

The precision is a diagonal and few columns, ``D⁻¹ + V V'``, so the covariance is ``D - U U'`` with as many columns: a
row of K outputs appends up to K columns to both, at the cost of the columns and not of the weights squared. When
there is no room left, the columns are turned to the eigenvectors of ``V'D V``; those that tell most are kept, and the
others are given to the diagonal, such that the weights all but keep their variances. The precision is a sum of squares
throughout: it can't lose its definiteness. Until the first compression the belief is the full one.

Fading and drift keep this form: ``k (D⁻¹ + V V') + (1 - k) D0⁻¹`` and ``(1 - q) C + q D0`` are computed exactly.
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh
from scipy.linalg.blas import dtrsm

from onepass._typing import FloatArray
from onepass.beliefs.diagonal import DiagonalGaussian
from onepass.beliefs.forgetting import prior_gap, reciprocals
from onepass.beliefs.full import FullGaussian
from onepass.beliefs.network import NetworkBelief, UnitVariances
from onepass.engine.network_low_rank import LowRankWorkspace, learn_low_rank, look_low_rank
from onepass.engine.network_records import CompiledPass, NetworkRule, NetworkShape, Sites
from onepass.engine.threads import threads_for
from onepass.engine.vector_matches import LEAST_LEFT, NetworkProgress
from onepass.layers.layout import Layout

__all__ = ["LowRankGaussian", "capacity", "default_rank"]

# A direction of the outputs is left out of a row's step if the row explains less than this share of its variance.
_LEAST_SHARE = 1e-9
_ROUNDING = 4.0  # errors of a sum of products, in those of one number times the root of how many there are
_MOST_MERGED = 3_000  # weights, for whose merging a full covariance is made
_SWEEPS, _AGREED = 30, 1e-3  # of the diagonal that fits a full covariance; a few have almost all of it

_RANKED_NUMBERS, _LEAST_RANK, _MOST_RANK = 1_000_000, 10, 100


def default_rank(n_weights: int) -> int:
    """Directions that a covariance of low rank keeps.

    On random functions and on splits of regression sets that are not reported, 50 were up to a tenth worse than 100,
    and 150 gained a few per cent for half as much time again.

    Examples
    --------
    >>> [default_rank(size) for size in (500, 10_000, 20_000, 200_000)]
    [100, 100, 50, 10]
    """
    return min(max(_RANKED_NUMBERS // max(n_weights, 1), _LEAST_RANK), _MOST_RANK)


def capacity(size: int, n_outputs: int, rank: int) -> int:
    """Columns that a belief about ``size`` weights has room for, if it keeps ``rank`` of them."""
    kept = min(rank, size)
    return kept + max(kept, n_outputs)


class LowRankGaussian(NetworkBelief):
    """A Gaussian whose precision is a diagonal plus a matrix of low rank.

    Parameters
    ----------
    layout, mean, variance : as of every `NetworkBelief`
    rank : int, optional
        Columns that are kept.

    Examples
    --------
    >>> belief = LowRankGaussian(Layout((2, 1)), np.zeros(3), np.ones(3), rank=2)
    >>> J = np.array([[1.0, 0.0, 2.0]])
    >>> gain, cov = belief.project_outputs(J)
    >>> belief.step(gain, J, score=np.array([0.5]), information=np.array([[0.1]]))
    >>> belief.mean, belief.marginal_variances(), belief.n_columns
    (array([0.5, 0. , 1. ]), array([0.9, 1. , 0.6]), 1)
    """

    name = "low_rank"
    meaning = "the correlations in the directions known best are kept"
    drifts_in_steps = True
    learns_batches = False
    for_few_outputs = True
    compresses = True
    # Some five milliseconds: independent weights are so much worse that this may take longer than full covariances.
    most_multiply_adds = 40_000_000

    @classmethod
    def n_numbers(cls, layout: Layout, rank: int | None = None) -> int:
        """The diagonal, both sets of columns, and how many are in use."""
        return layout.size * (1 + 2 * capacity(layout.size, layout.widths[-1], rank or default_rank(layout.size))) + 1

    @classmethod
    def multiply_adds(cls, layout: Layout, rank: int | None = None) -> int:
        """In proportion to the columns."""
        return 14 * layout.size * min(rank or default_rank(layout.size), layout.size)

    def _prepare(self, layout: Layout, rank: int | None = None) -> None:
        super()._prepare(layout)
        self.n_outputs: int = layout.widths[-1]
        self.rank: int = min(rank or default_rank(layout.size), layout.size)
        self.settings = {"rank": self.rank}
        self.capacity: int = capacity(layout.size, self.n_outputs, self.rank)
        self._shape = NetworkShape(layout.widths, layout.starts)

    @property
    def widest(self) -> int:
        """Columns: what takes a factorisation is the matrix of their products."""
        return self.capacity

    def _start(self, variance: FloatArray) -> None:
        self.variance[:] = variance

    def _bind(self, mean: FloatArray, values: FloatArray) -> None:
        super()._bind(mean, values)
        size = len(mean)
        columns = size * self.capacity
        self.variance: FloatArray = values[:size]
        """``D``, ``(p,)``."""
        self.precision_root: FloatArray = values[size : size + columns].reshape(self.capacity, size)
        """``V'``, ``(capacity, p)``."""
        self.cov_root: FloatArray = values[size + columns : size + 2 * columns].reshape(size, self.capacity)
        """``U``, ``(p, capacity)``: as rows of weights, since learning needs all columns of a unit's weights."""
        self.used: FloatArray = values[-1:]
        """How many columns are in use, ``(1,)``."""

    @property
    def n_columns(self) -> int:
        """How many columns are in use."""
        return int(self.used[0])

    @property
    def is_full(self) -> bool:
        """Whether there may be no room for another row."""
        return self.n_columns + self.n_outputs > self.capacity

    @property
    def rounding(self) -> float:
        """Share of ``J'D J`` below which ``J'C J``, a difference from it, is not known.

        It is added to the variances of outputs. So a row whose outputs are known better than that can't take more away
        from the covariance than is left, and ``D - U U'`` stays definite but for rounding.
        """
        return float(_ROUNDING * np.sqrt(self.capacity) * np.finfo(self.mean.dtype).eps)

    @property
    def _precision_columns(self) -> FloatArray:
        """``V'``, those in use."""
        return self.precision_root[: self.n_columns].astype(np.float64, copy=False)

    @property
    def _columns(self) -> FloatArray:
        """``U``, those in use."""
        return self.cov_root[:, : self.n_columns].astype(np.float64, copy=False)

    @property
    def cov(self) -> list[FloatArray]:
        """The covariance as one block, ``(p, p)``: made anew, so be sure that there is room for it."""
        columns = self._columns
        return [np.diag(self.variance.astype(np.float64)) - columns @ columns.T]

    def marginal_variances(self) -> FloatArray:
        """Variance of each weight, ``(p,)``."""
        return np.asarray(np.maximum(self.variance - np.square(self._columns).sum(axis=1), 0.0))

    def project_outputs(self, jacobian: FloatArray) -> tuple[FloatArray, FloatArray]:
        """``c = C J`` and ``S = J'C J`` for derivatives ``(..., K, p)``: ``(..., K, p)`` and ``(..., K, K)``."""
        gain = jacobian * self.variance - (jacobian @ self._columns) @ self._columns.T
        return gain, self._projected_covariance(jacobian)

    def _projected_covariance(self, jacobian: FloatArray) -> FloatArray:
        """``J'D J - (U'J)'(U'J)`` for derivatives ``(..., K, p)``, with what rounding hides of it: ``(..., K, K)``."""
        first, seen = (jacobian * self.variance) @ jacobian.swapaxes(-1, -2), jacobian @ self._columns
        cov = first - seen @ seen.swapaxes(-1, -2)
        own = np.arange(cov.shape[-1])
        cov[..., own, own] = np.maximum(cov[..., own, own], 0.0) + self.rounding * first[..., own, own]
        return np.asarray(cov)

    def step(self, gain: FloatArray, jacobian: FloatArray, score: FloatArray, information: FloatArray) -> None:
        """Take the rank-K step ``m += c score``, ``C -= c information c'``, and compress when there is no room left."""
        self.mean += score @ gain
        root, precision_root = _roots(information, self._projected_covariance(jacobian))
        new = slice(self.n_columns, self.n_columns + root.shape[1])
        self.cov_root[:, new] = gain.T @ root
        self.precision_root[new] = precision_root.T @ jacobian
        self.used += root.shape[1]
        if self.is_full:
            self.compress()

    def compress(self) -> None:
        """Keep the columns that tell most, and give what the others tell of each weight alone to the diagonal.

        Turned to the eigenvectors of ``V'D V`` with the eigenvalues ``λ``, the columns ``x`` are orthogonal in units of
        ``D``: each takes ``(v x)² / (1 + λ)`` away from a variance ``v``, and all of them what ``U`` does, so that only
        those that are kept have to be turned. With a smaller diagonal these take less away; so it is scaled once more,
        by how far the variances of the weights are off.
        """
        variance, before = self.variance.astype(np.float64), self.marginal_variances()
        turned = _turned(self._precision_columns, variance)[: self.rank]
        explained = np.square(turned) @ variance
        by_all = np.einsum("ic,ic->i", self._columns, self._columns)
        by_kept = variance**2 * np.einsum("ci,ci,c->i", turned, turned, 1.0 / (1.0 + explained))
        # No direction that is dropped tells more than one that is kept, which bounds what rounding can do.
        matched = np.maximum(variance - (by_all - by_kept), variance / (1.0 + explained.min()))
        self._assign(matched, turned)
        hidden = self.rounding * variance  # by rounding
        self._assign(matched * (before + hidden) * reciprocals(self.marginal_variances() + hidden), turned)

    def take_over(self, fewer: Self, positions: NDArray[np.int64]) -> None:
        """Take what a belief about the weights at some ``positions`` has learned; the others stay as they are."""
        kept = fewer.copy()
        kept.rank = min(fewer.rank, self.rank)
        if kept.n_columns > self.capacity - self.n_outputs:
            kept.compress()
        n = kept.n_columns
        self.mean[positions], self.variance[positions] = kept.mean, kept.variance
        self.precision_root[:n, positions], self.cov_root[positions, :n] = kept.precision_root[:n], kept.cov_root[:, :n]
        self.used[0] = n

    def negate(self, positions: NDArray[np.int64]) -> None:
        """Change the sign of the weights of an output: of their means, and of their correlations with all others."""
        super().negate(positions)
        self.precision_root[:, positions] *= -1.0
        self.cov_root[positions] *= -1.0

    def _assign(self, variance: FloatArray, columns: FloatArray) -> None:
        """Take ``D`` and `_turned` columns ``V'``; ``U`` follows.

        With ``I + V'D V = R R'`` it is ``D V R'⁻¹``: what appending the columns one by one gives. As they are all but
        orthogonal in units of ``D`` no direction drowns in the rounding of one that tells more.
        """
        unit = np.sqrt(variance)
        scaled = columns * unit
        gram = _squared(scaled)
        count = len(columns)
        if not np.isfinite(gram).all():  # answered by the check of what was learned
            self.values[:-1] = np.nan
            return
        factor = np.linalg.cholesky(gram + np.eye(count))
        scaled *= unit
        self.variance[:] = variance
        self.precision_root[:count], self.precision_root[count:] = columns, 0.0
        self.cov_root[:, :count] = dtrsm(1.0, factor, scaled.T, side=1, lower=1, trans_a=1, overwrite_b=1)
        self.cov_root[:, count:] = 0.0
        self.used[0] = count

    def forget(self, keep: float, prior: DiagonalGaussian) -> None:
        """Let rows count ``keep`` of what they did and the prior the rest: see `onepass.beliefs.forgetting`."""
        towards, gap = prior_gap(self.mean, self.marginal_variances(), prior.mean, prior.variance)
        variance = self.variance.astype(np.float64)
        faded = towards * variance * reciprocals(keep * towards + (1.0 - keep) * variance)
        self._assign(faded, _turned(np.sqrt(keep) * self._precision_columns, faded))
        pull = (1.0 - keep) * gap * reciprocals(towards)
        self.mean += self.variance * pull - self._columns @ (pull @ self._columns)

    def drift(self, share: float, prior: DiagonalGaussian) -> None:
        """Let the weights move by a share of the prior's variance: ``C <- (1 - share) C + share C0``.

        By the matrix inversion lemma, in the form in which nothing is subtracted.
        """
        variance, added = self.variance.astype(np.float64), share * prior.variance.astype(np.float64)
        moved = (1.0 - share) * variance + added
        kept = variance * reciprocals(moved)
        columns = self._precision_columns
        if share == 1.0:
            self._assign(moved, columns[:0])
            return
        # R R' = I + V'A V is inverted along its eigenvectors.
        columns = _turned(columns, added * kept)
        shrunk = np.sqrt((1.0 - share) / (1.0 + np.square(columns) @ (added * kept)))
        self._assign(moved, _turned(shrunk[:, None] * columns * kept, moved))

    def sample(self, n: int, rng: np.random.Generator) -> FloatArray:
        """Draw weights, ``(n, p)``: draws by the diagonal, corrected by what they and noise of 1 say along ``V``."""
        turned = _turned(self._precision_columns, self.variance.astype(np.float64))
        draws = rng.standard_normal((n, len(self.mean))) * np.sqrt(self.variance)
        seen = draws @ turned.T + rng.standard_normal((n, len(turned)))
        corrected = seen / (1.0 + np.square(turned) @ self.variance) @ turned
        return np.asarray(self.mean + draws - corrected * self.variance)

    def check(self) -> None:
        """Raise a ValueError unless the covariance, from a file, is positive semi-definite."""
        if (self.variance < 0.0).any():
            raise ValueError(f"covariance has the entry {self.variance.min():g}, which must not be negative")
        if not (self.used[0] == np.floor(self.used[0]) and 0 <= self.used[0] <= self.capacity - self.n_outputs):
            most = self.capacity - self.n_outputs
            raise ValueError(f"covariance has {self.used[0]:g} columns in use, which must be a whole number to {most}")
        scaled = self._columns * reciprocals(np.sqrt(self.variance.astype(np.float64)))[:, None]
        largest = np.linalg.eigvalsh(scaled.T @ scaled).max(initial=0.0)
        # Appended columns have the rounding of the covariance, which is that of the largest variances.
        most = 1.0 + self.capacity * np.sqrt(np.finfo(self.mean.dtype).eps)
        if largest > most or self._columns[self.variance == 0.0].any():
            raise ValueError("covariance is not positive semi-definite")

    def parts(self) -> tuple[FullGaussian, ...]:
        """One, with a full covariance, in double precision; a ValueError where that is too large."""
        size = len(self.mean)
        if size > _MOST_MERGED:
            raise ValueError(
                f"a low-rank covariance is converted to a full one for merging, which is possible for at most "
                f"{_MOST_MERGED} weights, got {size}: use fewer units, or covariance='kronecker'"
            )
        exact = type(self)(self.layout, self.mean.astype(np.float64), self.variance, **self.settings)
        variance = self.variance.astype(np.float64)
        exact._assign(variance, _turned(self._precision_columns, variance))
        return (_FullPart(exact.mean, exact.cov[0]),)

    def join(self, parts: Sequence[FullGaussian]) -> Self:
        """Make the belief of this form that has the mean and variances of the only part, and its best known directions.

        Given ``D`` the best columns are the first eigenvectors of the precision in units of ``D``. The variances are
        then those of the full covariance for some ``D``, which is found by scaling it by how far they are off.
        """
        (belief,) = parts
        made = type(self)(self.layout, belief.mean, np.diag(belief.cov), **self.settings)
        size, variances, precision = len(belief.mean), np.diag(belief.cov), np.linalg.inv(belief.cov)
        unit = np.sqrt(variances)
        # From a diagonal above the covariance, with which enough columns are exact at once.
        variance = variances * np.linalg.eigvalsh(belief.cov / np.outer(unit, unit)).max()
        for _ in range(_SWEEPS):
            unit = np.sqrt(variance)
            values, vectors = eigh(unit[:, None] * precision * unit, subset_by_index=[size - made.rank, size - 1])
            values = np.maximum(values, 1.0)
            made._assign(variance, ((vectors * np.sqrt(values - 1.0)) / unit[:, None]).T[::-1])
            left = np.maximum(1.0 - np.square(vectors) @ (1.0 - 1.0 / values), LEAST_LEFT)
            off = variances / (variance * left)
            if np.abs(off - 1.0).max() < _AGREED:
                break
            variance = variance * off
        return made

    def _unit_columns(self) -> list[FloatArray]:
        """``U`` of each layer, ``(n_out, n_in + 1, columns)``."""
        columns = self.cov_root[:, : self.n_columns]
        starts = pairwise(self.layout.starts)
        return [columns[a:b].reshape(*shape, -1) for (a, b), shape in zip(starts, self.layout.shapes, strict=True)]

    def unit_variances(self) -> list[tuple[FloatArray, FloatArray]]:
        """The diagonal of each layer, ``(n_out, n_in + 1)``, and the columns of its units' own weights."""
        return list(zip(self.layout.layers(self.variance), self._unit_columns(), strict=True))

    def own_variances(self) -> list[UnitVariances]:
        """``Σ z² v - (U'z)²`` with the diagonal and the columns of each unit's own weights."""

        def quadratic(variance: FloatArray, columns: FloatArray) -> UnitVariances:
            return lambda z: z**2 @ variance.T - np.stack([np.square(z @ own).sum(axis=-1) for own in columns], axis=-1)

        return [quadratic(*own) for own in self.unit_variances()]

    def covariance_with_outgoing(self) -> FloatArray | None:
        """Only the columns couple weights of different layers."""
        if self.layout.n_layers < 2:
            return None
        *_, entering, outgoing = self._unit_columns()
        return np.asarray(-np.einsum("khc,hic->khi", outgoing[:, 1:], entering, optimize=True))

    def output_covariance(self, signals: Any) -> FloatArray:
        """By the derivatives in all weights."""
        return self._projected_covariance(signals.weight_jacobian(self.layout))

    def learn_pass(
        self, noise: NetworkProgress, rule: NetworkRule, work: CompiledPass, batch: int, sites: Sites | None
    ) -> int:
        """Learn row by row, and compress the belief whenever there is no room for another one."""
        numbers = (self.mean, self.variance, self.precision_root, self.cov_root, self.used)
        space, learned = self._workspace(rule), 0
        while True:
            if self.is_full:  # also before the first row, if an interrupt came before the last compression
                with threads_for(self.widest), np.errstate(over="ignore", invalid="ignore"):
                    self.compress()
            # Still full, it is not finite, which the check of what was learned is to find.
            if self.is_full or (work.is_first and noise.trust.is_alarmed()):
                return learned
            learned += learn_low_rank(work, learned, noise, space, *numbers)
            if not self.is_full:
                return learned

    def look(self, rule: NetworkRule, row: FloatArray) -> tuple[FloatArray, FloatArray]:
        """As the kernel does before it learns a row."""
        return look_low_rank(row, self._workspace(rule), self.mean, self.variance, self.cov_root, self.used)

    def _workspace(self, rule: NetworkRule) -> LowRankWorkspace:
        return LowRankWorkspace(self._shape, rule, self.cov_root.shape[1], self.rounding)


class _FullPart(FullGaussian):
    """A full belief on the way to one of low rank."""

    @classmethod
    def from_natural(cls, precision: FloatArray, precision_mean: FloatArray, centre: FloatArray) -> Self:
        """Make the belief whose natural parameters these are; a ValueError where there is none."""
        try:
            return super().from_natural(precision, precision_mean, centre)
        except ValueError:
            raise ValueError(
                "with covariance='low_rank' models can be merged only if their common prior has learned no rows: the "
                "copies of one that has would compress it each in its own way. Merge copies of a network that has "
                "learned nothing, or use covariance='full' or 'kronecker'"
            ) from None


def _roots(information: FloatArray, cov: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Roots ``(K, rank)`` of the information ``M`` of a row and of the precision that it stems from.

    With ``S = L L'`` and the eigenvalues ``w`` and eigenvectors ``q`` of ``L'M L``, the shares of variances that the
    row explains, the columns are ``M L q / √w`` and the same over ``√(1 - w)``. Directions of which the row explains
    next to nothing are left out, and those that it makes less certain, as a row that is distrusted by half may.
    """
    values, vectors = np.linalg.eigh(cov)
    root = vectors * np.sqrt(np.maximum(values, 0.0))
    shares, directions = np.linalg.eigh(root.T @ information @ root)
    informative = shares > _LEAST_SHARE
    possible = np.minimum(shares[informative], 1.0 - LEAST_LEFT)  # whatever rounding made of it
    columns = information @ root @ directions[:, informative] * np.sqrt(possible) / shares[informative]
    return columns, columns / np.sqrt(1.0 - possible)


def _turned(columns: FloatArray, variance: FloatArray) -> FloatArray:
    """The columns ``V'`` turned to the eigenvectors of ``V'D V``, those that tell most first."""
    gram = _squared(columns * np.sqrt(variance))
    if not np.isfinite(gram).all():  # answered by the check of what was learned
        return np.full_like(columns, np.nan)
    return np.asarray(np.linalg.eigh(gram)[1][:, ::-1].T @ columns)


def _squared(columns: FloatArray) -> FloatArray:
    """``W W'``."""
    return np.asarray(columns @ columns.T)
