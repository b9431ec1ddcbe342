import os
from errno import EINVAL, EIO
from pathlib import Path

import pytest

from onepass.files.atomic import atomic_file, clear_drafts, write_atomically


def test_a_file_is_replaced_as_a_whole(tmp_path: Path) -> None:
    file = tmp_path / "numbers.json"
    write_atomically(file, b"old and long")
    write_atomically(file, b"new")
    assert file.read_bytes() == b"new"
    assert os.listdir(tmp_path) == ["numbers.json"]


@pytest.mark.parametrize("moment", ["fsync", "replace"])
def test_an_interruption_leaves_the_old_file_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    file = tmp_path / "numbers.json"
    file.write_bytes(b"old")

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(os, moment, interrupt)
    with pytest.raises(KeyboardInterrupt):
        write_atomically(file, b"new")
    assert file.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["numbers.json"]


def test_others_may_read_what_the_umask_lets_them_read(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        write_atomically(tmp_path / "report.html", b"")
    finally:
        os.umask(before)
    assert (tmp_path / "report.html").stat().st_mode & 0o777 == 0o640


def test_a_file_written_in_pieces_appears_when_it_is_complete(tmp_path: Path) -> None:
    file = tmp_path / "table.csv"
    file.write_bytes(b"old")
    with atomic_file(file) as pieces:
        pieces.write(b"a,b\n")
        assert file.read_bytes() == b"old"
        pieces.write(b"1,2\n")
    assert file.read_bytes() == b"a,b\n1,2\n"
    with pytest.raises(ZeroDivisionError), atomic_file(file) as pieces:
        pieces.write(b"%d" % (1 // 0))
    assert file.read_bytes() == b"a,b\n1,2\n"
    assert os.listdir(tmp_path) == ["table.csv"]


def test_a_folder_that_cannot_be_opened_is_no_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As every folder on Windows, and on POSIX one that may be written but not read."""
    opened = os.open

    def refuse_folders(path: str | Path, flags: int, *rest: int) -> int:
        if Path(path).is_dir():
            raise PermissionError
        return opened(path, flags, *rest)

    monkeypatch.setattr(os, "open", refuse_folders)
    write_atomically(tmp_path / "a", b"new")
    assert (tmp_path / "a").read_bytes() == b"new"


@pytest.mark.parametrize(("code", "tolerated"), [(EINVAL, True), (EIO, False)])
def test_the_folder_is_synced_after_the_rename(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int, tolerated: bool
) -> None:
    """A file system that can't sync folders will do; one that fails is reported."""
    synced: list[bool] = []

    def fsync(handle: int) -> None:
        synced.append((tmp_path / "a").exists())
        if len(synced) == 2:
            raise OSError(code, os.strerror(code))

    monkeypatch.setattr(os, "fsync", fsync)
    if tolerated:
        write_atomically(tmp_path / "a", b"new")
    else:
        with pytest.raises(OSError, match=os.strerror(code)):
            write_atomically(tmp_path / "a", b"new")
    assert synced == [False, True]


def test_drafts_of_the_dead_are_cleared_and_those_of_the_living_stay(tmp_path: Path) -> None:
    path = tmp_path / "m"
    for name in (".m.0123456789ab.part", ".m2.0123456789ab.part", ".m.mine.part", "m.part"):
        (tmp_path / name).touch()
    with atomic_file(path) as file:
        file.write(b"half")
        assert clear_drafts(path) == 1
    assert path.read_bytes() == b"half"
    assert {file.name for file in tmp_path.iterdir()} == {"m", ".m2.0123456789ab.part", ".m.mine.part", "m.part"}
