"""What comes from outside passes through here: one place for the checks, one wording for the errors.

Every message names the argument, what was given and what is allowed.
"""

from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, issparse

from onepass._typing import FloatArray

__all__ = [
    "NO_TARGET",
    "ArgumentError",
    "as_count",
    "as_covariance",
    "as_flag",
    "as_floats",
    "as_floats_or_nan",
    "as_fraction",
    "as_generator",
    "as_nonnegative",
    "as_outliers",
    "as_positive",
    "as_row_weights",
    "as_rows",
    "as_rows_ahead",
    "as_seed",
    "as_share",
    "as_sparse_rows",
    "as_targets",
    "as_variances",
    "as_whole",
    "one_of",
]


class ArgumentError(ValueError):
    """An argument with a value that it can't have."""

    def __init__(self, argument: str, words: str) -> None:
        super().__init__(f"{argument} {words}")
        self.argument = argument


_MANY = 10_000  # numbers
NO_TARGET = ": leave out rows without a target"
"""What to do about a target that is not a number, where a row has but one."""


def as_floats(value: Any, name: str, hint: str = "") -> FloatArray:
    """``value`` as a float64 array of finite numbers; ``hint`` says what to do about others."""
    array = _as_array(value, name)
    if not _all_finite(array):
        raise ValueError(f"{name} must be finite, got {_first(array, ~np.isfinite(array))}{hint}")
    return array


def _all_finite(array: FloatArray) -> bool:
    # The extremes of many numbers are found sooner than memory for an answer each.
    return bool(np.isfinite(array).all() if array.size < _MANY else np.isfinite([array.min(), array.max()]).all())


def as_floats_or_nan(value: Any, name: str) -> FloatArray:
    """``value`` as a float64 array of numbers that are finite, or NaN where there is none."""
    array = _as_array(value, name)
    if np.isinf(array).any():
        allowed = "finite, or NaN where it was not observed"
        raise ValueError(f"{name} must be {allowed}, got {_first(array, np.isinf(array))}")
    return array


def _as_array(value: Any, name: str) -> FloatArray:
    if np.ma.is_masked(value):
        raise ValueError(f"{name} must have no masked entries: fill or drop them")
    if value is None:
        raise TypeError(f"{name} must hold real numbers, got None")
    try:
        array = np.asarray(value)
    except ValueError:
        raise ValueError(f"{name} must have rows of one length, got {_lengths(value)}") from None
    if array.dtype.kind not in "biuf":
        try:
            if array.dtype.kind != "O":
                raise ValueError
            array = array.astype(np.float64)  # e.g. Decimal, or a data frame's column of Python floats
        except (OverflowError, TypeError, ValueError):
            raise TypeError(f"{name} must hold real numbers, got {_not_numbers(value, array)}") from None
    return array.astype(np.float64, copy=False)


def _first(array: FloatArray, wrong: Any) -> str:
    """The first number that is wrong, and its place."""
    where = tuple(int(i) for i in np.argwhere(wrong)[0])
    place = f" at index {where if len(where) > 1 else where[0]}" if where else ""
    return f"{array[where]}{place}"


def as_rows(value: Any, n_features: int, name: str = "X") -> tuple[FloatArray, bool]:
    """``value`` as rows ``(n, n_features)``, and whether it was given as one row."""
    if issparse(value):
        raise TypeError(
            f"{name} must have dense rows for this model, got a sparse {type(value).__name__}; pass its toarray()"
        )
    array = as_floats(value, name)
    single = array.ndim == 1
    if array.ndim not in (1, 2) or array.shape[-1] != n_features:
        hint = f"; reshape it to ({array.size}, 1)" if n_features == 1 and single else ""
        raise ValueError(
            f"{name} must have shape ({n_features},) for one row or (n, {n_features}) for many, "
            f"got shape {array.shape}{hint}"
        )
    if array.size == 0:
        raise ValueError(f"{name} is empty (shape {array.shape}); at least one row is needed")
    return np.ascontiguousarray(np.atleast_2d(array)), single


def as_rows_ahead(value: Any, n_rows: int) -> int | NDArray[np.int64]:
    """How many rows ahead is predicted: a number from 0 on for all of ``n_rows`` rows or, if they differ, one each."""
    given = np.asarray(value)
    if given.dtype.kind not in "iu" or given.shape not in ((), (n_rows,)):
        shown = repr(value) if not given.shape else f"an array of {given.dtype} with shape {given.shape}"
        raise ValueError(f"rows_ahead must be an integer, or one for each of the {n_rows} rows, got {shown}")
    if (given < 0).any():
        raise ValueError(f"rows_ahead must be 0 or more, got {given.min()}")
    return int(given.flat[0]) if (given == given.flat[0]).all() else given.astype(np.int64)


