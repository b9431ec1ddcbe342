"""The dense layer, which may be written as its number of units."""

from typing import Any

import numpy as np
import pytest

from onepass import BayesianNetwork
from onepass.layers import Dense


def test_a_dense_layer_is_its_number_of_units() -> None:
    X = np.random.default_rng(0).normal(size=(30, 3))
    ours, short = (BayesianNetwork(3, (layer, 4)).learn(X, X[:, 0]) for layer in (Dense(5), 5))
    np.testing.assert_array_equal(ours.mean, short.mean)
    assert BayesianNetwork(3, (Dense(5), 4)).hidden == (Dense(5), 4)


def test_every_unit_sees_every_input() -> None:
    wiring = Dense(2).wire((2, 3))  # an image is taken as its pixels
    assert (wiring.n_in, wiring.n_out, wiring.rows, wiring.cols) == (6, 2, 2, 7)
    assert wiring.is_dense
    rng = np.random.default_rng(0)
    z, weight, jacobian = rng.normal(size=(4, 7)), rng.normal(size=(2, 7)), rng.normal(size=(4, 3, 2))
    np.testing.assert_array_equal(wiring.see(z), z)
    np.testing.assert_allclose(wiring.weight_jacobian(z, jacobian), np.einsum("nku,ni->nkui", jacobian, z))
    np.testing.assert_allclose(wiring.through_weights(weight, jacobian), jacobian @ weight[:, 1:])


@pytest.mark.parametrize("units", [0, -1, 1.5, "2", None, True])
def test_numbers_of_units_that_cannot_be(units: Any) -> None:
    with pytest.raises((TypeError, ValueError), match="units must be a whole number of at least 1"):
        Dense(units)
