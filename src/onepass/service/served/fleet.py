"""Models with a perceptron per key: a request names its key."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from onepass.estimators import FleetEstimator
from onepass.estimators.rows import Rows
from onepass.models.fleet import PerceptronFleet
from onepass.service.errors import ProblemError
from onepass.service.served.base import Bad, RowModel, raise_first
from onepass.service.served.estimator import EstimatorRows
from onepass.service.served.numbers import NumberRows, numbered_labels
from onepass.service.served.plain import PlainRows
from onepass.service.served.values import check_columns
from onepass.service.wire import Inputs, Key
from onepass.tables.columns.values import as_texts
from onepass.tables.targets import NumberTarget

__all__ = ["FleetEstimatorRows", "FleetRows"]


class _KeyedRows(NumberRows):
    """Rows of plain numbers, each with a key."""

    kind = "fleet"
    extra_columns = ("key",)
    _number_keys = False

    def schema(self) -> dict[str, Any]:
        """Columns and target, and what keys are."""
        return {**super().schema(), "key": {"kind": "whole number" if self._number_keys else "text"}}

    def read(self, rows: Sequence[Inputs], keys: Sequence[Key | None]) -> tuple[Rows, Bad]:
        """Rows as numbers, with their keys."""
        bad: Bad = {}
        found = self._read_keys(keys, bad)
        return Rows(self._read_numbers(rows, bad), keys=found), bad

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

    def read_table(self, table: Any, *, learn: bool) -> Rows:
        """Rows of an Arrow batch, with a column ``key``."""
        rows = super().read_table(table, learn=learn)
        check_columns(table, ["key"])
        texts = as_texts(table.column(table.schema.get_field_index("key")), "key").to_pylist()
        bad: Bad = {}
        keys = self._read_keys(texts, bad)
        raise_first(bad)
        return replace(rows, keys=keys)

    def close_block(self) -> None:
        """Nothing waits in a fleet."""


class FleetRows(_KeyedRows, PlainRows):
    """A fleet of perceptrons."""

    def __init__(self, model: Any) -> None:
        self._begin(model, model.prior)
        self._number_keys = bool(model.has_number_keys)

    @classmethod
    def accepts(cls, model: Any) -> bool:
        """Whether it is a fleet."""
        return isinstance(model, PerceptronFleet)


class FleetEstimatorRows(_KeyedRows, EstimatorRows):
    """The estimator of a model per key, which tables have."""

    explain = RowModel.explain
    weights = RowModel.weights

    def __init__(self, model: FleetEstimator) -> None:
        target = numbered_labels(2) if len(model.classes_) else NumberTarget("y", 0.0, 1.0)
        self._begin(model, target)

    @classmethod
    def accepts(cls, model: Any) -> bool:
        """Whether it is the estimator of a fleet."""
        return isinstance(model, FleetEstimator)
