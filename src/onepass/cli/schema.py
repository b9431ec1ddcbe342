"""What the options of a command ask of the library, and the answers of the library in words of options."""

import shlex
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import click

from onepass.tables.columns.names import COLUMN_KINDS
from onepass.tables.options import OPTIONS

if TYPE_CHECKING:
    from onepass.cli.console import Console
    from onepass.tables.columns.errors import SchemaError
    from onepass.tables.model import TabularModel
    from onepass.tables.reasons import Reason
    from onepass.tables.schema import SchemaOptions

__all__ = ["flag", "option_text", "schema_error_words", "schema_options", "tell_choices"]

_FLAGS = {one.name: one.option for one in OPTIONS}


def flag(setting: str) -> str:
    """The option for a setting of the library.

    Examples
    --------
    >>> flag("one_hot"), flag("kinds")
    ('--one-hot', '--as')
    """
    return _FLAGS.get(setting, f"--{setting.replace('_', '-')}")


def option_text(setting: str, value: str) -> str:
    """An option with its value, as it is typed.

    Examples
    --------
    >>> print(option_text("kinds", "house number=category"))
    --as 'house number=category'
    """
    return f"{flag(setting)} {shlex.quote(value)}"


def schema_options(target: str, shape: dict[str, Any]) -> "SchemaOptions":
    """What the options ask for, checked as far as that goes without the data."""
    from onepass.tables.schema import SchemaOptions

    kinds = {}
    for entry in shape["kinds"]:
        column, _, kind = entry.rpartition("=")
        if kind not in COLUMN_KINDS or not column:
            raise click.UsageError(f"--as {entry!r} is not COLUMN=KIND, with KIND one of {', '.join(COLUMN_KINDS)}.")
        kinds[column] = kind
    _check_model(shape)
    return SchemaOptions.of(target, **{**shape, "kinds": kinds, "date_formats": tuple(shape["date_formats"])})


def _check_model(shape: dict[str, Any]) -> None:
    """Refuse options of the model that can't work whatever the data."""
    from onepass.activations import NAMES

    if shape["activation"] not in (None, *NAMES):
        raise click.UsageError(f"--activation must be one of {', '.join(NAMES)}; got {shape['activation']!r}.")
    kind = shape["model_kind"]
    if kind == "perceptron" and shape["hidden"]:
        raise click.UsageError(
            f"--model-kind perceptron has no hidden layers: leave out --hidden {','.join(map(str, shape['hidden']))} "
            "for a perceptron, or --model-kind for a network."
        )
    if shape["covariance"] in ("layer", "kronecker") and not shape["hidden"] and kind != "network":
        raise click.UsageError(
            f"--covariance {shape['covariance']} needs hidden layers, e.g. --hidden 50; without --hidden it is full, "
            "low_rank or diagonal, or neuron for classes."
        )
    if shape["drift"] == "auto" and shape["forgetting"] != 1.0:
        raise click.UsageError(
            "--drift auto finds out by itself how fast old rows lose their weight, and needs --forgetting 1, the "
            f"default; got --forgetting {shape['forgetting']:g}. Give one of the two."
        )


def tell_choices(console: "Console", model: "TabularModel", reason: "Reason") -> None:
    """Print what was chosen for a new model, its task for this reason, and what may be meant otherwise."""
    console.fact("task", _task_words(model, reason))
    for name, words in model.choices(console.most_columns):
        console.fact(name, words)
    for advice in model.advice:
        console.advise(advice)


def _task_words(model: "TabularModel", reason: "Reason") -> str:
    """The task of a new model, why it was chosen, and how to choose another."""
    from onepass.tables.targets import CountTarget

    name = model.target.name
    if isinstance(model.target, CountTarget):
        return f"counts ({name}: {reason})"
    if not model.labels:
        counts = "--task counts would take them for counts, " if reason.code == "whole_numbers" else ""
        more = "".join(f"; {words}" for words in _target_options(model))
        return f"regression ({name}: {reason}; {counts}--task classification would take its values for classes{more})"
    count = "two classes" if len(model.labels) == 2 else f"{len(model.labels)} classes"
    return f"classification, {count} ({name}: {reason})"


def _target_options(model: "TabularModel") -> Iterator[str]:
    """Options that would change what is learned of a number."""
    from onepass.tables.targets import LogTarget, NumberTarget

    if isinstance(model.target, LogTarget):
        yield "--no-log-target would learn the target itself"
    if isinstance(model.target, NumberTarget) and model.target.why_not_log:
        yield "--log-target would learn its logarithm"
    if isinstance(model.target, NumberTarget) and model.target.n_wild:
        yield "if targets far away are errors, --outliers 0.05 keeps them from doing harm"


def schema_error_words(error: "SchemaError") -> str:
    """A message of the library, with the options that are to blame or that would help."""
    words = str(error) if error.setting is None else f"{flag(error.setting)}: {error}"
    helpful = [f"{flag(setting)} {value}".strip() for setting, value in error.suggestions.items()]
    return f"{words} ({' or '.join(helpful)})" if helpful else words
