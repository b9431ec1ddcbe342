import os
from pathlib import Path

import pytest

from onepass.files.atomic import write_atomically


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
