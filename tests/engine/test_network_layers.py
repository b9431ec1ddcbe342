"""The kernel of layered beliefs: against the readable steps, dense matrices, and all that input can be."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from onepass import BayesianNetwork
from onepass.layers import Conv2D
from onepass.models.network.propagation import propagate
from tests.helpers.matrix_normal import one_step, posterior

HEADS: list[dict[str, Any]] = [
    {"observation": "gaussian", "noise": 0.3},
    {"observation": "gaussian"},
    {"observation": "heteroscedastic"},
    {"observation": "gaussian", "n_outputs": 3},
    {"n_outputs": 3, "observation": "heteroscedastic"},
    {"observation": "bernoulli"},
    {"observation": "categorical", "n_outputs": 6},
    {"observation": "poisson"},
    {"observation": "negative_binomial"},
]
CONVOLUTIONS: list[dict[str, Any]] = [
    {"n_features": (6, 5), "hidden": (Conv2D(3, 2),)},
    {"n_features": (8, 7, 2), "hidden": (Conv2D(4, 3, stride=2), 5)},
    {"n_features": (7, 9), "hidden": (Conv2D(2, 2, pool=2), 4)},  # which leaves positions out
    {"n_features": (9, 8, 3), "hidden": (Conv2D(3, 3, pool=2), Conv2D(4, 2, stride=2), 5, 3)},
    {"n_features": (5, 5), "hidden": (Conv2D(3, 5), 4)},  # of a single position
    {"n_features": (4, 4), "hidden": (Conv2D(3, 1, pool=4), 4)},
]


def problem(network: BayesianNetwork, n: int = 70) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(3)
    X, k = rng.normal(size=(n, network.n_features)), network.n_outputs
    if network.observation.is_numeric:
        y = np.tanh(X @ rng.normal(size=(network.n_features, k))) + rng.normal(0, 0.3, (n, k))
        return X, y[:, 0] if k == 1 else y
    if network.observation.is_label:
        return X, rng.integers(0, max(k, 2), n)
    return X, rng.poisson(2.0, n if k == 1 else (n, k))


def dense(network: BayesianNetwork) -> list[np.ndarray]:
    """The covariance of each layer's weights."""
    return [np.kron(*layer) if isinstance(layer, tuple) else layer for layer in network.cov]


def numbers(network: BayesianNetwork) -> np.ndarray:
    """All that a network has learned, in one vector."""
    parts: list[Any] = [network.mean, *dense(network), network.noise_var, [network.log_evidence]]
    return np.concatenate([np.ravel(part) for part in parts])


def assert_same(one: BayesianNetwork, other: BayesianNetwork, tolerance: float = 1e-9) -> None:
    expected = numbers(other)
    np.testing.assert_allclose(numbers(one), expected, rtol=tolerance, atol=tolerance * np.abs(expected).max())
    assert one.n_seen == other.n_seen


def both(n_features: Any, hidden: Any, **options: Any) -> tuple[BayesianNetwork, BayesianNetwork]:
    """The same network, compiled and by the readable steps."""
    ours, reference = (
        BayesianNetwork(n_features, hidden, kernel=kernel, **options) for kernel in ("auto", "reference")
    )
    assert ours._learner.compiled
    return ours, reference


@pytest.mark.parametrize("head", HEADS, ids=str)
@pytest.mark.parametrize("hidden", [(), (5,), (5, 4), (4, 3, 6)], ids=str)
def test_compiled_learning_is_the_reference(hidden: tuple[int, ...], head: dict[str, Any]) -> None:
    ours, reference = both(4, hidden, covariance="kronecker", **head)
    X, y = problem(ours)
    assert_same(ours.learn(X, y, passes=2), reference.learn(X, y, passes=2), 1e-7)


@pytest.mark.parametrize("forms", [("full", "kronecker"), ("kronecker", "full"), ("full", "full")], ids=str)
@pytest.mark.parametrize("head", HEADS[3:7], ids=str)
def test_mixed_forms_are_learned_as_the_reference_does(head: dict[str, Any], forms: tuple[str, ...]) -> None:
    ours, reference = both(4, (5,), covariance=forms, **head)
    X, y = problem(ours)
    assert_same(ours.learn(X, y), reference.learn(X, y))


def test_three_forms_in_turn() -> None:
    for forms in (("full", "kronecker", "full"), ("kronecker", "full", "kronecker")):
        ours, reference = both(4, (5, 3), n_outputs=2, covariance=forms)
        X, y = problem(ours)
        assert_same(ours.learn(X, y), reference.learn(X, y))


