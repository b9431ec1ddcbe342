"""The application: the routes of all operations, the pages, and what surrounds every request."""

import logging
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from starlette.routing import BaseRoute, Router
from starlette.types import ASGIApp, Receive, Scope, Send

from onepass.service.web.audit import AuditLog
from onepass.service.web.connections import Connections
from onepass.service.web.docs import routes as docs_routes
from onepass.service.web.endpoint import Routes
from onepass.service.web.outgoing import Outgoing
from onepass.service.web.problems import Refusals
from onepass.service.web.prometheus import Metrics
from onepass.service.web.security import Security, client_of
from onepass.service.web.services import Services
from onepass.service.web.table import OPERATIONS

if TYPE_CHECKING:
    from onepass.service.state import ServiceState

__all__ = ["Application", "create_app", "page_routes", "running"]

_PAGES = ("onepass.service.page", "onepass.service.playground")
_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH"})
_log = logging.getLogger("onepass.service.requests")


class Application:
    """The service as an ASGI application.

    What surrounds every request is done here, in one frame: its host is checked, it finds its operation or page, what
    that raises becomes an answer, the answer gets headers, and the request is counted and may be logged.

    Parameters
    ----------
    services : what the handlers of requests share
    pages : what is asked for all addresses without operation, for sockets, and at the start and the end. Files of pages
        are open to all, because the page is where one logs in; a socket needs somebody who may read
    log_requests : whether every request is logged
    """

    def __init__(self, services: Services, pages: ASGIApp, *, log_requests: bool = False) -> None:
        self.services = services
        self.routes: Routes = Routes(OPERATIONS, services)
        self._security, self._metrics = services.security, services.metrics
        self._pages, self._log_requests = pages, log_requests
        self._refusals = Refusals()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request, a socket, or the start and the end of the application."""
        kind = scope["type"]
        if kind == "lifespan":
            await self._pages(scope, receive, send)
            return
        begin, outgoing = time.perf_counter(), Outgoing(scope, send)
        try:
            headers = dict(scope["headers"])
            self._security.check_host(headers)
            method = self.routes.find(scope) if kind == "http" else None
            if method is not None:
                await method.serve(scope, headers, receive, outgoing)
            else:
                if kind == "websocket":
                    self._security.identify(scope, headers).require("read")
                scope["app"] = self  # by which a router knows that what it raises is answered
                await self._pages(scope, receive, outgoing)
        except Exception as error:
            await self._refusals.answer(error, scope, receive, outgoing)
        finally:
            if kind == "http":
                self._note(scope, outgoing.status, time.perf_counter() - begin)

    def _note(self, scope: Scope, status: int, seconds: float) -> None:
        method = scope["method"]
        known = method if method in _METHODS else "other"
        self._metrics.count(scope.get("onepass.route", "other"), known, status, seconds)
        if self._log_requests:
            about: dict[str, Any] = {"method": method, "path": scope["path"], "status": status}
            about["milliseconds"] = round(seconds * 1e3, 2)
            _log.info("request", extra={**about, "who": scope.get("onepass.principal"), "client": client_of(scope)})


def create_app(
    state: "ServiceState",
    security: Security,
    *,
    audit: AuditLog,
    max_body: int,
    log_requests: bool = False,
    connections: Connections | None = None,
) -> Application:
    """The service as an ASGI application.

    Parameters
    ----------
    state : the models; started and stopped with the application
    security : who may do what
    audit : where changes are noted
    max_body : bytes of a request's body
    log_requests : whether every request is logged
    connections : of the server, to be among the metrics; None if another server counts its own
    """
    services = Services(state, security, audit, Metrics(state, connections), max_body)

    @asynccontextmanager
    async def lifespan(app: object) -> AsyncIterator[None]:
        async with running(state):
            yield

    pages = Router([*docs_routes(), *page_routes()], redirect_slashes=False, lifespan=lifespan)
    return Application(services, pages, log_requests=log_requests)


@asynccontextmanager
async def running(state: "ServiceState") -> AsyncIterator[None]:
    """Start the models, and stop them at the end: what is queued is finished, snapshots are saved."""
    await state.start()
    try:
        yield
    finally:
        await state.stop()


def page_routes() -> Sequence[BaseRoute]:
    """The routes of the pages that are installed."""
    return [route for name in _PAGES if find_spec(name) for route in import_module(name).routes()]
