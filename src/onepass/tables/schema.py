"""A new model for some files: what is to be learned, inferred from their first rows.

The first rows say what the columns hold and how large numbers are. Classes must all be known before the first row is
learned: those that are declared, or those that a look through the target column of all files finds (see
`target_inference`).
"""

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from difflib import get_close_matches
from typing import Any

import pyarrow as pa

from onepass._validation import as_count, as_flag, as_seed, one_of
from onepass.beliefs.prior import takes_sparse_rows
from onepass.tables.advice import advise, network_advice
from onepass.tables.columns.encoding import Encoding
from onepass.tables.columns.errors import SchemaError
from onepass.tables.columns.inference import BUCKETS, ONE_HOT, infer, notation_of
from onepass.tables.columns.names import COLUMN_KINDS
from onepass.tables.columns.notation import AS_WRITTEN, Notation
from onepass.tables.columns.roles import check_weights
from onepass.tables.columns.text import TextSize, has_words_to_learn
from onepass.tables.log_target import log_target
from onepass.tables.model import TabularModel
from onepass.tables.options import OPTIONS, Choice, Count, Plain
from onepass.tables.prior_inference import infer_prior, infer_prior_per_key
from onepass.tables.readers.batches import RowBatch
from onepass.tables.readers.options import ReadOptions
from onepass.tables.readers.paths import STDIN
from onepass.tables.readers.registry import open_source
from onepass.tables.readers.source import Source, check_has
from onepass.tables.reasons import Reason
from onepass.tables.settings import MOST_PER_KEY, SAMPLE_PRIOR, Settings, resolve_model_kind
from onepass.tables.target_inference import infer_target
from onepass.tables.targets import ClassTarget, NumberTarget, Target
from onepass.tables.timeline import infer_timeline

__all__ = [
    "SAMPLE",
    "SchemaOptions",
    "check_columns",
    "check_known",
    "infer_model",
    "left_out_words",
    "reading_of",
]

SAMPLE = 10_000  # rows that are looked at first
_UNNAMED = re.compile(r"column_[1-9][0-9]*")  # columns of a file whose first line is a row


@dataclass(frozen=True)
class SchemaOptions:
    """What the user asks for; only the target has to be named."""

    target: str
    task: str | None = None  # "regression", "counts" or "classification"; None: whatever the target looks like
    classes: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()  # none: all of them
    ignore: tuple[str, ...] = ()
    kinds: Mapping[str, str] = field(default_factory=dict)
    one_hot: int = ONE_HOT
    buckets: int = BUCKETS
    text_buckets: int | None = None  # None: as many as suit the model
    log_target: bool | None = None  # whether its logarithm is learned; None: if the first rows are predicted better so
    sample: int = SAMPLE
    notation: Notation = AS_WRITTEN
    settings: Settings = field(default_factory=Settings)

    @classmethod
    def of(cls, target: str, **options: Any) -> "SchemaOptions":
        """Options by their names in `OPTIONS`, whichever record they belong to.

        Examples
        --------
        >>> found = SchemaOptions.of("price", hidden=(50,), ignore=("id",), decimal=",", noise="learn")
        >>> found.settings.hidden, found.ignore, found.notation.decimal, found.settings.noise
        ((50,), ('id',), ',', None)
        """
        known = [one.name for one in OPTIONS]
        if unknown := [name for name in options if name not in known]:
            close = get_close_matches(unknown[0], known, 1)
            hint = f"; did you mean {close[0]!r}?" if close else ""
            raise TypeError(f"{unknown[0]!r} is not an option of a model{hint}")
        defaults = {one.name: one.default for one in OPTIONS}  # in users' words, such as "learn" for a noise of None
        given = {name: value for name, value in options.items() if value != defaults[name]}
        _check_options(given)
        settings, notation, own = (
            {name: value for name, value in given.items() if name in _names(kind)} for kind in (Settings, Notation, cls)
        )
        return cls(target, **own, notation=Notation(**notation), settings=Settings(**settings))


def _check_options(given: dict[str, Any]) -> None:
    """Raise an error that names the option whose value can't be right; names of columns are checked with the files."""
    for option in OPTIONS:
        name, kind, value = option.name, option.kind, given.get(option.name)
        if value is None:
            continue
        if isinstance(kind, Choice):
            one_of(value, kind.words, name)
        elif isinstance(kind, Count):
            as_count(value, name)
        elif kind is Plain.COLUMN_KINDS:
            for column, own in value.items():
                one_of(own, tuple(COLUMN_KINDS), f"{name}[{column!r}]")
        elif kind in (Plain.NAMES, Plain.WIDTHS) and isinstance(value, str | int):
            raise TypeError(f"{name} must be a list or tuple, got {value!r}; did you mean ({value!r},)?")
        elif kind is Plain.ON_OFF:
            as_flag(value, name)
        elif kind is Plain.SEED:
            as_seed(value)


