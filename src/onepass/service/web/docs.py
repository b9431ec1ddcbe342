"""``/docs``: a page that shows the OpenAPI document, made of plain files that need no other server."""

from importlib.resources import files

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

__all__ = ["routes"]

_FILES = {
    "/docs": ("docs.html", "text/html"),
    "/docs.css": ("docs.css", "text/css"),
    "/docs.js": ("docs.js", "text/javascript"),
}


def routes() -> list[Route]:
    """The page and its files, read once.

    Examples
    --------
    >>> [route.path for route in routes()]
    ['/docs', '/docs.css', '/docs.js']
    """
    folder = files("onepass.service.web") / "static"
    return [_route(path, (folder / name).read_bytes(), kind) for path, (name, kind) in _FILES.items()]


def _route(path: str, content: bytes, kind: str) -> Route:
    async def answer(request: Request) -> Response:
        return Response(content, media_type=kind, headers={"Cache-Control": "no-cache"})

    return Route(path, answer)
