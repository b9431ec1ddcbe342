"""Rows of plain numbers, taken as they are: of estimators, perceptrons, networks and fleets."""

import json
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from onepass._typing import FloatArray
from onepass.estimators.rows import Rows
from onepass.service.errors import ProblemError
from onepass.service.served.base import Bad, raise_first
from onepass.service.served.columns import ColumnRows, column_of
from onepass.service.served.values import refuse_keys
from onepass.service.wire import Inputs, Key, Scalar
from onepass.tables.columns.number import FARTHEST, Number
from onepass.tables.columns.values import describe_type, is_numeric, plain
from onepass.tables.targets import ClassTarget, Target

__all__ = ["NumberRows", "number_columns", "numbered_labels"]


class NumberRows(ColumnRows):
    """A model whose rows are lists of numbers, or objects by the names of its features.

    Parameters
    ----------
    model : what is served
    target : what its targets are
    names : of its features
    allows_missing : whether a number may be left out
    """

    def __init__(self, model: Any, target: Target, names: Sequence[str], *, allows_missing: bool = False) -> None:
        self._target, self._allows_missing = target, allows_missing
        super().__init__(model, number_columns(names))

    @property
    def target(self) -> Target:
        """What its targets are."""
        return self._target

    def read(self, rows: Sequence[Inputs], keys: Sequence[Key | None]) -> tuple[Rows, Bad]:
        """Rows as numbers."""
        bad: Bad = {}
        refuse_keys(keys, bad)
        return Rows(self._read_numbers(rows, bad)), bad

    def _read_numbers(self, rows: Sequence[Inputs], bad: Bad) -> FloatArray:
        X = np.zeros((len(rows), len(self.names)))
        for i, row in enumerate(rows):
            named = row if isinstance(row, list) and len(row) == len(self.names) else self._named(row, i, bad)
            if i not in bad:
                values = named if isinstance(named, list) else [named.get(name) for name in self.names]
                X[i] = [self._number(*given, i, bad) for given in zip(values, self.names, strict=True)]
        return X

    def _number(self, value: Scalar, name: str, i: int, bad: Bad) -> float:
        if type(value) in (int, float) and abs(value) <= FARTHEST:  # type: ignore[arg-type]
            return float(value)  # type: ignore[arg-type]
        if value is None and self._allows_missing:
            return float("nan")
        shown = "is missing" if value is None else f"is {json.dumps(value)[:60]}, not a number that can be learned"
        bad.setdefault(i, ProblemError(422, "bad value", f"{name} {shown}", field=f"x.{name}"))
        return 0.0

    def read_table(self, table: Any, *, learn: bool) -> Rows:
        """Rows of an Arrow batch, a column per number."""
        self._check_table(table, [] if self._allows_missing else self.names)
        bad: Bad = {}
        X = np.empty((table.num_rows, len(self.names)))
        for place, name in enumerate(self.names):
            X[:, place] = self._numbers_in(column_of(table, name), name, bad)
        y = self._read_target_column(table, bad) if learn else None
        raise_first(bad)
        return Rows(X, y)

    def _numbers_in(self, column: Any, name: str, bad: Bad) -> FloatArray:
        column = plain(column)
        if not is_numeric(column.type) and not pa.types.is_null(column.type):
            words = f"column {name!r} holds {describe_type(column.type)} where numbers were expected"
            raise ProblemError(422, "bad value", words, field=name)
        values = np.asarray(pc.cast(column, pa.float64(), safe=False).to_numpy(zero_copy_only=False))
        for i in np.flatnonzero(~(np.abs(values) <= FARTHEST)).tolist():
            self._number(None if np.isnan(values[i]) else float(values[i]), name, i, bad)
        return values

    def facts(self) -> dict[str, str]:
        """What the model is, in words."""
        return {"model": repr(self.model), "rows learned": f"{self.n_seen:,}"}


def number_columns(names: Sequence[str]) -> tuple[Number, ...]:
    """Columns of numbers that are taken as they are."""
    return tuple(Number(str(name), 0.0, 1.0, False) for name in names)


def numbered_labels(n: int) -> ClassTarget:
    """Classes that are the numbers from 0 on."""
    return ClassTarget("y", tuple(map(str, range(n))), numeric=True)
