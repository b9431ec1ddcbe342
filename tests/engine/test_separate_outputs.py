"""Softmax perceptrons with many classes: the match of independent logits, and the kernel of blocks per class."""

from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from benchmarks import many_classes
from onepass import BayesianNetwork, BayesianPerceptronClassifier
from onepass.beliefs.choice import choose_covariance, multiply_adds
from onepass.layers.layout import Layout

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
