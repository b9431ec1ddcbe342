"""The time of a table's rows: which feature it is, how far rows are usually apart, and which seasons they show.

With a time a model of numbers may have a level that moves (see `onepass.models.moving_level`), and the waves of a date
are those of the seasons that the first rows cover at least twice.
"""

from dataclasses import replace
from typing import Any, NamedTuple, Self

import numpy as np

from onepass._typing import FloatArray
from onepass.estimators.rows import Rows
from onepass.files.state import as_number, as_tally
from onepass.tables.columns.encoding import Encoding
from onepass.tables.columns.errors import SchemaError
from onepass.tables.reasons import Reason

__all__ = ["Timeline", "infer_timeline"]


class Timeline(NamedTuple):
    """The time of the rows of a table."""

    name: str
    """The column that has it."""
    feature: int
    """Which of the features it is."""
    step: float
    """The usual time between rows, in the units of that feature."""

    def note_missing(self, rows: Rows) -> None:
        """Note which rows have no time, so that they are not learned or predicted."""
        for row in np.flatnonzero(np.isnan(rows.X[:, self.feature])).tolist():
            rows.bad.setdefault(row, Reason("missing", self.name, role="time"))
            rows.X[row] = 0.0

    @classmethod
    def from_state(cls, state: Any) -> Self:
        """Make the timeline that is in a file as a list."""
        name, feature, step = state
        if not isinstance(name, str):
            raise ValueError(f"time must name a column, got {str(name)[:40]!r}")
        return cls(name, as_tally(feature, "time"), as_number(step, "step"))


def infer_timeline(encoding: Encoding, sample: Any, name: str) -> tuple[Encoding, Timeline]:
    """The time of the rows that some first ones show, and the encoding with the seasons that they cover.

    Parameters
    ----------
    encoding : Encoding
    sample : pyarrow.Table
        The first rows, in their order.
    name : str
        The column of the times.
    """
    place = next((k for k, column in enumerate(encoding.columns) if column.name == name), None)
    if place is None:
        raise _no_time(name, encoding.ignored.get(name, "it is left out"))
    if not encoding.columns[place].is_ordered:
        raise _no_time(name, f"it is a {encoding.columns[place].kind}")
    if encoding.texts:
        names = [column.name for column in encoding.texts]
        raise SchemaError(
            Reason("not_in_time", value=f"texts ({', '.join(names)})"),
            setting="time",
            suggestions={"ignore": ",".join(names)},
        )
    feature = sum(len(column.features) for column in encoding.columns[:place])
    (batch,) = sample.combine_chunks().to_batches()
    column = encoding.columns[place].as_time()
    alone = Encoding((column,), {}).encode(batch)
    times = np.delete(alone.X[:, 0], list(alone.bad))
    times = times[~np.isnan(times)]
    if not len(times):
        raise _no_time(name, "its first values are neither")
    apart = np.diff(times)
    if (apart < 0.0).any():
        row = int(np.flatnonzero(apart < 0.0)[0]) + 2
        raise SchemaError(Reason("not_in_order", name, value=row), setting="time")
    forward = apart[apart > 0.0]
    if not len(forward):
        raise SchemaError(Reason("one_time", name), setting="time")
    step = _usual(forward)
    column = column.with_seasons(float(times[-1] - times[0]), step)
    columns = (*encoding.columns[:place], column, *encoding.columns[place + 1 :])
    return replace(encoding, columns=columns), Timeline(name, feature, step)


def _no_time(name: str, why: str) -> SchemaError:
    return SchemaError(Reason("no_time", name, why=why), setting="time", suggestions={"kinds": f"{name}=date"})


def _usual(apart: FloatArray) -> float:
    """The median of distances, without the rounding of differences."""
    return float(f"{np.median(apart):.9g}")
