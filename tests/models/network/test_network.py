"""Networks: the compiled steps against the readable ones, and both against what can be known otherwise."""

import pickle
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_array
from scipy.special import softmax

from onepass import BayesianNetwork, BayesianPerceptron, Prediction, Quadrature
from onepass.activations import Moments
from onepass.beliefs.choice import choose_covariance, multiply_adds, start_belief
from onepass.engine.vector_matches import NetworkProgress, OutputMatch
from onepass.layers.layout import Layout
from onepass.likelihoods import Categorical
from onepass.models.network.propagation import evaluate, propagate

STRUCTURES = ("full", "layer", "neuron", "diagonal")
NUMBERS = ("gaussian", "heteroscedastic")
HEADS: list[dict[str, Any]] = [
    {"observation": "gaussian"},
    {"observation": "gaussian", "n_outputs": 3, "noise": 0.3},
    {"observation": "heteroscedastic"},
    {"n_outputs": 3, "observation": "heteroscedastic"},
    {"observation": "bernoulli"},
    {"observation": "categorical", "n_outputs": 6},
]


def problem(head: dict[str, Any], n: int = 60, d: int = 4) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(3)
    X = rng.normal(size=(n, d))
    n_outputs = head.get("n_outputs", 1)
    if head["observation"] in NUMBERS:
        return X, np.tanh(X @ rng.normal(size=(d, n_outputs))) + rng.normal(0, 0.3, (n, n_outputs))
    return X, rng.integers(0, max(n_outputs, 2), n)


def numbers(network: BayesianNetwork) -> np.ndarray:
    """All that a network has learned, in one vector."""
    cov = network.cov
    blocks = [cov] if isinstance(cov, np.ndarray) else cov
    parts = [network.mean, *(block.ravel() for block in blocks), network.noise_var, [network.log_evidence]]
    return np.concatenate([np.ravel(part) for part in parts])


@pytest.mark.parametrize("head", HEADS, ids=str)
@pytest.mark.parametrize("structure", STRUCTURES)
@pytest.mark.parametrize("hidden", [(), pytest.param((5,), marks=pytest.mark.slow), (5, 4)], ids=str)
def test_compiled_learning_is_the_reference(hidden: tuple[int, ...], structure: str, head: dict[str, Any]) -> None:
    X, y = problem(head)
    ways: list[dict[str, Any]] = [{"passes": 2, "refine": "reuse"}, {"forgetting": 0.97}]
    if structure == "full":
        ways.append({"passes": 3, "refine": "ep"})
    for way in ways:
        made = {key: way[key] for key in ("forgetting",) if key in way}
        learn = {key: way[key] for key in ("passes", "refine") if key in way}
        ours, reference = (
            BayesianNetwork(4, hidden, covariance=structure, kernel=kernel, **head, **made).learn(X, y, **learn)
            for kernel in ("auto", "reference")
        )
        assert ours._learner.compiled
        # Removing sites loses digits where little is left of the noise.
        tolerance = 1e-8 if way.get("refine") == "ep" else 1e-10
        expected = numbers(reference)
        np.testing.assert_allclose(numbers(ours), expected, rtol=tolerance, atol=tolerance * np.abs(expected).max())
        assert ours.n_seen == reference.n_seen == 60


@pytest.mark.parametrize("activation", ["sigmoid", "tanh", "gelu", "softplus", "erf", "hard_tanh"])
def test_any_activation_is_compiled_as_it_reads(activation: str) -> None:
    X, y = problem(HEADS[0])
    ours, reference = (
        BayesianNetwork(4, (6,), activation=activation, kernel=kernel).learn(X, y) for kernel in ("auto", "reference")
    )
    np.testing.assert_allclose(numbers(ours), numbers(reference), rtol=1e-8, atol=1e-9)


