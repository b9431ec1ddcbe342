"""The check of a state folder: it finds what is wrong, says it in one sentence, and changes nothing."""

import os
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from onepass.events import EventStore
from onepass.service.checking import check_state, replayed
from onepass.service.errors import ProblemError
from onepass.service.journal import Journal, stream_of
from onepass.service.model_state import ModelState
from onepass.service.state import EVENTS
from onepass.service.wire import LabelRequest, LearnRequest, PredictRequest, RollbackRequest
from tests.service.running import Running, crashed_copy, four_models, opened, regressor, served


def taught(folder: Path) -> Path:
    """A folder with two models that have learned."""
    with served(folder) as running:
        running.ask(running.state.create("m", regressor()))
        running.ask(running.state.create("bandit", four_models()["bandit"]))
        learn(running, 0, 5)
    return folder


def learn(running: Running, begin: int, end: int) -> None:
    """Let the model m learn some rows."""
    for i in range(begin, end):
        running.ask(running.model("m").learn(LearnRequest([1.0, float(i)], 0.5 * i, id=f"row {i}")))


def contents(folder: Path) -> dict[str, bytes]:
    """All files of a folder."""
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def execute(folder: Path, statement: str, *values: Any) -> None:
    """Change the tables."""
    with EventStore(folder / EVENTS) as store:
        assert opened(store).execute(statement, values).rowcount > 0


def test_a_sound_folder_is_left_as_it_is(tmp_path: Path) -> None:
    folder = taught(tmp_path / "state")
    before = contents(folder)
    assert check_state(folder) == []
    assert contents(folder) == before


@contextmanager
def nothing_written(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Fail if a file in a folder is opened for writing; root may write to a read-only folder, so modes don't tell."""
    real = os.open

    def guarded(path: Any, flags: int, *rest: Any, **named: Any) -> int:
        assert Path(path).parent != folder or flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT) == 0, path
        return real(path, flags, *rest, **named)

    with monkeypatch.context() as patched:
        patched.setattr(os, "open", guarded)
        yield


def test_nothing_is_written_not_even_a_lock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = taught(tmp_path / "state")
    for path in (*folder.iterdir(), folder):
        path.chmod(0o555)
    try:
        with nothing_written(folder, monkeypatch):
            assert check_state(folder) == []
    finally:
        folder.chmod(0o755)


def test_a_backup_is_a_file_of_any_name(tmp_path: Path) -> None:
    folder, backup = taught(tmp_path / "state"), tmp_path / "backup.sqlite"
    with closing(sqlite3.connect(folder / EVENTS)) as source, closing(sqlite3.connect(backup)) as target:
        source.backup(target)
    told: list[str] = []
    assert check_state(backup, told.append) == []
    assert [words.partition(" is right")[0] for words in told] == ["The model 'bandit'", "The model 'm'"]
    backup.write_bytes(b"something else" * 100)
    (problem,) = check_state(backup)
    assert problem.startswith("The event store can't be read")


def test_a_store_that_changes_while_it_is_copied_is_not_checked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, real = taught(tmp_path / "state"), shutil.copyfile

    def slowly(source: Path, target: Path) -> None:
        real(source, target)
        os.utime(source, ns=(0, 0))

    monkeypatch.setattr(shutil, "copyfile", slowly)
    (problem,) = check_state(folder)
    assert "has changed while it was copied" in problem


def test_what_was_replayed_is_told(tmp_path: Path) -> None:
    folder, told = taught(tmp_path / "state"), list[str]()
    assert check_state(folder, told.append) == []
    assert told == [
        "The model 'bandit' is right: its events were replayed from its beginning, up to event 1.",
        "The model 'm' is right: its events were replayed from its beginning, up to event 6.",
    ]
    with served(folder) as running:
        running.ask(running.model("m").forget("row 2"))  # saves a snapshot, at event 6
        learn(running, 5, 8)
    assert check_state(folder, told.append) == []
    assert told[-1] == (
        "The model 'm' is right: its events were replayed from the snapshot after event 6 on, because the content of "
        "earlier events was deleted on request, up to event 9."
    )
    with served(folder) as running:
        running.call("m", lambda model: model.journal.prune(model._writer.state, float("inf")))
        learn(running, 8, 9)
    assert check_state(folder, told.append) == []
    assert told[-1] == (
        "The model 'm' is right: its events were replayed from the snapshot after event 9 on, because the events up to "
        "9 were deleted for their age, up to event 10."
    )


def test_events_after_what_was_deleted_are_compared_with_the_later_snapshot(tmp_path: Path) -> None:
    folder = taught(tmp_path / "state")
    with served(folder) as running:
        running.ask(running.model("m").forget("row 2"))
        learn(running, 5, 8)
    with EventStore(folder / EVENTS) as store:
        learner, _ = Journal(store, "m").recover()
        learner.champion.model.partial_fit([[1.0, 1.0]], [9.0])
        Journal(store, "m").save(learner)
    assert check_state(folder) == ["The model 'm' differs from what its events give: its snapshot is wrong."]


