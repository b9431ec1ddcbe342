"""A folder whose files were changed or cut: refused or recovered with a plain word, and never a wrong model.

Three things may happen to each model: it is served as it was, or it is not served and the service says why, or the
whole folder is refused. A snapshot that is damaged costs nothing but the time of a longer replay.
"""

import re
import shutil
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from onepass.events import EventStore, EventStoreError
from onepass.service.checking import check_state
from onepass.service.errors import ProblemError
from onepass.service.journal import stream_of
from onepass.service.operations import Decide
from onepass.service.state import EVENTS
from onepass.service.wire import DecideRequest, LabelRequest, LearnRequest, PredictRequest, RewardRequest
from tests.service.running import Running, crashed_copy, four_models, opened, served

pytestmark = pytest.mark.filterwarnings("ignore:.*is damaged; using the one before")


def fill(running: Running, begin: int, count: int) -> None:
    """Let every model have some events, some of which wait for others."""
    for i in range(begin, begin + count):
        x: dict[str, Any] = {"a": i % 3 - 1.0, "b": i % 5 - 2.0}
        for name, y, more in (("number", 0.5 * i, {}), ("class", "red", {}), ("keyed", 1.0, {"key": "wxyz"[i % 4]})):
            model = running.model(name)
            running.ask(model.learn(LearnRequest(x | more, y, id=f"row {i}")))
            running.ask(model.predict(PredictRequest(x | more, id=f"order {i}")))
            if i % 3:
                running.ask(model.label(LabelRequest(f"order {i}", y)))
        bandit = running.model("bandit")
        running.ask(bandit.carry_out(Decide(DecideRequest([x["a"], x["b"]], id=f"choice {i}"))))
        running.ask(bandit.reward(RewardRequest(f"choice {i}", float(i % 2))))


class Sound:
    """A folder as it was before anything happened to it, and what was served from it."""

    def __init__(self, place: Path) -> None:
        folder = place / "sound"
        with served(folder) as running:
            for name, content in four_models().items():
                running.ask(running.state.create(name, content))
            fill(running, 0, 4)
            for model in running.state.models():
                running.ask(model.snapshot())
            fill(running, 4, 4)
            self.models = running.files()
            crashed_copy(folder, place / "crashed")
            with EventStore(folder / EVENTS) as store:
                opened(store).execute("PRAGMA wal_checkpoint(TRUNCATE)")
            crashed_copy(folder, place / "copied")
        self.files = {
            "log": _contents(place / "crashed"),
            "tables": _contents(place / "copied"),
            "file": _contents(folder),
        }
        self.place = place

    def damaged(self, what: str, file: str, content: bytes) -> dict[str, str]:
        """What becomes of each model with one of the files changed: "served", or why it is not."""
        folder = self.place / "damaged"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        for name, sound in self.files[what].items():
            (folder / name).write_bytes(content if name == file else sound)
        try:
            running = Running(folder)
        except EventStoreError as error:
            return dict.fromkeys(self.models, f"refused: {error.strerror}")
        try:
            return {name: self._served(running, name) for name in self.models}
        finally:
            running.stop()

    def _served(self, running: Running, name: str) -> str:
        try:
            model = running.model(name)
        except ProblemError as problem:
            if problem.status == 404 and running.state.is_ready:
                pytest.fail(f"{name} was lost without a word")
            return problem.detail
        assert running.ask(model.file()) == self.models[name], f"{name} is another model"
        return "served"


def _contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.glob(f"{EVENTS}*") if not path.name.endswith("-shm")}


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Sound:
    return Sound(tmp_path_factory.mktemp("damage"))


# After a crash what came last is in the log; later SQLite copies it into its tables; when the service stops, snapshots
# are saved, and hardly any event is needed any more.
FILES = [("log", EVENTS), ("log", f"{EVENTS}-wal"), ("tables", EVENTS), ("file", EVENTS), ("file", f"{EVENTS}-tail")]


def changes(content: bytes, flips: int, cuts: int) -> Iterator[tuple[str, bytes]]:
    """The content with one bit flipped, and cut, at places all along it; what is said of the place comes first."""
    generator = np.random.default_rng(0)
    used = np.flatnonzero(np.frombuffer(content, np.uint8))  # the rest is padding
    for place in [*range(0, min(100, len(content)), 7), *generator.choice(used, flips)]:
        changed = bytearray(content)
        changed[place] ^= 1 << int(generator.integers(8))
        yield f"flipped at {place}", bytes(changed)
    for length in np.linspace(0, len(content) - 1, cuts).astype(int).tolist():
        yield f"cut to {length}", content[:length]


