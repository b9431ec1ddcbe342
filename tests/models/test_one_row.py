"""Rows that come one per call take a compiled path of their own: it must not be another model."""

import copy
import pickle
import sys
from typing import Any

import numpy as np
import pytest

from onepass import BayesianNetwork, BayesianPerceptron, Mixture
from onepass._typing import FloatArray

N, D = 50, 3
NETWORKS: dict[str, tuple[str, dict[str, Any]]] = {
    "numbers": ("number", {}),
    "numbers of a fixed noise": ("number", {"noise": 0.1}),
    "drift": ("number", {"drift": 0.02}),
    "forgetting": ("number", {"forgetting": 0.9}),
    "outliers": ("number", {"outliers": 0.05}),
    "neurons": ("number", {"covariance": "neuron"}),
    "layers": ("number", {"covariance": "layer", "hidden": (4, 3)}),
    "pairs": ("pair", {"n_outputs": 2, "drift": 0.01}),
    "varying noise": ("number", {"observation": "heteroscedastic"}),
    "labels": ("label", {"observation": "bernoulli", "drift": 0.01}),
    "counts": ("count", {"observation": "poisson"}),
    "dispersed counts": ("count", {"observation": "negative_binomial"}),
    "classes": ("class", {"observation": "categorical", "n_outputs": 3}),
}


def data(kind: str) -> tuple[FloatArray, Any]:
    rng = np.random.default_rng(3)
    X = rng.normal(size=(N, D))
    signal = np.sin(X[:, 0]) + 0.5 * X[:, 1] + 0.1 * rng.normal(size=N)
    pair = np.stack([signal, -X[:, 2]], axis=1)
    pair[::7, 1] = np.nan
    targets = {
        "number": signal,
        "label": (signal > 0.0).astype(float),
        "count": rng.poisson(np.exp(0.5 * signal)).astype(float),
        "class": np.clip(np.round(signal + 1.0), 0, 2),
        "pair": pair,
    }
    return X, targets[kind]


def network(**options: Any) -> BayesianNetwork:
    return BayesianNetwork(D, **{"hidden": (5,), "covariance": "full", **options})


