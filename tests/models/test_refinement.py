"""More passes by expectation propagation: each row counts once, and the belief comes close to the true posterior."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import log_expit, log_ndtr
from sklearn.base import clone

from onepass import BayesianPerceptron, BayesianPerceptronClassifier, BayesianPerceptronRegressor
from tests.helpers.quadrature import grid_posterior


def problem(n: int = 40, d: int = 1, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows, pre-activations of true weights, and standard normal numbers."""
    rng = np.random.default_rng(seed)
    X, weights = rng.normal(size=(n, d)), 2.0 * rng.normal(size=d + 1)
    return X, weights[0] + X @ weights[1:], rng.normal(size=n)


@pytest.mark.parametrize(
    ("kind", "rows"), [("sigmoid", 8), ("sigmoid", 40), ("probit", 8), ("probit", 40), ("relu", 40)]
)
def test_it_comes_close_to_the_true_posterior(kind: str, rows: int) -> None:
    X, a, noise = problem(rows)
    model: dict[str, Any] = {"cov": 9.0, "noise": 0.25 if kind == "relu" else None}
    y = np.maximum(a, 0.0) + 0.5 * noise if kind == "relu" else (a + noise > 0.0).astype(float)

    def log_likelihood(i: int, at: np.ndarray) -> np.ndarray:
        if kind == "relu":
            return np.asarray(-0.5 * (y[i] - np.maximum(at, 0.0)) ** 2 / 0.25)
        signed = at if y[i] > 0.5 else -at
        return np.asarray(log_expit(signed) if kind == "sigmoid" else log_ndtr(signed))

    mean, std = grid_posterior(X, log_likelihood, 3.0, np.linspace(-12.0, 12.0, 801))
    once, more = (BayesianPerceptron(1, kind, **model).learn(X, y, passes=k) for k in (1, 12))
    gaps = [np.abs(learned.mean - mean).max() / std.max() for learned in (once, more)]
    assert gaps[1] < min(0.08, gaps[0])
    np.testing.assert_allclose(np.sqrt(np.diag(more.cov)), std, rtol=0.15)


def tilted_moments(log_likelihood: Any, mean: float, var: float) -> tuple[float, float]:
    """Mean and variance of a likelihood times a Gaussian, by quadrature."""
    at = mean + np.sqrt(var) * np.linspace(-9.0, 9.0, 20_001)
    p = np.exp(log_likelihood(at) - 0.5 * (at - mean) ** 2 / var)
    p /= p.sum()
    centre = p @ at
    return float(centre), float(p @ (at - centre) ** 2)


@pytest.mark.parametrize("kind", ["sigmoid", "probit", "relu"])
def test_it_ends_where_expectation_propagation_written_out_does(kind: str) -> None:
    X, a, noise = problem(8)
    y = np.maximum(a, 0.0) + 0.5 * noise if kind == "relu" else (a + noise > 0.0).astype(float)
    links = {"sigmoid": log_expit, "probit": log_ndtr}
    rows = np.column_stack([np.ones(8), X])
    precision, shift, old = np.zeros(8), np.zeros(8), np.inf
    for _ in range(40):
        for i, row in enumerate(rows):
            cov = np.linalg.inv(np.eye(2) / 9.0 + (rows.T * precision) @ rows)
            mean, var = row @ cov @ (rows.T @ shift), row @ cov @ row
            cavity_var = 1.0 / (1.0 / var - precision[i])
            cavity_mean = cavity_var * (mean / var - shift[i])

            def log_likelihood(at: np.ndarray, i: int = i) -> Any:
                if kind == "relu":
                    return -0.5 * (y[i] - np.maximum(at, 0.0)) ** 2 / 0.25
                return links[kind]((2.0 * y[i] - 1.0) * at)

            new_mean, new_var = tilted_moments(log_likelihood, cavity_mean, cavity_var)
            precision[i] = 1.0 / new_var - 1.0 / cavity_var
            shift[i] = new_mean / new_var - cavity_mean / cavity_var
        if abs(shift.sum() - old) < 1e-9:
            break
        old = shift.sum()
    cov = np.linalg.inv(np.eye(2) / 9.0 + (rows.T * precision) @ rows)
    learned = BayesianPerceptron(1, kind, cov=9.0, noise=0.25 if kind == "relu" else None).learn(X, y, passes=60)
    np.testing.assert_allclose(learned.mean, cov @ (rows.T @ shift), rtol=1e-4)
    np.testing.assert_allclose(learned.cov, cov, rtol=1e-4)


