"""The layers of networks. To add one, write it in a module of its own and put it into `LAYERS`."""

from typing import Any, TypeAlias

from onepass._validation import as_count, one_of
from onepass.layers.base import ImageShape, Layer, Shape, Wiring, as_image_shape, flat_size
from onepass.layers.conv2d import Conv2D
from onepass.layers.dense import Dense

__all__ = [
    "LAYERS",
    "Conv2D",
    "Dense",
    "ImageShape",
    "Layer",
    "LayerSize",
    "Shape",
    "Wiring",
    "as_image_shape",
    "as_layer",
    "as_layer_size",
    "decode_layer",
    "encode_layer",
    "flat_size",
    "register",
]

LayerSize: TypeAlias = int | Layer
"""A layer, or the number of units of a dense one."""
LAYERS: dict[str, type[Layer]] = {kind.name: kind for kind in (Dense, Conv2D)}


def register(kind: type[Layer]) -> type[Layer]:
    """Let files hold a layer, by its name."""
    LAYERS[kind.name] = kind
    return kind


def as_layer_size(given: Any, name: str) -> LayerSize:
    """Check a user's choice of a layer: an object, or a number of units."""
    return given if isinstance(given, Layer) else as_count(given, name)


def as_layer(size: LayerSize) -> Layer:
    """The layer of a user's choice."""
    return size if isinstance(size, Layer) else Dense(size)


def encode_layer(layer: LayerSize) -> Any:
    """Convert a layer to data that JSON can hold; units of a dense layer stay a number."""
    if not isinstance(layer, Layer):
        return layer
    if LAYERS.get(getattr(layer, "name", "")) is not type(layer):
        raise TypeError(
            f"{type(layer).__name__} is a layer that files don't know, so a network with it can't be saved; register "
            "its class with onepass.layers.register"
        )
    return {"layer": layer.name, **layer.encode()}


def decode_layer(data: Any, name: str = "hidden") -> LayerSize:
    """Restore a layer from its data; a ValueError if it is none."""
    if not isinstance(data, dict):
        return as_count(data, name)
    given = dict(data)
    kind = LAYERS[str(one_of(given.pop("layer", None), tuple(LAYERS), f"the kind of a layer in {name}"))]
    return kind.decode(given)
