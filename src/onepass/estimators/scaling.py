"""Standardisation: statistics of columns taken once, from the first rows, and warnings if unscaled data need it."""

import warnings
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, issparse
from scipy.special import ndtri

from onepass._typing import FloatArray
from onepass.activations import Activation
from onepass.files.state import Arrays, sized

__all__ = [
    "Scaling",
    "absurd",
    "near",
    "warn_of_constant",
    "warn_of_range",
    "warn_of_scales",
    "warn_of_targets",
    "warn_of_unseen",
    "zero_for_nan",
]

_LARGEST_RATIO = 1e3
_LARGEST_SURPRISE = 10.0  # in standard deviations that the prior gives targets
_FARTHEST = 10.0  # standard deviations from the median, as the nearest values have them, that a target may be away
_MOST_ABSURD = 0.02  # of the targets
_ABSURD = 100.0  # times as far from the median as all but these
_FEWEST = 10  # targets needed to estimate it
_WIDE_GRID = np.concatenate([[-1e6], np.linspace(-40.0, 40.0, 161), [1e6]])  # at which an activation shows its range
_BOUNDED = 1e3  # width of a range that counts as bounded
_FAR_BEYOND = 0.25  # of the width of the range


@dataclass(frozen=True)
class Scaling:
    """Centre and scale of columns: ``(x - centre) / scale``."""

    centre: FloatArray  # (d,)
    scale: FloatArray  # (d,), positive

    @classmethod
    def of(cls, rows: FloatArray, weights: FloatArray | None = None) -> "Scaling":
        """Take the mean and standard deviation of every column; a constant column is only centred.

        Of a single row nothing is known to be constant: what is larger than 1 has its size as its scale. Rows count as
        often as their weights ``(n,)`` say.
        """
        if len(rows) == 0:
            return cls.none(rows.shape[1])
        largest = np.abs(rows).max(axis=0, initial=0.0)
        # Squares of very large or small numbers leave float64, so columns are brought to 1 first.
        unit = np.where(largest > 0.0, largest, 1.0)
        scaled = rows / unit
        mean = np.average(scaled, axis=0, weights=weights)
        std = np.sqrt(np.average(np.square(scaled - mean), axis=0, weights=weights))
        constant = std <= 1e-12  # what rounding leaves of a constant column is not its standard deviation
        scale = np.maximum(std * unit, np.finfo(np.float64).tiny)
        unknown = np.maximum(largest, 1.0) if len(rows) == 1 else 1.0
        return cls(mean * unit, np.where(constant, unknown, scale))

    @classmethod
    def of_near(cls, rows: FloatArray, outliers: float, weights: FloatArray | None = None) -> "Scaling":
        """Take the statistics of every column from those of its values that are not wild: see `near`.

        NaN does not count; a column that has nothing else stays as it is.
        """
        plain, kept = cls.of(rows, weights), near(rows, outliers)
        for k in np.flatnonzero(~kept.all(axis=0)):
            own = kept[:, k]
            part = cls.of(rows[own, k, None], None if weights is None else weights[own])
            plain.centre[k], plain.scale[k] = part.centre[0], part.scale[0]
        return plain

    @classmethod
    def of_targets(cls, targets: FloatArray, outliers: float, weights: FloatArray | None = None) -> "Scaling":
        """Take the statistics of `of_near`; the scale of numbers that are all equal is their size, or 1 of zeros.

        One target doesn't show how much targets vary: of a price of 200,000 the next may be away by its size,
        and hardly by 1.
        """
        found = cls.of_near(targets, outliers, weights)
        equal = constant_columns(targets, outliers) & (found.centre != 0.0)
        return cls(found.centre, np.where(equal, np.abs(found.centre), found.scale))

    @classmethod
    def of_entries(cls, rows: Any, weights: FloatArray | None = None) -> "Scaling":
        """Take the size of every column of sparse rows, the root mean square of its entries, and centre nothing.

        So zeros stay zeros, and a column that is rarely more than 0 is not made larger for it.
        """
        scale = _entry_sizes(rows, weights)
        return cls(np.zeros(rows.shape[1]), np.where(scale > 0.0, scale, 1.0))

    @classmethod
    def of_size(cls, rows: FloatArray, outliers: float, weights: FloatArray | None = None) -> "Scaling":
        """Take the root mean square of every column, of its values that are not wild nor NaN, and centre nothing."""
        kept = near(rows, outliers)
        columns = [
            _sizes(column[own, None], None if weights is None else weights[own])[0]
            for column, own in zip(rows.T, kept.T, strict=True)
            if own.any()
        ]
        scale = np.ones(rows.shape[1])
        scale[kept.any(axis=0)] = columns
        return cls(np.zeros(rows.shape[1]), np.where(scale > 0.0, scale, 1.0))

    def repeated(self, times: int) -> "Scaling":
        """The same for columns that come so many times, one after the other: the channels of every pixel."""
        return Scaling(np.tile(self.centre, times), np.tile(self.scale, times))

    @classmethod
    def none(cls, size: int) -> "Scaling":
        """Leave columns as they are."""
        return cls(np.zeros(size), np.ones(size))

    @classmethod
    def from_arrays(cls, arrays: Arrays, size: int) -> "Scaling":
        """Check and take what `arrays` gave."""
        centre, scale = sized(arrays, "centre", (size,)), sized(arrays, "scale", (size,))
        if (scale <= 0.0).any():
            raise ValueError(f"scale has the entry {scale.min():g}, which must be positive")
        return cls(centre, scale)

    @property
    def arrays(self) -> Arrays:
        """The statistics by the names that files have for them."""
        return {"centre": self.centre, "scale": self.scale}

    @cached_property
    def is_identity(self) -> bool:
        """Whether columns stay as they are."""
        return not self.centre.any() and bool((self.scale == 1.0).all())

    def __call__(self, rows: FloatArray) -> FloatArray:
        """Standardise rows, ``(n, d)``."""
        if self.is_identity:
            return rows
        with np.errstate(over="ignore"):  # the difference of two numbers near the largest there are
            scaled = (rows - self.centre) / self.scale
        return np.where(np.isfinite(scaled), scaled, rows / self.scale - self.centre / self.scale)

    def scale_entries(self, rows: Any) -> Any:
        """Divide the columns of sparse rows, which are not centred."""
        rows = csr_array(rows)
        return (
            rows
            if self.is_identity
            else csr_array((rows.data / self.scale[rows.indices], rows.indices, rows.indptr), rows.shape)
        )

    def undo(self, rows: FloatArray) -> FloatArray:
        """Bring standardised rows back, ``(n, d)``."""
        return rows * self.scale + self.centre


