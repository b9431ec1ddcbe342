"""Refusals and failures as answers: ``application/problem+json`` as of RFC 9457, whatever went wrong and wherever."""

import logging
import math
import time
from collections.abc import Callable, Mapping

import msgspec
from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.types import Receive, Scope

from onepass.service.errors import ProblemError, StoringProblemError
from onepass.service.web.outgoing import Outgoing

__all__ = ["PROBLEM", "Refusals", "as_problem", "problem_response"]

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


def as_problem(error: Exception) -> tuple[ProblemError, Mapping[str, str] | None]:
    """What the client learns of something that was raised, and the headers that belong to it."""
    if isinstance(error, ProblemError):
        return error, None
    if isinstance(error, HTTPException):  # an unknown address or a wrong method
        title, detail = _TITLES.get(error.status_code, (error.detail.lower(), error.detail))
        return ProblemError(error.status_code, title, detail), error.headers
    return _FAILED, None


class Refusals:
    """Turns what an application raises into an answer, and logs what somebody should look into.

    Of an unexpected error that is its traceback. What a model can't do now is logged once a minute while that lasts,
    however many requests are refused.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._logged: dict[tuple[str, str], float] = {}

    async def answer(self, error: Exception, scope: Scope, receive: Receive, send: Outgoing) -> None:
        """Refuse a request, or a socket before it is accepted."""
        problem, headers = as_problem(error)
        if problem is _FAILED:
            _log.error("failed to answer", exc_info=error, extra={"method": scope.get("method"), "path": scope["path"]})
        self._note(problem, scope)
        if send.has_begun:  # it is too late for another answer; the server closes the connection
            raise error
        if scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008, "reason": problem.title})
        else:
            await problem_response(problem, headers)(scope, receive, send)

    def _note(self, problem: ProblemError, scope: Scope) -> None:
        model = scope.get("path_params", {}).get("name")
        if problem.status not in (503, 507) or model is None or isinstance(problem, StoringProblemError):
            return
        key, now = (model, problem.title), self._clock()
        if now - self._logged.get(key, -math.inf) >= _QUIET:
            self._logged[key] = now
            _log.error("%s: %s", problem.title, problem.detail, extra={"model": model, "status": problem.status})
