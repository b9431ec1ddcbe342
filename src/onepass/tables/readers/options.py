"""What a user may say about how files are to be read; a command names it before anything heavy is loaded."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from onepass.tables.columns.notation import Notation

__all__ = ["ALL", "AS_FOUND", "Part", "ReadOptions"]


class Part(NamedTuple):
    """What is read of a file: a table or a query of a database, and the rows that meet a condition; empty: all.

    Examples
    --------
    >>> print(Part(table="trips", where="km > 0"))
    table trips, where km > 0
    """

    table: str = ""
    query: str = ""
    where: str = ""

    def __str__(self) -> str:
        return ", ".join(f"{name} {value}" for name, value in self._asdict().items() if value)

    def is_in(self, other: "Part") -> bool:
        """Whether all of its rows are rows of another part of the same file."""
        return other in (ALL, self._replace(where=""), self)

    def may_meet(self, other: "Part") -> bool:
        """Whether another part of the same file does not have all of its rows, but may have some."""
        return not self.is_in(other) and not (self.table and other.table and self.table != other.table)


ALL = Part()
"""A whole file."""


@dataclass(frozen=True)
class ReadOptions:
    """How files are to be read; what is not said is found out from their content."""

    delimiter: str | None = None  # between fields of CSV
    encoding: str | None = None  # of text, as Python names it
    no_header: bool = False  # whether the first line of CSV is a row
    table: str | None = None  # of a database
    sql: str | None = None  # a query of a database, in place of a table
    where: str | None = None  # the condition on rows to be read: see `onepass.tables.readers.condition`

    notation: "Notation | None" = None  # how values that the condition looks at are written; None: as found

    def part(self, table: str) -> "Part":
        """Which part of a file is read, of a database the given table."""
        return Part(table, self.sql or "", self.where or "")


AS_FOUND = ReadOptions()
"""Everything is found out."""
