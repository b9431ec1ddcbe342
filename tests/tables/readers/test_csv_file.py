import subprocess
import sys
from pathlib import Path

import pytest

from onepass.tables.readers.options import ReadOptions
from onepass.tables.readers.registry import open_source
from onepass.tables.reasons import Reason
from tests.helpers.tables import malformed, read_rows


def test_bad_lines_are_named_and_cost_only_themselves(tmp_path: Path) -> None:
    file = tmp_path / "a.csv"
    file.write_bytes(b'a,b,c\n1,2,\xc3\xa9\xc3\xa9\n\n1,2\n4,"q\nr",z\n5,\xff,7\n6,"7,8\n9,10,11\n"12","1""3",14\n')
    rows = [(row["a"], row["b"], row["c"]) for row in read_rows(file)]
    assert rows == [("1", "2", "éé"), ("4", "q\nr", "z"), ("9", "10", "11"), ("12", '1"3', "14")]
    bad = malformed(file)
    assert [(one.line, one.before) for one in bad] == [(4, 1), (7, 2), (8, 2)]
    assert bad[0].reason == Reason("wrong_field_count", given=2, expected=3)
    assert bad[0].text == "1,2"
    lines = [line for batch in open_source(str(file)).batches(None, 0) for line in batch.lines]
    assert lines == [2, 5, 9, 10]


def test_an_unclosed_quote_in_the_last_column_costs_its_line_only(tmp_path: Path) -> None:
    file = tmp_path / "a.csv"
    lines = [f"{i},{i}" for i in range(411)]
    for stray in ([10], [10, 200], [10, 200, 410]):
        broken = [f'{i},"{i}' if i in stray else line for i, line in enumerate(lines)]
        file.write_text("a,b\n" + "\n".join(broken) + "\n")
        assert [int(row["a"]) for row in read_rows(file)] == [i for i in range(411) if i not in stray]
        bad = malformed(file)
        assert [one.line for one in bad] == [i + 2 for i in stray]
        assert all(one.reason.code == "stray_quote" for one in bad)


def test_a_long_field_is_read_and_one_beyond_all_bounds_costs_its_line_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "a.csv"
    file.write_text(f"a,b\n1,2\n3\n4,{'x' * 200_000}\n5,6\n")
    assert [row["a"] for row in read_rows(file)] == ["1", "4", "5"]
    monkeypatch.setattr("onepass.tables.readers.csv_records._LONGEST_FIELD", 100_000)
    assert [row["a"] for row in read_rows(file)] == ["1", "5"]
    assert malformed(file)[1].reason == Reason("long_field", most=100_000)


def test_what_is_no_utf8_is_told_from_a_stray_quote(tmp_path: Path) -> None:
    file = tmp_path / "a.csv"
    file.write_bytes("a,b\nMünchen,1\nKöln,2\n".encode() + "Würzburg,3\n".encode("latin-1"))
    (bad,) = malformed(file)
    assert (bad.line, bad.reason.code) == (4, "not_in_encoding")


def test_a_line_with_too_few_fields_and_no_utf8_is_one_bad_line_and_no_noise(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "a.csv"
    file.write_bytes(b"a,b,c\n1,\xc3\xa9\xc3\xa9,3\n4,\xff\n5,6,7\n")
    assert [row["a"] for row in read_rows(file)] == ["1", "5"]
    assert [one.line for one in malformed(file)] == [3]
    assert capfd.readouterr() == ("", "")


def test_lines_are_right_where_records_have_several(tmp_path: Path) -> None:
    file = tmp_path / "a.csv"
    file.write_text('a,b\n1,"x\ny\nz"\n\n\n2,3\n')
    assert [line for batch in open_source(str(file)).batches(None, 0) for line in batch.lines] == [2, 7]


def test_delimiters_and_a_byte_order_mark_are_found_out(tmp_path: Path) -> None:
    file = tmp_path / "a.csv"
    file.write_bytes(b"\xef\xbb\xbfa;b,c\n1;2\n3;4\n")
    assert read_rows(file) == [{"a": "1", "b,c": "2"}, {"a": "3", "b,c": "4"}]


def test_reading_long_fields_leaves_the_limit_of_other_readers_alone(tmp_path: Path) -> None:
    code = (
        "import csv\n"
        "from onepass.tables.readers.registry import open_source\n"
        f"rows = list(open_source({str(tmp_path / 'a.csv')!r}).batches(None, 0))\n"
        "print(csv.field_size_limit(), len(rows[0]))"
    )
    (tmp_path / "a.csv").write_text(f"a,b\n1\n2,{'x' * 200_000}\n")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "131072 1\n"


def test_names_that_are_missing_or_there_twice_are_mended_and_told(tmp_path: Path) -> None:
    file = tmp_path / "a.csv"
    file.write_text("price,,price,price_2, \n1,2,3,4,5\n")
    source = open_source(str(file))
    assert source.columns() == ["price", "column_2", "price_3", "price_2", "column_5"]
    assert read_rows(file) == [{"price": "1", "column_2": "2", "price_3": "3", "price_2": "4", "column_5": "5"}]
    (note,) = source.notes
    assert note.words == (
        f"{file}: column 2 has no name and is called 'column_2'; another column 'price' is called 'price_3'; column 5 "
        "has no name and is called 'column_5'"
    )


def test_a_file_without_a_header_loses_no_row(tmp_path: Path) -> None:
    file = tmp_path / "a.csv"
    file.write_text("\n5.1,3.5\n4.9,3.0\n")
    (note,) = open_source(str(file)).notes
    assert note.setting == "no_header"
    assert note.words == f"the first line of {file} has nothing but numbers; if it is a row, say so"
    source = open_source(str(file), ReadOptions(no_header=True))
    assert source.notes == ()
    (batch,) = source.batches(None, 0)
    assert batch.record_batch.to_pylist() == [
        {"column_1": "5.1", "column_2": "3.5"},
        {"column_1": "4.9", "column_2": "3.0"},
    ]
    assert list(batch.lines) == [2, 3]


PEAK = """
import resource, sys
from onepass.tables.readers.registry import open_source

def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024

before = peak()
batches = list(open_source(sys.argv[1]).batches(None, 0))
(bad,) = (bad for batch in batches for bad in batch.malformed)
assert sum(map(len, batches)) == 2000
assert bad.before == 1000 and len(bad.text) < 300, bad
assert 0 <= bad.reason.facts["size"] - int(sys.argv[2]) < 100, bad
assert peak() < before + 100, (before, peak())
print(bad.line)
"""
LONG = {"csv": ("a,b\n", "1,2\n", "\n"), "jsonl": ("", '{"a": 1}\n', "\n"), "json": ("[", '{"a": 1},', '"},')}


@pytest.mark.parametrize("megabytes", [30, pytest.param(400, marks=pytest.mark.slow)])
@pytest.mark.parametrize("kind", LONG)
def test_a_line_beyond_all_bounds_costs_itself_and_no_memory(kind: str, megabytes: int, tmp_path: Path) -> None:
    begin, row, end = LONG[kind]
    with (tmp_path / "a").open("w") as opened:
        opened.write(begin + 1000 * row + '{"a": "')
        for _ in range(megabytes):
            opened.write("x" * 2**20)
        opened.write(end + 1000 * row + ("]" if kind == "json" else ""))
    command = [sys.executable, "-c", PEAK, str(tmp_path / "a"), str(megabytes * 2**20)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "1002\n" if kind == "csv" else "1001\n"), done.stderr
