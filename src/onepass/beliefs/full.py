"""A full covariance, held as a square root or, for large ones, as itself."""

from typing import Any, Self

import numpy as np
from scipy.linalg.blas import dsymm, ssymm
from scipy.linalg.lapack import dtrtri

from onepass._typing import FloatArray
from onepass.beliefs.base import Natural, Projection

__all__ = ["FullGaussian"]

_TINY = 1e-200  # a share of the variance that is none; beyond, quotients would overflow
_BAND = 8192  # columns of a large product that are worked out together


class FullGaussian:
    """A Gaussian with a full covariance, kept as a square root: ``C = R'R`` with ``R`` lower triangular.

    The root makes the covariance symmetric and positive semi-definite whatever the rounding, and keeps twice the
    digits: ``C`` itself loses them when a precise row follows a vague prior. A large covariance may for speed be held
    as ``C`` instead (see `dense`), as long as its digits last.

    Parameters
    ----------
    mean : (p,) array
    cov : (p, p) symmetric positive semi-definite array, or (p,) variances

    Examples
    --------
    >>> belief = FullGaussian(np.zeros(2), np.eye(2))
    >>> seen = belief.project(np.array([1.0, 1.0]))
    >>> belief.rank_one_step(seen, alpha=0.5, kappa=0.25, left=0.5)
    >>> belief.mean, belief.cov.round(12)
    (array([0.5, 0.5]), array([[ 0.75, -0.25],
           [-0.25,  0.75]]))
    """

    def __init__(self, mean: FloatArray, cov: FloatArray) -> None:
        # Row 0 is the mean; the others are scratch space for compiled code, which so gets both in one argument.
        self.space = np.zeros((5, len(mean)), dtype=mean.dtype)
        self.space[0] = mean
        # Exactly one of the two forms is current.
        self._root: FloatArray | None = np.diag(np.sqrt(cov)) if cov.ndim == 1 else _square_root(cov)
        self._dense: FloatArray | None = None
        # Set once ``C`` itself would lose its digits, so that the root is held from then on.
        self.fragile = False

    @classmethod
    def held(
        cls, mean: FloatArray, *, root: FloatArray | None = None, dense: FloatArray | None = None, fragile: bool = False
    ) -> Self:
        """Take up a belief in the form it was held in: either ``root`` or ``dense``."""
        belief = object.__new__(cls)
        belief.space = np.zeros((5, len(mean)), dtype=mean.dtype)
        belief.space[0] = mean
        belief._root, belief._dense, belief.fragile = root, dense, fragile
        return belief

    @property
    def mean(self) -> FloatArray:
        """The mean of the weights, ``(p,)``, to be changed in place."""
        return np.asarray(self.space[0])

    @property
    def root(self) -> FloatArray:
        """``R``, to be changed in place."""
        if self._root is None:
            self._root, self._dense = _square_root(self.cov), None
        return self._root

    @property
    def dense(self) -> FloatArray:
        """The lower triangle of ``C`` itself, in Fortran order, to be changed in place."""
        if self._dense is None:
            self._dense, self._root = self.cov.T, None  # a symmetric matrix transposed is itself in the other order
        return self._dense

    @property
    def is_dense(self) -> bool:
        """Whether ``C`` itself is what is held now."""
        return self._dense is not None

    @property
    def cov(self) -> FloatArray:
        """The covariance ``C``, ``(p, p)``."""
        if self._dense is not None:
            return np.asarray(np.tril(self._dense) + np.tril(self._dense, -1).T)
        return _squared(self.root)

    def copy(self) -> Self:
        """Make an independent copy."""
        twin = object.__new__(type(self))
        twin.space = self.space.copy()
        twin._root = None if self._root is None else self._root.copy()
        twin._dense = None if self._dense is None else self._dense.copy(order="F")
        twin.fragile = self.fragile
        return twin

    def hold(self, other: "FullGaussian") -> None:
        """Take over another belief's numbers, in its form."""
        self.space[0] = other.space[0]
        self._root, self._dense, self.fragile = other._root, other._dense, other.fragile

    def marginal_variances(self) -> FloatArray:
        """Return the variance of each weight, ``(p,)``."""
        if self._dense is not None:
            return np.array(np.diag(self._dense))
        return np.asarray(np.square(self.root).sum(axis=0))

    def variances(self, rows: Any, bias: int = 0) -> FloatArray:
        """Variance of ``J'w`` for every row ``J``, ``(n, p - bias) -> (n,)``; a bias is a constant 1 before the row."""
        if bias:
            rows = np.hstack([np.ones((len(rows), 1)), rows])
        if self._dense is not None:
            symm = dsymm if self._dense.dtype == np.float64 else ssymm
            return np.asarray(np.maximum((symm(1.0, self._dense, rows.T, lower=1).T * rows).sum(axis=1), 0.0))
        return np.asarray(np.square(rows @ self.root.T).sum(axis=1))

    def project(self, slope: FloatArray) -> Projection:
        """Project the belief on the direction ``J = slope``."""
        coords = self.root @ slope
        return Projection(float(coords @ coords), coords @ self.root, coords)

    def rank_one_step(self, seen: Projection, alpha: float, kappa: float, left: float) -> None:
        """Take the step ``m += alpha c``, ``C -= kappa c c'``; ``left`` is ``1 - kappa v``, to full precision.

        Carlson's update of a triangular root: ``share`` climbs from ``left`` to 1 as one coordinate after the other is
        taken in, each shrinking its row of ``R`` and mixing in the gain so far. For ``kappa > 0`` every term is bounded
        by the root it came from, and no digits are lost.
        """
        self.space[0] += alpha * seen.gain
        root, share, gain = self.root, left, np.zeros_like(self.mean)
        for j, coord in enumerate(seen.coords):
            grown = share + kappa * coord**2
            if coord == 0.0 or grown <= _TINY:
                continue
            row = root[j].copy()
            root[j] *= np.sqrt(share / grown)
            if share > _TINY:
                root[j] -= kappa * coord / np.sqrt(grown) * (gain / np.sqrt(share))
            gain += coord * row
            share = grown

    def inflate(self, factor: float) -> None:
        """Multiply the covariance by ``factor``."""
        if self._dense is not None:
            self._dense *= factor
        else:
            self.root[...] *= np.sqrt(factor)

    def trace(self) -> float:
        """Sum of the weights' variances."""
        return float(self.marginal_variances().sum())

    def diffuse(self, process_noise: FloatArray) -> None:
        """Let the weights wander: add ``process_noise`` to their variances."""
        if self._dense is not None and not self.fragile:
            self._dense[np.diag_indices(len(self.mean))] += process_noise
            return
        # The root of R'R + Q is that of R on top of the root of Q: a QR factorisation, taken from the other end.
        stacked = np.vstack([self.root, np.diag(np.sqrt(process_noise).astype(self.root.dtype))])
        upper = np.asarray(np.linalg.qr(stacked[:, ::-1], mode="r"))
        self._root = np.ascontiguousarray(upper[::-1, ::-1])

    def sample(self, n: int, rng: np.random.Generator) -> FloatArray:
        """Draw weights, ``(n, p)``."""
        root = _square_root(self.cov) if self._root is None else self._root
        return np.asarray(self.mean + rng.standard_normal((n, len(self.mean))) @ root)

    def natural(self, centre: FloatArray) -> Natural:
        """Restate the belief by its precision, with the mean seen from ``centre``."""
        root = np.asarray(self.root, dtype=np.float64)
        # C = R'R makes the inverse of R the Cholesky factor of P, lower triangular too.
        factor, singular = dtrtri(root, lower=1)
        if singular or not np.isfinite(factor).all():
            raise ValueError("the covariance is singular, so it has no precision: some weights are known exactly")
        gap = factor.T @ (self.mean - centre)
        log_volume = float(0.5 * gap @ gap + np.log(np.abs(np.diag(root))).sum())
        return Natural(factor @ factor.T, factor @ gap, log_volume)

    @classmethod
    def from_natural(cls, precision: FloatArray, pull: FloatArray, centre: FloatArray) -> Self:
        """Make the belief whose `natural` parameters these are; a ValueError where there is none."""
        try:
            factor = np.linalg.cholesky(precision)
        except np.linalg.LinAlgError:
            raise ValueError("the precision is not positive definite") from None
        # A pivot that is all rounding would make a variance out of nothing.
        if (np.diag(factor) ** 2 < 8.0 * len(pull) * np.finfo(np.float64).eps * np.diag(precision)).any():
            raise ValueError("the precision is not positive definite")
        root = dtrtri(factor, lower=1)[0]
        return cls.held(centre + root.T @ (root @ pull), root=np.ascontiguousarray(np.tril(root)))

    def is_finite(self) -> bool:
        """Whether every number of the state is finite."""
        held = self.root if self._dense is None else self._dense
        return bool(np.isfinite(self.mean).all() and np.isfinite(held).all())