def constant_columns(values: FloatArray, outliers: float) -> NDArray[np.bool_]:
    """Which columns ``(q,)`` have one value in all rows in which they are known and not wild, up to rounding."""
    kept = near(values, outliers)
    high = np.where(kept, values, -np.inf).max(axis=0, initial=-np.inf)
    low = np.where(kept, values, np.inf).min(axis=0, initial=np.inf)
    with np.errstate(over="ignore"):  # the difference of two numbers near the largest there are
        return np.asarray(kept.any(axis=0) & (high - low <= 2e-12 * np.maximum(np.abs(high), np.abs(low))))


def near(values: FloatArray, outliers: float) -> NDArray[np.bool_]:
    """Which values of each column are not wild; with ``outliers=0`` all of them, and so nearly always on clean data.

    A value is wild if it is more than ten standard deviations from the median, as the nearer values have them: half to
    three quarters of them, the fewer the more outliers are expected, or 90 % if all these are equal. Where distances
    leap tenfold beyond the half, more values than expected are wild, and the half is taken. NaN is not near.

    Parameters
    ----------
    values : (n,) or (n, q) array
    outliers : float

    Examples
    --------
    >>> near(np.array([1.0, 2.0, 3.0, 4.0, 4000.0]), outliers=0.05)
    array([ True,  True,  True,  True, False])
    """
    known = ~np.isnan(values)
    if not outliers:
        return known
    if not known.all():
        for column, own in zip(values.reshape(len(values), -1).T, known.reshape(len(values), -1).T, strict=True):
            if own.any():
                own[own] = near(column[own], outliers)
        return known
    half = values / 2.0  # the difference of two numbers near the largest there are is finite
    distances = np.abs(half - np.median(half, axis=0))
    std = np.zeros(values.shape[1:])
    for share in (min(0.75, max(0.5, 1.0 - 2.0 * outliers)), 0.9):
        distance = np.quantile(distances, share, axis=0, method="lower")
        std = np.where(std > 0.0, std, distance / ndtri(0.5 + share / 2.0))
    std = np.minimum(std, _std_before_leap(distances))
    return np.asarray((distances / _FARTHEST <= std) | (std == 0.0))


