"""The folder with all models: opened, recovered model by model, and closed with nothing lost."""

import asyncio
import atexit
import logging
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar

from onepass.events import EventLog, EventStoreError, is_address, open_event_log
from onepass.files.checkpoint import from_bytes
from onepass.files.lock import locked
from onepass.service.clock import ServiceClock
from onepass.service.declared import model_content
from onepass.service.errors import ProblemError, reason_in_words
from onepass.service.host import HostedModel
from onepass.service.journal import Journal, own_key, stream_of
from onepass.service.note import ServiceNote
from onepass.service.operations import digest
from onepass.service.outages import Outage
from onepass.service.served import serve
from onepass.service.settings import SERVICE, ServiceSettings
from onepass.service.wire import Declared
from onepass.service.writer import storing_problem

__all__ = ["EVENTS", "ServiceState", "events_file", "open_store"]

T = TypeVar("T")
_log = logging.getLogger(__name__)
EVENTS = "events.sqlite"
_ENDING = 10.0  # seconds that the loop has to finish a prediction when the interpreter ends
_FOLLOWING = 1.0  # seconds between two looks at a store that others use, too


def open_store(settings: ServiceSettings) -> EventLog:
    """Open the event store of a service: each thread has one of its own."""
    return open_event_log(_target(settings), durability=settings.durability, timeout=30.0)


def _target(settings: ServiceSettings) -> str | Path:
    return settings.events or settings.data / EVENTS


