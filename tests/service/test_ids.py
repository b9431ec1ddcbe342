"""An id names one request: of whatever kind, and however its numbers are written."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from onepass.service.host import HostedModel
from onepass.service.wire import LabelRequest, LearnRequest, PredictRequest, RowsRequest
from tests.service.running import outcome, regressor, served

Ask = Callable[[HostedModel], Any]

KINDS: dict[str, Ask] = {
    "learn": lambda model: model.learn(LearnRequest([1.0, 2.0], 3.0, id="a")),
    "rows": lambda model: model.learn_rows(RowsRequest(records=[{"x": [1.0, 2.0], "y": 3.0}]), "a"),
    "predict": lambda model: model.predict(PredictRequest([1.0, 2.0], id="a")),
    "label": lambda model: model.label(LabelRequest("a", 3.0)),
}
PAIRS = [(one, other) for one in KINDS for other in KINDS if one != other and {one, other} != {"predict", "label"}]


@pytest.mark.parametrize(("first", "second"), PAIRS)
def test_a_row_that_was_learned_under_an_id_is_not_learned_again_in_another_way(
    first: str, second: str, tmp_path: Path
) -> None:
    with served(tmp_path) as running:
        running.ask(running.state.create("m", regressor()))
        model = running.model("m")
        running.ask(KINDS[first](model))
        before = running.ask(model.file())
        assert running.ask(outcome(KINDS[second](model))) == 422
        assert running.ask(model.file()) == before


SAME: list[tuple[Ask, Ask]] = [
    (
        lambda model: model.learn(LearnRequest([1.0, -0.0], 3.0, id="a")),
        lambda model: model.learn(LearnRequest([1, 0], 3, id="a")),
    ),
    (
        lambda model: model.predict(PredictRequest([1.0, 2.0], id="a")),
        lambda model: model.predict(PredictRequest([1, 2], id="a")),
    ),
    (
        lambda model: model.label(LabelRequest("a", 20)),
        lambda model: model.label(LabelRequest("a", 20.0)),
    ),
    (
        lambda model: model.learn_rows(RowsRequest(records=[{"x": [1.0, 2.0], "y": 3.0}]), "a"),
        lambda model: model.learn_rows(RowsRequest(records=[{"y": 3, "x": [1, 2]}]), "a"),
    ),
]


@pytest.mark.parametrize(("first", "again"), SAME)
def test_the_same_request_with_its_numbers_written_in_another_way_gets_the_same_answer(
    first: Ask, again: Ask, tmp_path: Path
) -> None:
    with served(tmp_path) as running:
        running.ask(running.state.create("m", regressor()))
        model = running.model("m")
        answer = running.ask(first(model))
        assert running.ask(again(model)) == answer


def test_numbers_that_differ_and_texts_that_look_like_numbers_are_other_requests(tmp_path: Path) -> None:
    with served(tmp_path) as running:
        running.ask(running.state.create("m", regressor()))
        model = running.model("m")
        running.ask(model.label(LabelRequest("a", 2**53)))
        for other in (2**53 + 1, str(2**53), True, 20.000001):
            assert running.ask(outcome(model.label(LabelRequest("a", other)))) == 422
