"""The list of many models: found by words, by state, in an order, page by page, by what the address says."""

from collections.abc import Iterator
from typing import Any

import pytest
from selenium.webdriver.chrome.webdriver import WebDriver
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

from tests.helpers.browser import console_errors, emulate, needs_driver
from tests.service.page.conftest import Page, Service, running_service

pytestmark = needs_driver
N = 60


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """Models with 0 to 59 rows, every tenth a bandit."""
    with running_service(tmp_path_factory.mktemp("many")) as service:
        made: dict[str, Any] = {"columns": [{"name": "x", "mean": 0.0, "std": 1.0}], "target": {"name": "y"}}
        made["target"] |= {"mean": 0.0, "std": 1.0}
        for i in range(N):
            if i % 10 == 9:
                service.ask("PUT", f"offer-{i:02d}", json={"bandit": {"arms": ["a", "b"], "n_features": 1}})
            else:
                service.ask("PUT", f"{('north', 'south')[i % 2]}-{i:02d}", json=made)
                if i:
                    service.learn(
                        f"{('north', 'south')[i % 2]}-{i:02d}", [{"x": 0.1 * k, "y": 0.1 * k} for k in range(i)], "y"
                    )
        service.ask("POST", "offer-59/decide", json={"context": [1.0]})
        yield service


@pytest.fixture
def page(browser: WebDriver, many: Service) -> Iterator[Page]:
    browser.delete_all_cookies()
    emulate(browser)
    browser.get("about:blank")
    browser.get(many.link())
    page = Page(browser, many)
    page.sees("Models", "60 models")
    console_errors(browser)
    yield page
    assert console_errors(browser) == []


def names(page: Page) -> list[str]:
    found = page.driver.execute_script("return [...document.querySelectorAll('.cards h3')].map((one) => one.innerText)")
    return list(found)


def all_names() -> list[str]:
    return sorted(f"offer-{i:02d}" if i % 10 == 9 else f"{('north', 'south')[i % 2]}-{i:02d}" for i in range(N))


def shows(page: Page, expected: list[str]) -> None:
    page.waits(lambda: names(page) == expected, f"{expected}, not {names(page)}")


def choose(page: Page, label: str, option: str) -> None:
    select = page.driver.find_element(By.XPATH, f"//*[@id=//label[normalize-space()='{label}']/@for]")
    select.find_element(By.XPATH, f"option[normalize-space()='{option}']").click()


def test_the_list_comes_in_pages_and_the_page_is_in_the_address(page: Page) -> None:
    shows(page, all_names()[:24])
    page.sees("60 models; these are 1 to 24.", "Page 1 of 3")
    page.click("Next")
    shows(page, all_names()[24:48])
    assert page.fragment == "#/?page=2"
    page.driver.refresh()
    shows(page, all_names()[24:48])
    page.click("Last")
    shows(page, all_names()[48:])
    page.sees("these are 49 to 60", "Page 3 of 3")
    page.driver.back()
    shows(page, all_names()[24:48])
    page.click("Previous")
    shows(page, all_names()[:24])
    assert page.fragment == "#/"


def test_words_find_models_on_all_pages_and_survive_a_reload(page: Page) -> None:
    page.click("Next")
    page.sees("Page 2 of 3")
    page.fill("Search", "SOUTH 1")
    found = [name for name in all_names() if "south" in name and "1" in name]
    shows(page, found)
    page.sees(f"{len(found)} of 60 models.")
    assert page.fragment == "#/?search=SOUTH+1"
    page.driver.refresh()
    shows(page, found)
    box = page.driver.find_element(By.ID, "search")
    assert box.get_attribute("value") == "SOUTH 1"
    box.send_keys("xyz")
    page.sees("No model matches.")
    assert names(page) == []
    page.click("Show all")
    shows(page, all_names()[:24])
    assert page.driver.find_element(By.ID, "search").get_attribute("value") == ""


def test_models_are_sorted_and_chosen_by_their_state(page: Page) -> None:
    choose(page, "Sort by", "most rows")
    seen = {f"{('north', 'south')[i % 2]}-{i:02d}": i for i in range(N) if i % 10 != 9}
    by_rows = sorted(all_names(), key=lambda name: -seen.get(name, 0))
    shows(page, by_rows[:24])
    page.click("Next")
    shows(page, by_rows[24:48])
    assert page.fragment == "#/?sort=-rows&page=2"
    choose(page, "Show", "nothing learned yet")
    shows(page, ["north-00", *(f"offer-{i:02d}" for i in range(9, N, 10))])
    choose(page, "Show", "waiting for labels or rewards")
    shows(page, ["offer-59"])
    page.driver.refresh()
    shows(page, ["offer-59"])
    page.driver.back()
    shows(page, ["north-00", *(f"offer-{i:02d}" for i in range(9, N, 10))])


def test_the_list_is_used_by_keys_and_tells_those_who_listen(page: Page) -> None:
    shows(page, all_names()[:24])
    box = page.driver.find_element(By.ID, "search")
    box.send_keys("north")
    found = [name for name in all_names() if "north" in name]
    shows(page, found[:24])
    assert page.driver.switch_to.active_element == box  # typing goes on while the list changes
    status = page.driver.find_element(By.CSS_SELECTOR, "main [role=status]")
    page.waits(lambda: str(status.text).startswith(f"{len(found)} of 60 models"), "the number is said")
    assert page.driver.find_element(By.CSS_SELECTOR, "form[role=search]").get_attribute("aria-label") == "Models"
    link = page.driver.find_element(By.XPATH, "//nav[@aria-label='Pages of models']//a[.='Next']")
    link.send_keys(Keys.ENTER)
    shows(page, found[24:])
    assert page.driver.switch_to.active_element == status  # and not lost with the link
    assert not page.driver.find_elements(By.XPATH, "//nav[@aria-label='Pages of models']//a[.='Next']")


def test_an_address_that_is_old_or_wrong_shows_what_there_is(page: Page) -> None:
    page.open("?page=99")
    shows(page, all_names()[48:])
    assert page.fragment == "#/?page=3"
    page.open("?sort=size&only=nothing&page=-3")
    shows(page, all_names()[:24])


def test_only_what_is_shown_is_asked_for(page: Page) -> None:
    page.open()
    shows(page, all_names()[:24])
    script = "return performance.getEntriesByType('resource').map((one) => one.name).filter((n) => n.includes('/v1/'))"
    asked = [str(one) for one in page.driver.execute_script(script)]
    assert sum(one.endswith("/metrics") for one in asked) == 24
    assert all("limit=24" in one for one in asked if "/v1/models?" in one)


@pytest.mark.parametrize("dark", [False, True])
def test_the_list_fits_on_a_phone(page: Page, dark: bool) -> None:
    emulate(page.driver, 375, 800, dark=dark)
    page.open("?page=2")
    page.sees("Page 2 of 3")
    assert page.driver.execute_script("return document.documentElement.scrollWidth") == 375
