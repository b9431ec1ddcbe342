"""A model from files in one call, and how their rows are learned: how often, and in which order."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from onepass._validation import as_count, one_of
from onepass.tables.better_of_two import BetterOfTwo
from onepass.tables.columns.errors import SchemaError
from onepass.tables.forward_test import forward_test, fresh, thinned
from onepass.tables.history import LearnedFile, LearnedRun, now
from onepass.tables.inputs import ContentLog, Inputs, steps
from onepass.tables.model import TabularModel
from onepass.tables.readers.addresses import located
from onepass.tables.readers.options import AS_FOUND, ReadOptions
from onepass.tables.readers.paths import FilePath
from onepass.tables.readers.source import Source
from onepass.tables.reasons import Reason
from onepass.tables.schema import SchemaOptions, infer_model
from onepass.tables.selection import distinct
from onepass.tables.training import learn_steps, refine_if_few

__all__ = ["FitOptions", "NewModel", "fit"]


class NewModel(NamedTuple):
    """A model that has learned nothing, the reason for its task, and the order in which it is to learn."""

    model: TabularModel
    reason: Reason
    inputs: Inputs


@dataclass(frozen=True)
class FitOptions:
    """What a new model is to be, and how it learns the rows."""

    schema: SchemaOptions
    passes: int | str = "auto"
    """How often the input is learned; "auto": once, and few rows again as a batch if a network was chosen."""
    shuffle: str = "auto"
    """"on", "off", or "auto": if a network may be chosen and nothing needs the rows in their order."""
    in_order: bool = False
    """Whether the order is needed for what the model does not know of, such as alarms or a cluster."""

    def __post_init__(self) -> None:
        one_of(self.shuffle, ("auto", "on", "off"), "shuffle")
        if self.passes != "auto":
            as_count(self.passes, "passes")
        if self.schema.settings.time is not None:
            for refused, how in ((self.shuffle == "on", "shuffle='on'"), (self.turns > 1, f"passes={self.passes}")):
                if refused:
                    raise SchemaError(Reason("not_in_time", value=how), setting="time")

    @property
    def turns(self) -> int:
        """Passes over the input."""
        return 1 if isinstance(self.passes, str) else self.passes

    def needs_order(self, inputs: Inputs) -> bool:
        """Whether rows have to be learned in their order, by what the model is asked to do or where they come from."""
        settings = self.schema.settings
        follows = settings.drift != 0.0 or settings.forgetting != 1.0 or settings.prior_scale == "auto"
        return follows or inputs.is_stream or self.in_order

    def refines(self, inputs: Inputs, model: TabularModel) -> bool:
        """Whether all rows are learned again as a batch, if they are few."""
        free = self.shuffle != "off" and not self.needs_order(inputs) and not model.needs_order
        return self.passes == "auto" and free

    def tests_forward(self, inputs: Inputs, model: TabularModel) -> bool:
        """Whether a model is to be tested on rows ahead of those learned: if its kind and the order are left open.

        Classes are often listed one after the other; only dates say that their order is one of time.
        """
        is_open = self.passes == "auto" and self.shuffle == "auto" and isinstance(model.estimator, BetterOfTwo)
        in_time = not model.labels or any(column.kind == "date" for column in model.encoding.columns)
        return is_open and in_time and not self.needs_order(inputs)

    def new_model(self, inputs: Inputs, sources: Sequence[Source]) -> NewModel:
        """A model by the first rows of some files, and these in the order in which it learns them."""
        model, reason = infer_model(sources, self.schema, rereadable=not inputs.is_stream)
        if self.tests_forward(inputs, model):
            _test_forward(model, inputs, sources, self.schema.settings.seed)
        auto = self.shuffle == "auto" and model.may_be_network and not (self.needs_order(inputs) or model.needs_order)
        if self.shuffle == "on" or auto:
            inputs = replace(inputs, shuffle=self.schema.settings.seed)
        return NewModel(model, reason, inputs)


def _test_forward(model: TabularModel, inputs: Inputs, sources: Sequence[Source], seed: int) -> None:
    """Have a new model tested on rows ahead of those learned, and be what the tests have chosen."""
    ahead = steps(model, replace(inputs, passes=1, shuffle=None), sources)
    rows = thinned(step.rows for step in ahead)
    model.forward_test = None if rows is None else forward_test(model, rows, seed)
    if model.forward_test is not None and (model.forward_test.order_matters or model.time is not None):
        model.estimator = fresh(model, model.forward_test.candidate).estimator


def fit(
    files: FilePath | Sequence[FilePath],
    target: str,
    *,
    passes: int | str = "auto",
    shuffle: str = "auto",
    reading: ReadOptions = AS_FOUND,
    **options: Any,
) -> TabularModel:
    r"""Learn a model of files, the one that ``onepass fit`` writes; `onepass.save` saves it.

    Rows that can't be learned are counted in ``n_rejected`` of the model.

    Parameters
    ----------
    files : path or paths, also patterns and URLs
    target : name of the column to predict
    passes, shuffle : as `FitOptions`
    reading : how files are read, where that is not to be found out
    options : those of ``onepass fit`` with underscores in their names, such as ``hidden=(50,)`` or ``by="store"``

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> file = Path(tempfile.mkdtemp()) / "trips.csv"
    >>> _ = file.write_text("km,price\n" + "".join(f"{km % 17},{3 + 2 * (km % 17)}\n" for km in range(100)))
    >>> model = fit(file, target="price", model_kind="perceptron")
    >>> model.n_rows, [round(mean) for mean in model.predict([{"km": 10.0}])["mean"].to_pylist()]
    (100, [23])
    """
    wanted = FitOptions(SchemaOptions.of(target, **options), passes, shuffle)
    found, reading = located(files, reading)
    inputs = Inputs(distinct(found)[0], wanted.turns, replace(reading, notation=wanted.schema.notation))
    sources = inputs.sources()
    model, _, inputs = wanted.new_model(inputs, sources)
    learned: dict[int, LearnedFile] = {}
    log = None if inputs.is_stream else ContentLog(inputs, sources, learned)
    for step in learn_steps(model, inputs, sources, log=log):
        if step.learned is not None:
            learned[step.position.file - 1] = step.learned
    if wanted.refines(inputs, model):
        refine_if_few(model, inputs, sources, log)
    run = LearnedRun(now(), model.n_rows, model.n_rejected, inputs.passes, tuple(learned[n] for n in sorted(learned)))
    model.history = model.history.with_run(run)
    return model
