"""The house style of figures: one look, safe for colour-blind eyes and in greyscale.

Colours are those of Okabe and Ito. Whatever has a role in several figures looks the same in all of them, and no two
roles differ by colour alone: each has its own dashes and its own marker.
"""

import io
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.dates import AutoDateLocator, ConciseDateFormatter
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

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
    "drawn",
    "house_style",
    "label_panels",
    "label_rows",
    "label_times",
    "legend_below",
    "new_figure",
    "render",
    "short",
    "thousands",
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
"""Something between the paper's rule and the exact update."""
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


# Black on white becomes light on dark where the reader has asked for it; images and the colours of lines stay.
_DARK = b"""<style>@media (prefers-color-scheme: dark) {
svg { fill: #e8e8e8; }
[style*="fill: #ffffff"] { fill: #15181c !important; }
[style*="fill: #000000"] { fill: #e8e8e8 !important; }
[style*="stroke: #000000"] { stroke: #e8e8e8 !important; }
[id^="line2d"] [style*="stroke: #ffffff"], [id^="PathCollection"] [style*="stroke: #ffffff"]
{ stroke: #15181c !important; }
[style*="stroke: #e3e3e3"] { stroke: #343a42 !important; }
[style*="stroke: #0072b2"] { stroke: #56b4e9 !important; }
[style*="fill: #0072b2"] { fill: #56b4e9 !important; }
}</style>"""


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
    drawn = buffer.getvalue()
    return drawn.replace(b"</style>", b"</style>" + _DARK, 1) if kind == "svg" else drawn


def drawn(columns: int, draw: Callable[[Any], None], width: float | None = None, height: float = 3.0) -> bytes:
    """Draw a row of panels in the house style: ``draw`` gets their axes; the figure is an SVG."""
    with house_style():
        figure, axes = new_figure(1, columns, width or 4.3 * columns, height)
        draw(axes[0])
        return render(figure, "svg")


def short(text: str) -> str:
    """A name as a label of an axis."""
    text = text.replace("$", r"\$")
    return text if len(text) <= 36 else text[:35] + "…"


def label_times(panel: Axes, name: str, are_dates: bool) -> None:
    """Label the horizontal axis: with dates, or with the name of times that are numbers."""
    if are_dates:
        locator = AutoDateLocator(minticks=3, maxticks=7)  # type: ignore[no-untyped-call]
        panel.xaxis.set_major_locator(locator)
        panel.xaxis.set_major_formatter(ConciseDateFormatter(locator))  # type: ignore[no-untyped-call]
    else:
        panel.set_xlabel(short(name))


def legend_below(panel: Axes) -> None:
    """The legend of a panel below the whole figure, where it covers no curve."""
    handles, _ = panel.get_legend_handles_labels()
    assert isinstance(panel.figure, Figure)
    panel.figure.legend(handles=handles, loc="outside lower center", ncols=min(len(handles), 4))


def label_rows(panel: Axes) -> None:
    """Make the rows of a stream the horizontal axis."""
    panel.set_xlabel("rows")
    panel.set_xlim(left=0.0)
    panel.xaxis.set_major_formatter(FuncFormatter(lambda value, _: thousands(value)))


def thousands(value: float) -> str:
    """A number of rows in a few characters."""
    for factor, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= factor:
            return f"{value / factor:g} {letter}"
    return f"{value:g}"