@pytest.mark.parametrize("way", CONVOLUTIONS, ids=str)
@pytest.mark.parametrize("head", [HEADS[0], HEADS[6]], ids=str)
def test_convolutions_are_learned_as_the_reference_does(way: dict[str, Any], head: dict[str, Any]) -> None:
    ours, reference = both(**way, **head)
    X, y = problem(ours, 40)
    assert_same(ours.learn(X, y), reference.learn(X, y))


@pytest.mark.parametrize("way", [{"n_features": 4, "hidden": (5,)}, CONVOLUTIONS[3]], ids=str)
@pytest.mark.parametrize("options", [{"forgetting": 0.97}, {"drift": 0.02}, {"outliers": 0.05}], ids=str)
def test_streams_that_change_are_learned_as_the_reference_does(way: dict[str, Any], options: dict[str, Any]) -> None:
    ours, reference = both(**way, **options, n_outputs=2, covariance="kronecker")
    X, y = problem(ours)
    y[40:] = -5.0 * y[40:] + 20.0  # an alarm, for one that distrusts
    assert_same(ours.learn(X, y), reference.learn(X, y))


@pytest.mark.parametrize("activation", ["sigmoid", "gelu", "leaky_relu"])
def test_any_activation_is_compiled_as_it_reads(activation: str) -> None:
    ours, reference = both(4, (6, 3), activation=activation, covariance="kronecker")
    X, y = problem(ours)
    assert_same(ours.learn(X, y), reference.learn(X, y), 1e-8)


@pytest.mark.parametrize("way", [{"n_features": 4, "hidden": (6, 4)}, *CONVOLUTIONS[2:4]], ids=str)
def test_single_precision_is_near_to_double(way: dict[str, Any]) -> None:
    wide, single = (BayesianNetwork(**way, covariance="kronecker", noise=0.3, dtype=t) for t in ("float64", "float32"))
    X, y = problem(wide)
    wide.learn(X, y)
    single.learn(X, y)
    assert single.mean.dtype == np.float32
    np.testing.assert_allclose(single.predict(X).mean, wide.predict(X).mean, atol=2e-3)
    np.testing.assert_allclose(single.predict(X).epistemic, wide.predict(X).epistemic, rtol=1e-2, atol=1e-4)


@pytest.mark.parametrize(
    "way",
    [
        {"n_features": 4, "hidden": ()},
        {"n_features": 4, "hidden": (5,)},
        {"n_features": 4, "hidden": (5, 4), "covariance": ("full", "kronecker", "full")},
        {"n_features": 4, "hidden": (5,), "forgetting": 0.95},
        {"n_features": 4, "hidden": (5,), "drift": 0.02},
        {"n_features": 4, "hidden": (5,), "outliers": 0.05},
        CONVOLUTIONS[3],
    ],
    ids=str,
)
def test_learning_in_any_split_gives_the_same_posterior(way: dict[str, Any]) -> None:
    """70 rows are two blocks and a part of one."""
    at_once, in_parts, one_by_one = (
        BayesianNetwork(**{"covariance": "kronecker", **way}, n_outputs=3) for _ in range(3)
    )
    X, y = problem(at_once)
    y[30:] = 8.0 - y[30:]
    at_once.learn(X, y)
    for start in range(0, 70, 13):
        in_parts.learn(X[start : start + 13], y[start : start + 13])
    for x, target in zip(X, y, strict=True):
        one_by_one.learn(x, target)
    assert_same(in_parts, at_once)
    assert_same(one_by_one, at_once)


