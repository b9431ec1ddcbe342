"""The error of every reader, in a module of its own so that all of them can import it."""

__all__ = ["StreamError"]


class StreamError(ValueError):
    """Input that can't be read at all; the message says which and why."""
