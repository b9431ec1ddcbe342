"""The folder with all models: opened, recovered model by model, and closed with nothing lost."""

import asyncio
import logging
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, TypeVar

from onepass.files.events import EventLog, EventStoreError, open_event_log
from onepass.files.lock import locked
from onepass.service.declared import model_content
from onepass.service.errors import ProblemError
from onepass.service.host import HostedModel
from onepass.service.journal import Journal, own_key
from onepass.service.operations import digest
from onepass.service.settings import ServiceSettings
from onepass.service.wire import Declared
from onepass.service.writer import storing_problem

__all__ = ["EVENTS", "ServiceState", "open_store"]

T = TypeVar("T")
_log = logging.getLogger(__name__)
EVENTS = "events.sqlite"
_FOLLOWING = 1.0  # seconds between two looks at a store that others use, too


def open_store(settings: ServiceSettings) -> EventLog:
    """Open the event store of a service: each thread has one of its own."""
    target = settings.events or settings.data / EVENTS
    return open_event_log(target, durability=settings.durability, timeout=30.0)


class ServiceState:
    """All models of a service.

    Parameters
    ----------
    settings : ServiceSettings
    """

    def __init__(self, settings: ServiceSettings) -> None:
        self.settings = settings
        self._models: dict[str, HostedModel] = {}
        self._replaying: set[str] = set()
        self._broken: dict[str, str] = {}
        self._is_ready = False
        self._closing = ExitStack()
        self._recoveries: list[asyncio.Task[None]] = []
        self._tasks: list[asyncio.Task[None]] = []
        self._making = asyncio.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None

    # Begin and end.

    async def start(self) -> None:
        """Open the folder and begin to recover its models, each in a thread; returns at once."""
        settings = self.settings
        settings.data.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._loop = asyncio.get_running_loop()
        with ExitStack() as opened:  # closed again if anything is wrong with the folder
            opened.enter_context(locked(settings.data / "service"))
            self._names = opened.enter_context(open_store(settings))
            if settings.is_shared_learner:
                opened.enter_context(self._names.only_writer("service"))
            self._replaying = set(Journal.names(self._names))
            self._closing = opened.pop_all()
        self._recoveries = [asyncio.create_task(self._recover(name)) for name in sorted(self._replaying)]
        self._tasks = [asyncio.create_task(self._note_ready())]
        if settings.is_shared_learner:
            self._tasks.append(asyncio.create_task(self._keep_lock()))
        if settings.follow:
            self._tasks.append(asyncio.create_task(self._follow_all()))

    async def stop(self) -> None:
        """Finish what is queued, save snapshots, and close the folder."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, *self._recoveries, return_exceptions=True)
        async with self._making:
            await asyncio.gather(*(model.stop() for model in self._models.values()))
            self._models.clear()
            self._closing.close()

    async def _recover(self, name: str) -> None:
        try:
            self._models[name] = await asyncio.to_thread(self._host, name)
        except Exception as error:  # whatever it is: the others are served, and nobody takes the name
            self._broken[name] = str(error)
            _log.error("model %s can't be recovered: %s", name, error)
        finally:
            self._replaying.discard(name)

    def _host(self, name: str) -> HostedModel:
        assert self._loop is not None
        return HostedModel(name, open_store(self.settings), self.settings, self._loop)

    async def _note_ready(self) -> None:
        await asyncio.gather(*map(asyncio.shield, self._recoveries))
        self._is_ready = True

    async def _keep_lock(self) -> None:
        """Take the lock again that a lost connection has taken along: a look at the store connects again."""
        while True:
            await asyncio.sleep(_FOLLOWING)
            await self._looked(self._names.last, "service")

    async def _follow_all(self) -> None:
        """Keep up with a learner elsewhere: with each of its models, those to come, and those that it deletes."""
        followed: dict[str, asyncio.Task[None]] = {}
        try:
            while True:
                found = await self._looked(Journal.names, self._names)
                names = set(followed if found is None else found)
                for name in names - set(followed) - self._replaying:
                    if name not in self._models:
                        await self._recover(name)
                    if name in self._models:
                        followed[name] = asyncio.create_task(self._follow(self._models[name]))
                for name in set(followed) - names:
                    followed.pop(name).cancel()
                    await self._models.pop(name).stop()
                await asyncio.sleep(_FOLLOWING)
        finally:
            for task in followed.values():
                task.cancel()

    async def _follow(self, model: HostedModel) -> None:
        while True:
            if await self._looked(model.follow, _FOLLOWING) is None:
                await asyncio.sleep(_FOLLOWING)

    async def _looked(self, look: Callable[..., T], *arguments: Any) -> T | None:
        """What a look at the store gives; None, with a warning, where that is not to be had at present."""
        try:
            return await asyncio.to_thread(look, *arguments)
        except (EventStoreError, ProblemError) as error:
            _log.warning("the event store can't be used at present: %s", error)
            return None

    # Models.

    @property
    def is_ready(self) -> bool:
        """Whether all models have been recovered."""
        return self._is_ready and not self._broken

    @property
    def broken(self) -> dict[str, str]:
        """Why some models can't be served, by name."""
        return dict(self._broken)

    @property
    def replaying(self) -> list[str]:
        """Names of the models that are being recovered."""
        return sorted(self._replaying)

    def models(self) -> list[HostedModel]:
        """All models, by name."""
        return [self._models[name] for name in sorted(self._models)]

    def model(self, name: str) -> HostedModel:
        """The model of a name."""
        if name in self._models:
            return self._models[name]
        if name in self._replaying:
            raise ProblemError(503, "not ready", f"the model {name!r} is still being loaded", retry_after=1.0)
        if name in self._broken:
            raise ProblemError(503, "damaged", f"the model {name!r} can't be recovered: {self._broken[name]}")
        there = ", ".join(map(repr, sorted(self._models))) or "none"
        raise ProblemError(404, "no such model", f"there is no model {name!r}; there are {there}")

    async def create(self, name: str, content: bytes | Declared) -> tuple[HostedModel, bool]:
        """Make a model from a file or a description; whether it is new: the same again changes nothing."""
        if self.settings.follow:
            raise ProblemError(409, "a replica", "this service only predicts; send this to the service that learns")
        async with self._making:
            request = digest(name, content if isinstance(content, Declared) else content.hex())
            if name in self._replaying or name in self._broken:
                self.model(name)
            if name in self._models:
                model = self._models[name]
                if model.origin_digest != request:
                    raise ProblemError(
                        409, "name taken", f"there is another model {name!r}: delete it first, or choose another name"
                    )
                return model, False
            made = await asyncio.to_thread(model_content, content)
            await asyncio.to_thread(self._write_new, name, request, made)
            await self._recover(name)
            return self.model(name), True

    def _write_new(self, name: str, request: str, content: bytes) -> None:
        with _stored("the model was not created"), open_store(self.settings) as store:
            journal = Journal(store, name)
            number = store.last(journal.stream) + 1
            journal.append("create", own_key("create", number), {"request": request}, content)

    async def import_file(self, name: str, path: Path) -> bool:
        """Make a model from a file unless there is one of this name; whether it was made."""
        if name in self._models or name in self._replaying or name in self._broken:
            return False
        content = await asyncio.to_thread(path.read_bytes)
        return (await self.create(name, content))[1]

    async def delete(self, name: str) -> None:
        """Delete a model and all its events, also one that can't be recovered."""
        async with self._making:
            if name in self._broken:
                await asyncio.to_thread(self._delete_broken, name)
                del self._broken[name]
            else:
                await self.model(name).delete()
                self._models.pop(name, None)

    def _delete_broken(self, name: str) -> None:
        with _stored("the model was not deleted"), open_store(self.settings) as store:
            Journal(store, name).delete()


@contextmanager
def _stored(undone: str) -> Iterator[None]:
    try:
        yield
    except EventStoreError as error:
        raise storing_problem(error, undone) from None
