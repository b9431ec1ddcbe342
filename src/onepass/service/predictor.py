"""Predictions that are not stored; those that wait are made together.

They are made with the published copy of the model or, while that lacks something that was acknowledged, by the writer
with the model itself.
"""

import asyncio
import time
from asyncio import Future
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from onepass.service.errors import ProblemError
from onepass.service.served import Served
from onepass.service.wire import Prediction, PredictRequest

if TYPE_CHECKING:
    from onepass.service.host import HostedModel

__all__ = ["Predictor", "Published"]

_LONG = 0.005  # seconds: predictions that take longer don't keep the event loop
_MOST = 256  # rows at once
_Group = list[tuple[PredictRequest, Future[Prediction]]]


class Published(NamedTuple):
    """What predictions are made with; it is never changed."""

    version: int
    model: Served


class Predictor:
    """Collects requests during a turn of the event loop, and predicts their rows together."""

    def __init__(self, host: "HostedModel") -> None:
        self._host = host
        self._waiting: _Group = []
        self._seconds = 0.0  # of the processor that the last rows took: on a busy machine they only wait longer

    def predict(self, request: PredictRequest) -> Future[Prediction]:
        """Predict a row."""
        loop = asyncio.get_running_loop()
        future: Future[Prediction] = loop.create_future()
        if not self._waiting:
            loop.call_soon(self._flush)
        self._waiting.append((request, future))
        return future

    def _flush(self) -> None:
        loop = asyncio.get_running_loop()
        group, self._waiting = self._waiting[:_MOST], self._waiting[_MOST:]
        if self._waiting:
            loop.call_soon(self._flush)
        if not self._host.is_published and self._host.look(partial(self._answer_elsewhere, group, loop)):
            return
        published = self._host.published
        if self._seconds < _LONG:
            _resolve(group, self._outcomes(group, published))
        else:
            loop.run_in_executor(None, self._answer_elsewhere, group, loop, published)

    def _answer_elsewhere(self, group: _Group, loop: asyncio.AbstractEventLoop, published: Published) -> None:
        """Predict in another thread than the loop's."""
        loop.call_soon_threadsafe(_resolve, group, self._outcomes(group, published))

    def _outcomes(self, group: _Group, published: Published) -> list[Prediction | Exception]:
        begin = time.thread_time()
        try:
            found = _predicted([request for request, _ in group], published)
        except Exception as error:  # a bug or a problem of all: everybody has to hear of it
            found = [error] * len(group)
        self._seconds = time.thread_time() - begin
        return found


def _resolve(group: _Group, outcomes: list[Prediction | Exception]) -> None:
    for (_, future), outcome in zip(group, outcomes, strict=True):
        if future.done():  # its client has gone
            continue
        if isinstance(outcome, Exception):
            future.set_exception(outcome)
        else:
            future.set_result(outcome)


def _predicted(requests: list[PredictRequest], published: Published) -> list[Prediction | Exception]:
    model, version = published.model.as_rows("predictions"), published.version
    rows, bad = model.read([request.x for request in requests], [request.key for request in requests])
    bad = {**model.unpredictable(rows), **bad}
    found: list[Prediction | Exception] = [bad.get(i, _UNANSWERED) for i in range(len(requests))]
    for asked in {request.asked for request in requests}:
        places = [i for i, request in enumerate(requests) if request.asked == asked and i not in bad]
        if not places:
            continue
        some = rows if len(places) == len(requests) else rows.at(places)
        for i, answer in zip(places, model.answers(some, asked), strict=True):
            found[i] = Prediction(version, **answer)
    return found


_UNANSWERED = ProblemError(500, "internal error", "the row was not predicted")
