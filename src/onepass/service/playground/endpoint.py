"""The socket: one session per connection, computed in a thread, and of many requests in a row only the newest.

While one drags a point the page asks faster than a network can be learned. So a message waits in a single place, where
the next one replaces it: what is computed is never older than one computation, and nothing piles up.
"""

from time import monotonic
from urllib.parse import urlsplit

import anyio
from starlette.websockets import WebSocket, WebSocketDisconnect, WebSocketState

from onepass.service.playground.session import Session

__all__ = ["MAX_RATE", "MAX_SOCKETS", "Endpoint"]

MAX_RATE = 300
"""Messages per second; a page that draws 120 times per second sends as many at most."""
MAX_SOCKETS = 64
_THREADS = 2  # that compute at a time, for all sockets together

_POLICY, _TRY_AGAIN = 1008, 1013  # codes of RFC 6455


class _Newest:
    """A place for one message, where the next one replaces it."""

    def __init__(self) -> None:
        self._message: str | bytes = ""
        self._there = anyio.Event()

    def put(self, message: str | bytes) -> None:
        self._message = message
        self._there.set()

    async def take(self) -> str | bytes:
        await self._there.wait()
        self._there = anyio.Event()
        return self._message


class _Rate:
    """Counts messages of the current second."""

    def __init__(self) -> None:
        self._second, self._count = 0, 0

    def exceeded(self) -> bool:
        second = int(monotonic())
        self._count = self._count + 1 if second == self._second else 1
        self._second = second
        return self._count > MAX_RATE


class Endpoint:
    """Serves the sockets of one application."""

    def __init__(self) -> None:
        self._threads = anyio.CapacityLimiter(_THREADS)
        self._n_open = 0

    async def serve(self, websocket: WebSocket) -> None:
        """Answer one page until it leaves."""
        if not _same_origin(websocket):
            await websocket.close(_POLICY)
            return
        await websocket.accept()
        if self._n_open >= MAX_SOCKETS:
            await websocket.close(_TRY_AGAIN, f"{MAX_SOCKETS} pages are open already; close one of them")
            return
        self._n_open += 1
        try:
            await self._converse(websocket)
        finally:
            self._n_open -= 1

    async def _converse(self, websocket: WebSocket) -> None:
        newest = _Newest()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._answer, websocket, newest)
            await _listen(websocket, newest)
            tasks.cancel_scope.cancel()

    async def _answer(self, websocket: WebSocket, newest: _Newest) -> None:
        session = Session()
        while True:
            message = await newest.take()
            answer = await anyio.to_thread.run_sync(session.answer, message, limiter=self._threads)
            if websocket.application_state is not WebSocketState.CONNECTED:
                return
            try:
                await websocket.send_text(answer)
            except (WebSocketDisconnect, RuntimeError):  # it left while this was computed
                return


async def _listen(websocket: WebSocket, newest: _Newest) -> None:
    rate = _Rate()
    while True:
        received = await websocket.receive()
        if received["type"] == "websocket.disconnect":
            return
        if rate.exceeded():
            await websocket.close(_POLICY, f"more than {MAX_RATE} messages per second")
            return
        newest.put(received.get("text") or received.get("bytes") or "")


def _same_origin(websocket: WebSocket) -> bool:
    """Whether our own page asks: a page of any other site could open a socket to this machine as well.

    Clients other than browsers send no origin.
    """
    origin = websocket.headers.get("origin")
    return origin is None or urlsplit(origin).netloc == websocket.headers.get("host")
