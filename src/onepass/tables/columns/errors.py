"""The error for tables that don't fit what is asked of them.

It carries the names of the settings concerned, so that a command line or a page can say them in its own words.
"""

from collections.abc import Mapping

from onepass.tables.reasons import Reason

__all__ = ["SchemaError"]


class SchemaError(ValueError):
    """Columns that are not what they should be.

    Parameters
    ----------
    reason : Reason
    setting : name of the setting at fault, if there is one
    suggestions : settings that would help, with a value to give, or "" where any other value may do
    """

    def __init__(
        self, reason: Reason, *, setting: str | None = None, suggestions: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(reason)
        self.reason = reason
        self.setting = setting
        self.suggestions: dict[str, str] = dict(suggestions or {})
