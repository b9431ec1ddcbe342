"""The one who writes a model's events and learns them: one thread per model, many requests per transaction.

Requests that come while a transaction is synced to the disk wait for the next one and share it (group commit). After
the transaction their events are learned, a copy of the model is published for predictions, and only then are the
answers given.
"""

import logging
import threading
import time
from collections import deque
from collections.abc import Callable
from errno import EACCES, EDQUOT, EFBIG, EIO, ENOSPC, EROFS
from typing import Any

from onepass.files.events import Event, EventStoreError
from onepass.service.errors import ProblemError
from onepass.service.journal import Journal
from onepass.service.learner import Learner, Prepared
from onepass.service.operations import Call, Operation, prepare
from onepass.service.served import BanditModel, RowModel

__all__ = ["Ticket", "Writer"]

_log = logging.getLogger(__name__)
_GROUP = 256  # requests in one transaction
_PUBLISHING = 0.1  # share of the time that copies for predictions may take,
_CHEAP = 0.002  # unless a copy takes no longer than this, in seconds: then every group is followed by one
_SNAPSHOT_SECONDS = 5.0  # of learning, which recovery would have to do again
_SNAPSHOT_EVENTS = 10_000
_IDLE = 1.0  # seconds after which the writer looks around although nobody has asked for anything
_UNWRITABLE = {ENOSPC, EROFS, EACCES, EDQUOT, EFBIG, EIO}


class Ticket:
    """An operation that waits, until when, and who is told the result."""

    __slots__ = ("deadline", "operation", "resolve", "result")

    def __init__(self, operation: Operation, deadline: float, resolve: Callable[[Any], None]) -> None:
        self.operation, self.deadline, self.resolve = operation, deadline, resolve
        self.result: Any = None


