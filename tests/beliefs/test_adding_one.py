"""The example on the page about adding a covariance, taken from there and tried out."""

import copy
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np
import pytest
from numpy.typing import NDArray

import onepass
from onepass._typing import FloatArray
from onepass.beliefs.block import BlockGaussian, LayerBlocks
from onepass.beliefs.choice import BELIEFS, count_numbers
from onepass.beliefs.full import FullGaussian
from onepass.beliefs.network import NetworkBelief, UnitVariances
from onepass.export import NotExportableError, program_of
from onepass.layers.layout import Layout
from tests.helpers.extending import run_page

RNG = np.random.default_rng(0)


@pytest.fixture(scope="module", autouse=True)
def pairs() -> Iterator[type[BlockGaussian]]:
    """The covariance that the page defines, registered for the time of these tests."""
    yield run_page("covariance")["PairBlocks"]
    BELIEFS.pop("pair", None)


def wave(n: int) -> tuple[np.ndarray, np.ndarray]:
    X = RNG.uniform(-2.0, 2.0, size=(n, 1))
    return X, np.sin(2.0 * X[:, 0]) + RNG.normal(0.0, 0.1, n)


def test_blocks_are_pairs_of_neurons_within_a_layer(pairs: type[BlockGaussian]) -> None:
    layout = Layout((3, 5, 2))
    assert np.diff(pairs.cut(layout)).tolist() == [8, 8, 4, 12]
    assert count_numbers("pair", layout) == 8 * 8 + 8 * 8 + 4 * 4 + 12 * 12


def test_two_outputs_without_hidden_layers_have_the_full_covariance() -> None:
    X, Y = RNG.normal(size=(80, 3)), RNG.normal(size=(80, 2))
    ours, full = (
        onepass.BayesianNetwork(3, (), 2, noise="learn", covariance=name).learn(X, Y) for name in ("pair", "full")
    )
    np.testing.assert_array_equal(ours.mean, full.mean)
    np.testing.assert_array_equal(ours.cov[0], full.cov[0])
    np.testing.assert_array_equal(ours.predict(X).epistemic, full.predict(X).epistemic)


def test_one_output_without_hidden_layers_has_the_posterior_of_linear_regression() -> None:
    X, y = RNG.normal(size=(80, 3)), RNG.normal(size=80)
    network = onepass.BayesianNetwork(3, (), noise=0.5, covariance="pair").learn(X, y)
    Z = np.column_stack([np.ones(80), X])
    cov = np.linalg.inv(np.eye(4) + Z.T @ Z / 0.5)
    np.testing.assert_allclose(network.cov[0], cov, atol=1e-12)
    np.testing.assert_allclose(network.mean, cov @ Z.T @ y / 0.5, atol=1e-12)
    np.testing.assert_allclose(network.predict(X).epistemic, np.einsum("ni,ij,nj->n", Z, cov, Z), atol=1e-12)


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


def test_a_file_with_a_covariance_that_is_not_registered_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    onepass.save(onepass.BayesianNetwork(1, (6,), covariance="pair"), tmp_path / "model")
    monkeypatch.delitem(BELIEFS, "pair")
    with pytest.raises(onepass.CheckpointError, match=r"covariance.*'pair'"):
        onepass.load(tmp_path / "model")


def test_refinement_needs_the_full_covariance() -> None:
    X, y = wave(10)
    with pytest.raises(ValueError, match="refine='ep' needs covariance='full'"):
        onepass.BayesianNetwork(1, (6,), covariance="pair").learn(X, y, passes=2, refine="ep")


def test_a_covariance_without_a_kernel_learns_by_the_reference(monkeypatch: pytest.MonkeyPatch) -> None:
    class Uncompiled(LayerBlocks):
        """The blocks of layers without their kernel."""

        name = "uncompiled"
        learn_pass = NetworkBelief.learn_pass

    monkeypatch.setitem(BELIEFS, "uncompiled", Uncompiled)
    X, y = wave(20)
    with pytest.raises(NotImplementedError, match="kernel='reference'"):
        onepass.BayesianNetwork(1, (6,), covariance="uncompiled").learn(X, y)
    ours, layer = (
        onepass.BayesianNetwork(1, (6,), covariance=name, kernel=kernel).learn(X, y)
        for name, kernel in (("uncompiled", "reference"), ("layer", "auto"))
    )
    np.testing.assert_allclose(ours.mean, layer.mean, atol=1e-9)


