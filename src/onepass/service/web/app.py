"""The application: the routes of all operations, the pages, and what surrounds every request."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.routing import BaseRoute, Mount, Route, Router
from starlette.types import ASGIApp, Receive, Scope, Send

from onepass.service.errors import ProblemError
from onepass.service.web.audit import AuditLog
from onepass.service.web.connections import Connections
from onepass.service.web.docs import routes as docs_routes
from onepass.service.web.endpoint import Endpoint
from onepass.service.web.middleware import KnownHosts, Observed, WithHeaders
from onepass.service.web.operations import Operation
from onepass.service.web.problems import Problems, from_http, send_problem
from onepass.service.web.prometheus import Metrics
from onepass.service.web.security import Security
from onepass.service.web.services import Services
from onepass.service.web.table import OPERATIONS

if TYPE_CHECKING:
    from onepass.service.state import ServiceState

__all__ = ["create_app", "running"]

_PAGES = ("onepass.service.page", "onepass.service.playground")


def create_app(
    state: "ServiceState",
    security: Security,
    *,
    audit: AuditLog,
    max_body: int,
    log_requests: bool = False,
    connections: Connections | None = None,
) -> Starlette:
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
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        async with running(state):
            yield

    pages = Router([*docs_routes(), *_page_routes()], redirect_slashes=False)
    return Starlette(
        routes=[*_operation_routes(services), Mount("", _Pages(pages, services))],
        middleware=[
            Middleware(Observed, services.metrics, log_requests),
            Middleware(WithHeaders),
            Middleware(Problems),
            Middleware(KnownHosts, security),
        ],
        exception_handlers={HTTPException: from_http},
        lifespan=lifespan,
    )


@asynccontextmanager
async def running(state: "ServiceState") -> AsyncIterator[None]:
    """Start the models, and stop them at the end: what is queued is finished, snapshots are saved."""
    await state.start()
    try:
        yield
    finally:
        await state.stop()


def _operation_routes(services: Services) -> list[Route]:
    by_path: dict[str, list[Operation]] = {}
    for one in OPERATIONS:
        by_path.setdefault(one.path, []).append(one)
    return [Route(path, Endpoint(operations, services)) for path, operations in by_path.items()]


def _page_routes() -> Sequence[BaseRoute]:
    """The routes of the pages that are installed."""
    return [route for name in _PAGES if find_spec(name) for route in import_module(name).routes()]


class _Pages:
    """Files of pages are open to all, because the page is where one logs in; a socket needs somebody who may read."""

    def __init__(self, app: ASGIApp, services: Services) -> None:
        self._app, self._services = app, services

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request."""
        if scope["type"] == "websocket":
            try:
                self._services.security.identify(scope, dict(scope["headers"])).require("read")
            except ProblemError as problem:
                await send_problem(problem, scope, receive, send)
                return
        await self._app(scope, receive, send)
