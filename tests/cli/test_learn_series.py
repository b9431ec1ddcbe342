"""``onepass learn``, ``show`` and ``history`` with models of series: what they learn, say, keep and refuse."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from onepass.files.checkpoint import load
from onepass.tables.series_model import SeriesModel
from tests.cli.conftest import Run

DAYS = [str(day) for day in np.arange("2024-01-01", "2024-05-01", dtype="datetime64[D]")]
SOLD = np.round(50 + 10 * np.sin(2 * np.pi * np.arange(len(DAYS)) / 7), 2) + np.arange(len(DAYS)) % 3
COLUMNS = ("--time", "date", "--target", "sold")


def write(path: Path, *lines: str) -> Path:
    path.write_text("\n".join(["date,sold", *lines]) + "\n")
    return path


@pytest.fixture
def sales(tmp_path: Path) -> Path:
    return write(tmp_path / "sales.csv", *(f"{day},{n}" for day, n in zip(DAYS, SOLD, strict=True)))


@pytest.fixture
def model(run: Run, sales: Path, tmp_path: Path) -> Path:
    path = tmp_path / "sales.onepass"
    assert run("forecast", sales, *COLUMNS, "--horizon", 7, "--no-backtest", "--model", path).code == 0
    return path


@pytest.fixture
def tonight(tmp_path: Path) -> Path:
    return write(tmp_path / "tonight.csv", f"2024-04-28,{SOLD[-3]}", "2024-04-29,70", "2024-05-01,52", "2024-05-03,?")


def test_new_corrected_and_rejected_values_are_counted(run: Run, model: Path, tonight: Path) -> None:
    done = run("learn", model, tonight)
    assert done.code == 3, done.err
    assert "values:        1 new value, 1 corrected, 1 known already" in done.out
    assert "learned 1 new value, 1 corrected, 1 known already, 1 rejected; the model has seen 122 values" in done.out
    known = load(model)
    assert isinstance(known, SeriesModel)
    (one,) = known.forecasts(1)
    assert one.recent[-4:].tolist() == [SOLD[-3], 70.0, SOLD[-1], 52.0]


def test_it_learns_what_forecast_does(run: Run, model: Path, tonight: Path, tmp_path: Path) -> None:
    other, out, expected = tmp_path / "other.onepass", tmp_path / "a.csv", tmp_path / "b.csv"
    done = run("learn", model, tonight, "--out", other, "--json")
    last = done.events[-1]
    assert (last["values"], last["corrected"], last["rejected"], last["values_in_all"]) == (1, 1, 1, 122)
    assert load(model).n_seen == 121
    assert run("forecast", tonight, "--model", model, "--horizon", 3, "--out", expected).code == 3
    assert run("forecast", "--model", other, "--horizon", 3, "--out", out).code == 0
    assert out.read_text() == expected.read_text()


def test_no_file_is_learned_twice_and_one_that_has_grown_goes_on(
    run: Run, model: Path, sales: Path, tmp_path: Path
) -> None:
    before = model.read_bytes()
    done = run("learn", model, sales)
    assert (done.code, "has learned these files already" in done.out) == (0, True)
    assert model.read_bytes() == before
    with sales.open("a") as file:
        file.write("2024-05-01,52\n2024-05-02,54\n")
    done = run("learn", model, sales)
    assert done.code == 0, done.err
    assert "learned from row 122 on" in done.err
    assert "learned 2 new values, 0 rejected; the model has seen 123 values" in done.out
    done = run("forecast", sales, "--model", model, "--horizon", 2)
    assert (done.code, "is left out; 'onepass learn --again' learns it again" in done.err) == (0, True)
    recent = write(tmp_path / "recent.csv", "2024-05-02,55")
    assert run("learn", model, recent).code == 0
    done = run("learn", model, recent, "--again")
    assert (done.code, "0 new values, 1 known already" in done.out) == (0, True)
    printed = run("history", model).out
    assert "121 values, 0 rejected, from sales.csv" in printed
    assert "2 values, 0 rejected, from sales.csv" in printed
    assert "values:        123, the last at 2024-05-02" in run("show", model).out
    done = run("undo", model)
    assert "it has seen 123 values, as before" in done.out


@pytest.mark.parametrize(("how", "expected"), [("sum", [104.0, 130.0]), ("mean", [20.8, 26.0])])
def test_rows_added_to_a_file_count_with_the_earlier_ones_of_their_time(
    run: Run, tmp_path: Path, how: str, expected: list[float]
) -> None:
    path, single = tmp_path / "m.onepass", DAYS[:60]
    file = write(tmp_path / "sold.csv", *(f"{day},{20 + i % 3}" for i, day in enumerate(single) for _ in range(4)))
    options = ("--duplicates", how, "--revisions", 5, "--horizon", 3, "--no-backtest", "--model", path)
    assert run("forecast", file, *COLUMNS, *options).code == 0

    def added(*lines: str) -> str:
        with file.open("a") as opened:
            opened.write("".join(f"{line}\n" for line in lines))
        done = run("learn", path, file)
        return done.out + done.err

    assert "learned 1 new value, 1 rejected" in added(*[f"{DAYS[60]},25"] * 3, f"{DAYS[60]},many")
    again = added(*[f"{DAYS[60]},{value}" for value in (25, 30)], f"{DAYS[59]},16")
    assert "learned 0 new values, 2 corrected, 0 rejected" in again
    known = load(path)
    assert isinstance(known, SeriesModel)
    (one,) = known.forecasts(1)
    assert one.recent[-2:].tolist() == expected


def test_a_gap_before_the_new_values_is_named(run: Run, model: Path, tmp_path: Path) -> None:
    done = run("learn", model, write(tmp_path / "late.csv", "2024-06-01,60", "2024-06-03,61"))
    assert done.code == 0, done.err
    assert "32 steps have no value, the longest 31 from 2024-05-01 to 2024-05-31" in done.out
    before = model.read_bytes()
    done = run("learn", model, write(tmp_path / "far.csv", "2074-06-01,60"))
    assert done.code == 1
    assert "go on 18,259 steps after the last one learned, 2024-06-03" in done.err
    assert model.read_bytes() == before


def test_a_model_of_detect_prints_alarms_as_it_learns(run: Run, sales: Path, tmp_path: Path) -> None:
    path = tmp_path / "odd.onepass"
    assert run("detect", sales, *COLUMNS, "--model", path).code == 0
    done = run("learn", path, write(tmp_path / "more.csv", "2024-05-01,999", "2024-05-02,54"))
    assert done.code == 0, done.err
    assert "spike:         2024-05-01: 999, expected" in done.out
    assert "learned 2 new values, 0 rejected; the model has seen 123 values" in done.out


@pytest.mark.parametrize(
    "option", [("--passes", 2), ("--checkpoint-every", "10s"), ("--resume",), ("--alarms", "alarms.csv")]
)
def test_options_of_tables_are_refused_by_name(
    run: Run, model: Path, tonight: Path, option: tuple[object, ...]
) -> None:
    before = model.read_bytes()
    done = run("learn", model, tonight, *option)
    assert done.code == 2
    assert f"{option[0]} does not apply to {model}: " in done.err
    assert model.read_bytes() == before


def test_commands_for_tables_name_what_to_do_with_series(run: Run, model: Path, tonight: Path) -> None:
    for arguments in (
        ("predict", model, tonight),
        ("evaluate", tonight, "--model", model),
        ("report", tonight, "--model", model),
    ):
        done = run(*arguments)
        assert done.code == 1
        assert f"'onepass forecast --model {model} --horizon STEPS' says what comes next" in done.err
    done = run("show", model, "--weights", 3)
    assert (done.code, "--weights needs a model made by 'onepass fit'" in done.err) == (2, True)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("forecast", "{}/no.csv", *COLUMNS, "--horizon", "3"), "no.csv does not exist"),
        (("detect", "{}/sales.csv", "--time", "day", "--target", "sold"), "has no column 'day'"),
        (("learn", "{}/no.onepass", "{}/sales.csv"), "no.onepass does not exist"),
        (("learn", "{}/sales.onepass", "{}/no.csv"), "no.csv does not exist"),
    ],
)
def test_an_error_does_not_wait_for_scikit_learn(model: Path, arguments: tuple[str, ...], sentence: str) -> None:
    given = [argument.replace("{}", str(model.parent)) for argument in arguments]
    code = (
        "import sys\nfrom onepass.cli.main import main\n"
        f"try:\n    main({given!r})\nexcept SystemExit as end:\n    assert end.code == 1\n"
        "print('heavy:', *({'sklearn', 'pandas', 'scipy.stats', 'matplotlib'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert sentence in done.stderr
    assert done.stdout.splitlines()[-1].strip() == "heavy:"
