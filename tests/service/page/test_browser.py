"""The page in a real browser, as people use it."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from selenium.webdriver.chrome.webdriver import WebDriver
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

from tests.helpers.browser import console_errors, driven_browser, emulate, needs_driver
from tests.service.page.conftest import Page, Service, cars, running_service

pytestmark = needs_driver


def test_the_link_lets_in_once_and_its_code_does_not_stay_in_the_address(browser: WebDriver, service: Service) -> None:
    browser.delete_all_cookies()
    link, page = service.link(), Page(browser, service)
    browser.get("about:blank")
    browser.get(link)
    page.sees("price", "brand", "offer", "signed in by link")
    assert page.fragment == "#/"
    browser.delete_all_cookies()
    browser.get("about:blank")
    browser.get(link)
    page.sees("This link does not work any more", "start it again")
    assert "login" not in browser.current_url
    page.fill("Token", "onepass_wrong")
    page.click("Sign in")
    page.sees("This is not a token of this service.")
    page.driver.find_element(By.ID, "token").clear()
    page.fill("Token", service.secrets["read"])
    page.click("Sign in")
    page.sees("price", "read-0, read")


def test_who_signs_out_or_whose_session_ends_is_told_and_comes_back_to_the_same_view(page: Page) -> None:
    page.open("models/price")
    page.sees("Learning curve")
    page.driver.delete_all_cookies()
    page.sees("Your session has ended")
    page.fill("Token", page.service.secrets["admin"])
    page.click("Sign in")
    page.sees("Learning curve")
    page.click("Sign out")
    page.sees("You are signed out")
    assert all("401" in error for error in console_errors(page.driver))


def test_a_model_is_seen_to_learn_while_the_page_is_open(page: Page) -> None:
    page.open("models/price")
    page.sees("Learning curve", "Coverage", "Calibration", "brand=bmw", "offer <1>")
    before = int(page.tile("rows learned").replace(",", ""))
    drawn = "return document.querySelector('.plot path.line.blue:not(.thin)').getAttribute('d')"
    old = page.driver.execute_script(drawn)
    page.service.learn("price", cars(150, seed=1), "price")
    page.waits(lambda: page.tile("rows learned") == f"{before + 150:,}", "the new rows are counted")
    page.waits(lambda: page.driver.execute_script(drawn) != old, "the curve goes on")


def test_a_card_of_the_overview_follows_its_model(page: Page) -> None:
    page.sees("predicts price, a number, from 3 columns", "chooses one of 2 arms", "with a shadow")
    seen = page.service.ask("GET", "brand")["n_seen"]
    rows = [{key: row[key] for key in ("km", "price", "brand")} for row in cars(20, seed=2)]
    page.service.learn("brand", rows, "brand")
    page.sees(f"{seen + 20} rows learned")


def test_a_prediction_comes_as_one_types_and_is_explained(page: Page) -> None:
    page.open("models/price/try")
    page.sees("A row")
    assert page.driver.title == "Try price · onepass"
    page.fill("km", "20000")
    page.fill("brand", "bmw")
    x = {"km": 20000, "brand": "bmw"}
    truth = page.service.ask("POST", "price/predict", json={"x": x})
    why = page.service.ask("POST", "price/explain", json={"x": x})
    page.sees(f"{round(truth['mean']):,}", f"{round(truth['lower']):,} and {round(truth['upper']):,}")
    page.sees("average row", "this row")
    rows = page.driver.find_elements(By.XPATH, "//section[@aria-labelledby='why-title']//tbody/tr")
    ends = [float(row.text.split()[-1].replace(",", "")) for row in (rows[0], rows[-1])]
    assert ends == pytest.approx([why["baseline"], why["total"]], abs=1.0)
    steps = [row.find_element(By.CSS_SELECTOR, ".number").text.split(" ")[0] for row in rows[1:-1]]
    adds = [float(step.replace(",", "").replace("\u2212", "-")) for step in steps]
    assert adds == pytest.approx([one["add"] for one in why["columns"]], rel=0.02, abs=1.0)
    assert [row.text.split()[0] for row in rows[1:-1]] == [one["column"] for one in why["columns"]]
    assert f"price {round(truth['mean']):,}" in page.said


def test_the_truth_of_a_row_can_be_learned_and_what_that_changed_is_shown(page: Page) -> None:
    before = page.service.ask("GET", "price")["n_seen"]
    page.open("models/price/try")
    page.sees("A row")
    page.click("Learn it")
    page.sees("Enter the true value.")
    page.fill("km", "20000")
    page.sees("this row")
    page.fill("true price", "19500")
    page.click("Learn it")
    page.sees("Learned, as version", "Before:")
    assert page.service.ask("GET", "price")["n_seen"] == before + 1


@pytest.fixture
def young(page: Page) -> Iterator[str]:
    """A model that has scored one row, with a date and a category of two words."""
    rows = [
        {"day": f"2030-01-{1 + i % 28:02d}", "queue": ("batch", "interactive")[i % 2], "s": 2.0 * i} for i in range(60)
    ]
    page.service.ask("PUT", "young", json={"rows": rows, "target": "s", "learn": True})
    page.service.ask("POST", "young/learn", json={"x": {"day": "2030-02-03", "queue": "batch"}, "y": 50.0})
    yield "young"
    page.service.ask("DELETE", "young")


def test_a_score_says_of_how_many_rows_it_is_and_a_verdict_waits_for_enough(page: Page, young: str) -> None:
    page.open()
    page.sees("over 1 row\n", "61 rows learned")
    page.open(f"models/{young}")
    page.sees("inside their central 95 % interval. It was 0.0 %. Only 1 row so far; a verdict needs 30.")
    assert "as it should be." not in page.text
    marks = page.driver.execute_script(_X_MARKS)
    assert marks == ["60", "61"]
    x = {"day": "2030-02-04", "queue": "batch"}
    page.service.learn(young, [{**x, "s": 50.0 + i} for i in range(29)], "s")
    page.waits(lambda: "a verdict needs" not in page.text, "the verdict")
    marks = page.driver.execute_script(_X_MARKS)
    assert all(float(mark).is_integer() for mark in marks)
    assert (marks[0], marks[-1]) == ("60", "90")


def test_the_recent_scores_of_a_tile_are_where_the_curve_ends(page: Page) -> None:
    page.open("models/price")
    page.sees("Learning curve", "recent ")
    tile = "return [...document.querySelectorAll('.tiles > div')].find(d => d.innerText.startsWith('RMSE'))"
    recent = page.driver.execute_script(f"{tile}.querySelector('small').innerText").removeprefix("recent ")
    plot = page.driver.find_element(By.CSS_SELECTOR, ".plot")
    plot.send_keys(Keys.END)
    page.waits(lambda: f"recent rows, this model\n{recent}" in page.text, f"{recent} at the end of the curve")


def test_a_row_that_can_not_be_read_has_no_prediction(page: Page, young: str) -> None:
    page.open(f"models/{young}/try")
    page.sees("A row")
    page.fill("day", "2030-02-03")
    page.sees("this row")
    page.fill("day", " or so")
    page.sees("There is no prediction for this row", "There is no prediction to explain.")
    assert "this row\n" not in page.text
    assert page.said == ""
    assert all("422" in error for error in console_errors(page.driver))


def test_what_is_said_follows_what_was_learned(page: Page) -> None:
    page.open("models/price/try")
    page.sees("A row")
    page.fill("km", "30000")
    page.sees("this row")
    before = page.said
    page.fill("true price", "40000")
    page.click("Learn it")
    page.sees("Learned, as version", "Before:")
    mean = page.service.ask("POST", "price/predict", json={"x": {"km": 30000}})["mean"]
    page.waits(lambda: page.said.startswith(f"price {round(mean):,}"), f"{mean} is said after {before}")
    page.service.ask("POST", "price/learn", json={"x": {"km": 30000}, "y": 1000})
    page.waits(lambda: page.said == "", "old numbers are not said")


def test_an_absurd_truth_is_counted_and_set_aside(page: Page) -> None:
    rows = [{"km": 0.5 * (i % 9), "price": 10.5 + i % 7 * 0.1} for i in range(40)]
    page.service.ask("PUT", "calm", json={"rows": rows, "target": "price", "learn": True})
    page.open("models/calm/try")
    page.sees("A row")
    page.fill("km", "5")
    page.fill("true price", "1e12")
    page.click("Learn it")
    page.sees("Counted, as version 2, but set aside: 1.00e+12 is absurdly far from what was predicted")
    found = page.service.ask("GET", "calm")
    assert (found["n_seen"], found["n_set_aside"]) == (41, 1)
    page.open("models/calm")
    page.sees("1 set aside as absurdly far off", "The last alarms")
    page.service.ask("DELETE", "calm")
    assert console_errors(page.driver) == []


def test_other_pages_lead_back_to_the_models(page: Page) -> None:
    for path in ("playground", "docs"):
        page.driver.get(f"{page.service.address}/{path}")
        page.click("Models")
        page.sees("predicts price, a number, from 3 columns")
    icons = page.driver.execute_script("return [...document.querySelectorAll('link[rel=icon]')].map(l => l.href)")
    assert icons == [f"{page.service.address}/look/icon.svg"]


def test_names_break_between_their_words(page: Page, young: str) -> None:
    emulate(page.driver, 390, 800)
    page.open(f"models/{young}")
    page.sees("queue=interactive")
    lines = """return [...document.querySelectorAll('.bars tbody th')].flatMap((th) => [...th.childNodes]
      .filter((node) => node.nodeType === 3 && th.textContent.startsWith('queue')).map((node) => {
        const range = document.createRange(); range.selectNodeContents(node);
        return [node.textContent, range.getClientRects().length]; }))"""
    words = dict(page.driver.execute_script(lines))
    assert words == {"queue=": 1, "batch": 1, "interactive": 1, "(other)": 1}


def test_classes_are_predicted_with_their_probabilities(page: Page) -> None:
    page.open("models/brand/try")
    page.sees("A row")
    page.fill("km", "50000")
    page.fill("price", "20000")
    truth = page.service.ask("POST", "brand/predict", json={"x": {"km": 50000, "price": 20000}})
    page.sees(*(f"{100 * share:.1f} %" for share in truth["probabilities"].values()), "log odds")


def test_a_bandit_decides_and_learns_the_reward(page: Page) -> None:
    before = page.service.ask("GET", "offer")
    page.open("models/offer")
    page.sees("How often each was chosen", "red", "blue")
    page.click("Try")
    page.sees("Expected reward", "Probability of being chosen")
    page.fill("feature 1", "1")
    page.click("Decide")
    page.sees("chosen with probability")
    page.fill("reward", "1")
    page.click("Learn it")
    page.sees("Learned:")
    after = page.service.ask("GET", "offer")
    assert (after["n_seen"], after["pending"]) == (before["n_seen"] + 1, before["pending"])


def test_going_back_to_a_version_asks_first(page: Page) -> None:
    version = page.service.ask("GET", "brand")["version"]
    page.open("models/brand/manage")
    page.sees("Go back to version")
    page.fill("Go back to version", "1")
    page.driver.find_element(By.XPATH, "//form//button[.='Go back']").click()
    page.sees("Go back to version 1?")
    page.click("Cancel")
    assert page.service.ask("GET", "brand")["version"] == version
    page.driver.find_element(By.XPATH, "//form//button[.='Go back']").click()
    page.driver.find_element(By.CSS_SELECTOR, "dialog [value=yes]").click()
    page.sees("is as it was at version 1")
    assert page.service.ask("GET", "brand")["n_seen"] == 100


def test_back_and_forward_lead_through_views_and_their_titles(page: Page) -> None:
    page.driver.find_element(By.LINK_TEXT, "price").click()
    page.sees("Learning curve")
    page.click("Try")
    page.waits(lambda: page.driver.title == "Try price · onepass", "the title follows")
    page.driver.back()
    page.sees("Learning curve")
    assert page.driver.title == "price · onepass"
    page.driver.back()
    page.sees("chooses one of 2 arms")
    assert page.driver.title == "onepass"


def test_a_chart_is_read_by_keys_and_has_its_numbers_as_a_table(page: Page) -> None:
    page.open("models/price")
    page.sees("Learning curve", "rows learned")
    plot = page.driver.find_element(By.CSS_SELECTOR, ".plot")
    plot.send_keys(Keys.END)
    aloud = page.driver.find_element(By.CSS_SELECTOR, "figure p[aria-live]")
    page.waits(lambda: "recent rows" in str(aloud.get_attribute("textContent")), "the last value is read")
    rows = page.service.ask("GET", "price")["n_seen"]
    assert f"rows: {rows:,}" in str(aloud.get_attribute("textContent"))
    page.driver.find_element(By.CSS_SELECTOR, "figure summary").click()
    page.waits(lambda: len(page.driver.find_elements(By.CSS_SELECTOR, "figure tbody tr")) > 3, "there is a table")


def test_who_may_only_read_is_not_offered_to_change_anything(page: Page) -> None:
    page.click("Sign out")
    page.sees("You are signed out")
    page.fill("Token", page.service.secrets["read"])
    page.click("Sign in")
    page.open("models/price/try")
    page.sees("sign in with a token that has the scope learn")
    page.click("Manage")
    page.sees("Download", "sign in with a token that has the scope admin")
    assert not page.driver.find_elements(By.XPATH, "//button[contains(., 'Delete') or contains(., 'Go back')]")


def test_a_model_that_is_not_there_is_named(page: Page) -> None:
    page.open("models/none")
    page.sees("Not found", "there is no model 'none'")
    assert all("404" in error for error in console_errors(page.driver))


@pytest.mark.parametrize("dark", [False, True])
def test_nothing_is_wider_than_a_phone_and_words_can_be_read(page: Page, dark: bool) -> None:
    for view in ("", "models/price", "models/price/try", "models/price/manage", "models/brand", "models/offer/try"):
        emulate(page.driver, 375, 800, dark=dark)
        page.open(view)
        page.sees("offer" if not view else view.split("/")[1])
        page.waits(lambda: "Loading" not in page.text, "the view is there")
        assert page.driver.execute_script("return document.documentElement.scrollWidth") == 375, view
        assert page.driver.execute_script(_FAINT) == [], view


def test_an_empty_service_says_how_to_make_the_first_model_and_its_absence_is_told(tmp_path: Path) -> None:
    with driven_browser(tmp_path / "profile") as driver:
        with running_service(tmp_path / "state") as service:
            port, page = int(service.address.rpartition(":")[2]), Page(driver, service)
            driver.get(service.link())
            page.sees("There is no model yet", "onepass fit", f"{service.address}/v1/models/price")
        page.sees("The service does not answer.")
        with running_service(tmp_path / "state", port):
            page.sees("Your session has ended")  # sessions are lost with the process
            assert "does not answer" not in page.text


_X_MARKS = """
return [...document.querySelector('#curve-title').closest('section').querySelectorAll('.axis text')]
  .filter((text) => text.getAttribute('y') > 255).map((text) => text.textContent)
