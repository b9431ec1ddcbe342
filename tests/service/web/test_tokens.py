"""Tokens in their file."""

from pathlib import Path

import pytest

from onepass.service.errors import ProblemError
from onepass.service.web.tokens import Tokens


@pytest.mark.parametrize("name", ["", "my token", "a\nb", "x" * 65, "-a", "ä"])
def test_a_name_that_the_file_could_not_hold_is_refused_and_the_file_can_be_read_again(
    tmp_path: Path, name: str
) -> None:
    path = tmp_path / "tokens.json"
    Tokens(path).create("admin", "admin")
    with pytest.raises(ProblemError, match="the name of a token"):
        Tokens(path).create(name, "read")
    assert [token.name for token in Tokens(path).all()] == ["admin"]
