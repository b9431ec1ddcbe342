"""A disk that is full, read-only or gone: predictions go on, learning says why it can't, and nothing is half done."""

import os
import shutil
import sqlite3
from collections.abc import Callable
from errno import ENOSPC
from pathlib import Path
from typing import Any

import pytest

from onepass.service.checking import check_state, replayed
from onepass.service.errors import ProblemError
from onepass.service.operations import Decide
from onepass.service.wire import (
    DecideRequest,
    LabelRequest,
    LearnRequest,
    PredictRequest,
    RewardRequest,
    RollbackRequest,
)
from tests.service.running import Running, four_models, opened, regressor, served

X: dict[str, Any] = {"a": 1.0, "b": -0.5}


def begin(running: Running) -> None:
    """Make the models, and let each have learned something."""
    for name, content in four_models().items():
        running.ask(running.state.create(name, content))
    running.ask(running.model("number").learn(LearnRequest(X, 1.0, id="first")))
    running.ask(running.model("bandit").carry_out(Decide(DecideRequest([1.0, 2.0], id="first"))))


def connection(running: Running, name: str) -> sqlite3.Connection:
    """The connection that the writer of a model uses."""
    return opened(running.model(name).journal.store)


def fill_disk(running: Running, name: str) -> None:
    """Leave no room for this model."""
    (pages,) = connection(running, name).execute("PRAGMA page_count").fetchone()
    connection(running, name).execute(f"PRAGMA max_page_count = {pages}")


def refuse(running: Running, name: str) -> None:
    """Leave nothing that can be written."""
    connection(running, name).execute("PRAGMA query_only = 1")


def allow(running: Running, name: str) -> None:
    """There is room again."""
    connection(running, name).execute("PRAGMA max_page_count = 1000000")
    connection(running, name).execute("PRAGMA query_only = 0")


def status(running: Running, question: Any) -> int:
    """The status of a request that is refused."""
    with pytest.raises(ProblemError) as caught:
        running.ask(question)
    assert caught.value.retry_after or caught.value.status != 507
    return caught.value.status


def until_refused(running: Running, ask: Callable[[int], Any]) -> int:
    """How many requests fit before the disk is full."""
    for i in range(1000):
        try:
            running.ask(ask(i))
        except ProblemError as problem:
            return i if problem.status == 507 else -1
    raise AssertionError("the disk is never full")


def check_is_what_the_store_says(running: Running, name: str) -> None:
    """The model in memory is what its events lead to."""
    assert running.call(name, lambda model: replayed(model.journal).champion.content()) == running.ask(
        running.model(name).file()
    )


@pytest.mark.parametrize("stop", [fill_disk, refuse])
def test_rows_wait_for_room(tmp_path: Path, stop: Callable[[Running, str], None]) -> None:
    with served(tmp_path / "state") as running:
        begin(running)
        model = running.model("number")
        running.ask(model.predict(PredictRequest(X, id="kept")))
        stop(running, "number")
        fitted = until_refused(running, lambda i: model.learn(LearnRequest(X, 2.0, id=f"row {i}")))
        before = running.ask(model.file())
        assert status(running, model.learn(LearnRequest(X, 2.0, id=f"row {fitted}"))) == 507
        assert running.ask(model.predict(PredictRequest(X))).mean is not None
        assert running.ask(model.file()) == before
        assert (model.status()["writable"], model.counters["writable"]) == (False, 0.0)
        assert "full" in model.status()["why_not_writable"] or "read-only" in model.status()["why_not_writable"]
        assert running.ask(running.model("class").learn(LearnRequest(X, "red"))).status == "learned"
        allow(running, "number")
        found = running.ask(model.learn(LearnRequest(X, 2.0, id=f"row {fitted}")))
        assert found.n_seen == 30 + 1 + fitted + 1
        assert running.ask(model.label(LabelRequest("kept", 3.0))).status == "learned"
        assert (model.status()["writable"], model.counters["writable"]) == (True, 1.0)
        check_is_what_the_store_says(running, "number")
    assert check_state(tmp_path / "state") == []