"""
_FAINT = """
const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
function channels(color) {
  canvas.clearRect(0, 0, 1, 1); canvas.fillStyle = color; canvas.fillRect(0, 0, 1, 1);
  return canvas.getImageData(0, 0, 1, 1).data;
}
function luminance([r, g, b]) {
  const [x, y, z] = [r, g, b].map((c) => (c / 255 <= 0.04045 ? c / 255 / 12.92 : ((c / 255 + 0.055) / 1.055) ** 2.4));
  return 0.2126 * x + 0.7152 * y + 0.0722 * z;
}
function behind(element) {
  for (let one = element; one; one = one.parentElement) {
    const color = channels(getComputedStyle(one).backgroundColor);
    if (color[3] > 200) return color;
  }
  return [255, 255, 255];
}
const faint = [];
for (const element of document.querySelectorAll("body *")) {
  const own = [...element.childNodes].some((node) => node.nodeType === 3 && node.textContent.trim());
  const box = element.getBoundingClientRect();
  if (!own || box.width < 2 || element.closest("svg") || element.disabled) continue;
  const [a, b] = [luminance(channels(getComputedStyle(element).color)), luminance(behind(element))];
  const contrast = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
  const words = `${element.tagName}.${element.className} ${element.textContent.slice(0, 30)}`;
  if (contrast < 4.5) faint.push(`${words} ${contrast.toFixed(2)}`);
}
return faint;
"""
