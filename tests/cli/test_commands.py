import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any
from unittest.mock import Mock

import click
import pytest
from click.testing import CliRunner

from onepass import __version__
from onepass.cli.main import COMMANDS
from onepass.cli.main import onepass as group
from tests.cli.conftest import Run
from tests.helpers.browser import needs_browser, open_in_browser
from tests.helpers.commands import COMMAND, read_until, run_command, started
from tests.helpers.experiments import without_times

BAR = {"FORCE_COLOR": "1", "TERM": "xterm"}  # has the progress drawn although nobody looks at it
SIX = ("mean_mae", "mean_std", "mean_max", "var_mae", "var_std", "var_max")


def results(folder: Path) -> dict[str, Any]:
    return dict(json.loads((folder / "results.json").read_text()))


@pytest.fixture(scope="module")
def everything(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """All experiments in a small setting, through the real command; the folder and what the terminal showed."""
    folder = tmp_path_factory.mktemp("out") / "deep" / "down"
    done = run_command("reproduce", "--trials", "3", "--out", str(folder))
    assert done.returncode == 0, done.stderr
    return folder, done.stdout


def test_help_and_version_are_light() -> None:
    heavy = {"numpy", "scipy", "matplotlib", "rich", "numba", "sklearn"}
    for arguments in (
        ["--help"],
        ["reproduce", "--help"],
        ["decide", "--help"],
        ["--version"],
    ):
        code = (
            f"import sys; sys.argv[1:] = {arguments}\nfrom onepass.cli.main import main\n"
            "try:\n    main()\nexcept SystemExit as end:\n    assert not end.code\n"
            f"print('heavy:', *({heavy} & set(sys.modules)))"
        )
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        assert done.stdout.splitlines()[-1].strip() == "heavy:"
    assert __version__ in done.stdout


@pytest.mark.parametrize(
    ("arguments", "code", "sentence"),
    [
        (["reproduce", "warp"], 2, "'warp' is not one of 'all', 'sigmoid', 'comparison', 'classification'"),
        (["reproduce", "--trials", "0"], 2, "Invalid value for '--trials': 0 is not in the range x>=1."),
        (["reproduce", "--trials", "many"], 2, "'many' is not a valid integer"),
        (["reproduce", "--seed", "-1"], 2, "Invalid value for '--seed'"),
        (["reproduce", "--out", "{file}"], 2, "is a file"),
        (["reproduce", "--out", "{file}/below"], 1, "cannot write to --out"),
        (["produce"], 2, "No such command 'produce'"),
        ([], 2, "Missing command"),
    ],
)
def test_wrong_use_is_answered_in_one_sentence(arguments: list[str], code: int, sentence: str, tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.touch()
    done = run_command(*(argument.format(file=file) for argument in arguments))
    assert done.returncode == code
    assert sentence in done.stderr
    assert done.stderr.startswith("onepass: ")
    assert len(done.stderr.strip().splitlines()) == 1
    assert done.stdout == ""


def test_a_command_is_added_by_one_line_in_the_table(monkeypatch: pytest.MonkeyPatch) -> None:
    """As `onepass.cli.main` describes: a command in a module of its own, and its line."""
    module = ModuleType("toy")

    @click.command(short_help="Greet somebody.")
    @click.argument("name")
    def greet(name: str) -> None:
        click.echo(f"Hello, {name}!")

    vars(module)["greet"] = greet
    monkeypatch.setitem(sys.modules, "toy", module)
    monkeypatch.setitem(COMMANDS, "greet", "toy:greet")
    assert "Greet somebody." in CliRunner().invoke(group, ["--help"]).output
    done = CliRunner().invoke(group, ["greet", "world"])
    assert (done.exit_code, done.output) == (0, "Hello, world!\n")


def test_every_command_in_the_table_loads_and_has_help() -> None:
    for name in COMMANDS:
        done = CliRunner().invoke(group, [name, "--help"])
        assert done.exit_code == 0
        assert f"Usage: onepass {name}" in done.output


def test_what_a_user_can_mend_is_a_sentence_and_a_bug_has_a_traceback(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    for error in (ValueError("noise is wrong"), TypeError("oh"), AssertionError("oh")):
        monkeypatch.setattr("onepass.cli.paths.load_model", Mock(side_effect=error))
        if isinstance(error, ValueError):
            assert run("show", "a.onepass") == (1, "", "onepass: noise is wrong.\n")
        else:
            with pytest.raises(type(error), match="oh"):  # which Python ends with a traceback and code 1
                run("show", "a.onepass")


def test_an_unknown_executor_is_refused_and_a_cluster_needs_files(run: Run) -> None:
    done = run("fit", "a.csv", "--target", "y", "--model", "m", "--executor", "threads")
    assert done.code == 2
    assert "'threads' is not one of 'process', 'dask'" in done.err
    done = run("fit", "-", "--target", "y", "--model", "m", "--executor", "dask")
    assert done.err.startswith("onepass: --executor dask needs files")


def test_everything_is_written_and_the_terminal_says_where(everything: tuple[Path, str]) -> None:
    folder, shown = everything
    names = {"fig2_sigmoid", "fig3_comparison", "fig5_examples", "fig6_rmse"}
    names |= {"fig4_classification", "fig4_classification_exact", "fig4_trials"}
    expected = {f"{name}.{kind}" for name in names for kind in ("svg", "png")} | {"results.json", "report.html"}
    assert set(os.listdir(folder)) == expected
    assert f"Report: {folder / 'report.html'}" in shown
    for text in ("paper", "reproduced", "onepass exact", "0.0952 ± 0.0708", "0.0907 ± 0.0724"):
        assert text in shown
    assert max(map(len, shown.splitlines()[:-1])) <= 80


def test_the_comparison_gives_the_known_numbers_in_full(everything: tuple[Path, str]) -> None:
    found = results(everything[0])["comparison"]
    known = {
        "paper": (0.0952, 0.0708, 0.3, 0.1349, 0.1291, 0.5),
        "reproduced": (0.0907, 0.0724, 0.3094, 0.1345, 0.1350, 0.4870),
        "bernoulli_paper_rule": (1.0700, 0.6555, 2.5001, 0.7081, 0.4824, 1.7042),
        "bernoulli_guarded": (1.0277, 0.5982, 2.2264, 0.6690, 0.4486, 1.5658),
        "bernoulli_noise": (0.7077, 0.5171, 1.8402, 0.4981, 0.4025, 1.3984),
        "bernoulli_label_variance": (0.0056, 0.0045, 0.0221, 0.0192, 0.0200, 0.0728),
        "exact": (0.0, 0.0, 0.0, 0.0, 0.0, 0.0),
    }
    for rule, numbers in known.items():
        assert [found[rule][key] for key in SIX] == pytest.approx(numbers, abs=6e-5), rule
    assert max(found["exact"].values()) < 1e-8
    assert found["share_of_mean_errors_below_0.2"] > 0.8
    assert found["integration_disagreement"] < 1e-6
    assert found["negative_variances"] == 242


def test_every_number_promised_is_there(everything: tuple[Path, str]) -> None:
    found = results(everything[0])
    assert {"sigmoid", "comparison", "classification", "regression"} <= found.keys()
    for key in ("n", "accuracy_mean", "accuracy_std", "logloss_mean"):
        assert len(found["classification"][key]) == 25
    for key in ("n", "bp_rmse_mean", "bp_rmse_std", "exact_rmse_mean", "one_pass_rmse_mean", "strongest_rmse_std"):
        assert len(found["regression"][key]) == 20
    assert all(found["regression"][f"{name}_seconds"] > 0 for name in ("bp", "exact", "one_pass", "batch"))
    assert (found["seed"], found["trials"]) == (0, 3)


def test_the_report_fetches_nothing_and_tells_which_reading_reproduces(everything: tuple[Path, str]) -> None:
    html = (everything[0] / "report.html").read_text(encoding="utf-8")
    assert "http" not in html
    assert "p(y|a) = N(y; s(a), 0.01)" in html
    assert "What does not hold" in html


@needs_browser
@pytest.mark.parametrize("width", [1100, 500], ids=["desk", "phone"])
def test_a_browser_opens_the_report(everything: tuple[Path, str], tmp_path: Path, width: int) -> None:
    seen, console = open_in_browser((everything[0] / "report.html").read_text(encoding="utf-8"), tmp_path, width)
    seen.pop("cut")  # on a narrow page wide tables are scrolled
    assert len(seen) == 8
    assert seen.pop("overflow") == "false"
    assert set(seen.values()) == {"true"}
    assert console == []


def test_one_experiment_alone_gives_the_same_numbers_again(
    everything: tuple[Path, str], run: Run, tmp_path: Path
) -> None:
    done = run("reproduce", "regression", "--trials", "3", "--seed", "0", "--out", tmp_path)
    assert done.code == 0, done.err
    found = results(tmp_path)
    assert found.keys() == {"onepass", "seed", "trials", "seconds", "regression"}
    assert "onepass reproduce regression --seed 0 --trials 3" in (tmp_path / "report.html").read_text(encoding="utf-8")
    assert without_times(found["regression"]) == without_times(results(everything[0])["regression"])


@pytest.mark.parametrize("stop", [signal.SIGINT, signal.SIGTERM], ids=lambda stop: stop.name)
def test_an_interruption_leaves_nothing_behind(stop: signal.Signals, tmp_path: Path) -> None:
    folder = tmp_path / "new" / "out"
    command = [*COMMAND, "reproduce", "classification", "--trials", "5000", "--out", str(folder)]
    with started(command, BAR) as process:
        read_until(process.stderr, " 1 %")
        assert folder.exists()
        process.send_signal(stop)
        _, errors = process.communicate(timeout=120)
    assert process.returncode == 130
    assert "onepass: interrupted; no half-written file is left behind." in errors
    assert "Traceback" not in errors
    assert os.listdir(tmp_path) == []


def test_an_interruption_keeps_what_an_earlier_run_left(tmp_path: Path) -> None:
    (tmp_path / "report.html").write_text("earlier")
    command = [*COMMAND, "reproduce", "classification", "--trials", "5000", "--out", str(tmp_path)]
    with started(command, BAR) as process:
        read_until(process.stderr, " 1 %")
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=120)
    assert os.listdir(tmp_path) == ["report.html"]
    assert (tmp_path / "report.html").read_text() == "earlier"