def test_an_activation_of_ones_own_is_as_good_as_a_known_one() -> None:
    X, y = problem(HEADS[0])
    own = BayesianNetwork(4, (5,), activation=Quadrature(np.tanh)).learn(X, y)
    known = BayesianNetwork(4, (5,), activation="tanh").learn(X, y)
    np.testing.assert_allclose(own.predict(X).mean, known.predict(X).mean, atol=0.02)


class Sulking(Quadrature):
    """Refuses what it does not like."""

    def moments(self, mean: Any, var: Any, /) -> Moments:
        if np.any(np.abs(mean) > 1e3):
            raise ArithmeticError("too much")
        return super().moments(mean, var)


@pytest.mark.parametrize("kernel", ["auto", "reference"])
def test_what_an_activation_of_ones_own_raises_is_raised_and_nothing_is_learned(kernel: str) -> None:
    X, y = problem(HEADS[0])
    network = BayesianNetwork(4, (5,), activation=Sulking(np.tanh), kernel=kernel).learn(X, y)
    before = numbers(network)
    spoiled = X.copy()
    spoiled[40] = 1e6
    for learn in (network.learn, network.predict_then_learn):
        with pytest.raises(ArithmeticError, match="too much"):
            learn(spoiled, y)
    with pytest.raises(ArithmeticError, match="too much"):
        network.learn(spoiled, y, batch=8)
    np.testing.assert_array_equal(numbers(network), before)


@pytest.mark.parametrize("covariance", STRUCTURES)
def test_a_network_unpickled_from_shared_memory_learns_on(covariance: str) -> None:
    X, y = problem(HEADS[0])
    network = BayesianNetwork(4, (5,), covariance=covariance).learn(X, y)
    buffers: list[pickle.PickleBuffer] = []
    content = pickle.dumps(network, protocol=5, buffer_callback=buffers.append)
    twin = pickle.loads(content, buffers=[bytes(buffer) for buffer in buffers])  # which can't be written to
    np.testing.assert_array_equal(numbers(twin.learn(X, y)), numbers(network.learn(X, y)))


def test_sparse_rows_are_to_be_made_dense() -> None:
    with pytest.raises(TypeError, match=r"dense rows for this model, got a sparse csr_array; pass its toarray\(\)"):
        BayesianNetwork(2, (3,)).learn(csr_array(np.eye(2)), [0.0, 1.0])  # type: ignore[arg-type]


@pytest.mark.parametrize("structure", STRUCTURES)
def test_a_pickled_network_goes_on_as_the_first_would(structure: str) -> None:
    X, y = problem(HEADS[0])
    first = BayesianNetwork(4, (5,), activation="tanh", covariance=structure).learn(X, y)
    second = pickle.loads(pickle.dumps(first))
    np.testing.assert_array_equal(numbers(first.learn(X, y)), numbers(second.learn(X, y)))


@pytest.mark.parametrize("structure", ["full", "layer", "neuron"])
def test_without_hidden_layers_it_is_bayesian_linear_regression(structure: str) -> None:
    X, y = problem(HEADS[0], n=200)
    network = BayesianNetwork(4, (), noise=0.2, covariance=structure).learn(X, y)
    rows = np.hstack([np.ones((200, 1)), X])
    cov = np.linalg.inv(np.eye(5) + rows.T @ rows / 0.2)
    np.testing.assert_allclose(network.cov[0], cov, atol=1e-12)
    np.testing.assert_allclose(network.mean, cov @ rows.T @ y[:, 0] / 0.2, atol=1e-11)
    perceptron = BayesianPerceptron(4, "linear", noise=0.2).learn(X, y[:, 0])
    np.testing.assert_allclose(network.mean, perceptron.mean, atol=1e-11)
    np.testing.assert_allclose(network.cov[0], perceptron.cov, atol=1e-12)
    np.testing.assert_allclose(network.predict(X).mean, perceptron.predict(X).mean, atol=1e-10)
    np.testing.assert_allclose(network.predict(X).epistemic, perceptron.predict(X).epistemic, atol=1e-10)
    assert network.log_evidence == pytest.approx(perceptron.log_evidence, rel=1e-10)


