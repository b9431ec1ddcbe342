"""The order of a network's weights in one vector."""

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from onepass._typing import FloatArray

__all__ = ["Layout"]

Indices = NDArray[np.int64]


@dataclass(frozen=True)
class Layout:
    """Where each weight of a network stands in one long vector.

    Layer after layer; within one, neuron after neuron with its bias last, so that a neuron's block is in one piece.
    With ``input_major`` all weights of one input stand together instead, so that an input that is zero can be skipped.
    """

    widths: tuple[int, ...]
    """Inputs, units of each hidden layer, outputs."""
    input_major: bool = False

    @cached_property
    def starts(self) -> Indices:
        """Where each layer begins, and the end: ``(layers + 1,)``."""
        sizes = [(n_in + 1) * n_out for n_in, n_out in pairwise(self.widths)]
        return np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)

    @property
    def size(self) -> int:
        """Number of weights."""
        return int(self.starts[-1])

    @property
    def n_layers(self) -> int:
        """Number of layers of weights."""
        return len(self.widths) - 1

    def layers(self, flat: FloatArray) -> list[FloatArray]:
        """Views of the vector, a matrix ``(n_out, n_in + 1)`` a layer; more axes may stand before."""
        views = []
        for layer in range(self.n_layers):
            n_in, n_out = self.widths[layer] + 1, self.widths[layer + 1]
            part = flat[..., self.starts[layer] : self.starts[layer + 1]]
            if self.input_major:
                views.append(part.reshape(*part.shape[:-1], n_in, n_out).swapaxes(-1, -2))
            else:
                views.append(part.reshape(*part.shape[:-1], n_out, n_in))
        return views

    @cached_property
    def unit_starts(self) -> Indices:
        """Where the weights of each unit begin, all layers in order, and the end."""
        counts = np.repeat([width + 1 for width in self.widths[:-1]], self.widths[1:])
        return np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
