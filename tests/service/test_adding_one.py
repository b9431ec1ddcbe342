"""The example on the page about adding an HTTP operation, made part of a copy of the package and asked over HTTP."""

import json
from pathlib import Path

from tests.helpers.extending import PackageCopy

_PROGRAM = """
import asyncio, json
from pathlib import Path

import httpx

from onepass.service.settings import ServiceSettings
from onepass.service.state import ServiceState
from onepass.service.web.app import create_app, running
from onepass.service.web.audit import AuditLog
from onepass.service.web.security import Security

FOLDER = Path("state")

async def ask(client, method, path, body):
    answer = await client.request(method, path, json=body)
    return [answer.status_code, answer.json()]

async def life(*questions):
    state = ServiceState(ServiceSettings(FOLDER))
    async with running(state):
        while not state.is_ready:
            await asyncio.sleep(0.01)
        app = create_app(state, Security(None), audit=AuditLog(FOLDER), max_body=2**20)
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://localhost") as client:
            return [await ask(client, *question) for question in questions]

MODEL = "/v1/models/shop"
made = ("PUT", MODEL, {"bandit": {"arms": ["a", "b", "c"], "n_features": 1}})
pause, bad = [("POST", MODEL + "/pause", {"arms": arms}) for arms in (["a", "b"], ["c", "none"])]
look = ("GET", MODEL, None)
(_, first, refused, now), (later,) = asyncio.run(life(made, pause, bad, look)), asyncio.run(life(look))
document = asyncio.run(life(("GET", "/openapi.json", None)))[0][1]
print(json.dumps([first, refused[0], refused[1]["field"], now[1]["schema"]["paused"], later[1]["schema"]["paused"],
                  sorted(document["paths"]["/v1/models/{name}/pause"])]))
"""


def test_an_operation_touches_two_files_and_what_it_changes_is_kept(tmp_path: Path) -> None:
    copy = PackageCopy(tmp_path, "operation", "service/operations/pause_arms.py")
    assert copy.touched == {"service/operations/pause_arms.py", "service/web/table.py"}
    found = json.loads(copy.run(_PROGRAM).splitlines()[-1])
    assert found[:3] == [[200, {"paused": ["a", "b"]}], 422, "arms"]
    assert found[3] == found[4] == ["a", "b"]
    assert "post" in found[5]
