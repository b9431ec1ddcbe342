"""The whole command in this process, for all tests of commands."""

import json
import signal
from collections.abc import Callable
from typing import Any, NamedTuple

import pytest

from onepass.cli.main import main

__all__ = ["Done", "Run"]


class Done(NamedTuple):
    code: int
    out: str
    err: str

    @property
    def events(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.out.splitlines()]


Run = Callable[..., Done]


@pytest.fixture(autouse=True)
def _one_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """The histories of all models have the same time, so that equal runs write equal bytes."""
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1700000000")


@pytest.fixture
def run(capfd: pytest.CaptureFixture[str]) -> Run:
    """The whole command in this process, which saves the seconds that a new one takes to load everything."""

    def call(*arguments: object) -> Done:
        before = {sign: signal.getsignal(sign) for sign in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
        capfd.readouterr()
        try:
            with pytest.raises(SystemExit) as end:
                main([str(argument) for argument in arguments])
        finally:
            for sign, handler in before.items():
                signal.signal(sign, handler)
        return Done(int(end.value.code or 0), *capfd.readouterr())

    return call
