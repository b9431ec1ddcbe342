"""The way of an answer to its client: it gets headers on the way, and what has been sent is known."""

from starlette.types import Message, Scope, Send

__all__ = ["Outgoing"]

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


class Outgoing:
    """Sends messages, with headers that keep browsers from doing what nobody asked for; a page may have its own.

    Attributes
    ----------
    status : of the answer; 500 until it has begun
    has_begun : whether something was sent, after which there can be no other answer
    """

    __slots__ = ("_is_api", "_send", "has_begun", "status")

    def __init__(self, scope: Scope, send: Send) -> None:
        self._send, self._is_api = send, scope["path"].startswith(_API_PATHS)
        self.status, self.has_begun = 500, False

    async def __call__(self, message: Message) -> None:
        """Send a message."""
        self.has_begun = True
        if message["type"] == "http.response.start":
            self.status, own = message["status"], message["headers"]
            there = () if self._is_api else {name for name, _ in own}
            message["headers"] = [*own, *(_API if self._is_api else (one for one in _ALL if one[0] not in there))]
        await self._send(message)
