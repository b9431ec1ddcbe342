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
from onepass.likelihoods.univariate import (
    NOISE,
    Bernoulli,
    Gaussian,
    Observation,
    Poisson,
    as_observation,
    kalman,
    learn_noise,
    start_noise,
    start_running,
)
from tests.helpers import quadrature

PAPER_MEANS = np.arange(-30, 31) * 0.1
PAPER_VARS = np.arange(11) * 0.2


def test_one_kalman_step_by_hand() -> None:
    # Linear output: mu_y = 1, sigma_y² = 2 + 0.5, sigma_ya² = 2. k = 2/2.5 = 0.8, so the mean of a moves by
    # 0.8 (3 - 1) = 1.6 = alpha * 2 and its variance by -0.8 * 2 = -1.6 = -kappa * 4.
    step = kalman(as_activation("linear"), Gaussian(0.5), 1.0, 2.0, 3.0)
    assert (step.alpha, step.kappa) == pytest.approx((0.8, 0.4))
    assert step.log_z == pytest.approx(-0.5 * (math.log(2 * math.pi * 2.5) + 4 / 2.5))


def test_one_sigmoid_step_by_hand() -> None:
    # mu_a = 0, sigma_a² = 8/π: λ² sigma_a² = 1, t = √2, mu_y = 1/2, sigma_y² = (1 - 1/√2)/4,
    # sigma_ya² = λ sigma_a²/t * 1/√(2π); with epsilon = 0.1.
    lam, var = math.sqrt(math.pi / 8), 8 / math.pi
    total = (1 - 1 / math.sqrt(2)) / 4 + 0.1
    cov = lam * var / math.sqrt(2) / math.sqrt(2 * math.pi)
    step = kalman(PaperSigmoid(), Gaussian(0.1), 0.0, var, 1.0)
    assert step.alpha * var == pytest.approx(cov / total * 0.5, rel=1e-13)
    assert step.kappa * var**2 == pytest.approx(cov**2 / total, rel=1e-13)


def paper_grid(
    tilt: Callable[[float, float, float], tuple[float, float]],
    log_likelihood: Callable[..., FloatArray],
) -> FloatArray:
    """Absolute errors of mean and variance over the grid of Section V-A, for the label that agrees."""
    errors = [(0.0, 0.0)] * len(PAPER_MEANS)  # no variance, nothing learned
    for mean in PAPER_MEANS:
        for var in PAPER_VARS[1:]:
            y = float(mean > 0)
            truth = quadrature.tilted(partial(log_likelihood, y=y), mean, var)
            alpha, kappa = tilt(mean, var, y)
            errors.append((abs(mean + alpha * var - truth.mean), abs(var - kappa * var**2 - truth.var)))
    return np.array(errors)


def test_comparison_with_ground_truth_of_section_five() -> None:
    """The reading that reproduces the paper: noise 0.01 and the truth p(y|a) = N(y; s(a), 0.01)."""

    def paper_rule(mean: float, var: float, y: float) -> tuple[float, float]:
        step = kalman(PaperSigmoid(), Gaussian(0.01), mean, var, y)
        return float(step.alpha), float(step.kappa)

    errors = paper_grid(paper_rule, lambda a, y: -0.5 * (y - PaperSigmoid()(a)) ** 2 / 0.01)
    mean_error, var_error = errors.mean(axis=0)
    assert mean_error == pytest.approx(0.0907, abs=0.001)
    assert var_error == pytest.approx(0.1345, abs=0.001)


@pytest.mark.parametrize("label", [0.0, 1.0])
def test_exact_update_on_the_grid_of_section_five(label: float) -> None:
    for mean in PAPER_MEANS:
        for var in PAPER_VARS[1:]:
            truth = quadrature.tilted(lambda a: log_expit((2 * label - 1) * a), mean, var)
            step = Sigmoid().tilt_by_label(mean, var, label)
            assert abs(mean + step.alpha * var - truth.mean) < 1e-7
            assert abs(var - step.kappa * var**2 - truth.var) < 1e-7
            assert step.log_z == pytest.approx(truth.log_z, abs=1e-7)


