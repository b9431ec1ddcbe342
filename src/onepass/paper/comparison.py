"""Section V-A and Figure 3: the closed-form posterior of the pre-activation against numerical integration.

The paper does not say which likelihood its ground truth has. Its printed errors are reproduced if a label is the
sigmoid plus Gaussian noise of variance 0.01, in the update and in the truth; with the Bernoulli likelihood,
``p(1|a) = s(a)``, they are not. Both are measured here.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from statistics import median
from time import perf_counter
from typing import Any

import numpy as np
from scipy.integrate import quad
from scipy.special import expit, log_expit

from onepass._typing import FloatArray
from onepass.activations import PaperSigmoid, Sigmoid
from onepass.likelihoods import Bernoulli, Gaussian, MomentMatch
from onepass.paper.base import Tick

__all__ = [
    "NOISE",
    "PRINTED",
    "RULES",
    "ComparisonOutcome",
    "Errors",
    "Grid",
    "printed_update",
    "run",
    "steps",
    "tilted_moments",
]

NOISE = 0.01
REPEATS = 7  # of each timing; the median counts
_LAMBDA = math.sqrt(math.pi / 8.0)

# The paper's numbers. The maxima are not printed: they are where the axes of its Figure 3 end.
PRINTED = {
    "mean_mae": 0.0952,
    "mean_std": 0.0708,
    "mean_max": 0.3,
    "var_mae": 0.1349,
    "var_std": 0.1291,
    "var_max": 0.5,
}

LogLikelihood = Callable[[FloatArray, FloatArray], FloatArray]


RULES = (
    "reproduced",
    "bernoulli_paper_rule",
    "bernoulli_guarded",
    "bernoulli_noise",
    "bernoulli_label_variance",
    "exact",
)
"""Whose errors are measured: see `ComparisonOutcome`."""


@dataclass(frozen=True)
class Grid:
    """Prior means and variances of the pre-activation and the label, each ``(n,)``."""

    mean: FloatArray
    var: FloatArray
    label: FloatArray

    @classmethod
    def of_the_paper(cls) -> "Grid":
        """Means -3, -2.9, ..., 3; variances 0, 0.2, ..., 2; the label is 1 where the mean is positive."""
        mean, var = (axis.ravel() for axis in np.meshgrid(np.arange(-30, 31) / 10.0, np.arange(11) / 5.0))
        return cls(mean, var, (mean > 0).astype(np.float64))


@dataclass(frozen=True)
class Errors:
    """Absolute errors of the posterior mean and variance over the grid, each ``(n,)``."""

    mean: FloatArray
    var: FloatArray

    def numbers(self) -> dict[str, float]:
        """Their means, standard deviations and maxima."""
        return {
            f"{name}_{statistic}": float(value)
            for name, error in (("mean", self.mean), ("var", self.var))
            for statistic, value in (("mae", error.mean()), ("std", error.std()), ("max", error.max()))
        }


@dataclass(frozen=True)
class Runtime:
    """Seconds per grid point, medians of alternating runs."""

    closed_form: float
    integration: float
    paper_on_grid: float
    exact_on_grid: float
    integration_on_grid: float
    ratio: float
    """Integration to the paper's closed form, point by point."""
    exact_ratio: float
    """Integration to the exact update, on the whole grid at once."""


