"""The engine against the reference, pairwise: every rule, every form of the belief, every extra."""

from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_array, random_array

from onepass import BayesianPerceptron, PiecewiseLinear
from onepass.activations import NAMES

RULES: list[dict[str, Any]] = [
    *[{"activation": name, "noise": 0.1, "update": "kalman"} for name in NAMES if name != "exp"],
    *[{"activation": name, "noise": 0.1, "update": "kalman", "moments": "paper"} for name in ("sigmoid", "tanh")],
    *[{"activation": name, "noise": 0.1} for name in ("relu", "leaky_relu", "linear", "hard_tanh", "relu6")],
    {"activation": PiecewiseLinear([-1.0, 0.5, 2.0], [-1.0, 0.3], 0.2), "noise": 0.1},
    *[{"activation": name} for name in ("sigmoid", "probit", "step", "exp")],
    *[{"activation": name, "update": "kalman"} for name in ("sigmoid", "probit", "step", "exp")],
    {"activation": "hard_sigmoid", "observation": "bernoulli"},
    {"activation": "softplus", "observation": "poisson"},
    {"activation": "linear", "noise": "learn"},
    {"activation": "relu", "noise": "learn", "noise_window": 20},
    {"activation": "gelu", "noise": "learn"},
]
FORMS: list[dict[str, Any]] = [
    {"kernel": "rows"},
    {"kernel": "blocks"},
    {"covariance": "diagonal"},
]
EXTRAS: list[dict[str, Any]] = [
    {},
    {"forgetting": 0.97},
    {"process_noise": 0.01},
    {"forgetting": 0.97, "process_noise": 0.01},
]


def problem(rule: dict[str, Any], n: int = 150, d: int = 4) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(7)
    X = rng.normal(size=(n, d))
    a = X @ rng.normal(size=d) * 0.7
    model = BayesianPerceptron(d, **rule)
    kind = type(model.observation).__name__
    if rule.get("activation") == "step":  # labels without noise, as a step has them; others leave nothing to compare
        return X, (a > 0).astype(float)
    if kind == "Bernoulli":
        return X, (rng.random(n) < 1 / (1 + np.exp(-a))).astype(float)
    if kind == "Poisson":
        return X, rng.poisson(np.exp(np.minimum(a, 3))).astype(float)
    return X, model.activation(a) + rng.normal(0, 0.3, n)


def assert_same(ours: BayesianPerceptron, reference: BayesianPerceptron) -> None:
    scale = np.abs(reference.mean).max()
    np.testing.assert_allclose(ours.mean, reference.mean, rtol=1e-10, atol=1e-10 * scale)
    np.testing.assert_allclose(ours.cov, reference.cov, rtol=1e-10, atol=1e-10 * np.abs(reference.cov).max())
    assert ours.log_evidence == pytest.approx(reference.log_evidence, rel=1e-10)
    assert ours.n_seen == reference.n_seen
    np.testing.assert_allclose(
        ours.observation.__dict__.get("noise", 0), reference.observation.__dict__.get("noise", 0)
    )


@pytest.mark.parametrize("extra", EXTRAS, ids=str)
@pytest.mark.parametrize("form", FORMS, ids=str)
@pytest.mark.parametrize("rule", RULES, ids=str)
def test_engine_learns_what_the_reference_learns(
    rule: dict[str, Any], form: dict[str, Any], extra: dict[str, Any]
) -> None:
    X, y = problem(rule)
    ours = BayesianPerceptron(4, **rule, **extra, **form).learn(X, y)
    reference = BayesianPerceptron(4, **rule, **extra, **{**form, "kernel": "reference"}).learn(X, y)
    assert_same(ours, reference)


@pytest.mark.parametrize("form", [FORMS[0], FORMS[2], {"kernel": "rows", "process_noise": 0.01}], ids=str)
@pytest.mark.parametrize("rule", [{}, {"activation": "relu", "noise": "learn"}], ids=str)
def test_uncertain_inputs(rule: dict[str, Any], form: dict[str, Any]) -> None:
    X, y = problem(rule)
    X_var = np.random.default_rng(1).gamma(1.0, 0.1, size=X.shape)
    ours = BayesianPerceptron(4, **rule, **form).learn(X, y, X_var=X_var)
    reference = BayesianPerceptron(4, **rule, **{**form, "kernel": "reference"}).learn(X, y, X_var=X_var)
    assert_same(ours, reference)


