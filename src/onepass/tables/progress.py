"""The progress of a run, kept next to its model in one file, and how the run is resumed.

The file ``MODEL.partial`` is a model's file whose parameters have the progress of the run, too; it is replaced as a
whole, so model and position always belong together.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from onepass.files.checkpoint import CheckpointError, load, load_with_parameters, save_with_parameters
from onepass.files.state import Parameters, as_tally
from onepass.files.versions import version
from onepass.tables.history import LearnedFile
from onepass.tables.inputs import Inputs, Position
from onepass.tables.readers.content import Content, content_of
from onepass.tables.readers.errors import StreamError
from onepass.tables.readers.paths import is_url
from onepass.tables.readers.source import Source

if TYPE_CHECKING:
    from onepass.tables.model import TabularModel

__all__ = [
    "OtherSettingsError",
    "Progress",
    "ResumedRun",
    "RunStart",
    "clear_ended",
    "load_progress",
    "partial_path",
    "resume",
    "save_progress",
]


@dataclass(frozen=True)
class RunStart:
    """What a run started from."""

    base: str | None  # version of the model's file that it went on from; None: a new model
    replaced: str | None  # version of the file that it is going to replace; None: there is none
    starts: tuple[int | None, ...]  # see Inputs
    rows: int  # that the model had learned
    rejected: int
    shuffle: int | None = None  # see Inputs

    @classmethod
    def from_state(cls, state: Any) -> "RunStart":
        """Make the start that a file describes."""
        starts = tuple(None if row is None else as_tally(row, "starts") for row in state["starts"])
        base, replaced = (None if state[name] is None else str(state[name]) for name in ("base", "replaced"))
        shuffle = state["shuffle"]
        counts = as_tally(state["rows"], "rows"), as_tally(state["rejected"], "rejected")
        return cls(base, replaced, starts, *counts, None if shuffle is None else as_tally(shuffle, "shuffle"))


@dataclass(frozen=True)
class Progress:
    """How far an unfinished run has read its input."""

    input: Parameters  # see Inputs.identity
    position: Position
    notes: Parameters
    """Notes of the caller; ``asked`` are the settings that the run was given."""
    begun: RunStart
    learned: Mapping[int, LearnedFile] = field(default_factory=dict)
    """Files that have been learned to their end, by their number."""
    content: Content | None = None
    """Of the file being read, at least up to the position; None at its beginning."""

    def state(self) -> Parameters:
        """All of it as data that JSON can hold."""
        return {
            "input": self.input,
            "position": self.position._asdict(),
            "begun": asdict(self.begun),
            "learned": [[number, file.state()] for number, file in self.learned.items()],
            "content": None if self.content is None else asdict(self.content),
            **self.notes,
        }

    @classmethod
    def from_state(cls, state: Any) -> "Progress":
        """Make the progress that `state` described."""
        notes = dict(state)
        given, place = dict(notes.pop("input")), notes.pop("position")
        as_tally(given["passes"], "passes")
        if not all("name" in file for file in given["files"]):
            raise ValueError("files must have names")
        notes["asked"] = dict(notes["asked"])
        begun, content, learned = notes.pop("begun"), notes.pop("content"), notes.pop("learned")
        return cls(
            given,
            Position(*(as_tally(place[name], name) for name in Position._fields)),
            notes,
            RunStart.from_state(begun),
            {as_tally(number, "number"): LearnedFile.from_state(file) for number, file in learned},
            None if content is None else Content(as_tally(content["size"], "size"), content["head"], content["digest"]),
        )


class ResumedRun(NamedTuple):
    """An interrupted run: the model so far, and where to continue."""

    model: "TabularModel"
    progress: Progress

    def goes_on_with(self, inputs: Inputs) -> Inputs:
        """The input with the rows that the run leaves out, in the order that it takes them in."""
        begun = self.progress.begun
        return replace(inputs, starts=begun.starts, shuffle=begun.shuffle)


class OtherSettingsError(StreamError):
    """A run is to be resumed with other settings than it was given.

    Parameters
    ----------
    settings : names of the settings that differ
    partial : file with the progress of the run
    """

    def __init__(self, settings: tuple[str, ...], partial: Path) -> None:
        self.settings = settings
        self.partial = partial
        super().__init__(self.naming(str))

    def naming(self, option: Callable[[str], str]) -> str:
        """The message with settings by the caller's names; ``option`` gives the name of one."""
        names = ", ".join(map(option, self.settings))
        return f"{names} is not what the interrupted run was given; to start over delete {self.partial}"


