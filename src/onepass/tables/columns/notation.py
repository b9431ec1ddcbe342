"""What the user says of how values are written in the files; what is not said is found out column by column."""

from collections.abc import Sequence
from dataclasses import dataclass

from onepass.tables.columns.date_format import DateFormat
from onepass.tables.columns.errors import SchemaError
from onepass.tables.columns.missing import MISSING_WORDS
from onepass.tables.reasons import Reason

__all__ = ["AS_WRITTEN", "Notation"]


@dataclass(frozen=True)
class Notation:
    """How numbers, dates and missing values are written, as far as that is known beforehand.

    Parameters
    ----------
    decimal : "." or ",", optional
        The decimal sign, wherever numbers can be read with it.
    missing : texts, optional
        Words for a missing value, and no others; an empty field is one always.
    date_formats : texts in the manner of ``strptime``, such as ``"%d/%m/%Y"``
        They are tried before any other.
    likely_decimal : "." or ",", optional
        What other columns of the table show; it decides where both would do.
    """

    decimal: str | None = None
    missing: tuple[str, ...] | None = None
    date_formats: tuple[str, ...] = ()
    likely_decimal: str | None = None

    def __post_init__(self) -> None:
        if self.decimal not in (None, ".", ","):
            raise SchemaError(Reason("bad_decimal", value=self.decimal), setting="decimal")
        for pattern in self.date_formats:
            DateFormat(pattern)  # refuses what can't be read

    def missing_words(self, values: Sequence[str] = ()) -> tuple[str, ...]:
        """Words for a missing value in a column that has some of them as values."""
        if self.missing is not None:
            return self.missing
        return tuple(word for word in MISSING_WORDS if word not in values)


AS_WRITTEN = Notation()
"""Everything is found out."""
