import csv
import gzip
import os
import resource
import select
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import numpy as np
import pytest

from onepass.tables.readers.stream import Malformed, StreamError, ahead, blocks, expand, fingerprint, open_source
from tests.helpers.tables import trips, write_csv, write_jsonl, write_parquet

ROWS = trips(2500)


def read(file: Path, skip: int = 0, types: dict[str, Any] | None = None) -> list[dict[str, Any]]:
    return [row for piece in open_source(str(file)).pieces(types, skip) for row in piece.batch.to_pylist()]


def malformed(file: Path, skip: int = 0) -> list[Malformed]:
    return [bad for piece in open_source(str(file)).pieces(None, skip) for bad in piece.malformed]


@pytest.mark.parametrize("name", ["a.csv", "a.csv.gz", "a.jsonl", "a.parquet", "no_ending"])
def test_every_format_gives_all_rows_in_their_order(name: str, tmp_path: Path) -> None:
    write = {"a.jsonl": write_jsonl, "a.parquet": write_parquet}.get(name, write_csv)
    rows = read(write(tmp_path / name, ROWS))
    assert [int(row["id"]) for row in rows] == list(range(len(ROWS)))
    assert [row["town"] for row in rows] == [row["town"] for row in ROWS]
    assert [row["wait"] is None for row in rows] == [row["wait"] is None for row in ROWS]


@pytest.mark.parametrize("name", ["a.csv", "a.jsonl", "a.parquet"])
def test_reading_can_go_on_behind_any_row(name: str, tmp_path: Path) -> None:
    write = {"a.jsonl": write_jsonl, "a.parquet": write_parquet}.get(name, write_csv)
    file = write(tmp_path / name, ROWS)
    for skip in (1, 999, 1000, 1001, 2499, 2500):
        assert [int(row["id"]) for row in read(file, skip)] == list(range(skip, len(ROWS)))


