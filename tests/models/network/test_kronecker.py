"""Networks with Kronecker beliefs: exact where the posterior is matrix-normal, honest elsewhere; all they can do."""

import copy
import itertools
import pickle
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.linalg import block_diag

import onepass
from onepass import BayesianCommittee, BayesianNetwork, Mixture
from onepass.activations import Moments
from onepass.layers import Conv2D
from onepass.models.network.priors import NetworkPrior
from onepass.models.network.propagation import propagate

FORMS: list[Any] = ["kronecker", ("kronecker", "full")]
NETWORKS: list[dict[str, Any]] = [
    {"n_features": 4, "hidden": (5,), "covariance": "kronecker"},
    {"n_features": 4, "hidden": (5,), "covariance": ("full", "kronecker")},
    {"n_features": (5, 6), "hidden": (Conv2D(3, 2, pool=2), 4)},
    {"n_features": (6, 5, 2), "hidden": (Conv2D(2, 2), Conv2D(3, 2, stride=2)), "covariance": ("full", "full", "full")},
]


def problem(network: Any, n: int = 60, seed: int = 3) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, network.n_features))
    return X, np.tanh(X @ rng.normal(size=(network.n_features, 2))) + rng.normal(0, 0.3, (n, 2))


def same(one: BayesianNetwork, other: BayesianNetwork) -> None:
    """Bit for bit."""
    (names, arrays), (others, theirs) = one.export_state(), other.export_state()
    assert names == others
    assert arrays.keys() == theirs.keys()
    for name, values in arrays.items():
        np.testing.assert_array_equal(values, theirs[name])


# Exact, and honest.


@pytest.mark.parametrize("kernel", ["auto", "reference"])
@pytest.mark.parametrize("n_outputs", [1, 3])
def test_regression_with_known_noise_is_exact(n_outputs: int, kernel: str) -> None:
    """The posterior of all weights is matrix-normal: the noise is proportional to the prior's factor over outputs."""
    rng = np.random.default_rng(0)
    X, noise = rng.normal(size=(150, 5)), 0.2
    z = np.hstack([np.ones((150, 1)), X])
    Y = z @ rng.normal(size=(6, n_outputs)) + rng.normal(0.0, np.sqrt(noise), (150, n_outputs))
    network = BayesianNetwork(5, (), n_outputs, noise=noise, covariance="kronecker", prior_scale=1.5, kernel=kernel)
    network.learn(X, Y if n_outputs > 1 else Y[:, 0])
    cov = np.linalg.inv(z.T @ z / noise + np.eye(6) / 1.5**2)
    np.testing.assert_allclose(network.weights[0], (cov @ z.T @ Y / noise).T, rtol=1e-9, atol=1e-10)
    np.testing.assert_allclose(np.kron(*network.cov[0]), np.kron(np.eye(n_outputs), cov), rtol=1e-8, atol=1e-12)