def test_without_hidden_layers_labels_are_learned_as_a_perceptron_does() -> None:
    X, y = problem({"observation": "bernoulli"}, n=100)
    network = BayesianNetwork(4, (), observation="bernoulli").learn(X, y)
    perceptron = BayesianPerceptron(4).learn(X, y)
    np.testing.assert_allclose(network.predict(X).mean, perceptron.predict(X).mean, atol=1e-9)
    np.testing.assert_allclose(network.interval(X), perceptron.interval(X), atol=1e-9)
    np.testing.assert_allclose(network.log_predictive(X, y), perceptron.log_predictive(X, y), atol=1e-9)


def tilted_by_classes(mean: np.ndarray, cov: np.ndarray) -> Iterator[tuple[float, np.ndarray, np.ndarray]]:
    """Probability, mean and covariance of the logits given each class, by brute force."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(60)
    grid = np.stack([part.ravel() for part in np.meshgrid(*[nodes] * len(mean))], axis=1)
    mass = np.prod(np.meshgrid(*[weights / weights.sum()] * len(mean)), axis=0).ravel()
    values, vectors = np.linalg.eigh(cov)
    logits = mean + grid * np.sqrt(np.maximum(values, 0.0)) @ vectors.T
    for p in softmax(logits, axis=1).T:
        z = mass @ p
        centre = (mass * p) @ logits / z
        yield z, centre, ((logits - centre).T * (mass * p)) @ (logits - centre) / z


def match_class(mean: np.ndarray, cov: np.ndarray, label: int) -> OutputMatch:
    state = NetworkProgress.start(len(mean), None, False)
    return Categorical().outputs(len(mean)).moment_match(mean, cov, np.array([label]), state)


@pytest.mark.parametrize(("scale", "near"), [(0.3, 0.002), (1.0, 0.01), (3.0, 0.03)])
def test_the_joint_step_on_classes_is_nearly_the_exact_one(scale: float, near: float) -> None:
    """Errors of probabilities, of means and covariances in prior standard deviations, for covariances of any shape."""
    rng, errors = np.random.default_rng(0), []
    for _ in range(15):
        mean, root = scale * rng.normal(size=3), scale * rng.normal(size=(3, 3))
        cov = root @ root.T
        std = np.sqrt(np.diag(cov))
        for label, (p, centre, spread) in enumerate(tilted_by_classes(mean, cov)):
            match = match_class(mean, cov, label)
            errors.append(
                [
                    abs(np.exp(match.log_density) - p),
                    p * np.abs((mean + cov @ match.score - centre) / std).max(),
                    p * np.abs((cov - cov @ match.information @ cov - spread) / np.outer(std, std)).max(),
                ]
            )
    assert (np.median(errors, axis=0) < 0.1 * near).all()
    assert (np.quantile(errors, 0.9, axis=0) < near).all()


@pytest.mark.parametrize("hidden", [(7,), (6, 5)], ids=str)
def test_expected_slopes_are_slopes_where_nothing_is_uncertain(hidden: tuple[int, ...]) -> None:
    network = BayesianNetwork(3, hidden, 2, "tanh", prior_scale=0.0, covariance="full")
    belief, X = network._state.belief, np.random.default_rng(2).normal(size=(4, 3))
    layout = network._layout
    ours = propagate(belief, network.activation, X).weight_jacobian(layout)
    for weight in range(0, layout.size, 3):
        sides = []
        for sign in (-1, 1):
            moved = belief.mean.copy()
            moved[weight] += sign * 1e-6
            sides.append(evaluate(layout.layers(moved), network.activation, X))
        np.testing.assert_allclose(ours[:, :, weight], (sides[1] - sides[0]) / 2e-6, atol=1e-8)


def test_the_outputs_mean_is_that_of_sampled_networks() -> None:
    """One hidden layer: with the covariance of a unit and its outgoing weight the mean has no approximation left."""
    X, y = problem(HEADS[0], n=40)
    network = BayesianNetwork(4, (5,), noise=0.1, covariance="full").learn(X, y)
    layers = network._layout.layers(network.sample_weights(40_000, 0))
    draws = np.array([evaluate([layer[i] for layer in layers], network.activation, X[:5])[:, 0] for i in range(40_000)])
    np.testing.assert_allclose(network.predict(X[:5]).mean, draws.mean(axis=0), atol=4 * draws.std() / 200)


@pytest.mark.parametrize("structure", STRUCTURES)
@pytest.mark.parametrize(
    ("head", "n"),
    # How many rows were learned matters to classes, whose log odds are the less Gaussian the less is known.
    [*((head, 150) for head in HEADS), (HEADS[-1], 400)]
    + [pytest.param(head, 400, marks=pytest.mark.slow) for head in HEADS[:-1]],
    ids=str,
)
def test_draws_are_what_is_predicted(head: dict[str, Any], structure: str, n: int) -> None:
    X, y = problem(head, n=n)
    network = BayesianNetwork(4, (6, 5), covariance=structure, **head).learn(X, y)
    draws, seen = network.sample_output(X[:10], 20_000, 0), network.predict(X[:10])
    # Of classes the mean is all but exact.
    classes = head["observation"] == "categorical"
    near = 0.02 if classes else 4 / np.sqrt(20_000)
    std = np.sqrt(seen.epistemic) if head["observation"] in NUMBERS else 1.0
    np.testing.assert_array_less(np.abs(draws.mean(axis=0) - seen.mean) / std, near)
    known = seen.epistemic
    if head["observation"] in NUMBERS:  # without what is not known of a noise that depends on the input
        variances = np.diagonal(network.output_moments(X[:10]).cov, axis1=1, axis2=2)
        known = variances.reshape(known.shape)
    np.testing.assert_allclose(draws.std(axis=0), np.sqrt(known), rtol=0.03, atol=0.04 if classes else 0.0)
    np.testing.assert_array_equal(network.sample_output(X[:10], 200, 0), network.sample_output(X[:10], 200, 0))
    if head["observation"] not in NUMBERS:
        # Without the curvature of hidden units, which draws lack too.
        low, high = Prediction(seen._family, seen.moments).interval(0.9)
        inside = ((low <= draws) & (draws <= high)).mean(axis=0)
        np.testing.assert_allclose(inside, 0.9, atol={150: 0.08, 400: 0.05}[n] if classes else 0.012)


def test_blocks_that_hold_everything_are_the_full_covariance() -> None:
    for structure in ("full", "layer", "neuron"):
        belief = start_belief(structure, Layout((2, 1)), np.zeros(3), np.ones(3))
        J = np.array([[1.0, 2.0, 3.0]])
        gain, cov = belief.project_outputs(J)
        belief.step(gain, J, np.array([0.5]), np.array([[0.01]]))
        np.testing.assert_allclose(belief.cov[0], np.eye(3) - 0.01 * J.T @ J)
        assert cov == pytest.approx(14.0)


def test_a_row_taken_back_and_learned_again_leaves_the_belief_as_it_was() -> None:
    """Expectation propagation on a linear model: every site is exact, so more passes change nothing."""
    X, y = problem(HEADS[1])
    once = BayesianNetwork(4, (), 3, noise=0.3, covariance="full").learn(X, y)
    often = BayesianNetwork(4, (), 3, noise=0.3, covariance="full").learn(X, y, passes=5, refine="ep")
    np.testing.assert_allclose(often.mean, once.mean, atol=1e-10)
    np.testing.assert_allclose(often.cov[0], once.cov[0], atol=1e-11)
    reused = BayesianNetwork(4, (), 3, noise=0.3, covariance="full").learn(X, y, passes=5, refine="reuse")
    assert np.trace(reused.cov[0]) < 0.5 * np.trace(once.cov[0])


@pytest.mark.parametrize("structure", ["neuron", "diagonal"])
def test_ten_layers_neither_vanish_nor_explode(structure: str) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 5))
    y = np.sin(X[:, 0]) + X[:, 1] * X[:, 2] / 2
    network = BayesianNetwork(5, (20,) * 10, covariance=structure)
    signals = propagate(network._state.belief, network.activation, X)
    for z in signals.inputs[1:]:
        assert 0.1 < np.abs(z[:, 1:]).mean() < 10.0
    before = network.predict(X)
    assert 1e-2 < before.epistemic.mean() < 1e3
    after = network.learn(X, y).predict(X)
    assert np.isfinite(after.mean).all()
    assert 1e-5 < after.epistemic.mean() < before.epistemic.mean()
    assert np.mean((after.mean - y) ** 2) < np.var(y)


def test_two_hidden_layers_learn() -> None:
    rng = np.random.default_rng(5)
    X = rng.uniform(-2, 2, size=(600, 2))
    y = np.sin(2 * X[:, 0]) * X[:, 1] + rng.normal(0, 0.05, 600)
    network = BayesianNetwork(2, (15, 15), covariance="full").learn(X[:500], y[:500])
    error = network.predict(X[500:]).mean - y[500:]
    assert np.sqrt(np.mean(error**2)) < 0.25 * y.std()  # 0.12 to 0.16 over seeds


@pytest.mark.parametrize("hidden", [(), (20,)], ids=str)
def test_digits_are_told_apart_after_one_pass(hidden: tuple[int, ...]) -> None:
    from sklearn.datasets import load_digits

    X, y = load_digits(return_X_y=True)
    X = (X - X.mean(axis=0)) / np.maximum(X.std(axis=0), 0.1)
    order = np.random.default_rng(0).permutation(len(y))  # whoever wrote the last rows wrote none of the first
    for train, test, bound in ((order[:1200], order[1200:], 0.94), (np.arange(1200), np.arange(1200, 1797), 0.88)):
        network = BayesianNetwork(64, hidden, 10, observation="categorical", covariance="neuron")
        p = network.learn(X[train], y[train]).predict(X[test]).mean
        assert np.mean(p.argmax(axis=1) == y[test]) > bound
        np.testing.assert_allclose(p.sum(axis=1), 1.0)


def test_one_hidden_unit_learns_labels() -> None:
    X = np.random.default_rng(0).normal(size=(400, 2))
    y = (X[:, 0] > 0.3).astype(float)
    for seed in range(5):
        network = BayesianNetwork(2, (1,), observation="bernoulli", seed=seed).learn(X, y)
        assert np.mean((network.predict(X).mean > 0.5) == y) > 0.9


def test_twins_cancel_before_the_first_row_but_not_their_slopes() -> None:
    X = np.random.default_rng(0).normal(size=(20, 3))
    for hidden, n_outputs in (((8,), 1), ((6, 4), 3), ((7,), 1), ((3, 5), 3)):
        kind = "bernoulli" if n_outputs == 1 else "categorical"
        twins = BayesianNetwork(3, hidden, n_outputs, observation=kind)
        assert twins.prior.paired
        # Not quite, for several classes: the less sure a logit is the likelier it is the largest.
        np.testing.assert_allclose(twins.predict(X).mean, 1 / max(n_outputs, 2), atol=0.04 if n_outputs > 1 else 1e-3)
        alone = BayesianNetwork(3, hidden, n_outputs, observation=kind, prior=replace(twins.prior, paired=False))
        assert np.abs(alone.predict(X).mean - 1 / max(n_outputs, 2)).max() > 0.1
        # The first label moves a network with twins: its slopes don't cancel.
        twins.learn(X[:1], [1])
        assert np.abs(twins.predict(X).mean - 1 / max(n_outputs, 2)).max() > 0.1


def test_the_noise_is_learned() -> None:
    rng = np.random.default_rng(8)
    X = rng.normal(size=(3000, 2))
    y = np.maximum(X[:, 0], 0) + rng.normal(0, 0.3, 3000)
    network = BayesianNetwork(2, (10,)).learn(X, y)
    assert network.noise_var[0] == pytest.approx(0.09, rel=0.15)
    low, high = network.interval(X)
    assert 0.93 < np.mean((low < y) & (y < high)) < 0.97


@pytest.mark.parametrize("structure", ["full", "diagonal"])
@pytest.mark.parametrize("head", HEADS, ids=str)
def test_saved_and_loaded_it_goes_on_bit_for_bit(head: dict[str, Any], structure: str) -> None:
    import json

    X, y = problem(head)
    first = BayesianNetwork(4, (5,), covariance=structure, seed=3, **head).learn(X[:30], y[:30])
    parameters, arrays = first.export_state()
    second = BayesianNetwork.from_state(json.loads(json.dumps(parameters)), arrays)
    for network in (first, second):
        network.learn(X[30:], y[30:], passes=2)
    np.testing.assert_array_equal(numbers(first), numbers(second))
    np.testing.assert_array_equal(first.predict(X).epistemic, second.predict(X).epistemic)
    assert first.n_seen == second.n_seen


def test_the_seed_decides_everything() -> None:
    X, y = problem(HEADS[0])
    one, same, other = (BayesianNetwork(4, (5,), seed=seed).learn(X, y, passes=3, refine="ep") for seed in (1, 1, 2))
    np.testing.assert_array_equal(numbers(one), numbers(same))
    assert np.abs(one.mean - other.mean).max() > 0.1


@pytest.mark.parametrize("head", HEADS, ids=str)
def test_each_row_is_predicted_before_it_is_learned(head: dict[str, Any]) -> None:
    X, y = problem(head, n=20)
    seen = BayesianNetwork(4, (5,), **head).predict_then_learn(X, y)
    by_hand = BayesianNetwork(4, (5,), kernel="reference", **head)
    for i in range(20):
        for part, one in zip(seen.moments, by_hand.predict(X[i]).moments, strict=True):
            np.testing.assert_allclose(part[i], one, rtol=1e-7, atol=1e-10)
        by_hand.learn(X[i], y[i])


def test_float32_is_float64_to_its_digits() -> None:
    X, y = problem(HEADS[0])
    for structure in ("full", "diagonal"):
        single, double = (
            BayesianNetwork(4, (5,), dtype=dtype, covariance=structure).learn(X, y) for dtype in ("float32", "float64")
        )
        assert single.mean.dtype == np.float32
        np.testing.assert_allclose(single.predict(X).mean, double.predict(X).mean, atol=2e-3)


@pytest.mark.parametrize("kernel", ["auto", "reference"])
def test_bad_rows_leave_all_as_it_was(kernel: str) -> None:
    X, y = problem(HEADS[0])
    network = BayesianNetwork(4, (5,), kernel=kernel).learn(X, y)
    before = numbers(network)
    spoiled = X.copy()
    spoiled[40] = 1e200
    for rows, targets, words in [
        (spoiled, y, "Nothing was learned"),
        (spoiled[40], y[40], "Nothing was learned"),
        (X[:, :3], y, r"X must have shape \(4,\)"),
        (X, y[:5], r"y must have shape \(60,\) or \(60, 1\), got shape \(5, 1\)"),
        (X, np.full(60, np.nan), "y must be finite"),
    ]:
        with pytest.raises(ValueError, match=words):
            network.learn(rows, targets)
    np.testing.assert_array_equal(numbers(network), before)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"hidden": (0,)}, "hidden must be a whole number of at least 1, got 0"),
        ({"hidden": "100"}, "hidden must be a whole number of at least 1, got '100'"),
        ({"observation": "categorical"}, "at least 2, got 1"),
        ({"noise": 0.0}, "noise must be a number above 0 or 'learn' .*, got 0"),
        ({"noise": "guess"}, "observation='heteroscedastic'.*, got 'guess'"),
        ({"covariance": "banded"}, "covariance must be one of"),
        ({"seed": -1}, "seed must be"),
        ({"forgetting": 1.5}, "forgetting must be in"),
    ],
)
def test_wrong_parameters_are_named(given: dict[str, Any], words: str) -> None:
    with pytest.raises((TypeError, ValueError), match=words):
        BayesianNetwork(3, **given)


def test_refinement_says_what_it_needs() -> None:
    X, y = problem(HEADS[0])
    for network, words in [
        (BayesianNetwork(4, (5,), covariance="neuron"), "needs covariance='full'"),
        (BayesianNetwork(4, (5,), forgetting=0.9), "don't drift, got forgetting"),
    ]:
        with pytest.raises(ValueError, match=words):
            network.learn(X, y, passes=2, refine="ep")


def test_labels_are_checked() -> None:
    network = BayesianNetwork(2, (), 3, observation="categorical")
    with pytest.raises(ValueError, match="labels 0 to 2, got 3 at index 1"):
        network.learn([[1.0, 2.0], [1.0, 2.0]], [0, 3])


def test_the_structure_follows_from_the_size() -> None:
    assert BayesianNetwork(13).covariance == "full"
    assert BayesianNetwork(38).covariance == "low_rank"
    assert BayesianNetwork(64, (50,), 10).covariance == "kronecker"
    assert BayesianNetwork(784, (100,), 10).covariance == "kronecker"
    assert BayesianNetwork(20, (), 100, observation="categorical").covariance == "neuron"
    assert BayesianNetwork(5_000, (20,)).covariance == "low_rank"
    assert BayesianNetwork(5_000, (100,), 10).covariance == "diagonal"


@pytest.mark.parametrize("n_outputs", [1, 3, 30])
@pytest.mark.parametrize("hidden", [(), (30,), (200,), (40, 40)], ids=str)
def test_a_feature_more_does_not_double_the_cost_of_a_row(hidden: tuple[int, ...], n_outputs: int) -> None:
    costs = []
    for n_features in range(3, 1500):
        layout = Layout((n_features, *hidden, n_outputs))
        costs.append(multiply_adds(choose_covariance(layout), layout))
    assert max(after / before for before, after in pairwise(costs)) < 2.0


def test_a_batch_is_compiled_as_it_reads() -> None:
    for head in HEADS:
        X, y = problem(head)
        for structure, forgetting in (("full", 0.97), ("layer", 1.0), ("neuron", 1.0)):
            ours, reference = (
                BayesianNetwork(4, (5, 4), covariance=structure, kernel=kernel, forgetting=forgetting, **head).learn(
                    X, y, passes=2, batch=7
                )
                for kernel in ("auto", "reference")
            )
            expected = numbers(reference)
            np.testing.assert_allclose(numbers(ours), expected, rtol=1e-7, atol=1e-7 * np.abs(expected).max())


# Where a row ties outputs together, neurons forget that after every row, or after every batch: two different things.
TIED = [head for head in HEADS if head["observation"] in ("categorical", "heteroscedastic")]
SAME_IN_BATCHES = [
    (s, head) for s in ("full", "layer", "neuron") for head in HEADS if s != "neuron" or head not in TIED
]


@pytest.mark.parametrize(("structure", "head"), SAME_IN_BATCHES, ids=str)
def test_without_hidden_layers_any_batch_gives_the_same_posterior(structure: str, head: dict[str, Any]) -> None:
    """Slopes don't depend on the belief there, so rows learned together are rows learned one after the other."""
    X, y = problem(head)
    rows = BayesianNetwork(4, (), covariance=structure, **head).learn(X, y)
    for batch in (2, 13, 60, 1000):
        together = BayesianNetwork(4, (), covariance=structure, **head).learn(X, y, batch=batch)
        expected = numbers(rows)
        np.testing.assert_allclose(numbers(together), expected, rtol=1e-8, atol=1e-9 * np.abs(expected).max())


