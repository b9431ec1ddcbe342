"""Rows of any weight: a row of weight w counts as w copies of it, in every kernel and structure."""

from typing import Any

import numpy as np
import pytest
from scipy.special import expit
from scipy.stats import norm

from onepass import BayesianCommittee, BayesianNetwork, BayesianPerceptron, Mixture, PerceptronFleet
from onepass.engine.class_matches import CategoricalOutputs
from onepass.engine.vector_matches import NetworkProgress
from onepass.models.mixture import with_drift

rng = np.random.default_rng(0)
X = rng.normal(size=(80, 3))
WEIGHTS = rng.uniform(0.05, 1.0, 80)
TARGETS = {
    "gaussian": X @ [1.0, -2.0, 0.5] + 0.3 * rng.normal(size=80),
    "bernoulli": (rng.uniform(size=80) < expit(X @ [1.0, -2.0, 0.5])).astype(float),
    "poisson": rng.poisson(np.exp(0.3 * X[:, 0])).astype(float),
    "negative_binomial": rng.poisson(np.exp(0.3 * X[:, 0])).astype(float),
}
PERCEPTRONS: list[tuple[str, dict[str, Any], str]] = [
    ("linear", {"noise": 0.2}, "gaussian"),
    ("linear", {"noise": "learn"}, "gaussian"),
    ("relu", {"noise": 0.2}, "gaussian"),
    ("sigmoid", {}, "bernoulli"),
    ("exp", {}, "poisson"),
    ("exp", {"observation": "negative_binomial"}, "negative_binomial"),
    ("linear", {"noise": 0.2, "outliers": 0.05}, "gaussian"),
]


def natural(model: BayesianPerceptron) -> tuple[Any, Any]:
    """Precision and precision times mean: what sites add up in."""
    precision = np.linalg.inv(model.cov)
    return precision, precision @ model.mean


KNOWN_NOISE = [case for case in PERCEPTRONS if case[1].get("noise") != "learn"]


@pytest.mark.parametrize(("activation", "options", "kind"), KNOWN_NOISE)
def test_a_weight_is_the_power_of_what_the_row_multiplies_the_belief_by(
    activation: str, options: Any, kind: str
) -> None:
    def start() -> BayesianPerceptron:
        return BayesianPerceptron(3, activation, **options).learn(X[:20], TARGETS[kind][:20])

    before, once, weighted = start(), start().learn(X[20], TARGETS[kind][20]), start()
    weighted.learn(X[20:21], TARGETS[kind][20:21], sample_weight=0.3)
    for old, new, part in zip(natural(before), natural(once), natural(weighted), strict=True):
        np.testing.assert_allclose(part, old + 0.3 * (new - old), rtol=1e-6, atol=1e-6)
    gain = weighted.log_evidence - before.log_evidence
    if activation == "linear" and "outliers" not in options:
        seen = before.predict(X[20])
        a = np.linspace(-10.0, 10.0, 20_001) * np.sqrt(seen.pre_var) + seen.pre_mean
        powers = norm.pdf(TARGETS[kind][20], a, np.sqrt(0.2)) ** 0.3
        expected = np.log(np.trapezoid(norm.pdf(a, seen.pre_mean, np.sqrt(seen.pre_var)) * powers, a))
    else:
        expected = 0.3 * (once.log_evidence - before.log_evidence)
    assert gain == pytest.approx(expected)


