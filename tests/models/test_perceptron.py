import copy
import math
import pickle
import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy.special import expit, ndtr
from scipy.stats import multivariate_normal

from onepass import BayesianPerceptron, PiecewiseLinear, Quadrature
from onepass.activations import NAMES, Moments
from onepass.likelihoods import Likelihood, MomentMatch

PAPER: dict[str, Any] = {"observation": "gaussian", "update": "kalman", "moments": "paper"}


def textbook(X: np.ndarray, y: np.ndarray, mean: np.ndarray, cov: np.ndarray, noise: float, sigmoid: bool) -> Any:
    """Algorithms 1 and 2 written straight from the page, for the sigmoid and the ReLU."""
    for x, target in zip(X, y, strict=True):
        mu, var = x @ mean, x @ cov @ x
        if sigmoid:
            lam = math.sqrt(math.pi / 8)
            t = math.sqrt(1 + lam**2 * var)
            mu_y = expit(mu / t)
            var_y = mu_y * (1 - mu_y) * (1 - 1 / t)
            cov_ya = lam * var / t * math.exp(-0.5 * (lam * mu / t) ** 2) / math.sqrt(2 * math.pi)
        else:
            phi, p_a = (
                ndtr(mu / math.sqrt(var)),
                var * math.exp(-0.5 * mu**2 / var) / math.sqrt(2 * math.pi * var),
            )
            mu_y = mu * phi + p_a
            cov_ya = (mu**2 + var) * phi + mu * p_a - mu_y * mu
            var_y = (mu**2 + var) * phi + mu * p_a - mu_y**2
        k = cov_ya / (var_y + noise)
        mu_i, var_i = mu + k * (target - mu_y), var - k * cov_ya
        gain = cov @ x / var
        mean, cov = mean + gain * (mu_i - mu), cov + (var_i - var) * np.outer(gain, gain)
    return mean, cov


def test_sequence_on_the_classification_task() -> None:
    rng = np.random.default_rng(1)
    X = rng.uniform(-3, 3, size=(25, 2))
    y = (X.sum(axis=1) > 0).astype(float)
    bp = BayesianPerceptron(2, "sigmoid", bias=False, mean=[-1.0, 0.0], cov=np.eye(2), noise=0.01, **PAPER)
    bp.learn(X, y)
    mean, cov = textbook(X, y, np.array([-1.0, 0.0]), np.eye(2), 0.01, sigmoid=True)
    np.testing.assert_allclose(bp.mean, mean, rtol=1e-9)
    np.testing.assert_allclose(bp.cov, cov, rtol=1e-9)


def test_sequence_on_the_regression_task() -> None:
    rng = np.random.default_rng(2)
    X = rng.uniform(-4, 2, size=(20, 1))
    y = np.log1p(np.exp(2 * X[:, 0] + 1)) + rng.normal(0, 0.1, 20)
    bp = BayesianPerceptron(1, "relu", noise=0.01, **PAPER).learn(X, y)
    mean, cov = textbook(np.column_stack([np.ones(20), X]), y, np.zeros(2), np.eye(2), 0.01, sigmoid=False)
    np.testing.assert_allclose(bp.mean, mean, rtol=1e-9)
    np.testing.assert_allclose(bp.cov, cov, rtol=1e-9)


def test_sequence_on_the_grid_of_the_comparison() -> None:
    """One scalar weight and x = 1: mean and cov are then mu_i and sigma_i² of (backward_updateda)."""
    for mu in (-3.0, -0.7, 0.0, 2.2):
        for var in (0.2, 1.0, 2.0):
            y = float(mu > 0)
            bp = BayesianPerceptron(1, bias=False, mean=[mu], cov=[[var]], noise=0.01, **PAPER).learn([1.0], y)
            mean, cov = textbook(np.ones((1, 1)), np.array([y]), np.array([mu]), np.array([[var]]), 0.01, sigmoid=True)
            np.testing.assert_allclose([bp.mean, bp.cov[0]], [mean, cov[0]], rtol=1e-12)


def test_linear_activation_is_bayesian_linear_regression_in_any_order() -> None:
    rng = np.random.default_rng(3)
    X, noise = rng.normal(size=(40, 3)), 0.3
    y = X @ [1.0, -2.0, 0.5] + 0.7 + rng.normal(0, noise**0.5, 40)
    design = np.column_stack([np.ones(40), X])
    precision = np.eye(4) + design.T @ design / noise
    cov = np.linalg.inv(precision)
    mean = cov @ (design.T @ y / noise)
    for seed in range(3):
        order = np.random.default_rng(seed).permutation(40)
        bp = BayesianPerceptron(3, "linear", noise=noise, **PAPER).learn(X[order], y[order])
        np.testing.assert_allclose(bp.mean, mean, atol=1e-10)
        np.testing.assert_allclose(bp.cov, cov, atol=1e-10)


