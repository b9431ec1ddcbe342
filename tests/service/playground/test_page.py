"""The page in a real browser: clicked, dragged, typed into, undone, linked to, and looked at on a phone."""

import re
import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from selenium.webdriver import ActionChains, Keys
from selenium.webdriver.chrome.webdriver import WebDriver
from selenium.webdriver.common.by import By
from selenium.webdriver.remote.webelement import WebElement
from selenium.webdriver.support.select import Select

from onepass import BayesianPerceptron
from onepass.service.playground import application
from onepass.service.playground.messages import catalogue
from onepass.service.playground.session import Session
from tests.helpers.app_server import served
from tests.helpers.browser import console_errors, driven_browser, emulate, needs_driver
from tests.helpers.waiting import wait_until

pytestmark = needs_driver

SCENES = [scene["scene"] for scene in catalogue()]
LINE = "scene=curve&model=perceptron&noise=0.2&points=-2,-1;-1,-0.5;1,0.4"


class Page:
    """The playground in the browser."""

    def __init__(self, driver: WebDriver, address: str) -> None:
        self.driver = driver
        self.address = f"{address}/playground"

    def open(self, fragment: str = "") -> None:
        """Load the page afresh, and wait for its first answer."""
        self.driver.get("about:blank")
        self.driver.get(f"{self.address}#{fragment}" if fragment else self.address)
        self.rest()

    def rest(self) -> None:
        """Wait until what is asked for is shown."""
        code = "return document.body.dataset.answered === document.body.dataset.asked && !!document.body.dataset.asked"
        wait_until(lambda: bool(self.driver.execute_script(code)), "the page to show what was asked for", 30)

    def find(self, selector: str) -> WebElement:
        return self.driver.find_element(By.CSS_SELECTOR, selector)

    def all(self, selector: str) -> list[WebElement]:
        return self.driver.find_elements(By.CSS_SELECTOR, selector)

    def press(self, label: str) -> None:
        (button,) = [one for one in self.all("button") if label in (one.text, one.get_attribute("aria-label"))]
        before = self.fragment
        button.click()
        if label in ("Undo", "Redo"):  # the browser takes its time
            wait_until(lambda: self.fragment != before, f"the page to {label}", 30)
        self.rest()

    @property
    def points(self) -> list[list[float]]:
        """The points in the address."""
        listed = dict(part.split("=", 1) for part in self.fragment.split("&"))["points"]
        return [[float(value) for value in point.split(",")] for point in listed.split(";") if point]

    @property
    def fragment(self) -> str:
        return str(self.driver.execute_script("return location.hash.slice(1)"))

    @property
    def status(self) -> str:
        return self.find("#status").text

    def click_plot(self, right: float, down: float) -> None:
        """Click the plot, at shares of its size from its middle."""
        plot = self.find(".plot.clickable svg")
        self.driver.execute_script("arguments[0].scrollIntoView({block: 'center'})", plot)
        size = plot.size
        actions = ActionChains(self.driver)
        actions.move_to_element_with_offset(plot, round(right * size["width"]), round(down * size["height"])).click()
        actions.perform()
        self.rest()

    def keys(self, *keys: str) -> None:
        ActionChains(self.driver).send_keys(*keys).perform()
        self.rest()


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WebDriver]:
    with driven_browser(tmp_path_factory.mktemp("profile")) as driver:
        yield driver


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with served(application()) as address:
        yield address


@pytest.fixture
def page(browser: WebDriver, address: str) -> Iterator[Page]:
    """The page, of which the console must be clean when the test ends."""
    emulate(browser)
    browser.get("about:blank")  # another page may still look for a server that has ended
    console_errors(browser)
    yield Page(browser, address)
    assert console_errors(browser) == []


