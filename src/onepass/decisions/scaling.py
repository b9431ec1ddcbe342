"""Standardisation of contexts by what has been seen so far: centre and scale change with every context, ever less."""

import numpy as np

from onepass._typing import FloatArray
from onepass.files.state import Arrays, as_number, sized

__all__ = ["RunningScaling"]


class RunningScaling:
    """Running mean and standard deviation of each feature (Welford)."""

    def __init__(self, n_features: int) -> None:
        self._count = 0.0
        self._mean = np.zeros(n_features)
        self._squares = np.zeros(n_features)  # sum of squared distances from the mean

    def see(self, context: FloatArray) -> None:
        """Count one more context, ``(d,)``."""
        self._count += 1.0
        gap = context - self._mean
        self._mean = self._mean + gap / self._count  # not in place: a caller may go back to its copy
        self._squares = self._squares + gap * (context - self._mean)

    def __call__(self, contexts: FloatArray) -> FloatArray:
        """Standardise contexts, ``(n, d)``; a feature that has been constant so far is only centred."""
        std = np.sqrt(self._squares / max(self._count, 1.0))
        return np.asarray((contexts - self._mean) / np.where(std > 0.0, std, 1.0))

    def export(self) -> Arrays:
        """What has been seen, as arrays."""
        return {"scaling": np.stack([np.full(len(self._mean), self._count), self._mean, self._squares])}

    def restore(self, arrays: Arrays) -> None:
        """Go on from what `export` gave."""
        count, self._mean, self._squares = sized(arrays, "scaling", (3, len(self._mean)))
        self._count = as_number(float(count[0]) if len(count) else 0.0, "count")
        if (self._squares < 0.0).any() or self._count < 0.0:
            raise ValueError("the statistics of contexts must not be negative")
