"""Models of the library without an estimator around them, and fleets: rows are lists of plain numbers."""

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
from onepass.models.prediction import Prediction
from onepass.service.errors import ProblemError
from onepass.service.served.base import Bad, RowNumbers
from onepass.service.served.numbers import NumberRows, Numbers, numbered_labels
from onepass.service.served.values import check_columns, raise_first
from onepass.service.wire import Inputs, Key
from onepass.tables.columns.values import as_texts
from onepass.tables.explanation import Explanation
from onepass.tables.targets import CountTarget, NumberTarget, Target

__all__ = ["FleetEstimatorRows", "FleetRows", "PlainRows"]

_MODELS = (BayesianPerceptron, BayesianNetwork, Mixture)


class PlainRows(NumberRows):
    """A perceptron, a network or a committee."""

    kind = "plain"

    def __init__(self, model: Any) -> None:
        self._begin(model, model)

    def _begin(self, model: Any, described: Any) -> None:
        """Serve a model that is like another one; of a fleet, like the perceptron of each key."""
        super().__init__(model, _target_of(described), [f"x{i}" for i in range(described.n_features)])
        self.expects_outliers = bool(described.outliers)

    @classmethod
    def accepts(cls, model: Any) -> bool:
        """Whether it is such a model."""
        return type(model) in _MODELS  # a network that learns by other rules is of a class below one of these

    @property
    def n_seen(self) -> int:
        """Rows learned."""
        return int(self.model.n_seen)

    @property
    def n_set_aside(self) -> int:
        """Rows counted but not learned, since their target was absurdly far off."""
        return int(self.model.n_set_aside)

    def options(self, rows: RowNumbers) -> dict[str, Any]:
        """What else the model is asked with."""
        return {}

    def predict_numbers(self, rows: RowNumbers, level: float) -> Numbers:
        """Mean, standard deviation and interval."""
        given = self.options(rows)
        seen: Prediction = self.model.predict(rows.X, **given)
        return Numbers(seen.mean, np.sqrt(seen.var + seen.noise_var), *self.model.interval(rows.X, level, **given))

    def predict_proba(self, rows: RowNumbers) -> FloatArray:
        """Probabilities of all classes."""
        return _per_class(self.model.predict(rows.X, **self.options(rows)).mean, sides=True)

    def learn(self, rows: RowNumbers, y: FloatArray) -> PredictedRows:
        """Learn rows in their order."""
        seen, scores = self.model.predict_score_learn(rows.X, y, **self.options(rows))
        mean, var, noise_var = seen.mean, seen.var, seen.noise_var
        if self.labels:
            mean, var, noise_var = _per_class(mean, sides=True), _per_class(var), _per_class(noise_var)
        return PredictedRows(mean, var, noise_var, *scores[:3])

    def explain(self, rows: RowNumbers) -> tuple[str, Explanation]:
        """Nobody knows what an average row is."""
        raise ProblemError(
            409,
            "not for this model",
            f"a {type(self.model).__name__} can't explain its predictions, because nothing tells what an average row "
            "is: serve an estimator or a model made by 'onepass fit'",
        )


class FleetRows(PlainRows):
    """A perceptron per key; a request names its key."""

    kind = "fleet"
    beside = ("key",)

    def __init__(self, model: Any) -> None:
        self._begin(model, model.prior)
        self._number_keys = bool(model.has_number_keys)

    @classmethod
    def accepts(cls, model: Any) -> bool:
        """Whether it is a fleet."""
        return isinstance(model, PerceptronFleet)

    def options(self, rows: RowNumbers) -> dict[str, Any]:
        """The keys of the rows."""
        return {"keys": list(rows.keys or ())}

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


class FleetEstimatorRows(FleetRows):
    """The estimator of a model per key, which a table has."""

    _number_keys = False

    def __init__(self, model: FleetEstimator) -> None:
        target = numbered_labels(2) if len(model.classes_) else NumberTarget("y", 0.0, 1.0)
        NumberRows.__init__(self, model, target, [f"x{i}" for i in range(model.n_features_in_)])
        self.expects_outliers = bool(model.outliers)

    @classmethod
    def accepts(cls, model: Any) -> bool:
        """Whether it is the estimator of a fleet."""
        return isinstance(model, FleetEstimator)

    @property
    def n_seen(self) -> int:
        """Rows learned."""
        return int(self.model.n_seen_)

    @property
    def n_set_aside(self) -> int:
        """Rows counted but not learned, since their target was absurdly far off."""
        return int(self.model.n_set_aside_)

    def predict_numbers(self, rows: RowNumbers, level: float) -> Numbers:
        """Mean, standard deviation and interval."""
        mean, std = self.model.predict(rows.X, return_std=True, **self.options(rows))
        return Numbers(mean, std, *self.model.predict_interval(rows.X, level=level, **self.options(rows)))

    def predict_proba(self, rows: RowNumbers) -> FloatArray:
        """Probabilities of both classes."""
        return np.asarray(self.model.predict_proba(rows.X, **self.options(rows)))

    def learn(self, rows: RowNumbers, y: FloatArray) -> PredictedRows:
        """Learn rows in their order."""
        predicted: PredictedRows = self.model.predict_then_learn(rows.X, y, **self.options(rows))
        return predicted


def _target_of(model: Any) -> Target:
    """What the targets of a perceptron or a network are."""
    likelihood, n_outputs = model.observation, getattr(model, "n_outputs", 1)
    if likelihood.is_class:
        return numbered_labels(n_outputs)
    if n_outputs > 1:
        raise ProblemError(
            422,
            "not a model to serve",
            f"a model with {n_outputs} outputs can't be served: serve one model per output",
        )
    if likelihood.is_label:
        return numbered_labels(2)
    return CountTarget("y") if likelihood.is_count else NumberTarget("y", 0.0, 1.0)


def _per_class(values: FloatArray, *, sides: bool = False) -> FloatArray:
    """Columns for all classes, of which a single number is that of the second; probabilities of both sides add up."""
    return values if values.ndim == 2 else np.column_stack([1.0 - values if sides else values, values])