@pytest.mark.parametrize("extra", [*EXTRAS[:3], {"bias": False}], ids=str)
def test_sparse_rows_are_learned_as_if_dense(extra: dict[str, Any]) -> None:
    rng = np.random.default_rng(3)
    X = csr_array(random_array((200, 50), density=0.1, rng=rng))
    y = rng.integers(0, 2, 200)
    dense = BayesianPerceptron(50, covariance="diagonal", **extra).learn(X.toarray(), y)
    sparse = BayesianPerceptron(50, covariance="diagonal", **extra).learn(X, y)
    np.testing.assert_allclose(sparse.mean, dense.mean, rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(sparse.cov, dense.cov, rtol=1e-12)
    np.testing.assert_allclose(sparse.predict(X).epistemic, dense.predict(X.toarray()).epistemic, rtol=1e-12)
    full = BayesianPerceptron(50, **extra)
    np.testing.assert_allclose(full.learn(X, y).predict(X).mean, full.predict(X.toarray()).mean)


def test_sparse_rows_are_checked() -> None:
    model = BayesianPerceptron(3, covariance="diagonal")
    with pytest.raises(ValueError, match=r"shape \(n, 3\), got a sparse matrix of shape \(2, 4\)"):
        model.learn(csr_array(np.ones((2, 4))), [0, 1])
    with pytest.raises(ValueError, match="X must be finite"):
        model.learn(csr_array(np.array([[1.0, np.nan, 0.0]])), [1])
    with pytest.raises(ValueError, match="needs dense rows"):
        model.learn(csr_array(np.ones((1, 3))), [1], X_var=np.ones((1, 3)))
    assert model.n_seen == 0


@pytest.mark.parametrize("form", FORMS, ids=str)
def test_each_row_is_predicted_before_it_is_learned(form: dict[str, Any]) -> None:
    rule: dict[str, Any] = {"activation": "relu", "noise": "learn"}
    X, y = problem(rule, n=80)
    seen = BayesianPerceptron(4, **rule, **form).predict_then_learn(X, y)
    by_hand = BayesianPerceptron(4, **rule, **{**form, "kernel": "reference"})
    for i in range(80):
        one = by_hand.predict(X[i])
        np.testing.assert_allclose([part[i] for part in seen.moments], one.moments, rtol=1e-8, atol=1e-12)
        by_hand.learn(X[i], y[i])


@pytest.mark.parametrize("form", [*FORMS, {"kernel": "auto"}], ids=str)
@pytest.mark.parametrize("rule", [{}, {"activation": "exp"}, {"activation": "relu", "noise": 0.1}], ids=str)
def test_row_by_row_is_the_same(rule: dict[str, Any], form: dict[str, Any]) -> None:
    X, y = problem(rule)
    whole = BayesianPerceptron(4, **rule, **form).learn(X, y)
    rows = BayesianPerceptron(4, **rule, **form)
    for x, target in zip(X, y, strict=True):
        rows.learn(x, float(target))
    np.testing.assert_allclose(rows.mean, whole.mean, rtol=1e-11, atol=1e-13)
    np.testing.assert_allclose(rows.cov, whole.cov, rtol=1e-10, atol=1e-13)


def test_one_row_at_a_time_is_checked_like_many() -> None:
    model = BayesianPerceptron(2)
    model.learn(np.array([1.0, 2.0]), 1.0)
    mean = model.mean
    for x, y, words in [
        (np.array([1.0, np.nan]), 1.0, "X must be finite"),
        (np.array([1.0, 2.0]), np.nan, "y must be finite"),
        (np.array([1.0, 2.0]), 0.5, "labels 0 and 1"),
        (np.array([1.0, 2.0, 3.0]), 1.0, "X must have shape"),
        (np.array([1e200, 1e200]), 1.0, "overflow"),
    ]:
        with pytest.raises(ValueError, match=words):
            model.learn(x, y)
    np.testing.assert_array_equal(model.mean, mean)
    model.learn(np.array([1.0, 2.0], dtype=np.float32), True)
    model.learn(np.arange(4.0)[::2], np.int64(0))
    model.learn([1, 2], 1)
    assert model.n_seen == 4


@pytest.mark.parametrize("form", FORMS, ids=str)
def test_an_overflow_in_the_middle_leaves_all_as_it_was(form: dict[str, Any]) -> None:
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(200, 3)), rng.normal(size=200)
    model = BayesianPerceptron(3, "linear", **form).learn(X, y)
    mean, cov, evidence = model.mean, model.cov, model.log_evidence
    X[150] = 1e200
    with pytest.raises(ValueError, match="Nothing was learned"):
        model.learn(X, y)
    np.testing.assert_array_equal(model.mean, mean)
    np.testing.assert_array_equal(model.cov, cov)
    assert model.log_evidence == evidence
    model.learn(X[0], y[0])
    assert model.n_seen == 201


@pytest.mark.parametrize("form", FORMS, ids=str)
def test_float32_is_float64_to_its_digits(form: dict[str, Any]) -> None:
    X, y = problem({})
    single = BayesianPerceptron(4, dtype="float32", **form).learn(X, y)
    double = BayesianPerceptron(4, **form).learn(X, y)
    assert single.mean.dtype == single.cov.dtype == np.float32
    np.testing.assert_allclose(single.mean, double.mean, atol=1e-4)
    np.testing.assert_allclose(single.cov, double.cov, atol=1e-4)
    np.testing.assert_allclose(single.predict(X).mean, double.predict(X).mean, atol=1e-4)


@pytest.mark.parametrize("rule", [{}, {"activation": "relu", "noise": 0.1}, {"process_noise": 1e-3}], ids=str)
def test_large_beliefs_are_the_same_however_their_rows_come(rule: dict[str, Any]) -> None:
    """Blocks, few rows, single rows and uncertain inputs in turn: the belief changes its form on the way."""
    rng = np.random.default_rng(2)
    X = rng.normal(size=(120, 160)) / 10
    y = (X[:, 0] > 0).astype(float)
    X_var = np.full((5, 160), 1e-3)
    models = [BayesianPerceptron(160, **rule, kernel=kernel) for kernel in ("auto", "reference")]
    for model in models:
        model.learn(X[:70], y[:70])
        model.learn(X[70], y[70])
        model.learn(X[71:75], y[71:75])
        model.learn(X[75:80], y[75:80], X_var=X_var)
        model.learn(X[80:], y[80:])
    assert_same(*models)
