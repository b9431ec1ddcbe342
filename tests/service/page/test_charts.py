"""Charts in a real browser: what they say of themselves is what they draw, and all of it is inside the picture."""

import re

import pytest

from tests.helpers.browser import emulate, needs_driver
from tests.service.page.conftest import Page, cars

pytestmark = needs_driver

_VIEWS = (
    "",
    "models/price",
    "models/price/try",
    "models/price/manage",
    "models/brand",
    "models/brand/try",
    "models/offer",
    "models/offer/try",
)


def opened(page: Page, view: str) -> None:
    page.open(view)
    page.sees("offer" if not view else view.split("/")[1])
    page.waits(lambda: "Loading" not in page.text, "the view is there")
    if view.endswith("price/try"):
        page.fill("km", "20000")
        page.sees("this row")


@pytest.mark.parametrize("view", _VIEWS)
def test_every_drawing_has_a_name_or_is_hidden_from_those_who_listen(page: Page, view: str) -> None:
    opened(page, view)
    if view in ("models/price", "models/brand"):
        page.waits(lambda: bool(page.driver.execute_script("return document.querySelector('.bars svg')")), "weights")
    assert page.driver.execute_script(_NAMELESS) == []


@pytest.mark.parametrize("path", ["playground", "docs"])
def test_so_has_every_drawing_of_the_other_pages(page: Page, path: str) -> None:
    page.driver.get(f"{page.service.address}/{path}")
    page.sees("Models")
    assert page.driver.execute_script(_NAMELESS) == []


@pytest.mark.parametrize(("name", "tile"), [("price", "rows learned"), ("brand", "rows learned"), ("offer", "rewards")])
def test_the_axis_ends_at_the_number_of_the_tile(page: Page, name: str, tile: str) -> None:
    if name == "brand":  # which may have been rolled back
        page.service.learn(name, [{key: row[key] for key in ("km", "price", "brand")} for row in cars(60)], name)
    page.open(f"models/{name}")
    page.sees("Learning curve", "Numbers")
    learned = f"{page.service.ask('GET', name)['n_seen']:,}"
    assert page.tile(tile) == learned
    for chart in page.driver.execute_script(_AXES):
        if chart["label"] in ("rows learned", "rewards learned"):
            assert chart["marks"][-1] == learned, chart
    scored = page.service.ask("GET", f"{name}/metrics")["rows"]
    if scored < int(learned.replace(",", "")):
        page.sees(f"{scored:,} scored", "were learned without a score")


def test_there_are_as_many_bars_as_the_words_say(page: Page) -> None:
    page.open("models/price")
    page.sees("Calibration", "equally often")
    section = "document.querySelector('#calibration-title').closest('section')"
    bars = page.driver.execute_script(f"return {section}.querySelectorAll('.bar').length - {_LEGEND_BARS}")
    words = str(page.driver.execute_script(f"return {section}.innerText"))
    (said,) = re.findall(r"each of their (\d+) parts", words)
    assert int(said) == bars
    assert "tenth" not in words


def test_a_distribution_of_another_shape_is_not_called_right(page: Page) -> None:
    rows = [{"shop": f"shop {i % 2}", "km": float(i % 7), "price": (i % 2) * 100.0 + (i % 5)} for i in range(400)]
    columns = [{"name": "km", "mean": 3.0, "std": 2.0}]
    page.service.ask("PUT", "halves", json={"columns": columns, "target": {"name": "price", "mean": 50.0, "std": 50.0}})
    page.service.learn("halves", [{"km": row["km"], "price": row["price"]} for row in rows], "price")
    page.open("models/halves")
    page.sees("They differ by more than chance")
    page.service.ask("DELETE", "halves")


