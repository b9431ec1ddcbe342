"""The state of a service with an event loop of its own, for tests that ask one thing after the other."""

import asyncio
import shutil
import sqlite3
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from onepass import BayesianPerceptronRegressor
from onepass.events import EventLog
from onepass.events.sqlite.database import SQLiteDatabase
from onepass.files.checkpoint import to_bytes
from onepass.service.declared import declared_content
from onepass.service.errors import ProblemError
from onepass.service.host import HostedModel
from onepass.service.operations import WriterCall
from onepass.service.settings import ServiceSettings
from onepass.service.state import EVENTS, ServiceState
from onepass.service.wire import Declared

__all__ = ["Running", "crashed_copy", "four_models", "opened", "outcome", "regressor", "served"]


class Running:
    """A started `ServiceState`, whose coroutines are run to their end by `ask`."""

    def __init__(self, folder: Path, **settings: Any) -> None:
        self.folder = folder
        self.state = ServiceState(ServiceSettings(folder, **settings))
        self.loop = asyncio.new_event_loop()
        try:
            self.ask(self.state.start())
            self.ask(self._recovered())
        except BaseException:
            self.loop.close()
            raise

    async def _recovered(self) -> None:
        await asyncio.gather(*self.state._recoveries)
        await asyncio.sleep(0)

    def ask(self, question: Coroutine[Any, Any, Any]) -> Any:
        """The result of a coroutine."""
        return self.loop.run_until_complete(question)

    def model(self, name: str) -> HostedModel:
        """A model by its name."""
        return self.state.model(name)

    def call(self, name: str, action: Callable[[HostedModel], Any]) -> Any:
        """What an action gives that is done by the writer of a model."""
        model = self.model(name)
        return self.ask(model.carry_out(WriterCall(lambda: action(model))))

    def files(self) -> dict[str, bytes]:
        """All models as files."""
        return {model.name: self.ask(model.file()) for model in self.state.models()}

    def stop(self) -> None:
        """Stop the service."""
        try:
            self.ask(self.state.stop())
            self.ask(self.loop.shutdown_default_executor())
        finally:
            self.loop.close()


@contextmanager
def served(folder: Path, **settings: Any) -> Iterator[Running]:
    """A service for the length of a block."""
    running = Running(folder, **settings)
    try:
        yield running
    finally:
        running.stop()


async def outcome(question: Awaitable[Any]) -> Any:
    """The answer, or the status of the problem."""
    try:
        return await question
    except ProblemError as problem:
        return problem.status


def opened(store: EventLog) -> sqlite3.Connection:
    """The connection of an event store, to do things to it that the store never does."""
    database = store._database
    assert isinstance(database, SQLiteDatabase)
    assert database._connection is not None
    return database._connection


def crashed_copy(folder: Path, to: Path) -> Path:
    """What a process that is killed now leaves behind, as a folder of its own."""
    to.mkdir()
    for path in folder.glob(f"{EVENTS}*"):
        if not path.name.endswith("-shm"):  # it does not outlive the last process that has the file open
            shutil.copy(path, to)
    return to


def regressor() -> bytes:
    """A small estimator that has learned three rows of two numbers."""
    X, y = [[0.0, 1.0], [1.0, -1.0], [2.0, 0.5]], [0.5, -1.0, 2.0]
    return to_bytes(BayesianPerceptronRegressor().partial_fit(X, y))


def four_models() -> dict[str, bytes]:
    """A table with a number to predict, one with classes, a bandit, and a model per key."""
    generator = np.random.default_rng(1)
    rows = [
        {"a": a, "b": b, "key": "wxyz"[i % 4], "number": a - b, "class": ("red", "green", "blue")[i % 3]}
        for i, (a, b) in enumerate(generator.normal(size=(30, 2)).round(3).tolist())
    ]
    described = {
        "number": Declared(
            rows=rows, target="number", learn=True, options={"ignore": ["class", "key"], "model_kind": "perceptron"}
        ),
        "class": Declared(
            rows=rows, target="class", learn=True, options={"ignore": ["number", "key"], "model_kind": "perceptron"}
        ),
        "bandit": Declared(bandit={"arms": ["left", "middle", "right"], "n_features": 2, "seed": 3}),
        "keyed": Declared(rows=rows, target="number", learn=True, options={"ignore": ["class"], "by": "key"}),
    }
    return {name: declared_content(one) for name, one in described.items()}