@pytest.mark.parametrize("covariance", ["full", "diagonal"])
@pytest.mark.parametrize("kernel", ["auto", "reference"])
@pytest.mark.parametrize(("activation", "options", "kind"), KNOWN_NOISE)
def test_a_whole_weight_is_as_many_copies(
    activation: str, options: Any, kind: str, kernel: str, covariance: str
) -> None:
    times = np.random.default_rng(1).integers(1, 6, 80)
    index, y = np.repeat(np.arange(80), times), TARGETS[kind]

    def start() -> BayesianPerceptron:
        return BayesianPerceptron(3, activation, kernel=kernel, covariance=covariance, **options)

    weighted, copies = start(), start()
    _, scores = weighted.predict_score_learn(X, y, sample_weight=times.astype(float))
    _, each = copies.predict_score_learn(X[index], y[index])
    assert weighted.n_seen == 80
    if covariance == "full":  # a diagonal one forgets, after each copy, how the weights are correlated
        np.testing.assert_allclose(weighted.mean, copies.mean, rtol=1e-6, atol=1e-9)
        np.testing.assert_allclose(weighted.cov, copies.cov, rtol=1e-6, atol=1e-9)
        assert weighted.log_evidence == pytest.approx(copies.log_evidence, rel=1e-8)
        first = np.cumsum(times) - times
        np.testing.assert_allclose(scores.log_densities, each.log_densities[first], rtol=1e-6, atol=1e-8)
        np.testing.assert_allclose(scores.row_gains, np.add.reduceat(each.log_densities, first), rtol=1e-6, atol=1e-8)
    assert scores.row_gains.sum() == pytest.approx(weighted.log_evidence)


def test_gaussian_rows_of_any_weights_give_weighted_least_squares() -> None:
    y = TARGETS["gaussian"]
    model = BayesianPerceptron(3, "linear", bias=False, noise=0.2).learn(X, y, sample_weight=WEIGHTS)
    precision = np.eye(3) + (X.T * WEIGHTS) @ X / 0.2
    np.testing.assert_allclose(model.mean, np.linalg.solve(precision, X.T @ (WEIGHTS * y) / 0.2), rtol=1e-9)
    np.testing.assert_allclose(model.cov, np.linalg.inv(precision), rtol=1e-8)


def test_the_power_of_the_site_is_near_that_of_the_likelihood() -> None:
    a = np.linspace(-12.0, 12.0, 40_001)
    prior = np.exp(-0.5 * (a - 0.4) ** 2 / 1.5)
    for weight in (0.2, 0.5, 0.8):
        tilted = prior * expit(a) ** weight
        tilted /= tilted.sum()
        mean = tilted @ a
        var = tilted @ (a - mean) ** 2
        model = BayesianPerceptron(1, "sigmoid", bias=False, mean=[0.4], cov=1.5).learn(
            [1.0], 1.0, sample_weight=weight
        )
        assert model.mean[0] == pytest.approx(mean, abs=0.02)
        assert model.cov[0, 0] == pytest.approx(var, rel=0.02)


@pytest.mark.parametrize("covariance", ["full", "diagonal"])
@pytest.mark.parametrize(("activation", "options", "kind"), PERCEPTRONS)
def test_all_kernels_of_perceptrons_weigh_rows_alike(covariance: str, activation: str, options: Any, kind: str) -> None:
    kernels = ["rows", "reference"] + ["blocks"] * (covariance == "full")
    models = [BayesianPerceptron(3, activation, covariance=covariance, kernel=k, **options) for k in kernels]
    for model in models:
        model.learn(X[:50], TARGETS[kind][:50], sample_weight=WEIGHTS[:50])
        model.predict_then_learn(X[50:], TARGETS[kind][50:], sample_weight=WEIGHTS[50:])
        np.testing.assert_allclose(model.mean, models[0].mean, rtol=1e-7, atol=1e-9)
        np.testing.assert_allclose(model.cov, models[0].cov, rtol=1e-6, atol=1e-9)
        assert model.log_evidence == pytest.approx(models[0].log_evidence)
    plain = BayesianPerceptron(3, activation, covariance=covariance, **options).learn(X, TARGETS[kind])
    assert not np.allclose(plain.mean, models[0].mean)


def test_more_passes_keep_the_weights() -> None:
    y = TARGETS["gaussian"]
    once = BayesianPerceptron(3, "linear", noise=0.2).learn(X, y, sample_weight=WEIGHTS)
    again = BayesianPerceptron(3, "linear", noise=0.2).learn(X, y, sample_weight=WEIGHTS, passes=4)
    np.testing.assert_allclose(again.mean, once.mean, rtol=1e-8)
    np.testing.assert_allclose(again.cov, once.cov, rtol=1e-7)


