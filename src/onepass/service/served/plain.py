"""Models of the library without an estimator around them, and fleets: rows are lists of plain numbers.

A perceptron, a network or a committee says what it predicts in a form of its own. `_EstimatorAdapter` and
`_FleetAdapter` let it be asked as an estimator is, so that all that is known about tables of numbers holds for it too.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from onepass._typing import FloatArray
from onepass.estimators import FleetEstimator
from onepass.estimators.batch import PredictedRows
from onepass.models.fleet import PerceptronFleet
from onepass.models.mixture import Mixture
from onepass.models.network import BayesianNetwork
from onepass.models.perceptron import BayesianPerceptron
from onepass.models.prediction import Prediction, RowScores
from onepass.service.errors import ProblemError
from onepass.service.served.base import Bad, RowNumbers
from onepass.service.served.estimator import EstimatorRows, table_of_numbers
from onepass.service.served.values import check_columns, raise_first
from onepass.service.wire import Inputs, Key
from onepass.tables.columns.values import as_texts
from onepass.tables.explanation import Explanation
from onepass.tables.targets import ClassTarget, CountTarget, NumberTarget, Target

__all__ = ["FleetRows", "PlainRows"]

_MODELS = (BayesianPerceptron, BayesianNetwork, Mixture)


class _EstimatorAdapter:
    """A model that is asked as an estimator of one target is."""

    noise_ = 0.0  # which is asked of those alone that learn logarithms of targets

    def __init__(self, model: Any) -> None:
        self._model = model
        self.outliers = model.outliers
        self.n_features_in_: int = model.n_features
        self.n_outputs = getattr(model, "n_outputs", 1)
        self.observation = model.observation

    @property
    def n_seen_(self) -> int:
        return int(self._model.n_seen)

    @property
    def n_set_aside_(self) -> int:
        return int(self._model.n_set_aside)

    def predict(self, X: FloatArray, return_std: bool = True, **keys: Any) -> tuple[FloatArray, FloatArray]:
        seen = self._seen(X, **keys)
        return seen.mean, np.sqrt(seen.var + seen.noise_var)

    def predict_proba(self, X: FloatArray, **keys: Any) -> FloatArray:
        return _per_class(self._seen(X, **keys).mean, sides=True)

    def predict_interval(self, X: FloatArray, level: float) -> tuple[FloatArray, FloatArray]:
        low, high = self._model.interval(X, level)
        return low, high

    def predict_then_learn(self, X: FloatArray, y: FloatArray, **keys: Any) -> PredictedRows:
        seen, scores = self._predict_score_learn(X, y, **keys)
        mean, var, noise_var = seen.mean, seen.var, seen.noise_var
        if self.target.kind == "class":
            mean, var, noise_var = _per_class(mean, sides=True), _per_class(var), _per_class(noise_var)
        return PredictedRows(mean, var, noise_var, *scores[:3])

    @property
    def target(self) -> Target:
        """What its targets are."""
        if self.observation.is_class:
            return _labels(self.n_outputs)
        if self.n_outputs > 1:
            raise ProblemError(
                422,
                "not a model to serve",
                f"a model with {self.n_outputs} outputs can't be served: serve one model per output",
            )
        if self.observation.is_label:
            return _labels(2)
        return CountTarget("y") if self.observation.is_count else NumberTarget("y", 0.0, 1.0)

    def _seen(self, X: FloatArray) -> Prediction:
        return self._model.predict(X)  # type: ignore[no-any-return]

    def _predict_score_learn(self, X: FloatArray, y: FloatArray) -> tuple[Prediction, RowScores]:
        return self._model.predict_score_learn(X, y)  # type: ignore[no-any-return]


class _FleetAdapter(_EstimatorAdapter):
    """A fleet that is asked as the estimator of a model per key is."""

    def __init__(self, fleet: PerceptronFleet) -> None:
        self._model = fleet
        prior = fleet.prior
        self.outliers, self.n_features_in_, self.n_outputs = prior.outliers, prior.n_features, 1
        self.observation = prior.observation

    def predict_interval(  # type: ignore[override]
        self, X: FloatArray, level: float, keys: Sequence[Any]
    ) -> tuple[FloatArray, FloatArray]:
        low, high = self._model.interval(X, level, keys=list(keys))
        return low, high

    def _seen(self, X: FloatArray, keys: Sequence[Any]) -> Prediction:  # type: ignore[override]
        return self._model.predict(X, keys=list(keys))  # type: ignore[no-any-return]

    def _predict_score_learn(  # type: ignore[override]
        self, X: FloatArray, y: FloatArray, keys: Sequence[Any]
    ) -> tuple[Prediction, RowScores]:
        return self._model.predict_score_learn(X, y, keys=list(keys))  # type: ignore[no-any-return]


class PlainRows(EstimatorRows):
    """A perceptron, a network or a committee."""

    kind = "plain"
    _allows_missing = False
    _given_names = None

    def __init__(self, model: Any) -> None:
        self.model = model
        self._adapter = self._adapter_of(model)
        names = [f"x{i}" for i in range(self._adapter.n_features_in_)]
        self._begin(table_of_numbers(self._adapter, names, self._target()))

    def _adapter_of(self, model: Any) -> Any:
        return _EstimatorAdapter(model)

    def _target(self) -> Target:
        found: Target = self._adapter.target
        return found

    @classmethod
    def accepts(cls, model: Any) -> bool:
        """Whether it is such a model."""
        return type(model) in _MODELS  # a network that learns by other rules is of a class below one of these

    @property
    def n_seen(self) -> int:
        """Rows learned."""
        return int(self._adapter.n_seen_)

    @property
    def n_set_aside(self) -> int:
        """Rows counted but not learned, since their target was absurdly far off."""
        return int(self._adapter.n_set_aside_)

    def learn(self, rows: RowNumbers, y: FloatArray) -> PredictedRows:
        """Learn rows in their order."""
        given = {} if rows.keys is None else {"keys": rows.keys}
        predicted: PredictedRows = self._adapter.predict_then_learn(rows.X, y, **given)
        return predicted

    def close_block(self) -> None:
        """Let rows that were learned wait for no others."""
        self.model.close_block()

    def explain(self, rows: RowNumbers) -> tuple[str, Explanation]:
        """Nobody knows what an average row is."""
        raise ProblemError(
            409,
            "not for this model",
            f"a {type(self.model).__name__} can't explain its predictions, because nothing tells what an average row "
            "is: serve an estimator or a model made by 'onepass fit'",
        )

    def weights(self) -> dict[str, list[Any]]:
        """None: nobody knows the scale of the numbers."""
        return {}


class FleetRows(PlainRows):
    """A perceptron per key; a request names its key."""

    kind = "fleet"
    beside = ("key",)

    def __init__(self, model: Any) -> None:
        super().__init__(model)
        self._number_keys = isinstance(model, PerceptronFleet) and model.has_number_keys

    def _adapter_of(self, model: Any) -> Any:
        return model if isinstance(model, FleetEstimator) else _FleetAdapter(model)

    def _target(self) -> Target:
        if isinstance(self._adapter, _FleetAdapter):
            return super()._target()
        return _labels(2) if len(self._adapter.classes_) else NumberTarget("y", 0.0, 1.0)

    @classmethod
    def accepts(cls, model: Any) -> bool:
        """Whether it is a fleet."""
        return isinstance(model, PerceptronFleet | FleetEstimator)

    def schema(self) -> dict[str, Any]:
        """Columns and target, and what keys are."""
        return {**super().schema(), "key": {"kind": "whole number" if self._number_keys else "text"}}

    def read(self, rows: Sequence[Inputs], keys: Sequence[Key | None]) -> tuple[RowNumbers, Bad]:
        """Rows as numbers, with their keys."""
        bad: Bad = {}
        found = self._read_keys(keys, bad)
        return RowNumbers(self._read_numbers(rows, bad), found), bad

    def _read_keys(self, keys: Sequence[Key | None], bad: Bad) -> tuple[Any, ...]:
        return tuple(self._key(key, i, bad) for i, key in enumerate(keys))

    def _key(self, key: Key | None, i: int, bad: Bad) -> Any:
        if key is None:
            words = "key is missing: it says which perceptron of the fleet is meant"
        elif not self._number_keys:
            if isinstance(key, str):
                return key
            words = f'key must be a text, as the keys of this fleet are, such as "{key}", got {key}'
        else:
            text = str(key)
            if len(text) <= 20 and text.isascii() and text.removeprefix("-").isdecimal() and abs(int(text)) < 2**63:
                return int(text)
            words = f"key must be a whole number, as the keys of this fleet are, got {text[:40]!r}"
        bad.setdefault(i, ProblemError(422, "bad value", words, field="key"))
        return 0 if self._number_keys else ""

    def read_table(self, table: Any, *, learn: bool) -> tuple[RowNumbers, FloatArray | None]:
        """Rows of an Arrow batch, with a column ``key``."""
        rows, y = super().read_table(table, learn=learn)
        check_columns(table, ["key"])
        texts = as_texts(table.column(table.schema.get_field_index("key")), "key").to_pylist()
        bad: Bad = {}
        keys = self._read_keys(texts, bad)
        raise_first(bad)
        return rows._replace(keys=keys), y

    def close_block(self) -> None:
        """Nothing waits in a fleet."""


def _labels(n: int) -> ClassTarget:
    return ClassTarget("y", tuple(map(str, range(n))), numeric=True)


def _per_class(values: FloatArray, *, sides: bool = False) -> FloatArray:
    """Columns for all classes, of which a single number is that of the second; probabilities of both sides add up."""
    return values if values.ndim == 2 else np.column_stack([1.0 - values if sides else values, values])
