import io
from itertools import combinations

import matplotlib as mpl
import numpy as np
from matplotlib.image import imread

from onepass.reports import plots


def draw() -> bytes:
    with plots.house_style():
        figure, axes = plots.new_figure(1, 2, 4.0, 2.0)
        axes[0, 0].plot([0, 1], [0, 1], **plots.PAPER)
        plots.label_panels(axes, ["one", "two"])
        assert axes[0, 1].get_title(loc="left") == "(b)  two"
        data: bytes = plots.render(figure, "svg")
    return data


def test_the_same_figure_is_the_same_file() -> None:
    assert draw() == draw()


def test_a_png_has_the_size_and_resolution_of_print() -> None:
    with plots.house_style():
        figure, _ = plots.new_figure(1, 1, 3.0, 2.0)
        pixels = imread(io.BytesIO(plots.render(figure, "png")))
    assert pixels.shape[:2] == (400, 600)


def test_no_two_roles_differ_by_colour_alone() -> None:
    roles = [plots.PAPER, plots.EXACT, plots.BASELINE, plots.BASELINE_2, plots.OTHER]
    for one, other in combinations(roles, 2):
        assert one["linestyle"] != other["linestyle"]
        assert one["marker"] != other["marker"]
        assert one["color"] != other["color"]


def test_the_style_ends_with_its_block() -> None:
    before = dict(mpl.rcParams)
    with plots.house_style():
        assert mpl.rcParams["svg.hashsalt"] == "onepass"
    assert dict(mpl.rcParams) == before


def test_a_line_through_many_points_loses_its_markers_only() -> None:
    assert plots.without_markers(plots.PAPER) == {key: plots.PAPER[key] for key in ("color", "linestyle")}


def test_times_are_labelled_with_dates_or_by_their_name() -> None:
    with plots.house_style():
        _, axes = plots.new_figure(1, 2, 6.0, 2.0)
        days = np.arange("2024-01-01", "2024-03-01", dtype="datetime64[D]")
        for panel, times, are_dates in ((axes[0, 0], days, True), (axes[0, 1], np.arange(60), False)):
            panel.plot(times, np.arange(60))
            plots.label_times(panel, "hour", are_dates)
    assert (axes[0, 0].get_xlabel(), axes[0, 1].get_xlabel()) == ("", "hour")
    assert "Feb" in [label.get_text() for label in axes[0, 0].get_xticklabels()]
