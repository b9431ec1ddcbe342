"""What every layer has: a wiring, and its settings as data."""

import json
from typing import Any

import numpy as np
import pytest

from onepass.activations import as_activation
from onepass.layers import Conv2D, Dense, Wiring, decode_layer, encode_layer


def test_only_a_layer_that_sees_all_inputs_in_their_order_is_dense() -> None:
    assert Dense(3).wire(4).is_dense
    assert Conv2D(3, 4).wire((4, 4)).is_dense
    assert not Conv2D(3, 3).wire((4, 4)).is_dense
    assert not Conv2D(3, 3, stride=3).wire((4, 4)).is_dense


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


def test_a_wiring_averages_what_is_pooled_and_leaves_the_rest_out() -> None:
    patches, pools = np.array([[0, 1], [1, 2], [2, 3]]), np.array([0, 0, -1])
    wiring = Wiring(4, 1, patches, pools, pool_size=2)
    assert (wiring.cols, wiring.positions, wiring.units, wiring.n_out, wiring.is_dense) == (3, 3, 3, 1, False)
    np.testing.assert_allclose(wiring.average(np.array([[1.0, 3.0, 100.0]]), 0.5), [[2.0]])
    np.testing.assert_allclose(wiring.average_back(np.array([[6.0]])), [[3.0, 3.0, 0.0]])
    seen = wiring.see(np.array([[1.0, 10.0, 20.0, 30.0, 40.0]]))
    np.testing.assert_array_equal(seen[0], [[1.0, 10.0, 20.0], [1.0, 20.0, 30.0], [1.0, 30.0, 40.0]])


@pytest.mark.parametrize("layer", [Dense(3), Conv2D(2, 2, pool=2)], ids=str)
def test_moments_go_through_the_activation_and_the_pool(layer: Any) -> None:
    wiring, relu = layer.wire((4, 4)), as_activation("relu")
    rng = np.random.default_rng(0)
    pre_mean, pre_var = rng.normal(size=(5, wiring.units)), rng.random((5, wiring.units))
    found, each = wiring.forward(relu, pre_mean, pre_var, 5), relu.moments(pre_mean, pre_var)
    for output in range(wiring.n_out):
        own = wiring.pools == output
        np.testing.assert_allclose(found.mean[:, output], each.mean[:, own].mean(axis=1))
        np.testing.assert_allclose(found.var[:, output], each.var[:, own].sum(axis=1) / wiring.pool_size**2)