@pytest.mark.parametrize("head", HEADS[:6:5], ids=str)
@pytest.mark.parametrize("way", [{"n_features": 4, "hidden": (5,)}, CONVOLUTIONS[1]], ids=str)
def test_predicting_then_learning_is_predicting_before_each_row(way: dict[str, Any], head: dict[str, Any]) -> None:
    at_once, one_by_one = (BayesianNetwork(**way, **head, covariance="kronecker") for _ in range(2))
    X, y = problem(at_once)
    together = at_once.predict_then_learn(X, y)
    alone = []
    for x, target in zip(X, y, strict=True):
        alone.append(one_by_one.predict(x))
        one_by_one.learn(x, target)
    for name in ("mean", "epistemic", "aleatoric"):
        expected = [getattr(prediction, name) for prediction in alone]
        np.testing.assert_allclose(getattr(together, name), expected, rtol=1e-8, atol=1e-10)
    assert_same(at_once, one_by_one)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(
    "way",
    [
        {"n_features": 4, "hidden": (5,), "n_outputs": 3, "covariance": "kronecker"},
        {"n_features": 3, "hidden": (4, 3), "n_outputs": 2, "covariance": ("kronecker", "full", "kronecker")},
        {"n_features": (5, 4), "hidden": (Conv2D(3, 2, pool=2), 4), "n_outputs": 2},
    ],
    ids=str,
)
def test_a_row_takes_the_joint_step_and_the_nearest_factors(way: dict[str, Any], seed: int) -> None:
    """The mean moves by the dense joint rank-K step; each layer's covariance is projected by brute force."""
    network, rng = BayesianNetwork(**way, noise=0.2, seed=seed), np.random.default_rng(seed)
    belief: Any = network._state.belief
    for layer in belief.layers:  # a belief in which all is correlated
        layer.start(np.exp(rng.normal(size=layer.mean.size)))
    X, y = problem(network, 40)
    network.learn(X[:-1], y[:-1])
    signals = propagate(network._state.belief, network.activation, X[-1:])
    seen = zip(network._layout.wirings, signals.inputs, signals.output_jacobian, strict=True)
    whole = [wiring.weight_jacobian(*own)[0] for wiring, *own in seen]
    jacobians = [part.reshape(len(part), -1) for part in whole]
    before, mean = network.cov, network.mean
    covs = dense(network)
    spread = sum(part @ cov @ part.T for part, cov in zip(jacobians, covs, strict=True))
    information = np.linalg.inv(spread + 0.2 * np.eye(network.n_outputs))
    moved = [cov @ part.T @ information @ (y[-1] - signals.mean[0]) for part, cov in zip(jacobians, covs, strict=True)]
    network.learn(X[-1], y[-1])
    np.testing.assert_allclose(network.mean, mean + np.concatenate(moved), rtol=1e-9, atol=1e-10)
    for old, part, new in zip(before, jacobians, dense(network), strict=True):
        expected = one_step(old, part, information) if isinstance(old, tuple) else posterior(old, part, information)
        np.testing.assert_allclose(new, expected, rtol=1e-6, atol=1e-7 * np.abs(expected).max())


def assert_sound(network: BayesianNetwork, X: np.ndarray) -> None:
    """Whether what was learned is a belief, and predicts by it."""
    assert np.isfinite(network._state.belief.values).all()
    assert np.isfinite(network.mean).all()
    assert (network._state.belief.marginal_variances() >= 0.0).all()
    rows = X[np.abs(X).max(axis=1) < 1e4]
    if len(rows):
        predicted = network.predict(rows)
        assert (predicted.epistemic >= 0.0).all()
        assert np.isfinite(predicted.mean).all()


magnitudes = st.sampled_from([1e-8, 1e-4, 1.0, 1e4, 1e8])


@settings(max_examples=60)
@given(
    st.lists(magnitudes, min_size=3, max_size=3),
    st.sampled_from([1e-12, 1e-6, 1.0, 1e12]),
    st.sampled_from([0.0, 1e-6, 1.0, 1e3, 1e6]),
    st.sampled_from(["float64", "float32"]),
    st.sampled_from([(), (3,), (3, 2)]),
    st.integers(0, 1000),
)
def test_whatever_is_learned_the_belief_stays_one(
    scales: list[float], noise: float, prior_scale: float, dtype: str, hidden: tuple[int, ...], seed: int
) -> None:
    rng = np.random.default_rng(seed)
    options: dict[str, Any] = {"noise": noise, "prior_scale": prior_scale, "dtype": dtype, "n_outputs": 2}
    network = BayesianNetwork(3, hidden, covariance="kronecker", **options)
    X = rng.normal(size=(40, 3)) * scales
    X[20:] = X[19]  # the same row again and again
    y = rng.normal(size=(40, 2)) * rng.choice([1e-4, 1.0, 1e4])
    before = numbers(network)
    try:
        network.learn(X, y)
    except ValueError as error:
        if "Nothing was learned" not in str(error):
            raise
        np.testing.assert_array_equal(numbers(network), before)
        return
    assert_sound(network, X)


