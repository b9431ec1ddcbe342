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
    """All models are ready and can learn, or some are being loaded, or damaged, or can't be written."""
    if broken := call.services.state.broken:
        which = "1 model" if len(broken) == 1 else f"{len(broken)} models"
        words = f"{which} can't be loaded, and 'onepass admin check' says why; the others are served"
        raise ProblemError(503, "damaged", words)
    if not call.services.state.is_ready:
        words = "some models are still being loaded; requests to the others are answered"
        raise ProblemError(503, "not ready", words, retry_after=1.0)
    if stopped := [model.name for model in call.services.state.models() if model.why_not_writable]:
        which = "1 model predicts" if len(stopped) == 1 else f"{len(stopped)} models predict"
        words = f"{which} but can't learn now; GET /v1/models says which and why"
        raise ProblemError(503, "not writable", words, retry_after=5.0)
    return {"status": "ready"}


async def prometheus(call: Call) -> bytes:
    """All metrics, of the models that a token is for."""
    return call.services.metrics.text(call.principal.sees)


async def openapi(call: Call) -> Any:
    """The document, made when it is first asked for."""
    return _document()


@cache
def _document() -> msgspec.Raw:
    from onepass.service.web.openapi import openapi_document
    from onepass.service.web.table import OPERATIONS  # the table names the handlers, this one too

    return msgspec.Raw(msgspec.json.encode(openapi_document(OPERATIONS)))
