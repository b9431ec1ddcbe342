"""All models are asked by the same arguments, in the same order and with the same defaults."""

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from onepass import BayesianCommittee, BayesianNetwork, BayesianPerceptron, Mixture, PerceptronFleet
from onepass.models.network.state import State
from onepass.models.online import OnlineModel

METHODS = (
    "learn",
    "predict",
    "predict_then_learn",
    "interval",
    "log_predictive",
    "outlier_probability",
    "sample_weights",
    "sample_output",
)


def arguments(method: Callable[..., Any]) -> list[inspect.Parameter]:
    given = [one for one in inspect.signature(method).parameters.values() if one.kind is not one.VAR_KEYWORD]
    return [one.replace(annotation=one.empty) for one in given if one.name != "keys"]


@pytest.mark.parametrize("name", METHODS)
@pytest.mark.parametrize("kind", [BayesianPerceptron, BayesianNetwork, Mixture])
def test_arguments_are_those_of_the_interface(kind: type, name: str) -> None:
    expected = arguments(getattr(OnlineModel, name))
    assert arguments(getattr(kind, name))[: len(expected)] == expected


@pytest.mark.parametrize("name", ["learn", "predict", "predict_then_learn", "interval", "outlier_probability"])
def test_a_fleet_has_some_of_them_and_keys(name: str) -> None:
    method = getattr(PerceptronFleet, name)
    offered = arguments(getattr(OnlineModel, name))
    assert inspect.signature(method).parameters["keys"].kind is inspect.Parameter.KEYWORD_ONLY
    assert all(one in offered for one in arguments(method))


MODELS: dict[str, tuple[Callable[[], Any], dict[str, Any], str]] = {
    "perceptron": (lambda: BayesianPerceptron(2, "relu", noise=0.1), {}, "ep"),
    "diagonal perceptron": (lambda: BayesianPerceptron(2, "relu", noise=0.1, covariance="diagonal"), {}, "reuse"),
    "drifting perceptron": (lambda: BayesianPerceptron(2, "relu", noise=0.1, process_noise=0.01), {}, "reuse"),
    "network": (lambda: BayesianNetwork(2, (4,)), {}, "ep"),
    "network in batches": (lambda: BayesianNetwork(2, (4,)), {"batch": 3}, "reuse"),
    "forgetting network": (lambda: BayesianNetwork(2, (4,), forgetting=0.9), {}, "reuse"),
    "network of neurons": (lambda: BayesianNetwork(2, (4,), covariance="neuron"), {}, "reuse"),
    "committee": (lambda: BayesianCommittee(2, (4,), members=2), {}, "ep"),
}


@pytest.mark.parametrize("name", MODELS)
def test_rows_are_removed_before_they_are_learned_again_wherever_that_is_possible(name: str) -> None:
    make, options, refine = MODELS[name]
    X = np.random.default_rng(0).normal(size=(30, 2))
    y = np.maximum(X[:, 0], 0.0)
    by_default = make().learn(X, y, passes=3, **options)
    chosen = make().learn(X, y, passes=3, refine=refine, **options)
    np.testing.assert_array_equal(by_default.predict(X).moments, chosen.predict(X).moments)
    once = make().learn(X, y, **options)
    assert not np.array_equal(by_default.predict(X).moments, once.predict(X).moments)
    if "batch" not in options:
        assert once.keeps_sites == (refine == "ep")


def test_one_row_does_not_end_the_block_that_a_network_collects_rows_in(monkeypatch: pytest.MonkeyPatch) -> None:
    network = BayesianNetwork(6, (5,), covariance="kronecker").learn(np.ones(6), 1.0)
    read = State.belief.fget  # type: ignore[attr-defined]
    reads: list[State] = []

    def belief(state: State) -> Any:
        reads.append(state)
        return read(state)

    monkeypatch.setattr(State, "belief", property(belief))
    network.learn(np.zeros(6), 1.0)
    assert not reads
    assert network.mean.shape == (41,)
    assert reads == [network._state]
