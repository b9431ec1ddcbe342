"""Messages of other libraries' errors, as far as they are worth passing on."""

__all__ = ["first_line"]

_LONGEST = 300  # characters; some libraries tell all they know


def first_line(error: BaseException) -> str:
    r"""The first line of an error's message, without a full stop; its type where there is none.

    Examples
    --------
    >>> first_line(OSError("no such bucket.\nat s3.cc:211")), first_line(EOFError())
    ('no such bucket', 'EOFError')
    """
    lines = str(error).splitlines() or [""]
    return lines[0][:_LONGEST].rstrip(".") or type(error).__name__
