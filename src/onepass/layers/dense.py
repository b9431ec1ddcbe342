"""The dense layer: every unit sees every input."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from onepass._validation import as_count
from onepass.layers.base import Layer, Shape, Wiring, flat_size

__all__ = ["Dense"]


@dataclass(frozen=True)
class Dense(Layer):
    """Units that all see every input; ``hidden=(20,)`` is short for ``hidden=(Dense(20),)``.

    Parameters
    ----------
    units : int
        Number of units.
    """

    units: int
    name: ClassVar[str] = "dense"

    def __post_init__(self) -> None:
        object.__setattr__(self, "units", as_count(self.units, "units"))

    def output_shape(self, entering: Shape) -> int:
        """The number of units."""
        return self.units

    def weights_shape(self, entering: Shape) -> tuple[int, int]:
        """Units, and weights of each, its bias included."""
        return self.units, flat_size(entering) + 1

    def wire(self, entering: Shape) -> Wiring:
        """All inputs to every unit."""
        n_in = flat_size(entering)
        return Wiring(n_in, self.units, np.arange(n_in)[None], np.arange(self.units))
