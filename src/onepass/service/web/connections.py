"""Connections within limits: how large a header may be, how long a client may take, how many may be open.

Anyone can connect without a token, so these limits are what keeps one client from locking out all others. The parser
has none of its own, and joins the pieces of a header in quadratic time. A request that arrives at once costs a few
assignments more: sizes are compared once per read, and one timer looks after all connections.
"""

import asyncio
import ipaddress
import logging
from collections import Counter
from collections.abc import Callable
from enum import Enum, auto
from functools import lru_cache, partial
from heapq import nsmallest
from typing import Any, cast

import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol

from onepass._limits import ConnectionLimits, Network
from onepass.service.errors import ProblemError
from onepass.service.web.problems import problem_response

__all__ = ["Connections"]

_log = logging.getLogger("onepass.service")

_PIPELINED = 100  # requests of one connection that may wait for their turn
_LINGER = 2.0  # seconds in which a refused client can read why, while what it still sends is thrown away
_TICK = 1.0  # seconds between two looks at all connections, at most
_QUIET = 60.0  # seconds between two words in the log on refused connections
_AT_ONCE = 100  # one in so many connections makes room when there is none: looking for them takes time


class _Stage(Enum):
    """What a connection waits for."""

    IDLE = auto()  # the first byte of a request
    HEADER = auto()  # the rest of a header
    BODY = auto()  # the rest of a body
    REFUSED = auto()  # the client, to read why
    UPGRADED = auto()  # nothing: it is a socket now


_IDLE, _HEADER, _BODY, _REFUSED, _UPGRADED = _Stage  # looking up a member takes longer than a name


