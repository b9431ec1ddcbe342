import asyncio
import re
from importlib.resources import files
from urllib.parse import urljoin

import httpx
import pytest
from starlette.applications import Starlette

from onepass.service.page import routes
from tests.service.page.conftest import Service

_IMPORTED = re.compile(r'^import .* from "(\./[^"]+)";$', re.MULTILINE)
_LINKED = re.compile(r'(?:src|href)="((?:static|look)/[^"]+)"')


def fetch(path: str) -> httpx.Response:
    async def fetched() -> httpx.Response:
        transport = httpx.ASGITransport(Starlette(routes=routes()))
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
            return await client.get(path)

    return asyncio.run(fetched())


def test_all_files_that_the_page_and_its_modules_ask_for_are_there() -> None:
    found, wanted = set(), ["/"]
    while wanted:
        path = wanted.pop()
        answer = fetch(path)
        assert answer.status_code == 200, path
        assert answer.headers["Cache-Control"] == "no-cache"
        found.add(path)
        pattern = _LINKED if path == "/" else _IMPORTED
        if path == "/" or path.endswith(".js"):
            wanted += [full for one in pattern.findall(answer.text) if (full := urljoin(path, one)) not in found]
    folder = files("onepass.service.page") / "static"
    there = {f"/static/{one.name}" for one in folder.iterdir() if one.is_file()}
    there |= {f"/static/js/{one.name}" for one in (folder / "js").iterdir()}
    there |= {f"/look/{one.name}" for one in (files("onepass.service.look") / "static").iterdir()}
    assert found == {"/"} | (there - {"/static/index.html"})  # and none that nobody asks for


def test_nothing_comes_from_elsewhere_and_nothing_is_inline() -> None:
    folder = files("onepass.service.page") / "static"
    html = (folder / "index.html").read_text()
    assert not re.search(r"<style|\sstyle=|\son\w+=|<script(?![^>]*\ssrc=)", html)
    for one in (*folder.iterdir(), *(folder / "js").iterdir()):
        if one.is_file():
            addresses = set(re.findall(r"https?://[\w./]+", one.read_text())) - {"http://www.w3.org/2000/svg"}
            assert not addresses, one.name


@pytest.mark.parametrize("path", ["/", "/static/js/main.js", "/static/page.css", "/look/icon.svg", "/look/theme.css"])
def test_files_are_open_to_all_and_have_the_headers_of_the_service(service: Service, path: str) -> None:
    answer = httpx.get(service.address + path)
    assert answer.status_code == 200
    assert answer.headers["Content-Security-Policy"].startswith("default-src 'self';")
    assert answer.headers["X-Content-Type-Options"] == "nosniff"


def test_the_pages_that_it_leads_to_are_there(service: Service) -> None:
    html = httpx.get(service.address).text
    for page in ("playground", "docs"):
        assert f'<a href="{page}">' in html
        assert httpx.get(f"{service.address}/{page}").headers["content-type"].startswith("text/html")


def test_an_unknown_file_is_refused_as_everything_else_is(service: Service) -> None:
    answer = httpx.get(service.address + "/static/js/none.js")
    assert (answer.status_code, answer.json()["title"]) == (404, "not found")
