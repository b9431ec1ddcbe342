"""What a layer is: how it wires the numbers that enter it to units, their moments and their derivatives.

A unit sees some of the inputs and a constant 1, its bias. In a dense layer every unit sees all inputs and has weights
of its own; in a convolution the units at all positions of an image share the weights of their filter, and each sees
the patch around its position. A `Layer` has the sizes that users choose; its `Wiring` for inputs of a shape does the
arithmetic, in NumPy here and in compiled loops in `onepass.engine.network_layers`.
"""

from abc import ABC, abstractmethod
from dataclasses import asdict, dataclass
from functools import cached_property
from math import prod
from typing import Any, ClassVar, NamedTuple, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from onepass._typing import FloatArray
from onepass._validation import as_count
from onepass.activations import Activation

__all__ = ["ImageShape", "Indices", "Layer", "LayerMoments", "Shape", "Wiring", "as_image_shape", "flat_size"]

Indices = NDArray[np.int64]
ImageShape: TypeAlias = tuple[int, ...]
"""Height and width, and channels where there are more than one."""
Shape: TypeAlias = int | ImageShape
"""What enters or leaves a layer: so many numbers, or an image."""


def as_image_shape(shape: Any, name: str = "n_features of images") -> ImageShape:
    """``shape`` as the height and width of images, and their channels if it has three numbers."""
    sides = tuple(shape) if np.iterable(shape) and not isinstance(shape, str) else ()
    if len(sides) not in (2, 3):
        raise ValueError(f"{name} must be (height, width) or (height, width, channels), got {shape!r}")
    return tuple(as_count(side, f"each number in {name}") for side in sides)


def flat_size(shape: Shape) -> int:
    """Numbers of an input row, be it given by that number or by the shape of an image."""
    return prod(shape) if isinstance(shape, tuple) else shape


class Layer(ABC):
    """A layer of weights. Subclasses are frozen dataclasses, whose fields are what files hold of them."""

    name: ClassVar[str]
    """In files."""
    shares_weights: ClassVar[bool] = False
    """Whether units at several positions have the same weights, whose covariance must be full."""

    needs_images: ClassVar[bool] = False
    """Whether inputs must be images, not plain rows of numbers."""

    @abstractmethod
    def output_shape(self, entering: Shape) -> Shape:
        """The shape of what comes out; a ValueError where the layer can't take what enters."""

    @abstractmethod
    def weights_shape(self, entering: Shape) -> tuple[int, int]:
        """Units at each position, and weights of each, its bias included."""

    @abstractmethod
    def wire(self, entering: Shape) -> "Wiring":
        """The wiring of the layer for inputs of a shape."""

    def encode(self) -> dict[str, Any]:
        """Convert the layer to data that JSON can hold."""
        return asdict(self)  # type: ignore[call-overload, no-any-return]

    @classmethod
    def decode(cls, data: dict[str, Any]) -> Self:
        """Restore the layer from the data of `encode`."""
        return cls(**data)


class LayerMoments(NamedTuple):
    """What leaves a layer for rows ``(n, d)`` whose units and weights are uncertain."""

    mean: FloatArray  # of its outputs, (n, n_out)
    var: FloatArray  # (n, n_out)
    slope: FloatArray  # expected derivative of the activation of each unit, (n, units)
    residual: FloatArray  # the variance that no linear function of the weights explains, (n, n_out)


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
    pool_size: int = 1
    """Units that make one average."""

    def __post_init__(self) -> None:
        # Compiled loops trust these indices; `Layout.wirings` compares the sizes with those that the layer declares.
        if self.patches.ndim != 2 or not ((self.patches >= 0) & (self.patches < self.n_in)).all():
            raise ValueError(
                f"patches of a layer must have shape (positions, inputs of a unit) and indices from 0 to "
                f"{self.n_in - 1}, got shape {self.patches.shape} and indices {self.patches.min(initial=0)} to "
                f"{self.patches.max(initial=0)}"
            )
        if self.pools.shape != (self.units,) or not ((self.pools >= -1) & (self.pools < self.units)).all():
            raise ValueError(
                f"pools of a layer must have one output, or -1, for each of its {self.units} units, got shape "
                f"{self.pools.shape}"
            )
        if self.pool_size == 1 and not np.array_equal(self.pools, np.arange(self.units)):
            raise ValueError("pools of a layer with pool_size=1 must be 0, 1, ... in this order: nothing is averaged")
        if self.pool_size < 1 or not (self.pools >= 0).any():
            raise ValueError(
                f"a layer must have units that make an output and a pool_size of at least 1, got {self.units} units, "
                f"of which {int((self.pools >= 0).sum())} make an output, and pool_size={self.pool_size}"
            )

    @property
    def cols(self) -> int:
        """Weights of a unit, its bias included."""
        return int(self.patches.shape[1]) + 1

    @property
    def positions(self) -> int:
        """Places at which the weights are applied; 1 of a dense layer, or of a convolution with a large kernel."""
        return int(self.patches.shape[0])

    @cached_property
    def is_dense(self) -> bool:
        """Whether every unit sees every input, in their order."""
        return np.array_equal(self.patches, np.arange(self.n_in)[None])

    @property
    def units(self) -> int:
        """Units before they are averaged."""
        return self.rows * self.positions

    @property
    def n_out(self) -> int:
        """Numbers that leave the layer."""
        return int(self.pools.max()) + 1

    def see(self, values: FloatArray) -> FloatArray:
        """What each position sees of values ``(n, n_in + 1)``, the first a constant: ``(n, positions, cols)``.

        In a dense layer there are no positions, and the values are returned as they are.
        """
        if self.is_dense:
            return values
        constant = np.zeros((self.positions, 1), dtype=np.int64)
        return np.asarray(values[:, np.hstack([constant, 1 + self.patches])])

    def forward(self, activation: Activation, pre_mean: FloatArray, pre_var: FloatArray, n_rows: int) -> LayerMoments:
        """Send means and variances of the pre-activations through the activation, and average what is pooled."""
        pre_var = np.maximum(pre_var, 0.0)
        output = activation.moments(pre_mean, pre_var)
        residual = np.maximum(output.var - np.square(output.slope) * pre_var, 0.0)
        mean, var, slope, residual = (
            part.reshape(n_rows, -1) for part in (output.mean, output.var, output.slope, residual)
        )
        share = 1.0 / self.pool_size
        return LayerMoments(
            self.average(mean, share), self.average(var, share**2), slope, self.average(residual, share**2)
        )

    def weight_jacobian(self, seen: FloatArray, jacobian: FloatArray) -> FloatArray:
        """Derivatives in the weights, ``(n, K, rows, cols)``, from what positions `see` and those in all units."""
        if self.is_dense:
            return np.asarray(jacobian[..., None] * seen[:, None, None, :])
        places = jacobian.reshape(*jacobian.shape[:2], self.positions, self.rows)
        return np.asarray(places.swapaxes(2, 3) @ seen[:, None])

    def through_weights(self, weight: FloatArray, jacobian: FloatArray) -> FloatArray:
        """Derivatives in the pre-activations ``(n, K, units)`` as those in what enters, ``(n, K, n_in)``."""
        if self.is_dense:
            return np.asarray(jacobian @ weight[:, 1:])
        places = jacobian.reshape(*jacobian.shape[:2], self.positions, self.rows)
        return self.spread(places @ weight[:, 1:])

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
