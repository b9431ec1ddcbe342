"""The order of a network's weights in one vector, and how the units of its layers are wired.

A layer is dense, every unit sees every input, or a convolution: the units at all positions of an image share the
weights of their filter and each sees the patch around its position.
"""

from dataclasses import asdict, dataclass
from functools import cached_property
from itertools import pairwise
from math import prod
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from onepass._typing import FloatArray
from onepass._validation import as_count

__all__ = [
    "Conv2D",
    "ImageShape",
    "LayerSize",
    "Layout",
    "Wiring",
    "as_image_shape",
    "decode_layer",
    "encode_layer",
    "flat_size",
]

_MOST_INPUTS = 100_000_000  # of all positions of a convolution: 0.8 GB of indices
Indices = NDArray[np.int64]
ImageShape: TypeAlias = tuple[int, ...]
"""Height and width, and channels where there are more than one."""


@dataclass(frozen=True)
class Conv2D:
    """A convolutional layer for images: filters, the network's activation, then optionally mean pooling.

    Images are not padded: a height ``h`` becomes ``(h - kernel) // stride + 1`` positions, divided by ``pool`` (rounded
    down) after pooling. The output has one channel per filter; channels come last.

    Parameters
    ----------
    filters : int
        Number of filters.
    kernel : int
        Height and width of the patch that a filter sees.
    stride : int
        Distance between neighbouring positions of the patch.
    pool : int
        Height and width of the squares of positions that are averaged; 1 for no pooling.

    Examples
    --------
    >>> from onepass import Conv2D
    >>> Conv2D(16, 5, stride=3).output_shape((28, 28))
    (8, 8, 16)
    """

    filters: int
    kernel: int
    stride: int = 1
    pool: int = 1

    def __post_init__(self) -> None:
        for name, value in asdict(self).items():
            object.__setattr__(self, name, as_count(value, name))  # a plain int, which files can hold

    def output_shape(self, image: ImageShape) -> ImageShape:
        """Height, width and channels of what comes out for an image of this shape."""
        height, width = ((side - self.kernel) // self.stride + 1 for side in image[:2])
        if height < self.pool or width < self.pool:
            raise ValueError(
                f"{self} is too large for an image of {image[0]} x {image[1]}: use a smaller kernel or pool, or fewer "
                "convolutions"
            )
        return height // self.pool, width // self.pool, self.filters

    def weights_shape(self, image: Any) -> tuple[int, int]:
        """Filters, and weights of each, its bias included."""
        channels = image[2] if len(image) == 3 else 1
        return self.filters, self.kernel**2 * channels + 1

    def wire(self, image: Any) -> "Wiring":
        """The wiring of this layer for images of a shape."""
        rows, columns, _ = self.output_shape(image)
        channels = image[2] if len(image) == 3 else 1
        seen = prod((side - self.kernel) // self.stride + 1 for side in image[:2]) * self.kernel**2 * channels
        if max(seen, flat_size(image)) > _MOST_INPUTS:
            raise ValueError(
                f"{self} has {seen:.2g} inputs over all positions of an image of {image[0]} x {image[1]}; at most "
                f"{_MOST_INPUTS:.0e} are allowed: use a larger stride or smaller images"
            )
        pixels = np.arange(flat_size(image)).reshape(*image[:2], channels)
        # All positions that the kernel fits in, row after row: (height, width, kernel, kernel, channels).
        views = np.lib.stride_tricks.sliding_window_view(pixels, (self.kernel, self.kernel), axis=(0, 1))
        views = views[:: self.stride, :: self.stride].transpose(0, 1, 3, 4, 2)
        height, width = views.shape[:2]
        pooled = np.full((height, width, self.filters), -1)
        averaged = np.arange(rows * columns * self.filters).reshape(rows, columns, self.filters)
        spread = averaged.repeat(self.pool, axis=0).repeat(self.pool, axis=1)
        pooled[: rows * self.pool, : columns * self.pool] = spread
        patches = views.reshape(height * width, -1)
        return Wiring(pixels.size, self.filters, patches, pooled.ravel(), self.pool**2)


LayerSize: TypeAlias = int | Conv2D
"""Units of a dense layer, or a convolution."""


def as_image_shape(shape: Any, name: str = "n_features of images") -> ImageShape:
    """``shape`` as the height and width of images, and their channels if it has three numbers."""
    sides = tuple(shape) if np.iterable(shape) and not isinstance(shape, str) else ()
    if len(sides) not in (2, 3):
        raise ValueError(f"{name} must be (height, width) or (height, width, channels), got {shape!r}")
    return tuple(as_count(side, f"each number in {name}") for side in sides)


def flat_size(shape: int | ImageShape) -> int:
    """Numbers of an input row, be it given by that number or by the shape of an image."""
    return prod(shape) if isinstance(shape, tuple) else shape


def encode_layer(layer: LayerSize) -> Any:
    """Convert a layer to data that JSON can hold."""
    return asdict(layer) if isinstance(layer, Conv2D) else layer


def decode_layer(data: Any) -> Any:
    """Restore a layer from its data."""
    return Conv2D(**data) if isinstance(data, dict) else data


@dataclass(frozen=True, eq=False)
class Wiring:
    """Which inputs the weights of a layer see, and where its units go."""

    n_in: int
    """Numbers that enter the layer."""
    rows: int
    """Units at each position, which have weights of their own."""
    patches: Indices
    """The inputs that each position sees, ``(positions, inputs of a unit)``."""
    pools: Indices
    """For every unit, position after position, the output that it is averaged into, or -1."""
    pool_size: int
    """Units that make one average."""

    @classmethod
    def dense(cls, n_in: int, n_out: int) -> "Wiring":
        """All inputs to every unit."""
        return cls(n_in, n_out, np.arange(n_in)[None], np.arange(n_out), 1)

    @property
    def cols(self) -> int:
        """Weights of a unit, its bias included."""
        return int(self.patches.shape[1]) + 1

    @property
    def positions(self) -> int:
        """Places at which the weights are applied; 1 of a dense layer, or of a convolution with a large kernel."""
        return int(self.patches.shape[0])

    @property
    def is_dense(self) -> bool:
        """Whether every unit sees every input."""
        return self.patches.shape == (1, self.n_in)

    @property
    def units(self) -> int:
        """Units before they are averaged."""
        return self.rows * self.positions

    @property
    def n_out(self) -> int:
        """Numbers that leave the layer."""
        return int(self.pools.max()) + 1

    def see(self, values: FloatArray) -> FloatArray:
        """What each position sees of values ``(n, n_in + 1)``, the last a constant: ``(n, positions, cols)``."""
        constant = np.full((self.positions, 1), self.n_in)
        return np.asarray(values[:, np.hstack([self.patches, constant])])

    @cached_property
    def _spreading(self) -> csr_array:
        return _summing(self.patches.ravel(), self.n_in)

    @cached_property
    def _averaging(self) -> csr_array:
        return _summing(self.pools, self.n_out)

    def spread(self, derivatives: FloatArray) -> FloatArray:
        """Derivatives in what a position sees, ``(..., positions, cols - 1)``, summed by input: ``(..., n_in)``."""
        flat = derivatives.reshape(-1, self.patches.size)
        return np.asarray(flat @ self._spreading).reshape(*derivatives.shape[:-2], self.n_in)

    def average(self, values: FloatArray, share: float) -> FloatArray:
        """Sums of units ``(n, units)`` over what is averaged, times a share: ``(n, n_out)``."""
        return values if self.pool_size == 1 else np.asarray(share * (values @ self._averaging))

    def average_back(self, derivatives: FloatArray) -> FloatArray:
        """Derivatives in the outputs ``(..., n_out)`` as those in the units."""
        if self.pool_size == 1:
            return derivatives
        return np.asarray(np.where(self.pools >= 0, derivatives[..., self.pools], 0.0) / self.pool_size)


def _summing(targets: Indices, n_out: int) -> csr_array:
    """The matrix that adds each number to a target; those below 0 are left out."""
    kept = np.flatnonzero(targets >= 0)
    return csr_array((np.ones(len(kept)), (kept, targets[kept])), shape=(len(targets), n_out))


@dataclass(frozen=True)
class Layout:
    """Where each weight of a network stands in one long vector.

    Layer after layer; within one, neuron after neuron with its bias last, so that a neuron's block is in one piece.
    With ``input_major`` all weights of one input stand together instead, so that an input that is zero can be skipped.
    """

    sizes: tuple[Any, ...]
    """Inputs, or the shape of images; units of each hidden layer, or a convolution; outputs."""
    input_major: bool = False

    def __reduce__(self) -> tuple[Any, ...]:  # without what is computed from these two
        return Layout, (self.sizes, self.input_major)

    @cached_property
    def _entering(self) -> tuple[int | ImageShape, ...]:
        """What enters each layer, and the outputs: numbers, or images of a shape."""
        shapes: list[int | ImageShape] = [self.sizes[0]]
        for size in self.sizes[1:]:
            if not isinstance(size, Conv2D):
                shapes.append(size)
            elif isinstance(shapes[-1], tuple):
                shapes.append(size.output_shape(shapes[-1]))
            else:
                raise ValueError(
                    f"{size} needs images, got rows of {shapes[-1]} numbers: pass the shape of the images, such as "
                    "(28, 28), and put convolutions before dense layers"
                )
        return tuple(shapes)

    @cached_property
    def wirings(self) -> tuple[Wiring, ...]:
        """One of each layer of weights."""
        return tuple(
            size.wire(entering) if isinstance(size, Conv2D) else Wiring.dense(flat_size(entering), size)
            for entering, size in zip(self._entering, self.sizes[1:], strict=False)
        )

    @property
    def has_convolutions(self) -> bool:
        """Whether not all layers are dense."""
        return any(isinstance(size, Conv2D) for size in self.sizes)

    @cached_property
    def widths(self) -> tuple[int, ...]:
        """Numbers that enter each layer, and outputs."""
        return tuple(flat_size(shape) for shape in self._entering)

    @cached_property
    def shapes(self) -> tuple[tuple[int, int], ...]:
        """Rows and columns of each layer's matrix of weights, the bias last."""
        return tuple(
            size.weights_shape(entering) if isinstance(size, Conv2D) else (size, flat_size(entering) + 1)
            for entering, size in zip(self._entering, self.sizes[1:], strict=False)
        )

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
        """Where each weight of a network with fewer inputs or outputs stands here, ``(fewer.size,)``.

        The others' are the first inputs and the first outputs; biases stay last.
        """
        positions = np.empty(fewer.size, dtype=np.int64)
        for own, found in zip(self.layers(np.arange(self.size)), fewer.layers(positions), strict=True):
            n_out, n_in = found.shape[0], found.shape[1] - 1
            found[:, :-1], found[:, -1] = own[:n_out, :n_in], own[:n_out, -1]
        return positions

    def layers(self, flat: Any) -> list[Any]:
        """Views of the vector, a matrix ``(n_out, n_in + 1)`` a layer; more axes may stand before."""
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
