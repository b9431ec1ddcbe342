"""A file that holds the options of a command: what it says, what overrules it, and what it may not say."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Done, Run
from tests.helpers.tables import trips, write_csv

TRIPS = trips(300)


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Write a config file beside a table, in the folder that commands run in."""
    monkeypatch.chdir(tmp_path)
    write_csv(tmp_path / "trips.csv", TRIPS)

    def write(*lines: str) -> str:
        (tmp_path / "run.toml").write_text("\n".join(lines))
        return "run.toml"

    return write


def choices(done: Done) -> dict[str, str]:
    assert done.code == 0, done
    return {event["name"]: event["value"] for event in done.events if event["event"] == "choice"}


def test_the_options_of_a_command_can_stand_in_a_file(run: Run, config: Any) -> None:
    file = config(
        'target = "price"', 'files = ["trips.csv"]', 'model = "p.onepass"', "hidden = [4, 3]", "prior_scale = 0.5"
    )
    found = choices(run("fit", "--config", file, "--json"))
    assert found["model"].endswith("-4-3-1")
    assert found["prior"].startswith("standard deviation 0.5")


def test_the_command_line_overrules_the_file(run: Run, config: Any) -> None:
    file = config('target = "wait"', "hidden = 4", "seed = 3")
    found = choices(run("fit", "trips.csv", "--config", file, "--target", "price", "--json", "--model", "p.onepass"))
    assert found["target"].startswith("price")
    assert found["model"].endswith("-4-1")


def test_several_commands_share_a_file_with_a_table_each(run: Run, config: Any) -> None:
    file = config(
        "json = true",
        'model = "p.onepass"',
        "[fit]",
        'files = "trips.csv"',
        'target = "price"',
        "[fit.as]",
        'town = "category"',
        'vip = "category"',
        "[predict]",
        'files = ["trips.csv"]',
        "level = 0.5",
        'keep = ["id", "car"]',
        'out = "out.jsonl"',
    )
    found = choices(run("fit", "--config", file))
    assert "categories" in found["column vip"]
    done = run("predict", "--config", file)
    assert done.code == 0, done
    row = json.loads(Path("out.jsonl").read_text().splitlines()[0])
    assert {"id", "car", "mean"} <= row.keys()
    assert row["upper"] - row["lower"] < 1.4 * row["std"]  # half of the targets, not 95 % of them


def test_a_wrong_file_is_refused_with_the_place_and_the_way_out(run: Run, config: Any) -> None:
    cases = {
        'taget = "price"': "'taget' is not an option of fit (did you mean 'target'?)",
        "hidden = [0]": "hidden: '0' is not a list of whole numbers",
        "resume = 1": "resume must be true or false, got 1",
        "target = true": "target must be a text, a number or a list of them, got true",
        "target = [[1]]": "target must be a text, a number or a list of them, got [1]",
        'covariance = "ful"': "covariance: 'ful' is not one of",
        'columns = ["a,b", "c"]': "that must not contain commas",
        "[fitt]": "[fitt] is not a command (did you mean [fit]?)",
        "target = ": "is not valid TOML",
        'config = "other.toml"': "'config' is not an option of fit",
    }
    for line, words in cases.items():
        done = run("fit", "trips.csv", "--config", config(line))
        assert done.code == 2, done
        assert "run.toml" in done.err
        assert words in done.err
    done = run("fit", "trips.csv", "--config", "none.toml")
    assert done.code == 2
    assert "none.toml" in done.err


def test_options_of_other_commands_do_not_count(run: Run, config: Any) -> None:
    file = config('target = "price"', 'model = "p.onepass"', "[evaluate]", "hidden = [4]")
    assert choices(run("fit", "trips.csv", "--config", file, "--json"))["model"].startswith("perceptron")


def test_files_alone_are_given_where_the_file_names_the_model(run: Run, config: Any) -> None:
    file = config('model = "p.onepass"', "[fit]", 'target = "price"')
    assert run("fit", "trips.csv", "--config", file, "-q").code == 0
    done = run("predict", "--config", file, "trips.csv", "--out", "p.csv", "--json")
    assert done.code == 0, done
    assert done.events[-1]["rows"] > 0
    assert run("learn", "--config", file, "trips.csv", "--again", "-q").code == 0
