"""JSON lines from standard input: read as they come, each checked by itself, so that a bad one does not stop a pipe."""

import json
import sys
from collections.abc import Callable
from typing import Any

import click

from onepass.cli.errors import REJECTED

__all__ = ["as_id", "as_number", "as_numbers", "check_fields", "field", "for_each_line"]


def for_each_line(use: Callable[[dict[str, Any]], None], reject: Callable[[dict[str, Any], str], None]) -> int:
    """Use the object in every line of standard input; one that can't be used is reported and skipped.

    Parameters
    ----------
    use : takes the object in a line; a ValueError rejects it
    reject : takes the object of a rejected line, empty if there is none, and the reason

    Returns
    -------
    int
        The exit code: 0, or that of a run with rejected rows.
    """
    if sys.stdin.isatty():
        raise click.UsageError(
            "JSON lines are expected on standard input, which is a terminal: pipe them in, or give the values as "
            "arguments."
        )
    code = 0
    for number, line in enumerate(sys.stdin.buffer, start=1):
        if not line.strip():
            continue
        found: dict[str, Any] = {}
        try:
            found = _parsed(line)
            use(found)
        except ValueError as error:
            click.echo(f"rejected: line {number}: {error}", err=True)
            reject(found, str(error))
            code = REJECTED
    return code


def _parsed(line: bytes) -> dict[str, Any]:
    try:
        found = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"not JSON ({error})") from None
    if not isinstance(found, dict):
        raise ValueError(f'not a JSON object such as {{"id": "17"}}, but {_shown(found)}')
    return found


def check_fields(found: dict[str, Any], known: tuple[str, ...]) -> None:
    """Raise a ValueError for a field that would be ignored, such as one that is misspelt."""
    unknown = [name for name in found if name not in known]
    if unknown:
        raise ValueError(f"unknown fields {', '.join(map(repr, unknown))}; allowed are {', '.join(map(repr, known))}")


def field(found: dict[str, Any], name: str) -> Any:
    """The value of a field that has to be there."""
    if name not in found:
        raise ValueError(f"the field {name!r} is missing; it has {', '.join(map(repr, found)) or 'none'}")
    return found[name]


def as_id(value: Any) -> str:
    """The id of a decision; a whole number is taken for its digits."""
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    if not isinstance(value, str) or not value:
        raise ValueError(f"an id must be a text, got {_shown(value)}")
    return value


def as_number(value: Any, what: str) -> float:
    """A number, or true and false for 1 and 0."""
    if not isinstance(value, int | float):
        raise ValueError(f"{what} must be a number, got {_shown(value)}")
    try:
        return float(value)
    except OverflowError:
        raise ValueError(f"{what} must be a number, got one of {len(str(value))} digits") from None


def as_numbers(value: Any, what: str) -> tuple[float, ...]:
    """A list of numbers."""
    if not isinstance(value, list):
        raise ValueError(f"{what} must be a list of numbers, got {_shown(value)}")
    return tuple(as_number(number, f"a number of {what}") for number in value)


def _shown(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
