"""A model that can't be loaded because of one event: a check names it, a repair restores the last good version."""

import json
import re
from errno import EBADMSG
from pathlib import Path
from typing import Any

import pytest

from onepass.events import Event, EventStoreError
from onepass.files.lock import LockedError
from onepass.service.checking import check_state
from onepass.service.journal import Journal, own_key, stream_of
from onepass.service.repair import Repaired, bad_event, repair_model
from onepass.service.settings import ServiceSettings
from onepass.service.state import EVENTS, open_store
from onepass.service.wire import LabelRequest, LearnRequest, PredictRequest
from tests.helpers.postgres_server import PostgresServer
from tests.service.running import Running, four_models, regressor, served

M = stream_of("m")


class Place:
    """The folder of a service with the models m and bandit, and its event store."""

    def __init__(self, folder: Path, events: str | None) -> None:
        self.settings = ServiceSettings(folder, events=events)
        with self.served() as service:
            service.ask(service.state.create("m", regressor()))
            service.ask(service.state.create("bandit", four_models()["bandit"]))
            self.files = [service.ask(service.model("m").file())]
            for i in range(4):
                learn(service, i)
                self.files.append(service.ask(service.model("m").file()))

    def served(self) -> Any:
        """A service for the length of a block."""
        return served(self.settings.data, events=self.settings.events)

    @property
    def checked(self) -> Path | str:
        """What a check is given."""
        return self.settings.events or self.settings.data

    def change(self, statement: str, **values: Any) -> None:
        """Do to the tables what the store never does."""
        with open_store(self.settings) as store:
            store._database.rows(statement, values)

    def without_snapshots(self) -> None:
        """Have a start read all events of m."""
        self.change("DELETE FROM snapshots WHERE stream = :stream", stream=M)

    def append(self, kind: str, payload: dict[str, Any], blob: bytes = b"") -> Event:
        """Write an event as only a bug could."""
        with open_store(self.settings) as store:
            return store.append(M, kind, own_key(kind, store.last(M) + 1), payload, blob)

    def repaired(self) -> Repaired:
        """What a repair of m has done."""
        found = repair_model(self.settings, "m")
        assert found is not None
        return found


