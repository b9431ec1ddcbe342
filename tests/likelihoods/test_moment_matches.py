import math
from collections.abc import Callable
from functools import partial

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from scipy.special import log_expit, log_ndtr

from onepass._typing import FloatArray
from onepass.activations import (
    Activation,
    PaperSigmoid,
    PiecewiseLinear,
    Probit,
    Quadrature,
    Sigmoid,
    Step,
    as_activation,
)
from onepass.engine.step import LearningState, learn_scalar
from onepass.likelihoods import Bernoulli, Gaussian, Likelihood, MomentMatch, Poisson, as_likelihood
from tests.helpers import quadrature

PAPER_MEANS = np.arange(-30, 31) * 0.1
PAPER_VARS = np.arange(11) * 0.2


def kalman(likelihood: Likelihood, activation: Activation, mean: float, var: float, y: float) -> MomentMatch:
    return likelihood.moment_match(activation, mean, var, y, "kalman")


def test_one_kalman_step_by_hand() -> None:
    # Linear output: mu_y = 1, sigma_y² = 2 + 0.5, sigma_ya² = 2. k = 2/2.5 = 0.8, so the mean of a moves by
    # 0.8 (3 - 1) = 1.6 = score * 2 and its variance by -0.8 * 2 = -1.6 = -information * 4.
    step = kalman(Gaussian(0.5), as_activation("linear"), 1.0, 2.0, 3.0)
    assert (step.score, step.information) == pytest.approx((0.8, 0.4))
    assert step.log_z == pytest.approx(-0.5 * (math.log(2 * math.pi * 2.5) + 4 / 2.5))


def test_one_sigmoid_step_by_hand() -> None:
    # mu_a = 0, sigma_a² = 8/π: λ² sigma_a² = 1, t = √2, mu_y = 1/2, sigma_y² = (1 - 1/√2)/4,
    # sigma_ya² = λ sigma_a²/t * 1/√(2π); with epsilon = 0.1.
    lam, var = math.sqrt(math.pi / 8), 8 / math.pi
    total = (1 - 1 / math.sqrt(2)) / 4 + 0.1
    cov = lam * var / math.sqrt(2) / math.sqrt(2 * math.pi)
    step = kalman(Gaussian(0.1), PaperSigmoid(), 0.0, var, 1.0)
    assert step.score * var == pytest.approx(cov / total * 0.5, rel=1e-13)
    assert step.information * var**2 == pytest.approx(cov**2 / total, rel=1e-13)


def paper_grid(
    match: Callable[[float, float, float], tuple[float, float]],
    log_likelihood: Callable[..., FloatArray],
) -> FloatArray:
    """Absolute errors of mean and variance over the grid of Section V-A, for the label that agrees."""
    errors = [(0.0, 0.0)] * len(PAPER_MEANS)  # no variance, nothing learned
    for mean in PAPER_MEANS:
        for var in PAPER_VARS[1:]:
            y = float(mean > 0)
            truth = quadrature.tilted(partial(log_likelihood, y=y), mean, var)
            score, information = match(mean, var, y)
            errors.append((abs(mean + score * var - truth.mean), abs(var - information * var**2 - truth.var)))
    return np.array(errors)


def test_comparison_with_ground_truth_of_section_five() -> None:
    """The reading that reproduces the paper: noise 0.01 and the truth p(y|a) = N(y; s(a), 0.01)."""

    def paper_rule(mean: float, var: float, y: float) -> tuple[float, float]:
        step = kalman(Gaussian(0.01), PaperSigmoid(), mean, var, y)
        return float(step.score), float(step.information)

    errors = paper_grid(paper_rule, lambda a, y: -0.5 * (y - PaperSigmoid()(a)) ** 2 / 0.01)
    mean_error, var_error = errors.mean(axis=0)
    assert mean_error == pytest.approx(0.0907, abs=0.001)
    assert var_error == pytest.approx(0.1345, abs=0.001)


@pytest.mark.parametrize("label", [0.0, 1.0])
def test_exact_update_on_the_grid_of_section_five(label: float) -> None:
    for mean in PAPER_MEANS:
        for var in PAPER_VARS[1:]:
            truth = quadrature.tilted(lambda a: log_expit((2 * label - 1) * a), mean, var)
            step = Bernoulli().moment_match(Sigmoid(), mean, var, label)
            assert abs(mean + step.score * var - truth.mean) < 1e-7
            assert abs(var - step.information * var**2 - truth.var) < 1e-7
            assert step.log_z == pytest.approx(truth.log_z, abs=1e-7)


