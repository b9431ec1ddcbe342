"""The log of decisions: which arm was chosen, with what probability, and what the reward was.

It is kept in columns, and written to Parquet with the column names of the Open Bandit Pipeline, so other tools can read
it. A bandit can learn from a log, and policies that were never tried can be judged by it.
"""

from collections.abc import Iterator, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any, Self, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from onepass._messages import first_line
from onepass._typing import FloatArray
from onepass._validation import as_floats
from onepass.decisions.choice import LoggedDecision
from onepass.decisions.log_columns import ColumnNames, LogRows, as_lists, read_rows, to_table
from onepass.files.atomic import atomic_file

__all__ = ["DecisionLog", "LogSource", "LoggedDecision", "as_log"]

LogSource: TypeAlias = Any
"""A `DecisionLog`, the path of a Parquet file, or a table of PyArrow, Polars or pandas."""


class DecisionLog:
    """Decisions with their rewards, in the order in which they were rewarded.

    Examples
    --------
    >>> from onepass.decisions import ContextualBandit, DecisionLog
    >>> bandit = ContextualBandit(["red", "green"], n_features=2, seed=1)
    >>> bandit.log = DecisionLog()  # from now on every rewarded decision is written down
    >>> for reward in (1.0, 0.0, 1.0):
    ...     _ = bandit.reward(bandit.choose([0.5, -1.0]).id, reward)
    >>> bandit.log.rewards, bandit.log.propensities.round(2)
    (array([1., 0., 1.]), array([0.5 , 0.79, 0.5 ]))
    >>> bandit.log.to_table().column_names
    ['id', 'timestamp', 'context', 'action', 'arm', 'position', 'pscore', 'reward']
    """

    def __init__(self) -> None:
        self._rows = LogRows.empty()
        self._recent: list[LoggedDecision] = []  # not in the columns yet

    def append(self, decision: LoggedDecision) -> None:
        """Append a decision."""
        self._recent.append(decision)

    def __len__(self) -> int:
        return len(self._rows.rewards) + len(self._recent)

    def __iter__(self) -> Iterator[LoggedDecision]:
        rows = self._all()
        known = [None if np.isnan(value) else value for value in rows.propensities.tolist()]
        numbers = (rows.actions.tolist(), rows.positions.tolist(), known, rows.rewards.tolist())
        return map(LoggedDecision, rows.ids, rows.times.tolist(), rows.contexts, rows.arms, *numbers)

    def __getitem__(self, places: Any) -> "DecisionLog":
        """The log of some of the decisions: a slice, an array of their places, or a mask."""
        if not isinstance(places, slice) and np.ndim(places) != 1:
            raise TypeError(f"a log is indexed by a slice, an array of places or a mask, got {places!r}")
        return self._of(self._all().take(places))

    def __repr__(self) -> str:
        return f"DecisionLog({len(self)} decisions)"

    # The columns.

    @property
    def ids(self) -> NDArray[np.object_]:
        """Ids of the decisions, ``(n,)``."""
        return self._all().ids

    @property
    def times(self) -> FloatArray:
        """When decisions were made, in seconds since 1970, ``(n,)``; NaN where unknown."""
        return self._all().times

    @property
    def contexts(self) -> FloatArray:
        """Contexts of the decisions, ``(n, d)``."""
        return self._all().contexts

    @property
    def arms(self) -> NDArray[np.object_]:
        """Names of the arms chosen, ``(n,)``."""
        return self._all().arms

    @property
    def actions(self) -> NDArray[np.int64]:
        """Numbers of the arms chosen, ``(n,)``; -1 for arms that were known for one decision only."""
        return self._all().actions

    @property
    def positions(self) -> NDArray[np.int64]:
        """Positions of the arms in a ranking, ``(n,)``; 0 for the first and for arms chosen alone."""
        return self._all().positions

    @property
    def propensities(self) -> FloatArray:
        """Probability with which each arm was chosen, ``(n,)``; NaN where unknown, as at later positions."""
        return self._all().propensities

    @property
    def rewards(self) -> FloatArray:
        """Rewards of the decisions, ``(n,)``."""
        return self._all().rewards

    def _all(self) -> LogRows:
        """All decisions in columns."""
        if self._recent:
            self._rows = self._rows.joined(_as_rows(self._recent))
            self._recent = []
        return self._rows

    # Files.

    def to_table(self) -> Any:
        """The log as a PyArrow table, with the columns that `write` writes."""
        return to_table(self._all())

    def write(self, path: str | PathLike[str]) -> None:
        """Write the log to a Parquet file, which appears only when it is complete.

        Columns are ``id``, ``timestamp`` (of the decision, to the microsecond), ``context`` (a list of numbers),
        ``action`` (the arm's number), ``arm`` (its name), ``position``, ``pscore`` (the propensity; null where it is
        unknown) and ``reward``. The Open Bandit Pipeline knows them by the same names.
        """
        table = self.to_table()
        with atomic_file(Path(path)) as file:
            pq.write_table(table, file)

    @classmethod
    def read(
        cls,
        source: LogSource,
        *,
        contexts: str | Sequence[str] = "context",
        action: str | None = None,
        reward: str = "reward",
        pscore: str | None = "pscore",
        position: str | None = "position",
    ) -> Self:
        """Read a log that `write` wrote, or one with other column names. Columns that are not needed are ignored.

        Parameters
        ----------
        source : path or table
            Path of a Parquet file, or a table of PyArrow, Polars or pandas.
        contexts : str or list of str
            The column with lists of numbers, or the columns with one feature each.
        action : str, optional
            The column with numbers or names of arms. By default ``action`` has the numbers and ``arm`` the names; one
            of both is enough. Names without numbers are numbered in alphabetical order.
        reward : str
            The column with rewards.
        pscore : str or None
            The column with propensities; None if there is none. Such a log can be learned, but it can't be used to
            estimate what another policy would have earned.
        position : str or None
            The column with positions in a ranking, from 0; without such a column, or with None, every arm counts as
            chosen alone.

        Examples
        --------
        >>> import pyarrow as pa
        >>> from onepass.decisions import DecisionLog
        >>> clicks = {"age": [0.2, -1.1], "item_id": ["a", "b"], "click": [0, 1], "propensity_score": [0.5, 0.25]}
        >>> names = dict(contexts=["age"], action="item_id", reward="click", pscore="propensity_score")
        >>> log = DecisionLog.read(pa.table(clicks), **names)
        >>> log.arms.tolist(), log.rewards, log.propensities
        (['a', 'b'], array([0., 1.]), array([0.5 , 0.25]))
        """
        several = (contexts,) if isinstance(contexts, str) else tuple(contexts)
        names = ColumnNames(several, isinstance(contexts, str), action, reward, pscore, position)
        return cls._of(read_rows(_as_table(source), names))

    @classmethod
    def from_bandit_feedback(cls, feedback: Mapping[str, Any]) -> Self:
        """Make a log from the dict of arrays that data sets of the Open Bandit Pipeline return.

        Examples
        --------
        >>> from onepass.decisions import DecisionLog
        >>> feedback = {"context": [[0.2], [-1.1]], "action": [1, 0], "reward": [0, 1], "pscore": [0.5, 0.25]}
        >>> DecisionLog.from_bandit_feedback({**feedback, "position": None, "n_rounds": 2, "n_actions": 2})
        DecisionLog(2 decisions)
        """
        columns = {name: feedback[name] for name in ("action", "reward", "pscore", "position") if name in feedback}
        columns = {name: pa.array(np.asarray(own)) for name, own in columns.items() if own is not None}
        if "context" in feedback:
            columns["context"] = as_lists(as_floats(feedback["context"], "context"))
        lengths = {name: len(column) for name, column in columns.items()}
        if len(set(lengths.values())) > 1:
            raise ValueError(f"the arrays of bandit feedback must have the same length, got {lengths}")
        return cls.read(pa.table(columns))

    @classmethod
    def _of(cls, rows: LogRows) -> Self:
        log = cls()
        log._rows = rows
        return log


