"""The belief a perceptron starts with, from the arguments ``mean`` and ``cov`` or from the scales of a prior."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from onepass._typing import FloatArray
from onepass._validation import as_covariance, as_floats, as_variances
from onepass.beliefs.diagonal import DiagonalGaussian
from onepass.beliefs.full import FullGaussian

__all__ = [
    "PERCEPTRON_BELIEFS",
    "as_prior",
    "as_scales",
    "perceptron_belief",
    "prior_variances",
    "simplest_form",
    "takes_sparse_rows",
]

PERCEPTRON_BELIEFS: dict[str, type[FullGaussian] | type[DiagonalGaussian]] = {
    kind.name: kind for kind in (FullGaussian, DiagonalGaussian)
}
"""Beliefs that a perceptron can have, by the names of their covariances."""
_MANY = 30_000  # weights: a full covariance of 7 GB


def as_prior(
    mean: ArrayLike | None, cov: ArrayLike | None, size: int, covariance: str, dtype: str
) -> FullGaussian | DiagonalGaussian:
    """Check a user's prior and make it the belief to start with; zero mean and unit variances by default."""
    kind = PERCEPTRON_BELIEFS[covariance]
    prior_mean = np.zeros(size) if mean is None else as_floats(mean, "mean")
    if prior_mean.shape != (size,):
        raise ValueError(f"mean must have shape ({size},), got shape {prior_mean.shape}")
    if cov is None or np.ndim(cov) < 2:
        given = as_variances(1.0 if cov is None else cov, size, "cov")
    else:
        given = as_covariance(cov, size)
        if not kind.keeps_correlations:
            if np.count_nonzero(given - np.diag(np.diag(given))):
                raise ValueError(
                    "cov must be diagonal with covariance='diagonal', got entries off the diagonal; pass its diagonal, "
                    "or covariance='full'"
                )
            given = np.diag(given)
    if kind.keeps_correlations and size > _MANY:
        raise MemoryError(
            f"a full covariance of {size} weights would take {8e-9 * size**2:.0f} GB; use covariance='diagonal'"
        )
    return kind(prior_mean.astype(dtype), given.astype(dtype))


def perceptron_belief(covariance: Any) -> type[FullGaussian] | type[DiagonalGaussian] | None:
    """The belief of a perceptron with this covariance, if it can have that."""
    return PERCEPTRON_BELIEFS.get(covariance) if isinstance(covariance, str) else None


def takes_sparse_rows(covariance: Any) -> bool:
    """Whether perceptrons with this covariance, if there are any, take sparse rows as they are."""
    kind = perceptron_belief(covariance)
    return kind is not None and kind.takes_sparse_rows


def simplest_form(prior: FullGaussian | DiagonalGaussian) -> FullGaussian | DiagonalGaussian:
    """Copy a prior, as a diagonal where its weights are independent: what is forgotten towards."""
    if isinstance(prior, FullGaussian) and not np.tril(prior.to_root(), -1).any():
        return DiagonalGaussian(prior.mean, prior.marginal_variances())
    return prior.copy()


def as_scales(scale: float | FloatArray, n_features: int) -> FloatArray:
    """Prior standard deviations of the weights, one per feature, ``(n_features,)``."""
    if np.ndim(scale) and np.shape(scale) != (n_features,):
        raise ValueError(
            f"prior_scale must be one number or {n_features}, one per feature, got shape {np.shape(scale)}"
        )
    return np.broadcast_to(np.asarray(scale, dtype=np.float64), (n_features,))


def prior_variances(n_features: int, bias: int, scale: float | FloatArray, intercept_scale: float | None) -> FloatArray:
    """Prior variances ``(bias + n_features,)`` of weights of one scale, or of one each, and of an intercept.

    Without a scale of its own the intercept has that of a weight, the largest.
    """
    variances = np.full(bias + n_features, np.max(scale) ** 2)
    variances[bias:] = as_scales(scale, n_features) ** 2
    if intercept_scale is not None:
        variances[:bias] = intercept_scale**2
    return variances