def test_a_click_teaches_one_point_and_the_page_says_what_the_library_says(page: Page) -> None:
    page.open(LINE)
    page.click_plot(0.3, -0.2)
    points = page.points
    assert len(points) == 4
    x, y = points[-1]
    assert x > 1.0
    assert y > 0.5
    model = BayesianPerceptron(1, "linear", noise=0.04).learn([point[:1] for point in points[:3]], [-1, -0.5, 0.4])
    before = 1.96 * model.predict([x]).epistemic ** 0.5
    after = 1.96 * model.learn([x], y).predict([x]).epistemic ** 0.5
    assert f"Point 4 at x = {x:.2f}, y = {y:.2f}" in page.status
    assert page.status.endswith(f"from ±{before:.2f} to ±{after:.2f}.")
    assert len(page.all(".point")) == 4
    assert "Points learned\n4" in page.find("#facts").text


def test_the_band_is_drawn_where_the_library_has_it(page: Page) -> None:
    page.driver.execute_cdp_cmd(
        "Emulation.setEmulatedMedia", {"features": [{"name": "prefers-reduced-motion", "value": "reduce"}]}
    )
    page.open(f"{LINE}&draws=0")
    model = BayesianPerceptron(1, "linear", noise=0.04).learn([[-2.0], [-1.0], [1.0]], [-1.0, -0.5, 0.4])
    seen = model.predict(np.linspace(-3.0, 3.0, 121)[:, None])
    std, total = seen.epistemic**0.5, (seen.epistemic + 0.04) ** 0.5
    for kind, wanted in {
        ".line.blue": seen.mean,
        ".band.blue:not(.total)": np.concatenate([seen.mean + 1.96 * std, (seen.mean - 1.96 * std)[::-1]]),
        ".band.total": np.concatenate([seen.mean + 1.96 * total, (seen.mean - 1.96 * total)[::-1]]),
    }.items():
        path = str(page.find(f".plot path{kind}").get_attribute("d"))
        drawn = np.array([float(pair.split(",")[1]) for pair in path.strip("MZ").split("L")])
        top, height = (float(str(page.find("clipPath rect").get_attribute(name))) for name in ("y", "height"))
        np.testing.assert_allclose(top + height * (3.0 - wanted) / 6.0, drawn, atol=0.06)


def test_a_knob_answers_at_once_and_shows_only_what_matters(page: Page) -> None:
    page.open(LINE)
    assert not page.find("#knob-units").is_displayed()
    Select(page.find("#knob-model")).select_by_value("network")
    page.rest()
    assert "model=network" in page.fragment
    assert page.find("#knob-units").is_displayed()
    assert "3 points were learned again from the prior" in page.status
    slider = page.find("#knob-units")
    slider.send_keys(Keys.ARROW_RIGHT)
    page.rest()
    assert "units=13" in page.fragment
    assert page.find("output[for=knob-units]").text == "13"
    page.find("#knob-learn_noise").click()
    page.rest()
    assert not page.find("#knob-noise").is_displayed()
    page.press("Back to the defaults")
    assert page.fragment == "scene=curve&points=-2,-1;-1,-0.5;1,0.4"


def test_a_point_is_dragged_and_removed(page: Page) -> None:
    page.open(LINE)
    point = page.all(".point .mark")[2]
    ActionChains(page.driver).drag_and_drop_by_offset(point, 60, -40).perform()
    page.rest()
    x, y = page.points[2]
    assert x > 1.2
    assert y > 0.6
    assert "learned again" in page.status
    page.press("Remove point 3")
    assert page.points == [[-2, -1], [-1, -0.5]]
    ActionChains(page.driver).double_click(page.all(".point .mark")[0]).perform()
    page.rest()
    assert page.points == [[-1, -0.5]]
    page.press("Clear")
    assert page.points == []
    assert "this is the prior" in page.status


