import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy.special import expit, ndtr

from onepass import BayesianPerceptron, PiecewiseLinear

PAPER: dict[str, Any] = {"observation": "gaussian", "update": "kalman", "moments": "paper"}
NAMES = ["sigmoid", "tanh", "relu", "leaky_relu", "linear"]


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
    assert one.noise_var == 0.04
    z = one.pre_mean / math.sqrt(one.pre_var)
    density = math.exp(-0.5 * z**2) / math.sqrt(2 * math.pi)
    assert one.mean == pytest.approx(one.pre_mean * ndtr(z) + math.sqrt(one.pre_var) * density)
    assert isinstance(one.mean, float)
    many = bp.predict([[2.0, 1.0], [0.0, 0.0]])
    assert [part.shape for part in many] == [(2,)] * 5
    assert tuple(part[0] for part in many) == pytest.approx(tuple(one))


ROWS = hnp.arrays(np.float64, (6, 2), elements=st.floats(-1e3, 1e3))
TARGETS = hnp.arrays(np.float64, (6,), elements=st.floats(-1e2, 1e2))


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=50)
@given(X=ROWS, y=TARGETS, noise=st.floats(0, 10))
def test_state_stays_finite_symmetric_and_semidefinite(name: str, X: Any, y: Any, noise: float) -> None:
    bp = BayesianPerceptron(2, name, noise=noise)
    variances = np.diag(bp.cov)
    for x, target in zip(X, y, strict=True):
        bp.learn(x, target)
        cov = bp.cov
        assert np.isfinite(bp.mean).all()
        assert np.isfinite(cov).all()
        np.testing.assert_array_equal(cov, cov.T)
        assert np.linalg.eigvalsh(cov)[0] >= -1e-14
        assert (np.diag(cov) >= 0).all()
        assert (np.diag(cov) <= variances * (1 + 1e-12) + 1e-300).all()  # the kalman rule never widens
        assert bp.predict(x).var >= 0
        variances = np.diag(cov)


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=20)
@given(X=ROWS, y=TARGETS, cut=st.integers(1, 5))
def test_learning_in_any_split_gives_the_same_posterior(name: str, X: Any, y: Any, cut: int) -> None:
    whole = BayesianPerceptron(2, name).learn(X, y)
    split = BayesianPerceptron(2, name).learn(X[:cut], y[:cut]).learn(X[cut:], y[cut:])
    rows = BayesianPerceptron(2, name)
    for x, target in zip(X, y, strict=True):
        rows.learn(x, target)
    for other in (split, rows):
        np.testing.assert_array_equal(other.mean, whole.mean)
        np.testing.assert_array_equal(other.cov, whole.cov)


def test_known_weights_and_zero_inputs_teach_nothing_and_break_nothing() -> None:
    known = BayesianPerceptron(2, mean=[0.1, 0.2, 0.3], cov=np.zeros((3, 3)), noise=0.0)
    known.learn([[1.0, 2.0], [0.0, 0.0]], [1.0, 0.0])
    np.testing.assert_array_equal(known.mean, [0.1, 0.2, 0.3])
    np.testing.assert_array_equal(known.cov, 0.0)
    zero = BayesianPerceptron(2, bias=False).learn([0.0, 0.0], 1.0)
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
        ({"activation": "nope"}, ValueError, "activation must be one of 'sigmoid'.*'nope'"),
        ({"mean": [0.0]}, ValueError, r"mean must have shape \(3,\), got shape \(1,\)"),
        ({"mean": [0.0, 0.0, math.inf]}, ValueError, "mean must be finite, got inf at index 2"),
        ({"cov": np.eye(2)}, ValueError, r"cov must have shape \(3, 3\)"),
        ({"cov": np.eye(3) + np.eye(3, k=1)}, ValueError, "cov must be symmetric"),
        ({"cov": -np.eye(3)}, ValueError, "cov must be positive semi-definite.*-1"),
        ({"noise": -0.1}, ValueError, "noise.*not negative, got -0.1"),
        ({"noise": math.nan}, ValueError, "noise"),
        ({"noise": "big"}, TypeError, "noise.*'big'"),
        ({"observation": "cauchy"}, ValueError, "observation must be one of 'gaussian'"),
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
        ([[1.0, 2.0]], [None], ValueError, "y must be finite, got nan"),
        ([[1.0, 2.0]], [object()], TypeError, "y must hold real numbers"),
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


def test_one_feature_in_a_flat_array_is_told_to_reshape() -> None:
    with pytest.raises(ValueError, match=r"reshape it to \(3, 1\)"):
        BayesianPerceptron(1).predict([1.0, 2.0, 3.0])
