"""A real service with models that have learned a little, and a browser to look at it."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
from selenium.webdriver.chrome.webdriver import WebDriver

from onepass.service.settings import ServiceSettings
from onepass.service.state import ServiceState
from onepass.service.web.app import create_app
from onepass.service.web.security import Security
from onepass.service.web.tokens import SCOPES, ScopeName, Tokens
from tests.helpers.app_server import served
from tests.helpers.browser import driven_browser

__all__ = ["Service", "cars", "running_service"]


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
    app = create_app(ServiceState(settings), security, audit=folder / "audit.jsonl", max_body=settings.max_body)
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
