"""The fan chart of a forecaster: the forecast of the service, drawn again as values come; on a phone, and dark."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from tests.helpers.browser import emulate, needs_driver
from tests.service.page.conftest import Page

pytestmark = needs_driver

_PATHS = "[...document.querySelectorAll('.wide:first-child .marks path')]"
_MARKS = f"return {_PATHS}.map(p => [p.classList.value, p.getAttribute('d')])"
_WIDER = "return document.documentElement.scrollWidth - document.documentElement.clientWidth"


def hour(t: int) -> str:
    return f"{np.datetime64('2030-01-01T00') + np.timedelta64(t, 'h')}:00Z"


def rows(start: int, stop: int, **more: Any) -> list[dict[str, Any]]:
    noise = np.random.default_rng(0).normal(size=1000)
    return [
        {"time": hour(t), "y": float(50 + 10 * np.sin(2 * np.pi * t / 24) + noise[t]), **more}
        for t in range(start, stop)
    ]


@pytest.fixture
def load(page: Page) -> Iterator[str]:
    """A forecaster of hours."""
    page.service.ask("PUT", "load", json={"forecaster": {"season_length": 24, "revisions": 48}})
    yield "load"
    page.service.ask("DELETE", "load")


def test_the_fan_is_the_forecast_and_follows_the_values(page: Page, load: str) -> None:
    page.open()
    page.sees("forecasts a series")
    page.open("models/load")
    page.sees("It begins when two values are learned.")
    page.service.learn("load", rows(0, 100), "y")
    page.sees(
        "Next, at Jan 5, 2030, 04:00", "Sum over these 24 steps", "latest values", "80 % interval", "95 % interval"
    )
    found = page.service.ask("POST", "load/forecast", json={"horizon": 24, "recent": 48})
    assert f"{round(found['total']['mean']):,}" in page.text
    first = page.driver.execute_script(_MARKS)
    assert [marks[0].split() for marks in first] == [
        ["band", "blue"],
        ["band", "blue"],
        ["line", "ink"],
        ["line", "blue"],
    ]
    assert first[3][1].count(",") == 25  # from the last value on
    assert first[2][1].count(",") == 48
    page.service.ask("POST", "load/learn", json={"x": {"time": hour(100)}, "y": 80.0})
    page.sees("Next, at Jan 5, 2030, 05:00")
    assert page.driver.execute_script(_MARKS) != first
    page.service.ask("POST", "load/learn", json={"x": {"time": hour(100)}, "y": 52.0})
    page.waits(lambda: page.tile("rows learned") == "101", "a corrected value takes the place of the wrong one")


def test_steps_ahead_can_be_chosen(page: Page, load: str) -> None:
    page.service.learn("load", rows(0, 100), "y")
    page.open("models/load")
    page.sees("Sum over these 24 steps")
    page.driver.find_element("id", "horizon").clear()
    page.sees("a whole number from 1 to 1000")
    page.fill("steps ahead", "6")
    page.sees("Sum over these 6 steps")


def test_series_have_a_key_and_forecasts_inputs(page: Page) -> None:
    described = {"season_length": 24, "by_key": True, "inputs": ["promo"]}
    page.service.ask("PUT", "shops", json={"forecaster": described})
    for key in ("north", "south"):
        for row in rows(0, 30, promo=0):
            x = {"time": row["time"], "promo": row["promo"]}
            page.service.ask("POST", "shops/learn", json={"x": x, "y": row["y"] + 100 * (key == "south"), "key": key})
    page.open("models/shops")
    page.sees("forecasts 2 series", "Next, at Jan 2, 2030, 06:00", "promo")
    north = page.text
    field = page.driver.find_element("id", "series")
    field.clear()
    page.sees("No values of the series")
    field.send_keys("south")
    page.waits(lambda: "Next, at" in page.text and page.text != north, "the other series")
    page.service.ask("DELETE", "shops")


@pytest.mark.parametrize("dark", [False, True])
def test_the_fan_fits_on_a_phone_and_can_be_seen(page: Page, load: str, dark: bool) -> None:
    emulate(page.driver, 390, 800, dark=dark)
    page.service.learn("load", rows(0, 100), "y")
    page.open("models/load")
    page.sees("Next, at", "95 % interval")
    assert page.driver.execute_script(_WIDER) <= 0
    script = "return getComputedStyle(document.querySelector('.band')).fill"
    assert page.driver.execute_script(script) == ("rgb(116, 166, 255)" if dark else "rgb(36, 87, 214)")
