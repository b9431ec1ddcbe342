"""From files with a column of times to forecasts of what comes next, in one call."""

import warnings
from collections.abc import Sequence
from contextlib import nullcontext
from os import PathLike
from pathlib import Path
from typing import Any

from onepass.files.checkpoint import CheckpointError, load, to_bytes
from onepass.files.versions import only_writer
from onepass.tables.columns.notation import AS_WRITTEN
from onepass.tables.readers.addresses import located
from onepass.tables.readers.options import AS_FOUND, ReadOptions
from onepass.tables.readers.paths import FilePath
from onepass.tables.readers.registry import open_source
from onepass.tables.selection import as_learned, select
from onepass.tables.series import SeriesTable, read_series
from onepass.tables.series_model import SeriesModel
from onepass.tables.series_rows import SeriesColumns

__all__ = ["REVISIONS", "forecast", "load_series_model"]

REVISIONS = 30
"""Steps of which values may be corrected, unless that is more than a tenth of a series."""
_OF_NEW = ("by", "inputs", "season", "duplicates", "revisions", "counts")


def forecast(
    files: FilePath | Sequence[FilePath] = (),
    time: str | None = None,
    target: str | None = None,
    *,
    horizon: int,
    by: str | None = None,
    inputs: Sequence[str] = (),
    season: Any = None,
    duplicates: str = "error",
    revisions: int = REVISIONS,
    counts: bool = False,
    model: str | PathLike[str] | None = None,
    level: float | Sequence[float] = 0.95,
    reading: ReadOptions = AS_FOUND,
) -> Any:
    r"""Forecast the series of files; returns an Arrow table of what ``onepass forecast`` writes.

    Parameters
    ----------
    files : path or paths, also patterns and URLs
    time, target : names of the columns with times and values; without them ``model`` goes on with the files
    horizon : how many steps to forecast
    by : column that says which series a row belongs to
    inputs : columns with numbers that are known ahead; those of the steps to come are in rows without a target
    season : season length in steps, or several; by default those of the frequency
    duplicates : "error", or what counts of several values of one time: "last", "mean", "sum"
    revisions : of how many last steps a later file may correct values
    counts : whether values are counts 0, 1, 2, ..., whose limits are whole numbers
    model : file in which the model is kept, to go on with further values; its columns and settings are known then.
        Of a file that it has learned before, only rows at the end are read that are new since. What stood there before
        is kept for ``onepass undo``
    level : probability with which a new value lies between ``lower`` and ``upper``; of several levels these columns
        are ``lower_50``, ``upper_50`` and so on
    reading : how files are read, where that is not to be found out

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> file = Path(tempfile.mkdtemp()) / "sales.csv"
    >>> _ = file.write_text("day,sold\n" + "".join(f"2024-01-{day:02d},{day % 7 + 10}\n" for day in range(1, 29)))
    >>> table = forecast(file, "day", "sold", horizon=3)
    >>> table["day"].to_pylist(), [round(mean) for mean in table["mean"].to_pylist()]
    (['2024-01-29', '2024-01-30', '2024-01-31'], [11, 12, 13])
    """
    found_files, reading = located(files, reading)
    sources = [open_source(file, reading) for file in found_files]
    notation = reading.notation or AS_WRITTEN
    goes_on = time is None and target is None and model is not None
    if goes_on:
        defaults = (None, (), None, "error", REVISIONS, False)
        given = zip(_OF_NEW, (by, tuple(inputs), season, duplicates, revisions, counts), defaults, strict=True)
        _check_not_given([name for name, value, default in given if value != default])
    with nullcontext() if model is None or not sources else only_writer(Path(model)) as file:
        if model is not None and goes_on:
            known = load_series_model(model)
            starts = [one.start for one in select(found_files, sources, known.history, reading)]
            if any(start is not None for start in starts):
                _warn(table := known.read(sources, notation, starts))
                new = known.compared(table)
                learned = as_learned(found_files, sources, table.ends, reading)
                known.learn(table).record(table, learned, new.new + new.corrected)
        elif time is not None and target is not None:
            columns = SeriesColumns(time, target, by, tuple(inputs), duplicates, counts)
            table = read_series(sources, columns, notation, seasons=season)
            _warn(table)
            known = SeriesModel(table, horizon, revisions)
            known.record(table, as_learned(found_files, sources, table.ends, reading), known.n_seen)
        else:
            raise ValueError("give time and target, for a new model, or model, to go on with one")
        found = known.table(list(known.forecasts(horizon)), level)
        if file is not None:
            file.write(to_bytes(known))
    return found


def _check_not_given(names: Sequence[str]) -> None:
    if names:
        raise ValueError(f"{', '.join(names)}: a saved model has its own; leave out, or give time and target as well")


def load_series_model(path: str | PathLike[str]) -> SeriesModel:
    """Read a model that forecasts series."""
    model = load(path)
    if not isinstance(model, SeriesModel):
        kind = type(model).__name__
        raise CheckpointError(f"{Path(path)} has a {kind}; forecasts need a model made by 'onepass forecast'")
    return model


def _warn(table: SeriesTable) -> None:
    if table.rejects:
        file, first = table.rejects[0]
        words = f"{len(table.rejects)} rows can't be read, the first in {file}, line {first.line}: {first.reason}"
        warnings.warn(words, stacklevel=3)
