"""Estimators: models of a table whose columns are plain numbers, taken as they are."""

import json
from collections.abc import Sequence
from copy import copy, deepcopy
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
    learner_of,
)
from onepass.estimators.batch import PredictedRows
from onepass.files.checkpoint import to_bytes
from onepass.service.errors import ProblemError
from onepass.service.served.base import Bad, RowNumbers
from onepass.service.served.table import TableRows, column_of
from onepass.service.served.values import raise_first, refuse_keys
from onepass.service.wire import Inputs, Key, Scalar
from onepass.tables.columns.encoding import Encoding
from onepass.tables.columns.number import FARTHEST, Number
from onepass.tables.columns.values import describe_type, is_numeric, plain
from onepass.tables.explanation import Explanation, explain
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
        # Rows come as plain numbers, for which scikit-learn would warn if it knew names: these are kept separately.
        self.model = copy(estimator)
        self._given_names = self.model.__dict__.pop("feature_names_in_", None)
        self._allows_missing = getattr(estimator, "missing", "error") != "error"
        self._begin(_table_of(self.model, self._given_names))

    @classmethod
    def accepts(cls, model: Any) -> bool:
        """Whether it is an estimator."""
        return isinstance(model, _ESTIMATORS)

    @property
    def n_seen(self) -> int:
        """Rows learned."""
        return int(self.model.n_seen_)

    @property
    def n_set_aside(self) -> int:
        """Rows counted but not learned, since their target was absurdly far off."""
        return int(self.model.n_set_aside_)

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
        shown = "is missing" if value is None else f"is {json.dumps(value)[:60]}, not a number that can be learned"
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
        predicted: PredictedRows = learner_of(self.model).predict_then_learn(rows.X, y)
        self._table.n_rows = self.n_seen
        return predicted

    def close_block(self) -> None:
        """Let rows that were learned wait for no others, so that it does not matter where snapshots are taken."""
        learner_of(self.model).close_block()

    def explain(self, rows: RowNumbers) -> tuple[str, Explanation]:
        """What each number adds to the prediction of an average row.

        Average numbers are the means that the estimator scales by; zeros, if it expects numbers that are scaled.
        """
        scaled = _Scaled(self.model)
        return self._unit(rows), explain(self._around(scaled), scaled.rows(rows.X))

    def weights(self) -> dict[str, list[Any]]:
        """What each number does: the change that one standard deviation brings, or 1 where numbers are not scaled."""
        return self._around(_Scaled(self.model)).weights()

    def _around(self, estimator: Any) -> TabularModel:
        return table_of_numbers(estimator, self._names, self._table.target)

    def facts(self) -> dict[str, str]:
        """What the model is, in words."""
        return {"model": repr(self.model), "rows learned": f"{self.n_seen:,}"}

    def content(self) -> bytes:
        """The estimator as a file, with the names that it was given."""
        return to_bytes(self._named_model())

    def published(self) -> Self:
        """A copy that nobody changes."""
        return type(self)(deepcopy(self._named_model()))

    def _named_model(self) -> Any:
        if self._given_names is None:
            return self.model
        named = copy(self.model)
        named.feature_names_in_ = self._given_names
        return named


class _Scaled:
    """An estimator that is asked with numbers in standard deviations from their means, as it scales them itself.

    So a row of zeros is an average row, which explanations and weights of tables are about.
    """

    def __init__(self, estimator: Any) -> None:
        self._estimator, self._state = estimator, learner_of(estimator).state
        self._scaling = self._state.inputs

    def __getattr__(self, name: str) -> Any:
        return getattr(self._estimator, name)

    def rows(self, X: FloatArray) -> FloatArray:
        """Rows as it is asked with them; what is missing has the mean of its column so far."""
        scaled: FloatArray = self._scaling(X)
        moments = self._state.columns
        return scaled if moments is None else moments.filled(scaled)[0]

    def predict(self, X: FloatArray) -> Any:
        return self._estimator.predict(self._own(X))

    def predict_proba(self, X: FloatArray) -> Any:
        return self._estimator.predict_proba(self._own(X))

    def sample_function(self, X: FloatArray, n_samples: int, random_state: int) -> Any:
        return self._estimator.sample_function(self._own(X), n_samples, random_state=random_state)

    @property
    def _learner(self) -> Self:
        return self

    def linear_belief(self) -> tuple[FloatArray, FloatArray]:
        """Mean and covariance of intercept and weights, for the target in its own units."""
        mean, cov = learner_of(self._estimator).linear_belief()
        targets = self._state.targets
        mean = mean * targets.scale[0]
        mean[0] += targets.centre[0]
        return mean, cov * targets.scale[0] ** 2

    @property
    def coef_(self) -> Any:
        return self._estimator.coef_ * self._scaling.scale

    @property
    def coef_cov_(self) -> Any:
        cov, scale = self._estimator.coef_cov_, self._scaling.scale
        return cov * (np.outer(scale, scale) if cov.shape == (len(scale), len(scale)) else scale**2)

    def _own(self, X: FloatArray) -> FloatArray:
        return np.asarray(X * self._scaling.scale + self._scaling.centre)


def table_of_numbers(estimator: Any, names: Sequence[str], target: Target) -> TabularModel:
    """The model of a table of numbers that are taken as they are."""
    return TabularModel.around(estimator, Encoding(tuple(Number(name, 0.0, 1.0, False) for name in names), {}), target)


def _table_of(estimator: Any, names: Any) -> TabularModel:
    """An estimator as the model of a table."""
    if learner_of(estimator).encoder.categories is not None:
        raise ProblemError(
            422,
            "not a model to serve",
            "an estimator with categorical columns can't be served: make the model with 'onepass fit' instead",
        )
    names = [f"x{i}" for i in range(estimator.n_features_in_)] if names is None else names
    return table_of_numbers(estimator, [str(name) for name in names], _target_of(estimator))


def _target_of(estimator: Any) -> Target:
    classes = getattr(estimator, "classes_", None)
    if classes is not None:
        numeric = np.issubdtype(np.asarray(classes).dtype, np.number)
        return ClassTarget("y", tuple(map(str, classes)), bool(numeric))
    targets = learner_of(estimator).targets
    if targets.n_targets > 1:
        raise ProblemError(
            422, "not a model to serve", "an estimator with several targets can't be served: serve one for each"
        )
    return CountTarget("y") if targets.likelihood.is_count else NumberTarget("y", 0.0, 1.0)
