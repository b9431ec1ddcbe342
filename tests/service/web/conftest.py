"""The application around a stand-in for the models, and clients of every scope."""

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import httpx
import pytest

from onepass._limits import SCOPES, ConnectionLimits, ScopeName
from onepass.service.errors import ProblemError
from onepass.service.state import ServiceState
from onepass.service.web.app import create_app
from onepass.service.web.audit import AuditLog
from onepass.service.web.connections import Connections
from onepass.service.web.security import Security
from onepass.service.web.tokens import Tokens
from tests.service.web.double import StateDouble

__all__ = ["Clock", "Served", "problem_of"]

MAX_BODY = 100_000


def problem_of(action: Callable[[], object]) -> ProblemError | None:
    """What was refused, if anything was; other errors pass through."""
    try:
        action()
    except ProblemError as problem:
        return problem
    return None


class Clock:
    """A time that passes when it is told to."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


class Served:
    """An application, what is behind it, and clients of it."""

    def __init__(self, folder: Path, **security: Any) -> None:
        self.state, self.clock, self.folder = StateDouble(), Clock(), folder
        self.model = self.state.held["price"]
        tokens: Tokens | None = Tokens(folder / "tokens.json", self.clock)
        assert tokens is not None
        self.secrets = {scope: tokens.create(scope, scope) for scope in SCOPES}
        if security.pop("no_auth", False):
            tokens = None
        self.security = Security(tokens, clock=self.clock, **security)
        self.app = create_app(
            cast(ServiceState, self.state),
            self.security,
            audit=AuditLog(folder),
            max_body=MAX_BODY,
            connections=Connections(ConnectionLimits()),
        )

    def ask(self, method: str, path: str, scope: ScopeName | None = "admin", **given: Any) -> httpx.Response:
        """The answer to a request with the token of a scope."""
        headers = dict(given.pop("headers", {}))
        if scope is not None:
            headers.setdefault("Authorization", f"Bearer {self.secrets[scope]}")

        async def asked() -> httpx.Response:
            transport = httpx.ASGITransport(self.app, raise_app_exceptions=False)
            async with httpx.AsyncClient(transport=transport, base_url="http://localhost:8080") as client:
                return await client.request(method, path, headers=headers, **given)

        return asyncio.run(asked())

    def audited(self) -> list[dict[str, Any]]:
        path = self.folder / "audit.jsonl"
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


@pytest.fixture
def make(tmp_path: Path) -> Callable[..., Served]:
    """Makes an application with other security."""
    return lambda **security: Served(tmp_path, **security)


@pytest.fixture
def served(tmp_path: Path) -> Served:
    return Served(tmp_path)
