import os
from pathlib import Path

import pytest

import onepass
from onepass.files import versions
from onepass.files.checkpoint import to_bytes
from onepass.files.versions import ChangedError, NothingToUndoError, VersionedFile, undo, version


def test_every_change_of_a_model_is_another_version(tmp_path: Path) -> None:
    path, model = tmp_path / "m", onepass.BayesianPerceptron(n_features=1)
    assert version(path) is None
    seen = set()
    for _ in range(3):
        onepass.save(model, path)
        assert version(path) == version(path)
        seen.add(version(path))
        model.learn([[1.0]], [1])
    for content in (b"", b"short", b"no model, but longer than eight bytes"):
        path.write_bytes(content)
        seen.add(version(path))
    assert len(seen) == 6
    assert versions._version_of(to_bytes(model)) not in seen
    onepass.save(model, path)
    assert versions._version_of(to_bytes(model)) == version(path)


def test_one_step_back_is_kept_for_all_writes_of_a_run_together(tmp_path: Path) -> None:
    path = tmp_path / "m"
    VersionedFile(path).write(b"made")
    assert [file.name for file in tmp_path.iterdir()] == ["m"]
    run = VersionedFile(path)
    for content in (b"first", b"second", b"third"):
        run.write(content)
    assert len(list(tmp_path.iterdir())) == 2
    undo(path)
    assert path.read_bytes() == b"made"
    with pytest.raises(NothingToUndoError, match="only one earlier model is kept"):
        undo(path)
    with pytest.raises(FileNotFoundError):
        undo(tmp_path / "none")


def test_the_way_back_is_from_one_version_only(tmp_path: Path) -> None:
    path = tmp_path / "m"
    VersionedFile(path).write(b"made")
    VersionedFile(path).write(b"learned")
    path.write_bytes(b"something else")
    with pytest.raises(
        NothingToUndoError, match=r"was changed after its last run, so that run can't be undone; .*previous-"
    ):
        undo(path)
    assert path.read_bytes() == b"something else"


def test_a_file_that_others_changed_is_left_alone_and_nothing_is_lost(tmp_path: Path) -> None:
    path = tmp_path / "m"
    path.write_bytes(b"made")
    runs = [VersionedFile(path) for _ in range(3)]
    runs[0].write(b"by the first")
    for number, run in enumerate(runs[1:], 2):
        with pytest.raises(ChangedError, match=r"the model that this run learned is in .*m.learned"):
            run.write(b"by %d" % number)
    assert path.read_bytes() == b"by the first"
    assert (tmp_path / "m.learned").read_bytes() == b"by 2"
    assert (tmp_path / "m.learned-2").read_bytes() == b"by 3"
    undo(path)
    assert path.read_bytes() == b"made"


def test_a_write_that_fails_leaves_the_file_and_its_way_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "m"
    VersionedFile(path).write(b"made")
    VersionedFile(path).write(b"learned")
    before = {file.name: file.read_bytes() for file in tmp_path.iterdir()}

    def full(*arguments: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", full)
        with pytest.raises(OSError, match="No space"):
            VersionedFile(path).write(b"more")
    assert {file.name: file.read_bytes() for file in tmp_path.iterdir()} == before
    undo(path)
    assert path.read_bytes() == b"made"


def test_a_file_system_without_second_names_gets_a_copy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown(*arguments: object) -> None:
        raise OSError(1, "Operation not permitted")

    monkeypatch.setattr(os, "link", unknown)
    path = tmp_path / "m"
    for content in (b"made", b"learned"):
        VersionedFile(path).write(content)
    undo(path)
    assert path.read_bytes() == b"made"
