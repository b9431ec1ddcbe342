"""The example on the page about adding an event store, taken from there and tried out."""

from pathlib import Path
from typing import Any

import pytest

from onepass.events import opening
from onepass.files.lock import LockedError
from onepass.service.checking import check_state
from onepass.service.wire import LearnRequest
from tests.helpers.extending import run_page
from tests.service.running import regressor, served


class _Loads:
    """An entry point of what the page defines."""

    def __init__(self, found: Any) -> None:
        self.found = found

    def load(self) -> Any:
        return self.found


@pytest.fixture
def address(monkeypatch: pytest.MonkeyPatch) -> str:
    store = run_page("event-store", __name__="onepass.events.memory")["MemoryEventStore"]
    monkeypatch.setattr(opening, "plugins", lambda kind: {"memory": _Loads(store)})
    return "memory://trial"


def test_a_service_learns_into_the_store_and_goes_on_where_it_was(address: str, tmp_path: Path) -> None:
    with served(tmp_path, events=address) as running:
        running.ask(running.state.create("m", regressor()))
        assert running.ask(running.model("m").learn(LearnRequest([0.5, 1.0], 2.0, id="a"))).n_seen == 4
        before = running.files()
        assert "is in use" in check_state(address)[0]
    assert check_state(address) == []
    with served(tmp_path, events=address) as running:
        assert running.files() == before
        assert running.ask(running.model("m").learn(LearnRequest([0.5, 1.0], 2.0, id="a"))).n_seen == 4  # not again
    assert not list(tmp_path.glob("events.sqlite*"))


def test_a_transaction_is_whole_or_absent_and_locks_exclude_each_other(address: str) -> None:
    one, other = opening.open_event_log(address), opening.open_event_log(address)

    def interrupted() -> None:
        with one.transaction():
            one.append("s", "k", "a")
            raise RuntimeError("in the middle")

    with pytest.raises(RuntimeError):
        interrupted()
    assert other.last("s") == 0
    with one.only_writer("s"), pytest.raises(LockedError), other.only_writer("s"):
        pass
    assert [event.key for event in (other.append("s", "k", "b"), one.append("s", "k", "c"))] == ["b", "c"]
    assert [event.number for event in one.events("s")] == [1, 2]
