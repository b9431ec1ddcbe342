from pathlib import Path

import pytest

from onepass.tables.readers.encoding import decoded_as
from onepass.tables.readers.options import ReadOptions
from onepass.tables.readers.registry import open_source
from tests.helpers.tables import malformed, read_rows

TEXT = "town,price\n" + "".join(f"{town},{i}\n" for i, town in enumerate(["München", "Köln", "Ulm", "“Œdipe” €5"] * 50))
ROWS = [dict(zip(("town", "price"), line.split(","), strict=True)) for line in TEXT.splitlines()[1:]]


def notes(file: Path) -> list[str]:
    source = open_source(str(file))
    for _ in source.batches(None, 0):
        pass
    return [note.words for note in source.notes]


@pytest.mark.parametrize(
    ("encoding", "told"),
    [
        ("utf-8", None),
        ("utf-8-sig", None),
        ("cp1252", "Windows-1252"),
        ("utf-16", "UTF-16"),
        ("utf-16-le", "UTF-16-LE"),
        ("utf-16-be", "UTF-16-BE"),
        ("utf-32", "UTF-32"),
    ],
)
def test_encodings_are_found_out_and_told(encoding: str, told: str | None, tmp_path: Path) -> None:
    file = tmp_path / "a.csv"
    file.write_bytes(TEXT.encode(encoding))
    assert read_rows(file) == ROWS
    assert malformed(file) == []
    expected = f"{file} is not in UTF-8 and is read as {told}; another encoding can be named"
    assert notes(file) == ([expected] if told else [])


def test_an_encoding_that_is_named_is_taken(tmp_path: Path) -> None:
    file = tmp_path / "a.csv"
    file.write_bytes("town,price\n東京,1\n".encode("shift_jis"))
    (batch,) = open_source(str(file), ReadOptions(encoding="shift_jis")).batches(None, 0)
    assert batch.record_batch.to_pylist() == [{"town": "東京", "price": "1"}]
    file.write_bytes(b"town,price\nK\xf6ln,1\n")
    assert open_source(str(file), ReadOptions(encoding="utf-8")).notes == ()
    (batch,) = open_source(str(file), ReadOptions(encoding="utf-8")).batches(None, 0)
    assert [bad.reason.code for bad in batch.malformed] == ["not_in_encoding"]


def test_bytes_that_a_named_encoding_does_not_have_cost_their_line_only(tmp_path: Path) -> None:
    file = tmp_path / "a.csv"
    file.write_bytes(b"town,price\nUlm,1\n\x83\xff\xff,2\nUlm,3\n")
    (batch,) = open_source(str(file), ReadOptions(encoding="shift_jis")).batches(None, 0)
    assert [row["price"] for row in batch.record_batch.to_pylist()] == ["1", "3"]
    assert [bad.line for bad in batch.malformed] == [3]


def test_a_first_umlaut_far_behind_the_beginning_decides(tmp_path: Path) -> None:
    file = tmp_path / "a.csv"
    plain = b"Ulm,1\n" * 60_000
    file.write_bytes(b"town,price\n" + plain + "Köln,2\nMünchen,3\n".encode("latin-1") + plain)
    rows = read_rows(file)
    assert len(rows) == 120_002
    assert [row["town"] for row in rows[60_000:60_002]] == ["Köln", "München"]
    assert len(notes(file)) == 1
    file.write_bytes(b"town,price\n" + plain + "Köln,2\nMünchen,3\n".encode() + b"K\xf6ln,4\n" + plain)
    assert len(read_rows(file)) == 120_002  # it is UTF-8, of which a line is damaged
    assert [bad.line for bad in malformed(file)] == [60_004]


def test_characters_may_be_cut_anywhere() -> None:
    text = "aä€𝄞b"
    for encoding in (None, "utf-16"):
        content = text.encode(encoding or "utf-8")
        for size in (1, 2, 3):
            parts = iter([content[i : i + size] for i in range(0, len(content), size)])
            assert b"".join(decoded_as(encoding, pytest.fail)(parts)).decode() == text
    told: list[str] = []
    assert b"".join(decoded_as(None, told.append)(iter([b"a\xe4", b"b"]))).decode() == "aäb"
    assert b"".join(decoded_as(None, told.append)(iter([b"a\xe4"]))).decode() == "aä"
    assert told == ["Windows-1252"] * 2


def test_json_is_decoded_too(tmp_path: Path) -> None:
    file = tmp_path / "a.jsonl"
    file.write_bytes('{"town": "Köln"}\n'.encode("utf-16"))
    assert read_rows(file) == [{"town": "Köln"}]


def test_lines_that_end_with_a_carriage_return_are_lines(tmp_path: Path) -> None:
    file = tmp_path / "a.csv"
    file.write_bytes(TEXT.replace("\n", "\r").encode())
    assert read_rows(file) == ROWS
    file.write_bytes(TEXT.replace("\n", "\r").encode("utf-16"))
    assert read_rows(file) == ROWS