def label_likelihood(activation: Activation, label: float) -> Callable[[FloatArray], FloatArray]:
    sign = 2 * label - 1
    if isinstance(activation, Sigmoid):
        return lambda a: log_expit(sign * a)
    if isinstance(activation, Probit):
        return lambda a: log_ndtr(sign * a)
    return lambda a: np.where(sign * a > 0, 0.0, -1e30)


def worst_in_deviations(
    observation: Observation,
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
            step = observation.adf(activation, mean, var, y)
            std = math.sqrt(truth.var)
            worst = max(worst, abs(mean + float(step.alpha) * var - truth.mean) / std)
            worst = max(worst, abs(math.sqrt(var * float(step.left)) - std) / std)
            # kappa itself is as good as the difference var - kappa var² can show.
            worst = max(worst, abs(var - float(step.kappa) * var**2 - truth.var) / max(truth.var, 1e-9 * var) * 1e-2)
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
    step = Gaussian(0.01).adf(absolute, 0.0, 0.5, 1.0)
    assert step.kappa < 0
    assert step.alpha == pytest.approx(0.0, abs=1e-12)


@pytest.mark.parametrize("activation", [Sigmoid(), Probit(), Step()], ids=str)
@given(mean=st.floats(-1e6, 1e6), var=st.floats(1e-12, 1e12), label=st.sampled_from([0.0, 1.0]))
@example(mean=-85940.0, var=4.0998516927123115e-07, label=1.0)  # the share kept is a rounding error
def test_labels_never_break_the_belief(activation: Activation, mean: float, var: float, label: float) -> None:
    step = Bernoulli().adf(activation, mean, var, label)
    assert np.isfinite([step.log_z, step.alpha, step.kappa]).all()
    assert step.log_z <= 1e-12
    assert step.alpha * (2 * label - 1) >= 0
    assert 0 <= step.kappa * var <= 1


@given(var=st.floats(1e-4, 1e6), label=st.sampled_from([0.0, 1.0]))
def test_a_label_surprises_the_more_the_more_it_is_against_the_belief(var: float, label: float) -> None:
    means = np.linspace(-2e3, 2e3, 401)
    step = Bernoulli().adf(Sigmoid(), means, var, label)
    assert (np.diff(step.log_z) * (2 * label - 1) >= -1e-9 * np.abs(step.log_z[1:])).all()
    assert (np.diff(np.abs(step.alpha)) * (2 * label - 1) <= 1e-6).all()


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
    step = Gaussian(noise).adf(activation, mean, var, y)
    assert np.isfinite([step.log_z, step.alpha * var, step.kappa]).all()
    assert step.kappa * var <= 1
    assert np.isfinite(activation.expected_square(mean, var, y, noise))


@given(mean=st.floats(-1e3, 1e3), var=st.floats(0, 1e6), y=st.floats(-1e3, 1e3), noise=st.floats(0, 1e3))
@pytest.mark.parametrize("name", ["sigmoid", "tanh", "relu", "linear", "gelu", "softplus"])
@pytest.mark.parametrize("moments", ["exact", "paper"])
def test_a_kalman_step_never_takes_more_variance_than_there_is(
    name: str, moments: str, mean: float, var: float, y: float, noise: float
) -> None:
    step = kalman(as_activation(name, moments), Gaussian(noise), mean, var, y)
    assert math.isfinite(step.alpha * var)
    assert 0 <= step.kappa * var <= 1 + 1e-12


def unguarded_kappa(mean: float, var: float, noise: float) -> float:
    output = PaperSigmoid().moments(mean, var)
    return float(output.slope**2 / (output.var + noise))


@given(mean=st.floats(-1e3, 1e3), var=st.floats(1e-12, 1e6), noise=st.floats(0.01, 10))
def test_the_guard_does_nothing_from_noise_001_on(mean: float, var: float, noise: float) -> None:
    step = kalman(PaperSigmoid(), Gaussian(noise), mean, var, 1.0)
    assert float(step.kappa) == pytest.approx(unguarded_kappa(mean, var, noise), rel=1e-12, abs=1e-300)


def test_the_guard_is_needed_without_noise() -> None:
    assert unguarded_kappa(0.0, 0.1, 0.0) * 0.1 > 1
    assert kalman(PaperSigmoid(), Gaussian(0.0), 0.0, 0.1, 1.0).kappa * 0.1 <= 1


def test_no_variance_teaches_nothing() -> None:
    for name in ("sigmoid", "relu", "linear"):
        for noise in (0.0, 0.1):
            step = kalman(as_activation(name), Gaussian(noise), 0.3, 0.0, 1.0)
            assert not step.alpha.any()
            assert not step.kappa.any()


def test_a_label_has_the_variance_of_a_label_under_kalman() -> None:
    output = Sigmoid().moments(0.7, 1.3)
    step = kalman(Sigmoid(), Bernoulli(), 0.7, 1.3, 0.0)
    total = output.mean * (1 - output.mean)
    assert float(step.alpha) == pytest.approx(float(-output.slope * output.mean / total))
    assert float(step.kappa) == pytest.approx(float(output.slope**2 / total))
    assert float(step.log_z) == pytest.approx(math.log(1 - output.mean))


def test_defaults_follow_the_activation() -> None:
    def default(activation: Activation) -> str:
        return type(as_observation("auto", None, None, activation)[0]).__name__

    assert [default(as_activation(name)) for name in ("sigmoid", "probit", "step")] == ["Bernoulli"] * 3
    assert default(PaperSigmoid()) == "Bernoulli"
    assert [default(as_activation(name)) for name in ("relu", "tanh", "hard_sigmoid")] == ["Gaussian"] * 3
    assert default(Quadrature(np.sin)) == "Gaussian"
    assert default(as_activation("exp")) == "Poisson"


def test_counts_have_a_density_that_sums_to_one() -> None:
    for mean, var in [(0.5, 0.2), (2.0, 0.0), (1.0, 1.5)]:
        output = as_activation("exp").moments(mean, var)
        density = np.exp(Poisson().log_density(output, np.arange(20_000.0)))
        assert density.sum() == pytest.approx(1.0, abs=1e-4)
        assert density @ np.arange(20_000.0) == pytest.approx(float(output.mean), rel=1e-2)


def test_learned_noise_follows_its_samples() -> None:
    running = start_running(1.0, 1.0)
    for _ in range(200):
        learn_noise(running, 3.0, left=1.0)
    assert running[NOISE] == pytest.approx(3.0, rel=1e-3)
    windowed = start_running(1.0, 1.0, window=10.0)
    for sample in [1.0] * 500 + [5.0] * 30:
        learn_noise(windowed, sample, left=1.0)
    assert windowed[NOISE] == pytest.approx(5.0 - 4.0 * 0.9**30, rel=1e-6)


def test_the_first_residuals_say_how_large_the_noise_may_be() -> None:
    running = start_running(1e-12, 1.0)
    start_noise(running, -3.0)
    start_noise(running, 2.0)
    assert running[NOISE] == 9.0
    fixed = start_running(0.5)
    start_noise(fixed, 100.0)
    assert fixed[NOISE] == 0.5


def test_a_row_that_the_weights_took_up_says_nothing_of_the_noise() -> None:
    """The sample of a linear row with noise e and variance v: (e r/S)² + e v/S, a share e/S of it left."""
    running = start_running(0.1, 20.0)
    running[4] = 1e3
    noise, v, residual = 0.1, 1e6, 3.0
    total = v + noise
    learn_noise(running, (noise * residual / total) ** 2 + noise * v / total, left=noise / total)
    assert running[NOISE] == pytest.approx(0.1)
    assert running[1] == pytest.approx(20.0)
