"""How a command fails: its exit codes, and the line between errors that a user can fix and bugs.

A wrong value, a damaged file or a missing column is answered in one sentence. A bug shows its traceback, without which
it can't be fixed.
"""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import click

from onepass.cli.schema import flag, schema_error_words

__all__ = ["INTERRUPTED", "REJECTED", "leave_closed_output", "user_errors"]

REJECTED = 3
"""Exit code of a run that reached its end but rejected rows."""
INTERRUPTED = 130
"""Exit code of a run that was interrupted, as shells have it for SIGINT."""
CLOSED_OUTPUT = 141
"""Exit code of a command whose output was closed, as shells have it for SIGPIPE, which Windows does not know."""


@contextmanager
def user_errors() -> Iterator[None]:
    """Turn the errors that a user can cause into a message of one sentence; a bug keeps its traceback.

    The library refuses wrong values by `ValueError` and its subclasses. A `TypeError`, an `AssertionError` and the like
    can't come from the command line, whose options are typed: they are bugs, and pass through.

    Examples
    --------
    >>> with user_errors():
    ...     raise ValueError("noise must be positive, got -1")
    Traceback (most recent call last):
    click.exceptions.ClickException: noise must be positive, got -1.
    """
    try:
        yield
    except BrokenPipeError:  # the reader of our output has closed it
        sys.exit(leave_closed_output())
    except FileNotFoundError as error:
        raise click.ClickException(f"{error.filename} does not exist.") from None
    except OSError as error:
        raise click.ClickException(f"{error.filename or 'a file'}: {error.strerror or error}.") from None
    except ValueError as error:  # e.g. an unknown activation, a damaged model, a missing column
        raise click.ClickException(_with_full_stop(_in_options(error))) from None


def leave_closed_output() -> int:
    """Have whatever is still to be printed go nowhere, and give the exit code of a command that is not listened to."""
    if sys.stdout is not None:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return CLOSED_OUTPUT


def _in_options(error: ValueError) -> str:
    """The message of an error, with the options for the settings of the library that it names."""
    if "onepass.tables" not in sys.modules:  # then it is not one of its errors
        return str(error)
    from onepass.tables.columns.errors import SchemaError
    from onepass.tables.readers.errors import StreamError

    if isinstance(error, SchemaError):
        return schema_error_words(error)
    return error.naming(flag) if isinstance(error, StreamError) else str(error)


def _with_full_stop(sentence: str) -> str:
    return sentence if sentence.endswith((".", "?")) else f"{sentence}."
