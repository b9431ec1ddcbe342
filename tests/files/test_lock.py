import os
import signal
import subprocess
import sys
from errno import ENOLCK
from pathlib import Path

import pytest

from onepass.files import lock
from onepass.files.lock import LockedError, lock_path, locked

HOLD = """
import pathlib, sys, time
from onepass.files.lock import locked
with locked(pathlib.Path(sys.argv[1])):
    print("held", flush=True)
    time.sleep(300)
"""


def test_only_one_holds_a_lock_and_others_hear_who(tmp_path: Path) -> None:
    path = tmp_path / "m"
    with (
        locked(path),
        pytest.raises(LockedError, match=rf"m is being written by process {os.getpid()} on .*, since 2"),
        locked(path),
    ):
        pass
    with locked(path), locked(tmp_path / "other"):
        pass
    assert list(tmp_path.iterdir()) == []


def test_a_lock_ends_with_its_holder_however_that_ends(tmp_path: Path) -> None:
    path = tmp_path / "m"
    with subprocess.Popen([sys.executable, "-c", HOLD, str(path)], stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        with pytest.raises(LockedError, match=f"process {holder.pid}"), locked(path, wait=0.2):
            pass
        holder.send_signal(signal.SIGKILL)
    assert lock_path(path).exists()
    with locked(path):
        pass
    assert not lock_path(path).exists()


def test_whoever_waited_for_a_lock_that_was_taken_away_starts_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between opening the file and locking it the last holder deletes it: a lock on that file is worth nothing."""
    path, real = tmp_path / "m", lock.try_lock
    lost: list[int] = []

    def late(handle: int) -> bool:
        if not lost:
            lost.append(1)
            lock_path(path).unlink()
        return real(handle)

    monkeypatch.setattr(lock, "try_lock", late)
    with locked(path, wait=5.0):
        assert lock_path(path).exists()


def test_a_folder_without_locks_is_written_all_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown(handle: int) -> None:
        raise OSError(ENOLCK, "No locks available")

    monkeypatch.setattr(lock, "_lock", unknown)
    with locked(tmp_path / "m"):
        pass
