"""A clock that jumps, or a service that was off for long, never deletes what waits without a confirmation."""

import logging
import time
from pathlib import Path
from typing import Any

import pytest

from onepass.service.clock import ServiceClock
from onepass.service.operations import Decide
from onepass.service.wire import DecideRequest, LabelRequest, LearnRequest, PredictRequest, RewardRequest
from tests.helpers.postgres_server import PostgresServer
from tests.service.running import Running, four_models, outcome, served

X: dict[str, Any] = {"a": 1.0, "b": -0.5}
HOUR, DAY = 3600.0, 86400.0


@pytest.fixture(params=["sqlite", "postgres"])
def events(request: pytest.FixtureRequest) -> str | None:
    """Where the events of a service are."""
    if request.param == "sqlite":
        return None
    server: PostgresServer = request.getfixturevalue("server")
    server.execute("DROP DATABASE IF EXISTS clocks WITH (FORCE)")
    server.execute("CREATE DATABASE clocks")
    return server.address(database="clocks")


@pytest.fixture
def set_clock(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Sets the clock of the system ahead by so many seconds."""
    real = time.time

    def set_clock(ahead: float) -> None:
        for place in ("time.time", "onepass.decisions.bandit.current_time"):
            monkeypatch.setattr(place, lambda: real() + ahead)

    return set_clock


def begin(running: Running) -> None:
    """A prediction, a label and a decision that wait."""
    for name in ("number", "bandit"):
        running.ask(running.state.create(name, four_models()[name]))
    running.ask(running.model("number").predict(PredictRequest(X, id="prediction")))
    running.ask(running.model("number").label(LabelRequest("label", 1.0)))
    running.ask(running.model("bandit").carry_out(Decide(DecideRequest([1.0, 2.0], id="decision"))))


def keep_house(running: Running) -> None:
    """Have the writers look for what has expired."""
    for model in running.state.models():
        model._next_look = 0.0
        for _ in range(3):  # the look itself follows the first, and what it asks of a bandit the second
            running.call(model.name, lambda model: None)


def waiting(running: Running) -> list[str]:
    """Ids of all that wait."""
    found = [running.ask(model.waiting()) for model in running.state.models()]
    return sorted(one["id"] for answer in found for kind in answer.values() for one in kind)


def test_a_clock_that_is_a_month_ahead_for_one_start_deletes_nothing(
    tmp_path: Path, events: str | None, set_clock: Any, caplog: pytest.LogCaptureFixture
) -> None:
    with served(tmp_path, events=events) as running:
        begin(running)
    for _ in range(2):  # also if it starts again and again
        set_clock(31 * DAY)
        caplog.clear()
        with caplog.at_level(logging.WARNING, "onepass.service"), served(tmp_path, events=events) as running:
            keep_house(running)
            running.ask(running.model("number").learn(LearnRequest(X, 1.0)))  # an event of that time
            keep_house(running)
            assert waiting(running) == ["decision", "label", "prediction"]
            assert {model.name: model.status()["overdue"] for model in running.state.models()} == {
                "number": 2,
                "bandit": 1,
            }
            assert running.model("number").counters["overdue"] == 2.0
        (warned,) = [one.getMessage() for one in caplog.records if "clock" in one.getMessage()]
        assert warned.startswith("the clock is 31 days")
        assert "--expire-overdue" in warned
    set_clock(0.0)
    with served(tmp_path, events=events) as running:
        keep_house(running)
        assert [model.status()["overdue"] for model in running.state.models()] == [0, 0]
        assert running.ask(running.model("number").label(LabelRequest("prediction", 1.0))).status == "learned"
        assert running.ask(running.model("number").predict(PredictRequest(X, id="label"))).learned
        assert running.ask(running.model("bandit").reward(RewardRequest("decision", 1.0))).n_seen == 1


def test_what_is_overdue_expires_once_the_operator_confirms_the_clock(
    tmp_path: Path, events: str | None, set_clock: Any, caplog: pytest.LogCaptureFixture
) -> None:
    with served(tmp_path, events=events) as running:
        begin(running)
    set_clock(31 * DAY)
    with served(tmp_path, events=events, expire_overdue=True) as running:
        keep_house(running)
        assert waiting(running) == []
        assert running.ask(outcome(running.model("number").label(LabelRequest("prediction", 1.0)))) == 410
        content = running.files()
    assert "the clock is" not in caplog.text
    with served(tmp_path, events=events) as running:  # what has expired is in the events
        assert running.files() == content
        assert [model.status()["overdue"] for model in running.state.models()] == [0, 0]


def test_a_short_pause_counts(tmp_path: Path, set_clock: Any) -> None:
    with served(tmp_path) as running:
        begin(running)
    set_clock(2.9 * DAY)
    with served(tmp_path) as running:
        keep_house(running)
        assert len(waiting(running)) == 3
    with served(tmp_path, keep_pending=2.8 * DAY) as running:  # the time has passed, and was seen
        keep_house(running)
        assert waiting(running) == []


def test_a_clock_that_jumps_while_the_service_runs_deletes_nothing(tmp_path: Path, set_clock: Any) -> None:
    with served(tmp_path) as running:
        begin(running)
        keep_house(running)
        running.state.clock._wall = lambda: time.time()
        set_clock(31 * DAY)
        keep_house(running)
        assert waiting(running) == ["decision", "label", "prediction"]
        assert running.model("number").status()["overdue"] == 2


def test_events_are_not_deleted_by_a_clock_that_has_jumped(tmp_path: Path, set_clock: Any) -> None:
    with served(tmp_path, keep_events=HOUR) as running:
        running.ask(running.state.create("number", four_models()["number"]))
        running.ask(running.model("number").learn(LearnRequest(X, 1.0)))
    set_clock(DAY)
    for confirmed, first in ((False, 1), (True, 3)):
        with served(tmp_path, keep_events=HOUR, expire_overdue=confirmed) as running:
            keep_house(running)
            found = running.call("number", lambda model: model.journal.store.first(model.journal.stream))
            assert found == first


def test_without_a_note_the_last_event_says_when_the_service_ran(tmp_path: Path, set_clock: Any) -> None:
    with served(tmp_path) as running:
        begin(running)
    (tmp_path / "service.json").unlink()
    set_clock(31 * DAY)
    with served(tmp_path) as running:
        keep_house(running)
        assert len(waiting(running)) == 3


class Clocks:
    """Clocks that are set by hand, and a service clock that keeps things for 100 days."""

    def __init__(self) -> None:
        self.wall = self.steady = self.saved = 0.0

    def start(self) -> ServiceClock:
        return ServiceClock(self.saved, 100 * DAY, self._save, wall=lambda: self.wall, steady=lambda: self.steady)

    def _save(self, time: float) -> None:
        self.saved = time

    def run(self, days: float) -> None:
        self.wall += days * DAY
        self.steady += days * DAY


def test_the_time_of_a_long_pause_is_made_up_for_slowly() -> None:
    clocks = Clocks()
    clock = clocks.start()
    clocks.run(5)
    assert (clock.now(), clock.behind()) == (5 * DAY, 0.0)
    clocks.wall += 30 * DAY
    assert (clock.now(), clock.behind()) == (5 * DAY, 30 * DAY)
    clocks.run(100)
    assert clock.now() == pytest.approx(115 * DAY)
    assert clock.behind() == pytest.approx(20 * DAY)
    clocks.run(101)
    assert clock.now() == clocks.wall  # the rest is a short pause


def test_a_service_that_starts_again_and_again_gets_no_older_by_that() -> None:
    clocks = Clocks()
    clocks.wall = 30 * DAY
    for _ in range(100):
        clock = clocks.start()
        clocks.run(0.001)
        clock.now()
        clock.close()
    assert clocks.saved == pytest.approx(0.11 * DAY)


def test_time_that_a_process_has_seen_is_noted_also_if_it_is_killed() -> None:
    clocks = Clocks()
    clock = clocks.start()
    for _ in range(20):
        clocks.run(1)
        clock.now()
    assert clocks.saved == 20 * DAY


def test_a_clock_that_is_set_back_is_followed() -> None:
    clocks = Clocks()
    clock = clocks.start()
    clocks.run(5)
    clock.now()
    clocks.wall -= 3 * DAY
    assert clock.now() == 2 * DAY


def test_a_note_that_can_not_be_written_stops_nothing(caplog: pytest.LogCaptureFixture) -> None:
    def full(time: float) -> None:
        raise OSError(28, "No space left on device")

    clock = ServiceClock(0.0, DAY, full, wall=lambda: 5.0, steady=lambda: 0.0)
    assert clock.now() == 5.0
    clock.close()
    assert "can't be noted" in caplog.text
