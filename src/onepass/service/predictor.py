"""Predictions that are not stored, made with the published copy of a model; those that wait are made together."""

import asyncio
import time
from typing import TYPE_CHECKING, NamedTuple

from onepass.service.errors import ProblemError
from onepass.service.served import Served
from onepass.service.served.base import answers
from onepass.service.wire import Prediction, PredictRequest

if TYPE_CHECKING:
    from onepass.service.host import HostedModel

__all__ = ["Predictor", "Published"]

_LONG = 0.005  # seconds: predictions that take longer don't keep the event loop
_MOST = 256  # rows at once


class Published(NamedTuple):
    """What predictions are made with; nobody changes it."""

    version: int
    model: Served


class Predictor:
    """Collects requests during a turn of the event loop, and predicts their rows together."""

    def __init__(self, host: "HostedModel") -> None:
        self._host = host
        self._waiting: list[tuple[PredictRequest, asyncio.Future[Prediction]]] = []
        self._seconds = 0.0  # of the processor that the last rows took: on a busy machine they only wait longer

    def predict(self, request: PredictRequest) -> "asyncio.Future[Prediction]":
        """Predict a row."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Prediction] = loop.create_future()
        if not self._waiting:
            loop.call_soon(self._flush)
        self._waiting.append((request, future))
        return future

    def _flush(self) -> None:
        group, self._waiting = self._waiting[:_MOST], self._waiting[_MOST:]
        if self._waiting:
            asyncio.get_running_loop().call_soon(self._flush)
        published = self._host.published
        requests = [request for request, _ in group]
        if self._seconds < _LONG:
            self._resolve(group, self._outcomes(requests, published))
            return
        task = asyncio.get_running_loop().run_in_executor(None, self._outcomes, requests, published)
        task.add_done_callback(lambda done: self._resolve(group, done.result()))

    def _outcomes(self, requests: list[PredictRequest], published: Published) -> list[Prediction | Exception]:
        begin = time.thread_time()
        try:
            found = _predicted(requests, published)
        except Exception as error:  # a bug or a problem of all: everybody has to hear of it
            found = [error] * len(requests)
        self._seconds = time.thread_time() - begin
        return found

    def _resolve(
        self,
        group: list[tuple[PredictRequest, "asyncio.Future[Prediction]"]],
        outcomes: list[Prediction | Exception],
    ) -> None:
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
    found: list[Prediction | Exception] = [bad.get(i, _UNANSWERED) for i in range(len(requests))]
    for level in {request.level for request in requests}:
        places = [i for i, request in enumerate(requests) if request.level == level and i not in bad]
        if not places:
            continue
        some = rows if len(places) == len(requests) else rows.at(places)
        for i, answer in zip(places, answers(model, model.predict(some, level)), strict=True):
            found[i] = Prediction(version, **answer)
    return found


_UNANSWERED = ProblemError(500, "internal error", "the row was not predicted")
