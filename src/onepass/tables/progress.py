"""How far a run has come, kept beside its model in one file, and the way back into that run.

The file ``MODEL.partial`` is a model's file whose parameters have the progress of the run, too; it is replaced as a
whole, so model and position always belong together.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from onepass.files.checkpoint import CheckpointError, load_with_parameters, save_with_parameters
from onepass.files.state import Parameters, as_tally
from onepass.tables.inputs import Inputs, Position
from onepass.tables.model import TabularModel
from onepass.tables.readers.errors import StreamError

__all__ = ["OtherSettingsError", "Progress", "ResumedRun", "load_progress", "partial_path", "resume", "save_progress"]


@dataclass(frozen=True)
class Progress:
    """Where in its input a run stands that has not ended."""

    input: Parameters  # see Inputs.identity
    position: Position
    notes: Parameters
    """What whoever started the run keeps with it; ``asked`` are the settings that it was given."""

    def state(self) -> Parameters:
        """All of it as data that JSON can hold."""
        return {"input": self.input, "position": self.position._asdict(), **self.notes}

    @classmethod
    def from_state(cls, state: Any) -> "Progress":
        """Make the progress that `state` described."""
        notes = dict(state)
        given, place = dict(notes.pop("input")), notes.pop("position")
        as_tally(given["passes"], "passes")
        if not all("name" in file for file in given["files"]):
            raise ValueError("files must have names")
        notes["asked"] = dict(notes["asked"])
        return cls(given, Position(*(as_tally(place[name], name) for name in Position._fields)), notes)


class ResumedRun(NamedTuple):
    """An interrupted run: the model so far, and where it goes on."""

    model: TabularModel
    progress: Progress


class OtherSettingsError(StreamError):
    """A run is to be resumed with other settings than it was given.

    Parameters
    ----------
    settings : names of the settings that differ
    partial : file with the progress of the run
    """

    def __init__(self, settings: tuple[str, ...], partial: Path) -> None:
        super().__init__(self.words(settings, partial))
        self.settings, self.partial = settings, partial

    @staticmethod
    def words(names: Sequence[str], partial: Path) -> str:
        """The message, for whoever has other names for the settings."""
        return f"{', '.join(names)} is not what the interrupted run was given; to start over delete {partial}"


def partial_path(model: Path) -> Path:
    """Where the progress of a run is kept."""
    return model.with_name(model.name + ".partial")


def save_progress(model: TabularModel, progress: Progress | None, path: Path) -> None:
    """Write a model, and the progress of the run that it is learned in, to one file."""
    save_with_parameters(model, path, {"progress": None if progress is None else progress.state()})


def load_progress(path: Path) -> ResumedRun | None:
    """Read a model with the progress of its run, or None if no run is under way in the file.

    Raises
    ------
    CheckpointError
        If the file holds no sound progress.
    """
    model, parameters = load_with_parameters(path)
    if not isinstance(model, TabularModel) or parameters["progress"] is None:
        return None
    try:
        return ResumedRun(model, Progress.from_state(parameters["progress"]))
    except (KeyError, TypeError, ValueError):
        raise CheckpointError(f"{path} holds no progress of a run") from None


def resume(path: Path, inputs: Inputs, asked: Parameters) -> ResumedRun | None:
    """Read the run whose progress is kept beside a model; None if there is none.

    Parameters
    ----------
    path : of the model
    inputs, asked : input and settings of the run to resume, which must be those that the run was started with
    """
    partial = partial_path(path)
    if not partial.exists():
        return None
    run = load_progress(partial)
    if run is None:
        raise CheckpointError(f"{partial} holds no progress of a run")
    known, was_asked = run.progress.input, run.progress.notes["asked"]
    if known != inputs.identity():
        names = ", ".join(str(file["name"]) for file in known["files"])
        raise StreamError(
            f"the input is not that of the run that was interrupted, or has changed since ({names}; "
            f"passes: {known['passes']}); to start over delete {partial}"
        )
    if was_asked.keys() != asked.keys():
        raise StreamError(f"{partial} is the progress of another command's run; go on with that one, or delete it")
    changed = tuple(name for name in asked if was_asked.get(name) != asked[name])
    if changed:
        raise OtherSettingsError(changed, partial)
    return run