def test_a_folder_in_use_or_without_events(tmp_path: Path) -> None:
    with served(tmp_path / "state"):
        (problem,) = check_state(tmp_path / "state")
        assert problem.startswith("The folder is in use, stop the service first")
    (problem,) = check_state(tmp_path)
    assert f"there is no {EVENTS} in this folder" in problem


def test_a_snapshot_that_is_not_what_the_events_lead_to(tmp_path: Path) -> None:
    folder = taught(tmp_path / "state")
    with EventStore(folder / EVENTS) as store:
        learner, _ = Journal(store, "m").recover()
        other = ModelState.from_content(learner.content())
        other.champion.model.partial_fit([[1.0, 1.0]], [9.0])
        Journal(store, "m").save(other)
    assert check_state(folder) == ["The model 'm' differs from what its events give: its snapshot is wrong."]


def test_damage_is_named(tmp_path: Path) -> None:
    folder = taught(tmp_path / "state")
    execute(folder, "UPDATE events SET time = 0 WHERE stream = ? AND number = 3", stream_of("m"))
    problems = check_state(folder)
    assert any("event 3 is not what was written" in problem for problem in problems)
    assert any(problem.startswith("The events of the model 'm' can't be replayed") for problem in problems)
    execute(folder, "DELETE FROM snapshots WHERE stream = ?", stream_of("m"))
    assert any(problem.startswith("The model 'm' can't be recovered") for problem in check_state(folder))
    assert not any("bandit" in problem for problem in check_state(folder))


def test_a_file_that_is_no_store(tmp_path: Path) -> None:
    (tmp_path / EVENTS).write_bytes(b"something else" * 100)
    (problem,) = check_state(tmp_path)
    assert problem.startswith("The event store can't be read: the file is not an event store")


def test_what_was_deleted_on_request_is_no_damage(tmp_path: Path) -> None:
    folder = taught(tmp_path / "state")
    with served(folder) as running:
        running.ask(running.model("m").forget("row 2"))
        learn(running, 5, 8)
    assert check_state(folder) == []
    with EventStore(folder / EVENTS) as store, pytest.raises(ProblemError, match="was deleted"):
        replayed(Journal(store, "m"))


def test_old_events_are_pruned_with_their_labels_kept_apart(tmp_path: Path) -> None:
    """Neither does a label whose prediction is gone wait for it, nor is what came after a snapshot lost."""
    folder = taught(tmp_path / "state")
    with served(folder) as running:
        model = running.model("m")
        running.ask(model.predict(PredictRequest([1.0, 2.0], id="order")))
        number = running.ask(model.snapshot())["version"]
        running.ask(model.label(LabelRequest("order", 3.0)))
        label = model.journal.find("label", "order")
        assert label is not None
        moment = label.time
        assert running.call("m", lambda model: model.journal.prune(model._writer.state, moment)) == number
        before = running.ask(model.file())
        copy = crashed_copy(folder, tmp_path / "copy")
        learn(running, 20, 22)
        after = running.ask(model.file())
    assert check_state(copy) == check_state(folder) == []
    with served(copy) as running:
        assert running.ask(running.model("m").file()) == before
    with served(folder) as running:
        model = running.model("m")
        assert running.ask(model.file()) == after
        assert (model.journal.pending, model.journal.waiting) == ({}, {})
        with pytest.raises(ProblemError) as caught:  # the id has had its label: nothing is learned twice
            running.ask(model.predict(PredictRequest([1.0, 2.0], id="order")))
        assert caught.value.status == 410
        assert running.ask(model.file()) == after


def test_a_prediction_that_its_label_came_before_does_not_wait_for_it_once_the_label_is_pruned(tmp_path: Path) -> None:
    folder = taught(tmp_path / "state")
    with served(folder) as running:
        model = running.model("m")
        running.ask(model.label(LabelRequest("order", 3.0)))
        assert running.ask(model.predict(PredictRequest([1.0, 2.0], id="order"))).learned
        prediction = model.journal.find("prediction", "order")
        assert prediction is not None
        moment = prediction.time
        running.call("m", lambda model: model.journal.prune(model._writer.state, moment))
        assert model.journal.find("label", "order") is None
        assert model.journal.pending == {}
    with served(folder) as running:
        assert running.model("m").journal.pending == {}


def test_a_model_that_was_rolled_back_is_what_its_events_lead_to(tmp_path: Path) -> None:
    folder = taught(tmp_path / "state")
    with served(folder) as running:
        running.ask(running.model("m").rollback(RollbackRequest(3)))
        learn(running, 10, 13)
        assert running.model("m").status()["n_seen"] == 3 + 2 + 3
    assert check_state(folder) == []