@pytest.mark.parametrize("width", [1280, 390])
def test_nothing_is_drawn_beyond_the_plot(page: Page, width: int) -> None:
    """Also a few wild rows, which the axis does not reach, whiskers of rare probabilities and of unknown weights."""
    rows = cars(300, seed=8)
    page.service.ask("PUT", "wild", json={"rows": rows[:100], "target": "price", "learn": True})
    for row in rows[290:]:
        row["price"] *= 40.0
    page.service.learn("wild", rows[100:], "price")
    for view in ("models/wild", "models/price", "models/brand", "models/offer", "models/offer/try", "models/price/try"):
        emulate(page.driver, width, 900)
        opened(page, view)
        page.waits(lambda: bool(page.driver.execute_script(_DRAWN)), "something is drawn")
        assert page.driver.execute_script(_OUTSIDE) == [], view
        if view == "models/wild":
            page.sees("beyond the axis: ")
            assert page.driver.execute_script("return document.querySelectorAll('.marks .beyond').length")
    page.service.ask("DELETE", "wild")


def test_a_whisker_that_is_longer_than_the_picture_ends_in_an_arrow(page: Page) -> None:
    brand = {"name": "brand", "kind": "category", "values": ["vw", "bmw"]}
    page.service.ask("PUT", "calm", json={"columns": [brand], "target": {"name": "y", "mean": 0.0, "std": 1e4}})
    page.service.learn("calm", [{"brand": ("vw", "bmw")[i % 2], "y": 100.0 * (i % 2)} for i in range(200)], "y")
    page.open("models/calm")
    page.sees("brand=(other)")
    script = """return [...document.querySelectorAll('.bars tbody tr')].map((row) =>
      [row.querySelector('th').textContent, row.querySelector('.whisker').getAttribute('d')])"""
    drawn = dict(page.driver.execute_script(script))
    assert drawn["brand=(other)"].count("L") == 4  # two arrows
    assert page.driver.execute_script(_OUTSIDE) == []
    page.service.ask("DELETE", "calm")


_NAMELESS = """
return [...document.querySelectorAll('svg')].filter((one) => one.getAttribute('aria-hidden') !== 'true'
  && !(one.getAttribute('role') === 'img' && (one.getAttribute('aria-label') || one.querySelector(':scope > title'))))
  .map((one) => one.outerHTML.slice(0, 200))
"""
_LEGEND_BARS = "document.querySelectorAll('#calibration-title ~ * .legend .bar').length"
_AXES = """
return [...document.querySelectorAll('figure')].map((figure) => ({
  label: figure.querySelector('.axis-label.end').innerText,
  marks: [...figure.querySelectorAll('.axis text')].filter((text) => text.getAttribute('text-anchor') !== 'end'
    || Number(text.getAttribute('x')) > 100).map((text) => text.textContent) }))
"""
_DRAWN = "return document.querySelector('.marks path, .bars .bar')"
# The lines of the grid are as wide as the plot, and the marks of its axis below and beside it: what is drawn must be
# between them, up to half of a stroke or of a dot.
_OUTSIDE = """
const found = [];
for (const plot of document.querySelectorAll('.plot > svg')) {
  const lines = [...plot.querySelectorAll('.axis line')].map((line) => line.getBoundingClientRect());
  if (!lines.length) continue;
  const svg = plot.getBoundingClientRect();
  const area = { left: lines[0].left, right: lines[0].right, top: svg.top + 10, bottom: svg.bottom - 26 };
  for (const mark of plot.querySelectorAll(':scope > g:not(.axis) > *')) {
    const box = mark.getBoundingClientRect();
    if (Math.min(box.left - area.left, area.right - box.right, box.top - area.top, area.bottom - box.bottom) < -3)
      found.push(`${mark.outerHTML.slice(0, 120)} ${JSON.stringify(box)} ${JSON.stringify(area)}`);
  }
}
for (const picture of document.querySelectorAll('.bars svg')) {
  const { width, height } = picture.viewBox.baseVal;
  for (const mark of picture.children) {
    const box = mark.getBBox();
    if (box.x < 0 || box.x + box.width > width || box.y < 0 || box.y + box.height > height)
      found.push(mark.outerHTML);
  }
}
return found;
"""
