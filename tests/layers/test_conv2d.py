"""Convolutions against loops over positions, and what they can't be."""

from typing import Any

import numpy as np
import pytest

from onepass.layers import Conv2D, Wiring

WIRINGS: list[tuple[Conv2D, tuple[int, ...]]] = [
    (Conv2D(3, 2), (4, 5)),
    (Conv2D(2, 3, stride=2), (8, 7, 2)),
    (Conv2D(2, 2, pool=2), (6, 8, 3)),  # positions that no pool takes
    (Conv2D(4, 1, stride=3, pool=2), (9, 11)),
    (Conv2D(1, 3, stride=3), (4, 5)),  # a single position that sees a part of the image
]


def naive(layer: Conv2D, weights: np.ndarray, image: np.ndarray) -> np.ndarray:
    """A convolution and its mean pooling by loops, of an image ``(height, width, channels)``."""
    places = [range(0, side - layer.kernel + 1, layer.stride) for side in image.shape[:2]]
    whole = np.zeros((len(places[0]), len(places[1]), layer.filters))
    for r, top in enumerate(places[0]):
        for c, left in enumerate(places[1]):
            for f in range(layer.filters):
                total = weights[f, 0]
                at = 1
                for i in range(layer.kernel):
                    for j in range(layer.kernel):
                        for channel in range(image.shape[2]):
                            total += weights[f, at] * image[top + i, left + j, channel]
                            at += 1
                whole[r, c, f] = total
    height, width, pool = len(places[0]) // layer.pool, len(places[1]) // layer.pool, layer.pool
    pooled = np.zeros((height, width, layer.filters))
    for r in range(height):
        for c in range(width):
            pooled[r, c] = whole[r * pool : (r + 1) * pool, c * pool : (c + 1) * pool].mean(axis=(0, 1))
    return pooled


def apply(wiring: Wiring, weights: np.ndarray, rows: np.ndarray) -> np.ndarray:
    units = wiring.see(np.hstack([np.ones((len(rows), 1)), rows])) @ weights.T
    return wiring.average(units.reshape(len(rows), -1), 1.0 / wiring.pool_size)


@pytest.mark.parametrize(("layer", "shape"), WIRINGS, ids=str)
def test_a_wiring_is_the_convolution(layer: Conv2D, shape: tuple[int, ...]) -> None:
    rng = np.random.default_rng(0)
    images = rng.normal(size=(3, *shape))
    weights = rng.normal(size=layer.weights_shape(shape))
    wiring = layer.wire(shape)
    outputs = apply(wiring, weights, images.reshape(3, -1))
    for image, output in zip(images, outputs, strict=True):
        expected = naive(layer, weights, image.reshape(*shape[:2], -1))
        assert expected.shape == layer.output_shape(shape)
        np.testing.assert_allclose(output, expected.ravel(), atol=1e-12)
    assert (wiring.n_in, wiring.n_out) == (images[0].size, outputs.shape[1])
    assert (wiring.rows, wiring.cols) == weights.shape


@pytest.mark.parametrize(("layer", "shape"), WIRINGS, ids=str)
def test_derivatives_go_back_along_the_wires(layer: Conv2D, shape: tuple[int, ...]) -> None:
    rng = np.random.default_rng(0)
    wiring, weights = layer.wire(shape), rng.normal(size=layer.weights_shape(shape))
    rows, change = rng.normal(size=(2, 1, wiring.n_in))
    derivatives = rng.normal(size=(1, 1, wiring.n_out))
    units = wiring.average_back(derivatives).reshape(1, 1, wiring.positions, wiring.rows)
    back = wiring.spread(units @ weights[:, 1:])
    # The convolution is linear, so a difference of any size has the derivative.
    moved = apply(wiring, weights, rows + change) - apply(wiring, weights, rows)
    np.testing.assert_allclose((back[0] @ change[0]).item(), (derivatives[0] @ moved[0]).item(), rtol=1e-10)


@pytest.mark.parametrize("field", ["filters", "kernel", "stride", "pool"])
@pytest.mark.parametrize("value", [0, -1, 1.5, "2", None, True])
def test_numbers_that_a_convolution_cannot_have(field: str, value: Any) -> None:
    with pytest.raises((TypeError, ValueError), match=f"{field} must be a whole number of at least 1"):
        Conv2D(**{"filters": 2, "kernel": 2, field: value})
