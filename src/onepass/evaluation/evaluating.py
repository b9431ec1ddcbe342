"""A model scored on files in one call: every row is predicted before it is learned, or some are held out."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from onepass.evaluation.held_out import HeldOut
from onepass.evaluation.prequential import Trial
from onepass.tables.inputs import Inputs, Step, steps
from onepass.tables.model import TabularModel
from onepass.tables.readers.addresses import located
from onepass.tables.readers.options import AS_FOUND, ReadOptions
from onepass.tables.readers.paths import FilePath
from onepass.tables.readers.source import Source
from onepass.tables.schema import SchemaOptions, check_columns, infer_model, reading_of

__all__ = ["evaluate", "score_steps"]


def score_steps(
    trial: Trial, inputs: Inputs, sources: Sequence[Source], meanwhile: Callable[[], object] = lambda: None
) -> Iterator[Step]:
    """Score and learn all rows of files; gives each block once that is done."""
    for step in steps(trial.model, inputs, sources, meanwhile=meanwhile):
        if step.position.turn == 0:
            trial.read.add(step.rows, step.file)
        trial.add(step.rows, step.file, step.position.turn)
        yield step


def evaluate(
    files: FilePath | Sequence[FilePath],
    target: str | None = None,
    *,
    model: TabularModel | None = None,
    compare: bool = False,
    test_split: float | None = None,
    reading: ReadOptions = AS_FOUND,
    **options: Any,
) -> Trial:
    r"""Predict every row of files, score the prediction, learn the row, as ``onepass evaluate`` does.

    Parameters
    ----------
    files : path or paths, also patterns and URLs
    target : name of the column to predict, for a new model
    model : TabularModel, optional
        One that has learned already, in place of a new one; it learns the rows.
    compare : whether the baselines predict and learn the same rows
    test_split : share of the rows, drawn at random, that is not learned and alone is scored
    reading : how files are read, where that is not to be found out
    options : those of ``onepass fit`` with underscores in their names

    Returns
    -------
    Trial
        Its ``scores()`` are the metrics of every model by name.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> file = Path(tempfile.mkdtemp()) / "trips.csv"
    >>> _ = file.write_text("km,price\n" + "".join(f"{km % 17},{3 + 2 * (km % 17)}\n" for km in range(100)))
    >>> trial = evaluate(str(file), target="price", model_kind="perceptron")
    >>> trial.rows, trial.scores()["onepass"]["mae"] < 1.0
    (100, True)
    """
    if (target is None) == (model is None):
        raise TypeError("give either target, for a new model, or model, for one that has learned already")
    wanted = SchemaOptions.of(target or "", **options)
    split = None if test_split is None else HeldOut(test_split, wanted.settings.seed)
    found, reading = located(files, replace(reading, notation=wanted.notation))
    reading = reading if model is None else reading_of(model, found, reading)
    inputs = Inputs(found, 1 if split is None else 2, reading)
    sources = inputs.sources()
    if model is None:
        model, _ = infer_model(sources, wanted, rereadable=not inputs.is_stream)
    for source in sources:
        check_columns(model, source, target=True)
    trial = Trial(model, compare=compare, split=split)
    for _ in score_steps(trial, inputs, sources):
        pass
    trial.check()
    return trial
