"""Requests made up from the service's own description, right and wrong ones: none ends in a failure of the server.

A request that is refused changes nothing: no model has another version after it, and none is there or gone.
"""

import random
from pathlib import Path
from typing import Any

import httpx
import hypothesis
import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, settings

from onepass.service.settings import ServiceSettings
from onepass.service.state import ServiceState
from onepass.service.web.app import create_app
from onepass.service.web.audit import AuditLog
from onepass.service.web.security import Security
from tests.helpers.app_server import served
from tests.helpers.waiting import wait_until
from tests.service.running import four_models

pytestmark = pytest.mark.filterwarnings("ignore:a context has a feature of size")  # which a service logs
_NAMES = ("number", "class", "bandit", "fleet", "new", "nobody")
_IDS = tuple(f"id {i}" for i in range(6))


def fuzz(folder: Path, examples: int, seed: int) -> dict[int, int]:
    """Send so many requests; how often each status was answered."""
    state = ServiceState(ServiceSettings(folder, deadline=120.0))
    app = create_app(state, Security(None), audit=AuditLog(folder), max_body=2**20)
    found: dict[int, int] = {}
    dice = random.Random(seed)
    with served(app) as address, httpx.Client(base_url=address, timeout=60.0) as client:
        wait_until(lambda: state.is_ready, "the service to be ready")
        for name, content in four_models().items():
            put = client.put(
                f"/v1/models/{name}", content=content, headers={"Content-Type": "application/octet-stream"}
            )
            assert put.status_code == 201, put.text
        schema: Any = schemathesis.openapi.from_url(f"{address}/openapi.json")

        @hypothesis.seed(seed)
        @settings(
            max_examples=examples,
            deadline=None,
            database=None,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        )
        @hypothesis.given(case=schema.as_strategy())
        def send(case: Any) -> None:
            _name(case, dice)
            before = _versions(state)
            answer = case.call(base_url=address, timeout=60.0)
            found[answer.status_code] = found.get(answer.status_code, 0) + 1
            assert answer.status_code < 500, (
                case.method,
                case.path,
                answer.content,
            )
            assert b"Traceback" not in answer.content
            if answer.status_code >= 400:
                assert answer.headers["content-type"] == ["application/problem+json"], case.path
                assert {"title", "status", "detail"} <= set(answer.json())
                assert _versions(state) == before, (case.method, case.path, answer.content)

        send()
        assert client.get("/healthz").status_code == 200
        for model in client.get("/v1/models").json()["models"]:  # all of them still answer
            assert client.get(f"/v1/models/{model['name']}/file").status_code == 200
    return found


def _name(case: Any, dice: random.Random) -> None:
    """Have most requests meet a model, and ids meet each other."""
    if case.path_parameters and "name" in case.path_parameters and dice.random() < 0.9:
        case.path_parameters["name"] = dice.choice(_NAMES)
    if case.path_parameters and "id" in case.path_parameters and dice.random() < 0.8:
        case.path_parameters["id"] = dice.choice(_IDS)
    if isinstance(case.body, dict) and "id" in case.body and dice.random() < 0.8:
        case.body["id"] = dice.choice(_IDS)


def _versions(state: ServiceState) -> dict[str, int]:
    return {model.name: model.journal.last for model in state.models()}


def test_made_up_requests_end_in_no_failure_of_the_server(tmp_path: Path) -> None:
    found = fuzz(tmp_path, 300, seed=1)
    assert {200, 422} <= set(found)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(10))
def test_ten_thousand_made_up_requests(tmp_path: Path, seed: int) -> None:
    found = fuzz(tmp_path, 1000, seed=100 + seed)
    assert {200, 404, 422} <= set(found)