def test_a_finger_adds_and_drags_points(page: Page) -> None:
    emulate(page.driver, 375, 800)
    page.driver.execute_cdp_cmd("Emulation.setTouchEmulationEnabled", {"enabled": True})
    try:
        page.open(LINE)
        plot = page.find(".plot svg")
        page.driver.execute_script("arguments[0].scrollIntoView({block: 'center'})", plot)
        middle = page.driver.execute_script(_MIDDLE, plot)
        touch(page, middle)
        assert len(page.points) == 4
        x, y = page.points[3]
        assert abs(x) < 0.3
        touch(page, middle, [middle[0] + 30, middle[1] + 10], [middle[0] + 60, middle[1] + 20])
        assert len(page.points) == 4
        assert page.points[3][0] > x + 0.5
        assert page.points[3][1] < y
    finally:
        page.driver.execute_cdp_cmd("Emulation.setTouchEmulationEnabled", {"enabled": False})


_MIDDLE = (
    "const box = arguments[0].getBoundingClientRect(); return [box.left + box.width / 2, box.top + box.height / 2]"
)


def touch(page: Page, start: list[float], *moves: list[float]) -> None:
    """Put a finger down, move it, and lift it."""
    kinds = [("touchStart", [start]), *(("touchMove", [place]) for place in moves), ("touchEnd", [])]
    for kind, places in kinds:
        touches = [{"x": x, "y": y} for x, y in places]
        page.driver.execute_cdp_cmd("Input.dispatchTouchEvent", {"type": kind, "touchPoints": touches})
    page.rest()


def test_steps_are_undone_and_done_again(page: Page) -> None:
    page.open(LINE)
    page.click_plot(0.1, 0.1)
    after = page.fragment
    page.press("Undo")
    assert len(page.points) == 3
    page.press("Redo")
    assert page.fragment == after
    assert len(page.all(".point")) == 4


def test_a_link_of_the_tour_is_a_step_that_can_be_undone(page: Page) -> None:
    page.open(LINE)
    page.find("#tour a").click()
    page.rest()
    assert page.points == []
    page.find("nav a[href*=outliers]").click()
    page.rest()
    assert page.find("#title").text.startswith("Outliers")
    page.press("Undo")
    page.press("Undo")
    assert page.fragment == LINE
    assert len(page.all(".point")) == 3
    page.press("Redo")
    assert page.points == []


def test_the_link_to_the_plot_keeps_what_one_sees(page: Page) -> None:
    page.open(LINE)
    page.keys(Keys.TAB)
    page.keys(Keys.ENTER)
    assert page.driver.switch_to.active_element.get_attribute("id") == "main"
    assert page.fragment == LINE


@pytest.mark.parametrize("scene", SCENES)
def test_a_link_reproduces_what_one_sees(page: Page, scene: str) -> None:
    page.open(f"scene={scene}")
    for box in page.all(".knob input[type=checkbox]"):
        box.click()
    for slider in page.all(".knob input[type=range]"):
        if slider.is_displayed():
            slider.send_keys(Keys.ARROW_LEFT, Keys.ARROW_LEFT)
    page.press("One step" if scene in ("drift", "bandit") else "Remove last")
    link, facts = page.fragment, page.find("#facts").text
    assert link.count("=") >= 3
    page.open(link)
    assert (page.fragment, page.find("#facts").text) == (link, facts)


def test_what_is_wrong_in_a_link_is_left_out(page: Page) -> None:
    page.open("scene=curve&units=9999&model=maze&noise=&draws=x&points=1,2;3;4,oops;1e9,0;-1,0.12345&colour=red")
    assert len(page.all(".point")) == 2
    assert page.find("#knob-units").get_attribute("value") == "12"
    page.open("scene=maze")
    assert page.find("#title").text == "A curve"


def test_everything_can_be_done_by_keys(page: Page) -> None:
    page.open("scene=curve&points=")
    page.driver.execute_script("document.querySelector('.plot').focus()")
    page.keys(Keys.ARROW_RIGHT, Keys.ARROW_RIGHT, Keys.ARROW_UP)
    assert page.status.startswith("Cross at x = 0.2, y = 0.1.")
    page.keys(Keys.ENTER)
    assert page.points == [[0.2, 0.1]]
    page.keys("n")
    assert page.status.startswith("Point 1 of 1, at x = 0.2, y = 0.1.")
    ActionChains(page.driver).key_down(Keys.SHIFT).send_keys(Keys.ARROW_LEFT).key_up(Keys.SHIFT).perform()
    page.rest()
    assert page.points == [[-0.3, 0.1]]
    page.keys(Keys.DELETE)
    assert page.points == []