def test_noise_and_weights_come_close_to_their_joint_posterior() -> None:
    X, a, noise = problem(15)
    y = a + 0.6 * noise
    model = BayesianPerceptron(1, "linear", noise="learn", cov=9.0)
    start, start_var = np.log(model.noise), model.log_noise_var
    axes = (
        np.linspace(-5.0, 5.0, 161),
        np.linspace(-5.0, 5.0, 161),
        start + np.sqrt(start_var) * np.linspace(-5, 5, 121),
    )
    bias, weight, log_noise = np.meshgrid(*axes, indexing="ij", sparse=True)
    log_p = -0.5 * (bias**2 + weight**2) / 9.0 - 0.5 * (log_noise - start) ** 2 / start_var
    for x, target in zip(X[:, 0], y, strict=True):
        log_p = log_p - 0.5 * (log_noise + (target - bias - x * weight) ** 2 * np.exp(-log_noise))
    p = np.exp(log_p - log_p.max())
    p /= p.sum()
    model.learn(X, y, passes=12)
    for value, mean, std in (
        (bias, model.mean[0], np.sqrt(model.cov[0, 0])),
        (weight, model.mean[1], np.sqrt(model.cov[1, 1])),
        (log_noise, np.log(model.noise), np.sqrt(model.log_noise_var)),
    ):
        true_mean = float((p * value).sum())
        true_std = float(np.sqrt((p * (value - true_mean) ** 2).sum()))
        assert abs(mean - true_mean) < 0.1 * true_std
        assert std == pytest.approx(true_std, rel=0.15)


def test_a_linear_output_with_known_noise_needs_but_one_pass() -> None:
    X, a, noise = problem(30, 3)
    once, more = (BayesianPerceptron(3, "linear", noise=0.5).learn(X, a + noise, passes=k) for k in (1, 4))
    np.testing.assert_allclose(more.mean, once.mean, rtol=1e-9)
    np.testing.assert_allclose(more.cov, once.cov, rtol=1e-8)
    assert (more.log_evidence, more.n_seen) == (once.log_evidence, 30)


@pytest.mark.parametrize("options", [{"activation": "sigmoid"}, {"activation": "relu", "noise": "learn"}], ids=str)
def test_the_order_of_the_rows_does_not_matter(options: dict[str, Any]) -> None:
    X, a, noise = problem(60, 2)
    y = (a + noise > 0.0).astype(float) if options["activation"] == "sigmoid" else np.maximum(a, 0.0) + noise
    order = np.argsort(y, kind="stable")
    models = [BayesianPerceptron(2, **options).learn(X[rows], y[rows], passes=25) for rows in (slice(None), order)]
    np.testing.assert_allclose(models[0].mean, models[1].mean, atol=1e-4)
    np.testing.assert_allclose(models[0].cov, models[1].cov, rtol=1e-3)
    assert models[0].noise == pytest.approx(models[1].noise, rel=1e-3)


@pytest.mark.parametrize("options", [{"activation": "sigmoid"}, {"activation": "relu", "noise": "learn"}], ids=str)
def test_all_kernels_agree(options: dict[str, Any]) -> None:
    X, a, noise = problem(50, 2)
    y = (a > 0.0).astype(float) if options["activation"] == "sigmoid" else np.maximum(a, 0.0) + noise
    kernels = ("rows", "blocks", "reference")
    models = [BayesianPerceptron(2, kernel=kernel, **options).learn(X, y, passes=3) for kernel in kernels]
    for model in models[1:]:
        np.testing.assert_allclose(model.mean, models[0].mean, rtol=1e-7, atol=1e-10)
        np.testing.assert_allclose(model.cov, models[0].cov, rtol=1e-6, atol=1e-12)
        assert model.log_evidence == pytest.approx(models[0].log_evidence)
    uncertain = [
        BayesianPerceptron(2, kernel=kernel, **options).learn(X, y, X_var=0.1, passes=3)
        for kernel in ("rows", "reference")
    ]
    np.testing.assert_allclose(uncertain[0].mean, uncertain[1].mean, rtol=1e-9)


def test_reused_rows_count_again() -> None:
    X, a, noise = problem(30, 2)
    twice = BayesianPerceptron(2, "linear", noise=0.5).learn(X, a + noise, passes=2, refine="reuse")
    by_hand = BayesianPerceptron(2, "linear", noise=0.5).learn(X, a + noise).learn(X, a + noise)
    np.testing.assert_array_equal(twice.mean, by_hand.mean)


def test_a_learned_noise_goes_on_from_rows_that_were_reused() -> None:
    X, a, noise = problem(90, 2)
    y = a + 0.3 * noise
    more, by_hand = (BayesianPerceptron(2, "linear", noise="learn") for _ in range(2))
    more.learn(X[:30], y[:30], passes=3, refine="reuse")
    once = BayesianPerceptron(2, "linear", noise="learn").learn(X[:30], y[:30])
    for _ in range(3):
        by_hand.learn(X[:30], y[:30])
    assert (more.log_evidence, more.n_seen) == (once.log_evidence, 30)
    np.testing.assert_array_equal(more.mean, by_hand.mean)
    before = by_hand.log_evidence
    for model in (more, by_hand):
        model.learn(X[30:], y[30:])
    assert more.log_evidence - once.log_evidence == pytest.approx(by_hand.log_evidence - before, abs=1e-6)
    np.testing.assert_allclose(more.mean, by_hand.mean, rtol=1e-3)
    assert more.noise == pytest.approx(by_hand.noise, rel=1e-3)


