"""What a user may say about how files are to be read; a command names it before anything heavy is loaded."""

from dataclasses import dataclass

__all__ = ["AS_FOUND", "ReadOptions"]


@dataclass(frozen=True)
class ReadOptions:
    """How files are to be read; what is not said is found out from their content."""

    delimiter: str | None = None  # between fields of CSV
    where: str | None = None  # the condition on rows to be read: see `onepass.tables.readers.condition`


AS_FOUND = ReadOptions()
"""Everything is found out."""
