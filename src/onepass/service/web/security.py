"""Who asks, and what they may: tokens for programs, sessions for browsers, and nothing for pages of other sites.

A browser sends a cookie whichever page made it ask, so a request with a cookie (or without tokens at all) that changes
something must come from our own page. A name that points to this machine must not make a browser take another site's
page for the service's own: on a loopback address only known hosts are answered (DNS rebinding).
"""

import time
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from typing import NamedTuple
from urllib.parse import urlsplit

from starlette.requests import cookie_parser
from starlette.types import Scope

from onepass._limits import ScopeName
from onepass.service.errors import ProblemError
from onepass.service.web.buckets import Bucket
from onepass.service.web.sessions import Sessions
from onepass.service.web.tokens import Token, Tokens, includes

__all__ = ["LOOPBACK_HOSTS", "Headers", "Principal", "Security", "client_of", "is_same_origin", "principal_of"]

Headers = Mapping[bytes, bytes]
LOOPBACK_HOSTS = frozenset({"localhost", "127.0.0.1", "::1"})
_SAFE = frozenset({"GET", "HEAD"})
_UNKNOWN = (
    "send a valid token as 'Authorization: Bearer onepass_...', or open the link to the page from the service's start"
)


class Principal(NamedTuple):
    """Who asks."""

    name: str
    scope: ScopeName
    models: frozenset[str] | None = None
    """That they may use and know of; None: all."""

    def sees(self, model: str) -> bool:
        """Whether they may know whether there is a model of this name.

        Examples
        --------
        >>> Principal("shop", "learn", frozenset({"price"})).sees("salaries")
        False
        """
        return self.models is None or model in self.models

    def require_model(self, model: str) -> None:
        """Refuse a model that a token is not for, in the same words whether it exists or not."""
        if not self.sees(model):
            words = f"the token {self.name!r} is not for the model {model!r}, only for {self._listed()}"
            raise ProblemError(403, "another model", words)

    def require_all_models(self) -> None:
        """Refuse what concerns the whole service to a token that is for some models."""
        if self.models is not None:
            words = f"this needs a token for all models; {self.name!r} is only for {self._listed()}"
            raise ProblemError(403, "all models needed", words)

    def _listed(self) -> str:
        return ", ".join(sorted(self.models or ()))

    def require(self, needed: ScopeName) -> None:
        """Refuse what needs a larger scope.

        Examples
        --------
        >>> Principal("shop", "learn").require("read")
        """
        if not includes(self.scope, needed):
            words = f"this needs a token with the scope {needed!r}; {self.name!r} has {self.scope!r}"
            raise ProblemError(403, "scope too narrow", words, more={"scope": needed})


def principal_of(token: Token | None) -> Principal:
    """Who has a token; None: the page, which was opened by the link that the service gave at its start."""
    return Principal("page", "admin") if token is None else Principal(token.name, token.scope, token.models)


