"""The one who writes a model's events and learns them: one thread per model, many requests per transaction.

Requests that come while a transaction is synced to the disk wait for the next one and share it (group commit). After
the transaction their events are learned, a copy of the model is published for predictions, and only then are the
requests answered. Where a copy takes long it is made less often; until then predictions are made here, with the model
itself, so that they include all that was acknowledged before they were asked for.

The store is right, whatever happens: where memory may differ from it, because a transaction may have ended unseen or a
durable event could not be applied, the model is made from the store again before anything else is done with it.
"""

import logging
import threading
import time
from asyncio import Future
from collections import deque
from collections.abc import Callable
from errno import ENOSPC, EROFS
from typing import Any

from onepass.events import EventStoreError
from onepass.service.counting import SECONDS, Durations
from onepass.service.errors import ProblemError, StoringProblemError, reason_in_words
from onepass.service.journal import Journal
from onepass.service.model_state import ModelState
from onepass.service.operations import Operation, WriterCall, prepare
from onepass.service.outages import Outage
from onepass.service.transaction import Transaction, reading

__all__ = ["Ticket", "Writer", "storing_problem"]

_log = logging.getLogger(__name__)
_GROUP = 256  # requests in one transaction
_PUBLISHING = 0.1  # share of the time that copies for predictions may take,
_CHEAP = 0.005  # unless a copy takes no longer than this, in seconds: then every group is followed by one
_SNAPSHOT_SECONDS = 5.0  # of learning, which recovery would have to do again
_SNAPSHOT_EVENTS = 10_000
RETRY_AFTER = 5.0  # seconds, which clients are asked to wait while the store is away
_ATTEMPTS = 5.0  # seconds between attempts to write again while there are no requests
_IDLE = 1.0  # seconds after which the writer looks around although there was no request


class Ticket:
    """An operation that waits, until when, and the future that gets its result; None if no client waits for it."""

    __slots__ = ("deadline", "future", "operation", "result")

    def __init__(self, operation: Operation, deadline: float, future: Future[Any] | None) -> None:
        self.operation, self.deadline, self.future = operation, deadline, future
        self.result: Any = None


