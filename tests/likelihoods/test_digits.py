"""Every exact moment match against mpmath, from vague beliefs to ones known a hundred million times better.

The oracle takes the textbook formulas, which lose all their digits in float64, with hundreds of digits; where there is
no formula it integrates.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from mpmath import mp, mpf

from onepass.activations import PiecewiseLinear, as_activation
from onepass.likelihoods import Bernoulli, Gaussian, Likelihood, Poisson

RATIOS = [1e-2, 1.0, 1e2, 1e4, 1e6, 1e8]  # of the mean to the standard deviation


def phi(z: Any) -> Any:
    return mp.npdf(z) if mp.isfinite(z) else mpf(0)


def mass_between(low: Any, high: Any) -> Any:
    """``Φ(high) - Φ(low)``, from the side on which it is small."""
    root = mp.sqrt(2)
    if low > 0:
        return (mp.erfc(low / root) - mp.erfc(high / root)) / 2
    return (mp.erfc(-high / root) - mp.erfc(-low / root)) / 2


def tilted_by_pieces(f: PiecewiseLinear, mean: float, var: float, y: float, noise: float) -> tuple[Any, Any, Any]:
    """Log mass, mean and variance of ``N(y; f(a), noise) N(a; mean, var)``, a sum of cut Gaussians."""
    m, v, e = mpf(mean), mpf(var), mpf(noise)
    knots = [mpf("-inf"), *map(mpf, f.knots.tolist()), mpf("inf")]
    mass = first = second = mpf(0)
    for i, (slope, level) in enumerate(zip(f.slopes.tolist(), f.intercepts.tolist(), strict=True)):
        s, b = mpf(slope), mpf(level)
        total = e + s * s * v
        centre, width = m + v * s * (mpf(y) - b - s * m) / total, mp.sqrt(v * e / total)
        low, high = (knots[i] - centre) / width, (knots[i + 1] - centre) / width
        weight = mp.npdf(mpf(y), s * m + b, mp.sqrt(total))
        zeroth, slope_low, slope_high = mass_between(low, high), phi(low), phi(high)
        lever = (low * slope_low if mp.isfinite(low) else 0) - (high * slope_high if mp.isfinite(high) else 0)
        mass += weight * zeroth
        first += weight * (centre * zeroth + width * (slope_low - slope_high))
        second += weight * (
            centre**2 * zeroth + 2 * centre * width * (slope_low - slope_high) + width**2 * (zeroth + lever)
        )
    return mp.log(mass), first / mass, second / mass - (first / mass) ** 2


def assert_matches(likelihood: Likelihood, activation: Any, mean: float, var: float, y: float, truth: Any) -> None:
    log_z, centre, variance = truth
    match = likelihood.moment_match(activation, mean, var, y)
    sd = mp.sqrt(mpf(var))
    shift, ratio = (centre - mpf(mean)) / sd, variance / mpf(var)
    where = (activation, mean, var, y)
    # A mean is known to its own rounding, of which the shift sees mean/sd times as much.
    rounding = 1e-9 + 4e-16 * abs(mean) / float(sd)
    assert abs(mpf(float(match.score)) * sd - shift) <= rounding * (1 + abs(shift)), where
    assert abs(mpf(float(match.variance_ratio)) / ratio - 1) <= 10 * rounding, where
    assert abs(mpf(float(match.information)) * mpf(var) - (1 - ratio)) <= 10 * rounding, where
    assert abs(mpf(float(match.log_z)) - log_z) <= rounding * (10 + abs(log_z)), where


@pytest.mark.parametrize("name", ["relu", "leaky_relu", "linear", "hard_tanh", "hard_sigmoid", "relu6"])
@pytest.mark.parametrize("ratio", RATIOS)
def test_gaussian_noise_around_pieces_keeps_its_digits(name: str, ratio: float) -> None:
    activation = as_activation(name)
    assert isinstance(activation, PiecewiseLinear)
    with mp.workdps(120):
        for mean in (-40.0, 0.5, 7.0, 3e4):
            var = (mean / ratio) ** 2
            for noise in (1e-6 * var, var, 1e4 * var):
                for off in (-3.0, 0.0, 2.0):
                    y = float(activation(mean)) + off * float(np.sqrt(var + noise))
                    truth = tilted_by_pieces(activation, mean, var, y, noise)
                    assert_matches(Gaussian(noise), activation, mean, var, y, truth)


@pytest.mark.parametrize("name", ["probit", "step"])
@pytest.mark.parametrize("ratio", RATIOS)
def test_labels_around_a_probit_keep_their_digits(name: str, ratio: float) -> None:
    activation = as_activation(name)
    with mp.workdps(60):
        for mean in (-30.0, -0.3, 2.0):
            for label in (0.0, 1.0):
                var = (mean / ratio) ** 2
                m, v = mpf(mean) * (1 if label else -1), mpf(var)
                k = 1 / mp.sqrt(v + (1 if name == "probit" else 0))
                z = k * m
                if z < -1e6:  # beyond what erfc can say at any precision; there only the sign of the label matters
                    continue
                tail = mp.erfc(-z / mp.sqrt(2)) / 2
                r = mp.npdf(z) / tail
                centre = mpf(mean) + (1 if label else -1) * v * k * r
                truth = mp.log(tail), centre, v - v * v * k * k * r * (r + z)
                assert_matches(Bernoulli(), activation, mean, var, label, truth)


def integrated(log_likelihood: Callable[[Any], Any], mean: float, var: float, around: float, width: float) -> Any:
    """The same by integrating a density whose mass is known to lie around a point."""
    m, v = mpf(mean), mpf(var)

    def density(a: Any) -> Any:
        return mp.exp(log_likelihood(a) - (a - m) ** 2 / (2 * v) - peak)

    peak = log_likelihood(mpf(around)) - (mpf(around) - m) ** 2 / (2 * v)
    edges = [mpf(around) + mpf(width) * k for k in range(-40, 41, 4)]
    mass = mp.quad(density, edges)
    centre = mp.quad(lambda a: a * density(a), edges) / mass
    variance = mp.quad(lambda a: (a - centre) ** 2 * density(a), edges) / mass
    return mp.log(mass) + peak - mp.log(2 * mp.pi * v) / 2, centre, variance


def mode_of_count(count: float, mean: float, var: float) -> Any:
    """Solve (a - mean)/var = count - e^a."""
    start = float(np.log(count)) if var > 1 else mean
    return mp.findroot(lambda a: (a - mean) / mpf(var) - count + mp.exp(a), start)


@pytest.mark.parametrize("var", [1e-12, 1e-2, 1e2, 1e4, 1e6, 1e9])
@pytest.mark.parametrize("count", [1.0, 7.0, 1000.0])
def test_counts_keep_their_digits_under_the_vaguest_belief(count: float, var: float) -> None:
    """Around its mode the density is as wide as its curvature there says."""
    with mp.workdps(30):
        for mean in (-3.0, 0.0, 2.0):
            mode = mode_of_count(count, mean, var)
            width = 1 / mp.sqrt(1 / mpf(var) + mp.exp(mode))
            truth = integrated(lambda a: count * a - mp.exp(a) - mp.loggamma(count + 1), mean, var, mode, width)
            match = Poisson().moment_match(as_activation("exp"), mean, var, count)
            _, centre, variance = truth
            std = mp.sqrt(variance)
            assert abs(mpf(mean) + mpf(float(match.score)) * mpf(var) - centre) / std < 1e-6
            assert abs(mp.sqrt(mpf(var) * mpf(float(match.variance_ratio))) / std - 1) < 1e-6
            assert abs(mpf(float(match.log_z)) - truth[0]) < 1e-7 * (1 + abs(truth[0]))


def test_a_precise_reading_far_from_the_kink_leaves_its_covariance() -> None:
    """A negligible piece once left rounding that outgrew the variance: all of it was lost, and nothing more learned."""
    from onepass import BayesianPerceptron

    rng = np.random.default_rng(0)
    n = 20_000
    X = 10 * (np.abs(rng.normal(size=(n, 2))) + 0.5)
    y = X @ [3.0, 2.0] + rng.normal(0, 1e-3, n)
    relu = BayesianPerceptron(2, "relu", bias=False, noise=1e-6).learn(X, y)
    linear = BayesianPerceptron(2, "linear", bias=False, noise=1e-6).learn(X, y)
    np.testing.assert_allclose(relu.cov, linear.cov, rtol=1e-6)
    np.testing.assert_allclose(relu.mean, linear.mean, rtol=1e-9)