@pytest.mark.parametrize("options", [{}, {"kernel": "blocks"}, {"kernel": "reference"}], ids=str)
def test_where_rows_are_re_weighed_one_pass_is_all(options: dict[str, Any]) -> None:
    X, a, noise = problem(30, 2)
    once, more = (
        BayesianPerceptron(2, "linear", noise="learn", **options).learn(X, a + noise, passes=passes)
        for passes in (1, 5)
    )
    np.testing.assert_array_equal(more.mean, once.mean)
    np.testing.assert_array_equal(more.cov, once.cov)
    assert (more.noise, more.log_evidence, more.n_seen) == (once.noise, once.log_evidence, 30)


@pytest.mark.parametrize("refine", ["ep", "reuse"])
def test_rows_learned_again_are_no_new_evidence(refine: str) -> None:
    X, a, noise = problem(30, 2)
    once, more = (BayesianPerceptron(2, "relu", noise="learn").learn(X, a + noise) for _ in range(2))
    once.learn(X, a)
    more.learn(X, a, passes=3, refine=refine)
    assert (more.log_evidence, more.n_seen) == (once.log_evidence, once.n_seen)
    once, more = (
        BayesianPerceptronRegressor(passes=passes, refine=refine, standardize=True, warm_up=10).fit(X, 50.0 * a)
        for passes in (1, 3)
    )
    assert (more.log_evidence_, more.n_seen_) == (once.log_evidence_, once.n_seen_)


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"covariance": "diagonal"}, "needs covariance='full'"),
        ({"forgetting": 0.9}, "don't drift, got forgetting"),
        ({"process_noise": 0.1}, "don't drift, got process_noise"),
        ({"activation": "linear", "noise": "learn", "noise_window": 9}, "don't drift, got noise_window"),
    ],
)
def test_it_is_refused_where_rows_cannot_be_removed(options: dict[str, Any], match: str) -> None:
    model = BayesianPerceptron(1, **options)
    with pytest.raises(ValueError, match=match):
        model.learn([[1.0], [2.0]], [1.0, 0.0], passes=2, refine="ep")
    assert (model.n_seen, model.keeps_sites) == (0, False)
    assert model.learn([[1.0], [2.0]], [1.0, 0.0], passes=2, refine="reuse").n_seen == 2
    with pytest.raises(ValueError, match="passes"):
        model.learn([[1.0]], [1.0], passes=0)
    with pytest.raises(ValueError, match="refine"):
        model.learn([[1.0]], [1.0], passes=2, refine="twice")


@given(
    st.integers(0, 2**32 - 1),
    st.sampled_from(["linear", "relu", "tanh", "sigmoid", "step", "exp"]),
    st.floats(-6.0, 6.0),
    st.integers(2, 25),
)
def test_whatever_the_rows_the_belief_stays_one(seed: int, activation: str, log_scale: float, n: int) -> None:
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(n, 2)) * rng.choice([0.1, 1.0, 10.0]), rng.standard_cauchy(n) * 10.0**log_scale
    noise: Any = None
    if activation in ("sigmoid", "step"):
        y = (y > 0.0).astype(float)
    elif activation == "exp":
        y = np.minimum(np.floor(np.abs(y)), 1e6)
    else:
        noise = "learn"
    model = BayesianPerceptron(2, activation, noise=noise).learn(X, y, passes=4)
    assert np.isfinite(model.mean).all()
    assert np.linalg.eigvalsh(model.cov).min() > -1e-12 * np.diag(model.cov).max()
    assert np.isfinite(model.log_evidence)
    assert model.n_seen == n
    assert 0.0 < model.noise < np.inf or noise is None


def test_estimators_take_passes() -> None:
    X, a, noise = problem(60, 2)
    labels, numbers = (a + noise > 0.0).astype(int), np.maximum(a, 0.0) + noise
    for estimator, y in (
        (BayesianPerceptronClassifier(), labels),
        (BayesianPerceptronRegressor("relu", standardize=False), numbers),
    ):
        refined = clone(estimator).set_params(passes=5).fit(X, y)
        assert refined.n_seen_ == 60
        reversed_rows = clone(estimator).set_params(passes=25).fit(X[::-1], y[::-1])
        np.testing.assert_allclose(refined.coef_, reversed_rows.coef_, atol=0.05)
        drifting = clone(estimator).set_params(passes=2, forgetting=0.99).fit(X, y)  # whose rows can but be reused
        reused = clone(estimator).set_params(passes=2, forgetting=0.99, refine="reuse").fit(X, y)
        np.testing.assert_array_equal(drifting.coef_, reused.coef_)
        with pytest.raises(ValueError, match="compares what one pass predicted"):
            clone(estimator).set_params(passes=2, prior_scale="auto").fit(X, y)
