"""Sessions end with an empty line, which doctest needs before the fence and nobody needs to see."""

from typing import Any


def _trim(app: Any, name: str, source: list[str]) -> None:
    source[0] = source[0].replace("\n\n```\n", "\n```\n")


def setup(app: Any) -> dict[str, bool]:
    """Register with Sphinx."""
    app.connect("source-read", _trim)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
