"""Softmax perceptrons with many classes: the match of independent logits, and the kernel of blocks per class."""

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from benchmarks.classes import Logits, exact_logits

from benchmarks import many_classes
from onepass import BayesianNetwork, BayesianPerceptronClassifier
from onepass._typing import FloatArray
from onepass.beliefs.choice import choose_covariance, multiply_adds
from onepass.engine.class_matches import CategoricalOutputs
from onepass.engine.vector_matches import NoiseState
from onepass.layers.layout import Layout
from tests.helpers.classes import error


def separate_match(
    mean: FloatArray, var: FloatArray, label: int, outliers: float = 0.0
) -> tuple[float, FloatArray, FloatArray]:
    state = NoiseState.start(len(mean), None, False, outliers)
    return CategoricalOutputs(len(mean)).separate_match(mean, var, np.array([float(label)]), state)


@pytest.mark.parametrize(("n", "scale", "std"), [(4, 6.0, 0.1), (20, 4.0, 0.3), (20, 6.0, 1.3), (40, 4.0, 0.8)])
@pytest.mark.parametrize("rank", [0, 1, -1], ids=["expected", "second", "last"])
def test_faint_classes_together_are_matched_as_each_alone(n: int, scale: float, std: float, rank: int) -> None:
    """Against trapezoidal rules over each logit; the last class is one that nobody expected."""
    rng = np.random.default_rng(n)
    mean, var = scale * rng.normal(size=n), std**2 * rng.uniform(0.5, 1.5, n)
    label = int(np.argsort(-mean)[rank])
    log_z, score, information = separate_match(mean, var, label)
    exact = exact_logits(mean, var, label)
    ours = Logits(log_z, mean + var * score, np.diag(var - var**2 * information))
    assert abs(score.sum()) < 1e-12 * n
    assert (error(exact, ours) < 1e-4).all()


@pytest.mark.parametrize("outliers", [0.0, 0.1])
@pytest.mark.parametrize("n", [2, 3, 30])
def test_the_own_information_is_the_diagonal_of_all(n: int, outliers: float) -> None:
    rng = np.random.default_rng(5)
    for std in (0.1, 0.7, 3.0):
        mean, var = 3.0 * rng.normal(size=n), std**2 * rng.uniform(0.5, 1.5, n)
        state, label = NoiseState.start(n, None, False, outliers), np.array([float(rng.integers(n))])
        joint = CategoricalOutputs(n).moment_match(mean, np.diag(var), label, state)
        log_z, score, information = separate_match(mean, var, int(label[0]), outliers)
        assert log_z == pytest.approx(joint[0], rel=1e-9)
        np.testing.assert_allclose(score, joint[1], rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(information, np.diag(joint[2]), rtol=1e-9, atol=1e-12)


def test_classes_that_are_all_faint_but_alike_have_equal_probabilities() -> None:
    n = 60
    log_p = CategoricalOutputs(n).log_probabilities(np.zeros(n), np.diag(np.full(n, 0.01)))
    np.testing.assert_allclose(np.exp(log_p), 1.0 / n, rtol=1e-6)
    assert separate_match(np.zeros(n), np.full(n, 0.01), 7)[0] == pytest.approx(log_p[7], abs=1e-6)


WAYS: list[dict[str, Any]] = [{}, {"drift": 0.003}, {"drift": 0.5}, {"outliers": 0.1}, {"forgetting": 0.98}]


@pytest.mark.parametrize("way", WAYS, ids=str)
@pytest.mark.parametrize("d", [5, 100])
def test_blocks_of_rows_are_rows_one_by_one(d: int, way: dict[str, Any]) -> None:
    """Five features are learned row by row, a hundred 64 rows at a time; the reference is plain NumPy."""
    X, y = many_classes.teacher(7, d, 100, 1)
    X /= np.sqrt(d / 5)
    given: dict[str, Any] = {"n_outputs": 7, "observation": "categorical", "covariance": "neuron", **way}
    ours, reference = (BayesianNetwork(d, (), kernel=kernel, **given).learn(X, y) for kernel in ("auto", "reference"))
    np.testing.assert_allclose(ours.mean, reference.mean, atol=1e-9)
    np.testing.assert_allclose(np.array(ours.cov), np.array(reference.cov), atol=1e-9)
    assert ours.log_evidence == pytest.approx(reference.log_evidence, abs=1e-8)
    first, second = (network.predict_then_learn(X[:70], y[:70]) for network in (ours, reference))
    np.testing.assert_allclose(first.mean, second.mean, atol=1e-9)


def test_numbers_with_blocks_per_output_are_separate_perceptrons() -> None:
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(200, 110)), rng.normal(size=(200, 2))
    both = BayesianNetwork(110, (), 2, covariance="neuron", noise=0.3).learn(X, Y)
    for k in range(2):
        one = BayesianNetwork(110, (), 1, covariance="full", noise=0.3).learn(X, Y[:, k])
        np.testing.assert_allclose(both.weights[0][k], one.weights[0][0], atol=1e-9)