@pytest.mark.parametrize("forgetting", [0.9, 0.98])
def test_forgetting_of_one_output_is_exact(forgetting: float) -> None:
    """Without hidden layers a single output is linear regression, for which the full covariance is exact."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(100, 4)), rng.normal(size=100)
    ours, exact = (
        BayesianNetwork(4, (), noise=0.2, covariance=form, forgetting=forgetting).learn(X, y)
        for form in ("kronecker", "full")
    )
    np.testing.assert_allclose(ours.mean, exact.mean, rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(np.kron(*ours.cov[0]), exact.cov[0], rtol=1e-7, atol=1e-10)


class Gates:
    """An activation whose derivatives are given: rows of random gates times a random read-out, which are known."""

    def __init__(self) -> None:
        self.left: Iterator[float] = itertools.repeat(1.0)

    def __call__(self, a: Any) -> Any:
        raise NotImplementedError

    def moments(self, mean: Any, var: Any) -> Moments:
        gates = np.array([next(self.left) for _ in range(np.size(mean))]).reshape(np.shape(mean))
        return Moments(gates * mean, gates**2 * var, gates + 0.0 * mean)


def gated(seed: int, n: int, kernel: str = "auto") -> tuple[float, float, np.ndarray]:
    """Squared z of true weights 6 x 4 over their number, by our belief and by the joint posterior; and our mean."""
    rng, noise = np.random.default_rng(seed), 0.3
    X, W = rng.normal(size=(n, 5)), rng.normal(size=(4, 6))
    gates = (rng.random((n, 4)) < 0.5) * rng.normal(size=(n, 4))
    z = np.hstack([np.ones((n, 1)), X])
    y = (gates * (z @ W.T)).sum(axis=1) + rng.normal(0.0, np.sqrt(noise), n)
    # Standard normal weights in the first layer, and a second one that is known to add up.
    prior = NetworkPrior(0.0, 1.0, 0.0, 1.0, output_means=0.0, output_std=0.0, output_bias_std=0.0, fan_in=False)
    activation = Gates()
    network = BayesianNetwork(
        5, (4,), activation=activation, prior=prior, noise=noise, covariance="kronecker", kernel=kernel
    )
    network._state.belief.mean[25:29] = 1.0
    activation.left = iter(gates.ravel())
    network.learn(X, y)
    (outer, inner), gap = network.cov[0], W - network.weights[0]
    ours = (gap * (np.linalg.solve(outer, gap) @ np.linalg.inv(inner))).sum() / 24
    jacobian = (gates[:, :, None] * z[:, None]).reshape(n, 24)
    precision = np.eye(24) + jacobian.T @ jacobian / noise
    off = W.ravel() - np.linalg.solve(precision, jacobian.T @ y / noise)
    return float(ours), float(off @ precision @ off / 24), network.weights[0]


@pytest.mark.parametrize("n", [10, 40, 200])
def test_the_truth_is_where_the_belief_says_on_gated_layers(n: int) -> None:
    squares = np.array([gated(seed, n)[:2] for seed in range(60)]).mean(axis=0)
    assert 0.8 < squares[0] < 1.3
    assert 0.85 < squares[1] < 1.15  # the oracle: of the joint posterior it is 1


def test_gated_layers_are_learned_as_the_reference_does_and_not_exactly() -> None:
    ours, exact, mean = gated(1, 50)
    again, _, reference = gated(1, 50, "reference")
    np.testing.assert_allclose(mean, reference, rtol=1e-9, atol=1e-10)
    assert ours == pytest.approx(again, rel=1e-8)
    assert abs(ours - exact) > 0.01


@pytest.mark.parametrize("options", [{"forgetting": 0.99}, {"forgetting": 0.9}, {"drift": 0.02}], ids=str)
def test_variances_stay_within_the_prior(options: dict[str, Any]) -> None:
    """On the mean over weights; between steps a single one may grow, as the scale of a product is right on average."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1_000, 6))
    y = np.tanh(X @ rng.normal(size=(6, 2)))
    network = BayesianNetwork(6, (10,), 2, covariance="kronecker", **options)
    for start in range(0, 1_000, 20):
        network.learn(X[start : start + 20], y[start : start + 20])
        ratio = network._state.belief.marginal_variances() / network._state.prior.variance
        assert ratio.mean() < 1.0
        assert ratio.max() < 1.5


# Inputs that are 0 in all rows.


def rows_with_an_idle_input(seed: int, n: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 5))
    X[:, 4] = 0.0
    return X, np.sin(1.5 * X[:, 0]) + 0.5 * X[:, 1] * X[:, 2] + 0.1 * rng.normal(size=n)


@pytest.mark.parametrize("options", [{}, {"drift": 1e-3}, {"forgetting": 0.99}], ids=str)
@pytest.mark.parametrize("kernel", ["auto", "reference"])
@pytest.mark.parametrize("hidden", [(10,), ()], ids=str)
def test_weights_of_an_idle_input_stay_at_the_prior(
    hidden: tuple[int, ...], kernel: Any, options: dict[str, Any]
) -> None:
    X, y = rows_with_an_idle_input(0, 600)
    network = BayesianNetwork(5, hidden, 3, observation="categorical", covariance="kronecker", kernel=kernel, **options)
    means, variances = network.weights[0][:, 5].copy(), network.weight_variances[0][:, 5].copy()
    network.learn(X, np.digitize(y, [-0.5, 0.5]))
    np.testing.assert_array_equal(network.weights[0][:, 5], means)
    np.testing.assert_allclose(network.weight_variances[0][:, 5], variances, rtol=1e-12)