def label_likelihood(activation: Activation, label: float) -> Callable[[FloatArray], FloatArray]:
    sign = 2 * label - 1
    if isinstance(activation, Sigmoid):
        return lambda a: log_expit(sign * a)
    if isinstance(activation, Probit):
        return lambda a: log_ndtr(sign * a)
    return lambda a: np.where(sign * a > 0, 0.0, -1e30)


def worst_in_deviations(
    observation: Likelihood,
    activation: Activation,
    log_likelihood: Callable[[FloatArray], FloatArray],
    y: float,
    means: FloatArray,
    variances: FloatArray,
    breaks: tuple[float, ...] = (),
) -> float:
    """Largest error of the tilted mean, in posterior standard deviations, and of the deviation itself, relative."""
    worst = 0.0
    for mean in means:
        for var in variances:
            truth = quadrature.tilted(log_likelihood, mean, var, breaks)
            step = observation.moment_match(activation, mean, var, y)
            std = math.sqrt(truth.var)
            worst = max(worst, abs(mean + float(step.score) * var - truth.mean) / std)
            worst = max(worst, abs(math.sqrt(var * float(step.variance_ratio)) - std) / std)
            # kappa itself is as good as the difference var - kappa var² can show.
            worst = max(
                worst, abs(var - float(step.information) * var**2 - truth.var) / max(truth.var, 1e-9 * var) * 1e-2
            )
    return worst


@pytest.mark.parametrize("label", [0.0, 1.0])
@pytest.mark.parametrize("activation", [Sigmoid(), Probit(), Step()], ids=str)
def test_labels_are_learned_exactly(activation: Activation, label: float) -> None:
    means, variances = np.linspace(-8, 8, 17), np.logspace(-4, 2, 13)
    likelihood = label_likelihood(activation, label)
    assert worst_in_deviations(Bernoulli(), activation, likelihood, label, means, variances, (0.0,)) < 1e-6


@pytest.mark.parametrize("activation", [Sigmoid(), Probit()], ids=str)
def test_labels_far_against_the_belief_are_learned_exactly(activation: Activation) -> None:
    means, variances = np.linspace(-40, -8, 9), np.logspace(-4, 1, 11)
    assert worst_in_deviations(Bernoulli(), activation, label_likelihood(activation, 1.0), 1.0, means, variances) < 1e-5


@pytest.mark.parametrize("count", [0.0, 1.0, 7.0, 100.0])
def test_counts_are_learned_exactly(count: float) -> None:
    def likelihood(a: FloatArray) -> FloatArray:
        return np.asarray(count * a - np.exp(np.minimum(a, 300.0)) - math.lgamma(count + 1.0))

    means, variances = np.linspace(-8, 8, 9), np.logspace(-4, 2, 7)
    assert worst_in_deviations(Poisson(), as_activation("exp"), likelihood, count, means, variances) < 1e-6


@pytest.mark.parametrize("name", ["relu", "leaky_relu", "linear", "hard_tanh", "hard_sigmoid", "relu6"])
def test_gaussian_noise_around_pieces_is_learned_exactly(name: str) -> None:
    activation = as_activation(name)
    assert isinstance(activation, PiecewiseLinear)
    breaks = tuple(activation.knots)
    for noise in (1e-2, 1.0):
        for y in (-1.0, 0.3, 2.0):
            worst = worst_in_deviations(
                Gaussian(noise),
                activation,
                lambda a, y=y, noise=noise: -0.5 * (y - activation(a)) ** 2 / noise,  # type: ignore[misc]
                y,
                np.linspace(-8, 8, 9),
                np.logspace(-4, 2, 7),
                breaks,
            )
            assert worst < 1e-6, (noise, y)


@pytest.mark.parametrize("name", ["relu", "leaky_relu", "linear", "hard_tanh", "hard_sigmoid", "relu6"])
def test_outliers_at_thirty_sigma_are_learned_exactly(name: str) -> None:
    activation = as_activation(name)
    assert isinstance(activation, PiecewiseLinear)
    for mean in (-3.0, 0.0, 5.0):
        for var in (1e-3, 0.1, 4.0):
            noise = 0.01
            output = activation.moments(mean, var)
            for side in (-30, 30):
                y = float(output.mean) + side * math.sqrt(float(output.var) + noise)
                worst = worst_in_deviations(
                    Gaussian(noise),
                    activation,
                    lambda a, y=y: -0.5 * (y - activation(a)) ** 2 / 0.01,  # type: ignore[misc]
                    y,
                    np.array([mean]),
                    np.array([var]),
                    tuple(activation.knots),
                )
                assert worst < 1e-6, (mean, var, side)


