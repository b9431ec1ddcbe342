"""Scores of the service are those of the library's evaluation over the same rows, and survive a snapshot."""

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from onepass.estimators.rows import PredictedRows
from onepass.evaluation.metrics import REGISTRY, Task
from onepass.evaluation.prequential import Trial
from onepass.events import Event
from onepass.files.checkpoint import from_bytes
from onepass.service.scores import ServedScores
from tests.helpers.served import EXAMPLES, content, served
from tests.service.served.test_rows import TABLES, batch_of, read

ROWS = 60
NUMBERS = list(REGISTRY["numbers"])


def restored(task: Task, scores: ServedScores) -> ServedScores:
    """The same scores, by way of JSON."""
    state = json.loads(json.dumps(scores.state()))
    return ServedScores(task, state["metrics"]).restore(state)


def scored(name: str, sizes: tuple[int, ...]) -> tuple[ServedScores, list[Any], list[dict[str, Any]]]:
    """Scores of a model that learns requests in events of these sizes, what was scored, and the requests."""
    model, requests = served(name), EXAMPLES[name].requests(np.random.default_rng(3), sum(sizes))
    scores, found, start = model.new_scores(model.metrics_now), [], 0
    for size in sizes:
        part = requests[start : start + size]
        start += size
        y, _ = model.read_targets([one["y"] for one in part])
        rows = model.scored(y, model.learn(replace(read(model, part), y=y)))
        scores.update(rows)
        found.append(rows)
    return scores, found, requests


@pytest.mark.parametrize("name", TABLES)
def test_totals_are_those_of_an_evaluation_of_the_table(name: str) -> None:
    scores, _, requests = scored(name, (1,) * 20 + (10,) * 4)
    own = from_bytes(content(name))
    trial = Trial(own)
    for request in requests[:20]:
        trial.add(own.rows([batch_of(own, [request])]))
    for start in range(20, ROWS, 10):
        trial.add(own.rows([batch_of(own, requests[start : start + 10])]))
    expected = trial.scores()["onepass"]
    total = scores.total()
    shared = set(total) & set(expected)
    assert shared >= ({"log_loss", "accuracy"} if served(name).labels else {"rmse", "mae", "coverage_95"})
    for metric in shared:
        assert total[metric] == pytest.approx(expected[metric], rel=1e-9), metric
    assert scores.n == ROWS


@pytest.mark.parametrize("name", EXAMPLES)
def test_totals_are_those_of_the_library_s_metrics(name: str) -> None:
    if "warms up" in name:
        pytest.skip("rows of a warm-up are not scored")
    scores, found, _ = scored(name, (1, 2, 3, 4))
    metrics = [metric() for metric in REGISTRY[served(name).task].values()]
    for rows in found:
        for metric in metrics:
            metric.update(rows)
    expected = {metric.name: metric.get() for metric in metrics}
    total = scores.total()
    assert total == pytest.approx({name: value for name, value in expected.items() if value is not None}, rel=1e-9)
    calibration = scores.calibration()
    assert sum(calibration["rows"]) == 10
    if served(name).labels:
        weights = np.array(calibration["rows"])
        assert weights @ calibration["observed"] / 10 == pytest.approx(total["accuracy"])
    else:
        assert sum(calibration["share"]) == pytest.approx(1.0)


@pytest.mark.parametrize("name", EXAMPLES)
def test_scores_come_back_from_their_state_and_go_on_as_before(name: str) -> None:
    scores, found, _ = scored(name, (1, 5, 7, 20))
    copy = restored(served(name).task, scores)
    assert copy.report() == scores.report()
    for one in (scores, copy):
        one.update(found[-1])
    assert copy.state() == scores.state()


def test_scores_without_rows_say_nothing_and_come_back() -> None:
    scores = restored("numbers", ServedScores("numbers", NUMBERS))
    assert (scores.n, scores.total(), scores.recent()) == (0, {}, {})
    assert json.dumps(scores.report())


@pytest.mark.parametrize(("n", "least", "most"), [(1, 1, 1), (40, 40, 40), (200, 48, 60), (900, 90, 120)])
def test_recent_scores_are_those_of_the_last_tenth_and_of_48_rows_at_least(n: int, least: int, most: int) -> None:
    model, scores = served("perceptron"), ServedScores("numbers", NUMBERS)
    errors = []
    for request in EXAMPLES["perceptron"].requests(np.random.default_rng(0), n):
        y, _ = model.read_targets([request["y"]])
        rows = model.scored(y, model.learn(replace(read(model, [request]), y=y)))
        scores.update(rows)
        errors.append(float(abs(rows.y - rows.mean)[0]))  # type: ignore[union-attr]
    recent = scores.recent()
    assert least <= recent["rows"] <= most
    assert recent["mae"] == pytest.approx(np.mean(errors[-int(recent["rows"]) :]))


def alarmed(outliers: list[float], changes: list[float]) -> PredictedRows:
    none = np.zeros(len(outliers))
    return PredictedRows(none, none, none, none, np.array(outliers), np.array(changes))


def event(number: int) -> Event:
    return Event(number, "model/a", "rows", str(number), {}, b"", 1e9)


def test_rows_of_several_events_name_their_own() -> None:
    scores = ServedScores("numbers", NUMBERS)
    scores.watch(alarmed([0.9, 0.1, 0.9], [0.0] * 3), [event(4), event(5), event(6)], str)
    assert [one["version"] for one in scores.alarms] == [4, 6]


def test_alarms_name_the_row_that_raised_them() -> None:
    scores = ServedScores("numbers", NUMBERS)
    scores.watch(alarmed([0.1, 0.9, 0.2, 0.8], [0.0] * 4), [event(7)], "row {}".format)
    assert scores.outliers == 2
    assert [(one["kind"], one["target"], one["version"]) for one in scores.alarms] == [
        ("outlier", "row 1", 7),
        ("outlier", "row 3", 7),
    ]


@pytest.mark.parametrize("sizes", [(8,), (1,) * 8, (3, 5)])
def test_a_change_is_one_alarm_until_it_is_over_however_rows_are_divided(sizes: tuple[int, ...]) -> None:
    scores, changes = ServedScores("numbers", NUMBERS), [0.05, 0.6, 0.9, 0.3, 0.7, 0.05, 0.8, 0.2]
    for number, part in enumerate(np.split(np.array(changes), np.cumsum(sizes)[:-1])):
        scores.watch(alarmed([0.0] * len(part), part.tolist()), [event(number)], str)
    assert scores.changes == 2
    assert [one["probability"] for one in scores.alarms] == [0.6, 0.8]
