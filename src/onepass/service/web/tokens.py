"""Tokens: who may ask the service for what. The folder has only their hashes, so reading it lets nobody in.

A token is 32 random bytes, so a plain SHA-256 of it can't be reversed by guessing, unlike that of a password.
"""

import hashlib
import hmac
import os
import re
import secrets
from datetime import UTC, datetime
from itertools import chain, count
from pathlib import Path
from typing import Annotated, Literal

import msgspec

from onepass.files.atomic import atomic_file
from onepass.service.errors import ProblemError

__all__ = ["SCOPES", "ScopeName", "Token", "TokenName", "Tokens", "includes"]

ScopeName = Literal["read", "learn", "admin"]
SCOPES: tuple[ScopeName, ...] = ("read", "learn", "admin")
"""What a token may do; each may do what those before it may."""

_NAME = "^[A-Za-z0-9][A-Za-z0-9_.@-]{0,63}$(?!\\n)"
_NAMED = "up to 64 letters, digits, '_', '.', '@' and '-', the first a letter or digit"
TokenName = Annotated[str, msgspec.Meta(pattern=_NAME, description=_NAMED)]
_PREFIX = "onepass_"
_MOST = 1000


def includes(held: ScopeName, needed: ScopeName) -> bool:
    """Whether one scope allows what another does.

    Examples
    --------
    >>> includes("admin", "learn"), includes("read", "learn")
    (True, False)
    """
    return SCOPES.index(held) >= SCOPES.index(needed)


class Token(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What is kept of a token."""

    name: TokenName
    scope: ScopeName
    sha256: Annotated[str, msgspec.Meta(pattern="^[0-9a-f]{64}$")]
    created: str


class _File(msgspec.Struct, forbid_unknown_fields=True):
    version: Literal[1]
    tokens: list[Token]


class Tokens:
    """The tokens of a service, in a file that is written whole or not at all.

    Parameters
    ----------
    path : of the file; without one there are no tokens yet

    Examples
    --------
    >>> import tempfile
    >>> tokens = Tokens(Path(tempfile.mkdtemp()) / "tokens.json")
    >>> secret = tokens.create("shop", "learn")
    >>> tokens.find(secret.encode()).scope, tokens.find(b"onepass_guess")
    ('learn', None)
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._tokens: dict[str, Token] = {}
        try:
            content = msgspec.json.decode(path.read_bytes(), type=_File)
        except FileNotFoundError:
            return
        except ValueError as error:
            words = f"{path} is damaged ({error}); restore it, or delete it, which makes all tokens invalid"
            raise ValueError(words) from None
        self._tokens = {token.name: token for token in content.tokens}

    @property
    def has_admin(self) -> bool:
        """Whether there is a token that may do everything."""
        return _any_admin(self._tokens)

    def free_name(self, name: str) -> str:
        """A name that no token has: this one, or this one with a number."""
        numbered = (f"{name}-{number}" for number in count(2))
        return next(one for one in chain([name], numbered) if one not in self._tokens)

    def all(self) -> list[Token]:
        """The tokens, by name."""
        return sorted(self._tokens.values(), key=lambda token: token.name)

    def is_there(self, token: Token) -> bool:
        """Whether a token has not been revoked."""
        return self._tokens.get(token.name) == token

    def create(self, name: str, scope: ScopeName) -> str:
        """Make a token; returns the secret, which nobody can ask for again."""
        if re.search(_NAME, name) is None:
            words = f"the name of a token must be {_NAMED}, got {name!r}"
            raise ProblemError(422, "bad value", words, field="name")
        if name in self._tokens:
            raise ProblemError(409, "name taken", f"there is a token {name!r} already; revoke it first", field="name")
        if len(self._tokens) >= _MOST:
            raise ProblemError(409, "too many tokens", f"there are {_MOST:,} tokens; revoke some first")
        secret = _PREFIX + secrets.token_urlsafe(32)
        created = datetime.now(UTC).isoformat(timespec="seconds")
        self._write(self._tokens | {name: Token(name, scope, _hashed(secret.encode()), created)})
        return secret

    def revoke(self, name: str) -> None:
        """Forget a token, but for the last one that may make others."""
        if name not in self._tokens:
            raise ProblemError(404, "no such token", f"there is no token {name!r}")
        left = {key: token for key, token in self._tokens.items() if key != name}
        if not _any_admin(left):
            words = f"{name!r} is the last token with the scope admin; make another one first"
            raise ProblemError(409, "last admin token", words)
        self._write(left)

    def find(self, secret: bytes) -> Token | None:
        """The token with a secret; all of them are compared, each in constant time."""
        hashed, found = _hashed(secret), None
        for token in self._tokens.values():
            if hmac.compare_digest(token.sha256, hashed):
                found = token
        return found

    def _write(self, tokens: dict[str, Token]) -> None:
        content = msgspec.json.format(msgspec.json.encode(_File(1, list(tokens.values()))))
        try:
            with atomic_file(self._path) as file:
                os.chmod(file.name, 0o600)
                file.write(content)
        except OSError as error:
            raise ProblemError(507, "can't write", f"tokens can't be written: {error.strerror}") from None
        self._tokens = tokens  # what is in force is what is on the disk


def _any_admin(tokens: dict[str, Token]) -> bool:
    return any(token.scope == "admin" for token in tokens.values())


def _hashed(secret: bytes) -> str:
    return hashlib.sha256(secret).hexdigest()