@pytest.mark.parametrize("stop", [fill_disk, refuse])
def test_a_bandit_does_not_run_ahead_of_the_disk(tmp_path: Path, stop: Callable[[Running, str], None]) -> None:
    with served(tmp_path / "state") as running:
        begin(running)
        bandit = running.model("bandit")
        stop(running, "bandit")
        fitted = until_refused(running, lambda i: bandit.carry_out(Decide(DecideRequest([0.5, 1.0], id=f"d{i}"))))
        pending = bandit.n_pending
        assert pending == 1 + fitted
        for _ in range(3):
            assert status(running, bandit.carry_out(Decide(DecideRequest([0.5, 1.0], id="later")))) == 507
            assert stop is fill_disk or status(running, bandit.reward(RewardRequest("first", 1.0))) == 507
        assert bandit.n_pending == pending
        check_is_what_the_store_says(running, "bandit")
        allow(running, "bandit")
        assert running.ask(bandit.reward(RewardRequest("first", 1.0))).n_seen == 1
        assert running.ask(bandit.carry_out(Decide(DecideRequest([0.5, 1.0], id="later")))).id == "later"
        check_is_what_the_store_says(running, "bandit")
    assert check_state(tmp_path / "state") == []


def test_creating_and_deleting_models_on_a_full_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from onepass.service import state

    real = state.open_store

    def full(settings: Any) -> Any:
        store = real(settings)
        opened(store).execute("PRAGMA query_only = 1")
        return store

    with served(tmp_path / "state") as running:
        begin(running)
        monkeypatch.setattr(state, "open_store", full)
        assert status(running, running.state.create("new", four_models()["number"])) == 507
        assert status(running, running.state.create("new", four_models()["number"])) == 507
        monkeypatch.setattr(state, "open_store", real)
        refuse(running, "class")
        assert status(running, running.state.delete("class")) == 507
        allow(running, "class")
        assert running.ask(running.state.create("new", four_models()["number"]))[1]
        running.ask(running.state.delete("class"))
    with served(tmp_path / "state") as running:
        assert [model.name for model in running.state.models()] == ["bandit", "keyed", "new", "number"]


def test_models_that_there_are_no_open_files_for_are_not_created(tmp_path: Path) -> None:
    with served(tmp_path, max_models=1) as running:
        running.ask(running.state.create("m", regressor()))
        running.ask(running.state.create("m", regressor()))  # the same again
        with pytest.raises(ProblemError, match="2 models need more open files than this process may have") as caught:
            running.ask(running.state.create("n", regressor()))
        assert caught.value.status == 507
        assert [model.name for model in running.state.models()] == ["m"]


def test_a_folder_that_is_taken_away_and_put_back(tmp_path: Path) -> None:
    folder = tmp_path / "state"
    with served(folder) as running:
        begin(running)
        model, bandit = running.model("number"), running.model("bandit")
        folder.rename(tmp_path / "elsewhere")
        before = running.ask(model.file())
        assert status(running, bandit.carry_out(Decide(DecideRequest([0.5, 1.0])))) == 507  # it had decided already
        assert status(running, model.learn(LearnRequest(X, 2.0, id="row"))) == 507
        assert status(running, running.state.create("new", four_models()["number"])) == 507
        assert running.ask(model.predict(PredictRequest(X))).mean is not None
        assert running.ask(model.file()) == before
        (tmp_path / "elsewhere").rename(folder)
        assert running.ask(model.learn(LearnRequest(X, 2.0, id="row"))).n_seen == 32
        assert bandit.n_pending == 1
        check_is_what_the_store_says(running, "bandit")
    assert check_state(folder) == []


def test_a_folder_that_is_deleted_takes_nothing_more_and_predictions_go_on(tmp_path: Path) -> None:
    running = Running(tmp_path / "state")
    begin(running)
    shutil.rmtree(tmp_path / "state", ignore_errors=True)  # files come and go while the service runs
    model = running.model("number")
    assert status(running, model.learn(LearnRequest(X, 2.0))) == 507
    assert status(running, running.model("bandit").carry_out(Decide(DecideRequest([1.0, 2.0])))) == 507
    assert running.ask(model.predict(PredictRequest(X))).mean is not None
    running.stop()


@pytest.mark.skipif(os.name == "nt", reason="needs limits of POSIX")
def test_a_file_that_may_not_grow(tmp_path: Path) -> None:
    """The operating system itself refuses, in the middle of a transaction."""
    import resource

    with served(tmp_path / "state") as running:
        begin(running)
        model = running.model("number")
        soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
        log = running.folder / "events.sqlite-wal"
        resource.setrlimit(resource.RLIMIT_FSIZE, (log.stat().st_size + 20_000, hard))
        try:
            fitted = until_refused(running, lambda i: model.learn(LearnRequest(X, 2.0, id=f"row {i}")))
            assert running.ask(model.predict(PredictRequest(X))).mean is not None
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        found = running.ask(model.learn(LearnRequest(X, 2.0, id=f"row {fitted}")))
        assert found.n_seen == 30 + 1 + fitted + 1
        check_is_what_the_store_says(running, "number")
    assert check_state(tmp_path / "state") == []


