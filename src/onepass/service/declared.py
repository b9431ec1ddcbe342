"""New models from descriptions: some rows of a table, its columns, a bandit's arms, or the seasons of a series.

What a description may hold is said by the types of `onepass.service.description`, so that whatever is wrong with one is
found before a model is made, and named.
"""

import json
from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec import UNSET, Struct

from onepass._validation import ArgumentError
from onepass.decisions.bandit import ContextualBandit
from onepass.files.checkpoint import to_bytes
from onepass.forecasting import BayesianForecaster, ForecastingFleet
from onepass.service.description import (
    FORMS,
    Bandit,
    BanditFromArms,
    CategoryColumn,
    ClassTarget,
    Forecaster,
    ForecasterFromSeasons,
    TableFromColumns,
    TableFromRows,
    TableOptions,
    texts,
)
from onepass.service.errors import ProblemError
from onepass.service.mismatch import Mismatch, find_mismatch
from onepass.service.operations import checked_content
from onepass.service.wire import Declared
from onepass.tables import targets
from onepass.tables.columns.encoding import Encoding
from onepass.tables.columns.errors import SchemaError
from onepass.tables.columns.text import Text
from onepass.tables.inputs import Inputs, steps
from onepass.tables.model import TabularModel
from onepass.tables.options import OPTIONS, Plain
from onepass.tables.readers.byte_stream import ByteStream
from onepass.tables.readers.errors import StreamError
from onepass.tables.readers.json_lines import JsonFile
from onepass.tables.readers.options import AS_FOUND
from onepass.tables.readers.origins import GivenBytes
from onepass.tables.schema import SchemaOptions, infer_model
from onepass.tables.settings import resolve_model_kind

__all__ = ["declared_content", "model_content"]


def model_content(given: bytes | Declared) -> bytes:
    """A model file that can be served, of an uploaded one or a description."""
    return declared_content(given) if isinstance(given, Declared) else checked_content(given)


def declared_content(declared: Declared) -> bytes:
    """The model file of a description."""
    given = [name for name in FORMS if getattr(declared, name) is not None]
    if len(given) != 1:
        raise ProblemError(
            422,
            "bad value",
            f"exactly one of rows, columns, bandit and forecaster must be given, got {' and '.join(given) or 'none'}",
            field=given[1] if given else "rows",
        )
    try:
        return to_bytes(_MADE[given[0]](_checked(declared, given[0])))
    except SchemaError as error:
        field = {None: given[0], "target": "target"}.get(error.setting, f"options.{error.setting}")
        raise ProblemError.of(error.reason, field, "bad description") from None
    except StreamError as error:
        raise ProblemError(422, "bad description", str(error), field=given[0]) from None
    except ArgumentError as error:
        raise ProblemError(422, "bad description", str(error), field=_field_of(error.argument, given[0])) from None
    except (MemoryError, ValueError) as error:  # too large a model says how much memory it would take
        raise ProblemError(422, "bad description", str(error), field=given[0]) from None


def _field_of(argument: str, part: str) -> str:
    """The field of a description that becomes an argument of the library."""
    kind, place = _PARTS.get(part, (TableOptions, "options"))
    return f"{place}.{argument}" if argument in kind.__struct_fields__ else part


def _checked(declared: Declared, part: str) -> Any:
    """The description as the type of its form has it, or a problem that names what is wrong."""
    form, whole = FORMS[part], msgspec.structs.asdict(declared)
    given = {name: value for name, value in whole.items() if value != _NOTHING[name]}
    for name in given:
        if name not in form.__struct_fields__:
            raise ProblemError(
                422,
                "bad value",
                f"{name} can't be given with {part}{_WHY.get((part, name), _WHY.get(name, ''))}",
                field=name,
            )
    if part == "columns":
        given |= {"columns": [_with_kind(one, "number") for one in declared.columns or ()]}
        given |= {"target": _with_target_kind(declared.target)}
    try:
        return msgspec.convert(given, form)
    except msgspec.ValidationError as error:
        found = find_mismatch(given, form, "the description") or Mismatch("wrong_type", part, str(error))
        raise ProblemError(422, "bad value", found.words, field=found.path.removeprefix("."), code=found.code) from None


_NOTHING = msgspec.structs.asdict(Declared())
_PARTS: dict[str, tuple[type[Any], str]] = {"bandit": (Bandit, "bandit"), "forecaster": (Forecaster, "forecaster")}
_WHY: dict[str | tuple[str, str], str] = {
    "learn": ": there are no rows to learn; send them to the model when it is made",
    ("bandit", "target"): ": what a bandit learns are the rewards",
    ("bandit", "options"): ": what can be chosen for a bandit goes into bandit itself",
    ("forecaster", "target"): ": what a forecaster learns are the values y of its series",
    ("forecaster", "options"): ": what can be chosen for a forecaster goes into forecaster itself",
}


def _with_kind(given: Mapping[str, Any], kind: str) -> dict[str, Any]:
    return {"kind": kind, **given}


