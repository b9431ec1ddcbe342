import bz2
import gzip
import lzma
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from onepass.tables.readers.errors import StreamError
from tests.helpers.tables import read_rows, trips, write_csv

Pack = Callable[[bytes], bytes]
PACKS: dict[str, Pack] = {
    "gzip": gzip.compress,
    "bzip2": bz2.compress,
    "xz": lzma.compress,
    "zstd": lambda content: pa.compress(content, "zstd", asbytes=True),
}


@pytest.fixture(scope="module")
def content(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    return write_csv(tmp_path_factory.mktemp("plain") / "a.csv", trips(9000)).read_bytes()


@pytest.mark.parametrize("kind", PACKS)
def test_packed_text_is_recognised_by_its_content(kind: str, content: bytes, tmp_path: Path) -> None:
    file = tmp_path / "no_ending"
    file.write_bytes(PACKS[kind](content))
    assert [int(row["id"]) for row in read_rows(file)] == list(range(9000))


@pytest.mark.parametrize("kind", PACKS)
def test_streams_one_behind_the_other_are_one_file(kind: str, content: bytes, tmp_path: Path) -> None:
    file = tmp_path / "a"
    cut = content.index(b"\n", 300_000) + 1
    padding = b"\0" * 8 if kind == "xz" else b""
    file.write_bytes(PACKS[kind](content[:cut]) + padding + PACKS[kind](content[cut:]) + padding)
    assert [int(row["id"]) for row in read_rows(file)] == list(range(9000))


@pytest.mark.parametrize("kind", PACKS)
def test_what_is_cut_short_or_damaged_is_an_error(kind: str, content: bytes, tmp_path: Path) -> None:
    file = tmp_path / "a"
    packed = PACKS[kind](content)
    for cut in (len(packed) // 2, len(packed) - 2):
        file.write_bytes(packed[:cut])
        with pytest.raises(StreamError, match=f"a is cut short: its {kind} has no end"):
            read_rows(file)
    file.write_bytes(packed[:12] + b"\xff" * 30 + packed[42:])
    with pytest.raises(StreamError, match=f"a is not valid {kind}|cut short"):
        read_rows(file)


def test_few_bytes_that_stand_for_many_are_unpacked_in_pieces(tmp_path: Path) -> None:
    from onepass.tables.readers.byte_stream import ByteStream

    file = tmp_path / "a"
    for pack in PACKS.values():
        file.write_bytes(pack(b"a,b\n" + b"1,2\n" * 2**19))
        stream = ByteStream.open(str(file))
        largest = 0
        while part := stream.read():
            largest = max(largest, len(part))
        assert largest <= 2**18
        stream.close()


def test_text_that_begins_like_bzip2_is_text(tmp_path: Path) -> None:
    file = tmp_path / "a"
    file.write_text("BZh9,b\n1,2\n")
    assert read_rows(file) == [{"BZh9": "1", "b": "2"}]
