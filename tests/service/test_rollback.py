"""Going back to an earlier version, also of a model that was deleted and made anew under the same name."""

import asyncio
import threading
from errno import ENOSPC
from pathlib import Path
from typing import Any

import pytest

from onepass.events import EventStoreError
from onepass.service.errors import ProblemError
from onepass.service.operations import Decide, WriterCall
from onepass.service.wire import (
    DecideRequest,
    LabelRequest,
    LearnRequest,
    PredictRequest,
    RewardRequest,
    RollbackRequest,
)
from tests.service.running import Running, four_models, opened, outcome, regressor, served


def test_a_model_made_anew_goes_back_to_its_own_beginning_and_not_further(tmp_path: Path) -> None:
    with served(tmp_path) as running:
        for _ in range(2):
            running.ask(running.state.create("m", regressor()))
            model = running.model("m")
            first = model.status()["version"]
            begun = running.ask(model.file())
            for _ in range(5):
                running.ask(model.learn(LearnRequest([1.0, 2.0], 3.0)))
                running.ask(model.snapshot())
            running.ask(model.rollback(RollbackRequest(first)))
            assert running.ask(model.file()) == begun
            for version in range(1, first):
                with pytest.raises(ProblemError) as refused:
                    running.ask(model.rollback(RollbackRequest(version)))
                assert refused.value.status in (404, 410)
            running.ask(running.state.delete("m"))


def taught(running: Running) -> Any:
    """A model with six versions: it was made, and has learned five rows."""
    running.ask(running.state.create("m", regressor()))
    model = running.model("m")
    for i in range(5):
        running.ask(model.learn(LearnRequest([1.0, float(i)], 0.5 * i, id=f"row {i}")))
    return model


def at_the_same_moment(running: Running, *questions: Any) -> list[Any]:
    """Answers to requests that are in the queue before the writer takes the first; a refused one gives its status."""
    gate = threading.Event()

    async def ask() -> list[Any]:
        held = asyncio.create_task(running.model("m").carry_out(WriterCall(gate.wait)))
        await asyncio.sleep(0)
        tasks = [asyncio.create_task(outcome(question)) for question in questions]
        await asyncio.sleep(0)
        gate.set()
        await held
        return await asyncio.gather(*tasks)

    found: list[Any] = running.ask(ask())
    return found


def test_a_deletion_right_behind_a_rollback_leaves_a_model_that_loads(tmp_path: Path) -> None:
    with served(tmp_path) as running:
        model = taught(running)
        found = at_the_same_moment(running, model.rollback(RollbackRequest(4)), model.forget("row 1"))
        assert found == [{"version": 7, "to": 4}, 1]
        assert model.status()["writable"]
        assert running.ask(model.learn(LearnRequest([1.0, 2.0], 3.0))).n_seen == 3 + 3 + 1
        after = running.files()
    with served(tmp_path) as running:
        assert running.files() == after


def test_a_rollback_right_behind_a_deletion_is_refused_and_nothing_is_written(tmp_path: Path) -> None:
    with served(tmp_path) as running:
        model = taught(running)
        found = at_the_same_moment(running, model.forget("row 1"), model.rollback(RollbackRequest(4)))
        assert found == [1, 410]
        assert model.status()["version"] == 6
        assert model.status()["writable"]


def test_events_pruned_right_behind_a_rollback_leave_a_model_that_loads(tmp_path: Path) -> None:
    with served(tmp_path) as running:
        model = taught(running)

        def prune() -> int:
            return int(model.journal.prune(model._writer.state, float("inf")))

        found = at_the_same_moment(running, model.rollback(RollbackRequest(4)), model.carry_out(WriterCall(prune)))
        assert found == [{"version": 7, "to": 4}, 7]
        after = running.files()
    with served(tmp_path) as running:
        assert running.files() == after


def test_a_version_between_a_kept_snapshot_and_what_was_pruned_is_gone(tmp_path: Path) -> None:
    with served(tmp_path) as running:
        model = taught(running)
        kept, begun = running.ask(model.snapshot())["version"], running.ask(model.file())
        for i in range(5, 9):
            running.ask(model.learn(LearnRequest([1.0, float(i)], 0.5 * i, id=f"row {i}")))
        running.call("m", lambda model: model.journal.prune(model._writer.state, float("inf")))
        assert running.ask(outcome(model.rollback(RollbackRequest(kept + 2)))) == 410
        assert model.status()["why_not_writable"] is None
        running.ask(model.rollback(RollbackRequest(kept)))
        assert running.ask(model.file()) == begun


