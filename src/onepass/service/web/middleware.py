"""What surrounds every request: its host is checked, its answer gets headers, it is counted and may be logged."""

import logging
import time

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from onepass.service.web.prometheus import Metrics
from onepass.service.web.security import Security, client_of

__all__ = ["KnownHosts", "Observed", "WithHeaders"]

_log = logging.getLogger("onepass.service.requests")
_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH"})
_POLICY = b"default-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; object-src 'none'"
_ALL = [
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"content-security-policy", _POLICY),
    (b"cross-origin-resource-policy", b"same-origin"),
]
_API = [*_ALL, (b"cache-control", b"no-store")]
_API_PATHS = ("/v1", "/metrics", "/healthz", "/readyz")


class WithHeaders:
    """Adds headers that keep browsers from doing what nobody asked for; a page may have its own."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        is_api = scope["path"].startswith(_API_PATHS)

        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                own = message["headers"]
                there = () if is_api else {name for name, _ in own}
                message["headers"] = [*own, *(_API if is_api else (one for one in _ALL if one[0] not in there))]
            await send(message)

        await self._app(scope, receive, with_headers)


class KnownHosts:
    """Answers who calls the service by a name that it has."""

    def __init__(self, app: ASGIApp, security: Security) -> None:
        self._app, self._security = app, security

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request."""
        if scope["type"] != "lifespan":
            self._security.check_host(dict(scope["headers"]))
        await self._app(scope, receive, send)


class Observed:
    """Counts requests and their time, and logs them if asked to."""

    def __init__(self, app: ASGIApp, metrics: Metrics, log_requests: bool) -> None:
        self._app, self._metrics, self._log_requests = app, metrics, log_requests

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        begin, status = time.perf_counter(), 500

        async def noted(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            await self._app(scope, receive, noted)
        finally:
            seconds = time.perf_counter() - begin
            method = scope["method"]
            self._metrics.count(
                scope.get("onepass.route", "other"), method if method in _METHODS else "other", status, seconds
            )
            if self._log_requests:
                _log.info(
                    "request",
                    extra={
                        "method": method,
                        "path": scope["path"],
                        "status": status,
                        "milliseconds": round(seconds * 1e3, 2),
                        "who": scope.get("onepass.principal"),
                        "client": client_of(scope),
                    },
                )
