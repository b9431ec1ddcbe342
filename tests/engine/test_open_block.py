"""Rows that come one per call, in a block that stays open: the same numbers as in any other way, whoever looks on."""

import copy
import pickle
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from onepass import BayesianNetwork, load, save
from onepass.engine.network_layers import BLOCK
from onepass.layers import Conv2D
from onepass.models.network.state import State

NAN = np.nan
FORMS: list[dict[str, Any]] = [
    {"n_features": 4, "hidden": (), "covariance": "kronecker"},
    {"n_features": 4, "hidden": (6,), "covariance": "kronecker"},
    {"n_features": 4, "hidden": (5, 4), "covariance": ("kronecker", "full", "kronecker")},
    {"n_features": 4, "hidden": (5,), "covariance": ("full", "kronecker")},
    {"n_features": (6, 5), "hidden": (Conv2D(3, 2, pool=2), 4), "covariance": "kronecker"},
]
HEADS: list[dict[str, Any]] = [
    {"observation": "bernoulli", "n_outputs": 3},
    {"observation": "gaussian", "n_outputs": 3},
    {"n_outputs": 2, "observation": "heteroscedastic", "outliers": 0.05},
]


def bandit_rows(network: BayesianNetwork, n: int, *, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Rows of which one target was observed, now and then none or two; labels, or numbers of about unit scale."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, network.n_features))
    Y = np.tanh(X @ rng.normal(size=(network.n_features, network.n_outputs))) + 0.3 * rng.normal(
        size=(n, network.n_outputs)
    )
    if network.observation.is_label:
        Y = (Y > 0.0).astype(np.float64)
    seen = np.eye(network.n_outputs, dtype=bool)[rng.integers(0, network.n_outputs, n)]
    seen[::11] = False
    seen[5::7, :2] = True
    return X, np.where(seen, Y, NAN)


def one_by_one(network: BayesianNetwork, X: np.ndarray, Y: np.ndarray) -> BayesianNetwork:
    for x, y in zip(X, Y, strict=True):
        network.learn(x, y)
    return network


def exported(network: BayesianNetwork) -> dict[str, np.ndarray]:
    parameters, arrays = network.export_state()
    return {**arrays, "log_evidence": np.array(parameters["log_evidence"]), "n_seen": np.array(parameters["n_seen"])}


def roots_squared(network: BayesianNetwork) -> np.ndarray:
    """All that was learned, without the sign and turn that a root may have."""
    parts = [
        network.mean,
        *(np.ravel(part) for layer in network.cov for part in (layer if isinstance(layer, tuple) else (layer,))),
    ]
    return np.concatenate([*parts, network.noise_var, [network.log_evidence]])


def assert_identical(one: BayesianNetwork, other: BayesianNetwork) -> None:
    expected = exported(other)
    for name, values in exported(one).items():
        np.testing.assert_array_equal(values, expected[name], err_msg=name)


def assert_near(one: BayesianNetwork, other: BayesianNetwork, tolerance: float) -> None:
    expected = roots_squared(other)
    np.testing.assert_allclose(roots_squared(one), expected, rtol=tolerance, atol=tolerance * np.abs(expected).max())


@pytest.mark.parametrize("head", HEADS, ids=str)
@pytest.mark.parametrize("form", FORMS, ids=str)
def test_rows_in_an_open_block_are_those_of_blocks_of_one(form: dict[str, Any], head: dict[str, Any]) -> None:
    waiting, alone = (BayesianNetwork(**form, **head) for _ in range(2))
    X, Y = bandit_rows(waiting, 7 * BLOCK + 9)
    one_by_one(waiting, X, Y)
    for x, y in zip(X, Y, strict=True):
        alone.learn(x, y)
        assert alone._state.belief is not None  # which closes the block
    assert_near(waiting, alone, 1e-10)


@pytest.mark.parametrize("head", HEADS, ids=str)
@pytest.mark.parametrize("form", FORMS, ids=str)
def test_one_row_per_call_is_the_reference(form: dict[str, Any], head: dict[str, Any]) -> None:
    ours, reference = (BayesianNetwork(**form, **head, kernel=kernel) for kernel in ("auto", "reference"))
    X, Y = bandit_rows(ours, BLOCK + 20)
    one_by_one(ours, X, Y)
    assert_near(ours, reference.learn(X, Y), 1e-7)


@pytest.mark.parametrize("options", [{"forgetting": 0.95}, {"drift": 0.02}, {"outliers": 0.05}], ids=str)
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_streams_that_change_one_row_per_call(options: dict[str, Any], dtype: str) -> None:
    ours, blocks = (BayesianNetwork(4, (6,), 3, covariance="kronecker", dtype=dtype, **options) for _ in range(2))
    X, Y = bandit_rows(ours, 120)
    Y[60:] = 20.0 - 5.0 * Y[60:]  # an alarm, for one that distrusts
    alarms = 0
    for x, y in zip(X, Y, strict=True):
        alarms += ours._state.noise.trust.is_alarmed()
        ours.predict(x)
        ours.learn(x, y)
    assert (alarms > 0) == ("outliers" in options)
    assert_near(ours, blocks.learn(X, Y), 1e-9 if dtype == "float64" else 2e-3)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("form", FORMS, ids=str)
def test_looking_on_changes_nothing_bit_for_bit(form: dict[str, Any], dtype: str) -> None:
    watched, quiet = (
        BayesianNetwork(**form, n_outputs=3, observation="bernoulli", dtype=dtype, forgetting=0.98) for _ in range(2)
    )
    X, Y = bandit_rows(watched, 3 * BLOCK)
    rng = np.random.default_rng(1)
    for i, (x, y) in enumerate(zip(X, Y, strict=True)):
        others = rng.normal(size=(3, watched.n_features))
        if i % 3 == 0:
            watched.output_moments(x)  # the row that is learned next
        elif i % 3 == 1:
            watched.predict(x)
            watched.predict(others)
            watched.log_predictive(others[0], np.array([0.0, NAN, 1.0]))
        watched.learn(x, y)
        quiet.learn(x, y)
    assert_identical(watched, quiet)


def test_a_row_is_not_taken_for_another_that_was_looked_at() -> None:
    network, fresh = (BayesianNetwork(4, (6,), 3, covariance="kronecker") for _ in range(2))
    X, Y = bandit_rows(network, 12)
    row = X[0].copy()
    for x, y in zip(X, Y, strict=True):
        row[:] = x  # in one buffer, as a caller may
        network.predict(row)
        row[3] += 1.0
        network.learn(row, y)
        fresh.learn(row.copy(), y)
    assert_identical(network, fresh)


def test_a_row_that_comes_again_is_looked_at_again() -> None:
    network, at_once = (BayesianNetwork(4, (6,), 3, covariance="kronecker") for _ in range(2))
    X, Y = bandit_rows(network, 12)
    X, Y = np.repeat(X, 3, axis=0), np.repeat(Y, 3, axis=0)
    one_by_one(network, X, Y)
    assert_near(network, at_once.learn(X, Y), 1e-10)


def test_what_is_predicted_within_a_block_is_what_the_closed_belief_predicts() -> None:
    for form in FORMS:
        network = BayesianNetwork(**form, n_outputs=3)
        X, Y = bandit_rows(network, BLOCK // 2)
        one_by_one(network, X, Y)
        alone = [network.predict(x) for x in X]
        together = copy.deepcopy(network).predict(X)
        for name in ("mean", "epistemic", "aleatoric", "pre_var"):
            expected = getattr(together, name)
            np.testing.assert_allclose([getattr(own, name) for own in alone], expected, rtol=1e-9, atol=1e-12)


def _saved(network: BayesianNetwork, path: Path) -> BayesianNetwork:
    save(network, path)
    loaded: BayesianNetwork = load(path)
    return loaded


WAYS: dict[str, Callable[[BayesianNetwork, Path], BayesianNetwork]] = {
    "export": lambda network, path: BayesianNetwork.from_state(*network.export_state()),
    "deepcopy": lambda network, path: copy.deepcopy(network),
    "pickle": lambda network, path: pickle.loads(pickle.dumps(network)),
    "save": lambda network, path: _saved(network, path),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_a_copy_within_a_block_goes_on_as_its_original(way: str, dtype: str, tmp_path: Path) -> None:
    network = BayesianNetwork(4, (6,), 3, covariance="kronecker", observation="bernoulli", dtype=dtype)
    X, Y = bandit_rows(network, 3 * BLOCK)
    at = 0
    for n in (1, 5, BLOCK - 6, BLOCK, 3):  # within a block, at its end, and just after
        one_by_one(network, X[at : at + n], Y[at : at + n])
        at += n
        twin = WAYS[way](network, tmp_path / "network")
        assert_identical(twin, network)
        one_by_one(twin, X[at : at + 2], Y[at : at + 2])
        one_by_one(network, X[at : at + 2], Y[at : at + 2])
        assert_identical(twin, network)
        at += 2


def test_rows_one_per_call_and_in_batches_in_turn() -> None:
    mixed, at_once = (BayesianNetwork(4, (6,), 3, covariance="kronecker") for _ in range(2))
    X, Y = bandit_rows(mixed, 60)
    one_by_one(mixed, X[:10], Y[:10]).learn(X[10:25], Y[10:25])
    one_by_one(mixed, X[25:40], Y[25:40]).predict_then_learn(X[40:50], Y[40:50])
    for x, y in zip(X[50:], Y[50:], strict=True):
        mixed.predict_then_learn(x, y)
    assert_near(mixed, at_once.learn(X, Y), 1e-10)


OVERFLOWING = [(1e30, 1.0, "float32"), (1e21, 1.0, "float32"), (1.0, 1e38, "float32"), (1e200, 1.0, "float64")]


@pytest.mark.parametrize("hidden", [(), (6,)], ids=str)
@pytest.mark.parametrize(("x_scale", "y_scale", "dtype"), OVERFLOWING)
def test_a_row_that_overflows_is_refused_without_a_copy(
    x_scale: float, y_scale: float, dtype: str, hidden: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    options: dict[str, Any] = {"n_outputs": 3, "covariance": "kronecker", "dtype": dtype, "noise": 1e-4}
    network, fresh = (BayesianNetwork(4, hidden, **options) for _ in range(2))
    X, Y = bandit_rows(network, 40)
    one_by_one(network, X[:10], Y[:10])
    monkeypatch.setattr(State, "copy", None)
    refused = False
    try:
        network.learn(x_scale * X[10], np.array([y_scale, NAN, NAN]))
    except ValueError as error:
        refused = f"overflow {dtype}" in str(error)
    # Between hidden layers a step is bounded, so that a wild target is learned as far as it may lead.
    assert refused == (not hidden or x_scale > 1.0)
    if refused:
        one_by_one(network, X[10:], Y[10:])
        assert_identical(network, one_by_one(one_by_one(fresh, X[:10], Y[:10]), X[10:], Y[10:]))


@settings(max_examples=60)
@given(
    st.sampled_from([1e-30, 1e-8, 1.0, 1e8, 1e15, 1e18]),
    st.sampled_from([1e-12, 1.0, 1e12]),
    st.sampled_from([0.0, 1e-6, 1.0, 1e6]),
    st.sampled_from(["float64", "float32"]),
    st.sampled_from([(), (3,), (3, 2)]),
    st.integers(0, 1000),
)
def test_row_by_row_each_is_learned_or_nothing_of_it_is(
    scale: float, noise: float, prior_scale: float, dtype: str, hidden: tuple[int, ...], seed: int
) -> None:
    rng = np.random.default_rng(seed)
    options: dict[str, Any] = {"noise": noise, "prior_scale": prior_scale, "dtype": dtype, "n_outputs": 2}
    network = BayesianNetwork(3, hidden, covariance="kronecker", **options)
    for _ in range(40):
        x = rng.normal(size=3) * scale ** rng.uniform()
        y = rng.normal(size=2) * rng.choice([1.0, 1e18, 1e38])
        before = exported(network) if rng.uniform() < 0.3 else {}  # now and then, as this closes the block
        try:
            network.learn(x, y)
        except ValueError as error:
            if "Nothing was learned" not in str(error):
                raise
            for name, values in before.items():
                np.testing.assert_array_equal(values, exported(network)[name])
    for values in exported(network).values():
        assert np.isfinite(values).all()


class Moody:
    """An activation in Python that raises when it is asked to."""

    raises = False

    def __call__(self, a: Any) -> np.ndarray:
        return np.asarray(a, dtype=np.float64)

    def moments(self, mean: Any, var: Any) -> tuple[Any, Any, Any]:
        if self.raises:
            raise RuntimeError("not now")
        return mean, var, 1.0


def test_an_exception_on_the_way_leaves_all_as_it_was() -> None:
    mood = Moody()
    network = BayesianNetwork(4, (3,), 3, activation=mood, covariance="kronecker")
    twin = BayesianNetwork(4, (3,), 3, activation=Moody(), covariance="kronecker")
    X, Y = bandit_rows(network, 20)
    for i, (x, y) in enumerate(zip(X, Y, strict=True)):
        if i % 4 == 1:
            mood.raises = True
            for call in (lambda x=x: network.predict(x), lambda x=x, y=y: network.learn(x, y)):
                with pytest.raises(RuntimeError, match="not now"):
                    call()
            mood.raises = False
        network.learn(x, y)
        twin.learn(x, y)
    np.testing.assert_array_equal(network.mean, twin.mean)
    assert network.n_seen == twin.n_seen == 20


def test_threads_may_predict_at_the_same_time() -> None:
    network = BayesianNetwork(200, (100,), 5, covariance="kronecker")
    X, Y = bandit_rows(network, 40)
    one_by_one(network, X[:10], Y[:10])
    expected = [network.output_moments(x).cov for x in X]

    def differing(first: int) -> int:
        return sum(
            not np.array_equal(network.output_moments(X[(first + i) % 40]).cov, expected[(first + i) % 40])
            for i in range(400)
        )

    with ThreadPoolExecutor(4) as pool:
        assert sum(pool.map(differing, range(4))) == 0
