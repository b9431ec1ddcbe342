"""Operations on rows: predict, learn, label, decide, compare arms, reward, explain; alone or many at once."""

import asyncio
from collections.abc import Awaitable, Sequence
from typing import Any

from onepass.service.errors import ProblemError
from onepass.service.web.bodies import Lines
from onepass.service.web.operations import Call
from onepass.service.wire import LearnRequest, Prediction, PredictRequest, RowsRequest

__all__ = [
    "arms",
    "explain",
    "forecast",
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
    requests: Lines = call.body
    if any(one.id is not None for one in requests):
        call.principal.require("learn")
    return _answers(requests, await asyncio.gather(*(_or_problem(call, one) for one in requests)))


async def _or_problem(call: Call, request: PredictRequest) -> Prediction | ProblemError:
    try:
        return await call.model.predict(request)
    except ProblemError as problem:
        return problem


def _answers(lines: Lines, found: Sequence[Any]) -> list[Any]:
    """An answer for each line; a problem names its line."""
    return [lines.refused(one, i) if isinstance(one, ProblemError) else one for i, one in enumerate(found)]


async def predict_arrow(call: Call) -> dict[str, Any]:
    """Columns of predictions for columns of inputs."""
    return await call.model.predict_rows(_batch(call), call.query.get("level", 0.95))


def learn(call: Call) -> Awaitable[Any]:
    """One row with its target."""
    return call.model.learn(call.body)


async def learn_lines(call: Call) -> Any:
    """Many rows, all or none."""
    lines: Lines = call.body
    records = [_record(one) for one in lines]
    named = next((i for i, one in enumerate(lines) if one.id is not None), None)
    if named is not None:
        words = "rows of a batch can't have ids: they are one request; give its id as the parameter ?id="
        raise lines.refused(ProblemError(422, "bad value", words, field="id"), named)
    try:
        return await call.model.learn_rows(RowsRequest(records=records), **call.query)
    except ProblemError as problem:
        if problem.place is None:
            raise
        raise lines.refused(problem, problem.place[1] - 1) from None


async def learn_arrow(call: Call) -> Any:
    """Many rows, all or none."""
    return await call.model.learn_rows(_batch(call), **call.query)


def _batch(call: Call) -> RowsRequest:
    """The rows of an Arrow batch, whose columns must mean something to the model."""
    call.model.published.model.refuse_unknown(call.body.schema.names)
    return RowsRequest(table=call.body)


def _record(request: LearnRequest) -> dict[str, Any]:
    record: dict[str, Any] = {"x": request.x, "y": request.y}
    if request.key is not None:
        record["key"] = request.key
    return record


async def label(call: Call) -> Any:
    """The target of an earlier prediction."""
    return await call.model.label(call.body)


async def label_lines(call: Call) -> list[Any]:
    """A line for each line: what became of the label, or what is wrong with it."""
    return _answers(call.body, await call.model.label_many(call.body))


async def arms(call: Call) -> Any:
    """What is expected of each arm."""
    return await call.model.arms(call.body)


async def reward(call: Call) -> Any:
    """What came of a choice."""
    return await call.model.reward(call.body)


async def explain(call: Call) -> Any:
    """What each column adds to a prediction."""
    return await call.model.explain(call.body)


async def forecast(call: Call) -> Any:
    """The next steps of a series."""
    return await call.model.forecast(call.body)
