"""Estimators: models of a table whose columns are plain numbers, taken as they are."""

import json
from collections.abc import Sequence
from copy import deepcopy
from typing import Any, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from onepass._typing import FloatArray
from onepass.estimators import (
    BayesianMLPClassifier,
    BayesianMLPRegressor,
    BayesianPerceptronClassifier,
    BayesianPerceptronRegressor,
)
from onepass.estimators.batch import PredictedRows
from onepass.service.errors import ProblemError
from onepass.service.served.base import Bad, RowNumbers
from onepass.service.served.table import TableRows, column_of
from onepass.service.served.values import raise_first, refuse_keys
from onepass.service.wire import Inputs, Key, Scalar
from onepass.tables.columns.encoding import Encoding
from onepass.tables.columns.number import FARTHEST, Number
from onepass.tables.columns.values import describe_type, is_numeric, plain
from onepass.tables.explanation import Explanation
from onepass.tables.model import TabularModel
from onepass.tables.targets import ClassTarget, CountTarget, NumberTarget, Target

__all__ = ["EstimatorRows", "table_of_numbers"]

_ESTIMATORS = (
    BayesianMLPClassifier,
    BayesianMLPRegressor,
    BayesianPerceptronClassifier,
    BayesianPerceptronRegressor,
)


class EstimatorRows(TableRows):
    """An estimator: rows are lists of numbers, or objects by the names of its features."""

    kind = "estimator"

    def __init__(self, estimator: Any) -> None:
        self.model = estimator
        self._allows_missing = getattr(estimator, "missing", "error") == "mean"
        self._begin(_table_of(estimator))

    @classmethod
    def accepts(cls, model: Any) -> bool:
        """Whether it is an estimator."""
        return isinstance(model, _ESTIMATORS)

    @property
    def n_seen(self) -> int:
        """Rows learned."""
        return int(self.model.n_seen_)

    def read(self, rows: Sequence[Inputs], keys: Sequence[Key | None]) -> tuple[RowNumbers, Bad]:
        """Rows as numbers."""
        bad: Bad = {}
        refuse_keys(keys, bad)
        return RowNumbers(self._read_numbers(rows, bad)), bad

    def _read_numbers(self, rows: Sequence[Inputs], bad: Bad) -> FloatArray:
        X = np.zeros((len(rows), len(self._names)))
        for i, row in enumerate(rows):
            named = row if isinstance(row, list) and len(row) == len(self._names) else self._named(row, i, bad)
            if i not in bad:
                values = named if isinstance(named, list) else [named.get(name) for name in self._names]
                X[i] = [self._number(*given, i, bad) for given in zip(values, self._names, strict=True)]
        return X

    def _number(self, value: Scalar, name: str, i: int, bad: Bad) -> float:
        if type(value) in (int, float) and abs(value) <= FARTHEST:  # type: ignore[arg-type]
            return float(value)  # type: ignore[arg-type]
        if value is None and self._allows_missing:
            return float("nan")
        shown = "is missing" if value is None else f"is {json.dumps(value)[:60]}, no number that can be learned"
        bad.setdefault(i, ProblemError(422, "bad value", f"{name} {shown}", field=f"x.{name}"))
        return 0.0

    def read_table(self, table: Any, *, learn: bool) -> tuple[RowNumbers, FloatArray | None]:
        """Rows of an Arrow batch, a column per number."""
        self._check_table(table, [] if self._allows_missing else self._names)
        bad: Bad = {}
        X = np.empty((table.num_rows, len(self._names)))
        for place, name in enumerate(self._names):
            X[:, place] = self._numbers_in(column_of(table, name), name, bad)
        y = self._read_target_column(table, bad) if learn else None
        raise_first(bad)
        return RowNumbers(X), y

    def _numbers_in(self, column: Any, name: str, bad: Bad) -> FloatArray:
        column = plain(column)
        if not is_numeric(column.type) and not pa.types.is_null(column.type):
            words = f"column {name!r} holds {describe_type(column.type)} where numbers were expected"
            raise ProblemError(422, "bad value", words, field=name)
        values = np.asarray(pc.cast(column, pa.float64(), safe=False).to_numpy(zero_copy_only=False))
        for i in np.flatnonzero(~(np.abs(values) <= FARTHEST)).tolist():
            self._number(None if np.isnan(values[i]) else float(values[i]), name, i, bad)
        return values

    def learn(self, rows: RowNumbers, y: FloatArray) -> PredictedRows:
        """Learn rows in their order."""
        predicted: PredictedRows = self.model.predict_then_learn_encoded(rows.X, y)
        self._table.n_rows = self.n_seen
        return predicted

    @property
    def _is_explained(self) -> bool:
        """Whether zeros are an average row: an estimator that takes numbers as they are expects them scaled."""
        return not self.model.standardize and not self._allows_missing

    def explain(self, rows: RowNumbers) -> tuple[str, Explanation]:
        """What each number adds to the prediction of an average row."""
        if not self._is_explained:
            raise ProblemError(
                409,
                "not for this model",
                f"a {type(self.model).__name__} can't explain its predictions: serve a model made by 'onepass fit', "
                "which knows its columns",
            )
        return super().explain(rows)

    def weights(self) -> dict[str, list[Any]]:
        """What each number does, where that can be said."""
        return super().weights() if self._is_explained else {}

    def facts(self) -> dict[str, str]:
        """What the model is, in words."""
        return {"model": repr(self.model), "rows learned": f"{self.n_seen:,}"}

    def published(self) -> Self:
        """A copy that nobody changes."""
        return type(self)(deepcopy(self.model))


def table_of_numbers(estimator: Any, names: Sequence[str], target: Target) -> TabularModel:
    """The model of a table of numbers that are taken as they are."""
    return TabularModel.around(estimator, Encoding(tuple(Number(name, 0.0, 1.0, False) for name in names), {}), target)


def _table_of(estimator: Any) -> TabularModel:
    """An estimator as the model of a table."""
    if getattr(estimator, "_categories", None) is not None:
        raise ProblemError(
            422,
            "not a model to serve",
            "an estimator with categorical columns can't be served: make the model with 'onepass fit' instead",
        )
    names = getattr(estimator, "feature_names_in_", [f"x{i}" for i in range(estimator.n_features_in_)])
    return table_of_numbers(estimator, [str(name) for name in names], _target_of(estimator))


def _target_of(estimator: Any) -> Target:
    classes = getattr(estimator, "classes_", None)
    if classes is not None:
        numeric = np.issubdtype(np.asarray(classes).dtype, np.number)
        return ClassTarget("y", tuple(map(str, classes)), bool(numeric))
    if estimator._n_targets > 1:
        raise ProblemError(
            422, "not a model to serve", "an estimator with several targets can't be served: serve one for each"
        )
    return CountTarget("y") if estimator._learns_counts else NumberTarget("y", 0.0, 1.0)
