"""Raw rows of CSV files in exported modules: each value is what the model takes it for, or an error."""

import csv
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from onepass.export import to_numpy
from onepass.files.checkpoint import load
from onepass.tables.columns.boolean import Boolean
from onepass.tables.columns.category import Category, Hashed
from onepass.tables.columns.date import Date, as_days
from onepass.tables.columns.date_format import DateFormat
from onepass.tables.columns.encoding import Encoding
from onepass.tables.columns.number import Number
from onepass.tables.columns.number_format import NumberFormat
from onepass.tables.columns.values import as_numbers
from onepass.tables.model import TabularModel
from onepass.tables.targets import NumberTarget
from tests.helpers.commands import run_here
from tests.helpers.exported import numpy_module


def german(number: float, digits: int) -> str:
    return f"{number:,.{digits}f}".translate(str.maketrans(",.", ".,"))


def in_germany(rng: random.Random) -> dict[str, str]:
    return {
        "area": german(rng.uniform(20, 3000), 0),
        "rent": rng.choice([f"{german(rng.uniform(500, 2500), 0)} EUR", "unknown"]),
        "floor": german(rng.uniform(-1, 9), 1),
        "since": rng.choice([f"{rng.randint(1, 28):02}.{rng.randint(1, 12):02}.2025", "k.A.", ""]),
        "city": rng.choice(["Ulm", "Köln", "NA"]),
        "lift": rng.choice(["yes", "no", "NA"]),
    }


def in_america(rng: random.Random) -> dict[str, str]:
    amount = f"${rng.uniform(0, 9000):,.2f}"
    return {
        "amount": rng.choice([amount, f"({amount})", "-"]),
        "change": f"{rng.uniform(-20, 20):.2f}%",
        "when": f"{rng.randint(1, 12)}/{rng.randint(1, 28)}/2024 {rng.randint(1, 12)}:{rng.randint(0, 59):02} "
        + rng.choice(["am", "PM"]),
        "zip": f"{rng.randint(0, 99999):05}",
        "plain": rng.choice([f"{rng.gauss(0, 1):.3f}", "N/A"]),
    }


def in_switzerland(rng: random.Random) -> dict[str, str]:
    return {
        "sum": f"CHF {rng.uniform(0, 90000):,.2f}".replace(",", "\u2019"),
        "debt": f"{rng.uniform(0, 5000):,.1f}-".replace(",", " "),
        "day": f"{rng.randint(1, 28)} {rng.choice(['Jan', 'May', 'Dec'])} {rng.randint(1990, 2024)}",
        "iso": f"2024-{rng.randint(1, 12):02}-{rng.randint(1, 28):02}T{rng.randint(0, 23):02}:15:00",
    }


