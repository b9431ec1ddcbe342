"""A Gaussian belief about all weights of a network, of which only the best known directions are kept jointly.

The precision is a diagonal and few columns, ``D⁻¹ + V V'``, so the covariance is ``D - U U'`` with as many columns: a
row of K outputs appends up to K columns to both, at the cost of the columns and not of the weights squared. When
there is no room left, the columns are turned to the eigenvectors of ``V'D V``; those that tell most are kept, and the
others are given to the diagonal, such that the weights all but keep their variances. The precision is a sum of squares
throughout: it can't lose its definiteness. Until the first compression the belief is the full one.

Fading and drift keep this form: ``k (D⁻¹ + V V') + (1 - k) D0⁻¹`` and ``(1 - q) C + q D0`` are computed exactly.
"""

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh
from scipy.linalg.blas import dtrsm

from onepass._typing import FloatArray
from onepass.beliefs.diagonal import DiagonalGaussian
from onepass.beliefs.forgetting import lowered, prior_gap
from onepass.beliefs.full import FullGaussian

__all__ = ["LowRankGaussian", "capacity"]

# A direction of the outputs is left out of a row's step if the row explains less than this share of its variance.
_LEAST_SHARE = 1e-9
_LEAST_LEFT = 1e-12  # of a variance, in one direction, by one row
_ROUNDING = 4.0  # errors of a sum of products, in those of one number times the root of how many there are
_MOST_MERGED = 3_000  # weights, for whose merging a full covariance is made
_SWEEPS, _AGREED = 30, 1e-3  # of the diagonal that fits a full covariance; a few have almost all of it


def capacity(size: int, n_outputs: int, rank: int) -> int:
    """Columns that a belief about ``size`` weights has room for, if it keeps ``rank`` of them."""
    kept = min(rank, size)
    return kept + max(kept, n_outputs)