def test_what_a_rollback_leads_to_is_stored_with_it_or_it_does_not_happen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with served(tmp_path) as running:
        model = taught(running)

        def full(*given: Any, **named: Any) -> None:
            raise EventStoreError(ENOSPC, "the disk is full")

        with monkeypatch.context() as patched:
            patched.setattr(model.journal.store, "save_snapshot", full)
            with pytest.raises(ProblemError, match="the model was not rolled back: the disk is full"):
                running.ask(model.rollback(RollbackRequest(4)))
        assert model.status()["version"] == model.journal.store.last(model.journal.stream) == 6
        number = running.ask(model.rollback(RollbackRequest(4)))["version"]
        snapshot = model.journal.store.latest_snapshot(model.journal.stream)
        assert snapshot is not None
        assert snapshot.after == number


def damage(running: Running, number: int) -> None:
    """Change an event of m as only a fault of the disk does."""

    def change(model: Any) -> None:
        opened(model.journal.store).execute("UPDATE events SET time = 0.0 WHERE number = ?", (number,))

    running.call("m", change)


def test_damaged_events_refuse_the_requests_that_need_them_and_nothing_else(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with served(tmp_path, keep_events=0.0) as running:
        model = taught(running)
        running.ask(model.predict(PredictRequest([1.0, 2.0], id="a")))
        damage(running, 3)
        damage(running, 7)
        questions = (
            model.rollback(RollbackRequest(4)),
            model.label(LabelRequest("a", 1.0)),
            model.learn(LearnRequest([1.0, 2.0], 1.0)),
            model.learn(LearnRequest([1.0, 2.0], 1.0, id="row 1")),
        )
        found = at_the_same_moment(running, *questions)
        assert (found[0], found[1], found[2].status, found[3]) == (410, 410, "learned", 410)
        with pytest.raises(
            ProblemError, match="the model was not rolled back: event 3 of stream 'model/m' is not what"
        ):
            running.ask(model.rollback(RollbackRequest(4)))
        for _ in range(2):
            model._next_look = 0.0
            running.call("m", lambda model: None)
            running.call("m", lambda model: None)
        assert model.why_not_writable is None
        begun = [one.getMessage() for one in caplog.records if "an outage begins" in one.getMessage()]
        assert len(begun) == 1
        assert begun[0].startswith("housekeeping of model m: an outage begins: event 3 of stream")


def test_a_bandit_that_was_rolled_back_decides_again(tmp_path: Path) -> None:
    """Its own ids are numbers, and those of decisions that were undone are taken."""
    with served(tmp_path) as running:
        running.ask(running.state.create("m", four_models()["bandit"]))
        model = running.model("m")
        used = [running.ask(model.carry_out(Decide(DecideRequest([1.0, 0.0])))).id for _ in range(3)]
        running.ask(model.rollback(RollbackRequest(2)))
        for _ in range(4):
            made = running.ask(model.carry_out(Decide(DecideRequest([1.0, 0.0]))))
            assert made.id not in used
            assert running.ask(model.reward(RewardRequest(made.id, 1.0))).status == "learned"
            used.append(made.id)


def test_deleting_a_decision_and_a_rollback_at_the_same_moment_leave_no_context_behind(tmp_path: Path) -> None:
    with served(tmp_path) as running:
        running.ask(running.state.create("m", four_models()["bandit"]))
        model = running.model("m")
        running.ask(model.carry_out(Decide(DecideRequest([0.125, 0.5], id="a"))))
        running.ask(model.carry_out(Decide(DecideRequest([1.0, 0.5], id="b"))))
        found = at_the_same_moment(running, model.forget("a"), model.rollback(RollbackRequest(3)))
        assert found[0] == 1
        assert "a" not in model.published.model.model.pending
        after = running.files()
    with served(tmp_path) as running:
        assert running.files() == after


def test_a_label_right_behind_a_deletion_of_its_prediction_is_refused(tmp_path: Path) -> None:
    with served(tmp_path) as running:
        model = taught(running)
        running.ask(model.predict(PredictRequest([1.0, 2.0], id="a")))
        assert at_the_same_moment(running, model.forget("a"), model.label(LabelRequest("a", 1.0))) == [1, 410]
        after = running.files()
    with served(tmp_path) as running:
        assert running.files() == after
