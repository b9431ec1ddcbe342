import copy
from typing import Any

import numpy as np
import pytest

import onepass
from onepass.files.registry import exported, savable, savable_names
from onepass.merging.adapters import ADAPTERS, adapter_for
from tests.helpers.merging import linear_rows


def test_every_class_has_one_adapter_and_can_be_saved() -> None:
    names = [name for adapter in ADAPTERS for name in adapter.classes]
    assert len(set(names)) == len(names)
    assert set(names) <= set(savable_names())
    for name in names:
        assert name in adapter_for(savable(name)).classes


def test_another_class_of_the_same_name_has_no_adapter() -> None:
    twin = type("BayesianPerceptron", (onepass.BayesianPerceptron,), {})
    with pytest.raises(TypeError, match=r"prior must be one of .*BayesianPerceptron.*, got BayesianPerceptron"):
        adapter_for(twin)


@pytest.mark.parametrize(
    "model",
    [
        onepass.BayesianPerceptron(4, "relu", noise="learn"),
        onepass.BayesianPerceptron(4, "linear", noise=0.1, covariance="diagonal"),
        onepass.BayesianNetwork(4, (3,), covariance="neuron"),
        onepass.BayesianNetwork(4, (3,), covariance="kronecker"),
        onepass.BayesianNetwork(4, (3,), covariance=("kronecker", "full")),
        onepass.BayesianPerceptronRegressor(standardize=True, prior_scale="auto"),
        onepass.BayesianMLPRegressor((3,), members=2, warm_up=20),
    ],
    ids=lambda model: type(model).__name__,
)
def test_what_is_written_is_read_again(model: Any) -> None:
    X, y = linear_rows(150)
    learned = copy.deepcopy(model)
    (learned.fit if hasattr(learned, "fit") else learned.learn)(X, y)
    parameters, arrays = exported(learned)
    adapter = adapter_for(type(learned))
    snapshots = adapter.read(parameters, arrays)
    again, numbers = adapter.write(parameters, arrays, snapshots)
    assert again == parameters
    assert set(numbers) == set(arrays)
    # Where rows are re-weighed, all of them are asked about their noise as they are written.
    reweighed = isinstance(learned, onepass.BayesianPerceptronRegressor)
    for k, (one, other) in enumerate(zip(adapter.read(again, numbers), snapshots, strict=True)):
        assert one.rows == other.rows
        if reweighed:
            assert one.evidence == pytest.approx(learned._learner.state.mixtures[0].members[k].log_evidence, rel=1e-9)
            assert one.sums == pytest.approx(other.sums, rel=1e-9, abs=1e-9)
            continue
        assert one.evidence == other.evidence
        np.testing.assert_array_equal(one.means, other.means)
        np.testing.assert_array_equal(one.weights, other.weights)
        for block, same in zip(one.blocks, other.blocks, strict=True):
            np.testing.assert_array_equal(block.mean, same.mean)
            mine, theirs = (part.natural(np.zeros_like(part.mean)).precision for part in (block, same))
            np.testing.assert_allclose(mine, theirs, rtol=1e-12, atol=1e-12 * np.abs(theirs).max())


def test_an_estimator_in_its_warm_up_cannot_be_merged() -> None:
    X, y = linear_rows(50)
    cold = onepass.BayesianPerceptronRegressor(standardize=True, warm_up=100).fit(X, y)
    with pytest.raises(ValueError, match="it is still in its warm-up of 100 rows"):
        onepass.merge(cold, [copy.deepcopy(cold).partial_fit(X, y)])


def test_shards_of_weighted_rows_merge() -> None:
    X, y = linear_rows(300)
    weights = np.random.default_rng(1).uniform(0.1, 1.9, 300)
    prior = onepass.BayesianPerceptronRegressor(noise=0.1, warm_up=100).fit(X[:100], y[:100], weights[:100])
    parts = [slice(100, 180), slice(180, 300)]
    shards = [copy.deepcopy(prior).partial_fit(X[part], y[part], weights[part]) for part in parts]
    shards[0].predict_then_learn(X[:1], y[:1], sample_weight=[0.5])
    whole = copy.deepcopy(prior).partial_fit(X[100:], y[100:], weights[100:]).partial_fit(X[:1], y[:1], [0.5])
    np.testing.assert_allclose(onepass.merge(prior, shards).coef_, whole.coef_, rtol=1e-6)