def test_where_an_idle_input_moves_the_prediction_is_as_uncertain_as_it_is_wrong() -> None:
    """The truth does not depend on that input, so all that it changes is an error."""
    squares = []
    for seed in range(8):
        X, y = rows_with_an_idle_input(seed, 5_000)
        network = BayesianNetwork(5, (20,), covariance="kronecker", seed=seed).learn(X, y)
        moved = np.random.default_rng(100 + seed).normal(size=(500, 5))
        still = moved * [1, 1, 1, 1, 0]
        there = network.predict(moved)
        squares.append(np.mean((there.mean - network.predict(still).mean) ** 2 / there.epistemic))
    assert 0.2 < np.median(squares) < 2.0
    assert max(squares) < 4.0


@pytest.mark.parametrize("options", [{}, {"drift": 1e-3}], ids=str)
def test_the_first_row_of_an_idle_input_does_not_wreck_the_model(options: dict[str, Any]) -> None:
    X, y = rows_with_an_idle_input(3, 5_010)
    network = BayesianNetwork(5, (10,), covariance="kronecker", **options).learn(X, y)
    moved = np.random.default_rng(1).normal(size=(500, 5))
    still = moved * [1, 1, 1, 1, 0]
    truth = np.sin(1.5 * moved[:, 0]) + 0.5 * moved[:, 1] * moved[:, 2]
    before = np.sqrt(np.mean((network.predict(still).mean - truth) ** 2))
    network.learn([0.0, 0.0, 0.0, 0.0, 1.0], 0.1)
    assert np.sqrt(np.mean((network.predict(still).mean - truth) ** 2)) < 1.3 * before
    assert np.sqrt(np.mean((network.predict(moved).mean - truth) ** 2)) < 1.0


@pytest.mark.parametrize("n_outputs", [1, 2])
def test_the_first_row_of_an_idle_input_takes_the_joint_step(n_outputs: int) -> None:
    """Mean and score are those of a dense covariance in which the input's weights have the prior's variances."""
    X, y = rows_with_an_idle_input(1, 80)
    targets = np.column_stack([y, -y])[:, :n_outputs]
    network = BayesianNetwork(5, (6,), n_outputs, noise=0.2, covariance="kronecker")
    prior = network._state.prior.variance.copy()
    network.learn(X, targets)
    row, target = np.array([0.3, -0.2, 0.5, 0.1, 0.7]), np.full(n_outputs, 0.4)
    belief: Any = network._state.belief
    first, last = belief.layers
    idle = np.zeros((6, 6))
    idle[:, 5] = prior[:36].reshape(6, 6)[:, 5]
    product = np.kron(first.output_root @ first.output_root.T, first.input_root @ first.input_root.T)
    cov = block_diag(product + np.diag(idle.ravel()), np.kron(*last.cov))
    np.testing.assert_allclose(np.diag(cov), belief.marginal_variances(), rtol=1e-10)
    signals = propagate(belief, network._units, row[None])
    jacobian = signals.weight_jacobian(network._layout)[0]
    S = jacobian @ cov @ jacobian.T + 0.2 * np.eye(n_outputs)
    gap = target - signals.mean[0]
    density = -0.5 * (gap @ np.linalg.solve(S, gap) + np.linalg.slogdet(2.0 * np.pi * S)[1])
    assert float(np.squeeze(network.log_predictive(row, target))) == pytest.approx(density)
    mean, evidence = network.mean.copy(), network.log_evidence
    network.learn(row, target)
    assert network.log_evidence - evidence == pytest.approx(density)
    np.testing.assert_allclose(network.mean, mean + cov @ jacobian.T @ np.linalg.solve(S, gap), rtol=1e-8, atol=1e-10)
    joined = network._state.belief.marginal_variances()[:36].reshape(6, 6)[:, 5]
    assert (joined > 0.0).all()
    assert (joined <= idle[:, 5] * (1.0 + 1e-9)).all()


