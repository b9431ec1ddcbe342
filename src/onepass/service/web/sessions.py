"""Sessions of browsers: begun by a code that works once, or by a token; kept in memory and lost with the process.

The code is in the fragment of a link, which browsers send to nobody; the page's script posts it.
"""

import secrets
import time
from collections.abc import Callable
from typing import NamedTuple

from onepass.service.web.tokens import Token

__all__ = ["CODE_SECONDS", "SESSION_SECONDS", "Session", "Sessions"]

CODE_SECONDS = 600.0
SESSION_SECONDS = 12 * 3600.0
_MOST = 1000


class Session(NamedTuple):
    """Until when a browser is let in, and what it may do."""

    until: float
    token: Token | None
    """By which the session began: it may do the same, and ends when the token is revoked or expires. None: a code."""


class Sessions:
    """Codes and sessions that have not expired.

    Examples
    --------
    >>> sessions = Sessions()
    >>> code = sessions.new_code()
    >>> key = sessions.begin_by_code(code)
    >>> sessions.find(key) is not None, sessions.begin_by_code(code)
    (True, None)
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._codes: dict[str, float] = {}
        self._sessions: dict[str, Session] = {}

    def new_code(self) -> str:
        """A code that begins one session with the scope admin."""
        code = secrets.token_urlsafe(32)
        self._codes[code] = self._clock() + CODE_SECONDS
        return code

    def begin_by_code(self, code: str) -> str | None:
        """Begin a session; returns its key, None if the code is unknown, used or too old."""
        if self._codes.pop(code, 0.0) <= self._clock():
            return None
        return self._begin(None)

    def begin_by_token(self, token: Token) -> str:
        """Begin a session that may do what a token may; returns its key."""
        return self._begin(token)

    def find(self, key: str) -> Session | None:
        """The session with a key."""
        session = self._sessions.get(key)
        return session if session is not None and session.until > self._clock() else None

    def end(self, key: str) -> None:
        """End a session, if it is there."""
        self._sessions.pop(key, None)

    def _begin(self, token: Token | None) -> str:
        now = self._clock()
        self._sessions = {key: one for key, one in self._sessions.items() if one.until > now}
        while len(self._sessions) >= _MOST:
            del self._sessions[next(iter(self._sessions))]  # the oldest
        key = secrets.token_urlsafe(32)
        self._sessions[key] = Session(now + SESSION_SECONDS, token)
        return key