@pytest.mark.parametrize("name", NETWORKS)
def test_rows_one_per_call_are_learned_and_predicted_as_in_one_call(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    kind, options = NETWORKS[name]
    X, y = data(kind)
    together = network(**options).learn(X[:-1], y[:-1])
    several = [part[0] for part in together.predict(X[-1:]).moments]
    one = network(**options)
    with monkeypatch.context() as patched:
        patched.setattr(BayesianNetwork, "_passes", None)  # the long way
        patched.setattr(BayesianNetwork, "_records", None)
        for x, target in zip(X[:-1], y[:-1], strict=True):
            one.predict(x)
            one.learn(x, target)
        alone = one.predict(X[-1])
    np.testing.assert_allclose(one.mean, together.mean, rtol=1e-12, atol=1e-13)
    for own, other in zip(one.weight_variances, together.weight_variances, strict=True):
        np.testing.assert_allclose(own, other, rtol=1e-12)
    np.testing.assert_allclose(one.noise_var, together.noise_var, rtol=1e-12)
    assert one.log_evidence == pytest.approx(together.log_evidence, rel=1e-12)
    assert one.n_seen == together.n_seen == N - 1
    assert one.outliers_ == pytest.approx(together.outliers_, rel=1e-12)
    for single, many in zip(alone.moments, several, strict=True):
        np.testing.assert_allclose(single, many, rtol=1e-11, atol=1e-13)


@pytest.mark.parametrize("observation", ["gaussian", "bernoulli"])
def test_a_mixture_over_drift_learns_rows_one_per_call_as_in_one(observation: str) -> None:
    X, y = data("number" if observation == "gaussian" else "label")
    together, one = (Mixture.over_drift(network, observation=observation) for _ in range(2))
    together.learn(X, y)
    for x, target in zip(X, y, strict=True):
        assert one._one_row is not None
        seen = one._one_row.predict(x)  # of a step of forgetting, too, which comes before some of the rows
        assert seen is not None
        for single, many in zip(one.predict(x).moments, one.predict(x[None]).moments, strict=True):
            np.testing.assert_allclose(single, many[0], rtol=1e-11, atol=1e-13)
        assert one._one_row(x, target)
    np.testing.assert_allclose(one.weights, together.weights, rtol=1e-10)
    assert one.log_evidence == pytest.approx(together.log_evidence, rel=1e-11)
    for own, other in zip(one.members, together.members, strict=True):
        np.testing.assert_allclose(own.mean, other.mean, rtol=1e-11, atol=1e-12)
        assert own.log_evidence == pytest.approx(other.log_evidence, rel=1e-11)


@pytest.mark.parametrize("options", [{}, {"drift": 0.1}, {"forgetting": 0.8}])
def test_a_row_that_overflows_changes_nothing(options: dict[str, Any]) -> None:
    X, y = data("number")
    model = network(**options)
    for x, target in zip(X[:24], y[:24], strict=True):  # a step of forgetting comes next
        model.learn(x, target)
    before = (model.mean, model.cov, model.noise_var, model.log_evidence, model.n_seen)
    with pytest.raises(ValueError, match="overflow"):
        model.learn(np.full(D, 1e200), 1.0)
    after = (model.mean, model.cov, model.noise_var, model.log_evidence, model.n_seen)
    for old, new in zip(before, after, strict=True):
        np.testing.assert_array_equal(new, old)
    assert np.isfinite(model.learn(X[24], y[24]).mean).all()


def test_a_row_that_one_member_can_not_learn_is_learned_by_none() -> None:
    X, y = data("number")
    mixture = Mixture.over_drift(network)
    for x, target in zip(X, y, strict=True):
        mixture.learn(x, target)
    mixture.members[3]._state.belief.mean[:] = 1e200
    before = [(member.mean, member.cov, member.n_seen, member.log_evidence) for member in mixture.members]
    weights, one_row = mixture.weights, mixture._one_row
    assert one_row is not None
    assert not one_row(X[0], y[0])
    for member, old in zip(mixture.members, before, strict=True):
        for own, was in zip((member.mean, member.cov, member.n_seen, member.log_evidence), old, strict=True):
            np.testing.assert_array_equal(own, was)
    np.testing.assert_array_equal(mixture.weights, weights)


@pytest.mark.parametrize(
    ("observation", "wrong", "error"),
    [
        ("gaussian", np.nan, "y must be finite"),
        ("gaussian", np.inf, "y must be finite"),
        ("gaussian", "one", "y must hold real numbers"),
        ("gaussian", None, "y must hold real numbers"),
        ("gaussian", np.ones(2), "y must have shape"),
        ("bernoulli", 0.5, "labels 0 and 1"),
        ("poisson", -1.0, "counts 0, 1, 2"),
        ("categorical", 3.0, "labels 0 to 2"),
        ("categorical", 0.5, "labels 0 to 2"),
    ],
)
def test_a_wrong_target_is_refused_in_the_same_words(observation: str, wrong: Any, error: str) -> None:
    model = network(observation=observation, n_outputs=3 if observation == "categorical" else 1)
    with pytest.raises((TypeError, ValueError), match=error):
        model.learn(np.ones(D), wrong)
    assert model.n_seen == 0


@pytest.mark.parametrize("x", [np.ones(D + 1), np.array([1.0, np.nan, 0.0]), np.array([1.0, np.inf, 0.0])])
def test_a_wrong_row_is_refused(x: FloatArray) -> None:
    model = network()
    for call in (lambda: model.learn(x, 1.0), lambda: model.predict(x)):
        with pytest.raises(ValueError, match="X must"):
            call()
    assert model.n_seen == 0


def test_a_copy_learns_by_itself() -> None:
    X, y = data("number")
    model = network(forgetting=0.9)
    for x, target in zip(X[:20], y[:20], strict=True):
        model.learn(x, target)
    for twin in (copy.deepcopy(model), pickle.loads(pickle.dumps(model)), model.snapshot()):
        mean, seen = model.mean, model.n_seen
        np.testing.assert_array_equal(twin.predict(X[20]).moments, model.predict(X[20]).moments)
        twin.learn(X[20], y[20])
        np.testing.assert_array_equal(model.mean, mean)
        assert (model.n_seen, twin.n_seen) == (seen, seen + 1)
        assert (twin.mean != mean).any()


def frames(call: Any) -> int:
    """How many functions written in Python a call runs through."""
    seen = []
    sys.setprofile(lambda frame, event, _: seen.append(frame) if event == "call" else None)
    try:
        call()
    finally:
        sys.setprofile(None)
    return len(seen) - 1  # the lambda itself is not one of them


@pytest.mark.parametrize(("make", "learning", "predicting"), [(network, 4, 14), (lambda: BayesianPerceptron(D), 1, 6)])
def test_next_to_nothing_stands_between_a_row_and_the_kernel(make: Any, learning: int, predicting: int) -> None:
    model, x = make(), np.ones(D)
    model.learn(x, 1.0)
    model.predict(x)
    assert frames(lambda: model.learn(x, 1.0)) <= learning
    assert frames(lambda: model.predict(x)) <= predicting


@pytest.mark.parametrize("bad", [np.inf, -np.inf, np.nan])
@pytest.mark.parametrize(
    "model",
    [
        BayesianPerceptron(D, "linear", noise="learn"),
        BayesianPerceptron(D, "linear", noise=0.1),
        BayesianPerceptron(D, "linear", covariance="diagonal"),
        BayesianPerceptron(D),
        Mixture.over_drift(BayesianPerceptron, D, "linear", noise="learn"),
        BayesianNetwork(D, (4,)),
    ],
    ids=repr,
)
def test_an_input_that_is_not_finite_is_refused_however_many_rows_were_learned(model: Any, bad: float) -> None:
    rng = np.random.default_rng(0)
    model = copy.deepcopy(model)
    for x in rng.normal(size=(100, D)):
        model.learn(x, float(x.sum() > 0.0))
    before = pickle.dumps(model)
    with pytest.raises(ValueError, match=r"finite|NaN|infinity"):
        model.learn(np.array([bad, *np.zeros(D - 1)]), 1.0)
    assert pickle.dumps(model) == before
