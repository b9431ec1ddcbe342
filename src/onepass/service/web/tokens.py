"""Tokens: who may ask the service for what. The folder has only their hashes, so reading it lets nobody in.

A token is 32 random bytes, so a plain SHA-256 of it can't be reversed by guessing, unlike that of a password. For the
same reason it can be looked up by its hash: how long that takes tells nothing about a secret that hashes differently.
"""

import hashlib
import logging
import re
import secrets
import time
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from itertools import chain, count
from pathlib import Path
from typing import Annotated, Literal

import msgspec

from onepass._limits import SCOPES, ScopeName
from onepass.files.atomic import write_atomically
from onepass.service.errors import ProblemError
from onepass.service.utc import utc_text
from onepass.service.wire import ModelName

__all__ = ["LAST_USED", "MAX_MODELS", "Moment", "Token", "TokenName", "Tokens", "includes"]

_log = logging.getLogger("onepass.service")

_NAME = "^[A-Za-z0-9][A-Za-z0-9_.@-]{0,63}$(?!\\n)"
_NAMED = "up to 64 letters, digits, '_', '.', '@' and '-', the first a letter or digit"
TokenName = Annotated[str, msgspec.Meta(pattern=_NAME, description=_NAMED)]
Moment = Annotated[
    datetime, msgspec.Meta(tz=True, description='a date and time with its zone, such as "2030-01-31T00:00:00Z"')
]
_PREFIX = "onepass_"
_MOST = 1000
MAX_MODELS = 1000
"""Models that one token can be for: all of them are in one line of the audit log."""
LAST_USED = "last-used.json"
"""Name of the file that says when each token was last used, in the folder of the tokens."""
_encoder = msgspec.json.Encoder(order="deterministic")


def includes(held: ScopeName, needed: ScopeName) -> bool:
    """Whether one scope allows what another does.

    Examples
    --------
    >>> includes("admin", "learn"), includes("read", "learn")
    (True, False)
    """
    return SCOPES.index(held) >= SCOPES.index(needed)


