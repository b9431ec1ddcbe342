"""``onepass undo``: restore a model to what it was before its last run."""

from pathlib import Path

import click

from onepass.cli import options
from onepass.cli.console import Console

__all__ = ["undo"]


@click.command(
    cls=options.Command,
    short_help="Undo the last run of a model.",
    examples=("onepass undo price.onepass", "onepass undo price.onepass --wait 10m"),
)
@options.model_argument
@options.waiting
@options.reporting
def undo(model: Path, wait: float, as_json: bool, quiet: bool) -> None:
    """Undo the last run: MODEL becomes exactly what it was before.

    'onepass fit', 'learn', 'forecast' and 'detect' keep the model that they replace as MODEL.previous-..., so one step
    back is possible, unless MODEL was changed by something else since. The files of that run can then be learned again.
    """
    from onepass.cli.errors import user_errors
    from onepass.cli.paths import check_there, check_writable, learned_words
    from onepass.cli.training_run import only_writer

    with Console(as_json=as_json, quiet=quiet) as console, user_errors():
        from onepass.files.versions import undo as go_back
        from onepass.tables.progress import partial_path

        check_there(model)
        check_writable(model, "MODEL")
        with only_writer(model, wait):
            before, _ = learned_words(model)
            partial = partial_path(model)
            if partial.exists():
                raise click.ClickException(
                    f"{partial} is the progress of an interrupted run of this model; finish that run with --resume, or "
                    "delete the file."
                )
            go_back(model)
            now, seen = learned_words(model)
        facts = {"model": str(model), "rows_before": before, "rows_in_all": now}
        instead = "as before" if now == before else f"no longer {before:,}"
        console.done(facts, f"{model} is what it was before its last run: it has seen {seen}, {instead}")
