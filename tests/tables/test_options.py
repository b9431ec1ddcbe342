"""Options of a new model: what `OPTIONS` says is what the library, the commands and the service do."""

from dataclasses import fields

import pytest

from onepass.cli.evaluate import evaluate
from onepass.cli.fit import fit
from onepass.service.description import ModelOptions, TableOptions
from onepass.tables.columns.notation import Notation
from onepass.tables.options import OPTIONS
from onepass.tables.schema import SchemaOptions
from onepass.tables.settings import Settings


def test_defaults_shown_to_users_are_those_of_the_library() -> None:
    assert SchemaOptions.of("y", **{one.name: one.default for one in OPTIONS}) == SchemaOptions("y")


def test_every_option_sets_a_field_and_every_field_has_an_option() -> None:
    names = [one.name for kind in (SchemaOptions, Settings, Notation) for one in fields(kind)]
    made_of_others = {"target", "settings", "notation", "likely_decimal"}
    assert sorted(one.name for one in OPTIONS) == sorted(set(names) - made_of_others)


@pytest.mark.parametrize("command", [fit, evaluate])
def test_commands_have_every_option(command: object) -> None:
    given = {option.name: option for option in command.params}  # type: ignore[attr-defined]
    for one in OPTIONS:
        assert one.option in given[one.name].opts
        assert "{" not in given[one.name].help


def test_the_service_has_every_option_that_does_not_concern_files() -> None:
    served = [one.name for one in OPTIONS if one.served]
    assert list(TableOptions.__struct_fields__) == served
    assert set(served) - set(ModelOptions.__struct_fields__) == {one.name for one in OPTIONS if one.of_rows}
