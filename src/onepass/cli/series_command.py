"""What commands share that learn series: the options of series, what is checked first, and how it went at the end."""

from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from onepass._extras import require
from onepass.cli import options
from onepass.cli.console import Console
from onepass.cli.left_out import tell_left_out
from onepass.cli.rejects import RejectOptions, Rejects
from onepass.tables.readers.options import ReadOptions

if TYPE_CHECKING:
    from onepass.files.versions import VersionedFile
    from onepass.reports.html import Report
    from onepass.tables.columns.notation import Notation
    from onepass.tables.known_series import KnownSeries, NewValues
    from onepass.tables.readers.source import Source
    from onepass.tables.series import SeriesTable

__all__ = ["Outputs", "SeriesInput", "duplicates", "makes_new", "model", "refuse_given", "season", "time"]

time = click.option(
    "--time", metavar="COLUMN", help="Column with the times: dates, with or without offsets, or numbers."
)
season = click.option(
    "--season",
    type=options.numbers,
    metavar="STEPS,...",
    help="Lengths of the seasons in steps, such as 24,168 for hours; 1 for none. By default those of the frequency.",
)
duplicates = click.option(
    "--duplicates",
    type=click.Choice(["error", "last", "mean", "sum"]),
    default="error",
    show_default=True,
    help="What counts if a time has several values: the last one, or the mean or sum of all. By default rows that are "
    "repeated as they are count once, and values that differ are refused.",
)
model = click.option(
    "--model",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Keep the model in this file. With --time and --target it is made new; without them it goes on with the "
    "values of the files.",
)


def makes_new(model: Path | None, given: dict[str, Any], of_new: Iterable[str]) -> bool:
    """Whether a model is made; if not, none of the options ``of_new`` may be given, which only a new one asks for."""
    if given["time"] is None and given["target"] is None and model is not None:
        for name in of_new:
            refuse_given(name, f"is for a new model, with --time and --target; {model} has its own.")
        return False
    missing = next((name for name in ("time", "target") if given[name] is None), None)
    if missing is not None:
        raise click.UsageError(f"Missing option '--{missing}'; only a model that was made before needs none (--model).")
    return True


def refuse_given(name: str, why: str) -> None:
    """Refuse an option that was typed on the command line, for a reason that follows its name."""
    ctx = click.get_current_context()
    if ctx.get_parameter_source(name) is click.core.ParameterSource.COMMANDLINE:
        (option,) = (one for one in ctx.command.params if one.name == name)
        raise click.UsageError(f"{option.opts[0]} {why}")


class Outputs(NamedTuple):
    """The files that are written."""

    out: Path | None
    html: Path | None
    model: Path | None

    def check(self, inputs: Sequence[str], rejecting: RejectOptions, *, is_new: bool) -> None:
        """Refuse names that are taken, can't be written or have no known format, before the work begins."""
        from onepass.cli.paths import check_distinct_paths, check_writable

        only_read: list[str | Path] = [*inputs]
        if not is_new and self.model is not None:
            only_read.append(self.model)
        written = self._asdict() if is_new else {"out": self.out, "html": self.html}
        check_distinct_paths(only_read, **written, rejects=rejecting.rejects)
        for name, path in self._asdict().items():
            if path is not None:
                check_writable(path, f"--{name}")
        if self.html is not None:
            require("plots", "--html")
        self._kind()

    def _kind(self) -> str:
        from onepass.tables.writing import format_of

        kind = "csv" if self.out is None else format_of(self.out)
        if kind is None:
            raise click.UsageError(f"--out {self.out} does not end in .csv, .jsonl or .parquet.")
        return kind

    def only_writer(self, wait: float) -> "AbstractContextManager[VersionedFile | None]":
        """Keep other processes from writing the model meanwhile."""
        from onepass.cli.training_run import only_writer

        return nullcontext() if self.model is None else only_writer(self.model, wait)

    def write_table(self, table: Any) -> None:
        """Write an Arrow table."""
        from onepass.tables.digits import rounded_predictions
        from onepass.tables.readers.batches import as_record_batch
        from onepass.tables.writing import TableWriter

        assert self.out is not None
        kind, batch = self._kind(), as_record_batch(table)
        with TableWriter(self.out, kind) as writer:
            writer.write(batch if kind == "parquet" else rounded_predictions(batch, table.column_names))

    def write_page(self, report: "Report") -> None:
        """Write a report as a page."""
        from onepass.files.atomic import write_atomically
        from onepass.reports.html import render_html

        assert self.html is not None
        write_atomically(self.html, render_html(report).encode())


class SeriesInput(NamedTuple):
    """The files that are read."""

    files: tuple[str, ...]
    sources: "list[Source]"
    notation: "Notation"
    reading: ReadOptions
    starts: "tuple[int | None, ...]" = ()

    @classmethod
    def opened(
        cls, files: tuple[str, ...], reading: ReadOptions, console: Console, given: dict[str, Any] | None = None
    ) -> "SeriesInput":
        """Open files, whose values are written as ``given`` says."""
        from onepass.tables.columns.notation import AS_WRITTEN, Notation
        from onepass.tables.readers.registry import open_source

        sources = [open_source(file, reading) for file in files]
        console.tell_notes(sources)
        if given is None:
            return cls(files, sources, AS_WRITTEN, reading)
        return cls(files, sources, Notation(given["decimal"], given["missing"], tuple(given["date_formats"])), reading)

    def without_known(self, known: "KnownSeries", console: Console, again: str) -> "SeriesInput":
        """The files without what the model has learned of them, which is reported.

        ``again`` is what learns it once more, by a model that can.
        """
        from onepass.cli.training_run import first_rows
        from onepass.tables.readers.paths import STDIN

        if STDIN in self.files:
            return self
        hint = again if known.learns_again else None
        return self._replace(starts=first_rows(self.files, self.sources, self.reading, known.history, console, hint))

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to learn."""
        return all(start is None for start in self.starts or self.files)

    def record(self, known: "KnownSeries", table: "SeriesTable", values: int) -> None:
        """Note in the history of a model that so many values were learned of the files."""
        from onepass.tables.selection import as_learned

        known.record(table, as_learned(self.files, self.sources, table.ends, self.reading), values)

    def tell_new(self, console: Console, log: Rejects, known: "KnownSeries") -> "tuple[SeriesTable, NewValues]":
        """Read further values of a model, and say what was found and how they compare with what it knows."""
        table = known.read(self.sources, self.notation, self.starts)
        self.tell_found(console, log, table)
        new = known.compared(table)
        console.fact("values", new.words(), "values", **new._asdict())
        return table, new

    def tell_found(self, console: Console, log: Rejects, table: "SeriesTable") -> None:
        """Say what was found in the files, and fail if too many of their rows are not what they should be."""
        for file, reject in table.rejects:
            log.add(file, (reject,))
        log.judge(table.summary.rows, 1.0)
        log.judge_all()
        for name, words in table.summary.facts():
            console.fact(name, words)

    def tell_done(
        self, console: Console, log: Rejects, outputs: Outputs, facts: dict[str, Any], words: str, what: str
    ) -> int:
        """Say how it went, and give the exit code; ``what`` is written to ``--out``."""
        from onepass.cli.errors import REJECTED

        log.tell(console)
        tell_left_out(console, self.reading.where, self.sources)
        written = outputs._asdict()
        names = {"out": what, "html": "page", "model": "model"}
        console.done(
            {**facts, "rejected": log.count}
            | {name: None if path is None else str(path) for name, path in written.items()},
            words,
            *(f"{names[name]}: {path}" for name, path in written.items() if path is not None),
        )
        return REJECTED if log.count else 0
