"""Pages that are mounted if they are installed: their files are open to all, their sockets are not."""

import asyncio
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import onepass.service
from tests.service.web.conftest import Served

PAGE = """
from starlette.responses import PlainTextResponse
from starlette.routing import Route, WebSocketRoute

async def page(request):
    return PlainTextResponse("the page", headers={"Content-Security-Policy": "default-src 'none'"})

async def socket(websocket):
    await websocket.accept()
    await websocket.close(4000)

def routes():
    return [Route("/", page), WebSocketRoute("/socket", socket)]
"""


@pytest.fixture
def with_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Served]:
    """An application where a page is installed."""
    folder = tmp_path / "installed"
    folder.mkdir()
    (folder / "page.py").write_text(PAGE)
    monkeypatch.setattr(onepass.service, "__path__", [str(folder), *onepass.service.__path__])
    for name in [name for name in sys.modules if name.startswith("onepass.service.page")]:  # the real one comes back
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr(onepass.service, "page", None, raising=False)
    yield Served(tmp_path)
    del sys.modules["onepass.service.page"]


def test_a_page_is_open_to_all_and_keeps_its_own_headers(with_page: Served) -> None:
    answer = with_page.ask("GET", "/", None)
    assert (answer.status_code, answer.text) == (200, "the page")
    assert answer.headers.get_list("content-security-policy") == ["default-src 'none'"]
    assert answer.headers["x-frame-options"] == "DENY"
    assert with_page.ask("GET", "/v1/models", None).status_code == 401


@pytest.mark.parametrize(("scope", "code"), [("read", 4000), (None, 1008)])
def test_a_socket_needs_somebody_who_may_read(with_page: Served, scope: str | None, code: int) -> None:
    sent: list[Any] = []

    async def send(message: Any) -> None:
        sent.append(message)

    async def receive() -> Any:
        return {"type": "websocket.connect"}

    headers = [(b"host", b"localhost")]
    if scope is not None:
        headers.append((b"authorization", f"Bearer {with_page.secrets['read']}".encode()))
    asked = {"type": "websocket", "path": "/socket", "root_path": "", "query_string": b"", "headers": headers}
    asyncio.run(with_page.app(asked, receive, send))
    assert sent[-1]["code"] == code
