"""The order of weights in one vector, and layers that don't fit each other."""

from typing import Any

import numpy as np
import pytest

from onepass.beliefs.choice import start_belief
from onepass.layers import Conv2D
from onepass.layers.layout import Layout


def test_layers_follow_each_other() -> None:
    layout = Layout(((9, 8, 3), Conv2D(4, 3, pool=2), Conv2D(5, 2), 6, 2))
    assert layout.widths == (216, 3 * 3 * 4, 2 * 2 * 5, 6, 2)
    assert layout.shapes == ((4, 28), (5, 17), (6, 21), (2, 7))
    assert layout.size == sum(wiring.rows * wiring.cols for wiring in layout.wirings)
    assert layout.widths[1:] == tuple(wiring.n_out for wiring in layout.wirings)


@pytest.mark.parametrize("input_major", [True, False])
def test_layers_are_views_of_one_vector(input_major: bool) -> None:
    layout = Layout((2, 3, 1), input_major=input_major)
    flat = np.arange(float(layout.size))
    first, second = layout.layers(flat)
    assert (first.shape, second.shape) == ((3, 3), (1, 4))
    np.testing.assert_array_equal(first[0], [0.0, 3.0, 6.0] if input_major else [0.0, 1.0, 2.0])
    second[0, 0] = -1.0
    assert flat[9] == -1.0
    if not input_major:
        np.testing.assert_array_equal(layout.unit_starts, [0, 3, 6, 9, 13])
    np.testing.assert_array_equal(layout.starts, [0, 9, 13])


@pytest.mark.parametrize("input_major", [True, False])
def test_weights_of_a_smaller_network_are_found_in_a_larger_one(input_major: bool) -> None:
    fewer, more = (Layout((n, 3, 1), input_major=input_major) for n in (2, 4))
    flat = np.random.default_rng(0).normal(size=more.size)
    found = fewer.layers(flat[more.positions_of(fewer)])
    first, second = more.layers(flat)
    np.testing.assert_array_equal(found[0], first[:, :3])
    np.testing.assert_array_equal(found[1], second)


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