def _std_before_leap(distances: FloatArray) -> FloatArray:
    """Standard deviation of each column by its nearer half if distances leap tenfold before three quarters, else inf.

    Beyond many equal values, such as zeros, distances of clean values may leap too; so a quarter must be different.
    """
    n, ordered = len(distances), np.sort(distances, axis=0)
    middle, beyond = (n - 1) // 2, 3 * n // 4
    n_different = np.cumsum(ordered[1:] > ordered[:-1], axis=0)[middle:beyond]
    leaps = ordered[middle + 1 : beyond + 1] / _FARTHEST > ordered[middle:beyond]
    found = (leaps & (n_different >= n / 4)).any(axis=0)
    return np.where(found, ordered[middle] / ndtri(0.75), np.inf)


def absurd(values: FloatArray) -> NDArray[np.bool_]:
    """Which values of each column are so far off, in whatever distribution, that one alone would be its scale.

    A value is absurd if it is more than a hundred times as far from the median as 98 % of the values are, or all but
    one of fewer than 50. It takes ten values to tell, and none is absurd if the others are equal. NaN does not count
    and is not absurd.

    Parameters
    ----------
    values : (n, q) array

    Examples
    --------
    >>> absurd(np.append(np.arange(20.0), 1e9)[:, None])[:, 0].nonzero()
    (array([20]),)
    """
    found = np.zeros(values.shape, dtype=bool)
    for column, own in zip(values.T, found.T, strict=True):
        known = ~np.isnan(column)
        if np.count_nonzero(known) >= _FEWEST:
            half = column[known] / 2.0  # the difference of two numbers near the largest there are is finite
            distances = np.abs(half - np.median(half))
            usual = np.quantile(distances, 1.0 - _MOST_ABSURD, method="lower")
            own[known] = (distances / _ABSURD > usual) & (usual > 0.0)
    return found


def warn_of_scales(rows: Any, names: Any = None) -> None:
    """Warn if some columns are more than a thousand times as large as others: one prior can't suit both.

    Of sparse rows the entries count, however rare.
    """
    sizes = _entry_sizes(rows) if issparse(rows) else _sizes(rows)
    if not (sizes > 0.0).any():
        return
    small = int(np.argmin(np.where(sizes > 0.0, sizes, np.inf)))
    large = int(np.argmax(sizes))
    with np.errstate(over="ignore"):
        ratio = sizes[large] / sizes[small]
    if ratio > _LARGEST_RATIO:
        first, second = (repr(str(names[i])) if names is not None else str(i) for i in (large, small))
        warnings.warn(
            f"features differ in scale by a factor of {ratio:.2g} (columns {first} and {second}), but their weights "
            "have the same prior: pass standardize=True, or scale the inputs",
            stacklevel=6,
        )


def warn_of_targets(targets: FloatArray, rows: Any, prior_scale: float, intercept_scale: float) -> None:
    """Warn if targets are far larger than weights of this prior, with an intercept, can be expected to make them.

    NaN among the targets ``(n, q)`` does not count.
    """
    columns = [column[~np.isnan(column), None] for column in targets.T]
    size = max((float(_sizes(column)[0]) for column in columns if len(column)), default=0.0)
    with np.errstate(over="ignore"):  # inputs near the largest numbers there are predict targets of any size
        expected = float(np.hypot(intercept_scale, prior_scale * np.linalg.norm(_sizes(rows))))
    if size > _LARGEST_SURPRISE * expected:
        warnings.warn(
            f"targets are of size {size:.2g}, but prior and inputs let the model expect {expected:.2g}, so "
            "the prior will bias it; pass standardize=True, scale the targets, or raise prior_scale and "
            "intercept_scale",
            stacklevel=5,
        )


