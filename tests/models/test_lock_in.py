"""With outliers nothing locks in: neither their share, nor the noise, nor the scale of the weights.

The oracle is the estimate of greatest posterior density of weights and share together, found by BFGS.
"""

from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import expit

from onepass import BayesianNetwork, BayesianPerceptron, BayesianPerceptronRegressor

FloatArray = np.ndarray[Any, np.dtype[np.float64]]


def flipped_labels(seed: int, n: int, share: float, scale: float = 2.0) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Rows, labels of which a share are flipped, and the weights."""
    rng = np.random.default_rng(seed)
    weights, X = scale * rng.normal(size=4), rng.normal(size=(n, 4))
    right = rng.random(n) < expit(X @ weights)
    return X, np.where(rng.random(n) < share, ~right, right).astype(float), weights


def most_probable(X: FloatArray, y: FloatArray, prior_var: float) -> tuple[FloatArray, float]:
    """Weights and share of flipped labels of greatest posterior density."""
    rows, sign = np.column_stack([np.ones(len(X)), X]), 2.0 * y - 1.0

    def loss(at: FloatArray) -> tuple[float, FloatArray]:
        w, e = at[:-1], 0.5 * expit(at[-1])
        right = expit(sign * (rows @ w))
        p = e + (1.0 - 2.0 * e) * right
        slope = -(rows.T @ (sign * (1.0 - 2.0 * e) * right * (1.0 - right) / p)) + w / prior_var
        share_slope = -((1.0 - 2.0 * right) / p).sum() * e * (1.0 - 2.0 * e)
        return -np.log(p).sum() + 0.5 * w @ w / prior_var, np.append(slope, share_slope)

    found = minimize(loss, np.append(np.zeros(5), -2.0), method="BFGS", jac=True).x
    return found[1:-1], float(0.5 * expit(found[-1]))


@pytest.mark.parametrize(("share", "least_covered"), [(0.0, 0.88), (0.1, 0.88), (0.3, 0.7)])
def test_flipped_labels_are_as_good_as_found_together(share: float, least_covered: float) -> None:
    """At 30 % the posterior is far from Gaussian: 95 % intervals around the oracle cover 88 %."""
    ours, theirs, squares = [], [], []
    for seed in range(50, 66):
        X, y, weights = flipped_labels(seed, 8000, share)
        model = BayesianPerceptron(4, cov=9.0, outliers=0.05).learn(X, y)
        best, best_share = most_probable(X, y, 9.0)
        assert model.outliers_ == pytest.approx(best_share, abs=0.06)
        ours.append(model.mean[1:] - weights)
        theirs.append(best - weights)
        squares.append(ours[-1] ** 2 / np.diag(model.cov)[1:])
    assert np.sqrt(np.mean(np.square(ours)) / np.mean(np.square(theirs))) < 1.5
    assert np.mean(np.array(squares) < 1.96**2) > least_covered


@pytest.mark.parametrize("covariance", ["full", "diagonal"])
@pytest.mark.parametrize("kernel", ["rows", "reference"])
def test_all_kernels_rescale_the_weights(covariance: str, kernel: str) -> None:
    X, y, _ = flipped_labels(3, 600, 0.3)
    options: dict[str, Any] = {"cov": 9.0, "outliers": 0.05, "covariance": covariance}
    model = BayesianPerceptron(4, **options, kernel=kernel)
    for start in range(0, 600, 150):
        model.learn(X[start : start + 150], y[start : start + 150])
    twin = BayesianPerceptron(4, **options).learn(X, y)
    np.testing.assert_allclose(model.mean, twin.mean, rtol=1e-8)
    np.testing.assert_allclose(model.cov, twin.cov, rtol=1e-8, atol=1e-12)
    still = BayesianPerceptron(4, **options)
    still._keeps_past = False
    still.learn(X, y)
    assert abs(np.linalg.norm(twin.mean) / np.linalg.norm(still.mean) - 1.0) > 0.05


@pytest.mark.parametrize("options", [{"forgetting": 0.999}, {"process_noise": 1e-3}], ids=str)
def test_labels_of_weights_that_have_moved_do_not_tell_of_their_scale(options: dict[str, Any]) -> None:
    gain = 0.0
    for seed in range(4):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(6000, 3))
        sign = np.where(np.arange(6000) // 1000 % 2, -1.0, 1.0)
        y = (rng.random(6000) < expit(sign * (X @ [3.0, 1.0, -1.0]))).astype(float)
        model = BayesianPerceptron(3, outliers=0.05, **options)
        coupled = BayesianPerceptron(3, outliers=0.05, **options)
        coupled._keeps_past = True
        gain += model.learn(X, y).log_evidence - coupled.learn(X, y).log_evidence
    assert gain > 50.0


def test_more_passes_refine_the_share_of_flipped_labels() -> None:
    X, y, _ = flipped_labels(4, 3000, 0.3)
    once = BayesianPerceptron(4, cov=9.0, outliers=0.05)
    once._keeps_past = False  # as where rows are learned again
    more = BayesianPerceptron(4, cov=9.0, outliers=0.05).learn(X, y, passes=6)
    best, share = most_probable(X, y, 9.0)
    assert abs(more.outliers_ - share) < 0.02
    assert abs(more.outliers_ - share) < abs(once.learn(X, y).outliers_ - share) + 0.005
    assert np.abs((more.mean[1:] - best) / np.linalg.norm(best)).max() < 0.25
    assert more._state.progress.trust.to_array()[:6].sum() < 3020.0  # no row counts twice


@pytest.mark.parametrize("share", [0.3, 0.4])
def test_many_wild_targets_on_both_sides(share: float) -> None:
    errors, squares = [], []
    for seed in range(20, 28):
        rng = np.random.default_rng(seed)
        weights, X = rng.normal(size=5), rng.normal(size=(4000, 5))
        wild = rng.random(4000) < share
        y = X @ weights + 0.3 * rng.normal(size=4000) + np.where(wild, 10.0 * rng.normal(size=4000), 0.0)
        model = BayesianPerceptron(5, "linear", noise=0.09, outliers=0.05).learn(X, y)
        best = np.linalg.lstsq(X[~wild], y[~wild], rcond=None)[0]  # of one that knows which are wild
        errors.append((np.mean((model.mean[1:] - weights) ** 2), np.mean((best - weights) ** 2)))
        squares.append(np.mean((model.mean[1:] - weights) ** 2 / np.diag(model.cov)[1:]))
        assert model.outliers_ == pytest.approx(share, abs=0.06)
    ours, theirs = np.mean(errors, axis=0)
    assert np.sqrt(ours / theirs) < 1.5
    assert np.mean(squares) < 1.5


def changing_targets(seed: int, kind: str) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Rows and targets to learn whose kind changes, and rows and targets to predict."""
    rng = np.random.default_rng(seed)
    weights, X = rng.normal(size=3), rng.normal(size=(3300, 3))
    y = 3.0 + X @ weights + 0.3 * rng.normal(size=3300)
    if kind == "constant":
        y[:1000] = 3.0
    else:
        y[500 if kind == "units" else 0 :] *= 1e6
    return X[:3000], y[:3000], X[3000:], y[3000:]


