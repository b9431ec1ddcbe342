"""Many requests at once: they share transactions, queues and deadlines are kept, and nobody waits for a slow model."""

import asyncio
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from onepass.files.checkpoint import from_bytes, to_bytes
from onepass.service.checking import replayed
from onepass.service.errors import ProblemError
from onepass.service.host import HostedModel
from onepass.service.model_state import ModelState
from onepass.service.operations import Decide, Learn, Rollback, WriterCall
from onepass.service.settings import ServiceSettings
from onepass.service.state import ServiceState, open_store
from onepass.service.wire import (
    DecideRequest,
    ExplainRequest,
    LabelRequest,
    LearnRequest,
    PredictRequest,
    RollbackRequest,
    RowsRequest,
)
from tests.service.running import Running, four_models, outcome, regressor, served

X: list[float | None] = [1.0, -0.5]


def with_model(running: Running, **contents: bytes) -> Any:
    """The model m, made here."""
    for name, content in {"m": regressor(), **contents}.items():
        running.ask(running.state.create(name, content))
    return running.model("m")


def row(i: int = 0) -> LearnRequest:
    """A row with a target of its own."""
    return LearnRequest([0.1 * i, 1.0], float(i), id=f"row {i}")


class Gate:
    """Learning waits until the gate is opened."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.open, self.reached = threading.Event(), threading.Event()
        apply = ModelState.apply

        def waiting(learner: ModelState, *arguments: Any) -> Any:
            if any(event.kind == "learn" for event, _ in arguments[0]):
                self.reached.set()
                assert self.open.wait(20)
            return apply(learner, *arguments)

        monkeypatch.setattr(ModelState, "apply", waiting)


def gathered(running: Running, questions: list[Any]) -> list[Any]:
    """Answers to questions that are asked at once; a refused one gives its status."""

    async def all_at_once() -> list[Any]:
        return await asyncio.gather(*map(outcome, questions))

    found: list[Any] = running.ask(all_at_once())
    return found


def test_requests_at_the_same_time_share_few_transactions_and_are_learned_in_their_order(tmp_path: Path) -> None:
    with served(tmp_path / "state") as running:
        model = with_model(running)
        before = model.durations["commit"].count
        answers = gathered(running, [model.learn(row(i)) for i in range(64)])
        assert [answer.n_seen for answer in answers] == list(range(4, 68))
        assert model.durations["commit"].count - before <= 8
        plain = from_bytes(regressor())
        for i in range(64):
            plain.partial_fit([row(i).x], [row(i).y])
        assert running.ask(model.file()) == to_bytes(plain)


def test_one_bad_request_does_not_disturb_those_beside_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plan = Learn.plan

    def fails_for_one(operation: Any, planning: Any) -> Any:
        if operation.id == "row 3":
            raise RuntimeError("a bug")
        return plan(operation, planning)

    monkeypatch.setattr(Learn, "plan", fails_for_one)
    with served(tmp_path / "state") as running:
        model = with_model(running)
        answers = gathered(running, [model.learn(row(i)) for i in range(6)])
        assert answers[3] == 500
        assert [answer.status for answer in answers[:3] + answers[4:]] == ["learned"] * 5
        bad = model.learn(LearnRequest(["far", 1.0], 1.0))  # type: ignore[list-item]
        found = gathered(running, [model.learn(row(7)), bad, model.learn(row(8))])
        assert [found[0].n_seen, found[1], found[2].n_seen] == [9, 422, 10]


def test_a_full_queue_refuses_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gate = Gate(monkeypatch)
    with served(tmp_path / "state", queue=5) as running:
        model = with_model(running)

        async def more_than_fit() -> tuple[Any, list[Any], list[Any]]:
            first = asyncio.create_task(outcome(model.learn(row(0))))
            await asyncio.to_thread(gate.reached.wait, 20)
            waiting = [asyncio.create_task(outcome(model.learn(row(i)))) for i in range(1, 6)]
            await asyncio.sleep(0)
            refused = []
            for i in (6, 7):
                with pytest.raises(ProblemError) as caught:
                    await model.learn(row(i))
                refused.append((caught.value.status, caught.value.retry_after))
            assert model.queue_length == 5
            gate.open.set()
            return await first, await asyncio.gather(*waiting), refused

        first, waiting, refused = running.ask(more_than_fit())
        assert refused == [(429, 1.0), (429, 1.0)]
        assert [first.n_seen, *(one.n_seen for one in waiting)] == list(range(4, 10))
        assert model.status()["n_seen"] == 9


def test_a_request_that_waited_too_long_is_not_carried_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gate = Gate(monkeypatch)
    with served(tmp_path / "state", deadline=1.0) as running:
        model = with_model(running)

        async def late() -> tuple[Any, Any]:
            first = asyncio.create_task(outcome(model.learn(row(0))))
            await asyncio.to_thread(gate.reached.wait, 20)
            second = asyncio.create_task(outcome(model.learn(row(1))))
            await asyncio.sleep(1.2)
            gate.open.set()
            return await first, await second

        first, second = running.ask(late())
        assert (first.status, second) == ("learned", 503)
        assert model.journal.find("learn", "row 1") is None
        assert running.ask(model.learn(row(1))).n_seen == 5  # the same request may come again


def test_a_client_that_goes_away_disturbs_nobody(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gate = Gate(monkeypatch)
    with served(tmp_path / "state") as running:
        model = with_model(running)

        async def some_leave() -> list[Any]:
            tasks = [asyncio.create_task(outcome(model.learn(row(i)))) for i in range(6)]
            predictions = [asyncio.create_task(outcome(model.predict(PredictRequest(X)))) for _ in range(3)]
            await asyncio.to_thread(gate.reached.wait, 20)
            for task in (tasks[1], tasks[4], predictions[1]):
                task.cancel()
            gate.open.set()
            return await asyncio.gather(*tasks, *predictions, return_exceptions=True)

        found = running.ask(some_leave())
        gone = [i for i, one in enumerate(found) if isinstance(one, asyncio.CancelledError)]
        assert gone[:2] == [1, 4]  # the prediction may have been faster
        assert running.ask(model.learn(row(9))).n_seen == 3 + 7  # whoever has gone had asked all the same
        assert [one.status for one in (found[0], found[2], found[3], found[5])] == ["learned"] * 4


def test_predictions_and_other_models_do_not_wait_for_a_model_that_learns(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate = Gate(monkeypatch)
    with served(tmp_path / "state") as running:
        model = with_model(running, bandit=four_models()["bandit"])

        async def while_it_learns() -> tuple[Any, Any]:
            before = await model.predict(PredictRequest(X))
            learning = asyncio.create_task(model.learn(row(1)))
            await asyncio.to_thread(gate.reached.wait, 20)
            for _ in range(5):
                assert await asyncio.wait_for(model.predict(PredictRequest(X)), 5) == before
            assert (await running.model("bandit").carry_out(Decide(DecideRequest([1.0, 2.0])))).version == 2
            assert not learning.done()
            gate.open.set()
            await learning
            return before, await model.predict(PredictRequest(X))

        before, after = running.ask(while_it_learns())
        assert (before.version, after.version) == (1, 2)
        assert before.mean != after.mean


def slow_to_copy(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a copy take so long that not every group can be followed by one."""
    publish = HostedModel._publish

    def slowly(model: HostedModel, learner: ModelState) -> None:
        end = time.thread_time() + 0.02
        while time.thread_time() < end:
            pass
        publish(model, learner)

    monkeypatch.setattr(HostedModel, "_publish", slowly)


