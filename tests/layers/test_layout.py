"""Wirings of layers, against loops over positions; and what can't be a convolution."""

import json
from typing import Any

import numpy as np
import pytest

from onepass import BayesianNetwork
from onepass.beliefs.choice import start_belief
from onepass.layers import Conv2D, Dense, Wiring, decode_layer, encode_layer
from onepass.layers.layout import Layout

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


def test_only_a_layer_that_sees_all_inputs_in_their_order_is_dense() -> None:
    assert Dense(3).wire(4).is_dense
    assert Conv2D(3, 4).wire((4, 4)).is_dense
    assert not Conv2D(3, 3).wire((4, 4)).is_dense
    assert not Conv2D(3, 3, stride=3).wire((4, 4)).is_dense


def test_layers_follow_each_other() -> None:
    layout = Layout(((9, 8, 3), Conv2D(4, 3, pool=2), Conv2D(5, 2), 6, 2))
    assert layout.widths == (216, 3 * 3 * 4, 2 * 2 * 5, 6, 2)
    assert layout.shapes == ((4, 28), (5, 17), (6, 21), (2, 7))
    assert layout.size == sum(wiring.rows * wiring.cols for wiring in layout.wirings)
    assert layout.widths[1:] == tuple(wiring.n_out for wiring in layout.wirings)


@pytest.mark.parametrize("layer", [7, Dense(7), Conv2D(3, 2, stride=4, pool=5)])
def test_a_layer_survives_being_data(layer: Any) -> None:
    assert decode_layer(json.loads(json.dumps(encode_layer(layer)))) == layer


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (
            {"layer": "conv3d", "filters": 2, "kernel": 2},
            "the kind of a layer in hidden must be one of 'dense', 'conv2d'",
        ),
        ({"layer": "conv2d", "filters": 0, "kernel": 2}, "filters must be a whole number of at least 1"),
        ({"layer": "dense", "units": -1}, "units must be a whole number of at least 1"),
        (0, "hidden must be a whole number of at least 1"),
        ("7", "hidden must be a whole number of at least 1"),
    ],
)
def test_data_that_are_no_layer(data: Any, words: str) -> None:
    with pytest.raises((TypeError, ValueError), match=words):
        decode_layer(data)


def test_a_dense_layer_is_its_number_of_units() -> None:
    X = np.random.default_rng(0).normal(size=(30, 3))
    ours, short = (BayesianNetwork(3, (layer, 4)).learn(X, X[:, 0]) for layer in (Dense(5), 5))
    np.testing.assert_array_equal(ours.mean, short.mean)
    assert BayesianNetwork(3, (Dense(5), 4)).hidden == (Dense(5), 4)


@pytest.mark.parametrize("field", ["filters", "kernel", "stride", "pool"])
@pytest.mark.parametrize("value", [0, -1, 1.5, "2", None, True])
def test_numbers_that_a_convolution_cannot_have(field: str, value: Any) -> None:
    with pytest.raises((TypeError, ValueError), match=f"{field} must be a whole number of at least 1"):
        Conv2D(**{"filters": 2, "kernel": 2, field: value})


@pytest.mark.parametrize(
    ("sizes", "covariance", "words"),
    [
        (((4, 4), Conv2D(2, 5), 1), "kronecker", "is too large for an image of 4 x 4: use a smaller kernel"),
        (((4, 9), Conv2D(2, 3, pool=3), 1), "kronecker", "is too large for an image of 4 x 9"),
        (((6, 6), Conv2D(2, 3), Conv2D(2, 3), Conv2D(2, 3), 1), "auto", "is too large for an image of 2 x 2"),
        (((6, 6), 5, Conv2D(2, 3), 1), "auto", "needs images, got rows of 5 numbers: .* put convolutions before dense"),
        (
            (36, Conv2D(2, 3), 1),
            "kronecker",
            r"needs images, got rows of 36 numbers: pass the shape of the images, such as \(28, 28\)",
        ),
        (
            ((6, 6), Conv2D(2, 3), 1),
            "full",
            "need covariance='auto', 'kronecker' or a form per layer .*, got covariance='full'",
        ),
        (((6, 6), Conv2D(2, 3), 1), "diagonal", "got covariance='diagonal'"),
        (((6, 6), Conv2D(2, 3), 1), ("kronecker", "kronecker"), r"covariance\[0\] must be 'full' for Conv2D"),
        ((3, 4, 1), ("kronecker",), "one form for each of the 2 layers"),
        ((3, 4, 1), ("kronecker", "neuron"), r"covariance\[1\] must be one of 'kronecker', 'full', got 'neuron'"),
        (((10**5, 10**5), Conv2D(1, 1, pool=10**5), 1), "auto", "has 1e.10 inputs .* use a larger stride"),
        (((10**5, 10**5), Conv2D(1, 1, stride=10**5), 1), "auto", "smaller images"),
    ],
)
def test_layers_that_cannot_be(sizes: tuple[Any, ...], covariance: Any, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        start_belief(covariance, Layout(sizes), *np.ones((2, Layout(sizes).size)))
