"""`KnownSeries`: what a model knows of the series of its files, and how it takes in further ones.

It knows how their columns are written and in what rhythm their values come, and which files it has learned: a file that
has grown by lines is read from where it ended before.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np

from onepass.files.state import Parameters, as_number
from onepass.tables.columns.errors import SchemaError
from onepass.tables.columns.notation import AS_WRITTEN, Notation
from onepass.tables.history import LearnedFile, LearnedRun, TrainingHistory, now
from onepass.tables.readers.source import Source
from onepass.tables.reasons import Reason
from onepass.tables.rhythm import Rhythm
from onepass.tables.series import MOST_GAP, Series, SeriesTable, read_series, with_gaps_after
from onepass.tables.series_rows import SeriesColumns

__all__ = ["KnownSeries", "NewValues"]


class NewValues(NamedTuple):
    """What a further file brings: how many of its values are new, how many correct one, how many are known already."""

    new: int
    corrected: int = 0
    repeated: int = 0

    def words(self) -> str:
        """The numbers in words.

        Examples
        --------
        >>> NewValues(2, 1, 0).words(), NewValues(1, 0, 3).words()
        ('2 new values, 1 corrected', '1 new value, 3 known already')
        """
        parts = ["1 new value" if self.new == 1 else f"{self.new:,} new values"]
        parts += [f"{self.corrected:,} corrected"] if self.corrected else []
        parts += [f"{self.repeated:,} known already"] if self.repeated else []
        return ", ".join(parts)


class KnownSeries(ABC):
    """A model of the series of a file with a column of times, which goes on with the values of further files.

    Parameters
    ----------
    table : what sets columns, rhythm and seasons
    """

    made_by: ClassVar[str]
    """The command that makes such a model and shows what comes of it."""
    learns_again: ClassVar[bool] = True
    """Whether it can learn values once more that it knows already."""

    def __init__(self, table: SeriesTable) -> None:
        self.columns: SeriesColumns = table.columns
        self.rhythm: Rhythm = table.rhythm
        self.zone = table.zone
        self.seasons = table.seasons
        self.history = TrainingHistory()

    @property
    @abstractmethod
    def n_seen(self) -> int:
        """Number of values learned from all series."""

    @property
    @abstractmethod
    def ends(self) -> Mapping[str, int]:
        """The step after the last value of each series, by its key."""

    @abstractmethod
    def compared(self, table: SeriesTable) -> NewValues:
        """How the values of a further file compare with those that were learned."""

    @abstractmethod
    def learn(self, table: SeriesTable) -> Self:
        """Learn the values of a further file: all of them or, if some don't fit, none."""

    def read(
        self, sources: Sequence[Source], notation: Notation = AS_WRITTEN, starts: Sequence[int | None] = ()
    ) -> SeriesTable:
        """Read further values, as `read_series` does; gaps after the last value of a series are counted."""
        table = read_series(
            sources,
            self.columns,
            notation,
            starts=starts,
            rhythm=self.rhythm,
            zone=self.zone,
            seasons=self.seasons,
        )
        return with_gaps_after(table, self.ends)

    def record(self, table: SeriesTable, files: Sequence[LearnedFile], values: int) -> None:
        """Note in the history that so many values were learned of some files."""
        run = LearnedRun(now(), values, len(table.rejects), files=tuple(files))
        self.history = self.history.with_run(run)

    def check_gap(self, one: Series) -> None:
        """Refuse a series that goes on far too long after its last value."""
        end = self.ends.get(one.key, one.first)
        if one.first > end + MOST_GAP:
            raise self.error("late_times", one, one.first - end)

    def error(self, code: str, one: Series, n: int, **facts: Any) -> SchemaError:
        """The error for times of a series that don't fit those learned; a condition that leaves them out may help."""
        (last,) = self.times(self.ends[one.key] - 1, 1)
        key = f"{one.key}: " if one.key else ""
        own = Reason(code, self.columns.time, n, key=key, last=last, **facts)
        is_plain = self.columns.time.isidentifier() and self.rhythm.are_dates and not self.zone
        has_later = one.first < self.ends[one.key] < one.end and len(set(self.ends.values())) == 1
        later = {"where": f"'{self.columns.time} > \"{last}\"'"}
        return SchemaError(own, suggestions=later if is_plain and has_later else None)

    def times(self, first: int, n: int) -> list[str]:
        """The times of some steps as texts."""
        return self.rhythm.time_texts(self.rhythm.times(first + np.arange(n)), self.zone)

    def facts(self) -> list[tuple[str, str]]:
        """What it is and what it has learned, each with its name."""
        columns = self.columns
        found = [("target", columns.target), ("time", columns.time)]
        if columns.by is not None:
            found.append(("by", columns.by))
        if columns.inputs:
            found.append(("inputs", ", ".join(columns.inputs)))
        found.append(("frequency", self.rhythm.words()))
        found.append(("seasons", ", ".join(map(self.rhythm.season_words, self.seasons)) or "none"))
        many = f" of {len(self.ends):,} series" if columns.by is not None else ""
        last = f", the last at {self.times(max(self.ends.values()) - 1, 1)[0]}" if self.ends else ""
        return [*found, ("values", f"{self.n_seen:,}{many}{last}"), ("runs", f"{len(self.history.runs):,}")]

    # Files.

    def known_state(self) -> Parameters:
        """What it knows of its series, as plain data."""
        return {
            "columns": self.columns.to_data(),
            "rhythm": self.rhythm.to_data(),
            "zone": self.zone,
            "seasons": list(self.seasons),
            "history": self.history.state(),
        }

    def restore_known(self, parameters: Parameters) -> None:
        """Take over what `known_state` described."""
        self.columns = SeriesColumns.from_data(parameters["columns"])
        self.rhythm = Rhythm.from_data(parameters["rhythm"])
        self.zone = str(parameters["zone"])
        self.seasons = tuple(as_number(one, "seasons") for one in parameters["seasons"])
        self.history = TrainingHistory.from_state(parameters["history"])