@pytest.mark.parametrize("n", [1, 7, 50])
def test_new_inputs_are_learned_alike_in_any_split(n: int) -> None:
    """Every row of the first twenty brings an input that was 0 before."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 20)) * (np.arange(20) <= np.arange(60)[:, None])
    y = X[:, 0] + 0.1 * rng.normal(size=60)
    whole, reference = (
        BayesianNetwork(20, (6,), covariance="kronecker", kernel=kernel).learn(X, y) for kernel in ("auto", "reference")
    )
    parts = BayesianNetwork(20, (6,), covariance="kronecker")
    for start in range(0, 60, n):
        parts.learn(X[start : start + n], y[start : start + n])
    for other in (parts, reference):
        np.testing.assert_allclose(other.mean, whole.mean, rtol=1e-7, atol=1e-9)
        np.testing.assert_allclose(
            other._state.belief.marginal_variances(), whole._state.belief.marginal_variances(), rtol=1e-7
        )


def test_a_refused_first_row_leaves_the_input_idle() -> None:
    X, y = rows_with_an_idle_input(2, 60)
    network = BayesianNetwork(5, (6,), covariance="kronecker").learn(X, y)
    before = copy.deepcopy(network)
    with pytest.raises((ValueError, FloatingPointError)):
        network.learn([0.0, 0.0, 0.0, 0.0, 1e300], 1.0)
    same(network, before)


# All that networks can do.


@pytest.mark.parametrize("options", NETWORKS[:3], ids=str)
def test_it_learns(options: dict[str, Any]) -> None:
    network = BayesianNetwork(**options, n_outputs=2)
    X, y = problem(network, 1_500)
    if network.image_shape:  # how much of it there is, wherever it is
        seen = np.maximum(X.reshape(1_500, *network.image_shape), 0.0).reshape(1_500, 30, -1).mean(axis=1)
        y = 10.0 * (seen[:, [0, -1]] - seen.mean()) + np.random.default_rng(0).normal(0.0, 0.3, y.shape)
    network.learn(X[:1_000], y[:1_000])
    error = y[1_000:] - network.predict(X[1_000:]).mean
    assert error.var() < 0.7 * y[1_000:].var()
    lower, upper = network.interval(X[1_000:])
    assert 0.9 < ((lower <= y[1_000:]) & (y[1_000:] <= upper)).mean() <= 1.0


def test_weights_are_drawn_with_the_covariance_and_outputs_as_predicted() -> None:
    network = BayesianNetwork(4, (5,), 2, covariance=("kronecker", "full"), noise=0.1)
    X, y = problem(network)
    network.learn(X, y)
    n = 20_000
    draws = network.sample_weights(n, 1) - network.mean
    outer, inner = network.cov[0]
    for part, cov in ((draws[:, :25], np.kron(outer, inner)), (draws[:, 25:], network.cov[1])):
        scale = np.sqrt((np.outer(np.diag(cov), np.diag(cov)) + cov**2) / n)
        assert (np.abs(part.T @ part / n - cov) < 5.5 * scale).all()
    assert np.abs(draws[:, :25].T @ draws[:, 25:] / n).max() < 0.05
    predicted, outputs = network.predict(X[:5]), network.sample_output(X[:5], 4_000, 1)
    np.testing.assert_allclose(outputs.mean(axis=0), predicted.mean, atol=0.1 * np.sqrt(predicted.epistemic.max()))
    np.testing.assert_allclose(outputs.var(axis=0), predicted.epistemic, rtol=0.15)


def test_outputs_of_convolutions_are_drawn_as_predicted() -> None:
    network = BayesianNetwork((5, 6), (Conv2D(3, 2, pool=2), 4), 2, noise=0.1)
    X, y = problem(network)
    predicted, outputs = network.learn(X, y).predict(X[:5]), network.sample_output(X[:5], 4_000, 1)
    np.testing.assert_allclose(outputs.mean(axis=0), predicted.mean, atol=0.1 * np.sqrt(predicted.epistemic.max()))
    np.testing.assert_allclose(outputs.var(axis=0), predicted.epistemic, rtol=0.15)


def test_an_alarm_begins_anew() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 4))
    y = X @ rng.normal(size=(4, 2)) + rng.normal(0.0, 0.1, (600, 2))
    y[300:] = 10.0 - y[300:]
    robust, trusting = (BayesianNetwork(4, (8,), 2, covariance="kronecker", outliers=share) for share in (0.02, 0.0))
    robust.learn(X[:300], y[:300])
    before = robust.predict(X).epistemic.mean()
    _, doubts = robust.predict_then_learn(X[300:310], y[300:310], return_outlier_probability=True)
    assert doubts[:3].min() > 0.9
    assert robust.predict(X).epistemic.mean() > 10.0 * before  # of the prior again, as after a jump
    robust.learn(X[310:], y[310:])
    trusting.learn(X, y)
    errors = [np.square(network.predict(X[300:]).mean - y[300:]).mean() for network in (robust, trusting)]
    assert errors[0] < errors[1]


@pytest.mark.parametrize("options", [NETWORKS[0], NETWORKS[2]], ids=str)
def test_a_rate_of_drift_is_found(options: dict[str, Any]) -> None:
    network = Mixture.over_drift(BayesianNetwork, **options, n_outputs=2)
    X, y = problem(network, 400)
    y[200:] = -y[200:]
    predicted = network.predict_then_learn(X, y)
    assert np.isfinite(predicted.mean).all()
    assert (predicted.var >= 0.0).all()
    steady = BayesianNetwork(**options, n_outputs=2).learn(X, y)
    errors = [np.square(one.predict(X[300:]).mean - y[300:]).mean() for one in (network, steady)]
    assert errors[0] < 1.05 * errors[1]


def test_more_passes_use_the_rows_again_and_what_cannot_be_is_said() -> None:
    network = BayesianNetwork(4, (8,), 2, covariance="kronecker")
    X, y = problem(network, 200)
    once = np.square(copy.deepcopy(network).learn(X, y).predict(X).mean - y).mean()
    assert np.square(network.learn(X, y, passes=3).predict(X).mean - y).mean() < once
    assert network.n_seen == 200
    with pytest.raises(ValueError, match=r"refine='ep' needs covariance='full', got covariance='kronecker'"):
        network.learn(X, y, passes=2, refine="ep")
    with pytest.raises(ValueError, match=r"batch must be 1 with covariance='kronecker', got 8"):
        network.learn(X, y, batch=8)
    with pytest.raises(ValueError, match="covariance must be one of"):
        BayesianNetwork(4, (5,), covariance="matrix")


# Files and copies.


@pytest.mark.parametrize(
    "extra", [{}, {"outliers": 0.05, "forgetting": 0.95}, {"drift": 0.02, "dtype": "float32"}], ids=str
)
@pytest.mark.parametrize("options", NETWORKS, ids=str)
def test_a_loaded_network_goes_on_bit_for_bit(options: dict[str, Any], extra: dict[str, Any], tmp_path: Path) -> None:
    network = BayesianNetwork(**options, **extra, n_outputs=2)
    X, y = problem(network)
    network.learn(X[:35], y[:35])
    onepass.save(network, tmp_path / "model")
    loaded = onepass.load(tmp_path / "model")
    assert repr(loaded) == repr(network)
    assert (loaded.covariance, loaded.hidden, loaded.image_shape) == (
        network.covariance,
        network.hidden,
        network.image_shape,
    )
    for copied in (copy.deepcopy(network), pickle.loads(pickle.dumps(network)), loaded):
        same(copied, network)
        same(copied.learn(X[35:], y[35:]), copy.deepcopy(network).learn(X[35:], y[35:]))
    assert network.n_seen == 35  # copies learn by themselves


@pytest.mark.parametrize("options", NETWORKS[::2], ids=str)
def test_a_committee_of_them(options: dict[str, Any], tmp_path: Path) -> None:
    committee = BayesianCommittee(**options, n_outputs=2, members=3, workers=1)
    X, y = problem(committee.members[0], 300)
    committee.learn(X[:250], y[:250])
    onepass.save(committee, tmp_path / "model")
    loaded = onepass.load(tmp_path / "model")
    np.testing.assert_array_equal(loaded.predict(X).mean, committee.predict(X).mean)
    shaped = X.reshape(-1, *options["n_features"]) if isinstance(options["n_features"], tuple) else X
    np.testing.assert_array_equal(committee.predict(shaped).mean, committee.predict(X).mean)
    committee.learn(shaped[250:], y[250:])
    loaded.learn(X[250:], y[250:])
    np.testing.assert_array_equal(loaded.predict(X).mean, committee.predict(X).mean)
