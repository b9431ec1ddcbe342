"""Exported models against the library, on many random rows: every covariance, activation and target."""

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import onepass
from onepass._typing import FloatArray
from onepass.activations import NAMES
from onepass.likelihoods import named
from onepass.models.mixture import with_drift
from tests.helpers.exported import difference, numpy_module, predict_by_c, predict_by_onnx

N_ROWS = 100_000  # of which the quick tests take a part
CLOSE = 1e-12
LABELS = ("bernoulli", "categorical")
FORMS = ("full", "layer", "neuron", "diagonal", "kronecker", ("kronecker", "full"))
RNG = np.random.default_rng(0)
X, WEIGHTS = RNG.normal(size=(300, 4)), np.array([1.0, -2.0, 0.5, 0.0])
ALL_ROWS = 2.0 * RNG.normal(size=(N_ROWS, 4))
ROWS = ALL_ROWS[:5000]
all_and_some = pytest.mark.parametrize("rows", [ROWS, pytest.param(ALL_ROWS, marks=pytest.mark.slow)], ids=len)


def expected(model: Any, rows: FloatArray = ROWS) -> tuple[FloatArray, FloatArray]:
    """Mean and standard deviation of the library: of new targets, or of the probabilities of labels."""
    seen = model.predict(rows)
    return seen.mean, np.sqrt(seen.epistemic if model.observation.is_label else seen.var)


@cache
def perceptron(activation: str, **options: Any) -> onepass.BayesianPerceptron:
    a = X @ WEIGHTS
    if activation in ("sigmoid", "probit", "step"):
        return onepass.BayesianPerceptron(4, activation, **options).learn(X[:60], a[:60] > 0.0)
    if activation == "exp":
        return onepass.BayesianPerceptron(4, activation, **options).learn(X, RNG.poisson(np.exp(np.clip(a, -3, 2))))
    return onepass.BayesianPerceptron(4, activation, noise=0.05, **options).learn(X, np.tanh(a))


def targets(observation: str, n_outputs: int) -> FloatArray:
    a = X @ WEIGHTS
    if named(observation).is_numeric:
        return np.column_stack([np.sin(a), np.cos(a)])[:, :n_outputs]
    if observation == "bernoulli":
        return np.asarray(a > 0.0, dtype=np.float64)
    if observation == "categorical":
        return np.asarray(np.clip(np.floor((a + 3.0) / 6.0 * n_outputs), 0, n_outputs - 1))
    return np.asarray(RNG.poisson(np.exp(np.clip(a, -3, 2))), dtype=np.float64)


@cache
def network(observation: str = "gaussian", n_outputs: int = 1, **options: Any) -> onepass.BayesianNetwork:
    given = {"hidden": (6,), "activation": "relu", **options}
    net = onepass.BayesianNetwork(4, n_outputs=n_outputs, observation=observation, **given)
    return net.learn(X, targets(observation, n_outputs))


@all_and_some
@pytest.mark.parametrize("activation", NAMES)
def test_a_perceptron_in_numpy_and_c_is_that_of_the_library(activation: str, rows: FloatArray, tmp_path: Path) -> None:
    model = perceptron(activation)
    assert max(difference(numpy_module(model)["predict"](rows), expected(model, rows))) < CLOSE
    assert max(difference(predict_by_c(model, rows, tmp_path), expected(model, rows))) < CLOSE


@all_and_some
@pytest.mark.parametrize("activation", NAMES)
def test_a_perceptron_in_onnx_is_that_of_the_library(activation: str, rows: FloatArray) -> None:
    model = perceptron(activation)
    assert max(difference(predict_by_onnx(model, rows), expected(model, rows))) < 1e-7
    single = predict_by_onnx(model, rows, "float32")
    for own, true in zip(single, expected(model, rows), strict=True):  # tails are lost in single precision, not digits
        np.testing.assert_allclose(own[:, 0], true, rtol=1e-5, atol=2e-4 if activation == "step" else 1e-5)


@all_and_some
@pytest.mark.parametrize("n_outputs", [1, 2])
@pytest.mark.parametrize("covariance", FORMS)
def test_a_network_in_numpy_c_and_onnx_is_that_of_the_library(
    covariance: Any, n_outputs: int, rows: FloatArray, tmp_path: Path
) -> None:
    model = network(n_outputs=n_outputs, covariance=covariance)
    true = expected(model, rows)
    assert max(difference(numpy_module(model)["predict"](rows), true)) < CLOSE
    assert max(difference(predict_by_c(model, rows, tmp_path), true)) < CLOSE
    assert max(difference(predict_by_onnx(model, rows), true)) < 1e-11
    assert max(difference(predict_by_onnx(model, rows, "float32"), true)) < 1e-5


