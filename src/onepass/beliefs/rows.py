"""How a perceptron's belief learns a row."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from onepass._typing import FloatArray
from onepass.beliefs.forgetting import Forgetting
from onepass.engine.rows import PerceptronRule, Wander

__all__ = ["RowPlan"]


@dataclass(frozen=True)
class RowPlan:
    """What a perceptron's learning is made of, apart from its belief."""

    rule: PerceptronRule
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