def partial_path(model: Path) -> Path:
    """Where the progress of a run is kept."""
    return model.with_name(model.name + ".partial")


def save_progress(model: "TabularModel", progress: Progress | None, path: Path) -> None:
    """Write a model, and the progress of the run that it is learned in, to one file."""
    save_with_parameters(model, path, {"progress": None if progress is None else progress.state()})


def load_progress(path: Path) -> ResumedRun | None:
    """Read a model with the progress of its run, or None if no run is under way in the file.

    Raises
    ------
    CheckpointError
        If the file holds no sound progress.
    """
    from onepass.tables.model import TabularModel  # which imports scikit-learn

    model, parameters = load_with_parameters(path)
    if not isinstance(model, TabularModel) or parameters["progress"] is None:
        return None
    try:
        return ResumedRun(model, Progress.from_state(parameters["progress"]))
    except (KeyError, TypeError, ValueError):
        raise CheckpointError(f"{path} holds no progress of a run; delete it to start over") from None


def clear_ended(path: Path) -> bool:
    """Delete the progress of a run that has ended all the same, killed before it could; whether that was so."""
    partial = partial_path(path)
    try:
        run, model = load_progress(partial), load(path)
    except (FileNotFoundError, CheckpointError):
        return False
    if run is None or not isinstance(model, type(run.model)) or not model.history.runs:
        return False
    *earlier, last = model.history.runs
    known = {(file["size"], file["digest"]) for file in run.progress.input["files"]}
    ended = (
        tuple(earlier) == run.model.history.runs
        and all((file.size, file.head) in known for file in last.files)
        and all(file in last.files for file in run.progress.learned.values())
        and model.n_rows >= run.model.n_rows
        and version(path) != run.progress.begun.replaced
    )
    if ended:
        partial.unlink()
    return ended


def resume(
    path: Path, inputs: Inputs, sources: Sequence[Source], asked: Parameters, base: str | None = None
) -> ResumedRun | None:
    """Read the run whose progress is kept next to a model; None if there is none.

    Parameters
    ----------
    path : of the model
    inputs, asked : input and settings of the run to resume, which must be those that the run was started with
    sources : the input, opened; files that have grown since are then read up to where they ended
    base : version of the model's file that it continues from
    """
    partial = partial_path(path)
    if not partial.exists():
        return None
    run = load_progress(partial)
    if run is None:
        raise CheckpointError(f"{partial} holds no progress of a run")
    known, was_asked = run.progress.input, run.progress.notes["asked"]
    for source, file in zip(sources, known["files"], strict=False):
        if source.extent is not None and source.extent.is_lines:
            source.extent.size = min(source.extent.size, as_tally(file["size"], "size"))
    if known != inputs.identity(sources):
        names = ", ".join(str(file["name"]) for file in known["files"])
        raise StreamError(
            f"the input is not that of the interrupted run, or has changed since; that run had {names} and "
            f"passes={known['passes']}; to start over delete {partial}"
        )
    if was_asked.keys() != asked.keys():
        raise StreamError(f"{partial} is the progress of another command; finish that run, or delete the file")
    changed = tuple(name for name in asked if was_asked.get(name) != asked[name])
    if changed:
        raise OtherSettingsError(changed, partial)
    _check_base(run.progress, path, base)
    _check_contents(run.progress, inputs, partial)
    return run


def _check_base(progress: Progress, path: Path, base: str | None) -> None:
    begun = progress.begun
    if (base, version(path)) != (begun.base, begun.replaced):
        raise StreamError(
            f"{path}, or the model it was made from, was changed since the interrupted run started; restore the model "
            f"to continue, or delete {partial_path(path)} to start over"
        )


def _check_contents(progress: Progress, inputs: Inputs, partial: Path) -> None:
    """Refuse to go on if what was learned of a file is not in it any more, and would be read again or skipped.

    Remote files have been compared by their versions, see `Inputs.identity`.
    """
    again = {
        number: Content(file.size, file.head, file.digest or "")
        for number, file in progress.learned.items()
        if inputs.passes > 1 and not is_url(inputs.files[number])
    }
    if progress.content is not None:
        again[progress.position.file] = progress.content
    for number, content in again.items():
        if content_of(inputs.files[number], content.size) != content:
            raise StreamError(
                f"{inputs.files[number]} has changed since the run was interrupted: the part that was learned is "
                f"different now; to start over delete {partial}"
            )
