"""A service that is killed again and again: one process after the other on the same folder.

    python -m tests.service.lives FOLDER PORT

runs the service until its standard input ends. Every line there ends a life, by SIGKILL, and begins the next; each that
listens says so on standard output. The process has the library loaded and forks a child for every life, since loading
takes longer than a life.
"""

import gc
import os
import signal
import sys
from pathlib import Path

from onepass.service import writer
from onepass.service.settings import ServiceSettings
from onepass.service.web.app import page_routes
from onepass.service.web.server import Announcer, Listening, run_service


def live(folder: Path, port: int) -> None:
    """Serve until killed."""

    def announce(name: str, value: str) -> None:
        if name == "address":
            print("ready", flush=True)

    run_service(ServiceSettings(folder), Listening(port=port, needs_token=False), {}, Announcer(announce))


def main() -> None:
    """One life after the other, with more snapshots than a real one has."""
    writer._SNAPSHOT_EVENTS = 30
    page_routes()  # loads what is left
    gc.collect()
    gc.freeze()
    goes_on = True
    while goes_on:
        child = os.fork()
        if not child:
            live(Path(sys.argv[1]), int(sys.argv[2]))
        goes_on = bool(sys.stdin.readline())
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


if __name__ == "__main__":
    main()
