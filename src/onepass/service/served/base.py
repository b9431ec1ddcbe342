"""The questions that the service asks of a model, and the form of the answers."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from copy import deepcopy
from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np

from onepass._typing import FloatArray
from onepass.estimators.rows import PredictedRows, Rows
from onepass.evaluation.metrics import REGISTRY, ClassPredictions, NumberPredictions, Task
from onepass.events import Event
from onepass.files.checkpoint import to_bytes
from onepass.models.distribution import Prediction
from onepass.service.errors import ProblemError
from onepass.service.scores import ServedScores
from onepass.service.wire import Asked, Inputs, Interval, Key, RowsRequest, Scalar

__all__ = ["Bad", "RowModel", "Served", "not_for", "raise_first"]

Bad = dict[int, ProblemError]
"""Rows that a model can't take, and their problems."""


def raise_first(bad: Bad) -> None:
    """Refuse rows of which some are bad, by the first of these."""
    if bad:
        first = min(bad)
        raise bad[first].at("row", first + 1)


def not_for(kind: str, what: str) -> ProblemError:
    """The answer to a request that this kind of model does not know."""
    return ProblemError(409, "not for this model", f"a model of kind {kind!r} can't be used for {what}")


class Served(ABC):
    """A model behind the service: what it is, and how it is kept."""

    kind: ClassVar[str]
    changes: ClassVar[frozenset[str]] = frozenset()
    """Kinds of events that it applies by itself."""
    rows: ClassVar[frozenset[str]] = frozenset()
    """Kinds of events that have one row for it to learn, or will have it."""
    model: Any

    def __init__(self, model: Any) -> None:
        self.model = model

    @classmethod
    @abstractmethod
    def accepts(cls, model: Any) -> bool:
        """Whether it is for this model."""

    @property
    @abstractmethod
    def n_seen(self) -> int:
        """Rows, or rewards, that were learned."""

    @property
    @abstractmethod
    def n_set_aside(self) -> int:
        """Of these, those that were counted but not learned, since their target was absurdly far off."""

    @abstractmethod
    def schema(self) -> dict[str, Any]:
        """What requests to it must look like, for people and for programs."""

    def as_bandit(self, what: str) -> Any:
        """Return itself, if it is a bandit; a problem that says what it can't be used for if not."""
        raise not_for(self.kind, what)

    def as_forecaster(self, what: str) -> Any:
        """Return itself, if it forecasts; a problem that says what it can't be used for if not."""
        raise not_for(self.kind, what)

    def as_rows(self, what: str) -> "RowModel":
        """Return itself, if it predicts and learns rows; a problem that says what it can't be used for if not."""
        raise not_for(self.kind, what)

    @property
    @abstractmethod
    def metrics_now(self) -> list[str]:
        """Names of the metrics that it is scored with if it is created now."""

    @abstractmethod
    def new_scores(self, metrics: Sequence[str]) -> Any:
        """What its predictions, or its choices, are scored with: these metrics, of no rows so far."""

    def facts(self) -> dict[str, str]:
        """What the model is and has learned, in words."""
        return {"model": repr(self.model)}

    def weights(self) -> dict[str, list[Any]]:
        """What each feature does, for the target or each class, the largest first; none where that can't be said."""
        return {}

    def published(self) -> Self:
        """What predictions are made with from now on: a copy that never changes, if it makes any."""
        return self

    def refuse_unknown(self, names: Sequence[str]) -> None:
        """Refuse columns of an Arrow batch that mean nothing to the model."""
        return

    @property
    def n_decisions(self) -> int | None:
        """Decisions made; None if it makes none."""
        return None

    @property
    def n_pending(self) -> int | None:
        """How much waits inside the model, with its context; None if what waits is kept in events alone."""
        return None

    @property
    def pending(self) -> tuple[str, ...]:
        """Ids of what waits inside the model."""
        return ()

    def pending_until(self, time: float) -> tuple[str, ...]:
        """Those of them that have waited since this moment or longer."""
        return ()

    def content(self) -> bytes:
        """The model as a file."""
        return to_bytes(self.model)

    def apply(self, event: Event) -> None:
        """Let an event of `changes` happen; a ValueError says why it can't be learned."""
        raise NotImplementedError


