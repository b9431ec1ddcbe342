"""Operations on the service itself: is it alive, is it ready, what does it count, what can it be asked."""

from functools import cache
from typing import Any

import msgspec

from onepass.service.errors import ProblemError
from onepass.service.web.operations import Call

__all__ = ["health", "openapi", "prometheus", "ready"]


async def health(call: Call) -> dict[str, str]:
    """The process answers."""
    return {"status": "ok"}


async def ready(call: Call) -> dict[str, str]:
    """All models are ready, or still learn again what they had learned before the start."""
    if not call.services.state.is_ready:
        words = "some models are still being loaded; requests to the others are answered"
        raise ProblemError(503, "not ready", words, retry_after=1.0)
    return {"status": "ready"}


async def prometheus(call: Call) -> bytes:
    """All metrics."""
    return call.services.metrics.text()


async def openapi(call: Call) -> Any:
    """The document, made when it is first asked for."""
    return _document()


@cache
def _document() -> msgspec.Raw:
    from onepass.service.web.openapi import openapi_document
    from onepass.service.web.table import OPERATIONS  # the table names the handlers, this one too

    return msgspec.Raw(msgspec.json.encode(openapi_document(OPERATIONS)))
