"""The section of the report on the sigmoid's approximations: Figure 2."""

from collections.abc import Mapping

import numpy as np
from matplotlib.figure import Figure

from onepass.engine.moments import WEIGHTS
from onepass.paper.base import COLUMNS, short
from onepass.paper.sigmoid import SigmoidOutcome
from onepass.reports.html import Claim, Picture, Section, Table, Verdict
from onepass.reports.plots import EXACT, GREY, PAPER, label_panels, new_figure, without_markers

__all__ = ["TITLE", "draw", "section"]

TITLE = "Approximating the sigmoid (Fig. 2)"


def draw(outcome: SigmoidOutcome) -> dict[str, Figure]:
    """Draw the functions, their slopes, and the errors on a logarithmic axis."""
    figure, axes = new_figure(1, 3, 9.6, 2.9)
    near = np.abs(outcome.a) <= 7.0
    a = outcome.a[near]
    thick_grey = {"color": GREY, "linewidth": 3.4, "alpha": 0.6}
    curves = (
        (axes[0, 0], outcome.sigmoid, outcome.probit.value, r"$s(a)$", r"$\Phi(\lambda a)$"),
        (axes[0, 1], outcome.slope, outcome.probit.slope, r"$s'(a)$", r"$\mathcal{N}(a;\,0,\,1/\lambda^2)$"),
    )
    for panel, exact, probit, exact_name, probit_name in curves:
        panel.plot(a, exact[near], label=exact_name, **thick_grey)
        panel.plot(a, probit[near], label=probit_name, **{**without_markers(PAPER), "linestyle": (0, (4, 1.5))})
        panel.set(xlabel="pre-activation $a$", xlim=(-7, 7), xticks=range(-6, 7, 2))
    axes[0, 0].set(ylabel="value", ylim=(0, 1.02))
    axes[0, 0].legend(loc="upper left")
    axes[0, 1].set(ylabel="slope", ylim=(0, 0.33))
    axes[0, 1].legend(loc="upper center", ncols=2, columnspacing=1.2, handlelength=2.2)
    error = axes[0, 2]
    error.semilogy(a, outcome.probit.value_error[near], label="one probit", **without_markers(PAPER))
    error.semilogy(a, outcome.mixture.value_error[near], label=f"{len(WEIGHTS)} probits", **without_markers(EXACT))
    error.set(
        xlabel="pre-activation $a$", ylabel="absolute error", xlim=(-7, 7), xticks=range(-6, 7, 2), ylim=(1e-10, 3.0)
    )
    error.legend(loc="upper center", ncols=2, columnspacing=1.2)
    label_panels(axes, ["sigmoid", "its slope", "error of the approximation"])
    return {"fig2_sigmoid": figure}


def section(outcome: SigmoidOutcome, svg: Mapping[str, bytes]) -> Section:
    """Say how large the errors of the approximations are."""
    numbers = outcome.numbers()
    return Section(
        name="sigmoid",
        title=TITLE,
        question="The Gaussian integrals of the sigmoid have no closed form. How good is the approximation?",
        setup=(
            "The paper replaces the sigmoid by one scaled probit Φ(λa) with λ^{2} = π/8, and its slope by the Gaussian "
            "density N(a; 0, 1/λ^{2}). `onepass` uses a mixture of "
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
        claims=(
            Claim(
                "A scaled probit approximates the sigmoid closely (Section III-B, Fig. 2).",
                f"Its largest error is {numbers['probit_max_error']:.4f}; that of the mixture used by `onepass` is "
                f"{short(numbers['mixture_max_error'])}.",
                Verdict.HOLDS,
            ),
        ),
        reading=(
            "The probit is off by up to "
            f"{100 * numbers['probit_max_error']:.1f} percentage points, too little to see in panel (a) and too "
            f"much for a posterior; {len(WEIGHTS)} of them are off by less than "
            f"{_round_up(numbers['mixture_max_error'])}."
        ),
    )


def _round_up(error: float) -> str:
    """Name the power of ten above a small number."""
    return f"10^{{{int(np.ceil(np.log10(error)))}}}".replace("-", "−")