class Connections:
    """All open connections of a server.

    Parameters
    ----------
    limits : of each, and of all together

    Attributes
    ----------
    refused : how many were closed for a reason
    """

    def __init__(self, limits: ConnectionLimits) -> None:
        self.limits = limits
        self.refused: Counter[str] = Counter()
        self._open: dict[asyncio.Transport, _HttpConnection] = {}
        self._per_peer: Counter[str] = Counter()
        self._peer_of = lru_cache(1024)(partial(_peer, limits.proxies))
        self._tick = min(_TICK, limits.header_timeout / 4, limits.body_timeout / 4, limits.idle_timeout / 4)
        self._timer: asyncio.TimerHandle | None = None
        self._reported: Counter[str] = Counter()
        self._quiet_until = 0.0

    def __len__(self) -> int:
        """How many are open."""
        return len(self._open)

    def configure(self, app: ASGIApp, **settings: Any) -> uvicorn.Config:
        """Settings of a server whose connections are these."""
        return uvicorn.Config(
            app,
            # A function that makes a protocol is as good as its class.
            http=cast(type[asyncio.Protocol], partial(_HttpConnection, self)),
            ws=cast(type[asyncio.Protocol], partial(_Socket, self)),
            timeout_keep_alive=cast(int, self.limits.idle_timeout),
            forwarded_allow_ips=[str(network) for network in self.limits.proxies],
            **settings,
        )

    def admit(self, connection: "_HttpConnection") -> ProblemError | None:
        """Let a connection in, for which another one may have to go; or say why not."""
        host = connection.client[0] if connection.client else None
        connection.peer = peer = None if host is None else self._peer_of(host)
        if peer is not None and self._per_peer[peer] >= self.limits.max_connections_per_peer:
            if not self._make_room(lambda one: one.peer == peer):
                return _full(
                    f"{self.limits.max_connections_per_peer} connections from your address",
                    "--max-connections-per-peer",
                )
        elif len(self._open) >= self.limits.max_connections and not self._make_room(lambda one: True):
            return _full(f"{self.limits.max_connections} connections", "--max-connections")
        self._open[connection.transport] = connection
        if peer is not None:
            self._per_peer[peer] += 1
        if self._timer is None:
            self._timer = connection.loop.call_later(self._tick, self._look_after, connection.loop)
        return None

    def leave(self, transport: asyncio.Transport) -> None:
        """Forget a connection; one that was never let in is not there."""
        connection = self._open.pop(transport, None)
        if connection is not None and connection.peer is not None:
            self._per_peer[connection.peer] -= 1
            if not self._per_peer[connection.peer]:
                del self._per_peer[connection.peer]
        if not self._open and self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _make_room(self, among: Callable[["_HttpConnection"], bool]) -> bool:
        """Close those that have been waiting longest for their client; False if all are being answered.

        Those whose client has not read its answer yet are closed only if there are no others.
        """
        waiting = [one for one in self._open.values() if one.waits_for_client and among(one)]
        waiting = [one for one in waiting if not one.transport.get_write_buffer_size()] or waiting
        for one in nsmallest(-(-len(waiting) // _AT_ONCE), waiting, key=lambda one: one.since):
            self.refused["displaced"] += 1
            self.leave(one.transport)
            one.transport.abort()
        return bool(waiting)

    def _look_after(self, loop: asyncio.AbstractEventLoop) -> None:
        self._timer = loop.call_later(self._tick, self._look_after, loop)
        now = loop.time()
        for connection in list(self._open.values()):
            connection.look_after(now)
        if now >= self._quiet_until and self.refused != self._reported:
            reasons = dict(self.refused - self._reported)
            self._reported, self._quiet_until = self.refused.copy(), now + _QUIET  # also if the log can't be written
            _log.warning("connections refused", extra={"reasons": reasons})


def _full(how_many: str, option: str) -> ProblemError:
    words = f"{how_many} are being answered, the most that are allowed at the same time ({option})"
    return ProblemError(503, "too many connections", words, retry_after=1.0)


def _peer(proxies: tuple[Network, ...], host: str) -> str | None:
    """What is counted as one peer; None for what is not counted.

    Examples
    --------
    >>> from onepass._limits import LOOPBACK
    >>> _peer(LOOPBACK, "10.1.2.3"), _peer(LOOPBACK, "2001:db8::1:2:3:4"), _peer(LOOPBACK, "::ffff:127.0.0.1")
    ('10.1.2.3', '2001:db8::/64', None)
    """
    address = ipaddress.ip_address(host.partition("%")[0])
    if isinstance(address, ipaddress.IPv6Address):
        address = address.ipv4_mapped or address
    if any(address in network for network in proxies):
        return None
    return str(ipaddress.ip_network((address, 64), strict=False)) if address.version == 6 else str(address)


class _HttpConnection(HttpToolsProtocol):
    """A connection that knows what it waits for, and since when."""

    def __init__(self, connections: Connections, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self._all, self._limits = connections, connections.limits
        self.peer: str | None = None
        self.since = self._read_at = self.loop.time()
        self._stage = _IDLE
        self._unparsed = 0  # bytes that have brought neither the end of a header nor a piece of a body
        self._unsent, self._unsent_since = 0, 0.0

    @property
    def waits_for_client(self) -> bool:
        """Whether nothing is lost that the client has completely sent if this connection is closed."""
        cycle = self.cycle
        return self._stage is not _UPGRADED and (cycle is None or cycle.response_complete or cycle.more_body)

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Let it in, or say why not."""
        super().connection_made(transport)
        problem = self._all.admit(self)
        if problem is not None:
            self._refuse(problem)
            transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        """Make room for another."""
        self._all.leave(self.transport)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Parse what has come, unless it is too much for a header."""
        if self._stage is _REFUSED:
            return
        self._read_at = self.loop.time()
        if self._stage is _IDLE:
            self._stage, self.since = _HEADER, self._read_at
        self._unparsed += len(data)
        if self._unparsed <= self._limits.max_header:
            super().data_received(data)
        else:
            self._parse_in_pieces(data)

    def _parse_in_pieces(self, data: bytes) -> None:
        """Parse as much as a header may have, and the rest if that has ended one, or was part of a body."""
        limit, rest = self._limits.max_header, memoryview(data)
        self._unparsed -= len(data)
        while rest and self._stage not in (_REFUSED, _UPGRADED) and not self.transport.is_closing():
            room = limit - self._unparsed
            if not room:
                words = f"the first line and the headers may have at most {limit:,} bytes together (--max-header)"
                self._refuse(ProblemError(431, "header too large", words, more={"limit": limit}))
                return
            self._unparsed += len(rest[:room])
            super().data_received(cast(bytes, rest[:room]))
            rest = rest[room:]

    def on_headers_complete(self) -> None:
        """Begin with the answer."""
        if len(self.pipeline) >= _PIPELINED:
            raise ValueError("too many pipelined requests")  # the parser ends, and the request is a bad one
        self._unparsed, self._stage, self.since = 0, _BODY, self._read_at
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        """Pass a piece of a body on."""
        self._unparsed = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        """Wait for the next request, or for the end of the answer."""
        self._unparsed, self._stage, self.since = 0, _IDLE, self._read_at
        super().on_message_complete()

    def on_response_complete(self) -> None:
        """Wait for the next request, or for the rest of this one."""
        if self._stage is _IDLE:
            self.since = self.loop.time()
        super().on_response_complete()

    def handle_websocket_upgrade(self) -> None:
        """Have a socket take over, which looks after itself."""
        self._stage = _UPGRADED
        super().handle_websocket_upgrade()

    def send_400_response(self, msg: str) -> None:
        """Refuse what can't be parsed."""
        self._refuse(ProblemError(400, "bad request", f"this can't be read as an HTTP request: {msg}"))

    def look_after(self, now: float) -> None:
        """Close the connection if its client lets us wait for too long."""
        unsent = self.transport.get_write_buffer_size()
        if unsent != self._unsent:
            self._unsent, self._unsent_since = unsent, now
        if unsent:
            if now - self._unsent_since > self._limits.idle_timeout:
                self._abort("answer not read")
        elif self._stage is _UPGRADED or self.flow.read_paused:
            self.since = now  # it is not the client that we wait for
        else:
            self._look_after_stage(now - self.since)

    def _look_after_stage(self, seconds: float) -> None:
        limits = self._limits
        match self._stage:
            case _Stage.IDLE if seconds > limits.idle_timeout and self.waits_for_client:
                self.transport.close()
            case _Stage.HEADER if seconds > limits.header_timeout:
                words = f"the headers did not arrive within {limits.header_timeout:g} seconds (--header-timeout)"
                self._refuse(ProblemError(408, "header too slow", words))
            case _Stage.BODY if seconds > limits.body_timeout:
                words = f"the body did not arrive within {limits.body_timeout:g} seconds (--body-timeout)"
                self._refuse(ProblemError(408, "body too slow", words))
            case _Stage.REFUSED if seconds > _LINGER:
                self.transport.abort()

    def _refuse(self, problem: ProblemError) -> None:
        """Say why and read on for a while, since a closed connection would take back what has not been read yet."""
        if not self._can_say_why:
            self._abort(problem.title)
            return
        self._all.refused[problem.title] += 1
        self._stage, self.since = _REFUSED, self.loop.time()
        if self.cycle is not None:
            self.cycle.disconnected = True
            self.cycle.message_event.set()
        self.transport.write(_written(problem, self.server_state.default_headers))
        self.transport.write_eof()

    @property
    def _can_say_why(self) -> bool:
        """Whether an answer would be taken for that to the request in question: no other is due, or has begun."""
        cycle = self.cycle
        if cycle is None or self._stage is not _BODY:
            return cycle is None or cycle.response_complete
        return cycle.more_body and not cycle.response_started and not self.pipeline

    def _abort(self, reason: str) -> None:
        self._all.refused[reason] += 1
        self.transport.abort()


class _Socket(WebSocketsSansIOProtocol):
    """A web socket, which counts as a connection until it ends."""

    def __init__(self, connections: Connections, **named: Any) -> None:
        super().__init__(**named)
        self._all = connections

    def connection_lost(self, exc: Exception | None) -> None:
        """Make room for another connection."""
        self._all.leave(self.transport)
        super().connection_lost(exc)


def _written(problem: ProblemError, default_headers: list[tuple[bytes, bytes]]) -> bytes:
    """An answer outside of the application, which ends the connection."""
    answer = problem_response(problem, {"Connection": "close"})
    lines = [name + b": " + value + b"\r\n" for name, value in (*default_headers, *answer.raw_headers)]
    return b"".join([STATUS_LINE[problem.status], *lines, b"\r\n", bytes(answer.body)])
