"""The page, its files and its socket as routes, and an application of them alone."""

import re
from pathlib import Path

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import Request
from starlette.responses import FileResponse, HTMLResponse, JSONResponse, RedirectResponse, Response
from starlette.routing import BaseRoute, Mount, Route, WebSocketRoute

from onepass.service.look import HEADERS, Files, look_route
from onepass.service.playground.endpoint import Endpoint
from onepass.service.playground.messages import catalogue

__all__ = ["PATH", "application", "routes"]

PATH = "/playground"
_STATIC = Path(__file__).parent / "static"
_PAGE_HEADERS = HEADERS | {
    "Content-Security-Policy": "default-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
    "object-src 'none'",
    "Referrer-Policy": "no-referrer",
}


def routes(*, alone: bool = False) -> list[BaseRoute]:
    """The routes of the playground, below ``/playground``.

    Parameters
    ----------
    alone : whether the application has no other pages to lead to

    Examples
    --------
    >>> [route.path for route in routes()]
    ['/playground', '/playground/scenes.json', '/playground/socket', '/playground/static', '/look']
    """
    return [
        Route(PATH, _page_alone if alone else _page),
        Route(f"{PATH}/scenes.json", _scenes),
        WebSocketRoute(f"{PATH}/socket", Endpoint().serve),
        Mount(f"{PATH}/static", Files(directory=_STATIC)),
        look_route(),
    ]


def application() -> Starlette:
    """An application with the playground alone, which answers for this machine only."""
    return Starlette(
        routes=[Route("/", _to_page), *routes(alone=True)],
        middleware=[Middleware(TrustedHostMiddleware, allowed_hosts=["127.0.0.1", "localhost"])],
    )


async def _page(request: Request) -> Response:
    return FileResponse(_STATIC / "index.html", headers=_PAGE_HEADERS)


async def _page_alone(request: Request) -> Response:
    """The page without the links to the others."""
    content = (_STATIC / "index.html").read_text(encoding="utf-8")
    return HTMLResponse(re.sub(r'\s*<nav class="pages".*</nav>', "", content), headers=_PAGE_HEADERS)


async def _scenes(request: Request) -> Response:
    return JSONResponse(catalogue(), headers=HEADERS)


async def _to_page(request: Request) -> Response:
    return RedirectResponse(PATH)
