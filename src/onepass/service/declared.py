"""New models from descriptions: some rows of a table, its columns, or a bandit's arms.

What a description may hold is said by the types here, so that whatever is wrong with one is found before a model is
made, and named.
"""

import json
import tempfile
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

from onepass.decisions.bandit import ContextualBandit
from onepass.files.checkpoint import to_bytes
from onepass.service.errors import ProblemError
from onepass.service.operations import checked_content
from onepass.service.served.values import texts_of
from onepass.service.wire import Declared, Scalar
from onepass.service.wording import in_words
from onepass.tables.columns.boolean import Boolean
from onepass.tables.columns.category import Category, Hashed
from onepass.tables.columns.date import Date
from onepass.tables.columns.encoding import Column, Encoding
from onepass.tables.columns.errors import SchemaError
from onepass.tables.columns.number import Number
from onepass.tables.columns.text import Text
from onepass.tables.inputs import Inputs, steps
from onepass.tables.model import TabularModel
from onepass.tables.readers.errors import StreamError
from onepass.tables.schema import SchemaOptions, infer_model
from onepass.tables.settings import Settings, resolve_model_kind
from onepass.tables.targets import ClassTarget, CountTarget, LogTarget, NumberTarget, Target

__all__ = ["declared_content", "model_content"]

Name = Annotated[str, Meta(min_length=1, max_length=200)]
_Number = Annotated[float, Meta(ge=-1e100, le=1e100)]
_Positive = Annotated[float, Meta(ge=1e-100, le=1e100)]
_Count = Annotated[int, Meta(ge=1, le=2**20)]
_WORDS = 25  # in an average text, whose vector has a length of 1


class _Part(Struct, forbid_unknown_fields=True, tag_field="kind"):
    name: Name


class _NumberColumn(_Part, tag="number"):
    mean: _Number = 0.0
    std: _Positive = 1.0
    missing: bool = False

    def column(self, norm: float) -> Column:
        return Number(self.name, self.mean, self.std, self.missing)


class _BooleanColumn(_Part, tag="boolean"):
    def column(self, norm: float) -> Column:
        return Boolean(self.name)


class _CategoryColumn(_Part, tag="category"):
    values: Annotated[list[Scalar], Meta(min_length=1, max_length=10_000)]

    def column(self, norm: float) -> Column:
        levels = _texts(self.values)
        return Category(self.name, levels, (1.0 / len(levels),) * len(levels))


class _HashedColumn(_Part, tag="hashed"):
    buckets: _Count = 64

    def column(self, norm: float) -> Column:
        return Hashed(self.name, self.buckets, (1.0 / self.buckets,) * self.buckets)


