"""What all pages share: theme, icon, and how their files are served."""

from pathlib import Path
from typing import Any

from starlette.responses import Response
from starlette.routing import Mount
from starlette.staticfiles import StaticFiles

__all__ = ["HEADERS", "Files", "look_route"]

HEADERS = {
    "Cache-Control": "no-cache",  # no old module must meet a new page; unchanged files are a 304
    "X-Content-Type-Options": "nosniff",
}


class Files(StaticFiles):
    """A folder of files that a browser asks about every time."""

    def file_response(self, *args: Any, **kwargs: Any) -> Response:
        """The answer with a file, or that it has not changed."""
        response = super().file_response(*args, **kwargs)
        response.headers.update(HEADERS)
        return response


def look_route() -> Mount:
    """Colours, type and the icon, below ``/look``.

    Examples
    --------
    >>> look_route().path
    '/look'
    """
    return Mount("/look", Files(directory=Path(__file__).parent / "static"))
