"""What all mixtures of models need: predictions side by side, and copies to go back to."""

import copy
from collections.abc import Sequence
from typing import Any

import numpy as np

from onepass.models.perceptron import Prediction

__all__ = ["snapshot", "stacked"]


def stacked(predictions: Sequence[Prediction]) -> Prediction:
    """Put what several models predict along a first axis."""
    return Prediction(*(np.array(parts) for parts in zip(*predictions, strict=True)))


def snapshot(member: Any) -> Any:
    """Copy what learning changes; a copy shares everything else with its original."""
    twin = copy.copy(member)
    twin._state = member._state.copy()
    return twin
