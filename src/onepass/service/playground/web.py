"""The page, its files and its socket as routes, and an application of them alone."""

from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, RedirectResponse, Response
from starlette.routing import BaseRoute, Mount, Route, WebSocketRoute
from starlette.staticfiles import StaticFiles

from onepass.service.playground.endpoint import Endpoint
from onepass.service.playground.messages import catalogue

__all__ = ["PATH", "application", "routes"]

PATH = "/playground"
_STATIC = Path(__file__).parent / "static"
_HEADERS = {
    "Cache-Control": "no-cache",  # after an upgrade no old module must meet a new page; unchanged files are a 304
    "X-Content-Type-Options": "nosniff",
}
_PAGE_HEADERS = _HEADERS | {
    "Content-Security-Policy": "default-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
    "object-src 'none'",
    "Referrer-Policy": "no-referrer",
}


class _Files(StaticFiles):
    """Files that a browser asks about every time."""

    def file_response(self, *args: Any, **kwargs: Any) -> Response:
        response = super().file_response(*args, **kwargs)
        response.headers.update(_HEADERS)
        return response


def routes() -> list[BaseRoute]:
    """The routes of the playground, below ``/playground``, for an application that may have others.

    Examples
    --------
    >>> [route.path for route in routes()]
    ['/playground', '/playground/scenes.json', '/playground/socket', '/playground/static']
    """
    return [
        Route(PATH, _page),
        Route(f"{PATH}/scenes.json", _scenes),
        WebSocketRoute(f"{PATH}/socket", Endpoint().serve),
        Mount(f"{PATH}/static", _Files(directory=_STATIC)),
    ]


def application() -> Starlette:
    """An application with the playground alone, which answers for this machine only."""
    return Starlette(
        routes=[Route("/", _to_page), *routes()],
        middleware=[Middleware(TrustedHostMiddleware, allowed_hosts=["127.0.0.1", "localhost"])],
    )


async def _page(request: Request) -> Response:
    return FileResponse(_STATIC / "index.html", headers=_PAGE_HEADERS)


async def _scenes(request: Request) -> Response:
    return JSONResponse(catalogue(), headers=_HEADERS)


async def _to_page(request: Request) -> Response:
    return RedirectResponse(PATH)