def _with_target_kind(given: Any) -> dict[str, Any]:
    if not isinstance(given, Mapping):
        raise ProblemError(
            422,
            "bad value",
            'target must be described, e.g. {"name": "price", "kind": "number", "mean": 100, "std": 30} or '
            '{"name": "spam", "kind": "class", "labels": ["no", "yes"]}',
            field="target",
        )
    return _with_kind(given, "class" if "labels" in given else "number")


_KINDS = {one.name: one.kind for one in OPTIONS}


def _given(options: Struct) -> dict[str, Any]:
    """What a struct was given, as the library takes it; lists may be written as on the command line."""
    found = {name: getattr(options, name) for name in options.__struct_fields__}
    found = {name: value for name, value in found.items() if value is not UNSET and value is not None}
    for name, value in found.items():
        kind = _KINDS.get(name)
        if kind is Plain.WIDTHS and isinstance(value, str | int):
            found[name] = tuple(map(int, str(value).split(",")))
        elif kind is Plain.NAMES and isinstance(value, str):
            found[name] = tuple(part.strip() for part in value.split(",") if part.strip())
    return found


def _from_rows(asked: TableFromRows) -> TabularModel:
    lines = "".join(f"{json.dumps(row)}\n" for row in asked.rows).encode()
    sources = [JsonFile(ByteStream.opened(GivenBytes("the table", lines)), AS_FOUND)]
    wanted = SchemaOptions.of(asked.target, **_given(asked.options))
    model, _ = infer_model(sources, wanted, rereadable=True)
    if not asked.learn:
        return model.start()
    for step in steps(model, Inputs(("the table",)), sources):
        if step.rows.rejects:
            reject = step.rows.rejects[0]
            raise ProblemError.of(reject.reason, f"rows[{reject.line - 1}]")
        model.learn(step.rows)
    return model


def _from_columns(asked: TableFromColumns) -> TabularModel:
    options, columns = _given(asked.options), asked.columns
    _check_names(columns, asked.target, options)
    for i, column in enumerate(columns):
        if isinstance(column, CategoryColumn):
            _check_distinct(column.values, f"columns[{i}].values")
    if isinstance(asked.target, ClassTarget):
        _check_distinct(asked.target.labels, "target.labels")
    target = asked.target.target()
    norm = 4.0 if isinstance(target, targets.ClassTarget) else 0.5  # see onepass.tables.schema
    encoded = [column.column(norm) for column in columns]
    encoded.sort(key=lambda column: isinstance(column, Text))  # texts are the last of an encoding
    encoding = Encoding(tuple(encoded), {})
    if encoding.texts:
        options.setdefault("covariance", "diagonal")
    wanted = SchemaOptions.of(target.name, **{"prior_scale": 1.0, "model_kind": "perceptron", **options})
    chosen, reason = resolve_model_kind(wanted.settings, len(encoding.features), target, None)
    model = TabularModel(encoding, target, chosen)
    model.kind_reason = reason
    return model.start()


def _check_names(columns: list[Any], target: Any, options: Mapping[str, Any]) -> None:
    """Refuse names that mean two things."""
    if not columns:
        raise ProblemError(422, "bad value", "at least one column is needed", field="columns")
    given = [("target.name", target.name), *((f"columns[{i}].name", one.name) for i, one in enumerate(columns))]
    given += [(f"options.{role}", options[role]) for role in ("by", "weight") if options.get(role) is not None]
    met: dict[str, str] = {}
    for field, name in given:
        if name in met:
            words = f"{name!r} is already the name of {met[name]}"
            if field in _ROLES and met[name].startswith("columns"):
                words = f"{name!r} is one of columns: {_ROLES[field]}, so leave it out of columns"
            raise ProblemError(422, "bad value", words, field=field)
        met[name] = field


_ROLES = {
    "options.by": "the column with the keys of a fleet is given by its name alone",
    "options.weight": "the column with the weights of rows is given by its name alone",
}


def _check_distinct(values: list[Any], field: str) -> None:
    found = texts(values)
    if None in found or len(set(found)) < len(found):
        raise ProblemError(422, "bad value", f"all must be non-empty and different, got {list(found)[:8]}", field=field)


def _bandit(asked: BanditFromArms) -> ContextualBandit:
    given = _given(asked.bandit)
    _check_distinct(list(given["arms"]), "bandit.arms")
    return ContextualBandit(given.pop("arms"), given.pop("n_features"), **given)


def _forecaster(asked: ForecasterFromSeasons) -> BayesianForecaster | ForecastingFleet:
    given = _given(asked.forecaster)
    if isinstance(given["inputs"], str):
        given["inputs"] = tuple(part.strip() for part in given["inputs"].split(",") if part.strip())
    if "time" in given["inputs"]:
        raise ProblemError(
            422, "bad value", "'time' is the name of the time of a value, not of an input", field="forecaster.inputs"
        )
    if not given.pop("by_key"):
        return BayesianForecaster(**given)
    if given.get("season_length") == "auto":
        words = "many series have the seasons that are given for all of them, as numbers such as [24, 168], not 'auto'"
        raise ProblemError(422, "bad value", words, field="forecaster.season_length")
    return ForecastingFleet(**given)


_MADE: dict[str, Any] = {
    "rows": _from_rows,
    "columns": _from_columns,
    "bandit": _bandit,
    "forecaster": _forecaster,
}
