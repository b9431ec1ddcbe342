"""The convolution: the units at all positions of an image share the weights of their filter."""

from dataclasses import asdict, dataclass
from math import prod
from typing import ClassVar

import numpy as np

from onepass._validation import as_count
from onepass.layers.base import ImageShape, Layer, Shape, Wiring, flat_size

__all__ = ["Conv2D"]

_MOST_INPUTS = 100_000_000  # of all positions of a convolution: 0.8 GB of indices


@dataclass(frozen=True)
class Conv2D(Layer):
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
    name: ClassVar[str] = "conv2d"
    shares_weights: ClassVar[bool] = True
    needs_images: ClassVar[bool] = True

    def __post_init__(self) -> None:
        for name, value in asdict(self).items():
            object.__setattr__(self, name, as_count(value, name))  # a plain int, which files can hold

    def output_shape(self, entering: Shape) -> ImageShape:
        """Height, width and channels of what comes out for an image of this shape."""
        image = self._as_image(entering)
        height, width = ((side - self.kernel) // self.stride + 1 for side in image[:2])
        if height < self.pool or width < self.pool:
            raise ValueError(
                f"{self} is too large for an image of {image[0]} x {image[1]}: use a smaller kernel or pool, or fewer "
                "convolutions"
            )
        return height // self.pool, width // self.pool, self.filters

    def _as_image(self, entering: Shape) -> ImageShape:
        """An image with its channels."""
        if not isinstance(entering, tuple):
            raise ValueError(
                f"{self} needs images, got rows of {entering} numbers: pass the shape of the images, such as (28, 28), "
                "and put convolutions before dense layers"
            )
        return entering if len(entering) == 3 else (*entering, 1)

    def weights_shape(self, entering: Shape) -> tuple[int, int]:
        """Filters, and weights of each, its bias included."""
        return self.filters, self.kernel**2 * self._as_image(entering)[2] + 1

    def wire(self, entering: Shape) -> Wiring:
        """The wiring of this layer for images of a shape."""
        image = self._as_image(entering)
        rows, columns, _ = self.output_shape(image)
        channels = image[2]
        seen = prod((side - self.kernel) // self.stride + 1 for side in image[:2]) * self.kernel**2 * channels
        if max(seen, flat_size(image)) > _MOST_INPUTS:
            raise ValueError(
                f"{self} has {seen:.2g} inputs over all positions of an image of {image[0]} x {image[1]}; at most "
                f"{_MOST_INPUTS:.0e} are allowed: use a larger stride or smaller images"
            )
        pixels = np.arange(flat_size(image)).reshape(image)
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