@pytest.fixture(params=["sqlite", "postgres"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    if request.param == "sqlite":
        return Place(tmp_path / "state", None)
    server = request.getfixturevalue("server")
    name = f"onepass{abs(hash(tmp_path))}"
    server.execute(f"CREATE DATABASE {name}")
    return Place(tmp_path / "state", server.address(database=name))


def learn(service: Running, i: int) -> None:
    """Let m learn the row with a number."""
    found = service.ask(service.model("m").learn(LearnRequest([1.0, float(i)], 0.5 * i, id=f"row {i}")))
    assert found.status == "learned"


def lines(file: Path) -> list[dict[str, Any]]:
    """What a file of lost events lists."""
    return [json.loads(line) for line in file.read_text().splitlines()]


def problem_of(place: Place) -> str:
    """The sentence of a check about the model m."""
    (found,) = [words for words in check_state(place.checked) if words.startswith("The model 'm'")]
    return found


def goes_on(place: Place, restored: bytes, more: list[int]) -> None:
    """The model is there, learns, survives a restart and is found right."""
    with place.served() as service:
        assert service.state.broken == {}
        model = service.model("m")
        assert service.ask(model.file()) == restored
        for i in more:
            learn(service, i)
        after = service.ask(model.file())
    with place.served() as service:
        assert service.ask(service.model("m").file()) == after
    assert check_state(place.checked) == []


def test_an_event_that_refers_to_a_past_that_is_gone(place: Place) -> None:
    """What a rollback was that a deletion came before."""
    with place.served() as service:
        service.ask(service.model("m").forget("row 1"))
    event = place.append("rollback", {"to": 3, "group": 6})
    assert re.match(
        r"The model 'm' can't be recovered: event 6 \(rollback\) can't be replayed: .*event 3 was deleted.*\. "
        r"The last good version is 5: restore a backup, or return to it by 'onepass admin repair .* m'\.",
        problem_of(place),
    )
    with place.served() as service:
        assert set(service.state.broken) == {"m"}
    done = place.repaired()
    assert (done.event.number, done.event.kind, done.good, done.version, done.n_lost) == (6, "rollback", 5, 7, 1)
    (lost,) = lines(done.file)
    assert lost == {
        "number": 6,
        "condition": "whole",
        "kind": "rollback",
        "id": event.key,
        "time": event.time,
        "payload": {"to": 3, "group": 6},
    }
    goes_on(place, place.files[4], [4, 5])


def test_an_event_that_was_changed_and_those_after_it(place: Place) -> None:
    place.without_snapshots()
    place.change("UPDATE events SET time = 0.0 WHERE stream = :stream AND number = 4", stream=M)
    assert "event 4 (learn) can't be replayed: event 4 of stream 'model/m' is not what was written" in problem_of(place)
    assert "The last good version is 3:" in problem_of(place)
    done = place.repaired()
    assert (done.good, done.version, done.n_lost) == (3, 6, 2)
    found = lines(done.file)
    assert [(one["number"], one["condition"], one["kind"], one["id"]) for one in found] == [
        (4, "changed", "learn", "row 2"),
        (5, "whole", "learn", "row 3"),
    ]
    assert found[0]["content"] == {"x": [1.0, 2.0]}
    assert found[1]["payload"]["y"] == 1.5
    goes_on(place, place.files[2], [2, 3, 4])  # what was lost is sent again, under the same ids
    with place.served() as service:
        assert service.model("m").status()["n_seen"] == 3 + 5


def test_an_event_that_is_missing(place: Place) -> None:
    place.without_snapshots()
    place.change("DELETE FROM events WHERE stream = :stream AND number = 3", stream=M)
    assert "event 3 (missing) can't be replayed" in problem_of(place)
    done = place.repaired()
    assert (done.good, done.n_lost) == (2, 3)
    assert lines(done.file)[0] == {"number": 3, "condition": "missing", "kind": None, "id": None, "time": None}
    goes_on(place, place.files[1], [1, 2, 3])


def test_an_event_that_nothing_can_be_made_of(place: Place) -> None:
    """Whatever an event raises: also what no line of the library foresees."""
    place.append("shadow", {}, b"not a model")
    place.append("wish", {"for": "rain"})
    assert "event 6 (shadow) can't be replayed" in problem_of(place)
    done = place.repaired()
    assert (done.good, done.n_lost) == (5, 2)
    assert "content_base64" in lines(done.file)[0]
    goes_on(place, place.files[4], [4])


def test_labels_and_predictions_before_the_bad_event_still_find_each_other(place: Place) -> None:
    with place.served() as service:
        model = service.model("m")
        service.ask(model.predict(PredictRequest([1.0, 1.0], id="a")))
        service.ask(model.predict(PredictRequest([1.0, 2.0], id="b")))
        service.ask(model.label(LabelRequest("a", 2.0)))
    place.without_snapshots()
    place.change("UPDATE events SET blob = NULL WHERE stream = :stream AND kind = 'label'", stream=M)
    done = place.repaired()
    assert (done.event.kind, done.good) == ("label", 7)
    with place.served() as service:
        model = service.model("m")
        assert set(model.journal.pending) == {"a", "b"}
        assert service.ask(model.label(LabelRequest("a", 2.0))).status == "learned"


def test_a_damaged_label_that_the_snapshot_includes_no_longer_waits_and_the_model_is_served(
    place: Place, caplog: pytest.LogCaptureFixture
) -> None:
    with place.served() as service:
        service.ask(service.model("m").label(LabelRequest("early", 2.0)))
    place.change("UPDATE events SET time = 0.0 WHERE stream = :stream AND kind = 'label'", stream=M)
    assert any("event 6 of stream 'model/m'" in words for words in check_state(place.checked))
    assert repair_model(place.settings, "m") is None
    with place.served() as service:
        assert service.state.broken == {}
        assert service.model("m").journal.waiting == {}
    assert "model m: the label 'early' can't be read and no longer waits" in caplog.text


def test_a_failure_that_no_event_is_to_blame_for_is_told_as_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = Place(tmp_path / "state", None)

    def fail(journal: Journal) -> None:
        raise EventStoreError(EBADMSG, "something is damaged")

    monkeypatch.setattr(Journal, "recover", fail)
    with pytest.raises(EventStoreError, match="something is damaged"):
        repair_model(place.settings, "m")
    assert problem_of(place) == "The model 'm' can't be recovered: something is damaged."


def test_a_second_repair_keeps_the_file_of_the_first(tmp_path: Path) -> None:
    place = Place(tmp_path / "state", None)
    place.append("rollback", {"to": 99})
    first = place.repaired()
    content = first.file.read_bytes()
    place.without_snapshots()
    second = place.repaired()
    assert second.event.number == first.event.number
    assert (first.file.name, second.file.name) == ("lost-m-6.jsonl", "lost-m-6-2.jsonl")
    assert first.file.read_bytes() == content


@pytest.mark.parametrize("events", [None, "other.sqlite"])
def test_a_repair_creates_no_event_store(tmp_path: Path, events: str | None) -> None:
    settings = ServiceSettings(tmp_path, events=None if events is None else str(tmp_path / events))
    with pytest.raises(EventStoreError, match="there is no such file of events, so there is no model to repair"):
        repair_model(settings, "m")
    assert list(tmp_path.iterdir()) == []


def test_a_repair_without_the_file_of_events_says_that_it_is_gone(tmp_path: Path) -> None:
    place = Place(tmp_path / "state", None)
    for path in place.settings.data.glob(f"{EVENTS}*"):
        path.unlink()
    with pytest.raises(EventStoreError, match="the file is missing, and it had events"):
        repair_model(place.settings, "m")


def test_the_middle_of_a_group_is_a_version_too(tmp_path: Path) -> None:
    place = Place(tmp_path / "state", None)
    with open_store(place.settings) as store, store.transaction():
        for i, (x, key) in enumerate([(b'{"x":[1.0,2.0]}', "p"), (b'{"x":[1.0,3.0]}', "q"), (b"", "r")]):
            payload = {"y": 1.0, "request": "", "group": 6, "answer": {"status": "learned", "n": i}}
            store.append(M, "learn", key, payload, x)
    with open_store(place.settings) as store:
        bad = bad_event(Journal(store, "m"))
    assert bad is not None
    assert bad.before is not None
    assert (bad.number, bad.before.version, bad.before.champion.n_seen) == (8, 7, 3 + 4 + 2)


def test_a_model_without_any_good_version_is_left_as_it_is(place: Place) -> None:
    place.without_snapshots()
    place.change("UPDATE events SET time = 0.0 WHERE stream = :stream AND number = 1", stream=M)
    assert "event 1 (create) can't be replayed" in problem_of(place)
    assert "No version of it can be restored: restore a backup" in problem_of(place)
    with pytest.raises(ValueError, match="no version of it can be restored; restore a backup"):
        repair_model(place.settings, "m")
    assert not list(place.settings.data.glob("lost-*"))


def test_what_is_sound_or_absent_or_in_use_is_not_repaired(place: Place) -> None:
    assert repair_model(place.settings, "m") is None
    with pytest.raises(ValueError, match="there is no model 'n'; there are 'bandit', 'm'"):
        repair_model(place.settings, "n")
    with place.served(), pytest.raises(LockedError):
        repair_model(place.settings, "m")
    assert not list(place.settings.data.glob("lost-*"))


def test_the_other_models_are_left_alone(place: Place) -> None:
    with open_store(place.settings) as store:
        before = list(store.events(stream_of("bandit")))
    place.append("rollback", {"to": 99})
    place.repaired()
    with open_store(place.settings) as store:
        assert list(store.events(stream_of("bandit"))) == before


def test_a_repair_that_fails_changes_nothing(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    place.append("rollback", {"to": 99})

    def full(*given: Any, **named: Any) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(Journal, "save", full)
        with pytest.raises(OSError, match="No space left"):
            repair_model(place.settings, "m")
    assert "event 6 (rollback) can't be replayed" in problem_of(place)
    assert place.repaired().good == 5


def test_a_database_is_checked_while_no_learner_uses_it_and_nothing_is_written(
    server: PostgresServer, tmp_path: Path
) -> None:
    server.execute("CREATE DATABASE empty")
    empty = server.address(database="empty")
    assert check_state(empty) == ["The event store can't be read: there is no event store in this database."]
    assert server.execute("SELECT 1 FROM pg_namespace WHERE nspname = 'onepass'", "empty") == []
    place = Place(tmp_path / "state", empty)
    told: list[str] = []
    assert check_state(empty, told.append) == []
    assert told[-1] == "The model 'm' is right: its events were replayed from its beginning, up to event 5."
    with place.served():
        (problem,) = check_state(empty)
        assert problem.startswith("The database is in use, stop the service first")
