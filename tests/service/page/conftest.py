"""A real service with models that have learned a little, and a browser to look at it."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
from selenium.webdriver.chrome.webdriver import WebDriver
from selenium.webdriver.common.by import By

from onepass._limits import SCOPES, ScopeName
from onepass.service.settings import ServiceSettings
from onepass.service.state import ServiceState
from onepass.service.web.app import create_app
from onepass.service.web.audit import AuditLog
from onepass.service.web.security import Security
from onepass.service.web.tokens import Tokens
from tests.helpers.app_server import served
from tests.helpers.browser import console_errors, driven_browser, emulate
from tests.helpers.waiting import wait_until

__all__ = ["Page", "Service", "cars", "running_service"]


class Service:
    """A service in a thread, and a client of it that may do everything."""

    def __init__(self, address: str, security: Security, secrets: dict[ScopeName, str]) -> None:
        self.address, self.security, self.secrets = address, security, secrets
        headers = {"Authorization": f"Bearer {secrets['admin']}"}
        self.client = httpx.Client(base_url=f"{address}/v1/models/", headers=headers, timeout=60.0)

    def link(self) -> str:
        """A link that lets a browser in, once."""
        return f"{self.address}/#login={self.security.sessions.new_code()}"

    def ask(self, method: str, path: str, **given: Any) -> Any:
        """The answer to a request that is not refused."""
        answer = self.client.request(method, path, **given)
        assert answer.is_success, answer.text
        return answer.json() if answer.content else None

    def learn(self, name: str, rows: list[dict[str, Any]], target: str) -> None:
        """Learn rows as one event."""
        lines = [{"x": {key: value for key, value in row.items() if key != target}, "y": row[target]} for row in rows]
        content = "".join(json.dumps(line) + "\n" for line in lines)
        self.ask("POST", f"{name}/learn", content=content, headers={"Content-Type": "application/x-ndjson"})


class Page:
    """What a person sees and does."""

    def __init__(self, driver: WebDriver, service: Service) -> None:
        self.driver, self.service = driver, service

    def open(self, view: str = "") -> None:
        self.driver.get("about:blank")
        self.driver.get(f"{self.service.address}/#/{view}")

    @property
    def text(self) -> str:
        """All words that can be seen; none while they change."""
        return str(self.driver.execute_script("return document.body.innerText"))

    @property
    def fragment(self) -> str:
        return str(self.driver.execute_script("return location.hash"))

    def sees(self, *words: str) -> None:
        wait_until(lambda: all(one in self.text for one in words), f"{words} in\n{self.text}", 30.0)

    def waits(self, condition: Callable[[], bool], what: str) -> None:
        wait_until(condition, f"{what}; the page is\n{self.text}", 30.0)

    def click(self, words: str) -> None:
        self.driver.find_element(By.XPATH, f"//*[self::a or self::button][normalize-space()='{words}']").click()

    def fill(self, label: str, value: str) -> None:
        field = self.driver.find_element(By.XPATH, f"//*[@id=//label[normalize-space()='{label}']/@for]")
        field.send_keys(value)

    @property
    def said(self) -> str:
        """What is said of a prediction to those who don't look."""
        return str(self.driver.find_element(By.CSS_SELECTOR, "[role=status].unseen").get_attribute("textContent"))

    def tile(self, name: str) -> str:
        script = "return [...document.querySelectorAll('.tiles > div')].find(d => d.innerText.startsWith(arguments[0]))"
        tile: Any = self.driver.execute_script(f"{script}?.querySelector('dd').firstChild.textContent", name)
        return str(tile)


def cars(n: int, seed: int = 0) -> list[dict[str, Any]]:
    """Rows with numbers, a category, a truth value and a price."""
    rng = np.random.default_rng(seed)
    made = []
    for _ in range(n):
        km, brand, garage = float(rng.uniform(1e3, 1e5)), str(rng.choice(["vw", "bmw"])), bool(rng.random() < 0.5)
        price = 20_000.0 - 0.1 * km + 5_000.0 * (brand == "bmw") + 500.0 * garage + rng.normal(0.0, 800.0)
        made.append({"km": round(km), "brand": brand, "garage": garage, "price": round(price, 2)})
    return made


@contextmanager
def running_service(folder: Path, port: int = 0) -> Iterator[Service]:
    """Serve the state in a folder."""
    folder.mkdir(exist_ok=True)
    tokens = Tokens(folder / "tokens.json")
    secrets: dict[ScopeName, str] = {scope: tokens.create(f"{scope}-{port}", scope) for scope in SCOPES}
    settings, security = ServiceSettings(folder), Security(tokens)
    app = create_app(ServiceState(settings), security, audit=AuditLog(folder), max_body=settings.max_body)
    with served(app, port) as address:
        service = Service(address, security, secrets)
        with service.client:
            yield service


@pytest.fixture(scope="package")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """Models of every kind: numbers with a shadow, classes, a bandit."""
    with running_service(tmp_path_factory.mktemp("state")) as service:
        rows = cars(200)
        table = {"rows": rows[:100], "target": "price", "learn": True}
        service.ask("PUT", "price", json=table)
        service.ask("PUT", "price/shadow", json=table)
        service.learn("price", rows[100:], "price")
        service.ask("POST", "price/predict", json={"x": {"km": 100}, "id": "offer <1>"})
        kinds = [{"km": row["km"], "price": row["price"], "brand": row["brand"]} for row in rows]
        service.ask("PUT", "brand", json={"rows": kinds[:100], "target": "brand", "learn": True})
        service.learn("brand", kinds[100:], "brand")
        service.ask("PUT", "offer", json={"bandit": {"arms": ["red", "blue"], "n_features": 2}})
        for i in range(30):
            service.ask("POST", "offer/decide", json={"context": [1.0, 0.1 * i], "id": f"visit {i}"})
            service.ask("POST", "offer/reward", json={"id": f"visit {i}", "reward": i % 2})
        yield service


@pytest.fixture(scope="package")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WebDriver]:
    with driven_browser(tmp_path_factory.mktemp("profile")) as driver:
        yield driver


@pytest.fixture
def page(browser: WebDriver, service: Service) -> Iterator[Page]:
    """A page that somebody has signed in to, which must not complain on its console."""
    browser.delete_all_cookies()
    emulate(browser)
    browser.get("about:blank")
    browser.get(service.link())
    page = Page(browser, service)
    page.sees("Models", "Sign out")
    console_errors(browser)
    yield page
    assert console_errors(browser) == []
