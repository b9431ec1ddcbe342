"""The page at ``/``, on which models are watched, tried and managed; all that it shows comes from the API."""

from pathlib import Path

from starlette.requests import Request
from starlette.responses import FileResponse, Response
from starlette.routing import BaseRoute, Mount, Route

from onepass.service.look import HEADERS, Files, look_route

__all__ = ["routes"]

_STATIC = Path(__file__).parent / "static"


def routes() -> list[BaseRoute]:
    """The page and its files, open to all: the page is where one signs in.

    Examples
    --------
    >>> [route.path for route in routes()]
    ['/', '/static', '/look']
    """
    return [Route("/", _page), Mount("/static", Files(directory=_STATIC)), look_route()]


async def _page(request: Request) -> Response:
    return FileResponse(_STATIC / "index.html", headers=HEADERS)
