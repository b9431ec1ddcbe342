"""The arguments with which a belief learns rows: how a row is learned, and the rows themselves."""

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from onepass._typing import FloatArray
from onepass.beliefs.forgetting import Forgetting
from onepass.engine.rows import RowRule, Wander
from onepass.engine.step import SITE_SIZE

__all__ = ["RowPlan", "Rows"]


@dataclass(frozen=True)
class RowPlan:
    """What a perceptron's learning is made of, apart from its belief."""

    rule: RowRule
    forgetting: Forgetting
    prior: Any
    """The belief that is forgotten towards, and that drifting weights don't pass; independent weights as a diagonal."""
    drift: float
    """Share of the prior's variance by which the weights move before each row."""
    process_noise: FloatArray
    """``(p,)``, or empty where there is none."""
    kernel: str
    """``"auto"``, ``"rows"`` or ``"blocks"``."""

    @property
    def drifts(self) -> bool:
        """Whether weights move from row to row."""
        return self.drift > 0.0 or len(self.process_noise) > 0

    @cached_property
    def added(self) -> FloatArray:
        """Variances that are added before each row, by drift and process noise, ``(p,)`` or empty."""
        if not self.drift:
            return self.process_noise
        added: FloatArray = self.drift * np.asarray(self.prior.marginal_variances(), dtype=np.float64)
        return added + self.process_noise if len(self.process_noise) else added

    @cached_property
    def wander(self) -> Wander:
        """How weights move in the kernels, where those of the prior are independent."""
        return Wander(1.0 - self.drift, self.added)


@dataclass(frozen=True)
class Rows:
    """Rows to learn in their order: ``X`` is ``(n, d)``, sparse or dense, without the bias's constant."""

    X: Any
    y: FloatArray
    X_var: FloatArray
    """``(n, d)`` variances of the inputs, or empty."""
    record: FloatArray
    """Receives what is known of each row from before its update, ``(n, RECORD_SIZE)``: see `engine.step`; or empty."""

    sites: FloatArray = field(default_factory=lambda: np.empty((0, SITE_SIZE)))
    """What each row contributed, ``(n, SITE_SIZE)``, NaN before it was learned; or empty."""

    def __len__(self) -> int:
        return len(self.y)

    def part(self, start: int, stop: int) -> "Rows":
        """Some of the rows."""
        arrays = (self.X, self.y, self.X_var, self.record, self.sites)
        return Rows(*(array[start:stop] for array in arrays))
