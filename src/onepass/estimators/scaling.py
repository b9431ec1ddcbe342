"""The scale of inputs: statistics taken once, from the first rows, and a warning where nobody takes them."""

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import issparse

from onepass.gaussian import FloatArray
from onepass.state import Arrays, sized

__all__ = ["Scaling", "warn_of_scales"]

_LARGEST_RATIO = 1e3


@dataclass(frozen=True)
class Scaling:
    """Where columns lie and how far they spread: ``(x - centre) / spread``."""

    centre: FloatArray  # (d,)
    spread: FloatArray  # (d,), positive

    @classmethod
    def of(cls, rows: FloatArray) -> "Scaling":
        """Take the mean and standard deviation of every column; a constant column is only centred."""
        spread = rows.std(axis=0)
        # What rounding leaves of a constant column is not its spread.
        constant = spread <= 1e-12 * np.abs(rows).max(axis=0, initial=0.0)
        return cls(rows.mean(axis=0), np.where(constant, 1.0, spread))

    @classmethod
    def none(cls, size: int) -> "Scaling":
        """Leave columns as they are."""
        return cls(np.zeros(size), np.ones(size))

    @classmethod
    def from_arrays(cls, arrays: Arrays, size: int) -> "Scaling":
        """Check and take up what `arrays` gave."""
        centre, spread = sized(arrays, "centre", (size,)), sized(arrays, "spread", (size,))
        if (spread <= 0.0).any():
            raise ValueError(f"spread has the entry {spread.min():g}, which must be positive")
        return cls(centre, spread)

    @property
    def arrays(self) -> Arrays:
        """The statistics by name, for a file."""
        return {"centre": self.centre, "spread": self.spread}

    def __call__(self, rows: FloatArray) -> FloatArray:
        """Standardise rows, ``(n, d)``."""
        return (rows - self.centre) / self.spread

    def undo(self, rows: FloatArray) -> FloatArray:
        """Bring standardised rows back, ``(n, d)``."""
        return rows * self.spread + self.centre


def warn_of_scales(rows: Any, names: Any = None) -> None:
    """Warn if some columns are more than a thousand times as large as others: one prior can't suit both."""
    squares: Any = rows.power(2) if bool(issparse(rows)) else np.square(rows)
    sizes = np.sqrt(np.asarray(squares.mean(axis=0)).ravel())
    if not (sizes > 0.0).any():
        return
    small = int(np.argmin(np.where(sizes > 0.0, sizes, np.inf)))
    large = int(np.argmax(sizes))
    ratio = sizes[large] / sizes[small]
    if ratio > _LARGEST_RATIO:
        first, second = (repr(str(names[i])) if names is not None else str(i) for i in (large, small))
        warnings.warn(
            f"features differ in scale by a factor of {ratio:.2g} (columns {first} and {second}), but their weights "
            "have one prior: pass standardize=True, or scale the inputs",
            stacklevel=4,
        )