@dataclass(frozen=True)
class ComparisonOutcome:
    """Errors of every rule against its truth, and the run times."""

    reproduced: Errors
    """The paper's rule and the truth both with Gaussian noise of variance 0.01."""
    bernoulli_paper_rule: Errors
    """The paper's formulas as printed, without noise, against the truth of a coin toss."""
    bernoulli_guarded: Errors
    """The same in `onepass`, whose guard keeps the variance from turning negative."""
    bernoulli_noise: Errors
    """The same with noise 0.01 in the update."""
    bernoulli_label_variance: Errors
    """The paper's rule with the variance a label has, mu_y (1 - mu_y)."""
    exact: Errors
    """Our exact update."""
    negative_variances: int
    """Grid points where the formulas as printed leave a negative variance."""
    integration_disagreement: float
    """Largest difference between the two numerical integrations."""
    runtime: Runtime

    def numbers(self) -> dict[str, Any]:
        """Every number; keys with "seconds" or "runtime" in them vary from run to run."""
        return {
            "paper": dict(PRINTED),
            **{name: getattr(self, name).numbers() for name in RULES},
            "share_of_mean_errors_below_0.2": float(np.mean(self.reproduced.mean < 0.2)),
            "negative_variances": self.negative_variances,
            "integration_disagreement": self.integration_disagreement,
            "runtime_ratio": self.runtime.ratio,
            "closed_form_seconds": self.runtime.closed_form,
            "integration_seconds": self.runtime.integration,
            "paper_on_grid_seconds": self.runtime.paper_on_grid,
            "exact_on_grid_seconds": self.runtime.exact_on_grid,
            "integration_on_grid_seconds": self.runtime.integration_on_grid,
            "exact_runtime_ratio": self.runtime.exact_ratio,
        }


def steps(trials: int) -> int:
    """Two truths, then the timings; the grid is fixed, so there are no trials."""
    return 2 + REPEATS


def run(seed: int, trials: int, tick: Tick) -> ComparisonOutcome:
    """Measure all rules on the full grid."""
    grid = Grid.of_the_paper()
    noisy = tilted_moments(_noisy_sigmoid, grid)
    tick()
    toss = tilted_moments(_coin_toss, grid)
    tick()

    paper = PaperSigmoid()
    points = list(zip(grid.mean.tolist(), grid.var.tolist(), grid.label.tolist(), strict=True))
    printed = np.array([printed_update(*point, noise=0.0) for point in points]).T

    def errors_of(match: MomentMatch, truth: tuple[FloatArray, FloatArray]) -> Errors:
        return _errors((grid.mean + match.score * grid.var, grid.var - match.information * grid.var**2), truth)

    def by_kalman(likelihood: Gaussian | Bernoulli) -> MomentMatch:
        return likelihood.moment_match(paper, grid.mean, grid.var, grid.label, "kalman")

    runtime, integrated = _time(grid, points, tick)
    return ComparisonOutcome(
        reproduced=errors_of(by_kalman(Gaussian(NOISE)), noisy),
        bernoulli_paper_rule=_errors((printed[0], printed[1]), toss),
        bernoulli_guarded=errors_of(by_kalman(Gaussian(0.0)), toss),
        bernoulli_noise=errors_of(by_kalman(Gaussian(NOISE)), toss),
        bernoulli_label_variance=errors_of(by_kalman(Bernoulli()), toss),
        exact=errors_of(Bernoulli().moment_match(Sigmoid(), grid.mean, grid.var, grid.label), toss),
        negative_variances=int(np.sum(printed[1] < 0.0)),
        integration_disagreement=float(np.abs(np.array(integrated).T - np.array(noisy)).max()),
        runtime=runtime,
    )


def printed_update(mean: float, var: float, label: float, noise: float) -> tuple[float, float]:
    """Posterior mean and variance of the pre-activation, equation by equation as the paper prints them.

    Examples
    --------
    >>> mean, var = printed_update(0.5, 1.0, 1.0, noise=0.01)
    >>> print(f"{mean:.3f} {var:.3f}")
    2.240 0.101
    """
    if var == 0.0:
        return mean, var  # a is known: without noise the gain would be 0/0
    t = math.sqrt(1.0 + _LAMBDA**2 * var)
    output = 1.0 / (1.0 + math.exp(-mean / t))  # equation (8)
    output_var = output * (1.0 - output) * (1.0 - 1.0 / t)  # (11)
    density = math.exp(-0.5 * (_LAMBDA * mean / t) ** 2) / math.sqrt(2.0 * math.pi)
    cross = _LAMBDA * var / t * density  # (20)
    gain = cross / (output_var + noise)
    return mean + gain * (label - output), var - gain * cross  # (17)


