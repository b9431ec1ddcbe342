"""The command line, in this process or in processes of its own, run to the end or started and interrupted."""

import array
import fcntl
import os
import select
import signal
import subprocess
import sys
import termios
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import IO, Any

import pytest

from onepass.cli.main import main

__all__ = ["COMMAND", "read_until", "run_command", "run_here", "started", "unread_bytes"]

COMMAND = [sys.executable, "-c", "from onepass.cli.main import main; main()"]
_DEADLINE = 300.0  # seconds; no measure of speed, but of a process that hangs


def run_command(*arguments: object, **options: Any) -> subprocess.CompletedProcess[str]:
    """Run ``onepass`` with these arguments to its end."""
    command = [*COMMAND, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=_DEADLINE, **options)


def run_here(*arguments: object) -> int:
    """Run ``onepass`` in this process, which saves the seconds that a new one takes to load everything.

    Returns the exit code; what is printed is for pytest to capture.
    """
    before = {sign: signal.getsignal(sign) for sign in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    try:
        with pytest.raises(SystemExit) as end:
            main([str(argument) for argument in arguments])
    finally:
        for sign, handler in before.items():
            signal.signal(sign, handler)
    return int(end.value.code or 0)


@contextmanager
def started(command: list[str], environment: Mapping[str, str] | None = None) -> Iterator[subprocess.Popen[str]]:
    """Start a command that Ctrl-C reaches even when the tests run in the background, and end it with the test."""
    process = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, **(environment or {})},
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def read_until(stream: IO[str] | None, words: str) -> str:
    """Read what a process prints until these words are in it, and return all of it.

    The bytes are read past the stream's own buffer, so that `Popen.communicate` can read the rest.
    """
    assert stream is not None
    printed = b""
    end = time.monotonic() + _DEADLINE
    while words.encode() not in printed:
        ready, _, _ = select.select([stream], [], [], max(0.0, end - time.monotonic()))
        content = os.read(stream.fileno(), 4096) if ready else b""
        if not content:
            raise AssertionError(f"the process ended or hung without printing {words!r}, but {printed.decode()!r}")
        printed += content
    return printed.decode()


def unread_bytes(pipe: IO[Any]) -> int:
    """Return the number of bytes in a pipe that its reader has not read yet."""
    count = array.array("i", [0])
    fcntl.ioctl(pipe.fileno(), termios.FIONREAD, count)
    return count[0]