def test_single_precision_has_its_digits() -> None:
    X, y = many_classes.clusters(12, 100, 600, 3)
    given: dict[str, Any] = {"n_outputs": 12, "observation": "categorical", "covariance": "neuron"}
    double, single = (BayesianNetwork(100, (), dtype=dtype, **given).learn(X, y) for dtype in ("float64", "float32"))
    assert single.log_evidence == pytest.approx(double.log_evidence, rel=1e-4)
    np.testing.assert_allclose(single.predict(X).mean, double.predict(X).mean, atol=1e-3)


@pytest.mark.parametrize("d", [5, 120])
def test_a_row_that_overflows_leaves_all_as_it_was(d: int) -> None:
    X, y = many_classes.teacher(5, d, 100, 2)
    network = BayesianNetwork(d, (), 5, observation="categorical", covariance="neuron").learn(X, y)
    before, wild = network.mean, X.copy()
    wild[40] = 1e200
    with pytest.raises(ValueError, match="Nothing was learned"):
        network.learn(wild, y)
    np.testing.assert_array_equal(network.mean, before)
    assert network.n_seen == 100


def test_after_a_jump_a_block_is_learned_up_to_the_alarm() -> None:
    X, y = many_classes.teacher(4, 100, 900, 4)
    X /= 5.0
    turned = np.where(np.arange(900) < 500, y, (y + 1) % 4)
    given: dict[str, Any] = {"n_outputs": 4, "observation": "categorical", "covariance": "neuron", "outliers": 0.05}
    together = BayesianNetwork(100, (), **given).learn(X, turned)
    alone = BayesianNetwork(100, (), **given)
    for row, label in zip(X, turned, strict=True):
        alone.learn(row, label)
    assert together._state.noise.trust.rows_since_alarm < 500.0
    assert together.log_evidence == pytest.approx(alone.log_evidence, abs=1e-7)
    np.testing.assert_allclose(together.mean, alone.mean, atol=1e-8)


def test_many_classes_lose_next_to_nothing_by_blocks_per_class() -> None:
    study = many_classes.Study(many_classes.teacher, 15, 8, 1500, 500, 0, 9)
    joint, blocks = (many_classes.measure(study, covariance) for covariance in ("full", "neuron"))
    assert blocks.prequential < 1.01 * joint.prequential
    assert blocks.held_out < 1.01 * joint.held_out


def test_the_estimator_takes_blocks_per_class() -> None:
    for n_classes in (2, 5):
        X, y = many_classes.clusters(n_classes, 6, 400, 1)
        full, blocks = (BayesianPerceptronClassifier(covariance=name).fit(X, y) for name in ("full", "neuron"))
        np.testing.assert_allclose(blocks.predict_proba(X), full.predict_proba(X), atol=0.1 if n_classes > 2 else 0.0)
    with pytest.raises(ValueError, match="covariance must be one of 'auto', 'full', 'neuron', 'diagonal'"):
        BayesianPerceptronClassifier(covariance="layer").fit(X, y)


def test_a_class_more_never_makes_the_chosen_covariance_slower() -> None:
    for d in (5, 20, 100, 784):
        layouts = [Layout((d, k)) for k in range(3, 300)]
        costs = [multiply_adds(choose_covariance(layout), layout) for layout in layouts]
        for k, (before, after) in enumerate(pairwise(costs), 3):
            assert after <= before * ((k + 1) / k) ** 3