def events_file(settings: ServiceSettings) -> Path | None:
    """The file with the events of a service; None if they are in a database."""
    target = _target(settings)
    return None if is_address(target) else Path(target)


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
        self._storing = Outage("creating and deleting models")
        self._loop: asyncio.AbstractEventLoop | None = None

    # Begin and end.

    async def start(self) -> None:
        """Open the folder and begin to recover its models, each in a thread; returns at once."""
        settings = self.settings
        settings.data.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._loop = asyncio.get_running_loop()
        with ExitStack() as opened:  # closed again if anything is wrong with the folder
            opened.enter_context(locked(settings.data / SERVICE))
            note = ServiceNote(settings.data)
            if (file := events_file(settings)) is not None:
                note.check_file(file)
            self._names = opened.enter_context(open_store(settings))
            if settings.is_shared_learner:
                opened.enter_context(self._names.only_writer(SERVICE))
            self._replaying = set(Journal.names(self._names))
            self._check_room(len(self._replaying))
            since = self._ran_until() if note.time is None else note.time
            note.identify(self._names, since, writes=not settings.follow)
            self.clock = ServiceClock(
                time.time() if settings.expire_overdue else since,
                settings.shortest_keep,
                note.save_time,
                wall=time.time,
                steady=time.monotonic,
            )
            opened.callback(self.clock.close)
            self._closing = opened.pop_all()
        atexit.register(self._end_with_interpreter)
        self._recoveries = [asyncio.create_task(self._recover(name)) for name in sorted(self._replaying)]
        self._tasks = [asyncio.create_task(self._note_ready())]
        if settings.is_shared_learner:
            self._tasks.append(asyncio.create_task(self._keep_lock()))
        if settings.follow:
            self._tasks.append(asyncio.create_task(self._follow_all()))

    def _check_room(self, n_models: int) -> None:
        """Raise if there are more models than this process may open files for."""
        most = self.settings.max_models
        if most is not None and n_models > most:
            words = f"{n_models:,} models need more open files than this process may have, which is enough for {most:,}"
            raise ValueError(f"{words}; raise `ulimit -Hn`, or allow fewer connections")

    def _ran_until(self) -> float:
        """When the last event was written; now if there is none."""
        found = []
        for stream in map(stream_of, self._replaying):
            with suppress(EventStoreError):  # damage, which shows when the model is recovered
                found += [event.time for event in self._names.events(stream, max(self._names.last(stream) - 1, 0))]
        return max(found, default=time.time())

    async def stop(self) -> None:
        """Finish what is queued, save snapshots, and close the folder."""
        atexit.unregister(self._end_with_interpreter)
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, *self._recoveries, return_exceptions=True)
        async with self._making:
            await asyncio.gather(*(model.stop() for model in self._models.values()))
            self._models.clear()
            self._closing.close()

    def _end_with_interpreter(self) -> None:
        """End all threads of a service that its program has not stopped.

        A thread that is in compiled code while the interpreter is taken down can bring the whole process down.
        """
        if self._loop is not None and self._loop.is_running():  # in a daemon thread: have it wait for the end
            waits = threading.Event()

            def wait() -> None:
                waits.set()
                threading.Event().wait()

            self._loop.call_soon_threadsafe(wait)
            waits.wait(_ENDING)
        for model in self._models.values():
            model.end()
        for model in self._models.values():
            model.join()

    async def _recover(self, name: str) -> None:
        try:
            self._models[name] = await asyncio.to_thread(self._host, name)
        except Exception as error:  # whatever it is: the others are served, and the name stays taken
            words = reason_in_words(error)
            if self._broken.get(name) != words:  # a replica tries again every second
                _log.error("model %s can't be recovered: %s", name, error)
            self._broken[name] = words
        else:
            self._broken.pop(name, None)
        finally:
            self._replaying.discard(name)

    def _host(self, name: str) -> HostedModel:
        assert self._loop is not None
        return HostedModel(name, open_store(self.settings), self.settings, self.clock, self._loop)

    async def _note_ready(self) -> None:
        await asyncio.gather(*map(asyncio.shield, self._recoveries))
        self._is_ready = True

    async def _keep_lock(self) -> None:
        """Take the lock again that a lost connection has taken along: a look at the store connects again."""
        outage = Outage("the lock of the event store")
        while True:
            await asyncio.sleep(_FOLLOWING)
            await _looked(outage, self._names.last, SERVICE)

    async def _follow_all(self) -> None:
        """Keep up with a learner elsewhere: with each of its models, those to come, and those that it deletes."""
        followed: dict[str, asyncio.Task[None]] = {}
        outage = Outage("looking for models in the event store")
        try:
            while True:
                found = await _looked(outage, Journal.names, self._names)
                names = set(followed if found is None else found)
                for name in names - set(followed) - self._replaying:
                    if name not in self._models:
                        await self._recover(name)
                    if name in self._models:
                        followed[name] = asyncio.create_task(self._follow(self._models[name]))
                for name in set(followed) - names:
                    followed.pop(name).cancel()
                    await self._models.pop(name).stop()
                if found is not None:
                    for name in set(self._broken) - names:
                        del self._broken[name]
                await asyncio.sleep(_FOLLOWING)
        finally:
            for task in followed.values():
                task.cancel()

    async def _follow(self, model: HostedModel) -> None:
        outage = Outage(f"following model {model.name}")
        while True:
            if await _looked(outage, model.follow, _FOLLOWING) is None:
                await asyncio.sleep(_FOLLOWING)

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
        # The others are not named here: a token may be for this one alone.
        raise ProblemError(404, "no such model", f"there is no model {name!r}; GET /v1/models lists those there are")

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
            try:
                self._check_room(len(self._models) + len(self._replaying) + len(self._broken) + 1)
            except ValueError as error:
                raise ProblemError(507, "too many models", f"the model was not created: {error}") from None
            made = await asyncio.to_thread(model_content, content)
            await asyncio.to_thread(self._write_new, name, request, made)
            await self._recover(name)
            return self.model(name), True

    def _write_new(self, name: str, request: str, content: bytes) -> None:
        with self._stored("the model was not created"), open_store(self.settings) as store:
            journal = Journal(store, name)
            number = store.last(journal.stream) + 1
            metrics = serve(from_bytes(content)).metrics_now
            journal.append("create", own_key("create", number), {"request": request, "metrics": metrics}, content)

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
        with self._stored("the model was not deleted"), open_store(self.settings) as store:
            Journal(store, name).delete()

    @contextmanager
    def _stored(self, undone: str) -> Iterator[None]:
        """A block that uses a store of its own, one at a time."""
        try:
            yield
        except EventStoreError as error:
            self._storing.failed(str(error.strerror), 1)
            raise storing_problem(error, undone) from None
        self._storing.ended()


async def _looked(outage: Outage, look: Callable[..., T], *arguments: Any) -> T | None:
    """What a look at the store gives; None if the store is not available at present."""
    try:
        found = await asyncio.to_thread(look, *arguments)
    except (EventStoreError, ProblemError) as error:
        outage.failed(str(error))
        return None
    outage.ended()
    return found
