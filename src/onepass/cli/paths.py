"""The files that a command is given: checked before the work begins, so that no run fails at its end."""

import os
import tempfile
from collections.abc import Iterable
from errno import ENOENT
from pathlib import Path
from typing import TYPE_CHECKING

import click

from onepass.cli.console import counted

if TYPE_CHECKING:
    from onepass.tables.known_series import KnownSeries
    from onepass.tables.model import TabularModel

__all__ = [
    "check_distinct_paths",
    "check_there",
    "check_writable",
    "learned_words",
    "load_model",
    "load_series",
    "series_class_of",
    "series_command_of",
]


def check_distinct_paths(read: Iterable[str | Path], **written: Path | None) -> None:
    """Refuse to write a file that is also read, or written twice, whatever names it is given by.

    Parameters
    ----------
    read : all inputs
    written : all outputs by option, with MODEL for the argument
    """
    taken = [(Path(path), "an input") for path in read]
    for name, path in written.items():
        if path is None:
            continue
        option = name if name.isupper() else f"--{name}"
        for other, what in taken:
            if _same_file(path, other):
                raise click.UsageError(f"{option} {path} is also {what}; give another file.")
        taken.append((path, option))


def _same_file(one: Path, other: Path) -> bool:
    """Whether writing one loses the other; nothing is lost in a device such as /dev/null."""
    if one.exists() and other.exists():
        return one.is_file() and one.samefile(other)
    return os.path.realpath(one) == os.path.realpath(other)  # unlike Path.resolve also of links that go in a circle


def check_there(path: Path) -> None:
    """Check that there is a file, before anything is created next to it."""
    if not path.exists():
        raise FileNotFoundError(ENOENT, "there is no such file", str(path))


def check_writable(path: Path, option: str) -> None:
    """Check that a file can be written there."""
    try:
        if path.is_dir():
            raise IsADirectoryError(21, "it is a folder")
        with tempfile.TemporaryFile(dir=path.parent):
            pass
    except OSError as error:
        raise click.ClickException(f"cannot write to {option} {path}: {error.strerror}.") from None


def load_model(path: Path) -> "TabularModel":
    """Read a model of a table that this command line made."""
    from onepass.files.checkpoint import CheckpointError, load

    if (command := series_command_of(path)) is not None:
        raise CheckpointError(f"{path} {_OF_SERIES[command].format(path=path)}")
    from onepass.tables.model import TabularModel

    model = load(path)
    if not isinstance(model, TabularModel):
        raise CheckpointError(f"{path} has a {type(model).__name__}; this command needs a model made by 'onepass fit'")
    return model


_OF_SERIES = {
    "forecast": "forecasts series: 'onepass forecast --model {path} --horizon STEPS' says what comes next, and "
    "'onepass forecast FILE... --time COLUMN --target COLUMN --horizon STEPS' scores forecasts from earlier times",
    "detect": "finds odd values of series: 'onepass detect FILE... --model {path}' scores further values",
}
"""What to do with a model of series instead, by the command that has made it."""


def series_command_of(path: Path) -> str | None:
    """The command that has made the model in a file, if that is a model of series; its numbers are not read."""
    found = series_class_of(path)
    return None if found is None else found.made_by


def series_class_of(path: Path) -> "type[KnownSeries] | None":
    """The class of the model in a file, if that is a model of series; its numbers are not read."""
    from onepass.files.checkpoint import class_in
    from onepass.tables.known_series import KnownSeries

    found = class_in(path)
    return found if issubclass(found, KnownSeries) else None


def load_series(path: Path) -> "KnownSeries":
    """Read a model of series that this command line made."""
    from onepass.files.checkpoint import CheckpointError, load
    from onepass.tables.known_series import KnownSeries

    model = load(path)
    if not isinstance(model, KnownSeries):
        raise CheckpointError(f"{path} has no model of series, which 'onepass forecast' and 'onepass detect' make")
    return model


def learned_words(path: Path) -> tuple[int, str]:
    """How many rows or values the model in a file has learned, whichever command made it; also in words."""
    if series_command_of(path) is None:
        n, unit = load_model(path).n_rows, "row"
    else:
        n, unit = load_series(path).n_seen, "value"
    return n, counted(n, unit)
