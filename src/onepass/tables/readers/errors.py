"""The error of every reader, in a module of its own so that all of them can import it."""

__all__ = ["StreamError", "first_line"]


def first_line(error: Exception) -> str:
    r"""What another library says, without the details that some of them add on further lines.

    Examples
    --------
    >>> first_line(ValueError("not a Parquet file\nin a file of 12 bytes"))
    'not a Parquet file'
    """
    return str(error).split("\n", 1)[0]


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
