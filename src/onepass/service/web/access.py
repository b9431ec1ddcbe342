"""Operations on access: tokens, and the sessions of browsers."""

from collections.abc import Iterable
from datetime import datetime
from typing import Annotated, Any

import msgspec

from onepass._limits import ScopeName
from onepass.service.errors import ProblemError
from onepass.service.web.audit import About
from onepass.service.web.operations import Answer, Call
from onepass.service.web.security import Principal, Security, client_of, is_same_origin, principal_of
from onepass.service.web.sessions import SESSION_SECONDS
from onepass.service.web.tokens import MAX_MODELS, Moment, Token, TokenName, Tokens
from onepass.service.wire import ModelName

__all__ = [
    "SessionRequest",
    "TokenList",
    "TokenMade",
    "TokenRequest",
    "Who",
    "about_token",
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
    models: Annotated[list[ModelName], msgspec.Meta(min_length=1, max_length=MAX_MODELS)] | None = None
    """The models that it is for, which need not exist yet; all if not given."""
    expires: Moment | None = None
    """When it stops being valid; never if not given."""


class TokenMade(msgspec.Struct):
    """A new token; this is the only answer that has the secret."""

    name: str
    scope: ScopeName
    models: list[str] | None
    expires: datetime | None
    token: str


class TokenListed(msgspec.Struct):
    """All that is known of a token; its secret is not."""

    name: str
    scope: ScopeName
    models: list[str] | None
    """The models that it is for; null: all."""
    created: datetime
    expires: datetime | None
    """When it stops being valid, or did so; null: never."""
    last_used: datetime | None
    """When a request last came with it, or with a session that it began; null: never."""


class TokenList(msgspec.Struct):
    """All tokens, by name."""

    tokens: list[TokenListed]


class SessionRequest(msgspec.Struct, forbid_unknown_fields=True):
    """What lets a browser in: the code in the link that the service gave at its start, or a token."""

    code: str | None = None
    token: str | None = None


class Who(msgspec.Struct, omit_defaults=True):
    """Who asks."""

    name: str
    scope: ScopeName
    models: list[str] | None = None
    """The models that the token is for; all if not given."""

    @classmethod
    def of(cls, principal: Principal) -> "Who":
        """What a client may know about itself."""
        return cls(principal.name, principal.scope, _sorted(principal.models))


def _sorted(models: Iterable[str] | None) -> list[str] | None:
    return None if models is None else sorted(models)


def about_token(name: str, scope: ScopeName, models: Iterable[str] | None, expires: datetime | None) -> About:
    """What the audit log notes of a token."""
    about: About = {"token": name, "scope": scope}
    if models is not None:
        about["models"] = sorted(models)
    if expires is not None:
        about["expires"] = expires
    return about


def _tokens(call: Call) -> Tokens:
    tokens = call.services.security.tokens
    if tokens is None:
        raise ProblemError(409, "no tokens", "this service was started with --no-auth, so it has no tokens")
    return tokens


async def list_tokens(call: Call) -> TokenList:
    """All but the secrets."""
    tokens = _tokens(call)
    return TokenList(
        [
            TokenListed(one.name, one.scope, _sorted(one.models), one.created, one.expires, tokens.last_used(one))
            for one in tokens.all()
        ]
    )


async def create_token(call: Call) -> TokenMade:
    """A new token."""
    request: TokenRequest = call.body
    call.note(**about_token(request.name, request.scope, request.models, request.expires))
    models = _sorted(request.models)
    secret = _tokens(call).create(request.name, request.scope, models=models, expires=request.expires)
    return TokenMade(request.name, request.scope, models, request.expires, secret)


async def revoke_token(call: Call) -> None:
    """Make a token invalid, and end the sessions that were started with it."""
    tokens = _tokens(call)
    token = tokens.get(call.name)
    if token is not None:
        call.note(**about_token(token.name, token.scope, token.models, token.expires))
    tokens.revoke(call.name)


async def who_asks(call: Call) -> Who:
    """What a token or a session may do."""
    return Who.of(call.principal)


async def begin_session(call: Call) -> Any:
    """A session of a browser, by a code or by a token."""
    request: SessionRequest = call.body
    audit = call.services.audit
    if not is_same_origin(call.headers):
        raise ProblemError(403, "foreign page", "only the service's own page may begin a session")
    if (request.code is None) == (request.token is None):
        raise ProblemError(422, "bad request", "give either a code or a token", field="code")
    try:
        key, token = _begun(request, call.services.security)
    except ProblemError as problem:
        audit.refused("begin session", problem.status, client_of(call.scope))
        raise
    who = Who.of(principal_of(token))
    audit.changed(who.name, "begin session", 201, client_of(call.scope))
    return Answer(who, 201, (_cookie(call, key, int(SESSION_SECONDS)),))


def _begun(request: SessionRequest, security: Security) -> tuple[str, Token | None]:
    """The key of a new session, and the token that began it."""
    sessions, tokens = security.sessions, security.tokens
    token = tokens.find(request.token.encode()) if tokens is not None and request.token is not None else None
    if tokens is not None and token is not None:
        tokens.use(token)
        return sessions.begin_by_token(token), token
    key = sessions.begin_by_code(request.code or "")
    if key is None:
        words = "this code or token is not valid; a code works once, and for ten minutes only: sign in with a token"
        raise ProblemError(401, "not authenticated", words)
    return key, None


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
