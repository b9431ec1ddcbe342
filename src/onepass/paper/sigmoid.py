"""Figure 2: how well one scaled probit stands in for the sigmoid, and how well a mixture of them does."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from scipy.special import expit, ndtr

from onepass._typing import FloatArray
from onepass.activations.sigmoid import SCALES, WEIGHTS
from onepass.mathematics.gaussian import pdf
from onepass.paper.base import COLUMNS, Tick, short
from onepass.reports.html import Picture, Section, Table
from onepass.reports.plots import EXACT, GREY, PAPER, label_panels, new_figure, without_markers

__all__ = ["TITLE", "Approximation", "SigmoidOutcome", "run", "steps"]

TITLE = "The sigmoid and its stand-ins (Fig. 2)"
PAPER_SCALE = np.sqrt(np.pi / 8.0)  # the paper's lambda
_REACH = 40.0  # beyond, every curve is within 1e-17 of its limit


@dataclass(frozen=True)
class Approximation:
    """A mixture of probits in the sigmoid's place, and its errors on the grid, each ``(n,)``."""

    value: FloatArray
    slope: FloatArray
    value_error: FloatArray
    slope_error: FloatArray


@dataclass(frozen=True)
class SigmoidOutcome:
    """The curves of Figure 2 over the grid ``a``."""

    a: FloatArray
    sigmoid: FloatArray
    slope: FloatArray
    probit: Approximation
    mixture: Approximation

    def numbers(self) -> dict[str, Any]:
        """Largest errors of both approximations."""
        return {
            "scale": float(PAPER_SCALE),
            "mixture_size": len(WEIGHTS),
            "probit_max_error": float(self.probit.value_error.max()),
            "probit_slope_max_error": float(self.probit.slope_error.max()),
            "mixture_max_error": float(self.mixture.value_error.max()),
            "mixture_slope_max_error": float(self.mixture.slope_error.max()),
        }

    def draw(self) -> dict[str, Figure]:
        """Draw the functions, their slopes, and the errors on a logarithmic axis."""
        figure, axes = new_figure(1, 3, 9.6, 2.9)
        near = np.abs(self.a) <= 7.0
        a = self.a[near]
        thick_grey = {"color": GREY, "linewidth": 3.4, "alpha": 0.6}
        curves = (
            (axes[0, 0], self.sigmoid, self.probit.value, r"$s(a)$", r"$\Phi(\lambda a)$"),
            (axes[0, 1], self.slope, self.probit.slope, r"$s'(a)$", r"$\mathcal{N}(a;\,0,\,1/\lambda^2)$"),
        )
        for panel, exact, probit, exact_name, probit_name in curves:
            panel.plot(a, exact[near], label=exact_name, **thick_grey)
            panel.plot(a, probit[near], label=probit_name, **{**without_markers(PAPER), "linestyle": (0, (4, 1.5))})
            panel.set(xlabel="$a$", xlim=(-7, 7), xticks=range(-6, 7, 2))
        axes[0, 0].set(ylabel="value", ylim=(0, 1.02))
        axes[0, 0].legend(loc="upper left")
        axes[0, 1].set(ylabel="slope", ylim=(0, 0.33))
        axes[0, 1].legend(loc="upper center", ncols=2, columnspacing=1.2, handlelength=2.2)
        error = axes[0, 2]
        error.semilogy(a, self.probit.value_error[near], label="one probit", **without_markers(PAPER))
        error.semilogy(a, self.mixture.value_error[near], label=f"{len(WEIGHTS)} probits", **without_markers(EXACT))
        error.set(xlabel="$a$", ylabel="absolute error", xlim=(-7, 7), xticks=range(-6, 7, 2), ylim=(1e-10, 3.0))
        error.legend(loc="upper center", ncols=2, columnspacing=1.2)
        label_panels(axes, ["sigmoid", "its slope", "error of the stand-ins"])
        return {"fig2_sigmoid": figure}

    def section(self, svg: Mapping[str, bytes]) -> Section:
        """Tell what the stand-ins are worth."""
        numbers = self.numbers()
        return Section(
            verdict="Reproduces.",
            name="sigmoid",
            title=TITLE,
            question="The Gaussian integrals of the sigmoid have no closed form. How good is what takes its place?",
            setup=(
                "The paper puts one scaled probit Φ(λa) with λ^{2} = π/8 in the sigmoid's place, and the Gaussian "
                "density N(a; 0, 1/λ^{2}) in the place of its slope. `onepass` uses a mixture of "
                f"{len(WEIGHTS)} scaled probits with the smallest largest error; the integrals of a mixture are as "
                "easy as those of one probit.",
            ),
            pictures=(
                Picture(
                    "fig2_sigmoid",
                    "Figure 2. (a) The sigmoid and the paper's scaled probit; (b) their slopes; (c) the absolute "
                    "error of the probit and of the mixture, logarithmic.",
                    svg["fig2_sigmoid"],
                ),
            ),
            tables=(
                Table(
                    "Largest absolute errors over the whole line. The paper prints no number, only the figure.",
                    COLUMNS,
                    (
                        (
                            "error of s(a)",
                            "figure only",
                            short(numbers["probit_max_error"]),
                            short(numbers["mixture_max_error"]),
                        ),
                        (
                            "error of its slope",
                            "figure only",
                            short(numbers["probit_slope_max_error"]),
                            short(numbers["mixture_slope_max_error"]),
                        ),
                    ),
                ),
            ),
            reading=(
                "The probit is off by up to "
                f"{100 * numbers['probit_max_error']:.1f} percentage points, too little to see in panel (a) and too "
                f"much for a posterior; {len(WEIGHTS)} of them are off by less than "
                f"{_round_up(numbers['mixture_max_error'])}."
            ),
        )


def steps(trials: int) -> int:
    """One: there is nothing random here, so no trials either."""
    return 1


def run(seed: int, trials: int, tick: Tick) -> SigmoidOutcome:
    """Evaluate everything on a grid fine enough to show each extremum of the errors."""
    a = np.linspace(-_REACH, _REACH, 80_001)
    sigmoid, slope = expit(a), expit(a) * expit(-a)
    outcome = SigmoidOutcome(
        a,
        sigmoid,
        slope,
        _approximate(a, sigmoid, slope, np.ones(1), np.array([PAPER_SCALE])),
        _approximate(a, sigmoid, slope, WEIGHTS, SCALES),
    )
    tick()
    return outcome


def _approximate(
    a: FloatArray, sigmoid: FloatArray, slope: FloatArray, weights: FloatArray, scales: FloatArray
) -> Approximation:
    z = a[:, None] * scales
    value, derivative = ndtr(z) @ weights, pdf(z) @ (weights * scales)
    return Approximation(value, derivative, np.abs(value - sigmoid), np.abs(derivative - slope))


def _round_up(error: float) -> str:
    """Name the power of ten above a small number."""
    return f"10^{{{int(np.ceil(np.log10(error)))}}}".replace("-", "−")