class LowRankGaussian:
    """A Gaussian whose precision is a diagonal plus a matrix of low rank.

    Parameters
    ----------
    mean, variance : (p,) arrays
    n_outputs : int
        Of the network: columns that a row may append.
    rank : int
        Columns that are kept.

    Examples
    --------
    >>> belief = LowRankGaussian(np.zeros(3), np.ones(3), n_outputs=1, rank=2)
    >>> J = np.array([[1.0, 0.0, 2.0]])
    >>> gain, cov = belief.project_outputs(J)
    >>> belief.step(gain, J, score=np.array([0.5]), information=np.array([[0.1]]))
    >>> belief.mean, belief.marginal_variances(), belief.n_columns
    (array([0.5, 0. , 1. ]), array([0.9, 1. , 0.6]), 1)
    """

    def __init__(self, mean: FloatArray, variance: FloatArray, n_outputs: int, rank: int) -> None:
        mean = np.array(mean)
        self.n_outputs = n_outputs
        self.rank: int = min(rank, len(mean))
        self._bind(mean, np.zeros(self.n_numbers(len(mean), n_outputs, rank), dtype=mean.dtype))
        self.variance[:] = variance

    @staticmethod
    def n_numbers(size: int, n_outputs: int, rank: int) -> int:
        """How many numbers the covariance has: the diagonal, both sets of columns, and how many are in use."""
        return size * (1 + 2 * capacity(size, n_outputs, rank)) + 1

    def _bind(self, mean: FloatArray, values: FloatArray) -> None:
        size = len(mean)
        self.mean: FloatArray = mean
        self.values = values
        self.capacity: int = capacity(size, self.n_outputs, self.rank)
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

    def copy(self) -> Self:
        """Make an independent copy."""
        twin: Self = _restored(type(self), self.n_outputs, self.rank, self.mean.copy(), self.values.copy())
        return twin

    def __reduce__(self) -> Any:
        return _restored, (type(self), self.n_outputs, self.rank, self.mean, self.values)

    def marginal_variances(self) -> FloatArray:
        """Variance of each weight, ``(p,)``."""
        return np.asarray(np.maximum(self.variance - np.square(self._columns).sum(axis=1), 0.0))

    def project_outputs(self, jacobian: FloatArray) -> tuple[FloatArray, FloatArray]:
        """``c = C J`` and ``S = J'C J`` for derivatives ``(..., K, p)``: ``(..., K, p)`` and ``(..., K, K)``."""
        gain = jacobian * self.variance - (jacobian @ self._columns) @ self._columns.T
        return gain, self.output_covariance(jacobian)

    def output_covariance(self, jacobian: FloatArray) -> FloatArray:
        """``J'D J - (U'J)'(U'J)`` for derivatives ``(..., K, p)``, with what rounding hides of it: ``(..., K, K)``."""
        first, seen = (jacobian * self.variance) @ jacobian.swapaxes(-1, -2), jacobian @ self._columns
        cov = first - seen @ seen.swapaxes(-1, -2)
        own = np.arange(cov.shape[-1])
        cov[..., own, own] = np.maximum(cov[..., own, own], 0.0) + self.rounding * first[..., own, own]
        return np.asarray(cov)

    def step(self, gain: FloatArray, jacobian: FloatArray, score: FloatArray, information: FloatArray) -> None:
        """Take the rank-K step ``m += c score``, ``C -= c information c'``, and compress when there is no room left."""
        self.mean += score @ gain
        root, precision_root = _roots(information, self.output_covariance(jacobian))
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
        told = np.square(turned) @ variance
        by_all = np.einsum("ic,ic->i", self._columns, self._columns)
        by_kept = variance**2 * np.einsum("ci,ci,c->i", turned, turned, 1.0 / (1.0 + told))
        # No direction that is dropped tells more than one that is kept, which bounds what rounding can do.
        matched = np.maximum(variance - (by_all - by_kept), variance / (1.0 + told.min()))
        self._assign(matched, turned)
        hidden = self.rounding * variance  # by rounding
        self._assign(matched * (before + hidden) * lowered(self.marginal_variances() + hidden), turned)

    def take_over(self, fewer: "LowRankGaussian", positions: NDArray[np.int64]) -> None:
        """Take what a belief about the weights at some ``positions`` has learned; the others stay as they are."""
        kept = fewer.copy()
        kept.rank = min(fewer.rank, self.rank)
        if kept.n_columns > self.capacity - self.n_outputs:
            kept.compress()
        n = kept.n_columns
        self.mean[positions], self.variance[positions] = kept.mean, kept.variance
        self.precision_root[:n, positions], self.cov_root[positions, :n] = kept.precision_root[:n], kept.cov_root[:, :n]
        self.used[0] = n

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
        faded = towards * variance * lowered(keep * towards + (1.0 - keep) * variance)
        self._assign(faded, _turned(np.sqrt(keep) * self._precision_columns, faded))
        pull = (1.0 - keep) * gap * lowered(towards)
        self.mean += self.variance * pull - self._columns @ (pull @ self._columns)

    def drift(self, share: float, prior: DiagonalGaussian) -> None:
        """Let the weights move by a share of the prior's variance: ``C <- (1 - share) C + share C0``.

        By the matrix inversion lemma, in the form in which nothing is subtracted.
        """
        variance, added = self.variance.astype(np.float64), share * prior.variance.astype(np.float64)
        moved = (1.0 - share) * variance + added
        kept = variance * lowered(moved)
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
        scaled = self._columns * lowered(np.sqrt(self.variance.astype(np.float64)))[:, None]
        largest = np.linalg.eigvalsh(scaled.T @ scaled).max(initial=0.0)
        # Appended columns have the rounding of the covariance, which is that of the largest variances.
        most = 1.0 + self.capacity * np.sqrt(np.finfo(self.mean.dtype).eps)
        if largest > most or self._columns[self.variance == 0.0].any():
            raise ValueError("covariance is not positive semi-definite")

    def to_full(self) -> FullGaussian:
        """Make the same belief with a full covariance, in double precision, for its natural parameters."""
        size = len(self.mean)
        if size > _MOST_MERGED:
            raise ValueError(
                f"a low-rank covariance is converted to a full one for merging, which is possible for at most "
                f"{_MOST_MERGED} weights, got {size}: use fewer units, or covariance='kronecker'"
            )
        exact = LowRankGaussian(self.mean.astype(np.float64), self.variance, self.n_outputs, self.rank)
        variance = self.variance.astype(np.float64)
        exact._assign(variance, _turned(self._precision_columns, variance))
        return _FullPart(exact.mean, exact.cov[0])

    @classmethod
    def from_full(cls, belief: FullGaussian, n_outputs: int, rank: int) -> Self:
        """Make the belief of this form that has the same mean and variances, and the directions known best.

        Given ``D`` the best columns are the first eigenvectors of the precision in units of ``D``. The variances are
        then those of the full covariance for some ``D``, which is found by scaling it by how far they are off.
        """
        made = cls(belief.mean, np.diag(belief.cov), n_outputs, rank)
        size, variances, precision = len(belief.mean), np.diag(belief.cov), np.linalg.inv(belief.cov)
        unit = np.sqrt(variances)
        # From a diagonal above the covariance, with which enough columns are exact at once.
        variance = variances * np.linalg.eigvalsh(belief.cov / np.outer(unit, unit)).max()
        for _ in range(_SWEEPS):
            unit = np.sqrt(variance)
            told, vectors = eigh(unit[:, None] * precision * unit, subset_by_index=[size - made.rank, size - 1])
            told = np.maximum(told, 1.0)
            made._assign(variance, ((vectors * np.sqrt(told - 1.0)) / unit[:, None]).T[::-1])
            left = np.maximum(1.0 - np.square(vectors) @ (1.0 - 1.0 / told), _LEAST_LEFT)
            off = variances / (variance * left)
            if np.abs(off - 1.0).max() < _AGREED:
                break
            variance = variance * off
        return made


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


def _restored(kind: Any, n_outputs: int, rank: int, mean: FloatArray, values: FloatArray) -> Any:
    belief = object.__new__(kind)
    belief.n_outputs, belief.rank = n_outputs, rank
    belief._bind(mean, values)
    return belief


def _roots(information: FloatArray, cov: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Roots ``(K, rank)`` of the information ``M`` of a row and of the precision that it stems from.

    With ``S = L L'`` and the eigenvalues ``w`` and eigenvectors ``q`` of ``L'M L``, the shares of variances that the
    row explains, the columns are ``M L q / √w`` and the same over ``√(1 - w)``. Directions of which the row explains
    next to nothing are left out, and those that it makes less certain, as a row that is distrusted by half may.
    """
    values, vectors = np.linalg.eigh(cov)
    root = vectors * np.sqrt(np.maximum(values, 0.0))
    shares, directions = np.linalg.eigh(root.T @ information @ root)
    told = shares > _LEAST_SHARE
    possible = np.minimum(shares[told], 1.0 - _LEAST_LEFT)  # whatever rounding made of it
    columns = information @ root @ directions[:, told] * np.sqrt(possible) / shares[told]
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
