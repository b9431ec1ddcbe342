"""The arguments with which a belief learns rows: how a row is learned, and the rows themselves."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from onepass._typing import FloatArray
from onepass.engine.rows import RowRule
from onepass.engine.step import SITE_SIZE

__all__ = ["RowPlan", "Rows"]


@dataclass(frozen=True)
class RowPlan:
    """What a perceptron's learning is made of, apart from its belief."""

    rule: RowRule
    prior_variances: FloatArray
    """``(p,)``, which forgetting does not pass."""
    process_noise: FloatArray
    """``(p,)``, or empty where there is none."""
    kernel: str
    """``"auto"``, ``"rows"`` or ``"blocks"``."""


@dataclass(frozen=True)
class Rows:
    """Rows to learn in their order: ``X`` is ``(n, d)``, sparse or dense, without the bias's constant."""

    X: Any
    y: FloatArray
    X_var: FloatArray
    """``(n, d)`` variances of the inputs, or empty."""
    record: FloatArray
    """Receives mean, variance, noise and log density of each row from before its update, ``(n, 4)``, or is empty."""

    sites: FloatArray = field(default_factory=lambda: np.empty((0, SITE_SIZE)))
    """What each row contributed, ``(n, 4)``, NaN before it was learned; empty where rows are learned but once."""

    def __len__(self) -> int:
        return len(self.y)

    def part(self, start: int, stop: int) -> "Rows":
        """Some of the rows."""
        arrays = (self.X, self.y, self.X_var, self.record, self.sites)
        return Rows(*(array[start:stop] for array in arrays))