def perceptron() -> Any:
    return BayesianPerceptron(3, "linear", noise="learn", outliers=0.05)


def network() -> Any:
    return BayesianNetwork(3, (10,), outliers=0.05)


@pytest.mark.parametrize("kind", ["constant", "units", "cold"])
@pytest.mark.parametrize("make", [perceptron, network])
def test_the_noise_grows_again(make: Any, kind: str) -> None:
    covered = []
    for seed in range(6, 10):
        X, y, later, truth = changing_targets(seed, kind)
        low, high = make().learn(X, y).interval(later)
        covered.append(np.mean((np.ravel(low) < truth) & (truth < np.ravel(high))))
    assert 0.9 < np.mean(covered) < 0.98
    assert min(covered) > 0.87


@pytest.mark.filterwarnings("ignore:the targets are all 3")
@pytest.mark.parametrize("kind", ["constant", "units", "cold"])
def test_the_noise_of_a_regressor_grows_again(kind: str) -> None:
    X, y, later, truth = changing_targets(5, kind)
    low, high = BayesianPerceptronRegressor(outliers=0.05).fit(X, y).predict_interval(later)
    assert 0.9 < np.mean((low < truth) & (truth < high)) < 0.99


@pytest.mark.parametrize("share", [1e-16, 1e-9])
def test_a_tiny_share_of_outliers_can_be_learned(share: float) -> None:
    X = np.random.default_rng(0).normal(size=(50, 2))
    model = BayesianPerceptron(2, "linear", noise=0.1, outliers=share).learn(X, X[:, 0])
    assert 0.0 <= model.outliers_ < 0.01
    labels = BayesianPerceptron(2, outliers=share).learn(X, (X[:, 0] > 0.0).astype(float))
    assert 0.0 <= labels.outliers_ < 0.1


def test_wild_targets_do_not_become_the_noise_of_a_young_network() -> None:
    for seed in range(14, 20):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(300, 3))
        truth, wild = X @ [1.0, -2.0, 0.5] / 5.4, rng.random(300) < 0.2
        y = np.where(wild, 20.0 * rng.normal(size=300), truth + 0.02 * rng.normal(size=300))
        model = BayesianNetwork(3, (20,), outliers=0.2).learn(X, y)
        assert np.sqrt(np.mean((model.predict(X).mean - truth) ** 2)) < 0.1
        assert 0.13 < model.outliers_ < 0.35
