"""The order of a network's weights in one vector."""

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np

from onepass.layers import Layer, Shape, Wiring, as_layer, flat_size
from onepass.layers.base import Indices

__all__ = ["Layout"]


@dataclass(frozen=True)
class Layout:
    """The position of each weight of a network in one long vector.

    Layer after layer; within a layer unit after unit, each with its bias first, so that the weights of a unit are
    contiguous. With ``input_major`` all weights of one input are contiguous instead, so that inputs that are zero can
    be skipped.
    """

    sizes: tuple[Any, ...]
    """Inputs, or the shape of images; units of each hidden layer, or a convolution; outputs."""
    input_major: bool = False

    def __reduce__(self) -> tuple[Any, ...]:  # without what is computed from these two
        return Layout, (self.sizes, self.input_major)

    @cached_property
    def stack(self) -> tuple[Layer, ...]:
        """The layers of weights, the outputs' last."""
        return tuple(as_layer(size) for size in self.sizes[1:])

    @cached_property
    def _entering(self) -> tuple[Shape, ...]:
        """What enters each layer, and the outputs: numbers, or images of a shape."""
        shapes: list[Shape] = [self.sizes[0]]
        for layer in self.stack:
            shapes.append(layer.output_shape(shapes[-1]))
        return tuple(shapes)

    @cached_property
    def wirings(self) -> tuple[Wiring, ...]:
        """One of each layer of weights; a ValueError if it does not have the sizes that the layer declares."""
        wirings = tuple(layer.wire(entering) for layer, entering in zip(self.stack, self._entering, strict=False))
        declared = zip(pairwise(self.widths), self.shapes, strict=True)
        for layer, wiring, ((n_in, n_out), shape) in zip(self.stack, wirings, declared, strict=True):
            found = (wiring.n_in, wiring.n_out, (wiring.rows, wiring.cols))
            if found != (n_in, n_out, tuple(shape)):
                raise ValueError(
                    f"the wiring of {layer} must have (inputs, outputs, shape of the weights) as the layer declares "
                    f"them, {(n_in, n_out, tuple(shape))}, got {found}"
                )
            if not (layer.shares_weights or wiring.is_dense):
                raise ValueError(f"every unit of {layer} must see all inputs, unless its class has shares_weights=True")
        return wirings

    @property
    def shares_weights(self) -> bool:
        """Whether units of any layer share weights, as those of convolutions do."""
        return any(layer.shares_weights for layer in self.stack)

    @cached_property
    def widths(self) -> tuple[int, ...]:
        """Numbers that enter each layer, and outputs."""
        return tuple(flat_size(shape) for shape in self._entering)

    @cached_property
    def shapes(self) -> tuple[tuple[int, int], ...]:
        """Rows and columns of each layer's matrix of weights, the bias first."""
        return tuple(layer.weights_shape(entering) for layer, entering in zip(self.stack, self._entering, strict=False))

    @cached_property
    def starts(self) -> Indices:
        """Where each layer begins, and the end: ``(layers + 1,)``."""
        sizes = [rows * cols for rows, cols in self.shapes]
        return np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)

    @property
    def size(self) -> int:
        """Number of weights."""
        return int(self.starts[-1])

    @property
    def n_layers(self) -> int:
        """Number of layers of weights."""
        return len(self.sizes) - 1

    def positions_of(self, fewer: "Layout") -> Indices:
        """The position here of each weight of a network with fewer inputs or outputs, ``(fewer.size,)``.

        The others' are the first inputs and the first outputs.
        """
        positions = np.empty(fewer.size, dtype=np.int64)
        for own, found in zip(self.layers(np.arange(self.size)), fewer.layers(positions), strict=True):
            rows, cols = found.shape
            found[...] = own[:rows, :cols]
        return positions

    def layers(self, flat: Any) -> list[Any]:
        """Views of the vector, a matrix ``(n_out, n_in + 1)`` per layer; there may be more axes in front."""
        views = []
        for (begin, end), (rows, cols) in zip(pairwise(self.starts), self.shapes, strict=True):
            part = flat[..., begin:end]
            if self.input_major:
                views.append(part.reshape(*part.shape[:-1], cols, rows).swapaxes(-1, -2))
            else:
                views.append(part.reshape(*part.shape[:-1], rows, cols))
        return views

    @cached_property
    def unit_starts(self) -> Indices:
        """Where the weights of each unit begin, all layers in order, and the end."""
        counts = [cols for rows, cols in self.shapes for _ in range(rows)]
        return np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
