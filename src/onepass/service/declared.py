"""New models from descriptions: some rows of a table, its columns, or a bandit's arms."""

import json
import tempfile
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

from onepass.decisions.bandit import ContextualBandit
from onepass.files.checkpoint import to_bytes
from onepass.service.errors import ProblemError
from onepass.service.operations import checked_content
from onepass.service.wire import Declared
from onepass.tables.columns.encoding import Encoding
from onepass.tables.columns.errors import SchemaError
from onepass.tables.inputs import Inputs, steps
from onepass.tables.model import TabularModel
from onepass.tables.readers.errors import StreamError
from onepass.tables.schema import SchemaOptions, infer_model
from onepass.tables.settings import Settings, settle_kind
from onepass.tables.targets import Target, target_from_state

__all__ = ["declared_content", "model_content"]

_SHAPE = {"task", "classes", "columns", "ignore", "kinds", "one_hot", "buckets", "text_buckets", "log_target"}
_SETTINGS = {field.name for field in fields(Settings)}
_BANDIT = {
    "arms",
    "n_features",
    "policy",
    "observation",
    "hidden",
    "prior_scale",
    "noise",
    "reward_range",
    "standardize",
    "population",
    "outliers",
    "forgetting",
    "drift",
    "unknown_rewards",
    "seed",
}


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
            f"exactly one of rows, columns and bandit must be given, got {given or 'none'}",
            field="rows",
        )
    try:
        return to_bytes(_MADE[given[0]](declared))
    except SchemaError as error:
        field = "options" if error.setting is None else f"options.{error.setting}"
        raise ProblemError(422, "bad description", str(error), field=field) from None
    except StreamError as error:
        raise ProblemError(422, "bad description", str(error), field=given[0]) from None
    except (ValueError, TypeError, KeyError) as error:
        raise ProblemError(422, "bad description", _words(error), field=given[0]) from None


def _words(error: Exception) -> str:
    return f"{error.args[0]!r} is missing" if isinstance(error, KeyError) else str(error)


def _from_rows(declared: Declared) -> TabularModel:
    if not isinstance(declared.target, str):
        raise ProblemError(422, "bad value", "target must be the name of the column to predict", field="target")
    shape, settings = _divided(declared.options)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "rows"
        file.write_text("".join(f"{json.dumps(row)}\n" for row in declared.rows or ()))
        inputs = Inputs((str(file),))
        sources = inputs.sources()
        options = SchemaOptions(declared.target, settings=Settings(**settings), **shape)
        model, _ = infer_model(sources, options, rereadable=True)
        if declared.learn:
            for step in steps(model, inputs, sources):
                if step.rows.rejects:
                    reject = step.rows.rejects[0]
                    raise ProblemError(422, "bad value", reject.reason, field=f"rows[{reject.line - 1}]")
                model.learn(step.rows)
        return model


def _divided(options: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    unknown = sorted(set(options) - _SHAPE - _SETTINGS)
    if unknown:
        known = ", ".join(sorted(_SHAPE | _SETTINGS))
        raise ProblemError(
            422, "bad value", f"there is no option {unknown[0]!r}; there are {known}", field=f"options.{unknown[0]}"
        )
    tuples = {name: tuple(value) if isinstance(value, list) else value for name, value in options.items()}
    return (
        {name: value for name, value in tuples.items() if name in _SHAPE},
        {name: value for name, value in tuples.items() if name in _SETTINGS},
    )


def _from_columns(declared: Declared) -> TabularModel:
    shape, settings = _divided(declared.options)
    if shape:
        raise ProblemError(
            422, "bad value", f"{next(iter(shape))} is for a model that is inferred from rows", field="options"
        )
    encoding = Encoding.from_state({"columns": [_column(one) for one in declared.columns or ()], "ignored": {}})
    target = _target(declared.target)
    asked: dict[str, Any] = {"prior_scale": 1.0, "model_kind": "perceptron", **settings}
    chosen, reason = settle_kind(Settings(**asked), len(encoding.features), target, None)
    model = TabularModel(encoding, target, chosen)
    model.kind_reason = reason
    return model


def _column(given: Mapping[str, Any]) -> dict[str, Any]:
    """A column as files describe it, from what is needed of it at least."""
    kind = given.get("kind", "number")
    own = {name: value for name, value in given.items() if name not in ("mean", "std", "values")} | {"kind": kind}
    if kind == "number":
        own |= {"centre": given.get("mean", 0.0), "spread": given.get("std", 1.0)}
        return {"missing": False, **own}
    if kind == "category":
        levels = [str(value) for value in given["values"]]
        share = 1.0 / (len(levels) + 1)
        return {"levels": levels, "shares": [share] * (len(levels) + 1), **own}
    return own


def _target(given: Any) -> Target:
    if not isinstance(given, dict) or "name" not in given:
        raise ProblemError(
            422,
            "bad value",
            'target must be described, e.g. {"name": "price", "kind": "number", "mean": 100, "std": 30} or '
            '{"name": "spam", "kind": "class", "labels": ["no", "yes"]}',
            field="target",
        )
    own = {name: value for name, value in given.items() if name not in ("mean", "std")}
    own.setdefault("kind", "class" if "labels" in own else "number")
    if own["kind"] in ("number", "log"):
        own |= {"centre": given.get("mean", 0.0), "spread": given.get("std", 1.0)}
    if own["kind"] == "log":
        own.setdefault("why", "as given")
    if own["kind"] == "class":
        own["labels"] = [str(label) for label in own["labels"]]
        own.setdefault("numeric", False)
    return target_from_state(own)


def _bandit(declared: Declared) -> ContextualBandit:
    given: dict[str, Any] = dict(declared.bandit or {})
    for name in ("hidden", "reward_range"):
        if isinstance(given.get(name), list):
            given[name] = tuple(given[name])
    unknown = sorted(set(given) - _BANDIT)
    if unknown:
        known = ", ".join(sorted(_BANDIT))
        raise ProblemError(
            422, "bad value", f"a bandit has no {unknown[0]!r}; it has {known}", field=f"bandit.{unknown[0]}"
        )
    return ContextualBandit(**given)


_MADE = {"rows": _from_rows, "columns": _from_columns, "bandit": _bandit}