class RowModel(Served):
    """A model that predicts rows and learns them with their targets."""

    rows = frozenset({"learn", "prediction", "label"})
    task: Task
    labels: tuple[str, ...] = ()
    expects_outliers: bool
    """Whether it doubts every target; one that does not sets absurd targets aside."""

    def as_rows(self, what: str) -> "RowModel":
        """Return itself."""
        return self

    @property
    def metrics_now(self) -> list[str]:
        """All that are registered for its task."""
        return list(REGISTRY[self.task])

    def new_scores(self, metrics: Sequence[str]) -> ServedScores:
        """How well rows were predicted before they were learned."""
        return ServedScores(self.task, metrics)

    @abstractmethod
    def read(self, rows: Sequence[Inputs], keys: Sequence[Key | None]) -> tuple[Rows, Bad]:
        """Rows of single requests as numbers, and what is wrong with some, of which the numbers mean nothing."""

    def unpredictable(self, rows: Rows) -> Bad:
        """Rows that could be learned, but can't be predicted, and why."""
        return {}

    @abstractmethod
    def read_targets(self, targets: Sequence[Scalar]) -> tuple[FloatArray, Bad]:
        """Targets of single requests as numbers ``(n,)``, and what is wrong with some."""

    @abstractmethod
    def read_table(self, table: Any, *, learn: bool) -> Rows:
        """All rows of an Arrow batch, with their targets if they are to be learned; a bad row is a problem of all."""

    def read_all(self, asked: RowsRequest, *, learn: bool) -> Rows:
        """All rows of one request, with their targets if they are to be learned; a bad row is a problem of all."""
        if not len(asked):
            raise ProblemError(422, "bad value", "there are no rows")
        if asked.records is None:
            return self.read_table(asked.table, learn=learn)
        rows, bad = self.read([one["x"] for one in asked.records], [one.get("key") for one in asked.records])
        if not learn:
            raise_first(bad or self.unpredictable(rows))
            return rows
        y, bad_targets = self.read_targets([one.get("y") for one in asked.records])
        raise_first({**bad_targets, **bad})
        return replace(rows, y=y)

    def distribution(self, rows: Rows) -> Prediction:
        """What is predicted for rows, in the target's own units, if the target is a number or a count."""
        raise NotImplementedError

    def probabilities(self, rows: Rows) -> FloatArray:
        """Probabilities of all labels, ``(n, K)``, if there are any."""
        raise NotImplementedError

    @property
    def tracks_intervals(self) -> bool:
        """Whether intervals follow where the targets of rows that it learns really fall."""
        return False

    def tracked_limits(self, rows: Rows) -> list[list[float] | None] | None:
        """Limits of all levels that are tracked, row by row in the target's own units; None if none are, or not finite.

        They are kept with a prediction that waits for its label, which is scored with them.
        """
        seen = self.distribution(rows) if self.tracks_intervals else None
        if seen is None or seen.tracked is None:
            return None
        ends = [seen.at_normal_score(z) for z in seen.tracked.of_rows(len(seen)).T]
        table = np.column_stack(ends)
        finite = np.isfinite(table).all(axis=1)
        return [row if known else None for row, known in zip(table.tolist(), finite.tolist(), strict=True)]

    def predict(self, rows: Rows, level: float) -> dict[str, Any]:
        """Columns of answers: mean, std, lower and upper, or label and one for each class."""
        if self.labels:
            found = self.probabilities(rows)
            best = np.array(self.labels, dtype=object)[found.argmax(axis=1)]
            return {"label": best} | {f"p_{name}": own for name, own in zip(self.labels, found.T, strict=True)}
        seen = self.distribution(rows)
        low, high = seen.interval(level)
        return {"mean": seen.mean, "std": seen.std, "lower": low, "upper": high}

    def answers(self, rows: Rows, asked: Asked) -> list[dict[str, Any]]:
        """Answers row by row, as the fields of a `onepass.service.wire.Prediction`."""
        if self.labels:
            table = self.probabilities(rows)
            return [
                {"label": self.labels[best], "probabilities": dict(zip(self.labels, row, strict=True))}
                for best, row in zip(table.argmax(axis=1).tolist(), table.tolist(), strict=True)
            ]
        seen = self.distribution(rows)
        low, high = seen.interval(asked.level)
        columns = (seen.mean, seen.std, seen.epistemic, seen.aleatoric, low, high)
        found = [dict(zip(_ANSWER, row, strict=True)) for row in np.column_stack(columns).tolist()]
        if asked.levels:
            ends = np.stack([np.column_stack(seen.interval(level)) for level in asked.levels], axis=1).tolist()
            for answer, row in zip(found, ends, strict=True):
                answer["intervals"] = [Interval(level, *own) for level, own in zip(asked.levels, row, strict=True)]
        return found

    @abstractmethod
    def learn(self, rows: Rows) -> PredictedRows:
        """Learn rows in their order; what was predicted for each just before."""

    def close_block(self) -> None:
        """Let rows that were learned wait for no others, so that it does not matter where snapshots are taken."""
        self.model.close_block()

    @abstractmethod
    def scored(self, y: FloatArray, predicted: PredictedRows) -> NumberPredictions | ClassPredictions:
        """Predictions with their targets in the target's own units, for the scores."""

    def target_text(self, y: float) -> str:
        """A target as people write it."""
        return self.labels[int(y)] if self.labels else f"{y:.10g}"

    def explain(self, rows: Rows) -> tuple[str, Any]:
        """What is explained in words, and the `onepass.tables.explanation.Explanation`."""
        raise not_for(self.kind, "explaining predictions")

    def published(self) -> Self:
        """A copy for predictions, which never changes."""
        return type(self)(deepcopy(self.model))


_ANSWER = ("mean", "std", "epistemic", "aleatoric", "lower", "upper")