@pytest.mark.parametrize("name", ["a.csv", "a.jsonl", "a.parquet"])
@pytest.mark.parametrize("skip", [0, 400, 2000])
def test_blocks_begin_at_multiples_of_their_size(
    name: str, skip: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("onepass.tables.readers.stream._CHUNK", 10_000)
    write = {"a.jsonl": write_jsonl, "a.parquet": write_parquet}.get(name, write_csv)
    source = open_source(str(write(tmp_path / name, ROWS)))
    found = list(blocks(source.pieces(None, skip), 400))
    assert [block.end for block in found] == [*range(skip + 400, 2500, 400), 2500]
    ids = [int(row["id"]) for block in found for piece in block.pieces for row in piece.batch.to_pylist()]
    assert ids == list(range(skip, 2500))


def test_bad_lines_are_named_and_cost_only_themselves(tmp_path: Path) -> None:
    file = tmp_path / "a.csv"
    file.write_bytes(b'a,b,c\n1,2,x\n\n1,2\n4,"q\nr",z\n5,\xff,7\n6,"7,8\n9,10,11\n"12","1""3",14\n')
    rows = [(row["a"], row["b"], row["c"]) for row in read(file)]
    assert rows == [("1", "2", "x"), ("4", "q\nr", "z"), ("9", "10", "11"), ("12", '1"3', "14")]
    bad = malformed(file)
    assert [(one.line, one.before) for one in bad] == [(4, 1), (7, 2), (8, 2)]
    assert bad[0].reason == "has 2 fields where the first line has 3"
    assert bad[0].text == "1,2"
    lines = [line for piece in open_source(str(file)).pieces(None, 0) for line in piece.lines]
    assert lines == [2, 5, 9, 10]


def test_an_unclosed_quote_in_the_last_column_costs_its_line_only(tmp_path: Path) -> None:
    file = tmp_path / "a.csv"
    lines = [f"{i},{i}" for i in range(411)]
    for stray in ([10], [10, 200], [10, 200, 410]):
        broken = [f'{i},"{i}' if i in stray else line for i, line in enumerate(lines)]
        file.write_text("a,b\n" + "\n".join(broken) + "\n")
        assert [int(row["a"]) for row in read(file)] == [i for i in range(411) if i not in stray]
        bad = malformed(file)
        assert [one.line for one in bad] == [i + 2 for i in stray]
        assert all(one.reason == "has a quote that is never closed, or one inside a field" for one in bad)


def test_a_long_field_is_read_and_one_beyond_all_bounds_costs_its_line_only(tmp_path: Path) -> None:
    file = tmp_path / "a.csv"
    file.write_text(f"a,b\n1,2\n3\n4,{'x' * 200_000}\n5,6\n")
    assert [row["a"] for row in read(file)] == ["1", "4", "5"]
    before = csv.field_size_limit(100_000)
    try:
        assert [row["a"] for row in read(file)] == ["1", "5"]
        assert malformed(file)[1].reason == "has a field of more than 100,000 characters"
    finally:
        csv.field_size_limit(before)


def test_what_is_no_utf8_is_told_from_a_stray_quote(tmp_path: Path) -> None:
    file = tmp_path / "a.csv"
    file.write_bytes("a,b\nMünchen,1\nUlm,2\n".encode("latin-1"))
    (bad,) = malformed(file)
    assert bad.reason == "is no sound UTF-8; if the file is in Latin-1, convert it first: iconv -f LATIN1 -t UTF-8"


def test_lines_are_right_where_records_have_several(tmp_path: Path) -> None:
    file = tmp_path / "a.csv"
    file.write_text('a,b\n1,"x\ny\nz"\n\n\n2,3\n')
    assert [line for piece in open_source(str(file)).pieces(None, 0) for line in piece.lines] == [2, 7]


def test_what_is_malformed_comes_once_wherever_reading_stops(tmp_path: Path) -> None:
    file = tmp_path / "a.csv"
    lines = [f"{i},{i}" if i % 3 else f"{i}" for i in range(60)]
    file.write_text("a,b\n" + "\n".join(lines) + "\n")
    every = [one.line for one in malformed(file)]
    assert len(every) == 20
    source = open_source(str(file))
    for size in (1, 7, 10, 40):
        seen: list[int] = []
        end = 0
        for block in blocks(source.pieces(None, 0), size):
            seen += [bad.line for piece in block.pieces for bad in piece.malformed]
            end = block.end
            rest = [
                bad.line for one in blocks(source.pieces(None, end), size) for p in one.pieces for bad in p.malformed
            ]
            if end < 40:
                assert seen + rest == every
        assert seen == every


def test_json_lines_take_what_they_can(tmp_path: Path) -> None:
    file = tmp_path / "a.jsonl"
    file.write_text('{"a": 1, "b": "x"}\n\n{"a": 2.5, "c": true}\n[1]\n{"a": \n{"a": null, "b": "NA"}\n')
    assert read(file) == [
        {"a": "1", "b": "x", "c": None},
        {"a": "2.5", "b": None, "c": "true"},
        {"a": None, "b": "NA", "c": None},
    ]
    assert [(bad.line, bad.reason) for bad in malformed(file)] == [
        (4, "is no JSON object"),
        (5, "can't be read as JSON"),
    ]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is empty"),
        (b"\n \n", "is empty"),
        (b"a,a\n1,2\n", "more than one column 'a'"),
        (b"a\0b\n", "neither CSV, JSON lines nor Parquet"),
        (b'[{"a": 1}]', "is one JSON array"),
        (b"PAR1 but no more", "is not sound Parquet"),
        (gzip.compress(b"a,b\n1,2\n" * 10_000)[:-20], "is cut short|not sound gzip"),
    ],
)
def test_files_that_cannot_be_read_are_refused_in_one_sentence(content: bytes, message: str, tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_bytes(content)
    with pytest.raises(StreamError, match=message):
        read(file)


def test_patterns_are_sorted_and_must_match(tmp_path: Path) -> None:
    for name in ("b.csv", "a.csv"):
        (tmp_path / name).touch()
    assert expand([str(tmp_path / "*.csv")]) == [str(tmp_path / "a.csv"), str(tmp_path / "b.csv")]
    for asked, message in (("*.json", "matches no file"), ("c.csv", "does not exist"), ("", "is a folder")):
        with pytest.raises(StreamError, match=message):
            expand([str(tmp_path / asked)])
    with pytest.raises(StreamError, match="can't be mixed"):
        expand(["-", str(tmp_path / "a.csv")])


def test_a_changed_file_is_known(tmp_path: Path) -> None:
    file = write_csv(tmp_path / "a.csv", ROWS[:10])
    before = fingerprint(str(file))
    assert fingerprint(str(file)) == before
    content = bytearray(file.read_bytes())
    content[-3] ^= 1
    file.write_bytes(content)
    assert fingerprint(str(file)) != before


def test_delimiters_and_a_byte_order_mark_are_found_out(tmp_path: Path) -> None:
    file = tmp_path / "a.csv"
    file.write_bytes(b"\xef\xbb\xbfa;b,c\n1;2\n3;4\n")
    assert read(file) == [{"a": "1", "b,c": "2"}, {"a": "3", "b,c": "4"}]


@contextmanager
def running(code: str) -> Iterator[tuple[IO[bytes], IO[bytes]]]:
    """A process that reads a stream: where to write to it, and where it writes."""
    with subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        yield process.stdin, process.stdout


def test_rows_of_a_slow_stream_are_handed_on_without_waiting_for_more() -> None:
    code = (
        "from onepass.tables.readers.stream import open_source\n"
        "source = open_source('-')\n"
        "print(len(source.head(2)[0]), flush=True)\n"
        "for piece in source.pieces(None, 0): print(piece.batch.to_pylist(), flush=True)\n"
    )
    with running(code) as (feed, out):
        os.write(feed.fileno(), b"a\n1\n2\n3")
        assert out.readline() == b"2\n"
        assert out.readline() == b"[{'a': '1'}, {'a': '2'}]\n"
        os.write(feed.fileno(), b"4\n")
        assert out.readline() == b"[{'a': '34'}]\n"
        feed.close()


def test_a_stream_that_never_pauses_can_be_stopped_and_the_record_that_is_cut_is_none() -> None:
    code = (
        "from onepass.tables.readers.stream import open_source\n"
        "source, rows = open_source('-'), 0\n"
        "for piece in source.pieces(None, 0):\n"
        "    source.stop()\n"
        "    rows += len(piece)\n"
        "    assert set(piece.batch.column(0).to_pylist()) == {'123456789'}, piece\n"
        "print(rows)"
    )
    text = "number" + "\n123456789" * 5_000_000
    done = subprocess.run([sys.executable, "-c", code], input=text, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert 100_000 < int(done.stdout) < 5_000_000


def test_a_first_line_that_comes_in_parts_is_waited_for() -> None:
    code = "from onepass.tables.readers.stream import open_source; print(open_source('-').columns(), flush=True)"
    with running(code) as (feed, out):
        os.write(feed.fileno(), b"one,tw")
        assert not select.select([out], [], [], 3.0)[0]
        os.write(feed.fileno(), b"o,three\n")
        assert out.readline() == b"['one', 'two', 'three']\n"
        feed.close()


@pytest.mark.parametrize("name", ["a.csv", "a.csv.gz", "a.jsonl", "a.parquet"])
def test_files_are_open_only_while_they_are_read(name: str, tmp_path: Path) -> None:
    write = {"a.jsonl": write_jsonl, "a.parquet": write_parquet}.get(name, write_csv)
    file = write(tmp_path / name, ROWS[:20])
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    few = max(map(int, os.listdir("/dev/fd"))) + 20
    resource.setrlimit(resource.RLIMIT_NOFILE, (few, hard))
    try:
        sources = [open_source(str(file)) for _ in range(few)]
        for _ in range(2):
            assert [sum(map(len, source.pieces(None, 0))) for source in sources] == [20] * few
            assert [sum(map(len, source.head(3))) for source in sources] == [3] * few
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_a_pipe_with_a_name_is_refused_since_it_cannot_be_read_twice() -> None:
    out, into = os.pipe()
    os.write(into, b"a\n1\n")
    os.close(into)
    try:
        with pytest.raises(StreamError, match=r"is a pipe, which can be read only once; .*standard input"):
            open_source(f"/dev/fd/{out}")
    finally:
        os.close(out)


def test_a_thread_ahead_passes_on_everything_and_stops_when_nobody_listens() -> None:
    assert list(ahead(range(1000))) == list(range(1000))

    def failing() -> Any:
        yield 1
        raise StreamError("broken")

    coming = ahead(failing())
    assert next(coming) == 1
    with pytest.raises(StreamError, match="broken"):
        next(coming)
    made: list[int] = []
    endless = ahead(made.append(i) or i for i in range(10**9))  # type: ignore[func-returns-value]
    assert next(iter(endless)) == 0
    endless.close()  # type: ignore[attr-defined]
    assert len(made) < 100


def test_rows_behind_a_quote_that_was_never_closed_are_not_lost_when_a_stream_is_stopped() -> None:
    code = (
        "import threading\n"
        "from onepass.tables.readers.stream import open_source\n"
        "source = open_source('-')\n"
        "threading.Timer(2.0, source.stop).start()\n"
        "pieces = list(source.pieces(None, 0))\n"
        "print(sum(map(len, pieces)), [bad.line for piece in pieces for bad in piece.malformed])"
    )
    with running(code) as (feed, out):
        os.write(feed.fileno(), b'a,b\n1,x\n"2,x\n' + b"3,x\n" * 100 + b"4,")
        assert out.readline() == b"101 [3]\n"
        feed.close()


def test_the_share_that_was_read_grows_with_the_rows(tmp_path: Path) -> None:
    file = tmp_path / "a.csv"
    file.write_text("a\n" + "1\n" * 1000)
    found = [block.share for block in blocks(open_source(str(file)).pieces(None, 0), 100)]
    np.testing.assert_allclose(found, np.arange(1, 11) / 10, atol=1e-9)