class Security:
    """Decides who asks, and refuses who may not.

    Parameters
    ----------
    tokens : that are valid; None: everybody may do everything
    hosts : names by which the service may be called, without port; None: any
    rate_limit : requests per second and token; None: no limit
    cookie : name of the session's cookie; browsers don't keep cookies of different ports apart
    clock : seconds, for the rate limit and the sessions
    """

    def __init__(
        self,
        tokens: Tokens | None,
        *,
        hosts: Iterable[str] | None = LOOPBACK_HOSTS,
        rate_limit: float | None = None,
        cookie: str = "onepass_session",
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.tokens = tokens
        self.cookie = cookie
        self.sessions: Sessions = Sessions(clock)
        self._hosts = None if hosts is None else frozenset(host.lower().strip("[]") for host in hosts)
        self._is_known = lru_cache(256)(lambda host: _host_name(host.decode("latin-1")) in (self._hosts or ()))
        self._rate_limit, self._clock = rate_limit, clock
        self._buckets: dict[str, Bucket] = {}

    def check_host(self, headers: Headers) -> None:
        """Refuse a request that calls the service by an unknown name."""
        if self._hosts is not None and not self._is_known(headers.get(b"host", b"")):
            host = headers.get(b"host", b"").decode("latin-1")
            words = f"the host name {host!r} is not accepted; to allow it, start the service with --allow-host {host}"
            raise ProblemError(421, "unknown host", words)

    def identify(self, scope: Scope, headers: Headers) -> Principal:
        """Who asks; refused if that is nobody we know, a foreign page, or somebody who asks too often.

        The name is noted in the scope for the logs, also of somebody who asks too often or whose token has expired.
        """
        principal = self._identify(scope, headers)
        if self._rate_limit is not None:
            self._count(principal, self._rate_limit)
        return principal

    def session_key(self, headers: Headers) -> str | None:
        """The key of the session that a browser's cookie names."""
        cookie = headers.get(b"cookie")
        return None if cookie is None else cookie_parser(cookie.decode("latin-1")).get(self.cookie)

    def _identify(self, scope: Scope, headers: Headers) -> Principal:
        if self.tokens is None:
            _check_page(scope, headers)
            scope["onepass.principal"] = "anyone"
            return Principal("anyone", "admin")
        given = headers.get(b"authorization")
        if given is not None:
            kind, _, secret = given.partition(b" ")
            token = self.tokens.find(secret.strip()) if kind.lower() == b"bearer" else None
            if token is not None:
                return self._used(token, scope)
        elif (key := self.session_key(headers)) is not None and (session := self.sessions.find(key)) is not None:
            if session.token is None or self.tokens.is_there(session.token):
                return self._used(session.token, scope, page=headers)
            self.sessions.end(key)
        raise ProblemError(401, "not authenticated", _UNKNOWN)

    def _used(self, token: Token | None, scope: Scope, page: Headers | None = None) -> Principal:
        """Who has a token, or the session of a page that it began; the name is noted for other pages, too."""
        principal = principal_of(token)
        scope["onepass.principal"] = principal.name
        if page is not None:
            _check_page(scope, page, marked=True)
        if token is not None and self.tokens is not None:
            self.tokens.use(token)
        return principal

    def _count(self, principal: Principal, rate: float) -> None:
        bucket = self._buckets.get(principal.name)
        if bucket is None:
            bucket = self._buckets[principal.name] = Bucket(rate, rate, self._clock)
        seconds = bucket.take()
        if seconds:
            words = f"{principal.name!r} may send at most {rate:g} requests per second"
            raise ProblemError(429, "too many requests", words, retry_after=seconds)


def client_of(scope: Scope) -> str | None:
    """The address that a request came from."""
    client = scope.get("client")
    return client[0] if client else None


def _host_name(host: str) -> str | None:
    """The name of a Host header, without port and brackets; None if it is none."""
    try:
        return urlsplit(f"//{host}").hostname
    except ValueError:
        return None


def _check_page(scope: Scope, headers: Headers, *, marked: bool = False) -> None:
    """Refuse what a page of another site may have asked for.

    Parameters
    ----------
    marked : whether our page marks its requests, by a header that a form of another site can't set
    """
    is_socket = scope["type"] == "websocket"
    if not is_socket and scope["method"] in _SAFE:
        return
    if not is_same_origin(headers):
        raise ProblemError(403, "foreign page", "in a browser only the service's own page may do this")
    if marked and not is_socket and headers.get(b"x-onepass-session") != b"1":
        words = "a request of a browser session that changes something needs the header 'X-Onepass-Session: 1'"
        raise ProblemError(403, "header missing", words)


def is_same_origin(headers: Headers) -> bool:
    """Whether our own page asks, or no browser at all, as far as a browser says."""
    site, origin = headers.get(b"sec-fetch-site"), headers.get(b"origin")
    if site is not None and site != b"same-origin":
        return False
    if origin is None:
        return True
    _, _, authority = origin.partition(b"://")
    return authority.lower() == headers.get(b"host", b"").lower()
