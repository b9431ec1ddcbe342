"""The example on the page about adding a layer, taken from there and tried out."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import onepass
from onepass.layers import LAYERS
from onepass.layers.base import Wiring
from tests.helpers.extending import run_page

RNG = np.random.default_rng(0)
PAIRS = Wiring(8, 2, np.arange(7)[:, None] + np.arange(2), np.arange(14))  # two units at each pair of neighbours


@pytest.fixture(scope="module", autouse=True)
def conv1d() -> Iterator[Any]:
    """The layer that the page defines, registered for the time of these tests."""
    yield run_page("layer")["Conv1D"]
    LAYERS.pop("conv1d", None)


def steps(n: int, d: int = 8) -> tuple[np.ndarray, np.ndarray]:
    """Rows of which the target is the largest rise between neighbours, wherever it is."""
    X = RNG.normal(size=(n, d))
    return X, np.diff(X, axis=1).max(axis=1)


def test_units_share_the_weights_of_their_filter(conv1d: Any) -> None:
    wiring = conv1d(2, 3).wire(5)
    weights, X = RNG.normal(size=conv1d(2, 3).weights_shape(5)), RNG.normal(size=(4, 5))
    units = (wiring.see(np.hstack([np.ones((4, 1)), X])) @ weights.T).reshape(4, -1)
    for position in range(3):
        for unit in range(2):
            expected = X[:, position : position + 3] @ weights[unit, 1:] + weights[unit, 0]
            np.testing.assert_allclose(units[:, 2 * position + unit], expected, rtol=1e-12)


def test_the_compiled_kernel_is_the_reference(conv1d: Any) -> None:
    X, y = steps(60)
    ours, readable = (
        onepass.BayesianNetwork(8, (conv1d(3, 2), 4), noise=0.1, kernel=kernel).learn(X, y)
        for kernel in ("auto", "reference")
    )
    np.testing.assert_allclose(ours.mean, readable.mean, atol=1e-9)
    np.testing.assert_allclose(ours.predict(X).epistemic, readable.predict(X).epistemic, rtol=1e-7)


def test_a_filter_that_sees_all_inputs_is_a_dense_layer(conv1d: Any) -> None:
    X, y = steps(60)
    options: dict[str, Any] = {"covariance": ("full", "kronecker"), "noise": 0.1, "kernel": "reference"}
    ours, dense = (onepass.BayesianNetwork(8, (layer,), **options).learn(X, y) for layer in (conv1d(5, 8), 5))
    np.testing.assert_allclose(ours.mean, dense.mean, atol=1e-12)


def test_derivatives_are_those_of_the_outputs(conv1d: Any) -> None:
    X, y = steps(60)
    network = onepass.BayesianNetwork(8, (conv1d(3, 2),), activation="tanh", noise=0.1, kernel="reference").learn(X, y)
    jacobian = network.input_jacobian(X[0])
    assert jacobian.shape == (1, 8)
    # A belief that is certain has outputs whose derivatives are the expected ones.
    network._state.belief.values[...] = 0.0
    moved = [network.predict(X[0] + 1e-6 * e).mean - network.predict(X[0] - 1e-6 * e).mean for e in np.eye(8)]
    np.testing.assert_allclose(network.input_jacobian(X[0])[0], np.array(moved) / 2e-6, rtol=1e-4, atol=1e-8)


def test_it_needs_a_covariance_for_shared_weights_and_rows_that_are_wide_enough(conv1d: Any) -> None:
    with pytest.raises(ValueError, match="got covariance='diagonal'"):
        onepass.BayesianNetwork(8, (conv1d(3, 2),), covariance="diagonal")
    with pytest.raises(ValueError, match="must be 'full' for Conv1D"):
        onepass.BayesianNetwork(8, (conv1d(3, 2),), covariance=("kronecker", "full"))
    with pytest.raises(ValueError, match="needs rows of at least 9 numbers, got 8"):
        onepass.BayesianNetwork(8, (conv1d(3, 9),))


def test_estimators_and_files_take_it(conv1d: Any, tmp_path: Path) -> None:
    X, y = steps(300)
    model = onepass.BayesianMLPRegressor((conv1d(4, 2), 10)).fit(X, y)
    onepass.save(model, tmp_path / "model")
    loaded = onepass.load(tmp_path / "model")
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))
    assert loaded.hidden_layer_sizes == model.hidden_layer_sizes
    assert np.mean((model.predict(X) - y) ** 2) < 0.5 * y.var()


def test_a_file_with_a_layer_that_is_not_registered_is_refused(
    conv1d: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    onepass.save(onepass.BayesianNetwork(8, (conv1d(4, 2),)), tmp_path / "model")
    monkeypatch.delitem(LAYERS, "conv1d")
    with pytest.raises(onepass.CheckpointError, match="the kind of a layer in hidden must be one of 'dense', 'conv2d'"):
        onepass.load(tmp_path / "model")


@pytest.mark.parametrize(("offset", "n_pools", "words"), [(1, 6, "indices from 0 to 7"), (0, 5, "each of its 6 units")])
def test_a_wiring_beyond_the_inputs_is_refused(offset: int, n_pools: int, words: str) -> None:
    patches = np.arange(18).reshape(6, 3) % 8 + offset
    with pytest.raises(ValueError, match=words):
        Wiring(8, 1, patches, np.arange(n_pools))


@pytest.mark.parametrize(
    ("pools", "pool_size", "words"),
    [
        (np.arange(6)[::-1], 1, "pool_size=1 must be 0, 1"),
        (np.full(6, -1), 2, "6 units, of which 0 make an output"),
        (np.arange(6) // 2, 0, "pool_size=0"),
    ],
)
def test_a_wiring_whose_pools_make_no_average_is_refused(pools: np.ndarray, pool_size: int, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        Wiring(8, 1, np.arange(18).reshape(6, 3) % 8, pools, pool_size)


@pytest.mark.parametrize(
    "wrong",
    [
        {"output_shape": lambda self, entering: 4, "wire": lambda self, entering: PAIRS},
        {"weights_shape": lambda self, entering: (2, 2)},  # of the 3 weights of a unit
        {"weights_shape": lambda self, entering: (1, 3)},
        {"wire": lambda self, entering: Wiring(400, 2, np.arange(386, 400).reshape(7, 2), np.arange(14))},
    ],
    ids=["outputs", "weights of a unit", "units", "inputs"],
)
@pytest.mark.parametrize("kernel", ["auto", "reference"])
def test_a_wiring_of_other_sizes_than_the_layer_declares_is_refused(
    conv1d: Any, wrong: dict[str, Any], kernel: str
) -> None:
    layer = type("Wrong", (conv1d,), wrong)(2, 2)
    with pytest.raises(ValueError, match="as the layer declares them"):
        onepass.BayesianNetwork(8, (layer, 3), noise=0.1, kernel=kernel)


@pytest.mark.parametrize("covariance", ["auto", "full", "diagonal", "low_rank", "kronecker"])
def test_a_layer_whose_units_see_some_inputs_must_share_weights(conv1d: Any, covariance: str) -> None:
    layer = type("Partial", (conv1d,), {"shares_weights": False})(3, 2)
    with pytest.raises(ValueError, match="must see all inputs, unless its class has shares_weights=True"):
        onepass.BayesianNetwork(8, (layer,), covariance=covariance, noise=0.1)


def test_a_layer_that_is_not_registered_is_not_saved(conv1d: Any, tmp_path: Path) -> None:
    class Unknown(conv1d):  # type: ignore[misc]
        pass

    X, y = steps(20)
    network = onepass.BayesianNetwork(8, (Unknown(3, 2),), noise=0.1).learn(X, y)
    with pytest.raises(TypeError, match=r"onepass\.layers\.register"):
        onepass.save(network, tmp_path / "network")
