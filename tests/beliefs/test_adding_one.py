"""The recipe for a new covariance structure in CONTRIBUTING.md, taken from the page and followed to the end."""

import copy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import onepass
from onepass.beliefs.layout import Layout
from onepass.beliefs.structures import STRUCTURES, BlockStructure, LayerBlocks, Structure
from tests.helpers.markdown import code_block

RNG = np.random.default_rng(0)


@pytest.fixture(scope="module", autouse=True)
def pairs() -> Iterator[type[BlockStructure]]:
    """The structure that the page defines, registered for the time of these tests."""
    names: dict[str, Any] = {}
    exec(code_block("CONTRIBUTING.md", "Add a covariance structure"), names)
    yield names["PairBlocks"]
    STRUCTURES.pop("pair", None)


def wave(n: int) -> tuple[np.ndarray, np.ndarray]:
    X = RNG.uniform(-2.0, 2.0, size=(n, 1))
    return X, np.sin(2.0 * X[:, 0]) + RNG.normal(0.0, 0.1, n)


def test_blocks_are_pairs_of_neurons_within_a_layer(pairs: type[BlockStructure]) -> None:
    structure = pairs((3, 5, 2))
    assert np.diff(structure.cuts).tolist() == [8, 8, 4, 12]
    assert structure.n_numbers(Layout((3, 5, 2))) == 8 * 8 + 8 * 8 + 4 * 4 + 12 * 12


def test_two_outputs_without_hidden_layers_have_the_full_covariance() -> None:
    X, Y = RNG.normal(size=(80, 3)), RNG.normal(size=(80, 2))
    ours, full = (
        onepass.BayesianNetwork(3, (), 2, noise="learn", covariance=name).learn(X, Y) for name in ("pair", "full")
    )
    np.testing.assert_array_equal(ours.mean, full.mean)
    np.testing.assert_array_equal(ours.cov[0], full.cov[0])
    np.testing.assert_array_equal(ours.predict(X).var, full.predict(X).var)


def test_one_output_without_hidden_layers_has_the_posterior_of_linear_regression() -> None:
    X, y = RNG.normal(size=(80, 3)), RNG.normal(size=80)
    network = onepass.BayesianNetwork(3, (), noise=0.5, covariance="pair").learn(X, y)
    Z = np.column_stack([X, np.ones(80)])
    cov = np.linalg.inv(np.eye(4) + Z.T @ Z / 0.5)
    np.testing.assert_allclose(network.cov[0], cov, atol=1e-12)
    np.testing.assert_allclose(network.mean, cov @ Z.T @ y / 0.5, atol=1e-12)
    np.testing.assert_allclose(network.predict(X).var, np.einsum("ni,ij,nj->n", Z, cov, Z), atol=1e-12)


@pytest.mark.parametrize("batch", [1, 8])
@pytest.mark.parametrize("hidden", [(7,), (4, 3)])
def test_the_compiled_kernel_is_the_reference(hidden: tuple[int, ...], batch: int) -> None:
    X, y = wave(60)
    ours, readable = (
        onepass.BayesianNetwork(1, hidden, covariance="pair", kernel=kernel).learn(X, y, batch=batch)
        for kernel in ("auto", "reference")
    )
    np.testing.assert_allclose(ours.mean, readable.mean, atol=1e-9)
    for block, same in zip(ours.cov, readable.cov, strict=True):
        np.testing.assert_allclose(block, same, atol=1e-9)


def test_a_network_learns_with_it_better_than_with_single_neurons() -> None:
    X, y = wave(800)
    grid = np.linspace(-1.8, 1.8, 50)[:, None]
    errors = {}
    for name in ("pair", "neuron"):
        network = onepass.BayesianNetwork(1, (20,), covariance=name).learn(X, y, passes=3, refine="reuse")
        errors[name] = np.sqrt(np.mean((network.predict(grid).mean - np.sin(2.0 * grid[:, 0])) ** 2))
    assert errors["pair"] < 0.2
    assert errors["pair"] < errors["neuron"]


def test_models_with_it_are_copied_merged_and_saved(tmp_path: Path) -> None:
    X, y = wave(100)
    prior = onepass.BayesianNetwork(1, (6,), covariance="pair", noise=0.01, calibrate=False)
    parts = [copy.deepcopy(prior).learn(X[k::2], y[k::2]) for k in range(2)]
    assert onepass.merge(prior, parts).n_seen == 100
    onepass.save(parts[0], tmp_path / "model")
    loaded = onepass.load(tmp_path / "model")
    np.testing.assert_array_equal(loaded.learn(X, y).mean, parts[0].learn(X, y).mean)


def test_a_file_with_a_structure_that_is_not_registered_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    onepass.save(onepass.BayesianNetwork(1, (6,), covariance="pair"), tmp_path / "model")
    monkeypatch.delitem(STRUCTURES, "pair")
    with pytest.raises(onepass.CheckpointError, match=r"covariance.*'pair'"):
        onepass.load(tmp_path / "model")


def test_refinement_needs_the_full_covariance() -> None:
    X, y = wave(10)
    with pytest.raises(ValueError, match="refine='ep' needs covariance='full'"):
        onepass.BayesianNetwork(1, (6,), covariance="pair").learn(X, y, passes=2, refine="ep")


def test_a_structure_without_a_kernel_learns_by_the_reference(monkeypatch: pytest.MonkeyPatch) -> None:
    class Uncompiled(LayerBlocks):
        """The blocks of layers without their kernel."""

        name = "uncompiled"
        learn = Structure.learn

    monkeypatch.setitem(STRUCTURES, "uncompiled", Uncompiled)
    X, y = wave(20)
    with pytest.raises(NotImplementedError, match="kernel='reference'"):
        onepass.BayesianNetwork(1, (6,), covariance="uncompiled").learn(X, y)
    ours, layer = (
        onepass.BayesianNetwork(1, (6,), covariance=name, kernel=kernel).learn(X, y)
        for name, kernel in (("uncompiled", "reference"), ("layer", "auto"))
    )
    np.testing.assert_allclose(ours.mean, layer.mean, atol=1e-9)