def test_the_table_moves_marks_and_removes_points(page: Page) -> None:
    page.open("scene=classes&points=1,0.5,1;-1,0,0")
    page.find("#table summary").click()
    wait_until(lambda: bool(page.all("td")), "the table", 30)
    cell = page.find("[aria-label='x of point 1']")
    cell.send_keys(Keys.CONTROL, "a")
    cell.send_keys("2", Keys.ENTER)
    page.rest()
    assert page.points == [[2, 0.5, 1], [-1, 0, 0]]
    Select(page.find("[aria-label='class of point 2']")).select_by_visible_text("orange")
    page.rest()
    assert page.points == [[2, 0.5, 1], [-1, 0, 1]]
    page.press("Remove point 1")
    assert page.points == [[-1, 0, 1]]


def test_a_point_is_of_the_class_that_is_chosen(page: Page) -> None:
    page.open("scene=classes&points=")
    page.click_plot(-0.2, 0.0)
    page.all(".choice label")[1].click()
    page.click_plot(0.2, 0.0)
    assert [point[2] for point in page.points] == [0, 1]
    assert "the probability of orange there went from" in page.status
    assert page.driver.execute_script(
        "const c = document.querySelector('canvas'), d = c.getContext('2d');"
        "const row = d.getImageData(0, c.height / 2, c.width, 1).data;"
        "const at = (share) => row.slice(4 * Math.round(c.width * share));"
        "const [left, right] = [at(0.1), at(0.9)]; return left[2] > left[0] && right[0] > right[2]"
    )


def test_what_is_under_the_pointer_is_what_is_drawn(page: Page) -> None:
    page.open("scene=curve&points=")
    page.click_plot(0.1, 0.1)
    after = float(page.status.rsplit("±", 1)[1].rstrip("."))
    wait_until(
        lambda: abs(float(page.find(".readout").text.rsplit("±", 1)[1]) - after) < 0.02, "the words to follow", 10
    )


def test_an_outlier_is_crossed_out(page: Page) -> None:
    page.open("scene=outliers")
    page.press("Add an outlier")
    assert page.status.endswith("The robust model does not trust 1 point.")
    assert len(page.all(".plot .doubt")) == 1


def test_asking_where_it_knows_least_fills_the_widest_gap(page: Page) -> None:
    page.open("scene=curve&points=-3,0;-2.5,0;-2,0;-1.5,0;1.5,0;2,0;2.5,0;3,0")
    page.press("Ask where it knows least")
    assert abs(page.points[-1][0]) < 0.3


@pytest.mark.parametrize("scene", ["drift", "bandit"])
def test_a_world_runs_until_it_is_paused(page: Page, scene: str) -> None:
    page.open(f"scene={scene}&steps=5")
    page.find("button.main").click()
    wait_until(
        lambda: re.search(r"\b(8|9|\d\d) visitors|Reading (8|9|\d\d)", page.status) is not None, "some steps", 30
    )
    page.find("button.main").click()
    page.rest()
    (steps,) = re.findall(r"steps=(\d+)", page.fragment)
    assert int(steps) >= 8
    assert page.find("button.main").text == "Play"
    page.press("Start again")
    assert page.fragment.endswith("steps=0")


def test_the_page_comes_back_when_the_server_does(browser: WebDriver) -> None:
    emulate(browser)
    with served(application()) as address:
        page = Page(browser, address)
        page.open(LINE)
    wait_until(lambda: "connection" in page.status, "the page to miss the server", 30)
    page.driver.execute_script("document.querySelector('#actions button').click()")
    with served(application(), int(address.rpartition(":")[2])):
        page.rest()
        assert len(page.all(".point")) == 4
        assert page.status == "4 points learned, one step each."
    console_errors(browser)  # which tell of the connection that was lost


