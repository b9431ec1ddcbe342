"""`DetectionModel`: anomaly scorers of the series of a file, which know its columns and its rhythm."""

from collections.abc import Mapping, Sequence
from copy import copy
from typing import Any, NamedTuple, Self

import numpy as np
import pyarrow as pa

from onepass._typing import FloatArray
from onepass.files.state import Arrays, Parameters, as_number, nested, under
from onepass.forecasting import AnomalyScorer, AnomalyScores
from onepass.tables.columns.errors import SchemaError
from onepass.tables.known_series import KnownSeries, NewValues
from onepass.tables.reasons import Reason
from onepass.tables.series import Series, SeriesTable

__all__ = ["DetectionModel", "SeriesScores", "limit_words"]

_OUTPUTS = ("expected", "low", "high", "tail", "score", "alarm")


class SeriesScores(NamedTuple):
    """The scores of the values of one series, step by step."""

    key: str
    first: int
    """The step of the first value."""
    values: FloatArray
    scores: AnomalyScores

    @property
    def n_known(self) -> int:
        """Number of values that are not missing."""
        return int(np.isfinite(self.values).sum())

    @property
    def alarms(self) -> list[int]:
        """Places of the values that raise an alarm."""
        found: list[int] = np.flatnonzero(self.scores.alarm).tolist()
        return found


