"""The snippets of README.md that are no doctests, run as `make wheel` runs them on the installed wheel."""

from pathlib import Path

import pytest
from scripts import smoke


def test_the_commands_and_the_service_of_the_readme_work(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    smoke.write_trips(tmp_path)
    for line in smoke.snippet("command line"):
        smoke.run(line.removeprefix("onepass ").partition("#")[0], tmp_path)
    smoke.service(tmp_path)
    assert capsys.readouterr().out.count("ok onepass") == 6


def test_a_command_that_fails_is_named(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match=r"onepass show none\.onepass: exit code 1\n.*does not exist"):
        smoke.run("show none.onepass", tmp_path)
