"""An ASGI application behind a real server, in a thread: for browsers and other clients that need a socket."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import uvicorn

from tests.helpers.waiting import wait_until

__all__ = ["served"]


@contextmanager
def served(application: Any, port: int = 0) -> Iterator[str]:
    """Serve an application on this machine, on any free port by default; gives its address without a path."""
    config = uvicorn.Config(application, log_level="warning", ws="websockets-sansio", timeout_graceful_shutdown=1)
    server = uvicorn.Server(config)
    listener = socket.create_server(("127.0.0.1", port))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
    thread.start()
    try:
        wait_until(lambda: server.started, "the server to start")
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join(10)
        listener.close()
