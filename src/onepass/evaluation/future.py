r"""The future test: a model of the first rows of some files predicts the rows after them, and learns none of these.

Random test rows lie among rows that were learned, and a row that is predicted before it is learned comes right after
them. Neither says how a model does that is made today and used for the next months. This test does, as far as the order
of the rows is that of time: what is learned from the first rows is what ``onepass fit`` would make of them alone.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from onepass._validation import as_share
from onepass.evaluation.held_out import LastRows
from onepass.evaluation.prequential import Trial
from onepass.tables.fitting import FitOptions
from onepass.tables.inputs import Inputs, Step, steps
from onepass.tables.readers.addresses import located
from onepass.tables.readers.options import AS_FOUND, ReadOptions
from onepass.tables.readers.paths import FilePath
from onepass.tables.readers.source import Source
from onepass.tables.schema import SchemaOptions
from onepass.tables.training import learn_steps, refine_if_few

__all__ = ["future_steps", "future_test"]


def future_steps(
    trial: Trial,
    split: LastRows,
    sources: Sequence[Source],
    meanwhile: Callable[[], object] = lambda: None,
    *,
    refine: bool,
) -> Iterator[Step]:
    """Learn the first rows as `onepass fit` does, then predict and score the rest; gives each block after that."""
    own_order = replace(split.first, passes=1, shuffle=None)
    for step in steps(trial.model, own_order, sources, meanwhile=meanwhile):
        trial.read.add(step.rows, step.file)
        trial.learn_references(step.rows)
    yield from learn_steps(trial.model, split.first, sources, meanwhile=meanwhile)
    if refine:
        refine_if_few(trial.model, split.first, sources, None)
    for step in steps(trial.model, split.rest, sources, meanwhile=meanwhile):
        trial.read.add(step.rows, step.file)
        trial.score(step.rows, step.file)
        yield step


def future_test(
    files: FilePath | Sequence[FilePath],
    target: str,
    *,
    share: float = 0.2,
    passes: int | str = "auto",
    shuffle: str = "auto",
    reading: ReadOptions = AS_FOUND,
    **options: Any,
) -> Trial:
    r"""Fit a model on the first rows of files and score its predictions of the rest, which it never learns.

    Parameters
    ----------
    files : path or paths, also patterns and URLs
        In the order of time, and so are their rows.
    target : name of the column to predict
    share : share of the rows, the last ones, that is predicted
    passes, shuffle : as for `onepass.tables.fit`
    reading : how files are read, where that is not to be found out
    options : those of ``onepass fit`` with underscores in their names

    Returns
    -------
    Trial
        Its ``scores()`` are the metrics of every model by name, its ``model`` is the one that learned the first rows.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> file = Path(tempfile.mkdtemp()) / "trips.csv"
    >>> _ = file.write_text("km,price\n" + "".join(f"{km % 17},{3 + 2 * (km % 17)}\n" for km in range(100)))
    >>> trial = future_test(str(file), target="price", model_kind="perceptron")
    >>> trial.model.n_rows, trial.rows, trial.scores()["onepass"]["mae"] < 1.0
    (80, 20, True)
    """
    as_share(share, "share", open_above=True)
    wanted = FitOptions(SchemaOptions.of(target, **options), passes, shuffle)
    found, reading = located(files, reading)
    inputs = Inputs(found, wanted.turns, replace(reading, notation=wanted.schema.notation))
    sources = inputs.sources()
    split = LastRows.of(inputs, sources, target, share)
    model, _, split = split.new_model(wanted, sources)
    trial = Trial(model, split=split)
    for _ in future_steps(trial, split, sources, refine=wanted.refines(inputs, model)):
        pass
    trial.check()
    return trial
