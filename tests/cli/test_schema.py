import ast
import re
from collections.abc import Iterator
from pathlib import Path

import onepass
from onepass.cli.schema import schema_error_words
from onepass.tables.columns.errors import SchemaError
from onepass.tables.reasons import Reason

PACKAGE = Path(onepass.__file__).parent


def texts_of_errors(file: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Raise):
            texts = (part.value for part in ast.walk(node) if isinstance(part, ast.Constant))
            yield from (text for text in texts if isinstance(text, str))


def test_errors_of_the_library_name_no_options() -> None:
    own = ("cli", "web")  # the service is started by its command alone
    files = [file for file in PACKAGE.rglob("*.py") if file.parent.name not in own]
    assert len(files) > 50
    named = [(file.name, text) for file in files for text in texts_of_errors(file) if re.search(r"--[a-z]", text)]
    assert named == []


def test_commands_name_the_options_that_are_to_blame_and_those_that_help() -> None:
    reason = Reason("is_target", "a")
    error = SchemaError(reason, setting="one_hot", suggestions={"kinds": "a=date", "buckets": ""})
    assert schema_error_words(error) == "--one-hot: 'a' is the target (--as a=date or --buckets)"
    assert schema_error_words(SchemaError(reason)) == "'a' is the target"
