"""The Gaussian belief over the weights, and the one step that moves it.

Whatever the model, the activation and the observation, learning a row is the same rank-1 step: with ``c = C J`` and
``v = J'c``, the mean moves by ``alpha c`` and the covariance by ``-kappa c c'``. A posterior stores ``(m, C)`` and
takes that step; it knows nothing of where alpha and kappa come from.
"""

from typing import NamedTuple, Protocol, Self

import numpy as np

from onepass.gaussian import FloatArray

__all__ = ["Diagonal", "Full", "Posterior", "Projection"]


class Projection(NamedTuple):
    """What the belief says about ``J'w``: its variance, and its covariance with the weights."""

    var: float  # v = J'C J
    gain: FloatArray  # c = C J, (p,)
    coords: FloatArray  # J in the coordinates of the posterior's own form, (p,)


class Posterior(Protocol):
    """A belief about the weights in some structure of its covariance."""

    mean: FloatArray

    @property
    def cov(self) -> FloatArray:
        """Return the covariance, or its diagonal where that is all there is."""
        ...

    def copy(self) -> Self:
        """Make an independent copy."""
        ...

    def marginal_variances(self) -> FloatArray:
        """Return the variance of each weight, ``(p,)``."""
        ...

    def variances(self, rows: FloatArray) -> FloatArray:
        """Variance of ``J'w`` for every row ``J``, ``(n, p) -> (n,)``."""
        ...

    def project(self, slope: FloatArray) -> Projection:
        """Project the belief on the direction ``J = slope``."""
        ...

    def rank_one_step(self, seen: Projection, alpha: float, kappa: float) -> None:
        """Take the step ``m += alpha c``, ``C -= kappa c c'``."""
        ...

    def diffuse(self, process_noise: FloatArray) -> None:
        """Let the weights wander: add ``process_noise`` to their variances."""
        ...

    def sample(self, n: int, rng: np.random.Generator) -> FloatArray:
        """Draw weights, ``(n, p)``."""
        ...

    def is_finite(self) -> bool:
        """Whether every number of the state is finite."""
        ...


class Full:
    """A Gaussian with a full covariance, kept as a square root: ``C = S S'``.

    The root makes the covariance symmetric and positive semi-definite whatever the rounding, and keeps twice the
    digits: ``C`` itself loses them when a precise row follows a vague prior.

    Parameters
    ----------
    mean : (p,) array
    cov : (p, p) symmetric positive semi-definite array

    Examples
    --------
    >>> belief = Full(np.zeros(2), np.eye(2))
    >>> seen = belief.project(np.array([1.0, 1.0]))
    >>> belief.rank_one_step(seen, alpha=0.5, kappa=0.25)
    >>> belief.mean, belief.cov
    (array([0.5, 0.5]), array([[ 0.75, -0.25],
           [-0.25,  0.75]]))
    """

    def __init__(self, mean: FloatArray, cov: FloatArray) -> None:
        self.mean = np.array(mean, dtype=np.float64)
        self._root = _square_root(cov)

    @property
    def cov(self) -> FloatArray:
        """The covariance ``C``, ``(p, p)``."""
        return self._root @ self._root.T

    def copy(self) -> Self:
        """Make an independent copy."""
        twin = object.__new__(type(self))
        twin.mean, twin._root = self.mean.copy(), self._root.copy()
        return twin

    def marginal_variances(self) -> FloatArray:
        """Return the variance of each weight, ``(p,)``."""
        return np.asarray(np.square(self._root).sum(axis=1))

    def variances(self, rows: FloatArray) -> FloatArray:
        """Variance of ``J'w`` for every row ``J``, ``(n, p) -> (n,)``."""
        return np.asarray(np.square(rows @ self._root).sum(axis=1))

    def project(self, slope: FloatArray) -> Projection:
        """Project the belief on the direction ``J = slope``."""
        coords = slope @ self._root
        return Projection(float(coords @ coords), self._root @ coords, coords)

    def rank_one_step(self, seen: Projection, alpha: float, kappa: float) -> None:
        """Take the step ``m += alpha c``, ``C -= kappa c c'``."""
        self.mean += alpha * seen.gain
        # Potter's square-root update: (S - g c f')(S - g c f')' = C - kappa c c' for this g. The maximum is for a
        # kappa v that rounding lifts above 1: there is never less than no variance left.
        shrink = kappa / (1.0 + np.sqrt(max(1.0 - kappa * seen.var, 0.0)))
        self._root -= np.outer(shrink * seen.gain, seen.coords)

    def inflate(self, factor: float) -> None:
        """Multiply the covariance by ``factor``."""
        self._root *= np.sqrt(factor)

    def trace(self) -> float:
        """Sum of the weights' variances."""
        return float(np.square(self._root).sum())

    def diffuse(self, process_noise: FloatArray) -> None:
        """Let the weights wander: add ``process_noise`` to their variances."""
        self._root = _square_root(self.cov + np.diag(process_noise))

    def sample(self, n: int, rng: np.random.Generator) -> FloatArray:
        """Draw weights, ``(n, p)``."""
        return np.asarray(self.mean + rng.standard_normal((n, len(self.mean))) @ self._root.T)

    def is_finite(self) -> bool:
        """Whether every number of the state is finite."""
        return bool(np.isfinite(self.mean).all() and np.isfinite(self._root).all())


