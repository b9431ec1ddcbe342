"""The columns of a log of decisions: to and from tables, where every value that comes from outside is checked."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from onepass._messages import first_line
from onepass._typing import FloatArray

__all__ = ["ColumnNames", "LogRows", "as_lists", "read_rows", "to_table"]

_MOMENT = pa.timestamp("us", tz="UTC")
_MICROSECONDS = 1e6  # in a second
_LATEST = 9e12  # seconds since 1970 that 64 bits can hold in microseconds
_TEXTS = (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view)
_SHOWN = 12  # names of columns in a message


class LogRows(NamedTuple):
    """Decisions in columns, ``(n,)`` each; see the properties of `onepass.decisions.DecisionLog`."""

    ids: NDArray[np.object_]
    times: FloatArray
    contexts: FloatArray  # (n, d)
    arms: NDArray[np.object_]
    actions: NDArray[np.int64]
    positions: NDArray[np.int64]
    propensities: FloatArray
    rewards: FloatArray

    @classmethod
    def empty(cls) -> "LogRows":
        """No decision."""
        objects, numbers, places = np.empty(0, dtype=object), np.empty(0), np.empty(0, dtype=np.int64)
        return cls(objects, numbers, np.empty((0, 0)), objects, places, places, numbers, numbers)

    def take(self, places: Any) -> "LogRows":
        """Some of the rows."""
        return LogRows(*(part[places] for part in self))

    def joined(self, more: "LogRows") -> "LogRows":
        """These rows and more."""
        if not len(self.rewards):
            return more
        if self.contexts.shape[1] != more.contexts.shape[1]:
            raise ValueError(
                f"all contexts of a log must have the same length, got {more.contexts.shape[1]} after "
                f"{self.contexts.shape[1]}: keep one log per bandit"
            )
        return LogRows(*(np.concatenate(pair) for pair in zip(self, more, strict=True)))


@dataclass(frozen=True)
class ColumnNames:
    """Where a table has what: the arguments of `onepass.decisions.DecisionLog.read`."""

    contexts: tuple[str, ...]
    has_lists: bool  # one column of lists rather than one per feature
    action: str | None
    reward: str
    pscore: str | None
    position: str | None


def to_table(rows: LogRows) -> Any:
    """The table of a log, with the names of the Open Bandit Pipeline."""
    late = ~np.isnan(rows.times) & ~(np.abs(rows.times) < _LATEST)
    if late.any():
        raise ValueError(f"the time of a decision must be in seconds since 1970, got {rows.times[late][0]:g}")
    moments = np.where(np.isnan(rows.times), 0.0, np.round(rows.times * _MICROSECONDS)).astype(np.int64)
    return pa.table(
        {
            "id": pa.array(rows.ids, pa.string()),
            "timestamp": pa.array(moments, pa.int64(), mask=np.isnan(rows.times)).cast(_MOMENT),
            "context": as_lists(rows.contexts),
            "action": pa.array(rows.actions),
            "arm": _names(rows.arms),
            "position": pa.array(rows.positions),
            "pscore": pa.array(rows.propensities, mask=np.isnan(rows.propensities)),
            "reward": pa.array(rows.rewards),
        }
    )


def as_lists(contexts: FloatArray) -> Any:
    """Contexts ``(n, d)`` as a column of lists."""
    if contexts.ndim != 2:
        raise ValueError(f"contexts must have shape (n, d), got shape {contexts.shape}")
    if not contexts.shape[1]:  # an empty log, whose contexts have no length yet
        return pa.array([], pa.list_(pa.float64()))
    return pa.FixedSizeListArray.from_arrays(pa.array(contexts.ravel()), contexts.shape[1])


def _names(arms: NDArray[np.object_]) -> Any:
    kinds = {isinstance(arm, str) for arm in arms.tolist()}
    if len(kinds) > 1:
        raise ValueError(
            "the names of the arms are strings and integers, but a column can have one kind only: use strings for all"
        )
    return pa.array(arms, pa.int64() if kinds == {False} else pa.string())


def read_rows(table: Any, names: ColumnNames) -> LogRows:
    """The rows of a table; an error names the column and the row that are not as they should be."""
    arms, actions = _read_arms(table, names.action)
    n = table.num_rows
    return LogRows(
        ids=_read_ids(table),
        times=_read_times(table),
        contexts=_read_contexts(table, names),
        arms=arms,
        actions=actions,
        positions=_read_positions(table, names.position),
        propensities=np.full(n, np.nan) if names.pscore is None else _read_propensities(table, names.pscore),
        rewards=_finite(_column(table, names.reward, "reward"), names.reward),
    )


def _read_contexts(table: Any, names: ColumnNames) -> FloatArray:
    if not names.contexts:
        raise ValueError("contexts must name at least one column")
    if not names.has_lists:
        return np.column_stack([_finite(_column(table, name, "contexts"), name) for name in names.contexts])
    (name,) = names.contexts
    column = _column(table, name, "contexts")
    kind = column.type
    if not (pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind)):
        raise TypeError(
            f"the column {name!r} must hold lists of numbers, got {kind}; for columns that hold a feature each pass a "
            f"list of their names, such as contexts=[{name!r}]"
        )
    _without_nulls(column, name)
    if not len(column):
        return np.empty((0, 0))
    lengths = _integers(pc.list_value_length(column), name)
    other = np.flatnonzero(lengths != lengths[0])
    if len(other):
        raise ValueError(
            f"the column {name!r} must hold lists of one length, got {lengths[0]} numbers in row 0 and "
            f"{lengths[other[0]]} in row {other[0]}"
        )
    if not lengths[0]:
        raise ValueError(f"the column {name!r} holds empty lists: a context needs at least one feature")
    return _finite(pc.list_flatten(column), name, per_row=int(lengths[0])).reshape(len(column), -1)


def _read_arms(table: Any, action: str | None) -> tuple[NDArray[np.object_], NDArray[np.int64]]:
    """Names and numbers of arms."""
    if action is not None:
        return _named(_column(table, action, "action"), action)
    if "arm" not in table.column_names:
        return _named(_column(table, "action", "action"), "action")
    arms, numbers = _named(_column(table, "arm", "action"), "arm")
    if "action" not in table.column_names:
        return arms, numbers
    column = _column(table, "action", "action")
    if not pa.types.is_integer(column.type):
        raise TypeError(f"the column 'action' must hold the numbers of arms, next to their names, got {column.type}")
    return arms, _integers(column, "action")


def _named(column: Any, name: str) -> tuple[NDArray[np.object_], NDArray[np.int64]]:
    """Names of arms with their numbers: whole numbers are both, texts are numbered in their order."""
    _without_nulls(column, name)
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if pa.types.is_integer(column.type):
        numbers = _integers(column, name)
        return numbers.astype(object), numbers
    if not any(is_text(column.type) for is_text in _TEXTS):
        raise TypeError(f"the column {name!r} must hold numbers or names of arms, got {column.type}")
    arms = np.array(column.to_pylist(), dtype=object)
    return arms, np.unique(arms, return_inverse=True)[1].astype(np.int64)


def _read_positions(table: Any, name: str | None) -> NDArray[np.int64]:
    if name is None or (name == "position" and name not in table.column_names):
        return np.zeros(table.num_rows, dtype=np.int64)
    column = _column(table, name, "position")
    if not pa.types.is_integer(column.type):
        raise TypeError(f"the column {name!r} must hold whole numbers, the positions of arms, got {column.type}")
    positions = _integers(column, name)
    _refuse(positions < 0, positions, name, "must be 0 for the arm that came first, then 1, 2, ...")
    return positions


def _read_propensities(table: Any, name: str) -> FloatArray:
    if name not in table.column_names:
        raise ValueError(
            f"the log has no column {name!r} with propensities{_columns_of(table)}; name it with pscore. "
            "pscore=None reads a log without any, which can be learned, but not be used to judge another policy"
        )
    column = _column(table, name, "pscore")
    known = np.array(column.is_valid(), dtype=bool)
    found = np.full(len(column), np.nan)
    if known.any():
        found[known] = _numbers(column.drop_null(), name)
    _refuse(known & ~((found > 0.0) & (found <= 1.0)), found, name, "must be a probability in (0, 1], or null")
    return found


def _read_ids(table: Any) -> NDArray[np.object_]:
    if "id" not in table.column_names:
        return np.array([str(i) for i in range(table.num_rows)], dtype=object)
    column = _column(table, "id", "id")
    _without_nulls(column, "id")
    return np.array([str(one) for one in column.to_pylist()], dtype=object)


def _read_times(table: Any) -> FloatArray:
    """Seconds since 1970; moments without a time zone count as UTC, numbers as seconds."""
    if "timestamp" not in table.column_names:
        return np.full(table.num_rows, np.nan)
    column = _column(table, "timestamp", "timestamp")
    if pa.types.is_floating(column.type) or pa.types.is_integer(column.type):
        return _floats(column)
    try:
        counts = column.cast(_MOMENT, safe=False).cast(pa.int64())
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise TypeError(f"the column 'timestamp' must hold moments: {first_line(error)}") from None
    return _floats(counts) / _MICROSECONDS


def _column(table: Any, name: str, argument: str) -> Any:
    """A column of a table as one array."""
    count = table.column_names.count(name)
    if count != 1:
        state = "no column" if not count else f"{count} columns"
        raise ValueError(f"the log has {state} {name!r}{_columns_of(table)}; name another one with {argument}")
    column = table.column(name)
    return column.combine_chunks() if column.num_chunks != 1 else column.chunk(0)


def _columns_of(table: Any) -> str:
    """The columns that there are, for a message."""
    names = table.column_names
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return f", but {', '.join(map(repr, names[:_SHOWN])) or 'none'}{more}"


def _finite(column: Any, name: str, per_row: int = 1) -> FloatArray:
    """Numbers of which each is known and finite; in messages ``per_row`` of them share a row."""
    _without_nulls(column, name, per_row)
    values = _numbers(column, name)
    _refuse(~np.isfinite(values), values, name, "must be finite", per_row)
    return values


def _numbers(column: Any, name: str) -> FloatArray:
    kind = column.type
    is_boolean = pa.types.is_boolean(kind)
    if not (pa.types.is_floating(kind) or pa.types.is_integer(kind) or pa.types.is_decimal(kind) or is_boolean):
        raise TypeError(f"the column {name!r} must hold numbers, got {kind}")
    if is_boolean:
        column = column.cast(pa.int8())
    return _floats(column)


def _integers(column: Any, name: str) -> NDArray[np.int64]:
    _without_nulls(column, name)
    return np.array(column.cast(pa.int64()), dtype=np.int64)


def _floats(column: Any) -> FloatArray:
    """A column as an array of its own, where null becomes NaN."""
    return np.array(column.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False), dtype=np.float64)


def _without_nulls(column: Any, name: str, per_row: int = 1) -> None:
    if column.null_count:
        row = int(np.flatnonzero(column.is_null())[0]) // per_row
        raise ValueError(f"the column {name!r} is null in row {row}: fill in or leave out such rows")


def _refuse(wrong: Any, values: Any, name: str, rule: str, per_row: int = 1) -> None:
    """Raise a ValueError about the first value that is wrong."""
    places = np.flatnonzero(wrong)
    if len(places):
        raise ValueError(f"the column {name!r} {rule}, got {values[places[0]]:g} in row {places[0] // per_row}")