@all_and_some
def test_a_low_rank_network_agrees_as_far_as_the_differences_of_the_library_are_right(
    rows: FloatArray, tmp_path: Path
) -> None:
    """Its covariance is a difference, which loses digits; exported files have a root of it, also in float32."""
    model = network(n_outputs=2, covariance="low_rank", hidden=(7, 5))
    for found in (numpy_module(model)["predict"](rows), predict_by_c(model, rows, tmp_path)):
        assert max(difference(found, expected(model, rows))) < 1e-10
    assert max(difference(predict_by_onnx(model, rows), expected(model, rows))) < 1e-10
    for own, true in zip(predict_by_onnx(model, rows, "float32"), expected(model, rows), strict=True):
        np.testing.assert_allclose(own, true, rtol=1e-5, atol=1e-5)


@all_and_some
@pytest.mark.parametrize(
    ("observation", "n_outputs", "options"),
    [
        ("heteroscedastic", 1, {}),
        ("gaussian", 1, {"hidden": (), "covariance": "full"}),
        ("gaussian", 1, {"hidden": (5, 4), "activation": "tanh"}),
        ("bernoulli", 1, {}),
        ("poisson", 1, {}),
        ("negative_binomial", 1, {}),
        ("categorical", 2, {}),
    ],
)
def test_all_targets_of_networks(
    observation: str, n_outputs: int, options: dict[str, Any], rows: FloatArray, tmp_path: Path
) -> None:
    model = network(observation, n_outputs, **options)
    names = numpy_module(model)
    found = names["predict_proba"](rows, True) if observation == "categorical" else names["predict"](rows)
    true = expected(model, rows)
    assert max(difference(found, true)) < CLOSE
    assert max(difference(predict_by_c(model, rows, tmp_path), true)) < CLOSE
    assert max(difference(predict_by_onnx(model, rows), true)) < 1e-10
    for own, right in zip(predict_by_onnx(model, rows, "float32"), true, strict=True):
        np.testing.assert_allclose(own.reshape(right.shape), right, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("rows", [ROWS[:1000], pytest.param(ALL_ROWS, marks=pytest.mark.slow)], ids=len)
@pytest.mark.parametrize("options", [{"hidden": (), "covariance": "neuron"}, {"covariance": "full"}])
def test_probabilities_of_several_classes_agree_as_well_as_the_integrals_do(
    options: dict[str, Any], rows: FloatArray, tmp_path: Path
) -> None:
    model = network("categorical", 4, **options)
    rows = rows / 2.0
    true_mean, true_std = expected(model, rows)
    for mean, std in (
        numpy_module(model)["predict_proba"](rows, True),
        predict_by_c(model, rows, tmp_path),
        predict_by_onnx(model, rows),
        predict_by_onnx(model, rows, "float32"),
    ):
        np.testing.assert_allclose(mean, true_mean, atol=2e-5)
        np.testing.assert_allclose(std, true_std, atol=2e-5)


def test_a_committee_is_exported_as_the_mixture_that_it_is(tmp_path: Path) -> None:
    model = onepass.BayesianCommittee(4, (5,), members=3).learn(X, np.sin(X @ WEIGHTS))
    rows = ROWS
    assert max(difference(numpy_module(model)["predict"](rows), expected(model, rows))) < CLOSE
    assert max(difference(predict_by_c(model, rows, tmp_path), expected(model, rows))) < CLOSE
    assert "predict_interval" not in numpy_module(model)


@pytest.mark.parametrize("moves", [{"drift": 0.1}, {"forgetting": 0.5}, {"drift": "auto"}], ids=str)
def test_what_is_exported_is_what_is_predicted_of_the_next_row(moves: dict[str, Any]) -> None:
    models: list[Any] = [
        with_drift(onepass.BayesianPerceptron, 4, "linear", noise=0.1, process_noise=0.1, **moves),
        *(
            with_drift(onepass.BayesianNetwork, 4, (3,), covariance=form, **moves)
            for form in ("full", "kronecker", "diagonal")
        ),
    ]
    for model in models:
        model.learn(X[:40], X[:40] @ WEIGHTS)
        while model.predict(ROWS[0]).var == model.predict(ROWS[0], rows_ahead=0).var:  # until a step falls due
            model.learn(X[0], X[0] @ WEIGHTS)
        assert max(difference(numpy_module(model)["predict"](ROWS), expected(model))) < CLOSE


def test_hypotheses_of_drift_are_exported_as_the_mixture_that_they_are() -> None:
    model = onepass.Mixture.over_drift(onepass.BayesianPerceptron, 4, "linear", noise=0.1).learn(X, X @ WEIGHTS)
    assert max(difference(numpy_module(model)["predict"](ROWS), expected(model))) < CLOSE


@pytest.mark.parametrize("covariance", ["full", "diagonal"])
@pytest.mark.parametrize("activation", ["linear", "relu", "sigmoid"])
def test_regressors_and_classifiers_in_numpy(activation: str, covariance: str) -> None:
    y = X @ WEIGHTS * 30.0 + 7.0 + RNG.normal(size=len(X))
    if activation == "sigmoid":
        model: Any = onepass.BayesianPerceptronClassifier(standardize=True, covariance=covariance)
        model.fit(5.0 * X + 3.0, np.where(y > 0.0, "yes", "no"))
        names, rows = numpy_module(model), 5.0 * ROWS
        assert max(difference(names["predict_proba"](rows, True), model.predict_proba(rows, return_std=True))) < CLOSE
        assert (names["predict"](rows) == model.predict(rows)).all()
    else:
        model = onepass.BayesianPerceptronRegressor(activation, covariance=covariance).fit(5.0 * X + 3.0, y)
        names, rows = numpy_module(model), 5.0 * ROWS
        assert max(difference(names["predict"](rows), model.predict(rows, return_std=True))) < CLOSE
    low, high = model.predict_interval(rows, level=0.8)
    found = names["predict_interval"](rows, 0.8)
    np.testing.assert_allclose(found, (low, high), rtol=1e-10, atol=1e-10)


def test_intervals_of_networks_for_labels() -> None:
    model = onepass.BayesianMLPClassifier((6,), passes=1).fit(X, np.where(X @ WEIGHTS > 0.0, "yes", "no"))
    found = numpy_module(model)["predict_interval"](ROWS, 0.8)
    np.testing.assert_allclose(found, model.predict_interval(ROWS, level=0.8), rtol=1e-8, atol=1e-10)


def test_several_outputs_priors_and_members() -> None:
    y = np.column_stack([X @ WEIGHTS, np.sin(X @ WEIGHTS)])
    for model in (
        onepass.BayesianPerceptronRegressor(prior_scale="auto").fit(X, y),
        onepass.BayesianMLPRegressor((6,), members=2).fit(X, y),
    ):
        assert max(difference(numpy_module(model)["predict"](ROWS), model.predict(ROWS, return_std=True))) < CLOSE
    many = onepass.BayesianMLPClassifier((6,), passes=1, shuffle=False).fit(X, np.clip(np.round(X @ WEIGHTS), -1, 1))
    found = numpy_module(many)["predict_proba"](ROWS[:2000], True)
    # Far from the data, where the logits are uncertain by tens, the library's own integrals are right to some 1e-4.
    np.testing.assert_allclose(found, many.predict_proba(ROWS[:2000], return_std=True), atol=1e-3)
    np.testing.assert_allclose(numpy_module(many)["predict_proba"](X), many.predict_proba(X), atol=5e-6)


def test_missing_numbers_are_as_uncertain_as_their_columns(tmp_path: Path) -> None:
    holes = np.where(RNG.random(X.shape) < 0.2, np.nan, X)
    rows = np.where(RNG.random((5000, 4)) < 0.3, np.nan, ROWS[:5000])
    model = onepass.BayesianPerceptronRegressor(missing="mean").fit(holes, X @ WEIGHTS)
    true = model.predict(rows, return_std=True)
    assert max(difference(numpy_module(model)["predict"](rows), true)) < CLOSE
    assert max(difference(predict_by_c(model, rows, tmp_path), true)) < CLOSE


def test_intervals_are_left_out_where_they_have_no_closed_form() -> None:
    vague = onepass.BayesianPerceptron(4, "linear", noise="learn").learn(X[:5], X[:5, 0])
    assert "predict_interval" not in numpy_module(vague)
    assert "predict_interval" not in numpy_module(perceptron("exp"))
