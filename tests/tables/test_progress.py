from pathlib import Path

import pytest

import onepass
from onepass import CheckpointError
from onepass.files.checkpoint import load_with_parameters, save_with_parameters
from onepass.files.versions import VersionedFile
from onepass.tables.inputs import Inputs, Position
from onepass.tables.progress import (
    OtherSettingsError,
    Progress,
    RunStart,
    load_progress,
    partial_path,
    resume,
    save_progress,
)
from onepass.tables.readers.content import content_of
from onepass.tables.readers.errors import StreamError
from onepass.tables.schema import SchemaOptions, infer_model
from onepass.tables.settings import Settings
from onepass.tables.training import CheckpointPolicy, Interrupted, TrainingRun, train
from tests.helpers.tables import trips, write_csv


@pytest.fixture
def run(tmp_path: Path) -> TrainingRun:
    """A run of three blocks that has not begun."""
    inputs = Inputs((str(write_csv(tmp_path / "a.csv", trips(20_000))),))
    sources = inputs.sources()
    options = SchemaOptions("price", settings=Settings(model_kind="perceptron"))
    model, _ = infer_model(sources, options, rereadable=True)
    return TrainingRun(model, VersionedFile(tmp_path / "m"), inputs, sources)


def interrupt(run: TrainingRun) -> None:
    """Stop a run after its first block."""
    with pytest.raises(Interrupted):
        train(run, stopping=lambda: run.model.n_rows > 0, notes=lambda: {"asked": {"target": "price"}, "mine": 3})


def test_progress_is_saved_beside_the_model_and_is_no_part_of_it(run: TrainingRun) -> None:
    interrupt(run)
    resumed = resume(run.target.path, run.inputs, run.sources, {"target": "price"})
    assert resumed is not None
    file = run.inputs.files[0]
    assert resumed.progress == Progress(
        run.inputs.identity(run.sources),
        Position(0, 0, 8192),
        {"asked": {"target": "price"}, "mine": 3},
        RunStart(None, None, (), 0, 0),
        {},
        content_of(file, Path(file).stat().st_size),  # all of it: the digest is ahead of the rows by some MiB
    )
    model = onepass.load(partial_path(run.target.path))
    assert model.n_rows == resumed.model.n_rows == 8192
    onepass.save(model, run.target.path)
    assert load_progress(run.target.path) is None


def test_a_file_with_progress_is_that_of_the_model_but_for_the_progress(run: TrainingRun, tmp_path: Path) -> None:
    train(run, CheckpointPolicy(rows=1))
    assert not partial_path(run.target.path).exists()
    save_progress(run.model, None, tmp_path / "other")
    assert (tmp_path / "other").read_bytes() == run.target.path.read_bytes()


def test_only_the_same_run_is_resumed(run: TrainingRun, tmp_path: Path) -> None:
    assert resume(run.target.path, run.inputs, run.sources, {}) is None
    interrupt(run)
    with pytest.raises(OtherSettingsError, match="target is not what the interrupted run was given") as refused:
        resume(run.target.path, run.inputs, run.sources, {"target": "km"})
    assert refused.value.settings == ("target",)
    with pytest.raises(StreamError, match="the progress of another command"):
        resume(run.target.path, run.inputs, run.sources, {})
    with pytest.raises(StreamError, match="the input is not that"):
        resume(run.target.path, Inputs(run.inputs.files, passes=2), run.sources, {"target": "price"})
    onepass.save(run.model, partial_path(run.target.path))
    with pytest.raises(CheckpointError, match="holds no progress of a run"):
        resume(run.target.path, run.inputs, run.sources, {"target": "price"})


def test_progress_that_lacks_its_start_is_refused(run: TrainingRun) -> None:
    interrupt(run)
    partial = partial_path(run.target.path)
    model, parameters = load_with_parameters(partial)
    del parameters["progress"]["begun"]
    save_with_parameters(model, partial, {"progress": parameters["progress"]})
    with pytest.raises(CheckpointError, match="holds no progress of a run; delete it to start over"):
        resume(run.target.path, run.inputs, run.sources, {"target": "price"})