@pytest.mark.skipif(os.name == "nt", reason="needs limits of POSIX")
def test_a_service_that_starts_on_a_full_disk_predicts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a process leaves behind that was killed on a full disk: its files are there, and none can grow.

    SQLite makes ``-shm`` anew, in the room of the old one: 32 kB.
    """
    import resource

    with served(tmp_path / "state") as running:
        begin(running)
        shutil.copytree(tmp_path / "state", tmp_path / "copy", ignore=shutil.ignore_patterns("*.part"))

    def no_room(handle: int, content: bytes) -> int:
        raise OSError(ENOSPC, "No space left on device")

    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (2**15, hard))
    try:
        monkeypatch.setattr(os, "write", no_room)
        with served(tmp_path / "copy") as running:
            model = running.model("number")
            assert running.ask(model.predict(PredictRequest(X))).mean is not None
            assert status(running, model.learn(LearnRequest(X, 2.0, id="row"))) == 507
    finally:
        monkeypatch.undo()
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert check_state(tmp_path / "copy") == []


@pytest.mark.skipif(os.name == "nt", reason="needs limits of POSIX")
def test_a_start_without_room_for_the_index_of_the_log_says_what_is_full(tmp_path: Path) -> None:
    import resource

    with served(tmp_path / "state") as running:
        begin(running)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, hard))
    try:
        with pytest.raises(OSError, match="the disk is full: SQLite needs 32 kB") as caught:
            Running(tmp_path / "state")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert caught.value.filename == str(tmp_path / "state" / "events.sqlite")


def test_what_was_not_done_is_told(tmp_path: Path) -> None:
    def detail(question: Any) -> str:
        with pytest.raises(ProblemError) as caught:
            running.ask(question)
        undone, _, reason = caught.value.detail.partition(": ")
        assert reason.endswith("read-only; nothing was written; send the request again later")
        return undone

    with served(tmp_path / "state") as running:
        begin(running)
        model, bandit = running.model("number"), running.model("bandit")
        running.ask(running.model("class").set_shadow(four_models()["class"]))
        for name in ("number", "bandit", "class"):
            refuse(running, name)
        assert detail(model.learn(LearnRequest(X, 2.0))) == "nothing was learned"
        assert detail(model.predict(PredictRequest(X, id="a"))) == "the prediction was not stored"
        assert detail(model.snapshot()) == "no snapshot was saved"
        assert detail(model.rollback(RollbackRequest(1))) == "the model was not rolled back"
        assert detail(model.forget("first")) == "nothing was deleted"
        assert detail(model.set_shadow(four_models()["number"])) == "the candidate was not added"
        assert detail(running.model("class").promote()) == "the candidate was not promoted"
        assert detail(running.model("class").drop_shadow()) == "the candidate was not removed"
        assert detail(bandit.carry_out(Decide(DecideRequest([1.0, 2.0])))) == "nothing was decided"
        assert detail(bandit.forget("first")) == "nothing was deleted"
        assert detail(running.state.delete("number")) == "the model was not deleted"


def test_housekeeping_on_a_full_disk_does_not_end_the_writer(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with served(tmp_path / "state", keep_pending=0.0) as running:
        begin(running)
        model = running.model("number")
        running.ask(model.predict(PredictRequest(X, id="kept")))
        refuse(running, "number")
        model._next_look = 0.0
        running.call("number", lambda model: None)
        running.call("number", lambda model: None)
        assert [one.getMessage() for one in caplog.records if "model number" in one.getMessage()] == [
            "model number: an outage begins: the file, its folder or its disk is read-only; nothing was written"
        ]
        assert "Traceback" not in caplog.text
        allow(running, "number")
        model._next_look = model._writer._next_attempt = 0.0
        running.call("number", lambda model: None)
        running.call("number", lambda model: None)
        running.call("number", lambda model: None)
        assert model.n_pending == 0
        assert status(running, model.label(LabelRequest("kept", 1.0))) == 410


def test_a_folder_that_cannot_be_written_is_refused_and_not_kept_locked(tmp_path: Path) -> None:
    folder = tmp_path / "state"
    with served(folder) as running:
        begin(running)
    content = (folder / "events.sqlite").read_bytes()
    (folder / "events.sqlite").write_bytes(b"no database" + content[11:])
    for _ in range(2):
        with pytest.raises(OSError, match="not an event store, or its beginning is damaged"):
            Running(folder)
    (folder / "events.sqlite").write_bytes(content)
    with served(folder) as running:
        assert len(running.state.models()) == 4