class Diagonal:
    """A Gaussian with independent weights: memory and time in proportion to their number.

    Parameters
    ----------
    mean, variances : (p,) arrays

    Examples
    --------
    >>> belief = Diagonal(np.zeros(2), np.ones(2))
    >>> belief.rank_one_step(belief.project(np.array([1.0, 0.0])), alpha=0.5, kappa=0.25)
    >>> belief.mean, belief.cov
    (array([0.5, 0. ]), array([0.75, 1.  ]))
    """

    def __init__(self, mean: FloatArray, variances: FloatArray) -> None:
        self.mean = np.array(mean, dtype=np.float64)
        self._var = np.array(variances, dtype=np.float64)

    @property
    def cov(self) -> FloatArray:
        """The variances of the weights, ``(p,)``."""
        return self._var.copy()

    def copy(self) -> Self:
        """Make an independent copy."""
        return type(self)(self.mean, self._var)

    def marginal_variances(self) -> FloatArray:
        """Return the variance of each weight, ``(p,)``."""
        return self._var.copy()

    def variances(self, rows: FloatArray) -> FloatArray:
        """Variance of ``J'w`` for every row ``J``, ``(n, p) -> (n,)``."""
        return np.asarray(np.square(rows) @ self._var)

    def project(self, slope: FloatArray) -> Projection:
        """Project the belief on the direction ``J = slope``."""
        gain = self._var * slope
        return Projection(float(slope @ gain), gain, slope)

    def rank_one_step(self, seen: Projection, alpha: float, kappa: float) -> None:
        """Take the step ``m += alpha c`` and the diagonal of ``C -= kappa c c'``."""
        self.mean += alpha * seen.gain
        # As a factor, so that rounding can't make a variance negative: kappa c_i J_i <= kappa v <= 1.
        self._var *= np.maximum(1.0 - kappa * seen.gain * seen.coords, 0.0)

    def diffuse(self, process_noise: FloatArray) -> None:
        """Let the weights wander: add ``process_noise`` to their variances."""
        self._var += process_noise

    def sample(self, n: int, rng: np.random.Generator) -> FloatArray:
        """Draw weights, ``(n, p)``."""
        return np.asarray(self.mean + rng.standard_normal((n, len(self.mean))) * np.sqrt(self._var))

    def is_finite(self) -> bool:
        """Whether every number of the state is finite."""
        return bool(np.isfinite(self.mean).all() and np.isfinite(self._var).all())


def _square_root(cov: FloatArray) -> FloatArray:
    """``S`` with ``S S' = cov``."""
    try:
        return np.asarray(np.linalg.cholesky(cov), dtype=np.float64)
    except np.linalg.LinAlgError:  # semi-definite: some combination of weights is known exactly
        values, vectors = np.linalg.eigh(cov)
        return np.asarray(vectors * np.sqrt(np.maximum(values, 0.0)), dtype=np.float64)