def survey(sound: Sound, what: str, file: str, flips: int, cuts: int) -> Counter[str]:
    """What became of the models, counted, over many kinds of damage."""
    found: Counter[str] = Counter()
    for words, content in changes(sound.files[what][file], flips, cuts):
        try:
            outcomes = sound.damaged(what, file, content)
        except BaseException as error:
            error.add_note(f"{what} {file} {words}")
            raise
        found.update(outcomes.values())
    return found


def test_sound_files_are_served(sound: Sound) -> None:
    for what, files in sound.files.items():
        outcomes = sound.damaged(what, "", b"")
        assert set(outcomes.values()) == {"served"}, what
        assert set(files) >= {EVENTS, f"{EVENTS}-tail"}


@pytest.mark.parametrize(("what", "file"), FILES)
def test_damage_never_leads_to_another_model(sound: Sound, what: str, file: str) -> None:
    found = survey(sound, what, file, flips=25, cuts=6)
    assert found["served"] or what == "log"
    assert len(found) > 1 or file.endswith("-tail")


@pytest.mark.parametrize("step", [4, pytest.param(1, marks=pytest.mark.slow)])
def test_an_index_that_has_lost_an_event_is_noticed(sound: Sound, step: int) -> None:
    """Indexes have no checksums: the name of another stream in one hides an event, and may hide all after it."""
    content = sound.files["tables"][EVENTS]
    places = [found.end() for found in re.finditer(rb"\x04.[\x01\x09]\x01model/", content)]  # stream, number and row
    assert len(places) > 50
    outcomes: Counter[str] = Counter()
    for place in places[::step]:
        changed = bytearray(content)
        changed[place] ^= 1
        outcomes.update(sound.damaged("tables", EVENTS, bytes(changed)).values())
    assert any("is missing" in outcome for outcome in outcomes)
    assert any("was noted to end" in outcome for outcome in outcomes) or step > 1


@pytest.mark.slow
@pytest.mark.parametrize(("what", "file"), FILES)
def test_damage_all_along_the_files(sound: Sound, what: str, file: str) -> None:
    survey(sound, what, file, flips=3000, cuts=300)


def change(folder: Path, statement: str, *values: Any) -> None:
    """Change the tables themselves."""
    with EventStore(folder / EVENTS) as store:
        assert opened(store).execute(statement, values).rowcount > 0


def copied(sound: Sound, to: Path) -> Path:
    """A folder of one's own."""
    to.mkdir()
    for name, content in sound.files["file"].items():
        (to / name).write_bytes(content)
    return to


def test_damaged_snapshots_give_way_to_a_longer_replay(sound: Sound, tmp_path: Path) -> None:
    folder = copied(sound, tmp_path / "state")
    change(folder, "UPDATE snapshots SET content = zeroblob(length(content))")
    with served(folder) as running:
        assert running.files() == sound.models


def test_a_damaged_model_is_named_and_the_others_are_served(sound: Sound, tmp_path: Path) -> None:
    folder = copied(sound, tmp_path / "state")
    change(folder, "DELETE FROM snapshots WHERE stream = ?", stream_of("class"))
    change(folder, "UPDATE events SET payload = '{}' WHERE stream = ? AND number = 5", stream_of("class"))
    with served(folder) as running:
        assert set(running.state.broken) == {"class"}
        assert not running.state.is_ready
        with pytest.raises(ProblemError, match="event 5 of stream 'model/class' is not what was written") as caught:
            running.model("class")
        assert caught.value.status == 503
        with pytest.raises(ProblemError, match="can't be recovered"):
            running.ask(running.state.create("class", four_models()["class"]))
        others = {name: content for name, content in sound.models.items() if name != "class"}
        assert running.files() == others
        fill_one = running.ask(running.model("number").learn(LearnRequest({"a": 1.0, "b": 2.0}, 1.0)))
        assert fill_one.status == "learned"
    assert [problem for problem in check_state(folder) if "'class' can't be recovered" in problem]


def test_a_broken_model_can_be_deleted_and_made_anew(sound: Sound, tmp_path: Path) -> None:
    folder = copied(sound, tmp_path / "state")
    change(folder, "DELETE FROM snapshots WHERE stream = ?", stream_of("class"))
    change(folder, "UPDATE events SET blob = x'00' WHERE stream = ? AND number = 1", stream_of("class"))
    with served(folder) as running:
        running.ask(running.state.delete("class"))
        assert running.ask(running.state.create("class", four_models()["class"]))[1]
    with served(folder) as running:
        assert running.ask(running.model("class").file()) == four_models()["class"]
        assert running.state.is_ready


def test_missing_events_are_noticed(sound: Sound, tmp_path: Path) -> None:
    folder = copied(sound, tmp_path / "state")
    change(folder, "DELETE FROM snapshots")
    change(folder, "DELETE FROM events WHERE stream = ? AND number = 7", stream_of("number"))
    with served(folder) as running:
        assert "event 7 of stream 'model/number' is missing" in running.state.broken["number"]
        assert set(running.state.broken) == {"number"}