def as_log(source: LogSource) -> DecisionLog:
    """Take a log, or read one from a file or a table."""
    return source if isinstance(source, DecisionLog) else DecisionLog.read(source)


def _as_rows(decisions: Sequence[LoggedDecision]) -> LogRows:
    """The columns of decisions."""
    ids, times, contexts, arms, actions, positions, propensities, rewards = zip(*decisions, strict=True)
    lengths = sorted({len(context) for context in contexts})
    if len(lengths) > 1:
        raise ValueError(f"all contexts of a log must have the same length, got {lengths}: keep one log per bandit")
    return LogRows(
        np.array(ids, dtype=object),
        np.array(times, dtype=np.float64),
        np.array(contexts, dtype=np.float64),
        np.array(arms, dtype=object),
        np.array(actions, dtype=np.int64),
        np.array(positions, dtype=np.int64),
        np.array(propensities, dtype=np.float64),  # None becomes NaN
        np.array(rewards, dtype=np.float64),
    )


def _as_table(source: LogSource) -> Any:
    """A PyArrow table, from a file or from another library's table."""
    if hasattr(source, "__arrow_c_stream__"):
        return pa.table(source)
    if not isinstance(source, (str, PathLike)):
        raise TypeError(f"a log is a DecisionLog, the path of a Parquet file or a table, got {type(source).__name__}")
    path = Path(source)
    if not path.is_file():
        raise FileNotFoundError(f"there is no log {str(path)!r}")
    try:
        return pq.read_table(path)
    except (OSError, pa.ArrowInvalid) as error:
        raise ValueError(
            f"{path} is not a valid Parquet file: {first_line(error)}. Read other formats with their own "
            "reader, such as pyarrow.csv.read_csv, and pass the table"
        ) from None