def as_sparse_rows(value: Any, n_features: int) -> csr_array:
    """A sparse matrix as CSR rows of finite numbers."""
    try:
        rows = csr_array(value)
        rows.check_format(full_check=True)
    except ValueError as error:
        raise ValueError(f"X is not a valid sparse matrix: {error}") from None
    if rows.ndim != 2 or rows.shape[1] != n_features:
        raise ValueError(f"X must have shape (n, {n_features}), got a sparse matrix of shape {rows.shape}")
    if rows.shape[0] == 0:
        raise ValueError(f"X is empty (shape {rows.shape}); at least one row is needed")
    if not rows.has_canonical_format:  # mended in a copy: the caller's arrays are the caller's
        rows = rows.copy()
        rows.sum_duplicates()
    rows.data = as_floats(rows.data, "X")
    return rows


def as_targets(value: Any, n_rows: int, single: bool) -> FloatArray:
    """``value`` as one target a row, ``(n_rows,)``."""
    array = as_floats(value, "y", NO_TARGET)
    if array.shape != (n_rows,) and not (single and array.ndim == 0):
        allowed = "a number" if single else f"shape ({n_rows},), one target a row of X"
        raise ValueError(f"y must be {allowed}, got shape {array.shape}")
    return np.ascontiguousarray(array.reshape(n_rows))


def as_row_weights(value: Any, n_rows: int, *, zero_allowed: bool = False) -> FloatArray | None:
    """``value`` as weights above 0, ``(n_rows,)``, or of 0 too; None where every row counts once."""
    if value is None:
        return None
    array = as_floats(value, "sample_weight")
    if array.ndim == 0:
        array = np.full(n_rows, float(array))
    array = np.ascontiguousarray(array)
    if array.shape != (n_rows,):
        raise ValueError(f"sample_weight must have shape ({n_rows},), a weight per row of X, got shape {array.shape}")
    wrong = array < 0.0 if zero_allowed else array <= 0.0
    if wrong.any():
        allowed = "0 for a row that is left out, or above" if zero_allowed else "above 0"
        hint = "" if zero_allowed else "; leave out rows of weight 0"
        raise ValueError(f"sample_weight must be {allowed}, got {_first(array, wrong)}{hint}")
    return array


def as_covariance(value: Any, size: int, name: str = "cov") -> FloatArray:
    """``value`` as a symmetric positive semi-definite ``(size, size)`` matrix."""
    array = as_floats(value, name)
    if array.shape != (size, size):
        raise ValueError(f"{name} must have shape ({size}, {size}), got shape {array.shape}")
    scale = np.abs(array).max()
    asymmetry = np.abs(array - array.T).max()
    if asymmetry > 1e-10 * scale:
        raise ValueError(f"{name} must be symmetric, but differs from its transpose by up to {asymmetry:.3g}")
    array = (array + array.T) / 2
    smallest = np.linalg.eigvalsh(array)[0]
    if smallest < -1e-10 * scale:
        raise ValueError(f"{name} must be positive semi-definite, but its smallest eigenvalue is {smallest:.3g}")
    return np.asarray(array, dtype=np.float64)


def as_variances(value: Any, size: int, name: str) -> FloatArray:
    """``value`` as ``size`` variances, from one number for all or one for each."""
    array = as_floats(value, name)
    if array.shape not in ((), (size,)):
        raise ValueError(f"{name} must be a number or have shape ({size},), got shape {array.shape}")
    if (array < 0).any():
        raise ValueError(f"{name} must not be negative, got {array.min():g}")
    return np.broadcast_to(array, (size,)).copy()


def as_generator(value: Any, name: str = "rng") -> np.random.Generator:
    """``value`` as a random generator: one is taken as it is, a whole number is a seed."""
    if isinstance(value, np.random.Generator):
        return value
    if isinstance(value, Integral) and not isinstance(value, bool):
        return np.random.default_rng(int(value))
    raise TypeError(f"{name} must be a numpy.random.Generator or a seed, got {_describe(value)}")


def as_share(value: Any, name: str, *, open_above: bool = False) -> float:
    """``value`` as a number above 0 and up to 1, or below it with ``open_above``."""
    allowed = f"in (0, 1{')' if open_above else ']'}"
    if isinstance(value, bool) or not isinstance(value, Real):
        raise TypeError(f"{name} must be a number {allowed}, got {_describe(value)}")
    number = float(value)
    if not 0.0 < number <= 1.0 or (open_above and number == 1.0):
        raise ArgumentError(name, f"must be {allowed}, got {number:g}")
    return number


