"""``onepass learn`` for a model that `forecast` or `detect` has made: further values of its series."""

from pathlib import Path
from typing import TYPE_CHECKING

from onepass.cli.console import Console
from onepass.cli.options import RunOptions
from onepass.cli.rejects import RejectOptions, Rejects
from onepass.cli.series_command import Outputs, SeriesInput, refuse_given
from onepass.tables.readers.options import ReadOptions

if TYPE_CHECKING:
    from onepass.tables.known_series import KnownSeries

__all__ = ["learn_series"]

_OF_TABLES = {
    "passes": "values of series are learned once, in the order of time",
    "every": "the files of a series are read as a whole, and MODEL is written once",
    "resume": "the files of a series are read as a whole, and MODEL is written once: give the files again",
    "alarms": "odd values of series are found by a model that 'onepass detect' has made",
}
"""Options that need a model of a table, and why."""


def learn_series(
    path: Path,
    out: Path | None,
    files: tuple[str, ...],
    reading: ReadOptions,
    learning: RunOptions,
    rejecting: RejectOptions,
    console: Console,
) -> int:
    """Let the model in a file learn further values, say what became of them, and give the exit code."""
    from onepass.cli.paths import load_series
    from onepass.files.checkpoint import to_bytes

    for option, why in _OF_TABLES.items():
        refuse_given(option, f"does not apply to {path}: {why}.")
    outputs = Outputs(None, None, out or path)
    read = SeriesInput.opened(files, reading, console)
    with Rejects(rejecting) as log, outputs.only_writer(learning.wait) as target:
        assert target is not None
        known = load_series(path)
        if not learning.again:
            read = read.without_known(known, console, "--again")
        facts, words = {"values": 0, "corrected": 0}, f"{path} has learned these files already"
        if not read.is_empty:
            facts, words = _learned(known, read, log, console)
        if not read.is_empty or out is not None:
            target.write(to_bytes(known))
        facts |= {"values_in_all": known.n_seen}
        return read.tell_done(console, log, outputs, facts, words, "model")


def _learned(known: "KnownSeries", read: SeriesInput, log: Rejects, console: Console) -> tuple[dict[str, int], str]:
    """Learn the values of files; how many they were, as data and in words."""
    from onepass.cli.detect import tell_alarms
    from onepass.tables.detection_model import DetectionModel

    table, new = read.tell_new(console, log, known)
    facts = {"values": new.new, "corrected": new.corrected}
    if isinstance(known, DetectionModel):
        facts["alarms"] = tell_alarms(console, known, known.score_then_learn(table))
    else:
        known.learn(table)
    read.record(known, table, new.new + new.corrected)
    return facts, f"learned {new.words()}, {log.count:,} rejected; the model has seen {known.n_seen:,} values"
