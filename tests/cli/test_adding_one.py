"""The example on the page about adding a command, taken from there and tried out."""

import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

import onepass
from onepass.cli.main import COMMANDS, main
from tests.helpers.extending import run_page
from tests.helpers.savable_models import table


@pytest.fixture(autouse=True)
def command(monkeypatch: pytest.MonkeyPatch) -> None:
    """The command that the page defines, which is known for one test only."""
    module = ModuleType("onepass.cli.count")
    vars(module).update(run_page("command", __name__=module.__name__))
    monkeypatch.setitem(sys.modules, module.__name__, module)
    monkeypatch.setitem(COMMANDS, "count", "onepass.cli.count:count")


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[object, str, str]:
    """Exit code, output and errors of the command line."""
    with pytest.raises(SystemExit) as end:
        main(arguments)
    return (end.value.code, *capsys.readouterr())


def test_it_runs(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    X = np.random.default_rng(0).normal(size=(40, 3))
    onepass.save(table(X, X[:, 0]), tmp_path / "model")
    assert run(capsys, "count", str(tmp_path / "model")) == (0, "40\n", "")


def test_it_has_a_line_in_the_help_and_examples_in_its_own(capsys: pytest.CaptureFixture[str]) -> None:
    assert "Print the number of rows that MODEL has learned." in run(capsys, "--help")[1]
    assert "  onepass count price.onepass\n" in run(capsys, "count", "--help")[1]


def test_a_missing_file_is_answered_in_one_sentence(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    missing = tmp_path / "price.onepass"
    assert run(capsys, "count", str(missing)) == (1, "", f"onepass: {missing} does not exist.\n")
