"""Convolutions in networks: signals and derivatives by brute force, images in any shape, and what can't be."""

from typing import Any

import numpy as np
import pytest

from onepass import BayesianNetwork
from onepass.layers import Conv2D
from onepass.models.network.propagation import propagate
from tests.layers.test_conv2d import naive

NETWORKS: list[dict[str, Any]] = [
    {"n_features": (6, 5), "hidden": (Conv2D(3, 2), 4)},
    {"n_features": (7, 8, 2), "hidden": (Conv2D(3, 3, pool=2), Conv2D(2, 2), 3)},
    {"n_features": (7, 7), "hidden": (Conv2D(2, 2, stride=2, pool=2),)},
    {"n_features": (5, 5), "hidden": (Conv2D(2, 2), Conv2D(3, 3, stride=2), 2)},  # of a single position
]


def known(options: dict[str, Any], activation: str = "tanh") -> BayesianNetwork:
    """A network without any doubt about its weights: expected derivatives are derivatives."""
    return BayesianNetwork(**options, n_outputs=2, activation=activation, prior_scale=0.0, noise=0.1)


def outputs_by_loops(network: BayesianNetwork, weights: list[np.ndarray], image: np.ndarray) -> np.ndarray:
    values = image.reshape(*image.shape[:2], -1)
    for layer, own in zip(network.hidden, weights, strict=False):
        if isinstance(layer, Conv2D):
            # The activation stands between the convolution and the pooling.
            whole = np.tanh(naive(Conv2D(layer.filters, layer.kernel, layer.stride), own, values))
            alone = np.eye(layer.filters, layer.filters + 1, 1)
            values = naive(Conv2D(layer.filters, 1, pool=layer.pool), alone, whole)
        else:
            values = np.tanh(own @ np.append(1.0, values.ravel()))
    return np.asarray(weights[-1] @ np.append(1.0, values.ravel()))


@pytest.mark.parametrize("options", NETWORKS, ids=str)
def test_signals_and_derivatives_are_those_of_the_network(options: dict[str, Any]) -> None:
    network, rng = known(options), np.random.default_rng(0)
    image = rng.normal(size=options["n_features"])
    layout = network._layout
    start = network.mean
    np.testing.assert_allclose(
        network.predict(image).mean, outputs_by_loops(network, layout.layers(start), image), rtol=1e-10
    )
    signals = propagate(network._state.belief, network.activation, image.reshape(1, -1))
    jacobian = signals.weight_jacobian(layout)[0]
    step = 1e-6
    for weight in rng.permutation(layout.size)[:60]:
        ends = []
        for way in (-step, step):
            moved = start.copy()
            moved[weight] += way
            ends.append(outputs_by_loops(network, layout.layers(moved), image))
        np.testing.assert_allclose(jacobian[:, weight], (ends[1] - ends[0]) / (2.0 * step), atol=1e-7)


@pytest.mark.parametrize("options", NETWORKS[:2], ids=str)
def test_variances_of_the_first_layer_are_those_of_drawn_weights(options: dict[str, Any]) -> None:
    """Whatever the weights' covariance, each position sees its patch with it: by drawing weights."""
    network = BayesianNetwork(**options, noise=0.1)
    rng = np.random.default_rng(1)
    X = rng.normal(size=(40, network.n_features))
    network.learn(X, np.tanh(X[:, 0]))
    belief: Any = network._state.belief
    wiring = network._layout.wirings[0]
    seen = wiring.see(np.append(1.0, X[0])[None])
    variances = belief.own_variances()[0](seen)[0]
    draws = (belief.layers[0].sample(20_000, rng)).reshape(-1, *network.weights[0].shape)
    np.testing.assert_allclose(variances, np.einsum("nfc,pc->npf", draws, seen[0]).var(axis=0), rtol=0.08)


@pytest.mark.parametrize("shape", [(6, 5), (6, 5, 1), (6, 5, 3)])
def test_images_come_in_their_shape_or_flat(shape: tuple[int, ...]) -> None:
    shaped, flat = (BayesianNetwork(shape, (Conv2D(2, 3), 3)) for _ in range(2))
    rng = np.random.default_rng(0)
    images, y = rng.normal(size=(20, *shape)), rng.normal(size=20)
    rows = images.reshape(20, -1)
    shaped.learn(images[:19], y[:19]).learn(images[19], y[19])
    flat.learn(rows[:19], y[:19]).learn(rows[19], y[19])
    np.testing.assert_array_equal(shaped.mean, flat.mean)
    np.testing.assert_array_equal(shaped.predict(images).mean, flat.predict(rows).mean)
    assert np.ndim(shaped.predict(images[0]).mean) == np.ndim(flat.predict(rows[0]).mean) == 0
    assert shaped.sample_output(images, 2, 0).shape == (2, 20)
    assert shaped.log_predictive(images, y).shape == (20,)
    for wrong in (images[:, :-1], rows[:, :-1], images[None]):
        with pytest.raises(ValueError, match="X"):
            shaped.predict(wrong)


def test_one_image_is_not_taken_for_rows() -> None:
    network = BayesianNetwork((3, 9), (Conv2D(2, 2),))
    assert np.ndim(network.predict(np.zeros((3, 9))).mean) == 0
    assert network.predict(np.zeros((3, 27))).mean.shape == (3,)


def test_dense_layers_take_images_too() -> None:
    rng = np.random.default_rng(0)
    images, y = rng.normal(size=(20, 4, 3)), rng.normal(size=20)
    shaped, flat = (
        BayesianNetwork((4, 3), (5,)).learn(images, y),
        BayesianNetwork(12, (5,)).learn(images.reshape(20, 12), y),
    )
    np.testing.assert_array_equal(shaped.mean, flat.mean)


@pytest.mark.parametrize("shape", [(4,), (4, 4, 2, 2), (4, 0), (4, 2.5), (), "28"])
def test_shapes_that_no_image_has(shape: Any) -> None:
    with pytest.raises((TypeError, ValueError), match="n_features of images must be"):
        BayesianNetwork(shape, (3,))


def test_a_convolution_of_one_position_is_a_dense_layer() -> None:
    """With a full covariance of each: a kernel as large as the image sees all of it."""
    rng = np.random.default_rng(0)
    images, y = rng.normal(size=(50, 4, 4)), rng.normal(size=50)
    wide = BayesianNetwork((4, 4), (Conv2D(3, 4),), covariance=("full", "kronecker"), noise=0.2).learn(images, y)
    dense = BayesianNetwork((4, 4), (3,), covariance=("full", "kronecker"), noise=0.2).learn(images, y)
    np.testing.assert_allclose(wide.mean, dense.mean, rtol=1e-9, atol=1e-10)
    np.testing.assert_allclose(wide.predict(images).epistemic, dense.predict(images).epistemic, rtol=1e-8)


def test_pools_average_what_their_positions_see() -> None:
    """Of four pixels that are equal the mean is that of one."""
    pixels = np.random.default_rng(0).normal(size=(50, 1))
    one = BayesianNetwork((1, 1), (Conv2D(3, 1), 2))
    four = BayesianNetwork((2, 2), (Conv2D(3, 1, pool=2), 2))
    for source, target in ((one.mean, four._state.belief.mean), (one._state.belief.values, four._state.belief.values)):
        target[...] = source
    ours, theirs = (
        propagate(network._state.belief, network.activation, rows)
        for network, rows in ((four, pixels.repeat(4, axis=1)), (one, pixels))
    )
    np.testing.assert_allclose(ours.inputs[1], theirs.inputs[1], rtol=1e-12)