@pytest.mark.parametrize("is_large", [False, True])
def test_predictions_include_all_that_was_acknowledged_before(
    is_large: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if is_large:
        slow_to_copy(monkeypatch)
    plain, behind = from_bytes(regressor()), 0
    with served(tmp_path / "state") as running:
        model = with_model(running)
        for i in range(20):
            version = running.ask(model.learn(row(i))).version
            plain.partial_fit([row(i).x], [row(i).y])
            behind += model.published.version < version
            found = running.ask(model.predict(PredictRequest(X)))
            assert found.version == version
            assert found.mean == pytest.approx(plain.predict([X])[0], rel=1e-12)  # one row or many: other sums
            assert (model.status()["version"], model.status()["n_seen"]) == (version, 4 + i)
            if i % 5 == 4:
                rows = running.ask(model.predict_rows(RowsRequest(records=[{"x": X}])))
                assert rows["version"] == version
                assert rows["mean"][0] == pytest.approx(found.mean, rel=1e-12)
                assert running.ask(model.explain(ExplainRequest(X))).version == version
                assert running.ask(model.weights())["version"] == version
    assert (behind > 0) == is_large


def test_predictions_need_neither_room_in_the_queue_nor_a_store(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow_to_copy(monkeypatch)
    with served(tmp_path / "state", queue=1) as running:
        model = with_model(running)
        for i in range(5):
            running.ask(model.learn(row(i)))
        assert not model.is_published
        begin = threading.Event()

        async def under_load() -> list[Any]:
            busy = asyncio.create_task(model.carry_out(WriterCall(lambda: begin.wait(20))))
            await asyncio.sleep(0.05)
            queued = asyncio.create_task(outcome(model.learn(row(7))))
            await asyncio.sleep(0)
            asked = [asyncio.create_task(outcome(model.predict(PredictRequest(X)))) for _ in range(3)]
            await asyncio.sleep(0)  # all have asked before the writer goes on
            refused = await outcome(model.learn(row(8)))
            begin.set()
            await asyncio.gather(busy, queued)
            return [refused, *await asyncio.gather(*asked)]

        refused, *answers = running.ask(under_load())
        assert refused == 429
        assert {answer.version for answer in answers} == {6}


def test_a_model_that_takes_long_to_copy_is_published_now_and_then(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow_to_copy(monkeypatch)
    with served(tmp_path / "state") as running:
        model = with_model(running)
        for i in range(20):
            running.ask(model.learn(row(i)))
        assert model.published.version < 21
        wait_until(running, lambda: model.published.version == 21)


@pytest.mark.parametrize("place", ["main", "thread"])
def test_a_program_that_ends_without_stopping_its_service_ends_in_order(place: str, tmp_path: Path) -> None:
    command = [sys.executable, "-c", _PROGRAM, str(tmp_path / "state"), place]
    done = subprocess.run(command, capture_output=True, text=True)
    assert (done.returncode, done.stderr, done.stdout) == (0, "", "learned\nwaits: True\nwriters left: 0\n")


_PROGRAM = """
import atexit, sys, threading
from pathlib import Path

def report():
    loop = sys._current_frames().get(thread.ident)
    print("waits:", loop is None or loop.f_code.co_name == "wait")
    print("writers left:", sum(one.name.startswith("writer") for one in threading.enumerate()))

atexit.register(report)
from onepass.service.wire import LearnRequest, PredictRequest
from tests.service.running import Running, regressor

async def work(running):
    await running.state.create("m", regressor())
    while True:
        await running.model("m").learn(LearnRequest([0.1, 1.0], 1.0))
        await running.model("m").predict(PredictRequest([0.1, 1.0]))
        learned.set()

def serve():
    running = Running(Path(sys.argv[1]))
    running.ask(work(running))

learned = threading.Event()
thread = threading.Thread(target=serve, daemon=sys.argv[2] == "thread")
if sys.argv[2] == "thread":
    thread.start()
    learned.wait()
else:
    running = Running(Path(sys.argv[1]))
    running.ask(running.state.create("m", regressor()))
    running.ask(running.model("m").learn(LearnRequest([0.1, 1.0], 1.0)))
print("learned")
"""


def wait_until(running: Running, condition: Callable[[], bool]) -> None:
    """Let time pass until something has happened."""
    for _ in range(1000):
        if condition():
            return
        running.ask(asyncio.sleep(0.01))
    raise AssertionError("it never happened")


def test_stopping_finishes_what_is_queued_and_refuses_what_comes_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate = Gate(monkeypatch)
    running = Running(tmp_path / "state")
    model = with_model(running)

    async def stop_under_load() -> tuple[list[Any], Any]:
        tasks = [asyncio.create_task(outcome(model.learn(row(i)))) for i in range(300)]
        await asyncio.to_thread(gate.reached.wait, 20)
        stopping = asyncio.create_task(running.state.stop())
        await asyncio.sleep(0.05)
        late = await outcome(model.learn(row(400)))
        gate.open.set()
        await stopping
        return await asyncio.gather(*tasks), late

    found, late = running.ask(stop_under_load())
    running.stop()
    assert late == 503
    assert [one.n_seen for one in found] == list(range(4, 304))
    with served(tmp_path / "state") as again:
        assert again.model("m").status()["n_seen"] == 303
        assert again.ask(again.model("m").learn(row(5))) == found[5]


def test_stopping_while_models_are_recovered_leaves_nothing_open(tmp_path: Path) -> None:
    with served(tmp_path / "state") as running:
        with_model(running)

    async def start_and_stop() -> None:
        state = ServiceState(ServiceSettings(tmp_path / "state"))
        await state.start()
        await state.stop()

    asyncio.run(start_and_stop())
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("writer of")]
    with served(tmp_path / "state") as running:
        assert running.state.is_ready


def test_what_concerns_the_whole_model_comes_between_the_rows_before_and_after(tmp_path: Path) -> None:
    with served(tmp_path / "state") as running:
        model = with_model(running)
        version = running.ask(model.learn(row(0))).version
        candidate = running.ask(model.file())
        gathered(
            running,
            [
                *(model.learn(row(i)) for i in range(1, 5)),
                model.rollback(RollbackRequest(version)),
                *(model.learn(row(i)) for i in range(5, 9)),
                model.set_shadow(candidate),
                *(model.learn(row(i)) for i in range(9, 12)),
                model.promote(),
                *(model.learn(row(i)) for i in range(12, 15)),
            ],
        )
        served_now = running.ask(model.file())
    with served(tmp_path / "state") as running:
        assert running.ask(running.model("m").file()) == served_now


def test_a_bandit_that_is_rolled_back_among_decisions_is_what_its_events_say(tmp_path: Path) -> None:
    with served(tmp_path / "state") as running:
        with_model(running, bandit=four_models()["bandit"])
        bandit = running.model("bandit")
        version = running.ask(bandit.carry_out(Decide(DecideRequest([1.0, 0.0], id="a")))).version
        begin = threading.Event()
        decisions = [bandit.carry_out(Decide(DecideRequest([0.5, 1.0], id=f"d{i}"))) for i in range(6)]

        async def all_in_the_queue() -> list[Any]:
            waiting = asyncio.create_task(bandit.carry_out(WriterCall(lambda: begin.wait(20))))
            await asyncio.sleep(0.05)
            asked = [*decisions[:3], bandit.carry_out(Rollback(version)), *decisions[3:]]
            tasks = [asyncio.create_task(outcome(one)) for one in asked]
            await asyncio.sleep(0)
            begin.set()
            await waiting
            return await asyncio.gather(*tasks)

        found = running.ask(all_in_the_queue())
        assert not [one for one in found if isinstance(one, int)]
        assert bandit.n_pending == 1 + 3
        replay = running.call("bandit", lambda model: replayed(model.journal).champion.content())
        assert running.ask(bandit.file()) == replay


def test_a_deleted_model_stays_deleted_and_what_was_queued_hears_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate = Gate(monkeypatch)
    with served(tmp_path / "state") as running:
        model = with_model(running)
        gate.open.set()
        for i in range(3):
            running.ask(model.learn(row(i)))
        running.ask(model.snapshot())
        gate.open.clear()
        gate.reached.clear()

        async def delete_under_load() -> list[Any]:
            first = asyncio.create_task(outcome(model.learn(row(10))))
            await asyncio.to_thread(gate.reached.wait, 20)
            deleting = asyncio.create_task(running.state.delete("m"))
            await asyncio.sleep(0.01)
            queued = [asyncio.create_task(outcome(model.learn(row(i)))) for i in range(11, 14)]
            await asyncio.sleep(0.01)
            again = asyncio.create_task(outcome(running.state.delete("m")))
            gate.open.set()
            await deleting
            return [(await first).status, *(await asyncio.gather(*queued)), await again]

        assert running.ask(delete_under_load()) == ["learned", 404, 404, 404, 404]
        with pytest.raises(ProblemError, match="there is no model 'm'"):
            running.model("m")
    with served(tmp_path / "state") as running:
        assert running.state.models() == []
        assert running.state.is_ready
        running.ask(running.state.create("m", regressor()))
        assert running.model("m").status()["n_seen"] == 3


def test_an_event_that_cannot_be_learned_now_is_learned_when_the_store_is_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is durable, so whoever asked has his answer, and the model must not go on without it."""
    apply, fails = ModelState.apply, [True]

    def fails_once(learner: Any, *arguments: Any) -> Any:
        if fails and arguments[0][0][0].kind == "label":
            fails.clear()
            raise OSError("the disk did not answer")
        return apply(learner, *arguments)

    with served(tmp_path / "state") as running:
        model = with_model(running)
        running.ask(model.predict(PredictRequest(X, id="a")))
        monkeypatch.setattr(ModelState, "apply", fails_once)
        assert running.ask(model.label(LabelRequest("a", 2.0))).status == "learned"
        assert not fails
        assert running.ask(model.learn(row(1))).n_seen == 5
        plain = from_bytes(regressor()).partial_fit([X], [2.0]).partial_fit([row(1).x], [row(1).y])
        assert running.ask(model.file()) == to_bytes(plain)


def test_what_somebody_else_has_written_is_learned_before_anything_is_written_after_it(tmp_path: Path) -> None:
    with served(tmp_path / "state") as running:
        model = with_model(running)
        running.ask(model.learn(row(1)))
        with open_store(running.state.settings) as store:
            own = store.find(model.journal.stream, "learn", "row 1")
            assert own is not None
            store.append(own.stream, "learn", "foreign", {**own.payload, "group": own.number + 1}, own.blob)
        assert running.ask(outcome(model.learn(row(2)))) == 503
        assert running.ask(model.learn(row(2))).n_seen == 3 + 3
        content = running.ask(model.file())
    with served(tmp_path / "state") as running:
        assert running.ask(running.model("m").file()) == content
