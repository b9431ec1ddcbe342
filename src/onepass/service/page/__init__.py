"""The page at ``/``: models that learn, watched live, tried and managed; what it shows comes from the API."""

from pathlib import Path
from typing import Any

from starlette.requests import Request
from starlette.responses import FileResponse, Response
from starlette.routing import BaseRoute, Mount, Route
from starlette.staticfiles import StaticFiles

__all__ = ["routes"]

_STATIC = Path(__file__).parent / "static"
_HEADERS = {
    "Cache-Control": "no-cache"
}  # after an upgrade no old module must meet a new page; unchanged ones are a 304


class _Files(StaticFiles):
    """Files that a browser asks about every time."""

    def file_response(self, *args: Any, **kwargs: Any) -> Response:
        response = super().file_response(*args, **kwargs)
        response.headers.update(_HEADERS)
        return response


def routes() -> list[BaseRoute]:
    """The page and its files, open to all: the page is where one signs in.

    Examples
    --------
    >>> [route.path for route in routes()]
    ['/', '/static']
    """
    return [Route("/", _page), Mount("/static", _Files(directory=_STATIC))]


async def _page(request: Request) -> Response:
    return FileResponse(_STATIC / "index.html", headers=_HEADERS)
