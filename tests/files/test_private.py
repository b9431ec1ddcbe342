"""Files that only their owner may read, whatever the umask and the folder are."""

import os
import stat
from pathlib import Path

import pytest

from onepass.events import EventStore
from onepass.files.atomic import write_atomically
from onepass.files.private import close_to_others, private_files

pytestmark = pytest.mark.skipif(os.name == "nt", reason="modes are of POSIX")


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.fixture(params=[0o000, 0o022, 0o777])
def umask(request: pytest.FixtureRequest) -> object:
    before = os.umask(request.param)
    yield request.param
    os.umask(before)


def test_what_is_created_is_for_one_user_and_the_umask_is_as_before(tmp_path: Path, umask: int) -> None:
    with private_files():
        (tmp_path / "a" / "b").mkdir(parents=True)
        (tmp_path / "a" / "file").write_bytes(b"")
        with EventStore(tmp_path / "a" / "events.sqlite") as store:
            store.append("price", "label", "1", {})
            found = {path.name: mode(path) for path in (tmp_path / "a").iterdir() if path.is_file()}
    assert set(found) >= {"file", *(f"events.sqlite{end}" for end in ("", "-wal", "-shm", "-tail"))}
    assert set(found.values()) == {0o600}
    assert (mode(tmp_path / "a"), mode(tmp_path / "a" / "b")) == (0o700, 0o700)
    assert os.umask(umask) == umask


def test_a_file_with_a_mode_is_never_more_open_while_it_is_written(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        write_atomically(tmp_path / "secret", b"x", mode=0o600)
        write_atomically(tmp_path / "report", b"x")
    finally:
        os.umask(before)
    assert (mode(tmp_path / "secret"), mode(tmp_path / "report")) == (0o600, 0o666)


def test_a_file_whose_mode_can_not_be_read_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, stat_of = tmp_path / "file", Path.stat

    def refuse(self: Path, **named: bool) -> os.stat_result:
        if self == path:
            raise PermissionError(13, "Permission denied")
        return stat_of(self, **named)

    monkeypatch.setattr(Path, "stat", refuse)
    tmp_path.chmod(0o700)
    assert close_to_others(tmp_path, [path]) == [
        f"the mode of {path} can't be read: this user needs access to its folder"
    ]


def test_files_that_were_open_are_closed_and_named(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    files = [tmp_path / name for name in ("open", "closed", "gone")]
    for path, given in zip(files[:2], (0o644, 0o600), strict=True):
        path.write_bytes(b"")
        path.chmod(given)
    assert close_to_others(tmp_path, files) == [
        f"{tmp_path}/open had mode 0644, so other users could read it; it has 0600 now"
    ]
    assert [mode(path) for path in files[:2]] == [0o600, 0o600]
    assert close_to_others(tmp_path, files) == []


def test_a_file_of_another_user_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tmp_path.chmod(0o700)
    path = tmp_path / "open"
    path.write_bytes(b"")
    path.chmod(0o644)

    def refused(self: Path, mode: int) -> None:
        raise PermissionError

    monkeypatch.setattr(Path, "chmod", refused)
    (words,) = close_to_others(tmp_path, [path])
    assert "belongs to another user: chmod it to 0600" in words


def test_a_folder_that_others_can_write_to_is_named_and_stays(tmp_path: Path) -> None:
    tmp_path.chmod(0o770)
    (words,) = close_to_others(tmp_path, [])
    assert words == f"other users can write to {tmp_path} (mode 0770), and replace its files: chmod it to 0700"
    assert mode(tmp_path) == 0o770
    assert close_to_others(tmp_path / "none", []) == []
