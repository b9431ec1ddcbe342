"""Operations on access: tokens, and the sessions of browsers."""

from typing import Any

import msgspec

from onepass.service.errors import ProblemError
from onepass.service.web.operations import Answer, Call
from onepass.service.web.security import is_same_origin
from onepass.service.web.sessions import SESSION_SECONDS
from onepass.service.web.tokens import ScopeName, TokenName, Tokens

__all__ = [
    "SessionRequest",
    "TokenList",
    "TokenMade",
    "TokenRequest",
    "Who",
    "begin_session",
    "create_token",
    "end_session",
    "list_tokens",
    "revoke_token",
    "who_asks",
]


class TokenRequest(msgspec.Struct, forbid_unknown_fields=True):
    """A token to make."""

    name: TokenName
    scope: ScopeName


class TokenMade(msgspec.Struct):
    """A new token; the secret is told this once."""

    name: str
    scope: ScopeName
    token: str


class TokenListed(msgspec.Struct):
    """What is known of a token, which is all but its secret."""

    name: str
    scope: ScopeName
    created: str


class TokenList(msgspec.Struct):
    """All tokens, by name."""

    tokens: list[TokenListed]


class SessionRequest(msgspec.Struct, forbid_unknown_fields=True):
    """What lets a browser in: the code of the link that the service printed, or a token."""

    code: str | None = None
    token: str | None = None


class Who(msgspec.Struct):
    """Who asks."""

    name: str
    scope: ScopeName


def _tokens(call: Call) -> Tokens:
    tokens = call.services.security.tokens
    if tokens is None:
        raise ProblemError(409, "no tokens", "this service was started with --no-auth, so it has no tokens")
    return tokens


async def list_tokens(call: Call) -> TokenList:
    """Names and scopes."""
    return TokenList([TokenListed(one.name, one.scope, one.created) for one in _tokens(call).all()])


async def create_token(call: Call) -> TokenMade:
    """A new token."""
    request: TokenRequest = call.body
    call.scope["onepass.about"] = {"token": request.name, "scope": request.scope}
    return TokenMade(request.name, request.scope, _tokens(call).create(request.name, request.scope))


async def revoke_token(call: Call) -> None:
    """A token that is valid no more, nor the sessions that began by it."""
    tokens = _tokens(call)
    scopes = [("scope", one.scope) for one in tokens.all() if one.name == call.name]
    call.scope["onepass.about"] = dict([("token", call.name), *scopes])
    tokens.revoke(call.name)


async def who_asks(call: Call) -> Who:
    """The name and the scope of a token or a session."""
    return Who(*call.principal)


async def begin_session(call: Call) -> Any:
    """A session of a browser, by a code or by a token."""
    request: SessionRequest = call.body
    audit, sessions, tokens = call.services.audit, call.services.security.sessions, call.services.security.tokens
    if not is_same_origin(call.headers):
        raise ProblemError(403, "foreign page", "only the service's own page may begin a session")
    if (request.code is None) == (request.token is None):
        raise ProblemError(422, "bad request", "give either a code or a token", field="code")
    token = tokens.find(request.token.encode()) if tokens is not None and request.token is not None else None
    key = sessions.begin_by_token(token) if token is not None else sessions.begin_by_code(request.code or "")
    if key is None:
        client = call.scope.get("client")
        audit.refused("begin session", 401, client[0] if client else None)
        words = "this code or token is not valid; a code works once, and for ten minutes only: sign in with a token"
        raise ProblemError(401, "not authenticated", words)
    who = Who("page", "admin") if token is None else Who(token.name, token.scope)
    audit.changed(who.name, "begin session", 201)
    return Answer(who, 201, (_cookie(call, key, int(SESSION_SECONDS)),))


async def end_session(call: Call) -> Any:
    """No session any more."""
    security = call.services.security
    key = security.session_key(call.headers)
    if key is not None:
        security.sessions.end(key)
    return Answer(None, 204, (_cookie(call, "", 0),))


def _cookie(call: Call, value: str, seconds: int) -> tuple[bytes, bytes]:
    secure = "; Secure" if call.scope.get("scheme") == "https" else ""
    name = call.services.security.cookie
    return b"set-cookie", f"{name}={value}; Max-Age={seconds}; Path=/; HttpOnly; SameSite=Strict{secure}".encode()
