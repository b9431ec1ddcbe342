"""Requests that wait together: what has to see what came of another does not share its transaction."""

from pathlib import Path
from typing import Any

import pytest

from onepass.events import EventStore
from onepass.service.errors import ProblemError
from onepass.service.journal import Journal
from onepass.service.operations import (
    Label,
    Learn,
    Operation,
    Predict,
    Promote,
    Rollback,
    Shadow,
    checked_candidate,
)
from onepass.service.wire import LabelRequest, LearnRequest, PredictRequest
from onepass.service.writer import Ticket, Writer
from tests.helpers.served import content

ROW: list[float | None] = [1.0, 2.0, 3.0]


def answered(folder: Path, model: str, operations: list[Operation]) -> tuple[list[Any], bytes, bytes]:
    """Answers to requests that were queued before the writer began; the model then, and after a recovery."""
    path = folder / "events.sqlite"
    with EventStore(path) as store:
        Journal(store, "a").append("create", "create 1", {"request": "digest", "metrics": []}, content(model))
    journal = Journal(EventStore(path), "a")
    learner, begin = journal.recover()
    tickets = [Ticket(one, float("inf"), None) for one in operations]
    nothing: Any = lambda *given: None  # noqa: E731
    writer = Writer(journal, learner, nothing, nothing, nothing, queue=100, begin=begin)
    for ticket in tickets:
        writer.submit(ticket)
    writer.end()
    writer.run()
    with EventStore(path) as store:
        events = Journal(store, "a")
        replayed = events.at(writer.state.version)
        return [one.result for one in tickets], writer.state.content(), replayed.content()


def learn(x: Any, y: float, key: str | None = None) -> Learn:
    return Learn(LearnRequest(x, y, None, key))


def test_a_second_promotion_in_the_queue_is_refused_and_replay_goes_on(tmp_path: Path) -> None:
    shadow = Shadow(checked_candidate(content("new perceptron")))
    found, now, replayed = answered(
        tmp_path, "perceptron", [learn(ROW, 1.0), shadow, learn(ROW, 2.0), Promote(), Promote(), learn(ROW, 3.0)]
    )
    assert isinstance(found[4], ProblemError)
    assert found[4].status == 409
    assert found[3]["version"] == 5
    assert found[5].n_seen == 2  # the candidate began anew, and has learned the rows since
    assert now == replayed


def test_rows_behind_a_promotion_are_read_by_the_new_model(tmp_path: Path) -> None:
    shadow = Shadow(checked_candidate(content("fleet")))
    found, now, replayed = answered(
        tmp_path, "perceptron", [shadow, Promote(), learn(ROW, 1.0), learn(ROW, 1.0, "ann")]
    )
    assert isinstance(found[2], ProblemError)
    assert found[2].field == "key"
    assert found[3].status == "learned"
    assert now == replayed


def test_a_rollback_undoes_what_was_queued_before_it_and_nothing_behind(tmp_path: Path) -> None:
    kept = Predict(PredictRequest(ROW, "id"))
    late = Label(LabelRequest("id", 2.0))
    found, now, replayed = answered(
        tmp_path, "new perceptron", [kept, learn(ROW, 1.0), learn(ROW, 1.0), Rollback(2), late, learn(ROW, 1.0)]
    )
    assert [one.n_seen for one in (found[1], found[2], found[4], found[5])] == [1, 2, 1, 2]
    assert now == replayed


@pytest.mark.parametrize("wrong", [b"", b"no model", content("perceptron")[:-1]])
def test_a_candidate_that_is_no_model_is_refused_before_anything_is_written(wrong: bytes) -> None:
    with pytest.raises(ProblemError, match="not a model file"):
        checked_candidate(wrong)
