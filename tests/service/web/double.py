"""A stand-in for the models: answers from memory, notes what it was asked, and can be told to fail.

It has the methods that HTTP uses and nothing of learning, so that tests of HTTP fail for reasons of HTTP.
"""

from types import SimpleNamespace
from typing import Any

import numpy as np

from onepass.service.counting import Durations, UpAndDown
from onepass.service.errors import ProblemError
from onepass.service.wire import (
    ArmRequest,
    ArmsRequest,
    DecideRequest,
    Decision,
    Declared,
    Distribution,
    ExpireRequest,
    Explained,
    ExplainRequest,
    Forecasted,
    ForecastRequest,
    ForecastStep,
    LabelRequest,
    Learned,
    LearnRequest,
    Prediction,
    PredictRequest,
    RewardRequest,
    RollbackRequest,
    RowsRequest,
)

__all__ = ["ModelDouble", "StateDouble"]


class ModelDouble:
    """Predicts the sum of a row's numbers."""

    kind = "table"

    def __init__(self, name: str) -> None:
        self.name = name
        self.published = SimpleNamespace(model=SimpleNamespace(refuse_unknown=lambda names: None))
        self.asked: list[Any] = []
        self.failure: Exception | None = None
        self.why_not_writable: str | None = None
        self.counters = {
            "learned": 3.0,
            "predicted": 5.0,
            "refused": 1.0,
            "scored": 20.0,
            "shadow_scored": 10.0,
            "predictions_waiting": 2.0,
            "labels_waiting": 0.0,
            "queue": 7.0,
            "writable": 1.0,
            "rows": 103.0,
            "outlier_alarms": 1.0,
            "set_aside": 2.0,
            "change_alarms": 0.0,
        }
        self.scores, self.shadow_scores = {"roc_auc": 0.75, "coverage_95": 0.9}, {"roc_auc": 0.5}
        self.score_sums = {"log_likelihood": UpAndDown(30.0, 2.0), "coverage_95": UpAndDown(18.0, 0.0)}
        self.shadow_score_sums = {"log_likelihood": UpAndDown(4.0, 1.0)}
        self.durations = {"label_lag": Durations((10.0, 100.0)), "commit": Durations((0.1,))}
        for seconds in (4.0, 16.0, 1000.0):
            self.durations["label_lag"].add(seconds)

    def _note(self, asked: Any) -> None:
        self.asked.append(asked)
        if self.failure is not None:
            raise self.failure

    def glance(self) -> dict[str, Any]:
        return {"name": self.name, "kind": self.kind, "n_seen": np.int64(3), "version": 3}

    def status(self) -> dict[str, Any]:
        return self.glance()

    def metrics(self) -> dict[str, Any]:
        return {"scores": {"log_likelihood": -1.5, "coverage_95": 0.9}, "rows": 3, "nothing": float("nan")}

    async def weights(self) -> dict[str, Any]:
        return {"weights": {"km": np.array([1.0, 2.0])}}

    async def predict(self, request: PredictRequest) -> Prediction:
        self._note(request)
        assert isinstance(request.x, dict)
        if isinstance(request.x.get("km"), str):
            raise ProblemError(422, "bad value", "km must be a number", field="x.km")
        numbers = [value for value in request.x.values() if isinstance(value, int | float)]
        return Prediction(3, id=request.id, mean=float(sum(numbers)))

    async def predict_rows(self, rows: RowsRequest, level: float = 0.95) -> dict[str, Any]:
        self._note((rows, level))
        return {"mean": np.asarray(rows.table.column(0)) + 1.0, "label": ["yes"] * len(rows), "version": 3}

    async def learn(self, request: LearnRequest) -> Learned:
        self._note(request)
        return Learned(request.id or "made", "learned", 4, 4)

    async def learn_rows(self, rows: RowsRequest, id: str | None = None) -> Learned:
        self._note((rows, id))
        return Learned(id or "made", "learned", 4, 3 + len(rows))

    async def label(self, request: LabelRequest) -> Learned:
        self._note(request)
        return Learned(request.id, "waiting", 4, 4)

    async def label_many(self, requests: list[LabelRequest]) -> list[Learned | ProblemError]:
        self._note(requests)
        return [
            ProblemError(409, "too late", "it has expired"),
            *[Learned(one.id, "learned", 4, 4) for one in requests[1:]],
        ]

    async def carry_out(self, operation: Any) -> Any:
        request = operation.asked
        self._note(request)
        answers: dict[type, Any] = {
            DecideRequest: lambda: Decision(request.id or "made", "red", ["red"], 0.5, 4),
            ArmRequest: lambda: {"arms": [request.arm], "paused": [], "version": 3},
            ExpireRequest: lambda: {"expired": 0, "version": 3},
        }
        return answers[type(request)]()

    async def arms(self, request: ArmsRequest) -> dict[str, Any]:
        self._note(request)
        return {"arms": [{"arm": "red", "mean": 0.5, "std": 0.1, "propensity": 1.0}], "version": 4}

    async def reward(self, request: RewardRequest) -> Learned:
        self._note(request)
        return Learned(request.id, "learned", 4, 4)

    async def explain(self, request: ExplainRequest) -> Explained:
        self._note(request)
        return Explained("price", 1.0, 2.0, [], 3)

    async def forecast(self, request: ForecastRequest) -> Forecasted:
        self._note(request)
        return Forecasted(3, [ForecastStep(1.0, 0.5, [], 7.0)], Distribution(1.0, 0.5, []), [])

    async def waiting(self) -> dict[str, Any]:
        self._note("waiting")
        return {"pending": [{"id": "sale-1", "since": 5.0}], "waiting": []}

    async def snapshot(self) -> dict[str, Any]:
        self._note("snapshot")
        return {"version": 3}

    async def rollback(self, request: RollbackRequest) -> dict[str, Any]:
        self._note(request)
        return self.status()

    async def set_shadow(self, content: bytes | Declared) -> dict[str, Any]:
        self._note(content)
        return self.status()

    async def drop_shadow(self) -> None:
        self._note("drop")

    async def promote(self) -> dict[str, Any]:
        self._note("promote")
        return self.status()

    async def forget(self, id: str) -> int:
        self._note(id)
        return 1

    async def file(self) -> bytes:
        return b"the model"


class StateDouble:
    """Models by name; one, ``price``, is there."""

    def __init__(self) -> None:
        self.held = {"price": ModelDouble("price")}
        self.is_ready = True
        self.replaying: list[str] = []
        self.broken: dict[str, str] = {}
        self.events: list[str] = []
        self.created: list[bytes | Declared] = []

    async def start(self) -> None:
        self.events.append("started")

    async def stop(self) -> None:
        self.events.append("stopped")

    def models(self) -> list[ModelDouble]:
        return list(self.held.values())

    def model(self, name: str) -> ModelDouble:
        if name not in self.held:
            raise ProblemError(404, "no such model", f"there is no model {name!r}")
        return self.held[name]

    async def create(self, name: str, content: bytes | Declared) -> tuple[ModelDouble, bool]:
        self.created.append(content)
        is_new = name not in self.held
        return self.held.setdefault(name, ModelDouble(name)), is_new

    async def delete(self, name: str) -> None:
        self.model(name)
        del self.held[name]
