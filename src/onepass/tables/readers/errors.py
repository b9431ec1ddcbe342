"""The error of every reader, in a module of its own so that all of them can import it."""

__all__ = ["StreamError"]


class StreamError(ValueError):
    """Input that can't be read at all.

    Parameters
    ----------
    words : which input, and why
    setting : the field of `ReadOptions` that would help, if there is one
    """

    def __init__(self, words: str, setting: str | None = None) -> None:
        super().__init__(words)
        self.setting = setting
