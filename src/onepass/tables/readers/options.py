"""What a user may say about how files are to be read; a command names it before anything heavy is loaded."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from onepass.tables.columns.notation import Notation

__all__ = ["AS_FOUND", "ReadOptions"]


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

    def part(self, table: str) -> str:
        """Which part of a file is read, of a database the given table, in words; empty: all of it."""
        given = {"table": table or None, "query": self.sql, "where": self.where}
        return ", ".join(f"{name} {value}" for name, value in given.items() if value is not None)


AS_FOUND = ReadOptions()
"""Everything is found out."""
