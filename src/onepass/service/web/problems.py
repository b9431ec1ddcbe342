"""Refusals and failures as answers: ``application/problem+json`` as of RFC 9457, whatever went wrong and wherever."""

import logging
import math
import time
from collections.abc import Callable, Mapping

import msgspec
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from onepass.service.errors import ProblemError, StoringProblemError

__all__ = ["PROBLEM", "Problems", "from_http", "problem_response", "send_problem"]

PROBLEM = "application/problem+json"
_log = logging.getLogger("onepass.service")
_QUIET = 60.0  # seconds without another word on the same outage
_encode = msgspec.json.Encoder().encode
_TITLES = {
    404: ("not found", "there is nothing at this address; /docs lists what there is"),
    405: ("method not allowed", "this address is there, but not for this method; the header Allow lists those it has"),
}
_FAILED = ProblemError(500, "internal error", "the service failed to answer; its log says why")


def problem_response(problem: ProblemError, headers: Mapping[str, str] | None = None) -> Response:
    """The answer that a problem becomes, with the headers that its status asks for."""
    own = dict(headers or {})
    if problem.retry_after is not None:
        own["Retry-After"] = str(max(1, math.ceil(problem.retry_after)))
    if problem.status == 401:
        own["WWW-Authenticate"] = 'Bearer realm="onepass"'
    if problem.status in (408, 413):  # the rest of the body was not read
        own["Connection"] = "close"
    return Response(_encode(problem.body()), problem.status, own, PROBLEM)


def from_http(request: Request, error: Exception) -> Response:
    """The answer to what Starlette itself refuses: an unknown address or a wrong method."""
    assert isinstance(error, HTTPException)
    title, detail = _TITLES.get(error.status_code, (error.detail.lower(), error.detail))
    return problem_response(ProblemError(error.status_code, title, detail), error.headers)


async def send_problem(problem: ProblemError, scope: Scope, receive: Receive, send: Send) -> None:
    """Refuse a request, or a socket before it is accepted."""
    if scope["type"] == "websocket":
        await send({"type": "websocket.close", "code": 1008, "reason": problem.title})
    else:
        await problem_response(problem)(scope, receive, send)


class _RefusalLog:
    """Logs what a model can't do now: once a minute while that lasts, however many requests are refused."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._logged: dict[tuple[str, str], float] = {}

    def note(self, problem: ProblemError, scope: Scope) -> None:
        model = scope.get("path_params", {}).get("name")
        if problem.status not in (503, 507) or model is None or isinstance(problem, StoringProblemError):
            return
        key, now = (model, problem.title), self._clock()
        if now - self._logged.get(key, -math.inf) >= _QUIET:
            self._logged[key] = now
            _log.error("%s: %s", problem.title, problem.detail, extra={"model": model, "status": problem.status})


class Problems:
    """Turns what an application raises into an answer; an unexpected error is logged, and its traceback stays here."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._refusals = _RefusalLog()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        begun = False

        async def noted(message: Message) -> None:
            nonlocal begun
            begun = True
            await send(message)

        try:
            await self._app(scope, receive, noted)
        except Exception as error:
            if isinstance(error, ProblemError):
                self._refusals.note(error, scope)
            else:
                _log.exception("failed to answer", extra={"method": scope.get("method"), "path": scope["path"]})
            if begun:  # it is too late for another answer; the server closes the connection
                raise
            await send_problem(error if isinstance(error, ProblemError) else _FAILED, scope, receive, send)
