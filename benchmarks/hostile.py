"""What hostile clients can do to `onepass serve` without a token, and what a normal client notices of it.

    python -m benchmarks.hostile                                   # a few minutes
    PYTHONPATH=/another/version/src python -m benchmarks.hostile   # the same against another version

A normal client opens a connection, asks `/healthz` and closes it, again and again. For each attack: how long it waits
for its first answer once the attack is under way, the longest it ever waits, and how many of its requests are answered.
Server, attackers and normal client share the machine and its loopback address, which is exempt from the limit of
connections per peer: all that helps here are the limits of size, of time and of connections in all.
"""

import argparse
import http.client
import os
import resource
import selectors
import socket
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

from benchmarks.service import Server, serving

HALF = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX-Padding: "
BODY = b"POST /v1/session HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\n{"


@dataclass
class Normal:
    """What a normal client saw during an attack."""

    patience: float  # seconds
    first: float = float("inf")
    waits: list[float] = field(default_factory=list)
    refused: int = 0

    def ask(self, server: Server, begin: float) -> None:
        asked = time.monotonic()
        try:
            connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=self.patience)
            with closing(connection):
                connection.request("GET", "/healthz")
                if connection.getresponse().status != 200:
                    self.refused += 1
                    return
        except OSError:
            self.refused += 1
            return
        now = time.monotonic()
        self.first = min(self.first, now - begin)
        self.waits.append(now - asked)


@dataclass(frozen=True)
class Course:
    """How far an attack is."""

    begun: threading.Event = field(default_factory=threading.Event)
    ends: threading.Event = field(default_factory=threading.Event)


Attack: TypeAlias = Callable[[Server, Course], None]


def watch(server: Server, attack: Attack, seconds: float) -> Normal:
    """Attack for a while, and as long as nobody gets an answer; ask every 20 milliseconds meanwhile."""
    seen, course = Normal(patience=4 * seconds), Course()
    attacker = threading.Thread(target=attack, args=(server, course))
    attacker.start()
    course.begun.wait()
    begin = time.monotonic()
    while time.monotonic() < begin + seconds or (not seen.waits and time.monotonic() < begin + seen.patience):
        seen.ask(server, begin)
        time.sleep(0.02)
    course.ends.set()
    attacker.join()
    return seen


def large_header(server: Server, course: Course) -> None:
    """One header of 50 MB, as fast as it is taken."""
    with socket.create_connection(("127.0.0.1", server.port), timeout=300) as connection:
        course.begun.set()
        try:
            connection.sendall(HALF)
            for _ in range(50 * 16):
                connection.sendall(b"x" * 2**16)
        except OSError:
            pass
        course.ends.wait()


@contextmanager
def opened(server: Server, count: int, sent: bytes) -> Iterator[selectors.DefaultSelector]:
    """So many connections, each of which has sent something."""
    with selectors.DefaultSelector() as found:
        for _ in range(count):
            _open(found, server, sent)
        yield found
        for key in list(found.get_map().values()):
            _close(found, key.fileobj)


def _open(found: selectors.DefaultSelector, server: Server, sent: bytes) -> None:
    try:
        connection = socket.create_connection(("127.0.0.1", server.port), timeout=5)
    except OSError:
        return
    found.register(connection, selectors.EVENT_READ)
    try:
        connection.sendall(sent)
    except OSError:
        _close(found, connection)


def _close(found: selectors.DefaultSelector, connection: object) -> None:
    assert isinstance(connection, socket.socket)
    found.unregister(connection)
    connection.close()


def held(count: int, sent: bytes) -> Attack:
    """So many connections, opened once."""

    def attack(server: Server, course: Course) -> None:
        with opened(server, count, sent):
            course.begun.set()
            course.ends.wait()

    return attack


def renewed(count: int, sent: bytes) -> Attack:
    """So many connections, each opened again as soon as the server closes it."""

    def attack(server: Server, course: Course) -> None:
        with opened(server, count, sent) as found:
            course.begun.set()
            while not course.ends.is_set():
                for key, _ in found.select(0.1):
                    _close(found, key.fileobj)
                    _open(found, server, sent)

    return attack


ATTACKS: dict[str, Attack] = {
    "one header of 50 MB": large_header,
    "1,020 half-sent headers": held(1020, HALF),
    "1,020 half-sent headers, renewed": renewed(1020, HALF),
    "1,020 half-sent bodies, renewed": renewed(1020, BODY),
    "3,000 silent connections, renewed": renewed(3000, b""),
}


def show(what: str, seen: Normal) -> None:
    first = f"{seen.first * 1e3:9,.0f} ms" if seen.waits else f"none in {seen.patience:.0f} s"
    longest = f"{max(seen.waits) * 1e3:9,.0f} ms" if seen.waits else "-"
    asked = len(seen.waits) + seen.refused
    print(f"{what:36s} {first:>14s} {longest:>14s} {len(seen.waits):7,d} of {asked:,d}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=20.0, help="length of each attack")
    options = parser.parse_args()
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 10_000) if hard > 0 else 10_000, hard))
    print(f"cores: {os.cpu_count()}, server and clients together; each attack takes {options.seconds:g} s")
    print(f"{'attack':36s} {'first answer':>14s} {'longest wait':>14s} answered")
    for what, attack in {"none": held(0, b""), **ATTACKS}.items():
        with tempfile.TemporaryDirectory() as name, serving(Path(name), "perceptron") as server:
            show(what, watch(server, attack, options.seconds))


if __name__ == "__main__":
    main()
