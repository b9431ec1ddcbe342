"""``onepass playground``: a web page on which you click points and watch a model learn them."""

import os
import socket
import threading
import webbrowser
from contextlib import suppress

import click

from onepass._extras import require
from onepass.cli import options

__all__ = ["playground"]

_PORT = 8765
_HOST = "127.0.0.1"


@click.command(cls=options.Command, examples=("onepass playground", "onepass playground --port 8080 --no-open"))
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    help=f"Port to listen on; by default {_PORT}, or any free one if that is taken.",
)
@click.option(
    "--open/--no-open", "opens", default=True, help="Open the page in the browser, or only print its address."
)
def playground(port: int | None, opens: bool) -> None:
    """Open a page in the browser on which you click points, turn knobs, and watch a model learn.

    The page can be opened on this machine only, and nothing is stored. Ctrl-C ends it.
    """
    require("serve", "'onepass playground'")
    import uvicorn

    from onepass.service.playground import application

    listener = _listen(port)
    address = f"http://{_HOST}:{listener.getsockname()[1]}/playground"
    click.echo(f"address: {address}")
    if opens:  # in a thread, as some browsers return only when they are closed; the listener queues what comes early
        threading.Thread(target=webbrowser.open, args=(address,), daemon=True).start()
    config = uvicorn.Config(application(), log_level="warning", ws="websockets-sansio", ws_max_size=1 << 20)
    with suppress(KeyboardInterrupt):  # the way to end it
        uvicorn.Server(config).run(sockets=[listener])


def _listen(port: int | None) -> socket.socket:
    """A socket on the port asked for; without one on the usual port or, if that is taken, on any that is free."""
    try:
        return _bound(_PORT if port is None else port)
    except OSError as error:
        if port is not None:
            reason = os.strerror(error.errno or 0)
            raise click.ClickException(f"port {port} can't be used: {reason}; choose another one.") from None
        return _bound(0)


def _bound(port: int) -> socket.socket:
    listener = socket.create_server((_HOST, port))
    listener.set_inheritable(True)
    return listener