@pytest.mark.parametrize("bad", [1e200, 1e308])
@pytest.mark.parametrize(
    "way", [{"n_features": 4, "hidden": (3,)}, {"n_features": (2, 2), "hidden": (Conv2D(2, 2), 3)}], ids=str
)
@pytest.mark.parametrize("kernel", ["auto", "reference"])
def test_rows_that_overflow_are_refused_and_nothing_is_learned(kernel: str, way: dict[str, Any], bad: float) -> None:
    network = BayesianNetwork(**way, n_outputs=2, covariance="kronecker", kernel=kernel)
    X, y = problem(network, 50)
    network.learn(X, y)
    before, X[40] = numbers(network), bad
    for given_rows, targets in ((X[40], y[40]), (X, y)):
        with pytest.raises(ValueError, match=r"overflow.*Nothing was learned"):
            network.learn(given_rows, targets)
        np.testing.assert_array_equal(numbers(network), before)
    with pytest.raises(ValueError, match=r"overflow"):
        network.predict_then_learn(X, y)
    np.testing.assert_array_equal(numbers(network), before)


@pytest.mark.parametrize("options", [{"forgetting": 0.9}, {"drift": 0.1}, {}], ids=str)
def test_single_precision_that_overflows_on_the_way_is_refused(options: dict[str, Any]) -> None:
    network = BayesianNetwork(4, (3,), 2, covariance="kronecker", dtype="float32", **options)
    X, y = problem(network, 50)
    network.learn(X, y)
    before, X[10] = numbers(network), 1e30
    with pytest.raises(ValueError, match=r"overflow float32.*Nothing was learned"):
        network.learn(X, y)
    np.testing.assert_array_equal(numbers(network), before)


@pytest.mark.parametrize("n_outputs", [1, 3])
def test_outputs_that_a_row_tells_all_of_are_learned_in_single_precision(n_outputs: int) -> None:
    network = BayesianNetwork(4, (), n_outputs, covariance="kronecker", dtype="float32", noise=1e-10)
    X = 1e3 * np.random.default_rng(0).standard_normal((100, 4))
    y = X @ np.arange(1.0, 4.0 * n_outputs + 1.0).reshape(4, n_outputs)
    network.learn(X, y)
    for outer, inner in network.cov:
        assert np.linalg.eigvalsh(outer).min() >= 0.0
        assert np.linalg.eigvalsh(inner).min() >= -1e-7 * np.trace(inner)
    np.testing.assert_allclose(network.predict(X).mean.reshape(y.shape), y, atol=2e-3 * np.abs(y).max())


def test_a_weight_that_the_prior_knows_is_not_learned() -> None:
    ours, reference = both(4, (5,), covariance="kronecker", prior_scale=0.0, n_outputs=2)
    X, y = problem(ours)
    start = ours.mean
    assert_same(ours.learn(X, y), reference.learn(X, y))
    np.testing.assert_array_equal(ours.mean, start)
    assert not ours.predict(X).epistemic.any()


@pytest.mark.slow
@pytest.mark.parametrize("observation", ["gaussian", "categorical"])
def test_a_million_rows_leave_a_covariance(observation: str) -> None:
    """20 units of 10 inputs, in single and double precision; the rows have correlated inputs and repeat."""
    rng = np.random.default_rng(0)
    pool = rng.normal(size=(5_000, 10)) @ rng.normal(size=(10, 10))
    truth = np.tanh(pool @ rng.normal(size=(10, 3)))
    networks = [
        BayesianNetwork(10, (20,), 3, observation=observation, covariance="kronecker", dtype=dtype)
        for dtype in ("float64", "float32")
    ]
    for _ in range(20):
        taken = rng.integers(0, 5_000, 50_000)
        y = truth[taken] + rng.normal(0.0, 0.3, (50_000, 3))
        for network in networks:
            network.learn(pool[taken], y if observation == "gaussian" else y.argmax(axis=1))
    wide, single = networks
    for network in networks:
        assert network.n_seen == 1_000_000
        assert_sound(network, pool)
        for outer, inner in network.cov:
            for factor in (outer, inner):
                values = np.linalg.eigvalsh(factor.astype(np.float64))
                assert values[0] > -1e-6 * values[-1]
                assert values[-1] > 0.0
        z = np.hstack([np.ones((5_000, 1)), pool])
        belief: Any = network._state.belief
        assert (np.square(z @ belief.layers[0].input_root).sum(axis=1) >= 0.0).all()
    np.testing.assert_allclose(single.predict(pool).mean, wide.predict(pool).mean, atol=0.1)
    assert np.abs(single.predict(pool).mean - wide.predict(pool).mean).mean() < 0.02