def _names(kind: type[Any]) -> set[str]:
    return {one.name for one in fields(kind)}


def infer_model(sources: Sequence[Source], options: SchemaOptions, *, rereadable: bool) -> tuple[TabularModel, Reason]:
    """Make a model that has learned nothing, and return it with the reason for its task.

    Parameters
    ----------
    sources : files that will be learned; the first that has rows is looked at
    options : SchemaOptions
    rereadable : bool
        Whether all of them can be looked through for classes.
    """
    first, batches = _first_rows(sources, options.sample)
    names = list(dict.fromkeys(name for batch in batches for name in batch.record_batch.schema.names))
    _check_names(options, names, first.name)
    for source in sources:
        check_has([options.target], source)
    sample = _sample(batches, names)
    scanned = sources if rereadable and not options.classes else ()
    outliers = options.settings.outliers
    notation = notation_of(sample, options.notation)
    target, reason = infer_target(
        sample[options.target], options.target, options.task, options.classes, scanned, outliers, notation
    )
    weight, by, time = options.settings.weight, options.settings.by, options.settings.time
    if weight is not None:
        check_weights(sample[weight], weight)
    has_role = {options.target, weight, by}
    left_out = {*options.ignore, *(set(names) - set(options.columns) if options.columns else ())} - {*has_role, time}
    sizes = {"one_hot": options.one_hot, "buckets": options.buckets, "outliers": outliers}
    text = _text_size(target, options)
    not_learned = [*left_out, *(name for name in has_role if name)]
    encoding = infer(sample, not_learned, kinds=options.kinds, **sizes, notation=notation, text=text)
    if isinstance(time, str) and time in encoding.ignored and time not in options.kinds:
        # Such as a year that numbers the rows.
        kinds = {**options.kinds, time: "number"}
        encoding = infer(sample, not_learned, kinds=kinds, **sizes, notation=notation, text=text)
    encoding = replace(encoding, left_out=tuple(sorted(left_out)))
    if not encoding.columns:
        reasons = "; ".join(f"{name}: {why}" for name, why in encoding.ignored.items())
        words = next((name for name in encoding.ignored if has_words_to_learn(sample[name])), None)
        why = f" ({reasons})" if reasons else ""
        why += "" if words is None else f"; the words of {words!r} can be learned, if it is taken for a text"
        raise SchemaError(
            Reason("no_columns", file=first.name, why=why),
            suggestions={} if words is None else {"kinds": f"{words}=text"},
        )
    settings = options.settings
    if isinstance(time, str):
        encoding, timeline = infer_timeline(encoding, sample, time)
        settings = replace(settings, time=timeline)
    if by is not None:
        _check_by(encoding)
    elif encoding.texts and settings.covariance is None and not settings.is_network:
        settings = replace(settings, covariance="diagonal")  # see onepass.tables.columns.text
    if isinstance(target, NumberTarget) and options.log_target is not False:
        asked = bool(options.log_target)
        target = log_target(target, sample, encoding, settings, asked=asked)
    elif options.log_target:
        raise SchemaError(Reason("log_of_classes", target.name, role="target"), setting="log_target")
    n_rows = _expected_rows(batches, len(sources)) if rereadable else None
    settings, kind_reason = resolve_model_kind(settings, len(encoding.features), target, n_rows)
    model = TabularModel(encoding, target, _with_prior(settings, encoding, target, sample))
    model.kind_reason = kind_reason
    model.advice = advise(sample, encoding, target, task_is_open=options.task is None)
    if kind_reason:
        model.advice += (network_advice(kind_reason),)
    for source in sources:
        check_columns(model, source, target=True)
    return model, reason


def _check_by(encoding: Encoding) -> None:
    """Refuse texts: their words are too many for a model per key."""
    if not encoding.texts:
        return
    names = [column.name for column in encoding.texts]
    raise SchemaError(
        Reason("texts_per_key", names[0], names=names, most=MOST_PER_KEY),
        setting="by",
        suggestions={"ignore": ",".join(names)},
    )