def test_what_was_asked_and_not_answered_is_asked_again(browser: WebDriver, monkeypatch: pytest.MonkeyPatch) -> None:
    emulate(browser)
    asked, go_on = threading.Event(), threading.Event()

    def never(_: Session, message: str | bytes) -> str:
        asked.set()
        go_on.wait(60)
        return "nobody listens any more"

    with served(application()) as address:
        page = Page(browser, address)
        page.open(LINE)
        with monkeypatch.context() as stuck:
            stuck.setattr(Session, "answer", never)
            page.driver.execute_script("document.querySelector('#actions button').click()")
            assert asked.wait(60)
        threading.Timer(1.0, go_on.set).start()  # by then the page has been told that the server goes
    wait_until(lambda: "connection" in page.status, "the page to miss the server", 30)
    with served(application(), int(address.rpartition(":")[2])):
        page.rest()
        assert page.status == "4 points learned, one step each."
    console_errors(browser)  # which tell of the connection that was lost


@pytest.mark.parametrize("scene", SCENES)
@pytest.mark.parametrize(("width", "dark"), [(375, False), (375, True), (1280, True)])
def test_every_scene_fits_the_screen_in_both_themes(page: Page, scene: str, width: int, dark: bool) -> None:
    emulate(page.driver, width, dark=dark)
    page.open(f"scene={scene}&steps=30" if scene in ("drift", "bandit") else f"scene={scene}")
    assert page.driver.execute_script("return document.documentElement.scrollWidth") <= width
    background = str(page.driver.execute_script("return getComputedStyle(document.body).backgroundColor"))
    assert (sum(map(int, re.findall(r"\d+", background)[:3])) < 200) == dark
    assert page.all(".plot path.line")


@pytest.mark.parametrize("scene", SCENES)
def test_every_control_has_a_name_and_every_text_enough_contrast(page: Page, scene: str) -> None:
    page.open(f"scene={scene}")
    nameless = page.driver.execute_script(
        "return [...document.querySelectorAll('input, select, button')].filter((one) => "
        "!one.labels?.length && !one.ariaLabel && !one.textContent.trim()).map((one) => one.outerHTML)"
    )
    assert nameless == []
    for dark in (False, True):
        emulate(page.driver, dark=dark)
        colours = page.driver.execute_script(_COLOURS)
        for name, (text, ground) in colours.items():
            assert contrast(text, ground) >= 4.5, (name, dark)


_COLOURS = """
const found = {};
const colour = (value) => value.match(/[\\d.]+/g).map(Number);
const ground = (one) => {
  for (let at = one; at; at = at.parentElement) {
    const [r, g, b, a = 1] = colour(getComputedStyle(at).backgroundColor);
    if (a === 1) return [r, g, b];
  }
  return [255, 255, 255];
};
const texts = "h1 span, nav a, #lead p, button:enabled, .knob label, output, #tour li, #tour a, #status, dt, dd";
for (const one of document.querySelectorAll(`${texts}, summary, footer p`)) {
  if (one.checkVisibility()) found[one.outerHTML.slice(0, 80)] = [colour(getComputedStyle(one).color), ground(one)];
}
return found;
"""


def contrast(one: list[float], other: list[float]) -> float:
    """The contrast ratio of two colours by WCAG 2: from 1 to 21, and 4.5 for text that can be read."""

    def luminance(colour: list[float]) -> Any:
        share = np.array(colour[:3]) / 255
        linear = np.where(share <= 0.04045, share / 12.92, ((share + 0.055) / 1.055) ** 2.4)
        return linear @ [0.2126, 0.7152, 0.0722]

    low, high = sorted([luminance(one), luminance(other)])
    return float((high + 0.05) / (low + 0.05))