class _DateColumn(_Part, tag="date"):
    mean: datetime = datetime(2020, 1, 1, tzinfo=UTC)
    clock: bool = False
    missing: bool = False

    def column(self, norm: float) -> Column:
        since = self.mean if self.mean.tzinfo else self.mean.replace(tzinfo=UTC)
        return Date(self.name, float(since.timestamp() // 86400.0), self.clock, self.missing)


class _TextColumn(_Part, tag="text"):
    buckets: _Count = 2**14

    def column(self, norm: float) -> Column:
        return Text(self.name, self.buckets, norm, norm / _WORDS**0.5, ())


class _NumberTarget(_Part, tag="number"):
    mean: _Number = 0.0
    std: _Positive = 1.0

    def target(self) -> Target:
        return NumberTarget(self.name, self.mean, self.std)


class _LogTarget(_NumberTarget, tag="log"):
    """Mean and standard deviation are those of the logarithm."""

    def target(self) -> Target:
        return LogTarget(self.name, self.mean, self.std, why="as given")


class _CountTarget(_Part, tag="count"):
    def target(self) -> Target:
        return CountTarget(self.name)


class _ClassTarget(_Part, tag="class"):
    labels: Annotated[list[Scalar], Meta(min_length=2, max_length=1000)]

    def target(self) -> Target:
        numeric = all(isinstance(label, int | float) and not isinstance(label, bool) for label in self.labels)
        return ClassTarget(self.name, _texts(self.labels), numeric)


_Columns = list[_NumberColumn | _BooleanColumn | _CategoryColumn | _HashedColumn | _DateColumn | _TextColumn]
_Targets = _NumberTarget | _LogTarget | _CountTarget | _ClassTarget


class _SettingsOptions(Struct, forbid_unknown_fields=True):
    model_kind: Literal["auto", "perceptron", "network"] | UnsetType = UNSET
    hidden: tuple[Annotated[int, Meta(ge=1, le=100_000)], ...] | UnsetType = UNSET
    activation: str | UnsetType | None = UNSET
    covariance: str | UnsetType | None = UNSET
    noise: _Positive | UnsetType | None = UNSET
    outliers: float | UnsetType = UNSET
    forgetting: float | UnsetType = UNSET
    drift: float | Literal["auto"] | UnsetType = UNSET
    prior_scale: _Positive | Literal["auto", "sample"] | UnsetType = UNSET
    intercept_scale: _Positive | UnsetType | None = UNSET
    seed: Annotated[int, Meta(ge=0, lt=2**32)] | UnsetType = UNSET
    weight: Name | UnsetType | None = UNSET
    by: Name | UnsetType | None = UNSET


class _RowsOptions(_SettingsOptions):
    task: Literal["regression", "counts", "classification"] | UnsetType | None = UNSET
    classes: tuple[str, ...] | UnsetType = UNSET
    columns: tuple[str, ...] | UnsetType = UNSET
    ignore: tuple[str, ...] | UnsetType = UNSET
    kinds: dict[str, str] | UnsetType = UNSET
    one_hot: _Count | UnsetType = UNSET
    buckets: _Count | UnsetType = UNSET
    text_buckets: _Count | UnsetType | None = UNSET
    log_target: bool | UnsetType | None = UNSET


class _Bandit(Struct, forbid_unknown_fields=True):
    arms: list[Name] | dict[Name, list[_Number]]
    n_features: _Count
    policy: str | UnsetType = UNSET
    observation: str | UnsetType = UNSET
    hidden: tuple[Annotated[int, Meta(ge=1, le=100_000)], ...] | UnsetType = UNSET
    prior_scale: float | UnsetType = UNSET
    noise: float | Literal["learn"] | UnsetType = UNSET
    reward_range: tuple[float, float] | UnsetType = UNSET
    standardize: bool | UnsetType = UNSET
    population: bool | UnsetType = UNSET
    outliers: float | UnsetType = UNSET
    forgetting: float | UnsetType = UNSET
    drift: float | Literal["auto"] | UnsetType = UNSET
    unknown_rewards: str | UnsetType = UNSET
    seed: int | UnsetType = UNSET


def model_content(given: bytes | Declared) -> bytes:
    """A model file that can be served, of an uploaded one or a description."""
    return declared_content(given) if isinstance(given, Declared) else checked_content(given)


def declared_content(declared: Declared) -> bytes:
    """The model file of a description."""
    given = [name for name in ("rows", "columns", "bandit") if getattr(declared, name) is not None]
    if len(given) != 1:
        raise ProblemError(
            422,
            "bad value",
            f"exactly one of rows, columns and bandit must be given, got {' and '.join(given) or 'none'}",
            field=given[1] if given else "rows",
        )
    try:
        return to_bytes(_MADE[given[0]](declared))
    except SchemaError as error:
        field = {None: given[0], "target": "target"}.get(error.setting, f"options.{error.setting}")
        raise ProblemError(422, "bad description", str(error), field=field) from None
    except StreamError as error:
        raise ProblemError(422, "bad description", str(error), field=given[0]) from None
    except ValueError as error:
        raise ProblemError(422, "bad description", str(error), field=_blamed(str(error), given[0])) from None


def _blamed(words: str, part: str) -> str:
    """The field that an error of the library is about: it begins with the name of an argument."""
    kind, place = (_Bandit, "bandit") if part == "bandit" else (_RowsOptions, "options")
    name = words.split("=", 1)[0].split(" ", 1)[0]
    return f"{place}.{name}" if name in kind.__struct_fields__ else part


def _checked(given: Any, kind: Any, field: str) -> Any:
    """A part of the description as its type has it, or a problem that names what is wrong."""
    try:
        return msgspec.convert(given, kind)
    except msgspec.ValidationError as error:
        words, path = in_words(error, kind, field)
        raise ProblemError(422, "bad value", words, field=field + path) from None


def _given(options: Struct) -> dict[str, Any]:
    """What a struct was given."""
    found = {name: getattr(options, name) for name in options.__struct_fields__}
    return {name: value for name, value in found.items() if value is not UNSET}


def _from_rows(declared: Declared) -> TabularModel:
    target = _checked(declared.target, Name, "target")
    options = _given(_checked(declared.options, _RowsOptions, "options"))
    settings = {name: options.pop(name) for name in _SettingsOptions.__struct_fields__ if name in options}
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "rows"
        file.write_text("".join(f"{json.dumps(row)}\n" for row in declared.rows or ()))
        try:
            return _inferred(declared, str(file), SchemaOptions(target, settings=Settings(**settings), **options))
        except (SchemaError, StreamError, ValueError) as error:  # the file is nothing that was given
            error.args = tuple(str(part).replace(str(file), "the table") for part in error.args)
            raise


def _inferred(declared: Declared, file: str, options: SchemaOptions) -> TabularModel:
    inputs = Inputs((file,))
    sources = inputs.sources()
    model, _ = infer_model(sources, options, rereadable=True)
    if not declared.learn:
        return model.start()
    for step in steps(model, inputs, sources):
        if step.rows.rejects:
            reject = step.rows.rejects[0]
            raise ProblemError(422, "bad value", reject.reason, field=f"rows[{reject.line - 1}]")
        model.learn(step.rows)
    return model


def _from_columns(declared: Declared) -> TabularModel:
    options = _given(_checked(declared.options, _SettingsOptions, "options"))
    columns = _checked([_with_kind(one, "number") for one in declared.columns or ()], _Columns, "columns")
    described = _described_target(declared.target)
    _check_names(columns, described, options)
    for i, column in enumerate(columns):
        if isinstance(column, _CategoryColumn):
            _check_distinct(column.values, f"columns[{i}].values")
    if isinstance(described, _ClassTarget):
        _check_distinct(described.labels, "target.labels")
    target = described.target()
    norm = 4.0 if isinstance(target, ClassTarget) else 0.5  # see onepass.tables.schema
    encoded = [column.column(norm) for column in columns]
    encoded.sort(key=lambda column: isinstance(column, Text))  # texts are the last of an encoding
    encoding = Encoding(tuple(encoded), {})
    if encoding.texts:
        options.setdefault("covariance", "diagonal")
    asked: dict[str, Any] = {"prior_scale": 1.0, "model_kind": "perceptron", **options}
    chosen, reason = resolve_model_kind(Settings(**asked), len(encoding.features), target, None)
    model = TabularModel(encoding, target, chosen)
    model.kind_reason = reason
    return model.start()


def _described_target(given: Any) -> Any:
    if not isinstance(given, Mapping):
        raise ProblemError(
            422,
            "bad value",
            'target must be described, e.g. {"name": "price", "kind": "number", "mean": 100, "std": 30} or '
            '{"name": "spam", "kind": "class", "labels": ["no", "yes"]}',
            field="target",
        )
    return _checked(_with_kind(given, "class" if "labels" in given else "number"), _Targets, "target")


def _with_kind(given: Mapping[str, Any], kind: str) -> dict[str, Any]:
    return {"kind": kind, **given}


def _check_names(columns: list[Any], target: Any, options: Mapping[str, Any]) -> None:
    """Refuse names that mean two things."""
    if not columns:
        raise ProblemError(422, "bad value", "at least one column is needed", field="columns")
    given = [("target.name", target.name), *((f"columns[{i}].name", one.name) for i, one in enumerate(columns))]
    given += [(f"options.{role}", options[role]) for role in ("by", "weight") if options.get(role) is not None]
    met: dict[str, str] = {}
    for field, name in given:
        if name in met:
            raise ProblemError(422, "bad value", f"{name!r} is already the name of {met[name]}", field=field)
        met[name] = field


def _check_distinct(values: list[Any], field: str) -> None:
    texts = _texts(values)
    if None in texts or len(set(texts)) < len(texts):
        raise ProblemError(422, "bad value", f"all must be non-empty and different, got {list(texts)[:8]}", field=field)


def _texts(values: list[Scalar]) -> tuple[str, ...]:
    return tuple(texts_of(values).to_pylist())


def _bandit(declared: Declared) -> ContextualBandit:
    given = _given(_checked(declared.bandit, _Bandit, "bandit"))
    _check_distinct(list(given["arms"]), "bandit.arms")
    return ContextualBandit(given.pop("arms"), given.pop("n_features"), **given)


_MADE = {"rows": _from_rows, "columns": _from_columns, "bandit": _bandit}