def _squared(root: FloatArray) -> FloatArray:
    """``R'R`` of a lower triangular matrix."""
    p = len(root)
    if p <= _BAND:
        return np.asarray(root.T @ root)
    # In bands, each without the rows that are zero: for a matrix and its own transpose NumPy takes a short cut that
    # ends in a segmentation fault from some 16,000 columns on.
    out = np.empty_like(root)
    for j in range(0, p, _BAND):
        band = slice(j, j + _BAND)
        out[:, band] = root[j:].T @ root[j:, band]
    return out


def _square_root(cov: FloatArray) -> FloatArray:
    """``R``, lower triangular, with ``R'R = cov``."""
    try:
        # The Cholesky factor from the other end.
        return np.ascontiguousarray(np.linalg.cholesky(cov[::-1, ::-1])[::-1, ::-1].T)
    except np.linalg.LinAlgError:  # semi-definite: some combination of weights is known exactly
        return _semidefinite_root(cov)


def _semidefinite_root(cov: FloatArray) -> FloatArray:
    """Eliminate one variable after the other, from the last; one without variance of its own is passed over."""
    rest, root = np.array(cov), np.zeros_like(cov)
    for j in range(len(rest) - 1, -1, -1):
        if rest[j, j] > 500.0 * np.finfo(cov.dtype).eps * cov[j, j]:
            root[j, : j + 1] = rest[j, : j + 1] / np.sqrt(rest[j, j])
            rest[: j + 1, : j + 1] -= np.outer(root[j, : j + 1], root[j, : j + 1])
    return root
