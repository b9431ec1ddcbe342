"""The files that a command is given: checked before the work begins, so that no run fails at its end."""

import os
import tempfile
from collections.abc import Iterable
from errno import ENOENT
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from onepass.tables.model import TabularModel

__all__ = ["check_distinct_paths", "check_there", "check_writable", "load_model", "rows_learned"]


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
    """Read a model that this command line made."""
    from onepass.files.checkpoint import CheckpointError, load
    from onepass.tables.model import TabularModel
    from onepass.tables.series_model import SeriesModel

    model = load(path)
    if isinstance(model, SeriesModel):
        raise CheckpointError(f"{path} forecasts series; it goes on with 'onepass forecast FILE... --model {path}'")
    if not isinstance(model, TabularModel):
        raise CheckpointError(f"{path} has a {type(model).__name__}; this command needs a model made by 'onepass fit'")
    return model


def rows_learned(path: Path) -> int:
    """How many rows the model in a file has learned, whichever command made it."""
    from onepass.files.checkpoint import load
    from onepass.tables.series_model import SeriesModel

    model = load(path)
    return model.n_seen if isinstance(model, SeriesModel) else load_model(path).n_rows