def test_a_bimodal_row_may_widen_the_belief() -> None:
    """y = 1 of |a| from a vague belief near zero: a may be 1 or -1."""
    absolute = PiecewiseLinear([-1.0, 1.0], [0.0])
    step = Gaussian(0.01).moment_match(absolute, 0.0, 0.5, 1.0)
    assert step.information < 0
    assert step.score == pytest.approx(0.0, abs=1e-12)


@pytest.mark.parametrize("activation", [Sigmoid(), Probit(), Step()], ids=str)
@given(mean=st.floats(-1e6, 1e6), var=st.floats(1e-12, 1e12), label=st.sampled_from([0.0, 1.0]))
@example(mean=-85940.0, var=4.0998516927123115e-07, label=1.0)  # the share kept is a rounding error
def test_labels_never_break_the_belief(activation: Activation, mean: float, var: float, label: float) -> None:
    step = Bernoulli().moment_match(activation, mean, var, label)
    assert np.isfinite([step.log_z, step.score, step.information]).all()
    assert step.log_z <= 1e-12
    assert step.score * (2 * label - 1) >= 0
    assert 0 <= step.information * var <= 1


@given(var=st.floats(1e-4, 1e6), label=st.sampled_from([0.0, 1.0]))
def test_a_label_surprises_the_more_the_more_it_is_against_the_belief(var: float, label: float) -> None:
    means = np.linspace(-2e3, 2e3, 401)
    step = Bernoulli().moment_match(Sigmoid(), means, var, label)
    assert (np.diff(step.log_z) * (2 * label - 1) >= -1e-9 * np.abs(step.log_z[1:])).all()
    assert (np.diff(np.abs(step.score)) * (2 * label - 1) <= 1e-6).all()


@pytest.mark.parametrize("name", ["relu", "hard_tanh", "linear", "leaky_relu"])
@given(
    mean=st.floats(-1e6, 1e6),
    var=st.floats(0, 1e12),
    y=st.floats(-1e6, 1e6),
    noise=st.sampled_from([0.0, 1e-12, 1e-3, 1.0, 1e9]),
)
def test_noisy_pieces_never_break_the_belief(name: str, mean: float, var: float, y: float, noise: float) -> None:
    activation = as_activation(name)
    assert isinstance(activation, PiecewiseLinear)
    step = Gaussian(noise).moment_match(activation, mean, var, y)
    assert np.isfinite([step.log_z, step.score * var, step.information]).all()
    assert step.information * var <= 1


@given(mean=st.floats(-1e3, 1e3), var=st.floats(0, 1e6), y=st.floats(-1e3, 1e3), noise=st.floats(0, 1e3))
@pytest.mark.parametrize("name", ["sigmoid", "tanh", "relu", "linear", "gelu", "softplus"])
@pytest.mark.parametrize("moments", ["exact", "paper"])
def test_a_kalman_step_never_takes_more_variance_than_there_is(
    name: str, moments: str, mean: float, var: float, y: float, noise: float
) -> None:
    step = kalman(Gaussian(noise), as_activation(name, moments), mean, var, y)
    assert math.isfinite(step.score * var)
    assert 0 <= step.information * var <= 1 + 1e-12


def unguarded_information(mean: float, var: float, noise: float) -> float:
    output = PaperSigmoid().moments(mean, var)
    return float(output.slope**2 / (output.var + noise))


@given(mean=st.floats(-1e3, 1e3), var=st.floats(1e-12, 1e6), noise=st.floats(0.01, 10))
def test_the_guard_does_nothing_from_noise_001_on(mean: float, var: float, noise: float) -> None:
    step = kalman(Gaussian(noise), PaperSigmoid(), mean, var, 1.0)
    assert float(step.information) == pytest.approx(unguarded_information(mean, var, noise), rel=1e-12, abs=1e-300)


def test_the_guard_is_needed_without_noise() -> None:
    assert unguarded_information(0.0, 0.1, 0.0) * 0.1 > 1
    assert kalman(Gaussian(0.0), PaperSigmoid(), 0.0, 0.1, 1.0).information * 0.1 <= 1


@pytest.mark.parametrize(("name", "threshold"), [("sigmoid", 0.00733), ("tanh", 0.02932)])
def test_the_noise_from_which_the_guard_does_nothing(name: str, threshold: float) -> None:
    """``A² v <= Var f(a) + noise`` holds everywhere if the noise is at least the largest difference of the two."""
    activation = as_activation(name, "paper")
    mean, var = np.meshgrid(np.linspace(-8.0, 8.0, 321), np.geomspace(1e-8, 1e4, 600))
    output = activation.moments(mean, var)
    needed = output.slope**2 * var - output.var
    assert needed.max() == pytest.approx(threshold, rel=1e-3)
    assert needed.max() < threshold

    def is_limited(noise: float) -> bool:
        step = Gaussian(noise).moment_match(activation, mean, var, 1.0, "kalman")
        return bool((step.information < output.slope**2 / (output.var + noise) * (1.0 - 1e-9)).any())

    assert not is_limited(threshold)
    assert is_limited(0.99 * threshold)
    exact = as_activation(name).moments(mean, var)
    assert (exact.slope**2 * var - exact.var).max() < 1e-12