def tilted_moments(log_likelihood: LogLikelihood, grid: Grid) -> tuple[FloatArray, FloatArray]:
    """Mean and variance of ``p(y|a) N(a; mean, var)`` at all grid points, by composite Gauss-Legendre."""
    nodes, weights = np.polynomial.legendre.leggauss(24)
    edges = np.linspace(-12.0, 12.0, 97)  # in prior standard deviations; what lies beyond weighs less than e^-72
    half = np.diff(edges)[:, None] / 2.0
    z = (edges[:-1, None] + half * (1.0 + nodes)).ravel()
    std = np.sqrt(grid.var)
    log_density = log_likelihood(grid.mean[:, None] + std[:, None] * z, grid.label[:, None]) - 0.5 * z**2
    density = np.exp(log_density - log_density.max(axis=1, keepdims=True)) * (half * weights).ravel()
    density /= density.sum(axis=1, keepdims=True)
    centre = density @ z
    return grid.mean + std * centre, grid.var * (density * (z - centre[:, None]) ** 2).sum(axis=1)


def _noisy_sigmoid(a: FloatArray, label: FloatArray) -> FloatArray:
    return np.asarray(-0.5 * (label - expit(a)) ** 2 / NOISE)


def _coin_toss(a: FloatArray, label: FloatArray) -> FloatArray:
    return np.asarray(log_expit((2.0 * label - 1.0) * a))


def _errors(found: tuple[FloatArray, FloatArray], truth: tuple[FloatArray, FloatArray]) -> Errors:
    return Errors(np.abs(found[0] - truth[0]), np.abs(found[1] - truth[1]))


def _adaptive_integration(mean: float, var: float, label: float) -> tuple[float, float]:
    """Posterior mean and variance at one grid point by adaptive quadrature, not written for speed."""
    if var == 0.0:
        return mean, var
    std = math.sqrt(var)

    def density(a: float) -> float:
        return math.exp(-0.5 * (label - 1.0 / (1.0 + math.exp(-a))) ** 2 / NOISE - 0.5 * ((a - mean) / std) ** 2)

    low, high = mean - 8.0 * std, mean + 8.0 * std
    mass = quad(density, low, high)[0]
    centre = quad(lambda a: a * density(a), low, high)[0] / mass
    return centre, quad(lambda a: (a - centre) ** 2 * density(a), low, high)[0] / mass


def _time(
    grid: Grid, points: list[tuple[float, float, float]], tick: Tick
) -> tuple[Runtime, list[tuple[float, float]]]:
    """Time closed form and integration in turn, so that other load on the machine affects both alike."""
    jobs: dict[str, Callable[[], Any]] = {
        "closed_form": lambda: [printed_update(*point, noise=NOISE) for point in points],
        "integration": lambda: [_adaptive_integration(*point) for point in points],
        "paper_on_grid": lambda: Gaussian(NOISE).moment_match(
            PaperSigmoid(), *(grid.mean, grid.var, grid.label), "kalman"
        ),
        "exact_on_grid": lambda: Bernoulli().moment_match(Sigmoid(), grid.mean, grid.var, grid.label),
        "integration_on_grid": lambda: tilted_moments(_coin_toss, grid),
    }
    seconds: dict[str, list[float]] = {name: [] for name in jobs}
    results: dict[str, Any] = {}
    for _ in range(REPEATS):
        for name, job in jobs.items():
            start = perf_counter()
            results[name] = job()
            seconds[name].append((perf_counter() - start) / len(points))
        tick()

    def ratio(slow: str, fast: str) -> float:
        return median(a / b for a, b in zip(seconds[slow], seconds[fast], strict=True))

    runtime = Runtime(
        **{name: median(times) for name, times in seconds.items()},
        ratio=ratio("integration", "closed_form"),
        exact_ratio=ratio("integration_on_grid", "exact_on_grid"),
    )
    return runtime, results["integration"]