@pytest.mark.parametrize("make", [in_germany, in_america, in_switzerland])
def test_rows_of_the_file_are_predicted_as_by_the_command(
    make: Callable[[random.Random], dict[str, str]], tmp_path: Path
) -> None:
    rng = random.Random(3)
    rows = [{**make(rng), "y": str(k % 7)} for k in range(200)]
    with (tmp_path / "t.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, rows[0])
        writer.writeheader()
        writer.writerows(rows)
    fit = ["--target", "y", "--task", "regression", "--model-kind", "perceptron", "--model", tmp_path / "m.onepass"]
    assert run_here("fit", tmp_path / "t.csv", *fit, "--missing", "k.A.,NA,N/A,unknown,-", "--quiet") == 0
    assert (
        run_here("predict", tmp_path / "m.onepass", tmp_path / "t.csv", "--out", tmp_path / "p.csv", "--full-precision")
        == 0
    )
    with (tmp_path / "t.csv").open(newline="", encoding="utf-8") as file:
        mean, std = numpy_module(load(tmp_path / "m.onepass"))["predict"](list(csv.DictReader(file)))
    true = np.genfromtxt(tmp_path / "p.csv", delimiter=",", names=True)
    assert np.ptp(true["mean"]) > 0.1
    np.testing.assert_allclose(mean, true["mean"], rtol=1e-10)
    np.testing.assert_allclose(std, true["std"], rtol=1e-10)


def code_of(*columns: Any) -> Any:
    """What a module takes a value for, of a model with these columns."""
    return numpy_module(TabularModel(Encoding(columns, {}), NumberTarget("y", 0.0, 1.0)).start())["code"]


NUMBERS = (
    "2.518|1.486 EUR|EUR 1.486|910 EUR|1,5|1,234.5|1.234,5|12.34|1.2345|0.123|1 234,5|1'234|1\u2019234.5|1\u202f234|"
    "1\xa0234,50 EUR|-3|\u22123|+3|3-|(12)|(1,5 EUR)|- 3|7%|7,5 %|$4,000|1,00,000|1e3|1,5e-3|,5|.5|5.|5,|1_000|inf|nan|"
    "NA|| 7 |--|x|1.5.2|\u20ac|1\v234|\uff11\uff12|1e999"
)


@pytest.mark.parametrize(
    "written",
    [
        NumberFormat(),
        NumberFormat(",", True, ""),
        NumberFormat(",", True, "EUR"),
        NumberFormat(".", True, "$"),
        NumberFormat(".", True, "%", ("--", "NA")),
    ],
)
def test_a_number_is_what_the_column_takes_it_for_or_refused(written: NumberFormat) -> None:
    code = code_of(Number("n", 0.0, 1.0, True, written))
    agrees(code, "n", NUMBERS, lambda array, bad: as_numbers(array, "n", bad, written))


DATES = (
    "17.04.2025|1.2.2024|30.02.2024|2024-12-31|2024-12-31T23:59:59+02:00|12/31/2024|31/12/2024|NA||x|2024|20240131|20241331|"
    "Jan 31, 2024 4:05 pm|Feb 29, 2023 4:05 pm|jan  5, 1969 12:30 A.M.|366 2024|366 2023|0 2023|31-Dec-68|31-Dec-69|"
    "17.04.2025 25:00|31.12.2024 23:59:59.25 -0330|31.12.2024 23:59:59.25 Z|31.12.2024 23:59:59.123456789 +01:00|"
    "31.12.2024 23:60:59.2 Z| 2024-12-31 |2024-13-31|2024-02-30|2024-05-06|2024-12-31 06:00|2024-12-31T06|2024-12|"
    "2024-W52-2"
)


@pytest.mark.parametrize(
    "pattern",
    [
        *("", "%d.%m.%Y", "%m/%d/%Y", "%Y-%d-%m", "%b %d, %Y %I:%M %p"),
        *("%Y%m%d", "%j %Y", "%d-%b-%y", "%d.%m.%Y %H:%M:%S.%f %z", "%Y"),
    ],
)
def test_a_date_is_what_the_column_takes_it_for_or_refused(pattern: str) -> None:
    written = DateFormat(pattern)
    code = code_of(Date("d", 0.0, True, True, written))
    agrees(code, "d", DATES, lambda array, bad: as_days(array, "d", bad, written))


def agrees(code: Any, name: str, texts: str, oracle: Any) -> None:
    read = 0
    for text in texts.split("|"):
        bad: dict[int, str] = {}
        expected = oracle(pa.array([text]), bad)
        if bad:
            with pytest.raises(ValueError, match=f"^{name} is "):
                code(name, text)
        else:
            np.testing.assert_allclose(code(name, text), expected[0], rtol=1e-14)
            read += bool(np.isfinite(expected[0]))
    assert read


def test_values_that_are_no_texts_are_read_as_their_texts_or_refused() -> None:
    columns = (Boolean("b"), Category("c", ("3", "true"), (0.5, 0.5)), Hashed("h", 64, (1 / 64,) * 64))
    dates = (Date("d", 0.0, False, True), Date("e", 0.0, False, True, DateFormat("%Y%m%d")))
    code = code_of(*columns, *dates)
    assert [code("c", value) for value in (3, 3.0, True, "x", np.int64(3))] == [0.0, 0.0, 1.0, -1.0, 0.0]
    assert code("h", 8001) == code("h", "8001") != code("h", "8002")
    assert code("e", 19700103) == 2.0
    assert np.isnan([code(name, value) for name in "bchde" for value in (None, float("nan"))]).all()
    for name, value in (("b", 2), ("b", "maybe"), ("d", 20000), ("d", 2.5), ("c", [3])):
        with pytest.raises(ValueError, match=f"^{name} is "):
            code(name, value)


def test_rows_of_another_table_are_refused() -> None:
    model = TabularModel(Encoding((Number("n", 0.0, 1.0, True),), {}), NumberTarget("y", 0.0, 1.0)).start()
    with pytest.raises(ValueError, match="a row has none of the columns n"):
        numpy_module(model)["predict"]([{"n;m": "1;2"}])


def test_only_the_readers_that_a_model_needs_are_written() -> None:
    def functions(*columns: Any) -> set[str]:
        model = TabularModel(Encoding(columns, {}), NumberTarget("y", 0.0, 1.0)).start()
        return {line.split("(")[0] for line in to_numpy(model).splitlines() if line.startswith("def read_")}

    assert functions(Number("n", 0.0, 1.0, False)) == {"def read_number"}
    assert functions(Boolean("b")) == {"def read_text", "def read_boolean"}
    dates = functions(Date("d", 0.0, False, False, DateFormat("%d.%m.%Y")))
    assert dates == {"def read_date", "def read_written_date"}
