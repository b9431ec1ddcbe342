"""The house style of figures: one look, safe for colour-blind eyes and in greyscale.

Colours are those of Okabe and Ito. Whatever has a role in several figures looks the same in all of them, and no two
roles differ by colour alone: each has its own dashes and its own marker.
"""

import io
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

__all__ = [
    "BAND",
    "BASELINE",
    "BASELINE_2",
    "BLACK",
    "EXACT",
    "GREY",
    "OTHER",
    "PAPER",
    "TRUTH",
    "house_style",
    "label_panels",
    "new_figure",
    "render",
    "without_markers",
]

BLACK, GREY = "#000000", "#7f7f7f"
_BLUE, _VERMILLION, _GREEN, _ORANGE, _PURPLE = "#0072B2", "#D55E00", "#009E73", "#E69F00", "#CC79A7"

Style = dict[str, Any]

PAPER: Style = {"color": _BLUE, "linestyle": "-", "marker": "o"}
"""The paper's rule."""
EXACT: Style = {"color": _VERMILLION, "linestyle": (0, (5, 1.6)), "marker": "s"}
"""Our exact update."""
BASELINE: Style = {"color": _GREEN, "linestyle": (0, (6, 1.5, 1.2, 1.5)), "marker": "^"}
"""What the perceptron is compared with."""
BASELINE_2: Style = {"color": _ORANGE, "linestyle": (0, (1.2, 1.4)), "marker": "v"}
"""Another baseline, or the same in another setting."""
OTHER: Style = {"color": _PURPLE, "linestyle": (0, (3, 1.2, 1, 1.2, 1, 1.2)), "marker": "D"}
"""Something between the paper's rule and ours."""
TRUTH: Style = {"color": BLACK, "linestyle": (0, (1.2, 1.6)), "linewidth": 1.6}
"""The true values."""
BAND: Style = {"alpha": 0.18, "linewidth": 0.0}
"""An area of uncertainty around a line of the same colour."""

_RC: dict[str, Any] = {
    "font.family": "STIXGeneral",  # comes with matplotlib, so figures look the same everywhere
    "mathtext.fontset": "stix",
    "font.size": 10.5,
    "axes.titlesize": 10.5,
    "axes.labelsize": 10.5,
    "legend.fontsize": 9.5,
    "xtick.labelsize": 9.5,
    "ytick.labelsize": 9.5,
    "axes.linewidth": 0.7,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "axes.grid": True,
    "grid.color": "#e3e3e3",
    "grid.linewidth": 0.6,
    "lines.linewidth": 1.6,
    "lines.markersize": 4.0,
    "lines.markeredgewidth": 0.0,
    "xtick.direction": "out",
    "ytick.direction": "out",
    "xtick.major.width": 0.7,
    "ytick.major.width": 0.7,
    "xtick.major.size": 3.0,
    "ytick.major.size": 3.0,
    "legend.frameon": False,
    "legend.handlelength": 2.9,
    "figure.dpi": 100,
    "savefig.dpi": 200,
    "svg.fonttype": "path",
    "svg.hashsalt": "onepass",  # else the ids in a file change from run to run
}


@contextmanager
def house_style() -> Iterator[None]:
    """Draw and save in the house style."""
    with mpl.rc_context(_RC):  # type: ignore[arg-type]  # a dict of plain names is what it takes
        yield


def new_figure(rows: int, columns: int, width: float, height: float, **options: Any) -> tuple[Figure, Any]:
    """Make a figure of ``width`` x ``height`` inches, and its axes ``(rows, columns)``."""
    figure = Figure(figsize=(width, height), layout="constrained")
    return figure, figure.subplots(rows, columns, squeeze=False, **options)


def label_panels(axes: Any, titles: list[str]) -> None:
    """Letter the panels (a), (b), ... and name them."""
    panels: list[Axes] = list(np.ravel(axes))
    for letter, panel, title in zip("abcdefghijkl", panels, titles, strict=False):
        panel.set_title(f"({letter})  {title}", loc="left")


def without_markers(style: Style) -> Style:
    """Take the same look for a line that is drawn through many points."""
    return {key: value for key, value in style.items() if key != "marker"}


def render(figure: Figure, kind: str) -> bytes:
    """Render a figure as a file of the ``kind`` "svg" or "png", the same bytes every time."""
    # Neither date nor program: a figure changes when its content does.
    blank = {"Date": None, "Creator": None} if kind == "svg" else {"Software": None}
    buffer = io.BytesIO()
    figure.savefig(buffer, format=kind, metadata=blank)
    return buffer.getvalue()