class PlainMatrix(NetworkBelief):
    """All correlations, in a form that no other belief has: the whole matrix, as NumPy computes with it."""

    name = "plain"
    couples_layers = True

    @classmethod
    def n_numbers(cls, layout: Layout) -> int:
        return layout.size**2

    def _bind(self, mean: FloatArray, values: FloatArray) -> None:
        super()._bind(mean, values)
        self.matrix: FloatArray = values.reshape(len(mean), len(mean))

    def _start(self, variance: FloatArray) -> None:
        self.matrix[...] = np.diag(variance)

    @property
    def cov(self) -> list[FloatArray]:
        return [self.matrix.copy()]

    @property
    def widest(self) -> int:
        return len(self.mean)

    def marginal_variances(self) -> FloatArray:
        return np.array(np.diag(self.matrix))

    def sample(self, n: int, rng: np.random.Generator) -> FloatArray:
        return rng.multivariate_normal(self.mean, self.matrix, n)

    def project_outputs(self, jacobian: FloatArray) -> tuple[FloatArray, FloatArray]:
        gain = jacobian @ self.matrix
        return gain, gain @ jacobian.swapaxes(-1, -2)

    def step(self, gain: FloatArray, jacobian: FloatArray, score: FloatArray, information: FloatArray) -> None:
        self.mean += score @ gain
        self.matrix -= gain.T @ information @ gain

    def forget(self, keep: float, prior: Any) -> None:
        own, towards = np.linalg.inv(self.matrix), np.diag(1.0 / prior.variance)
        both = keep * own @ self.mean + (1.0 - keep) * towards @ prior.mean
        self.matrix[...] = np.linalg.inv(keep * own + (1.0 - keep) * towards)
        self.mean[...] = self.matrix @ both

    def drift(self, share: float, prior: Any) -> None:
        self.matrix[...] = (1.0 - share) * self.matrix + share * np.diag(prior.variance)

    def take_over(self, fewer: Self, positions: NDArray[np.int64]) -> None:
        self.mean[positions], self.matrix[np.ix_(positions, positions)] = fewer.mean, fewer.matrix

    def parts(self) -> tuple[FullGaussian, ...]:
        return (FullGaussian(self.mean, self.matrix),)

    def join(self, parts: Sequence[FullGaussian]) -> Self:
        made = type(self)(self.layout, parts[0].mean, np.zeros(self.layout.size))
        made.matrix[...] = parts[0].cov
        return made

    def own_variances(self) -> list[UnitVariances]:
        def quadratic(starts: Any, cols: int) -> UnitVariances:
            blocks = [self.matrix[at : at + cols, at : at + cols] for at in starts]
            return lambda z: np.stack([((z @ block) * z).sum(axis=-1) for block in blocks], axis=-1)

        starts, shapes = self.layout.starts, self.layout.shapes
        return [quadratic(at + cols * np.arange(rows), cols) for at, (rows, cols) in zip(starts, shapes, strict=False)]


@pytest.fixture
def plain(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(BELIEFS, "plain", PlainMatrix)


def network(covariance: str, hidden: tuple[int, ...] = (6,), **options: Any) -> onepass.BayesianNetwork:
    return onepass.BayesianNetwork(1, hidden, covariance=covariance, kernel="reference", noise=0.01, **options)


@pytest.mark.usefixtures("plain")
@pytest.mark.parametrize("options", [{}, {"forgetting": 0.9}, {"drift": 0.01}, {"outliers": 0.05}], ids=str)
def test_a_form_of_its_own_learns_what_the_full_covariance_does(options: dict[str, Any]) -> None:
    X, y = wave(60)
    ours, full = (network(name, (), **options).learn(X, y) for name in ("plain", "full"))
    np.testing.assert_allclose(ours.mean, full.mean, atol=1e-9)
    np.testing.assert_allclose(ours.cov[0], full.cov[0], atol=1e-9)
    for mine, theirs in zip(ours.predict(X, rows_ahead=3).moments, full.predict(X, rows_ahead=3).moments, strict=True):
        np.testing.assert_allclose(mine, theirs, atol=1e-9)


@pytest.mark.usefixtures("plain")
def test_a_form_of_its_own_works_in_networks_files_and_merging(tmp_path: Path) -> None:
    X, y = wave(400)
    learned = network("plain").learn(X, y)
    assert np.sqrt(np.mean((learned.predict(X).mean - np.sin(2.0 * X[:, 0])) ** 2)) < 0.3
    assert learned.belief_size == learned.mean.size**2
    onepass.save(learned, tmp_path / "model")
    loaded = onepass.load(tmp_path / "model")
    np.testing.assert_array_equal(loaded.learn(X, y).mean, copy.deepcopy(learned).learn(X, y).mean)
    more = learned.with_inputs(2)
    np.testing.assert_allclose(more.predict(np.hstack([X, 0.0 * X])).mean, learned.predict(X).mean, atol=1e-9)
    prior = network("plain", (), calibrate=False)
    parts = [copy.deepcopy(prior).learn(X[k::2], y[k::2]) for k in range(2)]
    np.testing.assert_allclose(onepass.merge(prior, parts).mean, copy.deepcopy(prior).learn(X, y).mean, atol=1e-9)
    with pytest.raises(ValueError, match="refine='ep' needs covariance='full'"):
        learned.learn(X, y, passes=2, refine="ep")
    with pytest.raises(NotExportableError, match="covariance='plain' can't be exported"):
        program_of(prior)


def test_an_estimator_takes_it() -> None:
    X, y = wave(300)
    model = onepass.BayesianMLPRegressor((20,), covariance="pair").fit(X, y)
    assert np.mean((model.predict(X) - y) ** 2) < 0.1
    with pytest.raises(ValueError, match="'pair', got 'triple'"):
        onepass.BayesianMLPRegressor((20,), covariance="triple").fit(X, y)
