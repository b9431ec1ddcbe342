import zipfile
from pathlib import Path

import pytest

from onepass.tables.readers.errors import StreamError
from onepass.tables.readers.registry import open_source
from tests.helpers.tables import malformed, read_rows, trips, write_csv, write_parquet


def zipped(path: Path, **files: bytes) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return path


def csv(first: int, end: int) -> bytes:
    return b"a,b\n" + b"".join(b"%d,x\n" % i for i in range(first, end))


def test_one_file_is_read_and_several_are_one_table(tmp_path: Path) -> None:
    one = zipped(tmp_path / "one", **{"folder/a.csv": csv(0, 2000)})
    assert [int(row["a"]) for row in read_rows(one)] == list(range(2000))
    assert open_source(str(one)).notes == ()
    more = zipped(
        tmp_path / "more",
        **{
            "a.csv": csv(0, 700),
            "__MACOSX/a.csv": b"\0",
            ".DS_Store": b"\0",
            "b.csv": csv(700, 900) + b"1\n",
            "e": b"",
        },
        c=csv(900, 1000),
    )
    for skip in (0, 699, 700, 701, 950):
        assert [int(row["a"]) for row in read_rows(more, skip)] == list(range(skip, 1000))
    source = open_source(str(more))
    assert [note.words for note in source.notes] == [
        f"3 files of an archive are read as one table: {more}/a.csv, {more}/b.csv, {more}/c"
    ]
    batches = list(source.batches(None, 0))
    assert [line for batch in batches for line in batch.lines][699:701] == [701, 703]  # each file has its first line
    assert [(bad.line, bad.before) for bad in malformed(more)] == [(903, 900)]
    assert batches[-1].share == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({}, "is a zip archive without a file in it"),
        ({"a.csv": b"a,b\n1,2\n", "b.csv": b"a,c\n1,2\n"}, "b.csv has other columns than .*a.csv; unpack"),
    ],
)
def test_archives_that_make_no_table_are_refused(files: dict[str, bytes], message: str, tmp_path: Path) -> None:
    with pytest.raises(StreamError, match=message):
        read_rows(zipped(tmp_path / "a.zip", **files))


def test_what_is_cut_short_or_damaged_or_needs_seeking_is_an_error(tmp_path: Path) -> None:
    file = zipped(tmp_path / "a.zip", **{"a.csv": write_csv(tmp_path / "a.csv", trips(3000)).read_bytes()})
    content = file.read_bytes()
    file.write_bytes(content[: len(content) // 2])
    with pytest.raises(StreamError, match="is not a valid zip archive, or is cut short"):
        read_rows(file)
    file.write_bytes(content[:500] + bytes(100) + content[600:])
    with pytest.raises(StreamError, match=r"a\.zip/a\.csv can't be read"):
        read_rows(file)
    packed = zipped(tmp_path / "p.zip", p=write_parquet(tmp_path / "p", trips(10)).read_bytes())
    with pytest.raises(StreamError, match="Parquet can't be read inside zip"):
        read_rows(packed)
