"""A service in a process of its own, as the command starts it."""

import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx

__all__ = ["Process", "serving"]


class Process:
    """A service in a process of its own, and what it has printed."""

    def __init__(self, *arguments: object, umask: int = -1) -> None:
        command = [sys.executable, "-m", "onepass", "serve", "--port", "0", *map(str, arguments)]
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True, umask=umask)
        self.facts: dict[str, str] = {}
        assert self.process.stdout is not None
        self.printed = ""
        while not {"page", "page file"} & set(self.facts) and (line := self.process.stdout.readline()):
            self.printed += line
            name, _, words = line.strip().partition(": ")
            self.facts[name] = words

    def secret(self, name: str) -> str:
        """What is in a file that the output names."""
        return Path(self.facts[f"{name} file"]).read_text().strip()

    def ask(self, method: str, path: str, token: str | None = None, **given: Any) -> httpx.Response:
        headers = {} if token is None else {"Authorization": f"Bearer {token}"}
        return httpx.request(method, self.facts["address"] + path, headers=headers, timeout=120, **given)

    def end(self) -> tuple[int, str]:
        """The exit code after a polite request, and the log."""
        self.process.send_signal(signal.SIGTERM)
        _, log = self.process.communicate(timeout=120)
        return self.process.returncode, log


@contextmanager
def serving(*arguments: object, umask: int = -1) -> Iterator[Process]:
    """A service for the length of a block."""
    found = Process(*arguments, umask=umask)
    try:
        yield found
    finally:
        if found.process.poll() is None:
            found.process.kill()
        found.process.communicate()