def test_a_batch_of_one_is_a_row() -> None:
    X, y = problem(HEADS[0])
    rows, ones = BayesianNetwork(4, (5,)).learn(X, y), BayesianNetwork(4, (5,)).learn(X, y, batch=1)
    np.testing.assert_array_equal(numbers(rows), numbers(ones))
    alone = BayesianNetwork(4, (5,)).learn(X[0], y[0], batch=8)
    np.testing.assert_allclose(numbers(alone), numbers(BayesianNetwork(4, (5,)).learn(X[0], y[0])), atol=1e-12)


def test_batches_learn_nearly_what_rows_do() -> None:
    rng = np.random.default_rng(5)
    X = rng.uniform(-2, 2, size=(2500, 2))
    y = np.sin(2 * X[:, 0]) * X[:, 1] + rng.normal(0, 0.1, 2500)
    errors = [
        np.sqrt(np.mean((BayesianNetwork(2).learn(X[:2000], y[:2000], batch=b).predict(X[2000:]).mean - y[2000:]) ** 2))
        for b in (1, 16)
    ]
    assert errors[0] < 0.2
    assert errors[1] < 1.3 * errors[0]


@pytest.mark.parametrize("kernel", ["auto", "reference"])
def test_a_bad_batch_leaves_all_as_it_was(kernel: str) -> None:
    X, y = problem(HEADS[0])
    network = BayesianNetwork(4, (5,), kernel=kernel).learn(X, y)
    before = numbers(network)
    spoiled = X.copy()
    spoiled[40] = 1e200
    with pytest.raises(ValueError, match="Nothing was learned"):
        network.learn(spoiled, y, batch=16)
    np.testing.assert_array_equal(numbers(network), before)