def as_fraction(value: Any, name: str, hint: str = "") -> float:
    """``value`` as a number from 0 to 1; ``hint`` says what else is allowed."""
    allowed = f"a number in [0, 1]{hint and ' '}{hint}"
    if isinstance(value, bool) or not isinstance(value, Real):
        raise TypeError(f"{name} must be {allowed}, got {_describe(value)}")
    number = float(value)
    if not 0.0 <= number <= 1.0:
        raise ArgumentError(name, f"must be {allowed}, got {number:g}")
    return number


def as_outliers(value: Any) -> float:
    """``value`` as a share of rows that are not to be trusted: from 0 on, and fewer than half."""
    allowed = "a number in [0, 0.5)"
    if isinstance(value, bool) or not isinstance(value, Real):
        raise TypeError(f"outliers must be {allowed}, got {_describe(value)}")
    number = float(value)
    if not 0.0 <= number < 0.5:
        raise ArgumentError("outliers", f"must be {allowed}, because most rows must be right, got {number:g}")
    return number


def as_count(value: Any, name: str) -> int:
    """``value`` as a whole number of at least one."""
    if isinstance(value, bool) or not isinstance(value, Integral):
        raise TypeError(f"{name} must be a whole number of at least 1, got {_describe(value)}")
    if value < 1:
        raise ArgumentError(name, f"must be a whole number of at least 1, got {value}")
    return int(value)


def as_flag(value: Any, name: str) -> bool:
    """``value`` as True or False."""
    if not isinstance(value, (bool, np.bool_)):
        raise TypeError(f"{name} must be True or False, got {_describe(value)}")
    return bool(value)


def as_nonnegative(value: Any, name: str) -> float:
    """``value`` as a finite number that is not negative."""
    if isinstance(value, bool) or not isinstance(value, Real):
        raise TypeError(f"{name} must be a number that is not negative, got {_describe(value)}")
    number = float(value)
    if not 0.0 <= number < np.inf:
        raise ArgumentError(name, f"must be a finite number that is not negative, got {number}")
    return number


def as_positive(value: Any, name: str, otherwise: str = "") -> float:
    """``value`` as a finite number above 0; ``otherwise`` says what else may be given."""
    known = isinstance(value, Real) and not isinstance(value, bool)
    if not known or not 0.0 < float(value) < np.inf:
        words = f"must be a number above 0 {otherwise}".rstrip() + f", got {value if known else _describe(value)}"
        raise ArgumentError(name, words) if known or isinstance(value, str) else TypeError(f"{name} {words}")
    return float(value)


def as_seed(value: Any, name: str = "seed") -> int:
    """``value`` as a seed of random numbers."""
    return as_whole(value, name)


def as_whole(value: Any, name: str) -> int:
    """``value`` as a whole number that is not negative."""
    if isinstance(value, bool) or not isinstance(value, Integral):
        raise TypeError(f"{name} must be a whole number that is not negative, got {_describe(value)}")
    if value < 0:
        raise ArgumentError(name, f"must be a whole number that is not negative, got {value}")
    return int(value)


def one_of(value: Any, allowed: tuple[str, ...], name: str) -> str:
    """``value``, checked to be one of the ``allowed`` words."""
    if not isinstance(value, str):
        raise TypeError(f"{name} must be one of {', '.join(map(repr, allowed))}, got {_describe(value)}")
    if value not in allowed:
        raise ArgumentError(name, f"must be one of {', '.join(map(repr, allowed))}, got {value!r}")
    return value


def _lengths(value: Any) -> str:
    """The lengths of the first two rows that differ in it."""
    lengths = [np.shape(row) and len(row) for row in value]
    other = next((i for i, length in enumerate(lengths) if length != lengths[0]), None)
    return (
        "entries of different shapes" if other is None else f"{lengths[0]} in row 0 and {lengths[other]} in row {other}"
    )


def _not_numbers(value: Any, array: Any) -> str:
    """What is in the place of numbers: of a data frame the first column without them."""
    for column in getattr(value, "columns", ()):
        for entry in value[column]:
            if not isinstance(entry, Real):
                return f"{_describe(entry)} in column {column!r}; encode the column as numbers, or leave it out"
    return f"{_describe(value)} with dtype {array.dtype}"


def _describe(value: Any) -> str:
    text = " ".join(repr(value).split())
    return f"{text if len(text) <= 40 else text[:37] + '...'} ({type(value).__name__})"