def warn_of_range(targets: FloatArray, activation: Activation) -> None:
    """Warn if targets ``(n, q)`` lie far outside the range of a bounded activation: noise can't explain that.

    Far is by more than a quarter of the range, as the root mean square over all targets. NaN does not count.
    """
    values = activation(_WIDE_GRID)
    low, high = float(np.min(values)), float(np.max(values))
    seen = targets[~np.isnan(targets)]
    if not high - low < _BOUNDED or not seen.size:
        return
    beyond = seen - np.clip(seen, low, high)
    if float(np.linalg.norm(beyond / (high - low))) > _FAR_BEYOND * np.sqrt(seen.size):
        worst = seen[np.argmax(np.abs(beyond))]
        warnings.warn(
            f"targets must lie between {low:g} and {high:g}, apart from noise, got {worst:g}: the activation has no "
            "other values, so such targets can't be predicted; pass activation='linear', or rescale the targets",
            stacklevel=5,
        )


def warn_of_unseen(targets: FloatArray) -> None:
    """Warn of outputs without a single target among the rows by which all are standardised."""
    for k in np.flatnonzero(np.isnan(targets).all(axis=0)):
        warnings.warn(
            f"output {k} was not observed in the first {len(targets)} rows, from which the scale of the targets is "
            "taken, so it is not standardised: raise warm_up, or scale that output",
            stacklevel=9,
        )


def warn_of_constant(targets: FloatArray, outliers: float) -> None:
    """Warn of targets that are all equal in the rows by which they are standardised."""
    for k in np.flatnonzero(constant_columns(targets, outliers)):
        which = f"targets of output {k}" if targets.shape[1] > 1 else "targets"
        value = targets[~np.isnan(targets[:, k]), k][0]
        warnings.warn(
            f"the {which} are all {value:g} in the first {len(targets)} rows, from which their scale is taken, so it "
            f"is set to {abs(value) or 1.0:g}: raise warm_up, shuffle the rows, or scale the targets yourself and pass "
            "standardize=False",
            stacklevel=9,
        )


def zero_for_nan(rows: Any) -> Any:
    """Rows in which what is missing counts as nothing."""
    return rows if issparse(rows) or not np.isnan(rows).any() else np.nan_to_num(rows, posinf=np.inf, neginf=-np.inf)


def _entry_sizes(rows: Any, weights: FloatArray | None = None) -> FloatArray:
    """Root mean square of the entries of every column of sparse rows; 0 where there are none."""
    entries = rows.tocoo()
    unit = np.abs(entries.data).max(initial=0.0) or 1.0
    counted = (entries.data != 0.0) * (1.0 if weights is None else weights[entries.row])
    squares = np.bincount(entries.col, counted * np.square(entries.data / unit), minlength=rows.shape[1])
    counts = np.bincount(entries.col, counted, minlength=rows.shape[1])
    return np.asarray(np.sqrt(squares / np.where(counts > 0.0, counts, 1.0)) * unit)


def _sizes(rows: Any, weights: FloatArray | None = None) -> FloatArray:
    """Root mean square of every column, by columns brought to 1: squares of huge numbers would overflow."""
    if bool(issparse(rows)):
        entries = rows.tocoo()
        unit = np.abs(entries.data).max(initial=0.0) or 1.0
        squares = np.bincount(entries.col, np.square(entries.data / unit), minlength=rows.shape[1])
        return np.asarray(np.sqrt(squares / rows.shape[0]) * unit)
    units = np.abs(rows).max(axis=0, initial=0.0)
    units = np.where(units > 0.0, units, 1.0)
    return np.asarray(np.sqrt(np.average(np.square(rows / units), axis=0, weights=weights)) * units)