def test_no_variance_teaches_nothing() -> None:
    for name in ("sigmoid", "relu", "linear"):
        for noise in (0.0, 0.1):
            step = kalman(Gaussian(noise), as_activation(name), 0.3, 0.0, 1.0)
            assert not step.score.any()
            assert not step.information.any()


def test_a_label_has_the_variance_of_a_label_under_kalman() -> None:
    output = Sigmoid().moments(0.7, 1.3)
    step = kalman(Bernoulli(), Sigmoid(), 0.7, 1.3, 0.0)
    total = output.mean * (1 - output.mean)
    assert float(step.score) == pytest.approx(float(-output.slope * output.mean / total))
    assert float(step.information) == pytest.approx(float(output.slope**2 / total))
    assert float(step.log_z) == pytest.approx(math.log(1 - output.mean))


def test_defaults_follow_the_activation() -> None:
    def default(activation: Activation) -> str:
        return type(as_likelihood("auto", activation)).__name__

    assert [default(as_activation(name)) for name in ("sigmoid", "probit", "step")] == ["Bernoulli"] * 3
    assert default(PaperSigmoid()) == "Bernoulli"
    assert [default(as_activation(name)) for name in ("relu", "tanh", "hard_sigmoid")] == ["Gaussian"] * 3
    assert default(Quadrature(np.sin)) == "Gaussian"
    assert default(as_activation("exp")) == "Poisson"


@pytest.mark.parametrize("update", ["adf", "kalman"])
def test_counts_have_probabilities_that_sum_to_one(update: str) -> None:
    counts = np.arange(20_000.0)
    for mean, var in [(0.5, 0.2), (2.0, 0.0), (1.0, 1.5)]:
        output = as_activation("exp").moments(mean, var)
        probabilities = np.exp(Poisson().moment_match(as_activation("exp"), mean, var, counts, update).log_z)
        assert probabilities.sum() == pytest.approx(1.0, abs=1e-4)
        assert probabilities @ counts == pytest.approx(float(output.mean), rel=1e-2)


def residuals(state: LearningState, values: list[float], var: float = 1e-12) -> None:
    """Learn targets so far from what a known linear output predicts."""
    linear = Gaussian(1.0).compiled(as_activation("linear"), "adf")
    for value in values:
        learn_scalar(linear, state, 0.0, var, 0.0, value)


def test_learned_noise_follows_its_samples() -> None:
    state = LearningState(1.0, 1.0)
    residuals(state, [math.sqrt(3.0)] * 400)
    assert state.noise == pytest.approx(3.0, rel=0.02)
    windowed = LearningState(1.0, 1.0, noise_window=10.0)
    residuals(windowed, [1.0] * 500 + [math.sqrt(5.0)] * 60)
    assert windowed.noise == pytest.approx(5.0, rel=0.2)


def test_a_fixed_noise_stays() -> None:
    fixed = LearningState(0.5)
    residuals(fixed, [100.0])
    assert fixed.noise == 0.5


def test_a_row_that_the_weights_took_up_says_nothing_of_the_noise() -> None:
    state = LearningState(0.1, 20.0)
    state.n_seen = 1e3
    residuals(state, [3.0], var=1e6)
    assert state.noise == pytest.approx(0.1, rel=1e-5)
    assert state.noise_weight == pytest.approx(20.0, rel=1e-5)


def test_a_row_that_cannot_be_learned_changes_nothing() -> None:
    state = LearningState(0.1, 1.0)
    before = state.to_array()
    residuals(state, [math.nan])
    np.testing.assert_array_equal(state.to_array(), before)


def test_quantiles_of_one_target_and_of_many_agree() -> None:
    mean, linear = np.array([[0.0, 1.0, -2.0]]), as_activation("linear")
    for likelihood in (Gaussian(0.5), Gaussian(0.5, log_noise_var=1.0)):
        many = likelihood.quantile(linear, mean, np.ones_like(mean), 0.9)
        assert many.shape == mean.shape
        assert likelihood.quantile(linear, mean[0, 1], np.ones(()), 0.9) == pytest.approx(many[0, 1])