class DetectionModel(KnownSeries):
    """Scores the values of a file with a column of times, and goes on with those of further files.

    Parameters
    ----------
    table : SeriesTable
        What sets columns, rhythm and seasons; none of its values are learned yet.
    false_alarms, side, quiet : see `onepass.forecasting.AnomalyScorer`
    """

    made_by = "detect"
    learns_again = False  # a value is scored by what was learned before it

    def __init__(self, table: SeriesTable, *, false_alarms: float = 1e-4, side: str = "both", quiet: int = 20) -> None:
        super().__init__(table)
        columns = table.columns
        clash = next((name for name in (columns.time, columns.by, columns.target) if name in _OUTPUTS), None)
        if clash is not None:
            raise SchemaError(Reason("output_name", clash, outputs="scores"))
        self._unused = self._new_scorer(false_alarms=false_alarms, side=side, quiet=quiet)
        self.scorers: dict[str, AnomalyScorer] = {}
        self._ends: dict[str, int] = {}

    def _new_scorer(self, **settings: Any) -> AnomalyScorer:
        return AnomalyScorer(self.seasons or 1, inputs=self.columns.input_names, **settings)

    @property
    def false_alarms(self) -> float:
        """Alarms per value while nothing happens."""
        return self._unused.false_alarms

    @property
    def n_seen(self) -> int:
        """Number of values learned from all series."""
        return sum(scorer.n_seen for scorer in self.scorers.values())

    @property
    def ends(self) -> Mapping[str, int]:
        """The step after the last value of each series, by its key."""
        return self._ends

    def facts(self) -> list[tuple[str, str]]:
        """What it is and what it has learned, each with its name."""
        own = [("false alarms", f"{self.false_alarms:g} per value"), ("side", self._unused.side)]
        return [("kind", "scores of values, with alarms"), *super().facts(), *own, ("pause", f"{self._unused.quiet:,}")]

    def score_then_learn(self, table: SeriesTable) -> list[SeriesScores]:
        """Score each value before it is learned; all values must be later than those learned, or none is."""
        series = [one for one in table.series if one.n_known]
        for one in series:
            self.check_gap(one)
            old = int(np.isfinite(one.values[: max(self._ends.get(one.key, one.first) - one.first, 0)]).sum())
            if old:
                raise self.error("scored_times", one, old)
        found = [self._scored(one) for one in series]
        for one, (scorer, _) in zip(series, found, strict=True):  # only now: a value may have been refused
            self.scorers[one.key], self._ends[one.key] = scorer, one.end
        return [scores for _, scores in found]

    def learn(self, table: SeriesTable) -> Self:
        """Learn the values of a further file as `score_then_learn` does."""
        self.score_then_learn(table)
        return self

    def compared(self, table: SeriesTable) -> NewValues:
        """How the values of a further file compare with those learned: all must be new."""
        return NewValues(sum(one.n_known for one in table.series))

    def _scored(self, one: Series) -> tuple[AnomalyScorer, SeriesScores]:
        """The scores of further values, and the scorer that has learned them; the present one stays as it is."""
        scorer = copy(self.scorers.get(one.key, self._unused))
        left_out = one.first - self._ends.get(one.key, one.first)
        q = len(self.columns.inputs)
        if left_out:
            scorer.learn(np.full(left_out, np.nan), np.full((left_out, q), np.nan) if q else None)
        found = scorer.score_then_learn(one.values, one.inputs if q else None)
        return scorer, SeriesScores(one.key, one.first, one.values, found)

    def table(self, scored: Sequence[SeriesScores]) -> Any:
        """Scores as an Arrow table with a row per step: time, key, value, and what was found."""
        columns: dict[str, list[Any]] = {self.columns.time: []}
        if self.columns.by is not None:
            columns[self.columns.by] = []
        columns |= {name: [] for name in (self.columns.target, *_OUTPUTS)}
        for one in scored:
            columns[self.columns.time] += self.times(one.first, len(one.values))
            if self.columns.by is not None:
                columns[self.columns.by] += [one.key] * len(one.values)
            columns[self.columns.target] += _known(one.values)
            for name in _OUTPUTS[:-1]:
                columns[name] += _known(getattr(one.scores, name))
            columns["alarm"] += [kind or None for kind in one.scores.kind.tolist()]
        texts = {self.columns.time, self.columns.by, "alarm"}
        types = {name: pa.string() if name in texts else pa.float64() for name in columns}
        return pa.table({name: pa.array(values, types[name]) for name, values in columns.items()})

    # Files.

    def export_state(self) -> tuple[Parameters, Arrays]:
        """Return the complete state, as JSON-compatible parameters and arrays: see `onepass.save`."""
        states = [scorer.export_state() for scorer in self.scorers.values()]
        arrays: Arrays = {}
        for place, (_, own) in enumerate(states):
            arrays |= nested(f"scorer {place}", own)
        parameters: Parameters = {
            **self.known_state(),
            "false_alarms": self._unused.false_alarms,
            "side": self._unused.side,
            "quiet": self._unused.quiet,
            "series": [[key, self._ends[key], state] for key, (state, _) in zip(self.scorers, states, strict=True)],
        }
        return parameters, arrays

    @classmethod
    def from_state(cls, parameters: Parameters, arrays: Arrays) -> Self:
        """Make the model that `export_state` described."""
        new = cls.__new__(cls)
        new.restore_known(parameters)
        new._unused = new._new_scorer(**{name: parameters[name] for name in ("false_alarms", "side", "quiet")})
        new.scorers, new._ends = {}, {}
        for place, (key, end, state) in enumerate(parameters["series"]):
            new.scorers[str(key)] = AnomalyScorer.from_state(state, under(f"scorer {place}", arrays))
            new._ends[str(key)] = int(as_number(end, "end"))
        return new


def limit_words(low: float, high: float) -> str:
    """The limits between which a value is not an alarm of its own; infinite where there is none.

    Examples
    --------
    >>> limit_words(-1.25, 11.5), limit_words(float("-inf"), 11.5)
    ('-1.25 to 11.5', 'at most 11.5')
    """
    if np.isfinite([low, high]).all():
        return f"{low:,.4g} to {high:,.4g}"
    if np.isfinite(high):
        return f"at most {high:,.4g}"
    return f"at least {low:,.4g}" if np.isfinite(low) else "any value"


def _known(values: FloatArray) -> list[float | None]:
    return [value if np.isfinite(value) else None for value in values.tolist()]