NETWORKS: list[tuple[Any, Any]] = [
    ((5,), {"covariance": "full"}),
    ((5,), {"covariance": "neuron"}),
    ((5,), {"covariance": "diagonal"}),
    ((5,), {"covariance": "kronecker"}),
    ((5,), {"covariance": "low_rank"}),
    ((), {"covariance": "full"}),
    ((), {"covariance": "neuron"}),
    ((), {"covariance": "diagonal"}),
]
HEADS: list[tuple[dict[str, Any], Any]] = [
    ({"noise": 0.2, "calibrate": False}, TARGETS["gaussian"]),
    ({}, TARGETS["gaussian"]),
    ({"observation": "bernoulli"}, TARGETS["bernoulli"]),
    ({"observation": "negative_binomial"}, TARGETS["negative_binomial"]),
    ({"observation": "categorical", "n_outputs": 4}, np.minimum(TARGETS["poisson"], 3.0)),
]


@pytest.mark.parametrize(("hidden", "structure"), NETWORKS)
@pytest.mark.parametrize(("head", "y"), HEADS)
def test_networks_weigh_rows_as_the_reference_does(hidden: Any, structure: Any, head: Any, y: Any) -> None:
    if "n_outputs" in head and not hidden and structure["covariance"] != "full":
        pytest.skip("kernels of independent logits weigh each one's own site, the reference the joint one: see below")
    ours, reference = (BayesianNetwork(3, hidden, kernel=k, **structure, **head) for k in ("auto", "reference"))
    plain = BayesianNetwork(3, hidden, **structure, **head).learn(X, y)
    for model in (ours, reference):
        model.learn(X[:40], y[:40], sample_weight=WEIGHTS[:40])
        model.predict_then_learn(X[40:], y[40:], sample_weight=WEIGHTS[40:])
    np.testing.assert_allclose(ours.mean, reference.mean, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(ours.noise_var, reference.noise_var, rtol=1e-5)
    assert ours.log_evidence == pytest.approx(reference.log_evidence, rel=1e-5)
    assert not np.allclose(plain.mean, ours.mean, rtol=1e-3)
    for model in (ours, reference):  # the weight of the last row says nothing about the next one
        model.learn(X[:2], y[:2])
    np.testing.assert_allclose(ours.mean, reference.mean, rtol=1e-5, atol=1e-6)


LINEAR: list[tuple[dict[str, Any], Any]] = [
    ({"noise": 0.2, "calibrate": False}, TARGETS["gaussian"]),
    (
        {"noise": 0.2, "calibrate": False, "n_outputs": 2},
        np.column_stack([TARGETS["gaussian"], np.where(X[:, 0] > 0.0, np.nan, X[:, 1])]),
    ),
    ({"observation": "bernoulli"}, TARGETS["bernoulli"]),
    ({"observation": "categorical", "n_outputs": 4}, np.minimum(TARGETS["poisson"], 3.0)),
    ({"observation": "poisson"}, TARGETS["poisson"]),
]


@pytest.mark.parametrize("kernel", ["auto", "reference"])
@pytest.mark.parametrize(("head", "y"), LINEAR)
def test_the_evidence_of_a_whole_weight_is_that_of_as_many_copies(head: Any, y: Any, kernel: str) -> None:
    times = np.random.default_rng(1).integers(1, 6, 80)
    index = np.repeat(np.arange(80), times)
    weighted, copies = (BayesianNetwork(3, (), covariance="full", kernel=kernel, **head) for _ in range(2))
    weighted.learn(X, y, sample_weight=times.astype(float))
    copies.learn(X[index], y[index])
    np.testing.assert_allclose(weighted.mean, copies.mean, rtol=1e-5, atol=1e-6)
    assert weighted.log_evidence == pytest.approx(copies.log_evidence, rel=1e-6)


@pytest.mark.parametrize("covariance", ["full", "kronecker", "diagonal"])
def test_the_evidence_of_a_part_of_a_row_is_the_mean_of_the_power_of_its_density(covariance: str) -> None:
    model = BayesianNetwork(3, (5,), noise=0.2, calibrate=False, covariance=covariance)
    model.learn(X[:40], TARGETS["gaussian"][:40])
    seen, before, target = model.predict(X[40]), model.log_evidence, TARGETS["gaussian"][40]
    model.learn(X[40], target, sample_weight=0.3)
    a = np.linspace(-12.0, 12.0, 20_001) * np.sqrt(seen.epistemic) + seen.mean
    powers = norm.pdf(target, a, np.sqrt(0.2)) ** 0.3
    expected = np.log(np.trapezoid(norm.pdf(a, seen.mean, np.sqrt(seen.epistemic)) * powers, a))
    assert model.log_evidence - before == pytest.approx(expected, rel=1e-8)


@pytest.mark.parametrize(("activation", "options", "kind"), PERCEPTRONS)
def test_fleets_weigh_rows_as_perceptrons_do(activation: str, options: Any, kind: str) -> None:
    keys, weights = np.arange(80) % 3, np.where(np.arange(80) % 4 == 0, 3.5, WEIGHTS)
    whole, parts = (PerceptronFleet(3, activation, **options) for _ in range(2))
    whole.learn(X, TARGETS[kind], keys=keys, sample_weight=weights)
    parts.predict_then_learn(X[:50], TARGETS[kind][:50], keys=keys[:50], sample_weight=weights[:50])
    for i in range(50, 80):
        parts.learn(X[i], TARGETS[kind][i], keys=keys[i], sample_weight=weights[i])
    for key in range(3):
        own, alone = keys == key, BayesianPerceptron(3, activation, **options)
        for x, target, weight in zip(X[own], TARGETS[kind][own], weights[own], strict=True):
            alone.learn(x, target, sample_weight=weight)
        for fleet in (whole, parts):
            np.testing.assert_allclose(fleet.perceptron(key).mean, alone.mean, rtol=1e-9, atol=1e-12)
            np.testing.assert_allclose(fleet.perceptron(key).cov, alone.cov, rtol=1e-8, atol=1e-12)
            assert fleet.perceptron(key).log_evidence == pytest.approx(alone.log_evidence, rel=1e-9)
            assert fleet.perceptron(key).noise == pytest.approx(alone.noise, rel=1e-9)
    plain = PerceptronFleet(3, activation, **options).learn(X, TARGETS[kind], keys=keys)
    assert not np.allclose(plain.perceptron(0).mean, whole.perceptron(0).mean, rtol=1e-3)


MODELS: list[Any] = [
    lambda: BayesianPerceptron(3, "linear"),
    lambda: BayesianNetwork(3, (4,)),
    lambda: BayesianCommittee(3, (4,), members=2),
    lambda: Mixture.over_drift(BayesianPerceptron, 3, "linear"),
    lambda: PerceptronFleet(3, "linear"),
]


@pytest.mark.parametrize("wrong", [0.0, -1.0, np.nan, np.inf])
@pytest.mark.parametrize("made", MODELS)
def test_a_wrong_weight_is_an_error_that_names_the_row_and_nothing_is_learned(made: Any, wrong: float) -> None:
    model, weights, y = made(), np.ones(80), TARGETS["gaussian"]
    keys = {"keys": np.arange(80) % 3} if isinstance(model, PerceptronFleet) else {}
    weights[17] = wrong
    with pytest.raises(ValueError, match=r"sample_weight.*17"):
        model.learn(X, y, sample_weight=weights, **keys)
    assert model.n_seen == 0
    for weight in (1e-12, 1e12):
        weights[17] = weight
        model.learn(X, y, sample_weight=weights, **keys)
    assert model.n_seen == 160


def test_of_independent_logits_each_ones_own_site_is_weighed() -> None:
    likelihood, mean, var, label = CategoricalOutputs(5), np.arange(5.0) - 2.0, np.arange(1.0, 6.0), np.array([1.0])
    state = NetworkProgress.start(5, None, calibrate=False)
    _, score, information = likelihood.separate_match(mean, var, label, state)
    state.row_weight = 0.3
    _, part_score, part_information = likelihood.separate_match(mean, var, label, state)
    precision, part_precision = 1.0 / (var - information * var**2), 1.0 / (var - part_information * var**2)
    np.testing.assert_allclose(part_precision, 1.0 / var + 0.3 * (precision - 1.0 / var))
    shift, part_shift = precision * (mean + score * var), part_precision * (mean + part_score * var)
    np.testing.assert_allclose(part_shift, mean / var + 0.3 * (shift - mean / var))


def test_a_network_without_hidden_units_is_the_perceptron() -> None:
    y = TARGETS["gaussian"]
    network = BayesianNetwork(3, (), noise=0.2, covariance="full", calibrate=False)
    perceptron = BayesianPerceptron(3, "linear", noise=0.2, mean=network.mean, cov=network.cov[0])
    for model in (network, perceptron):
        model.learn(X, y, sample_weight=WEIGHTS)
    np.testing.assert_allclose(network.mean, perceptron.mean, rtol=1e-8)


@pytest.mark.parametrize(
    "made",
    [
        lambda: Mixture.over_drift(BayesianPerceptron, 3, "sigmoid"),
        lambda: Mixture.over_drift(BayesianNetwork, 3, (4,), observation="bernoulli"),
        lambda: BayesianCommittee(3, (4,), members=2, observation="bernoulli"),
    ],
)
def test_mixtures_pass_the_weights_on(made: Any) -> None:
    y = TARGETS["bernoulli"]
    plain, weighted = made().learn(X, y), made().learn(X, y, sample_weight=np.full(80, 0.01))
    spread = [np.ptp(model.predict(X).mean) for model in (plain, weighted)]
    assert spread[1] < 0.5 * spread[0]


def test_one_weight_is_that_of_every_row() -> None:
    for make in (lambda: BayesianPerceptron(3), lambda: BayesianNetwork(3, (2,), observation="bernoulli")):
        one, each = make(), make()
        one.learn(X, TARGETS["bernoulli"], sample_weight=3)
        each.learn(X, TARGETS["bernoulli"], sample_weight=np.full(80, 3.0))
        np.testing.assert_array_equal(one.mean, each.mean)


@pytest.mark.parametrize("wrong", [0.0, -1.0, np.nan, np.inf])
@pytest.mark.parametrize("drift", [0.0, "auto"])
def test_a_wrong_weight_is_named_and_nothing_is_learned(wrong: float, drift: Any) -> None:
    weights = np.r_[np.ones(5), wrong, np.ones(74)]
    for model in (with_drift(BayesianPerceptron, 3, drift=drift), with_drift(BayesianNetwork, 3, (2,), drift=drift)):
        for learn in (model.learn, model.predict_then_learn):
            with pytest.raises(ValueError, match=rf"sample_weight must be .*, got {wrong} at index 5"):
                learn(X, TARGETS["bernoulli"], sample_weight=weights)
        with pytest.raises(ValueError, match=r"sample_weight must have shape \(80,\)"):
            model.learn(X, TARGETS["bernoulli"], sample_weight=np.ones(3))
        assert model.n_seen == 0


@pytest.mark.parametrize("seed", range(4))
def test_one_wild_row_of_a_large_weight_is_no_jump_of_the_truth(seed: int) -> None:
    draw = np.random.default_rng(seed)
    rows = draw.normal(size=(400, 3))
    truth = rows @ [1.0, -2.0, 0.5]
    y = truth + 0.3 * draw.normal(size=400)
    y[draw.random(400) < 0.05] += 3.0

    def unexplained(weight: float) -> float:
        model = BayesianPerceptron(3, "linear", noise="learn", outliers=0.05).learn(rows, y, sample_weight=weight)
        return float(np.mean((model.predict(rows).mean - truth) ** 2) / truth.var())

    assert unexplained(10.0) == pytest.approx(unexplained(1.0), abs=5e-4)
