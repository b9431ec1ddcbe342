import io
from pathlib import Path

import pytest
from benchmarks.shipped import __main__ as shipped
from benchmarks.wide import __main__ as wide
from benchmarks.wide.study import read
from PIL import Image

from benchmarks import charts, exactness, real_data, river


def test_marks_beyond_the_limits_are_drawn_at_the_edge() -> None:
    rows = {"a": {"one": 1.0, "two": 2.0}, "b": {"one": 100.0}}
    clipped = charts.dots(rows, "loss", limits=(0.5, 5.0))
    assert clipped == charts.dots({"a": {"one": 1.0, "two": 2.0}, "b": {"one": 5.0}}, "loss", limits=(0.5, 5.0))
    assert clipped != charts.dots(rows, "loss")
    assert Image.open(io.BytesIO(clipped)).format == "PNG"


PAGES = {
    real_data.PAGE: lambda: real_data.page(real_data.read()),
    river.PAGE: lambda: river.page(*river.read()),
    shipped.PAGE: lambda: shipped.page(shipped.read()),
    exactness.PAGE: lambda: exactness.page(read(exactness.STORED)),
    wide.PAGE: lambda: wide.page(read(wide.STORED)),
}


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.stem)
def test_pages_are_those_of_stored_results_and_open_with_what_came_out_and_a_chart(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert text == PAGES[path]()
    first, *_ = text.partition("\n## ")
    assert first.index("?") < first.index("![") < first.index("Written by")
    assert "| target |" not in text
    assert "| reached |" not in text
