"""The error of every reader, in a module of its own so that all of them can import it."""

from collections.abc import Callable

__all__ = ["StreamError"]


class StreamError(ValueError):
    """Input that can't be read at all.

    Parameters
    ----------
    words : which input, and why
    setting : the field of `ReadOptions` that would help, if there is one
    code : what went wrong, for programs: "no_such_table", "several_tables", "missing_extra", "server_away"; empty for
        what only the words tell
    """

    def __init__(self, words: str, setting: str | None = None, *, code: str = "") -> None:
        super().__init__(words)
        self.setting = setting
        self.code = code

    def naming(self, option: Callable[[str], str]) -> str:
        """The message with settings by the caller's names; ``option`` gives the name of one."""
        return str(self) if self.setting is None else f"{self} ({option(self.setting)})"