class Writer(threading.Thread):
    """Writes and learns, in a thread of its own.

    Parameters
    ----------
    journal : of the model; only this thread uses it once it runs
    state : what its events have led to
    publish : is given the state after each group, to make what predictions are made with
    answer : is given the tickets of a group, with their results
    housekeeping : is called when there is time; whether there was something to look at
    """

    def __init__(
        self,
        journal: Journal,
        state: ModelState,
        publish: Callable[[ModelState], None],
        answer: Callable[[list[Ticket]], None],
        housekeeping: Callable[[], bool],
        *,
        queue: int,
        begin: int,
    ) -> None:
        super().__init__(name=f"writer of {journal.name}", daemon=True)
        self.journal = journal
        self.state: ModelState = state
        self._publish, self._answer, self._housekeeping = publish, answer, housekeeping
        self._limit = queue
        self._queue: deque[Ticket] = deque()
        self._looks: deque[Callable[[], None]] = deque()
        self._ready = threading.Condition()
        self._ends = self._deleted = False
        self._is_sound = True  # whether the state is what the events in the store have led to
        self._snapshot_at, self._learning = begin, 0.0
        self._copying = _Budget(_PUBLISHING)
        self.is_published: bool = True
        """Whether the copy for predictions includes all that was acknowledged."""
        self.commits = Durations(SECONDS)
        self.outage = Outage(f"model {journal.name}")
        """Why nothing can be written at present."""
        self._next_attempt = 0.0
        self._housekeeping_outage = Outage(f"housekeeping of model {journal.name}")

    # For others.

    def submit(self, ticket: Ticket) -> None:
        """Queue a request, from any thread; a full queue is a problem."""
        with self._ready:
            if self._deleted:
                raise _deleted(self.journal.name)
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

    def look(self, action: Callable[[], None]) -> bool:
        """Have something done that changes nothing, before the next group; from any thread. False if this has ended.

        It waits in no queue that may be full, and needs no store.
        """
        with self._ready:
            if self._ends:
                return False
            self._looks.append(action)
            self._ready.notify()
            return True

    @property
    def sound_state(self) -> ModelState | None:
        """The state, if it is what the events in the store have led to; for this thread."""
        return self.state if self._is_sound else None

    def end(self) -> None:
        """Finish what is queued, save a snapshot, and end."""
        with self._ready:
            self._ends = True
            self._ready.notify()

    # The thread.

    def run(self) -> None:
        """Take groups until asked to stop."""
        try:
            while (group := self._take()) is not None:
                while self._looks:
                    try:
                        self._looks.popleft()()
                    except Exception:
                        _log.exception("a look at the model %s failed", self.journal.name)
                if group:
                    self._carry_out([ticket for ticket in group if self._is_in_time(ticket)])
                    self._answer_all(group)
                elif self._copying.allows():
                    self.publish()
                self._keep_house()
            if self._is_sound and not self._deleted:
                self._save_snapshot(due=self._snapshot_at < self.state.version)
        finally:
            self.journal.close()

    def _take(self) -> list[Ticket] | None:
        """Requests that can share a transaction: those that concern the model as a whole come alone."""
        with self._ready:
            if not (self._queue or self._looks or self._ends):
                self._ready.wait(self._copying.pause() if self._is_sound and not self.is_published else _IDLE)
            if self._ends and not (self._queue or self._looks):
                return None
            group: list[Ticket] = []
            while self._queue and len(group) < _GROUP and not (group and self._queue[0].operation.alone):
                group.append(self._queue.popleft())
                if group[-1].operation.alone:
                    break
            return group

    def _is_in_time(self, ticket: Ticket) -> bool:
        """Whether a request has not waited too long; else that is its problem."""
        if ticket.deadline < time.monotonic():
            ticket.operation.problem = ProblemError(
                503, "too late", "the request waited too long in the queue and was not done", retry_after=1.0
            )
            if self.outage.reason is not None:
                self.outage.failed(self.outage.reason, 1)
        return ticket.operation.problem is None

    def _answer_all(self, group: list[Ticket]) -> None:
        for ticket in group:
            if ticket.operation.problem is not None:
                ticket.result = ticket.operation.problem
        self._answer(group)

    def _carry_out(self, tickets: list[Ticket]) -> None:
        if not tickets:
            return
        try:
            self._restore()
            if isinstance(tickets[0].operation, WriterCall):
                with reading(tickets[0].operation.undone):
                    tickets[0].result = tickets[0].operation.action()
            elif (written := self._write(tickets)) is not None:
                self._apply(written)
        except ProblemError as problem:
            self._refuse(dict.fromkeys(tickets, problem))
        except EventStoreError as error:
            self.outage.failed(str(error.strerror), sum(ticket.future is not None for ticket in tickets))
            self._refuse({ticket: storing_problem(error, ticket.operation.undone) for ticket in tickets})
        except Exception:  # whatever it is: the thread must go on
            if len(tickets) > 1:  # one request is to blame: the others must not suffer
                for ticket in tickets:
                    ticket.operation.problem = None
                    self._carry_out([ticket])
                return
            _log.exception("a request to %s failed", self.journal.name)
            self._refuse({ticket: _failed(ticket.operation.undone) for ticket in tickets})

    def _refuse(self, problems: dict[Ticket, ProblemError]) -> None:
        """Nothing of the group was written: tell everybody, and go back to what the store says if need be."""
        for ticket, problem in problems.items():
            ticket.operation.problem = problem
        self._try_to_restore()

    def _write(self, tickets: list[Ticket]) -> Transaction | None:
        """Store the events of requests; None if there are none."""
        with reading(tickets[0].operation.undone):  # one that reads the past is alone in its group
            prepare([ticket.operation for ticket in tickets], self.state, self.journal)
        sound = [ticket for ticket in tickets if ticket.operation.problem is None]
        if not sound:
            return None
        begin = time.perf_counter()
        try:
            with self.journal.transaction():
                transaction = Transaction(self.journal, self.state)
                for ticket in sound:
                    try:
                        ticket.result = transaction.carry_out(ticket.operation)
                    except ProblemError as problem:
                        ticket.operation.problem = problem
        except BaseException:
            self._is_sound = self._nothing_written()
            raise
        self.commits.add(time.perf_counter() - begin)
        self.outage.ended()
        return transaction if transaction.events else None

    def _nothing_written(self) -> bool:
        """Whether a transaction that failed is absent for sure: one whose end got lost may be there after all."""
        try:
            return self.journal.store.last(self.journal.stream) == self.journal.last
        except EventStoreError:
            return False

    def _apply(self, transaction: Transaction) -> None:
        """Apply what is durable now; the caller always gets an answer."""
        if transaction.becomes is not None:
            self._replace_state(transaction.becomes, transaction.becomes.version)
            return
        begin = time.perf_counter()
        self._is_sound = False
        try:
            for event, _, _ in transaction.events:
                self.journal.note(event)
            problems = self.state.apply([(event, prepared) for event, prepared, _ in transaction.events], self.journal)
            self.state.version = self.journal.last
            self._is_sound = True
        except Exception:
            _log.exception("events of %s that are stored can't be learned now", self.journal.name)
            self._try_to_restore()
            return
        for event, _, operation in transaction.events:
            operation.problem = problems.get(event.number)
        self._learning += time.perf_counter() - begin
        self.is_published = False
        if self._copying.allows():
            self.publish()
        self._save_snapshot(due=any(event.kind in ("promote", "shadow") for event, _, _ in transaction.events))

    def _restore(self) -> None:
        """Be what the store says."""
        if not self._is_sound:
            self._replace_state(*self.journal.recover())

    def _replace_state(self, state: ModelState, snapshot_at: int) -> None:
        """Go on with another state, which is what the store says."""
        self.state, self._snapshot_at, self._is_sound, self.is_published = state, snapshot_at, True, False
        self.publish()

    def _try_to_restore(self) -> None:
        try:
            self._restore()
        except Exception as error:  # the next request tries again, and gets the reason
            self._unreadable(error)

    def _unreadable(self, error: Exception) -> None:
        """Note that the store can't be read again, once per outage with what only a bug would explain."""
        if self.outage.reason is None and not isinstance(error, EventStoreError):
            _log.error("%s can't be read again", self.journal.name, exc_info=error)
        self.outage.failed(f"it can't be read again: {reason_in_words(error)}")

    def _keep_house(self) -> None:
        try:
            if self.outage.reason is not None:
                self._attempt()
            elif self._is_sound and not self._ends and self._housekeeping():
                self._housekeeping_outage.ended()
        except EventStoreError as error:
            # Of a full disk an attempt follows; old events that can't be read do not keep others from being written.
            (self._housekeeping_outage if error.is_of_content else self.outage).failed(str(error.strerror))
        except Exception:  # the next look tries again
            _log.exception("housekeeping of %s failed", self.journal.name)

    def _attempt(self) -> None:
        """During an outage, find out by a snapshot whether it is over: there may be no request that would show it."""
        if time.monotonic() < self._next_attempt or self._deleted:
            return
        self._next_attempt = time.monotonic() + _ATTEMPTS
        try:
            self._restore()
        except Exception as error:
            self._unreadable(error)
            return
        self.journal.save(self.state)
        self._snapshot_at, self._learning = self.state.version, 0.0
        self.outage.ended()

    def delete(self) -> None:
        """Delete the model and end; for the writer's thread."""
        self.journal.delete()
        with self._ready:
            self._ends = self._deleted = True
            rest = list(self._queue)
            self._queue.clear()
        for ticket in rest:
            ticket.result = _deleted(self.journal.name)
        self._answer(rest)

    def carry_out_now(self, operation: Operation) -> None:
        """Carry out an operation as a part of a call, so that nothing comes between; for the writer's thread."""
        if (written := self._write([Ticket(operation, float("inf"), None)])) is not None:
            self._apply(written)
        if operation.problem is not None:
            raise operation.problem
        self._restore()  # what is stored but could not be applied

    def publish(self) -> None:
        """Make a copy for predictions if there is something new to copy; for the writer's thread."""
        if self.is_published or not self._is_sound:
            return
        try:
            with self._copying:
                self._publish(self.state)
            self.is_published = True
        except Exception:  # predictions are made here, and another attempt follows
            _log.exception("no copy of %s for predictions", self.journal.name)

    def _save_snapshot(self, *, due: bool) -> None:
        new = self.state.version - self._snapshot_at
        if not (due or self._learning > _SNAPSHOT_SECONDS or new > _SNAPSHOT_EVENTS):
            return
        try:
            self.journal.save(self.state)
        except Exception as error:  # events count without it; the next group tries again
            _log.warning("no snapshot of %s: %s", self.journal.name, error)
            return
        self._snapshot_at, self._learning = self.state.version, 0.0


class _Budget:
    """Sees to it that something takes a share of the time at most; a context manager around it.

    What it takes is the thread's own time: a machine that is busy with other things does not count.
    """

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
        self._begin = time.thread_time()

    def __exit__(self, *raised: object) -> None:
        self._last, self._cost = time.monotonic(), time.thread_time() - self._begin
        if raised[0] is not None:  # not at once again
            self._cost = max(self._cost, self._share * _IDLE)


def storing_problem(error: EventStoreError, undone: str) -> StoringProblemError:
    """The problem of a request that can't be stored, beginning with what was not done."""
    status, title = (503, "store not available") if error.is_temporary else (507, "can't be stored")
    later = "; send the request again later" if error.errno in (ENOSPC, EROFS) else ""
    return StoringProblemError(status, title, f"{undone}: {error.strerror}{later}", retry_after=RETRY_AFTER)


def _failed(undone: str) -> ProblemError:
    return ProblemError(500, "internal error", f"the request failed, and {undone}")


def _deleted(name: str) -> ProblemError:
    return ProblemError(404, "no such model", f"the model {name!r} was deleted")
