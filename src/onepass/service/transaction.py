"""What one group of requests adds to the events of a model: each is planned, and its changes are appended."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from onepass.decisions.planned import Planned
from onepass.events import Event, EventStoreError
from onepass.service.errors import ProblemError
from onepass.service.journal import Journal
from onepass.service.model_state import ModelState, Prepared
from onepass.service.operations import Operation, plan_once

__all__ = ["Transaction", "reading"]


class Transaction:
    """A transaction of the store, in which requests are planned one after the other.

    Attributes
    ----------
    state : of the model before it
    planned : decisions and rewards of a bandit that it makes
    events : what it has appended, with rows that are read already, and the request
    becomes : what it leads to, where that is stored with it
    """

    def __init__(self, journal: Journal, state: ModelState) -> None:
        self._journal = journal
        self.state: ModelState = state
        self.planned: Planned = Planned()
        self.events: list[tuple[Event, Prepared | None, Operation]] = []
        self.becomes: ModelState | None = None
        self._first = self.next_number
        self._more_rows = 0
        self._undone = ""

    def carry_out(self, operation: Operation) -> Any:
        """Plan a request and append what it changes, to be applied after the transaction; returns its answer."""
        self._undone = operation.undone
        plan = plan_once(operation, self)
        for kind, key, payload, blob, n_rows, prepared in plan.changes:
            event = self._journal.append(kind, key, {**payload, "group": self._first}, blob)
            self.events.append((event, prepared, operation))
            self._more_rows += n_rows
        if plan.becomes is not None:
            self._journal.save(plan.becomes)
            self.becomes = plan.becomes
        return plan.answer

    def find(self, kind: str, key: str) -> Event | None:
        """An event, also one of this transaction."""
        with reading(self._undone):
            return self._journal.find(kind, key)

    @property
    def next_number(self) -> int:
        """Number of the next event."""
        return self._journal.last + 1

    def n_seen(self, more: int) -> int:
        """Rows that the model will have learned with an event of ``more`` rows that comes next."""
        return self.state.champion.n_seen + self._more_rows + more


@contextmanager
def reading(undone: str) -> Iterator[None]:
    """A block that reads: damaged events refuse the request that needs them, and others are still written."""
    try:
        yield
    except EventStoreError as error:
        if not error.is_of_content:
            raise
        raise ProblemError(410, "content damaged", f"{undone}: {error.strerror}") from error
