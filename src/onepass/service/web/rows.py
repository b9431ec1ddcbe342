"""Operations on rows: predict, learn, label, decide, reward, explain; alone, as JSON lines and as Arrow streams."""

import asyncio
from typing import Any

from onepass.service.errors import ProblemError
from onepass.service.rows import Rows
from onepass.service.wire import LearnRequest, Prediction, PredictRequest
from onepass.service.web.operations import Call

__all__ = [
    "decide",
    "explain",
    "label",
    "label_lines",
    "learn",
    "learn_arrow",
    "learn_lines",
    "predict",
    "predict_arrow",
    "predict_lines",
    "reward",
]


async def predict(call: Call) -> Prediction:
    """One row; with an id it is an event, which needs the scope of those who learn."""
    if call.body.id is not None:
        call.principal.require("learn")
    return await call.model.predict(call.body)


async def predict_lines(call: Call) -> list[Any]:
    """A line for each line: a prediction, or what is wrong with that row."""
    requests: list[PredictRequest] = call.body
    if any(one.id is not None for one in requests):
        call.principal.require("learn")
    level = requests[0].level
    if all(one.id is None and one.key is None and one.level == level for one in requests):
        try:
            return _lines(await call.model.predict_rows(Rows(records=[{"x": one.x} for one in requests]), level))
        except ProblemError as problem:
            if problem.status != 422:
                raise
            # A row is wrong: the others get their predictions nevertheless, one by one.
    return await asyncio.gather(*(_or_problem(call, one) for one in requests))


async def _or_problem(call: Call, request: PredictRequest) -> Prediction | ProblemError:
    try:
        return await call.model.predict(request)
    except ProblemError as problem:
        return problem


def _lines(columns: dict[str, Any]) -> list[dict[str, Any]]:
    """Columns as a record per row."""
    plain = [column.tolist() if hasattr(column, "tolist") else column for column in columns.values()]
    return [dict(zip(columns, row, strict=True)) for row in zip(*plain, strict=True)]


async def predict_arrow(call: Call) -> dict[str, Any]:
    """Columns of predictions for columns of inputs."""
    return await call.model.predict_rows(Rows(table=call.body), call.query.get("level", 0.95))


async def learn(call: Call) -> Any:
    """One row with its target."""
    return await call.model.learn(call.body)


async def learn_lines(call: Call) -> Any:
    """Many rows, all or none."""
    requests: list[LearnRequest] = call.body
    return await call.model.learn_rows(Rows(records=[_record(one) for one in requests]), call.query.get("id"))


async def learn_arrow(call: Call) -> Any:
    """Many rows, all or none."""
    return await call.model.learn_rows(Rows(table=call.body), call.query.get("id"))


def _record(request: LearnRequest) -> dict[str, Any]:
    record: dict[str, Any] = {"x": request.x, "y": request.y}
    if request.id is not None:
        record["id"] = request.id
    if request.key is not None:
        record["key"] = request.key
    return record


async def label(call: Call) -> Any:
    """The target of an earlier prediction."""
    return await call.model.label(call.body)


async def label_lines(call: Call) -> list[Any]:
    """A line for each line: what became of the label, or what is wrong with it."""
    return await call.model.label_many(call.body)


async def decide(call: Call) -> Any:
    """A bandit's choice."""
    return await call.model.decide(call.body)


async def reward(call: Call) -> Any:
    """What came of a choice."""
    return await call.model.reward(call.body)


async def explain(call: Call) -> Any:
    """What each column adds to a prediction."""
    return await call.model.explain(call.body)