def _expected_rows(batches: Sequence[RowBatch], n_files: int) -> float | None:
    """How many rows so many files have, if all are like the one these begin; None if their share of it is unknown."""
    share = batches[-1].share
    return n_files * sum(map(len, batches)) / share if share > 0.0 else None


def _with_prior(settings: Settings, encoding: Encoding, target: Target, sample: Any) -> Settings:
    """Infer the prior from the first rows, where that is asked for."""
    if settings.prior_scale != SAMPLE_PRIOR:
        return settings
    if settings.by is None:
        return replace(settings, prior_scale=infer_prior(encoding, target, sample) or 1.0)
    return replace(settings, prior_scale=infer_prior_per_key(encoding, target, sample, settings.by) or 1.0)


def _text_size(target: Target, options: SchemaOptions) -> TextSize:
    """Features of a text, as many as the model can take, and the length of its vector, which depends on the target.

    Log odds are larger than numbers in units of their standard deviation. Of lengths from 0.3 to 8, 4 and 0.5 were
    best, or next to it, at predicting the origin of sentences of documentation, or a number that depends on it.
    """
    settings = options.settings
    n_classes = len(target.labels) if isinstance(target, ClassTarget) else 0
    if settings.is_network or (settings.covariance and not takes_sparse_rows(settings.covariance)):
        buckets = 2**10
    else:
        buckets = 2**14 if n_classes > 2 else 2**16  # only a single output takes sparse rows as they are
    return TextSize(options.text_buckets or buckets, 4.0 if n_classes else 0.5)


def _first_rows(sources: Sequence[Source], n: int) -> tuple[Source, list[RowBatch]]:
    """The first file with rows, and the first of these; a condition may leave out all rows of a file."""
    for source in sources:
        batches = source.head(n)
        if any(map(len, batches)):
            return source, batches
    bad = next((record for batch in sources[0].batches(None, 0) for record in batch.malformed), None)
    if bad is not None:
        raise SchemaError(Reason("no_rows", file=sources[0].name, why=f": line {bad.line} {bad.reason}, and so on"))
    raise SchemaError(Reason("no_rows", file=sources[0].name, why=left_out_words(sources)))


def left_out_words(sources: Sequence[Source]) -> str:
    """How many rows a condition left out, as an addition to a message; nothing if it left out none."""
    left_out = sum(source.left_out for source in sources)
    if not left_out:
        return ""
    unreadable = next((source.unreadable for source in sources if source.unreadable), "")
    return f": the condition left out all {left_out:,}" + (f" ({unreadable})" if unreadable else "")


def reading_of(model: TabularModel, files: Sequence[str], reading: ReadOptions) -> ReadOptions:
    """How files are read for a model: without a first line of names, if the model was made of such a table.

    Its columns are then called column_1, column_2 and so on, and the first file has no such names.
    """
    if reading.no_header or not all(_UNNAMED.fullmatch(name) for name in model.needed_columns(target=True)):
        return reading
    found = None if STDIN in files else open_source(files[0], reading).columns()
    is_named = found is not None and set(model.needed_columns(target=False)) <= set(found)
    return reading if is_named else replace(reading, no_header=True)


def check_columns(model: TabularModel, source: Source, *, target: bool) -> None:
    """Refuse a file that lacks columns the model has learned from, before anything is done with it."""
    check_has(model.needed_columns(target=target), source)


def _check_names(options: SchemaOptions, names: Sequence[str], file: str) -> None:
    given = {"target": (options.target,), "columns": options.columns, "ignore": options.ignore, "kinds": options.kinds}
    for setting in ("weight", "by", "time"):
        if (name := getattr(options.settings, setting)) is not None:
            given[setting] = (name,)
            if name == options.target:
                raise SchemaError(Reason("is_target", name, role=setting), setting=setting)
    for setting, asked in given.items():
        check_known(setting, asked, names, file)


def check_known(setting: str, asked: Collection[str], names: Sequence[str], file: str) -> None:
    """Refuse a setting that names columns of which a file has none."""
    for name in asked:
        if name not in names:
            reason = Reason("no_such_column", name, file=file, missing=[name], names=names)
            raise SchemaError(reason, setting=setting)


def _sample(batches: Sequence[RowBatch], names: Sequence[str]) -> Any:
    tables = [pa.Table.from_batches([batch.record_batch]) for batch in batches if len(batch)]
    return pa.concat_tables(tables, promote_options="permissive").select(names).combine_chunks()