def test_a_batch_says_what_it_needs() -> None:
    X, y = problem(HEADS[0])
    with pytest.raises(ValueError, match="batch must be 1 with covariance='diagonal', got 4"):
        BayesianNetwork(4, (5,), covariance="diagonal").learn(X, y, batch=4)
    with pytest.raises(ValueError, match="needs batch=1, got 4"):
        BayesianNetwork(4, (5,)).learn(X, y, passes=2, refine="ep", batch=4)
    with pytest.raises(ValueError, match="batch must be a whole number of at least 1, got 0"):
        BayesianNetwork(4, (5,)).learn(X, y, batch=0)


@pytest.mark.parametrize("head", HEADS, ids=str)
def test_inputs_that_overflow_in_a_prediction_are_refused(head: dict[str, Any]) -> None:
    X, y = problem(head)
    network = BayesianNetwork(4, (3,), **head).learn(X, y)
    with pytest.raises(ValueError, match=r"X overflows float64 in the network: its largest magnitude is .*e\+"):
        network.predict(X[:2] * 1e200)
    assert np.isfinite(network.predict(X[:2] * 1e50).mean).all()


def test_output_biases_have_a_prior_of_their_own_whatever_the_scale_of_the_others() -> None:
    options: dict[str, Any] = {"observation": "categorical", "prior_scale": 3.0}
    for hidden, own in (((), 3.0), ((4,), 9.0)):
        variances = BayesianNetwork(2, hidden, 3, intercept_scale=5.0, **options).weight_variances[-1]
        default = BayesianNetwork(2, hidden, 3, **options).weight_variances[-1]
        np.testing.assert_allclose(variances[:, 0], 12.5)  # so that a difference of two has 25
        np.testing.assert_array_equal(variances[:, 1:], default[:, 1:])
        np.testing.assert_allclose(default[:, 0], own**2)
    noisy = BayesianNetwork(2, (4,), observation="heteroscedastic", intercept_scale=5.0)
    same = BayesianNetwork(2, (4,), observation="heteroscedastic")
    np.testing.assert_allclose(noisy.weight_variances[-1][0, 0], 25.0)
    np.testing.assert_array_equal(noisy.weight_variances[-1][1], same.weight_variances[-1][1])
    with pytest.raises(ValueError, match="intercept_scale must be a number above 0"):
        BayesianNetwork(2, intercept_scale=0.0)
