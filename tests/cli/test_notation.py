"""What a file shows of how values are written is told, and options say otherwise."""

import csv
from pathlib import Path

from onepass.cli.schema import flag
from tests.cli.conftest import Run


def facts(out: str) -> dict[str, str]:
    return {name.strip(): words.strip() for name, _, words in (line.partition(":") for line in out.splitlines())}


def table(tmp_path: Path) -> Path:
    rows = [
        f"{20 + i % 9},{100 + i};0{1 + i % 9}/0{1 + i % 7}/2024;{('low', 'NA', 'high')[i % 3]};{bool(i % 2)}"
        for i in range(90)
    ]
    file = tmp_path / "a.csv"
    file.write_text("\n".join(["km;day;grade;won", *rows]) + "\n")
    return file


def test_what_is_found_out_is_told_and_every_choice_has_its_option(run: Run, tmp_path: Path) -> None:
    file, model = table(tmp_path), tmp_path / "a.onepass"
    done = run("fit", file, "--target", "won", "--model", model)
    assert done.code == 0
    told = facts(done.out)
    assert told["target"] == "won, one of 2 classes (False, True)"
    assert told["column km"].startswith("number written 1,234.5, ")
    assert told["column day"].startswith("date written %m/%d/%Y, though no day above 12 shows")
    assert told["column grade"].endswith("; NA is a value, not missing")

    predicted = tmp_path / "out.csv"
    assert run("predict", model, file, "--out", predicted).code == 0
    with predicted.open() as opened:
        rows = list(csv.DictReader(opened))
    assert {row["label"] for row in rows} <= {"True", "False"}
    assert {"p_False", "p_True"} <= rows[0].keys()

    options = ("--decimal", ",", "--date-format", "%d/%m/%Y", "--missing", "NA")
    done = run("fit", file, "--target", "won", "--model", model, *options)
    assert done.code == 0
    told = facts(done.out)
    assert told["column km"].startswith("number written 1.234,5, ")
    assert told["column day"].startswith("date written %d/%m/%Y, as years since")
    assert told["column grade"].startswith("one of 2 categories (high, low), ")
    assert "value" not in told["column grade"]


def test_wrong_notations_are_refused_in_one_sentence(run: Run, tmp_path: Path) -> None:
    file = table(tmp_path)
    done = run("fit", file, "--target", "won", "--date-format", "%d.%k.%Y")
    assert done.code == 1
    assert done.err.startswith("onepass: --date-format: the date format '%d.%k.%Y' can't be read: %k is unknown; its ")
    assert run("fit", file, "--target", "won", "--decimal", ";").code == 2
    assert flag("date_formats") == "--date-format"


def test_a_column_that_is_nearly_one_of_numbers_is_told_with_the_way_out(run: Run, tmp_path: Path) -> None:
    file, model = tmp_path / "a.csv", tmp_path / "a.onepass"
    values = ["broken" if i % 40 == 7 else f"{i * 7 % 100}" for i in range(400)]
    file.write_text("\n".join(["speed,y", *(f"{v},{i % 13}" for i, v in enumerate(values))]) + "\n")
    done = run("fit", file, "--target", "y", "--model", model)
    assert (
        "advice: 'speed': 97.5 % of its values are numbers, but not 'broken'; --as speed=number takes it for a number "
        "and rejects rows with others" in done.err
    )
    asked = run("fit", file, "--target", "y", "--as", "speed=number", "--model", model)
    assert "takes it for a number" not in asked.err
    assert (asked.code, facts(asked.out)["column speed"].startswith("number")) == (3, True)


def test_a_class_that_is_taken_for_missing_is_told_with_the_way_out(run: Run, tmp_path: Path) -> None:
    file, model = tmp_path / "a.csv", tmp_path / "a.onepass"
    kinds = ["NA" if i % 100 == 50 else ("low", "high")[i % 2] for i in range(400)]
    file.write_text("\n".join(["x,kind", *(f"{i * 7 % 31},{kind}" for i, kind in enumerate(kinds))]) + "\n")
    done = run("fit", file, "--target", "kind", "--model", model)
    assert done.code == 3
    assert "the target kind is 'NA', taken for missing and not for a class" in done.err
    assert "rejected: hint: --missing ''" in done.err
    asked = run("fit", file, "--target", "kind", "--missing", "", "--model", model)
    assert (asked.code, "one of 3 classes (NA, high, low)" in asked.out) == (0, True)


def test_where_no_column_is_left_one_of_words_is_named(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "a.csv"
    titles = [f"{('old', 'new', 'big')[i % 3]} house {i}" for i in range(200)]
    file.write_text("\n".join(["title,code,y", *(f"{t},q{i * 37},{i % 7}" for i, t in enumerate(titles))]) + "\n")
    failed = run("fit", file, "--target", "y", "--model", tmp_path / "m")
    assert failed.code == 1
    assert "no column to learn from" in failed.err
    assert "the words of 'title' can be learned, if it is taken for a text (--as title=text)" in failed.err
    assert run("fit", file, "--target", "y", "--as", "title=text", "--model", tmp_path / "m").code == 0
