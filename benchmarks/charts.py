"""The chart at the top of an evidence page: one line per task, one mark per method."""

import io
from collections.abc import Mapping, Sequence
from pathlib import Path

from matplotlib.ticker import FuncFormatter, NullFormatter
from PIL import Image

from onepass.reports.plots import BASELINE, BASELINE_2, EXACT, GREY, OTHER, PAPER, house_style, new_figure, render

__all__ = ["IMAGES", "dots"]

IMAGES = Path(__file__).parents[1] / "docs" / "images"
_MARKS = (
    {"color": EXACT["color"], "marker": "o", "markersize": 7},
    {"color": BASELINE["color"], "marker": "^", "markersize": 5},
    {"color": PAPER["color"], "marker": "s", "markersize": 5},
    {"color": BASELINE_2["color"], "marker": "D", "markersize": 4},
    {"color": OTHER["color"], "marker": "v", "markersize": 5},
    {"color": GREY, "marker": "x", "markersize": 5},
)


def dots(
    rows: Mapping[str, Mapping[str, float]],
    label: str,
    *,
    reference: float | None = None,
    log: bool = False,
    limits: tuple[float, float] | None = None,
) -> bytes:
    """Draw a mark for each method of each row, as PNG.

    Parameters
    ----------
    rows : mapping of mappings
        Values by the name of a row and of a method; a method may be missing in a row.
    label : str
        What the horizontal axis shows, and which way is better.
    reference : float, optional
        Where to draw a vertical line.
    log : bool
        Whether the axis is logarithmic.
    limits : tuple, optional
        Ends of the axis; marks beyond them are drawn at the edge.
    """
    methods: Sequence[str] = list(dict.fromkeys(method for values in rows.values() for method in values))
    with house_style():
        figure, axes = new_figure(1, 1, 9.0, 1.4 + 0.24 * len(rows))
        axis = axes[0, 0]
        if reference is not None:
            axis.axvline(reference, color="black", linewidth=0.9)
        low, high = limits or (float("-inf"), float("inf"))
        for method, mark in zip(methods, _MARKS, strict=False):
            places = [(values[method], k) for k, values in enumerate(rows.values()) if method in values]
            xs = [min(max(value, low), high) for value, _ in places]
            axis.plot(xs, [k for _, k in places], linestyle="", label=method, **mark)
        axis.set_yticks(range(len(rows)), list(rows))
        axis.set_ylim(len(rows) - 0.5, -0.5)
        if log:
            axis.set_xscale("log")
            left, right = axis.get_xlim()
            axis.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
            few = right / left < 30.0
            axis.xaxis.set_minor_formatter(FuncFormatter(lambda value, _: f"{value:g}") if few else NullFormatter())
        axis.grid(visible=True, axis="both", linewidth=0.4, alpha=0.5)
        axis.set_xlabel(label)
        if len(methods) > 1:
            axis.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=min(len(methods), 3))
        picture = Image.open(io.BytesIO(render(figure, "png"))).convert("RGB")
    small = io.BytesIO()
    picture.quantize(64, method=Image.Quantize.FASTOCTREE, dither=Image.Dither.NONE).save(
        small, "png", optimize=True
    )  # a third of the bytes
    return small.getvalue()