class Writer(threading.Thread):
    """Writes and learns, in a thread of its own.

    Parameters
    ----------
    journal : of the model; only this thread uses it once it runs
    learner : what its events have led to
    publish : is given the learner after each group, to make what predictions are made with
    answer : is given the tickets of a group, with their results
    housekeeping : is called when there is time
    """

    def __init__(
        self,
        journal: Journal,
        learner: Learner,
        publish: Callable[[Learner], None],
        answer: Callable[[list[Ticket]], None],
        housekeeping: Callable[[], None],
        *,
        queue: int,
        begin: int,
    ) -> None:
        super().__init__(name=f"writer of {journal.name}", daemon=True)
        self.journal, self.learner = journal, learner
        self._publish, self._answer, self._housekeeping = publish, answer, housekeeping
        self._limit = queue
        self._queue: deque[Ticket] = deque()
        self._ready = threading.Condition()
        self._ends = False
        self._events: list[tuple[Event, Prepared | None]] = []
        self._more_rows = 0
        self._snapshot_at, self._learning = begin, 0.0
        self._copying = _Budget(_PUBLISHING)
        self._stale = False
        self.commit_seconds, self.commits = 0.0, 0
        self.failure: str | None = None
        """Why nothing can be written at present."""

    # For others.

    def submit(self, ticket: Ticket) -> None:
        """Queue a request, from any thread; a full queue is a problem."""
        with self._ready:
            if self._ends:
                raise ProblemError(503, "shutting down", "the service is shutting down", retry_after=5.0)
            if len(self._queue) >= self._limit:
                raise ProblemError(
                    429,
                    "too many requests",
                    f"{len(self._queue)} requests wait to be learned by {self.journal.name!r}; try again later",
                    retry_after=1.0,
                )
            self._queue.append(ticket)
            self._ready.notify()

    def __len__(self) -> int:
        return len(self._queue)

    def end(self) -> None:
        """Finish what is queued, save a snapshot, and end."""
        with self._ready:
            self._ends = True
            self._ready.notify()

    # The thread.

    def run(self) -> None:
        """Take groups until told to end."""
        while True:
            group = self._take()
            if group is None:
                break
            if group:
                self._serve(group)
            elif self._stale:
                self._publish_now()
            self._housekeeping()
        self._save_snapshot(due=self._snapshot_at < self.learner.version)
        self.journal.store.close()

    def _take(self) -> list[Ticket] | None:
        with self._ready:
            if not self._queue and not self._ends:
                self._ready.wait(self._copying.pause() if self._stale else _IDLE)
            if self._ends and not self._queue:
                return None
            group: list[Ticket] = []
            while self._queue and len(group) < _GROUP and not (group and self._queue[0].operation.alone):
                group.append(self._queue.popleft())
                if group[-1].operation.alone:
                    break
            return group

    def _serve(self, group: list[Ticket]) -> None:
        now = time.monotonic()
        for ticket in group:
            if ticket.deadline < now:
                ticket.operation.problem = ProblemError(
                    503, "too late", "the request waited for too long and was not carried out", retry_after=1.0
                )
        waiting = [ticket for ticket in group if ticket.operation.problem is None]
        calls = [ticket for ticket in waiting if isinstance(ticket.operation, Call)]
        writing = [ticket for ticket in waiting if not isinstance(ticket.operation, Call)]
        if writing:
            try:
                self._write(writing)
            except Exception as error:  # whatever it is: the thread must go on
                self._fail(writing, error)
        for ticket in calls:
            ticket.result = _outcome(ticket.operation.action)  # type: ignore[attr-defined]
        for ticket in group:
            if ticket.operation.problem is not None:
                ticket.result = ticket.operation.problem
        self._answer(group)

    def _write(self, tickets: list[Ticket]) -> None:
        prepare([ticket.operation for ticket in tickets], self.learner)
        sound = [ticket for ticket in tickets if ticket.operation.problem is None]
        if not sound:
            return
        self._events, self._more_rows = [], 0
        begin = time.perf_counter()
        with self.journal.transaction():
            for ticket in sound:
                try:
                    ticket.result = ticket.operation.write(self)
                except ProblemError as problem:
                    ticket.operation.problem = problem
        self.commit_seconds += time.perf_counter() - begin
        self.commits += 1
        self.failure = None
        if self._events:
            self._learn(sound)

    def _learn(self, tickets: list[Ticket]) -> None:
        begin = time.perf_counter()
        problems = {}
        for event, prepared in self._events:
            self.journal.note(event)
            if not isinstance(self.learner.champion, BanditModel) or event.kind in ("rollback", "shadow"):
                problems[event.key] = self.learner.apply(event, self.journal, prepared)
        self.learner.version = self.journal.last
        self._learning += time.perf_counter() - begin
        for ticket in tickets:
            problem = problems.get(getattr(ticket.operation, "id", ""))
            if problem is not None:
                ticket.operation.problem = problem
        self.keep_bandit()
        self._stale = True
        if self._copying.allows():
            self._publish_now()
        self._save_snapshot(due=any(event.kind in ("rollback", "promote", "shadow") for event, _ in self._events))

    def keep_bandit(self) -> None:
        """Have a bandit write its changes here."""
        if isinstance(self.learner.champion, BanditModel):
            self.learner.champion.keep_in(self._append_change, self.next_number)

    def _append_change(self, kind: str, key: str, payload: dict[str, Any], blob: bytes) -> None:
        self._events.append((self.journal.append(kind, key, payload, blob), None))

    def _publish_now(self) -> None:
        if isinstance(self.learner.champion, RowModel):
            with self._copying:
                self._publish(self.learner)
        else:
            self._publish(self.learner)
        self._stale = False

    def _save_snapshot(self, *, due: bool) -> None:
        new = self.learner.version - self._snapshot_at
        if not (due or self._learning > _SNAPSHOT_SECONDS or new > _SNAPSHOT_EVENTS):
            return
        try:
            self.journal.save(self.learner)
        except EventStoreError as error:  # events count without it; the next group tries again
            _log.warning("no snapshot of %s: %s", self.journal.name, error)
            return
        self._snapshot_at, self._learning = self.learner.version, 0.0

    def _fail(self, tickets: list[Ticket], error: Exception) -> None:
        """Nothing of the group was written: tell everybody, and go back to what the store says if need be."""
        if isinstance(error, EventStoreError):
            self.failure = str(error.strerror)
            status = 507 if error.errno in _UNWRITABLE else 503
            title = "can't be stored" if status == 507 else "busy"
            problem = ProblemError(status, title, f"nothing was learned: {error.strerror}", retry_after=5.0)
        else:
            _log.exception("a group of requests to %s failed", self.journal.name)
            problem = ProblemError(500, "internal error", "the request failed, and nothing was learned; see the log")
        for ticket in tickets:
            ticket.operation.problem = problem
        if isinstance(self.learner.champion, BanditModel) or not isinstance(error, EventStoreError):
            self._reload()

    def _reload(self) -> None:
        """Be what the store says: a bandit may be ahead of a transaction that was undone."""
        try:
            self.learner, _ = self.journal.recover()
        except (EventStoreError, ProblemError):
            _log.exception("%s can't be read again", self.journal.name)
            return
        self.keep_bandit()
        self._publish_now()

    # What operations see: see onepass.service.operations.Desk.

    def find(self, kind: str, key: str) -> Event | None:
        """An event, also one of this transaction."""
        return self.journal.find(kind, key)

    def write(
        self, kind: str, key: str, payload: dict[str, Any], blob: bytes = b"", prepared: Prepared | None = None
    ) -> Event:
        """Append an event, to be applied after the transaction."""
        event = self.journal.append(kind, key, payload, blob)
        self._events.append((event, prepared))
        return event

    def next_number(self) -> int:
        """Number of the next event."""
        return self.journal.last + 1

    def n_seen(self, more: int) -> int:
        """Rows that the model will have learned with this event."""
        self._more_rows += more
        return self.learner.champion.n_seen + self._more_rows


class _Budget:
    """Sees to it that something takes a share of the time at most; a context manager around it."""

    def __init__(self, share: float) -> None:
        self._share, self._cost, self._last = share, 0.0, float("-inf")
        self._begin = 0.0

    def pause(self) -> float:
        """Seconds until it is allowed again."""
        return max(self._last + self._cost / self._share - time.monotonic(), 0.0)

    def allows(self) -> bool:
        """Whether it is allowed now."""
        return self._cost < _CHEAP or self.pause() == 0.0

    def __enter__(self) -> None:
        self._begin = time.monotonic()

    def __exit__(self, *raised: object) -> None:
        self._last = time.monotonic()
        self._cost = self._last - self._begin


def _outcome(action: Callable[[], Any]) -> Any:
    try:
        return action()
    except ProblemError as problem:
        return problem
    except EventStoreError as error:
        return ProblemError(507, "can't be stored", str(error.strerror), retry_after=5.0)
    except Exception:
        _log.exception("a call failed")
        return ProblemError(500, "internal error", "the request failed; see the log")
