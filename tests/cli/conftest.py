"""The whole command in this process, for all tests of commands."""

import json
from collections.abc import Callable
from typing import Any, NamedTuple

import pytest

from tests.helpers.commands import run_here

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
    """The whole command in this process, and what it prints."""

    def call(*arguments: object) -> Done:
        capfd.readouterr()
        return Done(run_here(*arguments), *capfd.readouterr())

    return call