class Token(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """What is kept of a token."""

    name: TokenName
    scope: ScopeName
    sha256: Annotated[str, msgspec.Meta(pattern="^[0-9a-f]{64}$")]
    created: Moment
    models: Annotated[frozenset[ModelName], msgspec.Meta(min_length=1)] | None = None
    """That it is for; None: all, also those to come."""
    expires: Moment | None = None
    """When it stops being valid; None: never."""

    def is_valid(self, now: float) -> bool:
        """Whether it has not expired."""
        return self.expires is None or now < self.expires.timestamp()

    def manages_all(self, now: float) -> bool:
        """Whether it may do everything, which includes making other tokens."""
        return self.scope == "admin" and self.models is None and self.is_valid(now)


class _File(msgspec.Struct, forbid_unknown_fields=True):
    version: Literal[1]
    tokens: list[Token]


class Tokens:
    """The tokens of a service, in a file that is written whole or not at all.

    When each was last used is noted in memory, and written to a file of its own from time to time by `save_used`: a
    request must not wait for the disk.

    Parameters
    ----------
    path : of the file; without one there are no tokens yet
    clock : seconds since 1970

    Examples
    --------
    >>> import tempfile
    >>> tokens = Tokens(Path(tempfile.mkdtemp()) / "tokens.json")
    >>> secret = tokens.create("shop", "learn", models={"price"})
    >>> tokens.find(secret.encode()).scope, tokens.find(b"onepass_guess")
    ('learn', None)
    """

    def __init__(self, path: Path, clock: Callable[[], float] = time.time) -> None:
        self._path, self._clock = path, clock
        self._tokens: dict[str, Token] = {}
        self._by_hash: dict[str, Token] = {}
        try:
            content = msgspec.json.decode(path.read_bytes(), type=_File)
        except FileNotFoundError:
            content = _File(1, [])
        except ValueError as error:
            words = f"{path} is damaged ({error}); restore it, or delete it, which makes all tokens invalid"
            raise ValueError(words) from None
        self._set({token.name: token for token in content.tokens})
        self._used = self._read_used()
        self._saved = dict(self._used)

    @property
    def has_admin(self) -> bool:
        """Whether there is a token that may do everything."""
        return self._any_admin(self._tokens)

    def free_name(self, name: str) -> str:
        """A name that no token has: this one, or this one with a number."""
        numbered = (f"{name}-{number}" for number in count(2))
        return next(one for one in chain([name], numbered) if one not in self._tokens)

    def all(self) -> list[Token]:
        """The tokens, by name, also those that have expired."""
        return sorted(self._tokens.values(), key=lambda token: token.name)

    def get(self, name: str) -> Token | None:
        """The token of a name."""
        return self._tokens.get(name)

    def last_used(self, token: Token) -> datetime | None:
        """When a token was last used; None if it never was."""
        used = self._used.get(token.name)
        return None if used is None else datetime.fromtimestamp(int(used), UTC)

    def is_there(self, token: Token) -> bool:
        """Whether a token has not been revoked."""
        return self._tokens.get(token.name) == token

    def create(
        self, name: str, scope: ScopeName, *, models: Iterable[str] | None = None, expires: datetime | None = None
    ) -> str:
        """Make a token; returns the secret, which nobody can ask for again.

        Parameters
        ----------
        name : that no other token has
        scope : what it may do
        models : names of the models that it is for, which need not exist yet; None: all
        expires : when it stops being valid, with a time zone; None: never
        """
        if re.search(_NAME, name) is None:
            words = f"the name of a token must be {_NAMED}, got {name!r}"
            raise ProblemError(422, "bad value", words, field="name")
        if name in self._tokens:
            raise ProblemError(409, "name taken", f"there is a token {name!r} already; revoke it first", field="name")
        if len(self._tokens) >= _MOST:
            raise ProblemError(409, "too many tokens", f"there are {_MOST:,} tokens; revoke some first")
        now = self._clock()
        if expires is not None and expires.timestamp() <= now:
            words = f"expires must be in the future, got {utc_text(expires)}"
            raise ProblemError(422, "bad value", words, field="expires")
        for_models = None if models is None else frozenset(models)
        if for_models is not None and len(for_models) > MAX_MODELS:
            words = f"a token can be for at most {MAX_MODELS:,} models, got {len(for_models):,}; leave them out for all"
            raise ProblemError(422, "bad value", words, field="models")
        secret = _PREFIX + secrets.token_urlsafe(32)
        created = datetime.fromtimestamp(int(now), UTC)
        self._write(self._tokens | {name: Token(name, scope, _hashed(secret.encode()), created, for_models, expires)})
        return secret

    def revoke(self, name: str) -> Token:
        """Forget a token, but for the last one that may make others; returns what was kept of it."""
        if name not in self._tokens:
            raise ProblemError(404, "no such token", f"there is no token {name!r}")
        left = {key: token for key, token in self._tokens.items() if key != name}
        if self.has_admin and not self._any_admin(left):
            words = f"{name!r} is the last token with the scope admin for all models; make another one first"
            raise ProblemError(409, "last admin token", words)
        revoked = self._tokens[name]
        self._write(left)
        self._used.pop(name, None)
        return revoked

    def find(self, secret: bytes) -> Token | None:
        """The token with a secret, also one that has expired: `use` refuses that."""
        return self._by_hash.get(_hashed(secret))

    def use(self, token: Token) -> None:
        """Note that a token is used now; refused if it has expired."""
        now = self._clock()
        if not token.is_valid(now):
            assert token.expires is not None
            words = f"the token {token.name!r} expired at {utc_text(token.expires)}; ask an administrator for a new one"
            raise ProblemError(401, "token expired", words)
        self._used[token.name] = now

    def save_used(self) -> None:
        """Write down when each token was last used, if that has changed; a disk that can't be written is logged."""
        used = dict(self._used)
        if used == self._saved:
            return
        try:
            write_atomically(self._path.with_name(LAST_USED), msgspec.json.format(_encoder.encode(used)), mode=0o600)
        except OSError as error:
            _log.warning("when tokens were last used can't be written: %s", error.strerror)
        else:
            self._saved = used

    def _read_used(self) -> dict[str, float]:
        """When the tokens were last used; what can't be read was never noted, and keeps nobody out."""
        try:
            found = msgspec.json.decode(self._path.with_name(LAST_USED).read_bytes(), type=dict[str, float])
        except (OSError, ValueError):
            return {}
        # An earlier token may have had the same name.
        begins = {name: token.created.timestamp() for name, token in self._tokens.items()}
        return {name: used for name, used in found.items() if name in begins and used >= begins[name]}

    def _any_admin(self, tokens: Mapping[str, Token]) -> bool:
        now = self._clock()
        return any(token.manages_all(now) for token in tokens.values())

    def _write(self, tokens: dict[str, Token]) -> None:
        content = msgspec.json.format(_encoder.encode(_File(1, list(tokens.values()))))
        try:
            write_atomically(self._path, content, mode=0o600)
        except OSError as error:
            raise ProblemError(507, "can't write", f"tokens can't be written: {error.strerror}") from None
        self._set(tokens)  # what is in force is what is on the disk

    def _set(self, tokens: dict[str, Token]) -> None:
        self._tokens = tokens
        self._by_hash = {token.sha256: token for token in tokens.values()}


def _hashed(secret: bytes) -> str:
    return hashlib.sha256(secret).hexdigest()