def test_prediction_is_the_forward_pass() -> None:
    bp = BayesianPerceptron(2, "relu", mean=[0.5, 1.0, -1.0], cov=np.diag([0.1, 0.2, 0.3]), noise=0.04)
    one = bp.predict([2.0, 1.0])
    assert one.pre_mean == pytest.approx(0.5 + 2.0 - 1.0)
    assert one.pre_var == pytest.approx(0.1 + 4 * 0.2 + 0.3)
    assert one.aleatoric == 0.04
    z = one.pre_mean / math.sqrt(one.pre_var)
    density = math.exp(-0.5 * z**2) / math.sqrt(2 * math.pi)
    assert one.mean == pytest.approx(one.pre_mean * ndtr(z) + math.sqrt(one.pre_var) * density)
    assert isinstance(one.mean, float)
    many = bp.predict([[2.0, 1.0], [0.0, 0.0]])
    assert [part.shape for part in many.moments] == [(2,)] * 5
    assert tuple(part[0] for part in many.moments) == pytest.approx(tuple(one.moments))


ROWS = hnp.arrays(np.float64, (6, 2), elements=st.floats(-1e3, 1e3))
TARGETS = hnp.arrays(np.float64, (6,), elements=st.floats(-1e2, 1e2))
PAIRS = [
    *[(name, {"observation": "gaussian"}) for name in NAMES if name != "exp"],
    *[(name, {"observation": "bernoulli"}) for name in ("sigmoid", "probit", "step", "hard_sigmoid")],
    ("exp", {}),
]


def suited(y: Any, options: dict[str, Any]) -> Any:
    """Targets that the observation can be."""
    if options.get("observation") == "gaussian":
        return y
    return (y > 0).astype(float) if "observation" in options else np.floor(np.abs(y))


@pytest.mark.parametrize("moments", ["exact", "paper"])
@pytest.mark.parametrize("update", ["auto", "kalman"])
@pytest.mark.parametrize(("name", "options"), PAIRS)
@settings(max_examples=15)
@given(X=ROWS, y=TARGETS, noise=st.floats(0, 10))
def test_state_stays_finite_symmetric_and_semidefinite(
    name: str, options: dict[str, Any], update: str, moments: str, X: Any, y: Any, noise: float
) -> None:
    if options.get("observation") == "gaussian":
        options = {**options, "noise": noise}
    bp = BayesianPerceptron(2, name, update=update, moments=moments, **options)
    variances = np.diag(bp.cov)
    if name == "exp":
        X = X / 1e3  # rates beyond e^300 are not counts
    for x, target in zip(X, suited(y, options), strict=True):
        bp.learn(x, target)
        cov = bp.cov
        assert np.isfinite(bp.mean).all()
        assert np.isfinite(cov).all()
        np.testing.assert_array_equal(cov, cov.T)
        assert np.linalg.eigvalsh(cov)[0] >= -1e-13 * max(1.0, np.trace(cov))
        assert (np.diag(cov) >= 0).all()
        if bp.update == "kalman" or (
            isinstance(options.get("observation"), str) and options["observation"] != "gaussian"
        ):
            assert (np.diag(cov) <= variances * (1 + 1e-12) + 1e-300).all()
        assert bp.predict(x).epistemic >= 0
        variances = np.diag(cov)


@pytest.mark.parametrize("covariance", ["full", "diagonal"])
@pytest.mark.parametrize(("name", "options"), PAIRS)
@settings(max_examples=10)
@given(X=ROWS, y=TARGETS, cut=st.integers(1, 5))
def test_learning_in_any_split_gives_the_same_posterior(
    name: str, options: dict[str, Any], covariance: str, X: Any, y: Any, cut: int
) -> None:
    if options.get("observation") == "gaussian":
        options = {**options, "noise": "learn"}
    y, X = suited(y, options), X / 100

    def fresh() -> BayesianPerceptron:
        return BayesianPerceptron(2, name, covariance=covariance, forgetting=0.99, process_noise=1e-4, **options)

    whole = fresh().learn(X, y)
    split = fresh().learn(X[:cut], y[:cut]).learn(X[cut:], y[cut:])
    rows = fresh()
    for x, target in zip(X, y, strict=True):
        rows.learn(x, target)
    for other in (split, rows):
        np.testing.assert_array_equal(other.mean, whole.mean)
        np.testing.assert_array_equal(other.cov, whole.cov)
        assert other.log_evidence == whole.log_evidence
        assert other.n_seen == whole.n_seen == 6


