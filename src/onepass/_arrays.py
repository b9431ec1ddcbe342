"""Arrays from files, of which nothing can be trusted: shapes, dtypes and numbers are checked here."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from onepass._typing import FloatArray

__all__ = ["check_definite", "not_negative", "sized", "sized_or_nan", "triangular"]


def sized(arrays: Mapping[str, np.ndarray], name: str, shape: tuple[int, ...], dtype: Any = np.float64) -> FloatArray:
    """Copy an array that must be finite and have exactly this shape and dtype."""
    array = _shaped(arrays, name, shape, dtype)
    if name != "running" and not np.isfinite(array).all():
        raise ValueError(f"{name} holds numbers that are not finite")
    return np.array(array)


def sized_or_nan(arrays: Mapping[str, np.ndarray], name: str, shape: tuple[int, ...]) -> FloatArray:
    """Copy an array of targets, of which some may be NaN."""
    array = _shaped(arrays, name, shape, np.float64)
    if np.isinf(array).any():
        raise ValueError(f"{name} holds numbers that are not finite")
    return np.array(array)


def _shaped(arrays: Mapping[str, np.ndarray], name: str, shape: tuple[int, ...], dtype: Any) -> np.ndarray:
    array = arrays[name]
    if array.shape != shape:
        raise ValueError(f"{name} has shape {array.shape} where {shape} was expected")
    if array.dtype != dtype:
        raise ValueError(f"{name} has dtype {array.dtype} where {np.dtype(dtype)} was expected")
    return array


def not_negative(array: FloatArray, name: str) -> FloatArray:
    if (array < 0.0).any():
        raise ValueError(f"{name} has the entry {array.min():g}, which must not be negative")
    return array


def triangular(arrays: Mapping[str, np.ndarray], name: str, size: int, dtype: Any) -> np.ndarray:
    """A lower triangular root of a covariance, which it can be multiplied to."""
    root = sized(arrays, name, (size, size), dtype)
    if np.triu(root, 1).any():
        raise ValueError(f"{name} has entries above its diagonal")
    most = np.sqrt(np.finfo(dtype).max / size)
    if np.abs(root).max(initial=0.0) > most:
        raise ValueError(f"{name} has entries above {most:.3g}, whose squares are beyond {np.dtype(dtype)}")
    return root


def check_definite(lower: FloatArray) -> None:
    """Raise a ValueError for a covariance, given by its lower triangle, that is not positive semi-definite."""
    variances = not_negative(np.diag(lower), "the diagonal of the covariance")
    # A learned covariance may be indefinite by rounding, so a multiple of the rounding error is added first.
    lift = 1e3 * len(lower) * np.finfo(lower.dtype).eps * variances.max()
    scale = 1.0 / np.sqrt(variances + lift + np.finfo(lower.dtype).tiny)
    scaled = scale[:, None] * (lower + np.diag(np.full(len(lower), lift, dtype=lower.dtype))) * scale
    try:
        np.linalg.cholesky(scaled)  # reads the lower triangle only
    except np.linalg.LinAlgError:
        raise ValueError("covariance is not positive semi-definite") from None
