"""The questions that the service asks of a model, and the form of the answers."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from copy import deepcopy
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from scipy.sparse import issparse, vstack

from onepass._typing import FloatArray
from onepass.estimators.batch import PredictedRows
from onepass.evaluation.metrics import ClassPredictions, NumberPredictions, Task
from onepass.events import Event
from onepass.files.checkpoint import to_bytes
from onepass.service.errors import ProblemError
from onepass.service.scores import Scores
from onepass.service.wire import Inputs, Key, Scalar

__all__ = ["Bad", "RowModel", "RowNumbers", "Served", "answers", "not_for"]

Bad = dict[int, ProblemError]
"""Rows that a model can't take, and their problems."""


class RowNumbers(NamedTuple):
    """Rows as a model takes them."""

    X: Any  # (n, d), dense or sparse
    keys: tuple[Any, ...] | None = None  # of a fleet
    weights: FloatArray | None = None  # of rows that are learned

    def at(self, places: Any) -> "RowNumbers":
        """Some of the rows."""
        keys = None if self.keys is None else tuple(self.keys[place] for place in places)
        return RowNumbers(self.X[places], keys, None if self.weights is None else self.weights[places])

    @classmethod
    def joined(cls, parts: "Sequence[RowNumbers]") -> "RowNumbers":
        """Rows of several requests as one."""
        if len(parts) == 1:
            return parts[0]
        X: Any = [part.X for part in parts]
        weights = [part.weights for part in parts if part.weights is not None]
        return cls(
            vstack(X, format="csr") if issparse(X[0]) else np.concatenate(X),
            None if parts[0].keys is None else tuple(key for part in parts for key in part.keys or ()),
            np.concatenate(weights) if weights else None,
        )


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

    def as_rows(self, what: str) -> "RowModel":
        """Return itself, if it predicts and learns rows; a problem that says what it can't be used for if not."""
        raise not_for(self.kind, what)

    @abstractmethod
    def scores(self, state: dict[str, Any] | None = None) -> Any:
        """What its predictions, or its choices, are scored with: new, or what a state described."""

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

    def scores(self, state: dict[str, Any] | None = None) -> Scores:
        """How well rows were predicted before they were learned."""
        return Scores(self.task) if state is None else Scores.from_state(self.task, state)

    @abstractmethod
    def read(self, rows: Sequence[Inputs], keys: Sequence[Key | None]) -> tuple[RowNumbers, Bad]:
        """Rows of single requests as numbers, and what is wrong with some, of which the numbers mean nothing."""

    @abstractmethod
    def read_targets(self, targets: Sequence[Scalar]) -> tuple[FloatArray, Bad]:
        """Targets of single requests as numbers ``(n,)``, and what is wrong with some."""

    @abstractmethod
    def read_table(self, table: Any, *, learn: bool) -> tuple[RowNumbers, FloatArray | None]:
        """All rows of an Arrow batch, with their targets if they are to be learned; a bad row is a problem of all."""

    @abstractmethod
    def predict(self, rows: RowNumbers, level: float) -> dict[str, Any]:
        """Columns of answers: mean, std, lower and upper, or label and one for each class."""

    @abstractmethod
    def learn(self, rows: RowNumbers, y: FloatArray) -> PredictedRows:
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

    def explain(self, rows: RowNumbers) -> tuple[str, Any]:
        """What is explained in words, and the `onepass.tables.explanation.Explanation`."""
        raise not_for(self.kind, "explaining predictions")

    def published(self) -> Self:
        """A copy for predictions, which never changes."""
        return type(self)(deepcopy(self.model))


def answers(model: RowModel, columns: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Answers row by row, as the fields of a `onepass.service.wire.Prediction`."""
    if model.labels:
        table = np.column_stack([columns[f"p_{name}"] for name in model.labels]).tolist()
        return [
            {"label": label, "probabilities": dict(zip(model.labels, row, strict=True))}
            for label, row in zip(columns["label"], table, strict=True)
        ]
    names = ("mean", "std", "lower", "upper")
    return [dict(zip(names, row, strict=True)) for row in zip(*(columns[name].tolist() for name in names), strict=True)]