def test_known_weights_and_zero_inputs_teach_nothing_and_break_nothing() -> None:
    for name in NAMES:
        for update in ("auto", "kalman"):
            known = BayesianPerceptron(2, name, mean=[0.1, 0.2, 0.3], cov=np.zeros((3, 3)), update=update)
            known.learn([[1.0, 2.0], [0.0, 0.0]], [1.0, 0.0])
            np.testing.assert_array_equal(known.mean, [0.1, 0.2, 0.3])
            np.testing.assert_array_equal(known.cov, 0.0)
            zero = BayesianPerceptron(2, name, bias=False, update=update).learn([0.0, 0.0], 1.0)
            np.testing.assert_array_equal(zero.mean, 0.0)
            np.testing.assert_array_equal(zero.cov, np.eye(2))


def test_two_piece_object_equals_its_name() -> None:
    X, y = [[1.0], [-2.0], [0.5]], [1.2, 0.0, 0.4]
    named = BayesianPerceptron(1, "relu").learn(X, y)
    own = BayesianPerceptron(1, PiecewiseLinear([0.0, 1.0], [0.0])).learn(X, y)
    np.testing.assert_array_equal(named.mean, own.mean)


def test_mean_is_a_copy() -> None:
    bp = BayesianPerceptron(1)
    bp.mean[0] = 99.0
    np.testing.assert_array_equal(bp.mean, 0.0)


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        ({"n_features": 0}, ValueError, "n_features.*at least 1, got 0"),
        ({"n_features": 2.0}, TypeError, "n_features"),
        ({"bias": "no"}, TypeError, "bias must be True or False, got 'no'"),
        ({"activation": "nope"}, ValueError, "activation must be one of 'sigmoid'.*'nope'"),
        ({"activation": np.sin}, TypeError, r"function without moments; pass Quadrature\(function\)"),
        ({"mean": [0.0]}, ValueError, r"mean must have shape \(3,\), got shape \(1,\)"),
        ({"mean": [0.0, 0.0, math.inf]}, ValueError, "mean must be finite, got inf at index 2"),
        ({"cov": np.eye(2)}, ValueError, r"cov must have shape \(3, 3\)"),
        ({"cov": np.eye(3) + np.eye(3, k=1)}, ValueError, "cov must be symmetric"),
        ({"cov": -np.eye(3)}, ValueError, "cov must be positive semi-definite.*-1"),
        ({"noise": -0.1}, ValueError, "noise.*not negative, got -0.1"),
        ({"noise": math.nan}, ValueError, "noise"),
        ({"noise": [1.0]}, TypeError, "noise"),
        ({"observation": "cauchy"}, ValueError, "observation must be one of 'auto', 'bernoulli', 'categorical'"),
        ({"observation": "bernoulli", "noise": 0.1}, ValueError, "noise can be given only with observation='gaussian'"),
        ({"observation": "bernoulli", "activation": "relu"}, ValueError, "between 0 and 1.*got 'relu'"),
        ({"observation": "poisson", "activation": "tanh"}, ValueError, "never negative"),
        (
            {"update": "adf", "observation": "gaussian"},
            ValueError,
            "no closed form.*Use update='kalman'.*observation='bernoulli'",
        ),
        ({"update": "adf", "moments": "paper"}, ValueError, "no closed form.*moments='exact'"),
        ({"noise": "some"}, ValueError, "noise.*or 'learn', got 'some'"),
        ({"noise": 0.1, "noise_window": 5}, ValueError, "noise_window needs noise='learn'"),
        ({"forgetting": 0.0}, ValueError, r"forgetting must be in \(0, 1\], got 0"),
        ({"forgetting": 1.1}, ValueError, "forgetting"),
        ({"process_noise": -1.0}, ValueError, "process_noise must not be negative"),
        ({"process_noise": [0.0, 1.0]}, ValueError, r"process_noise must be a number or have shape \(3,\)"),
        ({"covariance": "block"}, ValueError, "covariance must be one of 'full', 'diagonal'"),
        ({"covariance": "diagonal", "cov": np.ones((3, 3))}, ValueError, "cov must be diagonal"),
        ({"cov": [1.0, -1.0, 1.0]}, ValueError, "cov must not be negative"),
        ({"update": "magic"}, ValueError, "update must be one of"),
        ({"moments": 3}, TypeError, "moments must be one of"),
    ],
)
def test_bad_arguments(arguments: dict[str, Any], error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        BayesianPerceptron(**{"n_features": 2, **arguments})


@pytest.mark.parametrize(
    ("X", "y", "error", "words"),
    [
        ([[1.0, math.nan]], [0.0], ValueError, r"X must be finite, got nan at index \(0, 1\)"),
        ([[1.0, 2.0]], [math.inf], ValueError, "y must be finite, got inf at index 0"),
        ([[1.0, 2.0, 3.0]], [0.0], ValueError, r"X must have shape \(2,\).*got shape \(1, 3\)"),
        ([1.0], 0.0, ValueError, "X must have shape"),
        (np.zeros((2, 2, 2)), [0.0, 0.0], ValueError, "X must have shape"),
        (np.zeros((0, 2)), [], ValueError, "X is empty"),
        ([[1.0, 2.0]], [0.0, 1.0], ValueError, r"y must be shape \(1,\)"),
        ([1.0, 2.0], [0.0, 1.0], ValueError, "y must be a number"),
        ([["a", "b"]], [0.0], TypeError, "X must hold real numbers"),
        (None, 0.0, TypeError, "X must hold real numbers, got None"),
        ([1.0, 2.0], None, TypeError, "y must hold real numbers, got None"),
        ([[1.0, 2.0], [1.0]], [0.0, 1.0], ValueError, "X must have rows of one length, got 2 in row 0 and 1 in row 1"),
        (
            pd.DataFrame({"a": [1.0], "b": ["red"]}),
            [0.0],
            TypeError,
            r"got 'red' \(str\) in column 'b'; encode the column as numbers, or leave it out$",
        ),
        ([[1.0, 2.0]], [None], ValueError, "y must be finite, got nan"),
        ([[1.0, 2.0]], [object()], TypeError, "y must hold real numbers"),
        ([[1.0, 2.0]], [10**400], TypeError, "y must hold real numbers"),
        ([[1j, 2.0]], [0.0], TypeError, "X must hold real numbers"),
        ([[1e300, 1e300]], [1.0], ValueError, "overflow.*Nothing was learned"),
    ],
)
def test_bad_rows_change_nothing(X: Any, y: Any, error: type[Exception], words: str) -> None:
    bp = BayesianPerceptron(2).learn([1.0, 2.0], 1.0)
    mean, cov = bp.mean, bp.cov
    with pytest.raises(error, match=words):
        bp.learn(X, y)
    np.testing.assert_array_equal(bp.mean, mean)
    np.testing.assert_array_equal(bp.cov, cov)


def test_one_bad_row_among_many_and_none_is_learned() -> None:
    bp = BayesianPerceptron(2)
    with pytest.raises(ValueError, match=r"index \(2, 0\)"):
        bp.learn([[1.0, 2.0], [2.0, 1.0], [math.nan, 0.0]], [1.0, 0.0, 1.0])
    np.testing.assert_array_equal(bp.mean, 0.0)


@pytest.mark.parametrize("covariance", ["full", "diagonal"])
def test_huge_inputs_are_predicted_without_warnings(covariance: str) -> None:
    model = BayesianPerceptron(1, "linear", covariance=covariance).learn([[1.0]], [1.0])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = model.predict([[1e300], [1.0]])
    assert np.isfinite(found.mean).all()
    np.testing.assert_array_equal(found.aleatoric, 0.01)


def test_one_feature_in_a_flat_array_is_told_to_reshape() -> None:
    with pytest.raises(ValueError, match=r"reshape it to \(3, 1\)"):
        BayesianPerceptron(1).predict([1.0, 2.0, 3.0])


def test_labels_that_are_none_are_refused() -> None:
    bp = BayesianPerceptron(1)
    for bad in (2.0, -1.0, 0.5):
        with pytest.raises(ValueError, match=f"labels 0 and 1.*got {bad:g} at index 1"):
            bp.learn([[1.0], [2.0]], [1.0, bad])
    with pytest.raises(ValueError, match=r"counts 0, 1, 2.*got 1\.5 at index 0"):
        BayesianPerceptron(1, "exp").learn([1.0], 1.5)
    assert bp.n_seen == 0
    bp.learn([[1.0], [2.0]], [True, False])
    assert bp.n_seen == 2


def test_exact_labels_beat_the_paper_rule_by_evidence_and_calibration() -> None:
    """What the default is there for: the paper's rule takes a label for a nearly noise-free reading."""
    rng = np.random.default_rng(5)
    weights = rng.normal(size=6)
    X = rng.normal(size=(2000, 5))
    y = (rng.random(2000) < expit(weights[0] + X @ weights[1:])).astype(float)
    exact = BayesianPerceptron(5).learn(X, y)
    paper = BayesianPerceptron(5, noise=0.01, **PAPER).learn(X, y)
    z_exact = (exact.mean - weights) / np.sqrt(np.diag(exact.cov))
    z_paper = (paper.mean - weights) / np.sqrt(np.diag(paper.cov))
    assert np.abs(z_exact).max() < 3
    assert np.sqrt((z_paper**2).mean()) > 3


def test_noise_is_learned() -> None:
    rng = np.random.default_rng(6)
    X = rng.normal(size=(3000, 3))
    y = X @ [1.0, 2.0, -1.0] + rng.normal(0, 0.5, 3000)
    for name, update in [("linear", "adf"), ("linear", "kalman")]:
        bp = BayesianPerceptron(3, name, noise="learn", update=update).learn(X, y)
        assert bp.predict(X[0]).aleatoric == pytest.approx(0.25, rel=0.1)
    relu = BayesianPerceptron(3, "relu", noise="learn").learn(X, np.maximum(X @ [1.0, 2.0, -1.0], 0) + 0.1 * y)
    assert relu.predict(X[0]).aleatoric < 0.3
    changing = np.concatenate([y[:1500], y[1500:] + rng.normal(0, 2.0, 1500)])
    windowed = BayesianPerceptron(3, "linear", noise="learn", noise_window=200).learn(X, changing)
    assert windowed.predict(X[0]).aleatoric == pytest.approx(4.25, rel=0.25)


def test_adf_and_kalman_agree_where_the_model_is_linear() -> None:
    rng = np.random.default_rng(7)
    X, y = rng.normal(size=(30, 2)), rng.normal(size=30)
    adf = BayesianPerceptron(2, "linear", noise=0.2, update="adf").learn(X, y)
    kalman = BayesianPerceptron(2, "linear", noise=0.2, update="kalman").learn(X, y)
    np.testing.assert_allclose(adf.mean, kalman.mean, rtol=1e-10)
    np.testing.assert_allclose(adf.cov, kalman.cov, rtol=1e-9)
    assert adf.log_evidence == pytest.approx(kalman.log_evidence)


def test_log_evidence_is_the_marginal_likelihood_of_a_linear_model() -> None:
    rng = np.random.default_rng(8)
    X, y = rng.normal(size=(12, 2)), rng.normal(size=12)
    bp = BayesianPerceptron(2, "linear", noise=0.3).learn(X, y)
    design = np.column_stack([np.ones(12), X])
    marginal = multivariate_normal(np.zeros(12), design @ design.T + 0.3 * np.eye(12)).logpdf(y)
    assert bp.log_evidence == pytest.approx(marginal, rel=1e-10)


def test_log_predictive_is_what_learning_adds_to_the_evidence() -> None:
    rng = np.random.default_rng(9)
    X, y = rng.normal(size=(5, 2)), np.array([0.0, 1.0, 1.0, 0.0, 1.0])
    for options in ({}, {"update": "kalman"}, {"activation": "relu"}, {"activation": "exp"}):
        bp = BayesianPerceptron(2, **options)  # type: ignore[arg-type]
        for x, target in zip(X, y, strict=True):
            before = bp.log_evidence
            surprise = bp.log_predictive(x, target)
            bp.learn(x, target)
            assert bp.log_evidence - before == pytest.approx(surprise)
        assert bp.log_predictive(X, y).shape == (5,)
    probabilities = np.exp([bp.log_predictive(X[0], k) for k in range(200)])
    assert probabilities.sum() == pytest.approx(1.0, abs=1e-3)


def test_intervals_hold_what_they_promise() -> None:
    rng = np.random.default_rng(10)
    X = rng.normal(size=(4000, 2))
    y = X @ [1.0, -1.0] + rng.normal(0, 0.5, 4000)
    bp = BayesianPerceptron(2, "linear", noise=0.25).learn(X[:2000], y[:2000])
    for level in (0.5, 0.95):
        low, high = bp.interval(X[2000:], level)
        assert np.mean((low < y[2000:]) & (y[2000:] < high)) == pytest.approx(level, abs=0.02)
    labels = BayesianPerceptron(2).learn(X[:50], (X[:50, 0] > 0).astype(float))
    low, high = labels.interval(X[:10], 0.9)
    draws = labels.sample_output(X[:10], 20_000, 0)
    np.testing.assert_allclose(np.mean((draws > low) & (draws < high), axis=0), 0.9, atol=0.01)
    one = labels.interval(X[0])
    assert isinstance(one[0], float)
    counts = BayesianPerceptron(2, "exp", cov=0.1).learn(X[:2000], rng.poisson(np.exp(0.5 * X[:2000, 0])))
    low, high = counts.interval(X[2000:], 0.95)
    new = rng.poisson(np.exp(0.5 * X[2000:, 0]))
    assert 0.94 < np.mean((low <= new) & (new <= high)) < 1.0
    with pytest.raises(ValueError, match=r"level must be in \(0, 1\), got 1"):
        bp.interval(X, 1.0)


@pytest.mark.parametrize("covariance", ["full", "diagonal"])
def test_samples_have_the_moments_of_the_posterior(covariance: str) -> None:
    rng = np.random.default_rng(11)
    X, y = rng.normal(size=(20, 2)), rng.normal(size=20)
    bp = BayesianPerceptron(2, "relu", covariance=covariance, noise=0.5).learn(X, y)
    weights = bp.sample_weights(200_000, 0)
    cov = bp.cov if covariance == "full" else np.diag(bp.cov)
    np.testing.assert_allclose(weights.mean(axis=0), bp.mean, atol=0.01)
    np.testing.assert_allclose(np.cov(weights.T), cov, atol=0.01)
    outputs = bp.sample_output(X, 200_000, np.random.default_rng(1))
    seen = bp.predict(X)
    np.testing.assert_allclose(outputs.mean(axis=0), seen.mean, atol=0.02)
    np.testing.assert_allclose(outputs.var(axis=0), seen.epistemic, rtol=0.05, atol=1e-3)
    np.testing.assert_array_equal(bp.sample_weights(3, 7), bp.sample_weights(3, 7))
    assert bp.sample_output(X[0], 4, 0).shape == (4,)
    with pytest.raises(TypeError, match="rng must be"):
        bp.sample_weights(3, None)  # type: ignore[arg-type]


def test_predictive_variance_splits_in_two() -> None:
    bp = BayesianPerceptron(1)
    seen = bp.predict([0.5])
    assert seen.epistemic + seen.aleatoric == pytest.approx(seen.mean * (1 - seen.mean))
    noisy = BayesianPerceptron(1, "relu", noise=0.3).predict([0.5])
    assert (noisy.epistemic, noisy.aleatoric) == (noisy.epistemic, 0.3)


def test_uncertain_inputs_have_the_moments_of_their_draws() -> None:
    rng = np.random.default_rng(12)
    bp = BayesianPerceptron(2, "relu", mean=[0.1, 1.0, -0.5], cov=np.diag([0.1, 0.2, 0.3]))
    x, x_var = np.array([1.0, 2.0]), np.array([0.5, 0.1])
    seen = bp.predict(x, X_var=x_var)
    draws = x + rng.normal(size=(400_000, 2)) * np.sqrt(x_var)
    a = (np.column_stack([np.ones(len(draws)), draws]) * bp.sample_weights(400_000, rng)).sum(axis=1)
    assert seen.pre_mean == pytest.approx(a.mean(), abs=0.01)
    assert seen.pre_var == pytest.approx(a.var(), rel=0.01)
    assert bp.predict(x).pre_var < seen.pre_var


def test_uncertain_inputs_teach_less() -> None:
    sure = BayesianPerceptron(1, "linear", noise=0.1).learn([2.0], 3.0)
    unsure = BayesianPerceptron(1, "linear", noise=0.1).learn([2.0], 3.0, X_var=[1.0])
    assert np.trace(unsure.cov) > np.trace(sure.cov)
    assert np.abs(unsure.mean).sum() < np.abs(sure.mean).sum()
    one_for_all = BayesianPerceptron(1, "linear", noise=0.1).learn([[2.0]], [3.0], X_var=1.0)
    np.testing.assert_array_equal(one_for_all.cov, unsure.cov)
    certain = BayesianPerceptron(1, "linear", noise=0.1).learn([2.0], 3.0, X_var=[0.0])
    np.testing.assert_array_equal(certain.cov, sure.cov)
    with pytest.raises(ValueError, match="X_var must not be negative"):
        sure.predict([1.0], X_var=[-1.0])
    with pytest.raises(ValueError, match="X_var must be a number"):
        sure.predict([[1.0], [2.0]], X_var=[[1.0], [1.0], [1.0]])


def test_diagonal_is_full_for_one_weight() -> None:
    rng = np.random.default_rng(13)
    X, y = rng.normal(size=(20, 1)), rng.integers(0, 2, 20)
    full = BayesianPerceptron(1, bias=False).learn(X, y)
    diagonal = BayesianPerceptron(1, bias=False, covariance="diagonal").learn(X, y)
    np.testing.assert_allclose(diagonal.mean, full.mean, rtol=1e-12)
    np.testing.assert_allclose(diagonal.cov, full.cov[0], rtol=1e-12)


def test_process_noise_is_the_random_walk_of_the_kalman_filter() -> None:
    rng = np.random.default_rng(14)
    X, y, q = rng.normal(size=(15, 2)), rng.normal(size=15), np.array([0.1, 0.2, 0.0])
    bp = BayesianPerceptron(2, "linear", noise=0.3, process_noise=q).learn(X, y)
    mean, cov = np.zeros(3), np.eye(3)
    for x, target in zip(np.column_stack([np.ones(15), X]), y, strict=True):
        cov = cov + np.diag(q)
        gain = cov @ x / (x @ cov @ x + 0.3)
        mean, cov = mean + gain * (target - x @ mean), cov - np.outer(gain, x @ cov)
    np.testing.assert_allclose(bp.mean, mean, atol=1e-10)
    np.testing.assert_allclose(bp.cov, cov, atol=1e-10)


@pytest.mark.parametrize("covariance", ["full", "diagonal"])
def test_forgetting_never_winds_up(covariance: str) -> None:
    """Rows that say nothing of a weight for ages must not blow its variance up."""
    bp = BayesianPerceptron(2, "linear", noise=0.1, forgetting=0.9, covariance=covariance)
    bp.learn(np.tile([1.0, 0.0], (3000, 1)), np.ones(3000))
    total = np.trace(bp.cov) if covariance == "full" else bp.cov.sum()
    assert total <= 3.0 * (1 + 1e-9)
    assert bp.predict([1.0, 0.0]).mean == pytest.approx(1.0, abs=1e-2)  # the prior counts as much as one of ten rows


def drifting_log_loss(drift: float, rng: np.random.Generator, **options: Any) -> float:
    """Prequential log-loss over 4,000 labels whose true weights wander."""
    weights = rng.normal(size=11)
    X = rng.normal(size=(4000, 10))
    y = np.empty(4000)
    for i, x in enumerate(X):
        weights += rng.normal(0, drift, 11)
        y[i] = rng.random() < expit(weights[0] + x @ weights[1:])
    return -BayesianPerceptron(10, **options).learn(X, y).log_evidence / 4000


def test_forgetting_pays_with_drift_and_costs_little_without() -> None:
    for options in ({"forgetting": 0.999}, {"forgetting": 0.98, "covariance": "diagonal"}):
        plain = {key: value for key, value in options.items() if key != "forgetting"}
        without, forgetting = (drifting_log_loss(0.03, np.random.default_rng(15), **o) for o in (plain, options))
        assert forgetting < without - 0.005
    still, costs = (drifting_log_loss(0.0, np.random.default_rng(16), **o) for o in ({}, {"forgetting": 0.999}))
    assert costs < 1.01 * still


def test_own_activation_by_quadrature_learns() -> None:
    rng = np.random.default_rng(17)
    X = rng.normal(size=(300, 1))
    y = np.sin(1.5 * X[:, 0] + 0.3) + rng.normal(0, 0.1, 300)
    bp = BayesianPerceptron(1, Quadrature(np.sin), noise=0.01).learn(X, y)
    np.testing.assert_allclose(bp.mean, [0.3, 1.5], atol=0.1)


@pytest.mark.parametrize("scale", [1e-3, 0.3, 10.0, 1e3])
def test_learned_noise_is_calibrated_in_any_unit(scale: float) -> None:
    """Weights from the prior, ten times as wide as the noise: the true ones lie where they are said to."""
    scores, noises = [], []
    for seed in range(10):
        rng = np.random.default_rng(seed)
        weights = rng.normal(0, 10 * scale, 6)
        X = rng.normal(size=(2000, 5))
        y = weights[0] + X @ weights[1:] + rng.normal(0, scale, 2000)
        bp = BayesianPerceptron(5, "linear", cov=(10 * scale) ** 2, noise="learn").learn(X, y)
        scores.append((bp.mean - weights) / np.sqrt(np.diag(bp.cov)))
        noises.append(bp.predict(X[0]).aleatoric / scale**2)
    assert 0.7 < np.sqrt(np.mean(np.square(scores))) < 1.4
    np.testing.assert_allclose(noises, 1.0, atol=0.25)


@pytest.mark.parametrize(
    "options", [{}, {"kernel": "blocks"}, {"covariance": "diagonal"}, {"kernel": "reference"}], ids=str
)
@pytest.mark.parametrize(
    "duplicate", [copy.deepcopy, lambda model: pickle.loads(pickle.dumps(model))], ids=["deep", "pickle"]
)
def test_a_copy_learns_on_its_own(duplicate: Any, options: dict[str, Any]) -> None:
    x = np.array([1.0, 2.0])
    for rows in (0, 1, 40):
        model = BayesianPerceptron(2, **options)
        if rows == 1:
            model.learn(x, 1.0)
        elif rows:
            model.learn(np.tile(x, (rows, 1)), np.ones(rows))
        twin = duplicate(model)
        mean = model.mean
        twin.learn(x, 0.0)
        np.testing.assert_array_equal(model.mean, mean)
        assert (model.n_seen, twin.n_seen) == (rows, rows + 1)
        np.testing.assert_array_equal(model.learn(x, 0.0).mean, twin.mean)


def test_an_activation_that_fails_leaves_the_model_as_it_was() -> None:
    class Fails:
        calls = 0

        def __call__(self, a: Any, /) -> Any:
            return np.asarray(a)

        def moments(self, mean: Any, var: Any, /) -> Moments:
            self.calls += 1
            if self.calls > 3:
                raise RuntimeError("on purpose")
            return Moments(np.asarray(mean), np.asarray(var), np.ones_like(mean))

    model = BayesianPerceptron(1, Fails(), update="kalman", noise=0.1)
    with pytest.raises(RuntimeError, match="on purpose"):
        model.learn(np.ones((10, 1)), np.ones(10))
    assert model.n_seen == 0
    np.testing.assert_array_equal(model.mean, 0.0)


@pytest.mark.parametrize("covariance", ["full", "diagonal"])
def test_a_row_that_overflows_adds_no_process_noise(covariance: str) -> None:
    model = BayesianPerceptron(2, "linear", process_noise=0.5, covariance=covariance)
    with pytest.raises(ValueError, match="Nothing was learned"):
        model.learn([1e200, 1e200], 1.0)
    np.testing.assert_array_equal(model.cov, BayesianPerceptron(2, covariance=covariance).cov)


def test_an_independent_weight_keeps_its_digits_under_a_vague_prior() -> None:
    for covariance in ("full", "diagonal"):
        for engine in ("auto", "reference"):
            options: dict[str, Any] = {"bias": False, "cov": 1e12, "noise": 1e-6, "kernel": engine}
            model = BayesianPerceptron(1, "linear", covariance=covariance, **options).learn([1.0], 2.0)
            assert float(model.cov.ravel()[0]) == pytest.approx(1e-6, rel=1e-9)


def test_a_saturated_label_is_no_reason_to_leap() -> None:
    for mean, label in [(38.0, 0.0), (-38.0, 1.0)]:
        model = BayesianPerceptron(1, bias=False, mean=[mean], cov=0.01, update="kalman").learn([1.0], label)
        assert abs(model.mean[0] - mean) < 1.0


def test_a_perceptron_unpickled_from_shared_memory_learns_on() -> None:
    X, y = np.eye(2), np.array([1.0, 0.0])
    for covariance in ("full", "diagonal"):
        model = BayesianPerceptron(2, covariance=covariance).learn(X, y)
        buffers: list[pickle.PickleBuffer] = []
        content = pickle.dumps(model, protocol=5, buffer_callback=buffers.append)
        twin = pickle.loads(content, buffers=[bytes(buffer) for buffer in buffers])  # which can't be written to
        np.testing.assert_array_equal(twin.learn(X, y).mean, model.learn(X, y).mean)


class Interrupted:
    """Ctrl-C comes while it is called for the nth time."""

    def __init__(self, nth: int) -> None:
        self.left = nth

    def __call__(self, a: Any, /) -> Any:
        return np.tanh(a)

    def moments(self, mean: Any, var: Any, /) -> Moments:
        self.left -= 1
        if self.left == 0:
            raise KeyboardInterrupt
        return Quadrature(np.tanh).moments(mean, var)


@pytest.mark.parametrize("row", [np.ones(1), [1.0]], ids=["array", "list"])
@pytest.mark.parametrize("when", [3, 4])  # while the row's error is measured, and while it is learned
def test_when_an_activation_is_interrupted_its_row_is_not_learned(row: Any, when: int) -> None:
    model = BayesianPerceptron(1, Interrupted(when), noise="learn")  # the constructor asks for moments twice
    noise = model.noise
    with pytest.raises(KeyboardInterrupt):
        model.learn(row, 0.5)
    assert (model.n_seen, model.noise, model.log_evidence) == (0, noise, 0.0)
    np.testing.assert_array_equal(model.mean, 0.0)
    assert model.learn(row, 0.5).n_seen == 1  # and nothing is left over to be raised


def test_a_likelihood_of_ones_own_checks_every_target() -> None:
    class Positive(Likelihood):
        name = "positive"

        def check(self, y: Any) -> None:
            if (y < 0.0).any():
                raise ValueError("y must be positive")

        def moment_match(self, activation: Any, mean: Any, var: Any, y: Any, update: str = "auto") -> MomentMatch:
            return MomentMatch(0.0, y - mean, 0.0, 1.0)

    model = BayesianPerceptron(1, "linear", observation=Positive()).learn(np.ones(1), 1.0)
    for row, y in ((np.ones(1), -1.0), ([1.0], -1.0), ([[1.0]], [-1.0])):
        with pytest.raises(ValueError, match="must be positive"):
            model.learn(row, y)
    assert model.n_seen == 1


@pytest.mark.parametrize("options", [{}, {"covariance": "diagonal"}, {"kernel": "blocks"}], ids=str)
@pytest.mark.parametrize(("X", "y"), [([1.0], 1e40), ([[1.0], [1.0]], [1e40, 1.0])], ids=["one", "two"])
def test_what_single_precision_cannot_hold_is_not_learned(X: Any, y: Any, options: dict[str, Any]) -> None:
    model = BayesianPerceptron(1, "linear", noise=1.0, dtype="float32", **options)
    with pytest.raises(ValueError, match=r"overflow float32.*Nothing was learned"):
        model.learn(X, y)
    np.testing.assert_array_equal(model.mean, 0.0)


def test_predicting_leaves_the_belief_in_its_form() -> None:
    X = np.random.default_rng(0).normal(size=(100, 3))
    parameters, arrays = BayesianPerceptron(3, "linear", kernel="blocks").learn(X, X[:, 0]).export_state()
    model = BayesianPerceptron.from_state({**parameters, "kernel": "rows"}, arrays)
    model.predict(X[0])
    assert model.export_state()[1].keys() == arrays.keys()
