"""The event store against a plain list, against kill -9, against other processes, and against damaged files."""

import errno
import math
import os
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from onepass.files.events import ConflictError, Event, EventStore, EventStoreError, Snapshot
from onepass.files.events.database import Database

SOURCE = Path(__file__).parents[2] / "src"


@pytest.fixture
def store(tmp_path: Path) -> Iterator[EventStore]:
    with EventStore(tmp_path / "events.sqlite", clock=lambda: 1.5) as opened:
        yield opened


def fill(store: EventStore, count: int, stream: str = "s") -> None:
    with store.transaction():
        for i in range(count):
            store.append(stream, "row", str(i), {"i": i}, b"x" * 50)


def numbers(store: EventStore, stream: str = "s", after: int = 0) -> list[int]:
    return [event.number for event in store.events(stream, after)]


# Appending and reading


def test_what_is_appended_comes_back_bit_for_bit(store: EventStore) -> None:
    payload = {
        "floats": [0.1, 1 / 3, -0.0, 5e-324, sys.float_info.max, 1e22],
        "whole": 2**70,
        "text": "Grüße \ud800 \0 \N{SNOWMAN}",
        "none": [None, True, False, {}],
    }
    array = np.array([math.nan, math.inf, -0.0, 0.1])
    given = store.append("s", "kind", "ключ", payload, array.tobytes(), time=0.1)
    assert given == Event(1, "s", "kind", "ключ", payload, array.tobytes(), 0.1)
    store.close()
    with EventStore(store.path) as again:
        (event,) = again.events("s")
        assert event == given
        assert [math.copysign(1, x) for x in event.payload["floats"]] == [1, 1, -1, 1, 1, 1]
        assert np.frombuffer(event.blob).tobytes() == array.tobytes()


def test_the_same_event_again_is_the_first_one(store: EventStore) -> None:
    first = store.append("s", "label", "a", {"x": 1.0, "y": 2.0}, b"z", time=1.0)
    assert store.append("s", "label", "a", {"y": 2.0, "x": 1.0}, b"z", time=9.0) == first
    assert numbers(store) == [1]


@pytest.mark.parametrize(("payload", "blob"), [({"y": 2}, b"z"), ({"y": 1}, b"")])
def test_a_key_with_other_content_is_a_conflict(store: EventStore, payload: dict[str, int], blob: bytes) -> None:
    store.append("s", "label", "a 17", {"y": 1}, b"z")
    with pytest.raises(ConflictError, match=r"'a 17' of kind 'label' in stream 's'.*event 1") as caught:
        store.append("s", "label", "a 17", payload, blob)
    assert (caught.value.stream, caught.value.key, caught.value.number) == ("s", "a 17", 1)
    assert numbers(store) == [1]


def test_streams_and_kinds_have_keys_of_their_own(store: EventStore) -> None:
    """A label may come before its prediction."""
    assert store.append("s", "label", "a", {"y": 1}).number == 1
    assert store.append("s", "prediction", "a", {"x": 2}).number == 2
    assert store.append("other", "label", "a", {"y": 3}).number == 1
    assert store.streams() == ["other", "s"]
    assert [store.last(name) for name in ("s", "other", "none")] == [2, 1, 0]
    found = store.find("s", "label", "a")
    assert found is not None
    assert found.payload == {"y": 1}
    assert store.find("s", "label", "b") is None


def test_events_come_in_their_order_from_any_number_on_and_by_kind(store: EventStore) -> None:
    for i in range(250):  # more than are read at once
        store.append("s", "ab"[i % 2], str(-i))
    assert numbers(store) == list(range(1, 251))
    assert numbers(store, after=248) == [249, 250]
    assert numbers(store, after=250) == []
    assert [event.number for event in store.events("s", 5, kinds=["b"])] == list(range(6, 251, 2))
    assert list(store.events("s", kinds=[])) == []


def test_events_appended_while_reading_are_read(store: EventStore) -> None:
    fill(store, 100)
    reading = store.events("s")
    next(reading)
    store.append("s", "late", "1")
    assert [event.kind for event in reading][-1] == "late"


def test_the_clock_gives_the_time_unless_the_caller_does(store: EventStore) -> None:
    assert store.append("s", "k", "a").time == 1.5
    assert store.append("s", "k", "b", time=7).time == 7.0


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("", "k", "a"), "stream must be text of at least one character"),
        (("s", 3, "a"), "kind must be text, got 3"),
        (("s", "k", "a\0b"), "key must be text of at least one character and without NUL"),
        (("s", "k", "\ud800"), "key must be text that UTF-8 can encode"),
        (("s", "k", "a", b"x"), "payload must be a dict, got bytes; bytes go into blob"),
        (("s", "k", "a", {"x": math.nan}), "payload must hold only what JSON can"),
        (("s", "k", "a", {"x": np.zeros(2)}), "payload must hold only what JSON can: .*arrays go into blob"),
        (("s", "k", "a", {"x": (1, 2)}), "sequences lists, not tuples"),
        (("s", "k", "a", {1: 2}), "keys of a dict must be text"),
        (("s", "k", "a", {}, 5), "blob must be bytes, got int"),
    ],
)
def test_what_cannot_be_stored_exactly_is_refused(store: EventStore, arguments: tuple[Any, ...], words: str) -> None:
    with pytest.raises((TypeError, ValueError), match=words):
        store.append(*arguments)
    assert store.streams() == []


def test_other_wrong_arguments(store: EventStore, tmp_path: Path) -> None:
    nested: list[Any] = []
    for _ in range(100_000):
        nested = [nested]
    calls: list[tuple[str, Callable[[], Any]]] = [
        ("payload must hold only what JSON can: maximum recursion", lambda: store.append("s", "k", "a", {"x": nested})),
        ("time must be a finite", lambda: store.append("s", "k", "a", time=math.inf)),
        ("time must be a number", lambda: store.append("s", "k", "a", time="now")),  # type: ignore[arg-type]
        ("after must be a whole number that is not negative, got -1", lambda: store.events("s", -1)),
        ("kinds must be a list of kinds, got the text 'label'", lambda: store.events("s", kinds="label")),
        ("content must be bytes", lambda: store.save_snapshot("s", 0, "text")),  # type: ignore[arg-type]
        ("durability must be one of 'full', 'relaxed'", lambda: EventStore(tmp_path / "a", durability="off")),
        ("timeout must be a number above 0", lambda: EventStore(tmp_path / "a", timeout=0)),
    ]
    for words, call in calls:
        with pytest.raises((TypeError, ValueError), match=words):
            call()
    assert not (tmp_path / "a").exists()


# Transactions and threads


@contextmanager
def undone(store: EventStore) -> Iterator[None]:
    """A transaction that fails at its end."""
    with suppress(ZeroDivisionError), store.transaction():
        yield
        raise ZeroDivisionError


def test_a_transaction_is_written_whole_or_not_at_all(store: EventStore) -> None:
    with EventStore(store.path) as other:
        with undone(store):
            store.append("s", "k", "a")
            assert store.last("s") == 1
            assert other.last("s") == 0
        assert store.last("s") == 0
        with store.transaction():
            store.append("s", "k", "b")
            store.append("t", "k", "b")
        assert other.last("s") == other.last("t") == 1


def test_a_part_of_a_transaction_is_undone_alone(store: EventStore) -> None:
    with store.transaction():
        store.append("s", "k", "a", {"y": 1})
        with undone(store):
            store.append("s", "k", "b")
        with pytest.raises(ConflictError):
            store.append("s", "k", "a", {"y": 2})
        store.append("s", "k", "c")
    assert [(event.number, event.key) for event in store.events("s")] == [(1, "a"), (2, "c")]


def in_threads(work: Callable[[str], None]) -> None:
    """Run work("a") to work("d") at the same time; an error in one of them fails the test."""
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(work, "abcd")) == [None] * 4


def test_threads_share_a_store(store: EventStore) -> None:
    def work(name: str) -> None:
        for i in range(20):
            with store.transaction():
                store.append("s", name, f"{i} first")
                store.append("s", name, f"{i} second")
            store.append("t", name, str(i))

    in_threads(work)
    events = list(store.events("s"))
    assert len(events) == 160
    assert all(one.kind == two.kind for one, two in zip(events[::2], events[1::2], strict=True))
    assert numbers(store, "t") == list(range(1, 81))


def test_a_new_file_may_be_opened_many_times_at_once(tmp_path: Path) -> None:
    together = threading.Barrier(4, timeout=20)

    def work(name: str) -> None:
        for i in range(10):
            together.wait()
            with EventStore(tmp_path / str(i), durability="relaxed") as store:
                store.append("s", "row", name)

    in_threads(work)
    for i in range(10):
        with EventStore(tmp_path / str(i)) as store:
            assert sorted(event.key for event in store.events("s")) == ["a", "b", "c", "d"]


def test_an_append_never_slips_into_the_transaction_of_another_thread(
    store: EventStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It waits, and then has one of its own: between looking for the last number and using it nobody else writes."""
    number, within = Database.number, []

    def watched(database: Database, statement: str, *values: Mapping[str, Any]) -> int:
        assert database._connection is not None
        if values:  # of a stream
            within.append(database._connection.in_transaction)
        return number(database, statement, *values)

    monkeypatch.setattr(Database, "number", watched)
    other = threading.Thread(target=store.append, args=("s", "k", "b"))
    with undone(store):
        store.append("s", "k", "a")
        other.start()
        time.sleep(0.02)
    other.join()
    assert within == [True, True]
    assert [(event.number, event.key) for event in store.events("s")] == [(1, "b")]


def test_opening_tries_again_while_the_log_cannot_be_set_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not on every system does SQLite wait by itself with this one statement."""
    run, refusals = Database._run, [1, 2]

    def refusing(database: Database, statement: str, *values: Mapping[str, Any]) -> list[tuple[Any, ...]]:
        if "journal_mode" in statement and refusals:
            raise EventStoreError(errno.EAGAIN, f"refused {refusals.pop()} more times", database.path)
        return run(database, statement, *values)

    monkeypatch.setattr(Database, "_run", refusing)
    with pytest.raises(EventStoreError, match="refused 2 more"):
        EventStore(tmp_path / "e", timeout=1e-9)
    EventStore(tmp_path / "e").close()
    assert not refusals


# Processes

_PROGRAM = """
import sys
from onepass.files.events import EventStore
with EventStore(sys.argv[1]) as store:
    for i in range(int(sys.argv[3])):
        print(store.append("s", "row", f"{sys.argv[2]} {i}", {"i": i}, b"x" * 500).number, flush=True)
"""


def appending(path: Path | str, name: str, count: int) -> "subprocess.Popen[bytes]":
    return subprocess.Popen(
        [sys.executable, "-c", _PROGRAM, str(path), name, str(count)],
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(SOURCE)},
    )


def test_two_processes_append_to_one_file(tmp_path: Path) -> None:
    """Both create it at the same moment; none of their events is lost or doubled."""
    processes = [appending(tmp_path / "e", name, 150) for name in "ab"]
    acknowledged = [[int(line) for line in process.communicate()[0].split()] for process in processes]
    assert [process.returncode for process in processes] == [0, 0]
    with EventStore(tmp_path / "e") as store:
        events = list(store.events("s"))
        for name, theirs in zip("ab", acknowledged, strict=True):
            mine = [event for event in events if event.key.startswith(name)]
            assert [event.number for event in mine] == theirs
            assert [event.payload["i"] for event in mine] == list(range(150))
        assert len(events) == 300
        assert store.check() == []


def test_a_reader_sees_what_another_process_appends_and_does_not_stop_it(store: EventStore) -> None:
    reader = sqlite3.connect(store.path, isolation_level=None)
    fill(store, 3)
    reader.execute("BEGIN")
    reader.execute("SELECT count(*) FROM events").fetchone()  # a read transaction that stays open
    assert store.append("s", "row", "new").number == 4
    reader.close()


def test_after_kill_9_everything_acknowledged_is_there_and_nothing_is_half(tmp_path: Path) -> None:
    for attempt in range(4):
        with appending(tmp_path / "e", f"run {attempt}", 1_000_000) as process:
            assert process.stdout is not None
            first = process.stdout.readline()
            time.sleep(0.013 * attempt)
            process.kill()
            acknowledged = int((first + process.stdout.read()).split()[-1])
        with EventStore(tmp_path / "e") as store:
            assert store.check() == []
            assert acknowledged <= store.last("s") <= acknowledged + 1  # one may be written and not yet acknowledged
            assert numbers(store) == list(range(1, store.last("s") + 1))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_process_must_open_the_file_anew(store: EventStore) -> None:
    child = os.fork()
    if child == 0:
        try:
            store.append("s", "k", "a")
        except EventStoreError as error:
            os._exit(7 if "fork" in str(error) else 8)
        os._exit(9)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    assert store.append("s", "k", "a").number == 1


# Files that are not as they should be


def append_small_and_too_big(store: EventStore) -> None:
    with store.transaction():
        store.append("s", "row", "small")
        with pytest.raises(EventStoreError, match="disk is full"):
            store.append("s", "row", "big", {}, bytes(100_000))
        store.append("s", "row", "after")


def test_a_full_disk_writes_nothing_and_the_store_goes_on(store: EventStore) -> None:
    fill(store, 10)
    connection = store._database._connection
    assert connection is not None
    (pages,) = connection.execute("PRAGMA page_count").fetchone()
    connection.execute(f"PRAGMA max_page_count = {pages}")
    with pytest.raises(EventStoreError, match="the disk is full; nothing was written") as caught:
        store.append("s", "row", "big", {}, bytes(100_000))
    assert caught.value.errno == errno.ENOSPC
    with pytest.raises(EventStoreError, match="an earlier error has undone this transaction"):
        append_small_and_too_big(store)
    assert numbers(store) == list(range(1, 11))
    connection.execute("PRAGMA max_page_count = 1000000")
    assert store.append("s", "row", "big", {}, bytes(100_000)).number == 11
    assert store.check() == []


@contextmanager
def without_rights() -> Iterator[None]:
    """Root may write everywhere, so this needs another user."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="needs permissions of POSIX")
def test_a_read_only_folder_or_file() -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "events.sqlite"
        os.chmod(folder, 0o555)
        with without_rights(), pytest.raises(EventStoreError, match="can't be opened"):
            EventStore(path)
        os.chmod(folder, 0o755)
        EventStore(path).close()
        os.chmod(path, 0o444)
        os.chmod(folder, 0o555)
        with without_rights(), pytest.raises(EventStoreError, match=r"read-only|can't be opened"):
            EventStore(path)
        os.chmod(folder, 0o755)


def test_a_store_that_becomes_read_only(store: EventStore) -> None:
    fill(store, 2)
    connection = store._database._connection
    assert connection is not None
    connection.execute("PRAGMA query_only = 1")
    with pytest.raises(EventStoreError, match="read-only; nothing was written") as caught:
        store.append("s", "row", "new")
    assert caught.value.errno == errno.EROFS
    assert numbers(store) == [1, 2]


def test_a_file_that_another_process_keeps_locked(store: EventStore) -> None:
    other = sqlite3.connect(store.path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with EventStore(store.path, timeout=0.05) as waiting:
        with pytest.raises(EventStoreError, match="locked for too long; nothing was written") as caught:
            waiting.append("s", "k", "a")
        assert caught.value.errno == errno.EAGAIN
        other.execute("ROLLBACK")
        assert waiting.append("s", "k", "a").number == 1
    other.close()


def test_what_is_no_event_store_is_refused_and_left_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("a,b\n1,2\n" * 1000)
    (tmp_path / "short").write_text("hello")
    with sqlite3.connect(tmp_path / "database") as other:
        other.execute("CREATE TABLE t (x)")
    other.close()
    for name, words in (
        ("text", "not an event store"),
        ("short", "not an event store"),
        ("database", "another program"),
    ):
        before = (tmp_path / name).read_bytes()
        with pytest.raises(EventStoreError, match=words) as caught:
            EventStore(tmp_path / name)
        assert caught.value.filename == str(tmp_path / name)
        assert (tmp_path / name).read_bytes() == before
    with pytest.raises(EventStoreError, match="the path of a file is needed"):
        EventStore(tmp_path)
    with pytest.raises(EventStoreError, match=r"folder .* does not exist"):
        EventStore(tmp_path / "none" / "e")
    assert sorted(os.listdir(tmp_path)) == ["database", "short", "text"]


@pytest.mark.parametrize(("version", "which"), [(3, "a newer onepass"), (1, "the onepass that wrote it")])
def test_a_file_of_another_version_is_refused(tmp_path: Path, version: int, which: str) -> None:
    EventStore(tmp_path / "e").close()
    with sqlite3.connect(tmp_path / "e") as other:
        other.execute(f"PRAGMA user_version = {version}")
    other.close()
    with pytest.raises(EventStoreError, match=f"of version {version}, and this onepass reads version 2; use {which}"):
        EventStore(tmp_path / "e")


def test_an_empty_file_becomes_a_store(tmp_path: Path) -> None:
    """It is what a process leaves that was killed while it created the file."""
    (tmp_path / "e").touch()
    with EventStore(tmp_path / "e") as store:
        assert store.append("s", "k", "a").number == 1


def test_a_closed_store_says_so(store: EventStore) -> None:
    store.close()
    store.close()
    with pytest.raises(EventStoreError, match="closed; open it again"):
        store.last("s")


def replayed(path: Path) -> list[Event] | None:
    """All events of a file, or None if it is refused."""
    try:
        with EventStore(path) as store:
            events = list(store.events("s"))
            return None if store.check() else events
    except EventStoreError:
        return None


def copied(store: EventStore) -> dict[str, bytes]:
    """The files of a store as a crash leaves them, by the ends of their names."""
    return {
        end: Path(store.path + end).read_bytes() for end in ("", "-wal", "-tail") if os.path.exists(store.path + end)
    }


def replayed_files(folder: Path, files: Mapping[str, bytes]) -> list[Event] | None:
    with tempfile.TemporaryDirectory(dir=folder) as place:
        for end, content in files.items():
            Path(place, f"e{end}").write_bytes(content)
        return replayed(Path(place, "e"))


@pytest.mark.parametrize(("end", "step", "at_least"), [("", 1000, 100), ("-wal", 1000, 140), ("-tail", 100, 0)])
def test_damage_anywhere_is_refused_or_harmless(tmp_path: Path, end: str, step: int, at_least: int) -> None:
    """Flips a byte all along each file, and cuts it at many lengths: never other events than those written.

    SQLite itself reads its log up to the first damage and drops what was acknowledged later without a word.
    """
    with EventStore(tmp_path / "e", clock=lambda: 1.0) as store:
        for i in range(4):
            fill(store, 10 * i + 10)
            store.save_snapshot("s", store.last("s"), b"model" * 100)
        written, sound = list(store.events("s")), copied(store)
    if not end:
        sound = copied(store)  # the log is in the file now
    assert replayed_files(tmp_path, sound) == written
    generator = np.random.default_rng(0)
    used = np.flatnonzero(np.frombuffer(sound[end], np.uint8))  # the rest is padding
    refused = 0
    for place in [*range(0, 100, 7), *generator.choice(used, min(150, len(used)), replace=False)]:
        content = bytearray(sound[end])
        content[place] ^= 1 << int(generator.integers(8))
        found = replayed_files(tmp_path, {**sound, end: bytes(content)})
        assert found is None or found == written
        refused += found is None
    assert refused >= at_least
    for length in [1, *range(0, len(sound[end]), step)]:
        found = replayed_files(tmp_path, {**sound, end: sound[end][:length]})
        assert found in (None, written)  # the last page may end with padding


def test_what_is_gone_from_the_end_is_counted_and_the_way_out_is_named(tmp_path: Path) -> None:
    with EventStore(tmp_path / "e") as store:
        fill(store, 2)
        early = copied(store)
        store.append("s", "row", "new")
        assert store.forget("s", "0") == 1  # would come back with the lost end
    for end in ("", "-wal"):
        Path(store.path + end).write_bytes(early[end])
    words = r"2 transactions that were acknowledged are gone .* opens once e-tail is deleted"
    for _ in range(2):  # the first refusal makes nothing worse
        with pytest.raises(EventStoreError, match=words):
            EventStore(tmp_path / "e")
    (tmp_path / "e-tail").unlink()
    with EventStore(tmp_path / "e") as older:
        assert numbers(older) == [1, 2]


def test_a_deleted_store_can_begin_anew(tmp_path: Path) -> None:
    for _ in range(2):
        with EventStore(tmp_path / "e") as store:
            fill(store, 2)
        (tmp_path / "e").unlink()


def test_with_relaxed_durability_nothing_is_noted_that_a_power_cut_may_take(tmp_path: Path) -> None:
    with EventStore(tmp_path / "e") as store:
        fill(store, 2)
        early = copied(store)
        with EventStore(tmp_path / "e", durability="relaxed") as relaxed:
            relaxed.append("s", "row", "new")
    assert replayed_files(tmp_path, early) is not None
    assert (tmp_path / "e-tail").read_bytes() == early["-tail"]


@pytest.mark.skipif(os.name == "nt", reason="Windows keeps open files")
@pytest.mark.parametrize("end", ["", "-wal"])
@pytest.mark.parametrize("replaced", [False, True])
def test_a_file_that_was_deleted_or_replaced_takes_nothing_more(store: EventStore, end: str, replaced: bool) -> None:
    fill(store, 2)
    content = Path(store.path + end).read_bytes()
    os.rename(store.path + end, store.path + "-moved")
    if replaced:
        Path(store.path + end).write_bytes(content)
    with pytest.raises(EventStoreError, match="deleted or replaced while it was open; nothing was written") as caught:
        store.append("s", "row", "new")
    assert caught.value.errno == errno.ESTALE
    os.rename(store.path + "-moved", store.path + end)
    assert store.append("s", "row", "new").number == 3


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="needs permissions of POSIX")
def test_a_tail_of_another_user_is_named() -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "e"
        EventStore(path).close()
        os.chmod(folder, 0o777)
        os.chmod(path, 0o666)
        os.chmod(f"{path}-tail", 0o444)
        with without_rights(), pytest.raises(EventStoreError, match=r"readable and writable: .*e-tail"):
            EventStore(path)


def changed(store: EventStore, statement: str) -> None:
    """Change the tables behind the store's back."""
    with sqlite3.connect(store.path) as connection:
        connection.execute(statement)
    connection.close()


def test_a_changed_or_missing_event_is_named(store: EventStore) -> None:
    fill(store, 5)
    changed(store, "UPDATE events SET payload = '{\"i\":9}' WHERE number = 3")
    with pytest.raises(EventStoreError, match="event 3 of stream 's' is not what was written"):
        list(store.events("s"))
    with pytest.raises(EventStoreError, match="event 3"):
        store.find("s", "row", "2")
    assert store.check() == ["stream 's': event 3 is not what was written"]
    changed(store, "DELETE FROM events WHERE number = 3")
    with pytest.raises(EventStoreError, match="event 3 of stream 's' is missing"):
        list(store.events("s", kinds=["none"]))
    assert store.check() == ["stream 's': event 4 comes after event 2"]
    with pytest.raises(EventStoreError, match="ends with event 5, and those up to 8 are missing"):
        store.events("s", after=8)


# Snapshots


def test_snapshots_stand_at_an_event_and_three_are_kept(store: EventStore) -> None:
    assert store.latest_snapshot("s") is None
    store.save_snapshot("s", 0, b"start")
    fill(store, 5)
    for after in (1, 2, 4):
        store.save_snapshot("s", after, b"state %d" % after)
    latest = store.latest_snapshot("s")
    assert latest == Snapshot("s", 4, b"state 4", 1.5)
    assert numbers(store, after=latest.after) == [5]
    with sqlite3.connect(store.path) as connection:
        assert connection.execute("SELECT after FROM snapshots").fetchall() == [(1,), (2,), (4,)]
    connection.close()
    store.save_snapshot("s", 4, b"again")
    assert store.latest_snapshot("s") == Snapshot("s", 4, b"again", 1.5)
    for wrong in (3, 6):
        with pytest.raises(ValueError, match=f"from 4, .* to 5, the last event, got {wrong}"):
            store.save_snapshot("s", wrong, b"")


def test_a_damaged_snapshot_gives_way_to_the_one_before(store: EventStore) -> None:
    fill(store, 3)
    for after in (1, 2, 3):
        store.save_snapshot("s", after, b"state %d" % after)
    changed(store, "UPDATE snapshots SET content = x'00' WHERE after = 3")
    with pytest.warns(RuntimeWarning, match="stream 's' after event 3 is damaged; using the one before"):
        assert store.latest_snapshot("s") == Snapshot("s", 2, b"state 2", 1.5)
    assert store.check() == ["stream 's': the snapshot after event 3 is not what was written"]
    changed(store, "UPDATE snapshots SET content = x'00'")
    with pytest.warns(RuntimeWarning, match="damaged"):
        assert store.latest_snapshot("s") is None


def test_a_snapshot_shows_that_the_last_events_are_lost(store: EventStore) -> None:
    fill(store, 3)
    store.save_snapshot("s", 3, b"")
    changed(store, "DELETE FROM events WHERE number > 1")
    with pytest.raises(EventStoreError, match="ends with event 1, its snapshot stands at 3"):
        store.latest_snapshot("s")
    assert store.check() == ["stream 's': a snapshot stands at event 3, but the last event is 1"]


def kept(store: EventStore) -> list[int]:
    with sqlite3.connect(store.path) as connection:
        rows = connection.execute("SELECT after FROM snapshots ORDER BY after").fetchall()
    connection.close()
    return [after for (after,) in rows]


def test_a_pinned_snapshot_is_kept_until_it_is_deleted(store: EventStore) -> None:
    fill(store, 10)
    store.save_snapshot("s", 1, b"one", pinned=True)
    for after in (2, 3, 4, 5):
        store.save_snapshot("s", after, b"state")
    assert kept(store) == [1, 3, 4, 5]
    store.save_snapshot("s", 5, b"five", pinned=True)
    store.save_snapshot("s", 5, b"again")
    assert store.latest_snapshot("s") == Snapshot("s", 5, b"again", 1.5, pinned=True)
    store.save_snapshot("s", 6, b"six")
    assert kept(store) == [1, 3, 4, 5, 6]
    store.prune("s", before=7)
    assert kept(store) == [1, 5, 6]
    assert store.delete_snapshot("s", 1)
    assert not store.delete_snapshot("s", 1)
    with pytest.raises(ValueError, match="events 1 to 6 of stream 's' were pruned, and no other snapshot"):
        store.delete_snapshot("s", 6)
    assert kept(store) == [5, 6]
    assert store.check() == []
    changed(store, "UPDATE snapshots SET pinned = 0 WHERE after = 5")
    assert store.check() == ["stream 's': the snapshot after event 5 is not what was written"]


def test_the_way_back_to_an_earlier_version(store: EventStore) -> None:
    fill(store, 10)
    for after in (2, 5, 9):
        store.save_snapshot("s", after, b"state %d" % after, pinned=after == 2)
    standing = [store.snapshot_before("s", number) for number in (1, 2, 4, 5, 8, 9, 10)]
    assert [found and found.after for found in standing] == [None, 2, 2, 5, 5, 9, 9]
    assert [event.number for event in store.events("s", 2, until=4)] == [3, 4]
    assert [event.number for event in store.events("s", 2, ["none"], until=4)] == []
    assert list(store.events("s", 4, until=4)) == list(store.events("s", 4, until=2)) == []
    with pytest.raises(EventStoreError, match="ends with event 10, and those up to 11 are missing"):
        store.events("s", 2, until=11)
    store.prune("s", before=8)
    assert list(store.events("s", 2, until=2)) == []  # a pinned snapshot needs no events
    with pytest.raises(EventStoreError, match="events 1 to 7 of stream 's' were pruned"):
        store.events("s", 2, until=3)
    changed(store, "UPDATE snapshots SET content = x'00' WHERE after = 9")
    with pytest.warns(RuntimeWarning, match="after event 9 is damaged"):
        assert store.snapshot_before("s", 10) == Snapshot("s", 2, b"state 2", 1.5, pinned=True)


# Waiting for others


def test_open_keys_are_those_without_a_counterpart(store: EventStore) -> None:
    for i in range(250):  # more than are read at once
        store.append("s", "prediction", f"p{i}", {"mean": i}, b"x", time=i)
    for i in range(0, 250, 2):
        store.append("s", "label", f"p{i}", {"y": 1})
    store.append("s", "label", "early", {"y": 1}, time=7)
    store.append("t", "label", "p1", {"y": 1})  # of another stream
    store.erase("s", "prediction", "p3")
    store.forget("s", "p5")
    waiting = list(store.open_keys("s", "prediction", without="label"))
    assert waiting == [(f"p{i}", float(i)) for i in range(1, 250, 2) if i not in (3, 5)]
    assert list(store.open_keys("s", "label", without="prediction")) == [("early", 7.0)]


# Deleting


def test_erasing_deletes_the_blob_and_keeps_the_payload(store: EventStore) -> None:
    fill(store, 3)
    store.append("s", "prediction", "a", {"mean": 0.1}, b"SECRET" * 2000)
    assert store.erase("s", "prediction", "a")
    assert not store.erase("s", "prediction", "a")
    assert not store.erase("s", "label", "a")
    gone = Event(4, "s", "prediction", "a", {"mean": 0.1}, b"", 1.5, erased=True)
    assert store.find("s", "prediction", "a") == gone
    assert store.append("s", "prediction", "a", {"mean": 0.2}, b"other") == gone
    assert store.check() == []
    changed(store, "UPDATE events SET blob = x'' WHERE number = 4")
    assert store.check() == ["stream 's': event 4 is not what was written"]
    changed(store, "UPDATE events SET blob = NULL WHERE number = 4")
    assert store.forget("s", "a") == 1
    assert store.check() == []


def test_what_was_erased_is_in_no_file_once_the_log_is_emptied(store: EventStore) -> None:
    store.append("s", "prediction", "a", {}, b"SECRET" * 2000)
    store.erase("s", "prediction", "a")
    store.close()
    for file in Path(store.path).parent.iterdir():
        assert b"SECRET" not in file.read_bytes()


def test_forgetting_leaves_no_trace_of_the_content_in_any_file(store: EventStore) -> None:
    fill(store, 50)
    secret = b"SECRET" * 2000
    store.append("s", "prediction", "a", {"name": "SECRET"}, secret)
    store.append("s", "label", "a", {"name": "SECRET"})
    store.append("t", "label", "a", {"y": 1})
    assert store.forget("s", "a") == 2
    assert store.forget("s", "a") == store.forget("s", "none") == 0
    for file in Path(store.path).parent.iterdir():
        assert b"SECRET" not in file.read_bytes()
    assert store.append("s", "label", "a", {"name": "SECRET"}) == (52, "s", "label", "a", {}, b"", 1.5, True, True)
    assert [event.number for event in store.events("s") if event.forgotten] == [51, 52]
    found = store.find("t", "label", "a")
    assert found is not None
    assert found.payload == {"y": 1}
    assert store.check() == []


def test_pruned_numbers_are_not_used_again(store: EventStore) -> None:
    fill(store, 5)
    with pytest.raises(ValueError, match="save a snapshot first"):
        store.prune("s", before=2)
    store.save_snapshot("s", 2, b"old")
    store.save_snapshot("s", 5, b"new")
    assert store.prune("s", before=4) == 3
    assert store.prune("s", before=4) == store.prune("s", before=0) == 0
    assert numbers(store, after=3) == [4, 5]
    with pytest.raises(EventStoreError, match="events 1 to 3 of stream 's' were pruned"):
        store.events("s", after=2)
    with pytest.raises(ValueError, match="save a snapshot first"):
        store.prune("s", before=7)
    assert store.prune("s", before=6) == 2
    assert store.last("s") == 5
    assert store.append("s", "row", "0").number == 6
    assert store.check() == []


# Anything, in any order


class StoreAgainstLists(RuleBasedStateMachine):
    """Random calls, also with reopening, against a list of events per stream."""

    streams = st.sampled_from("st")
    kinds = st.sampled_from("kl")
    keys = st.sampled_from("abcde")

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        self.path = os.path.join(self.folder.name, "e")
        self.store = EventStore(self.path, durability="relaxed")
        self.model: dict[str, list[Event]] = {"s": [], "t": []}
        self.first = {"s": 0, "t": 0}
        self.snapshot: dict[str, tuple[int, bytes] | None] = {"s": None, "t": None}

    def expect(self, stream: str, kind: str, key: str, y: int) -> Event | None:
        """What appending has to return, with the model brought up to date; None for a conflict."""
        for event in self.model[stream][self.first[stream] :]:
            if (event.kind, event.key) == (kind, key):
                return event if event.erased or event.payload == {"y": y} else None
        event = Event(len(self.model[stream]) + 1, stream, kind, key, {"y": y}, b"x", 0.0)
        self.model[stream].append(event)
        return event

    @rule(stream=streams, kind=kinds, key=keys, y=st.integers(0, 1))
    def append(self, stream: str, kind: str, key: str, y: int) -> None:
        expected = self.expect(stream, kind, key, y)
        if expected is not None:
            assert self.store.append(stream, kind, key, {"y": y}, b"x", time=0.0) == expected
        else:
            with pytest.raises(ConflictError):
                self.store.append(stream, kind, key, {"y": y}, b"x", time=0.0)

    @rule(stream=streams, key=keys)
    def begin_and_fail(self, stream: str, key: str) -> None:
        with undone(self.store):
            self.store.append(stream, "never", key)
            self.store.forget(stream, key)

    @rule(stream=streams, key=keys)
    def forget(self, stream: str, key: str) -> None:
        events, first = self.model[stream], self.first[stream]
        found = [i for i, event in enumerate(events) if i >= first and event.key == key and not event.forgotten]
        for i in found:
            events[i] = events[i]._replace(payload={}, blob=b"", forgotten=True, erased=True)
        assert self.store.forget(stream, key) == len(found)

    @rule(stream=streams, kind=kinds, key=keys)
    def erase(self, stream: str, kind: str, key: str) -> None:
        events, first = self.model[stream], self.first[stream]
        names = [(event.kind, event.key) if i >= first and not event.erased else None for i, event in enumerate(events)]
        if self.store.erase(stream, kind, key):
            place = names.index((kind, key))
            events[place] = events[place]._replace(blob=b"", erased=True)
        else:
            assert (kind, key) not in names

    @rule(stream=streams)
    def open_keys(self, stream: str) -> None:
        events = self.model[stream][self.first[stream] :]
        labels = {event.key for event in events if event.kind == "l"}
        waiting = [event.key for event in events if event.kind == "k" and not event.erased and event.key not in labels]
        assert [key for key, _ in self.store.open_keys(stream, "k", without="l")] == waiting

    @rule(stream=streams, content=st.binary(max_size=3))
    def save_snapshot(self, stream: str, content: bytes) -> None:
        after = len(self.model[stream])
        self.snapshot[stream] = (after, content)
        self.store.save_snapshot(stream, after, content)

    @precondition(lambda self: self.snapshot["s"] is not None)
    @rule(fewer=st.integers(0, 2))
    def prune(self, fewer: int) -> None:
        assert self.snapshot["s"] is not None
        self.first["s"] = max(self.first["s"], self.snapshot["s"][0] - fewer)
        self.store.prune("s", self.snapshot["s"][0] - fewer + 1 if self.snapshot["s"][0] >= fewer else 0)

    @rule()
    def reopen(self) -> None:
        self.store.close()
        self.store = EventStore(self.path, durability="relaxed")

    @invariant()
    def has_the_events_of_the_model(self) -> None:
        for stream, events in self.model.items():
            first, latest = self.first[stream], self.store.latest_snapshot(stream)
            assert list(self.store.events(stream, after=first)) == events[first:]
            assert self.store.last(stream) == len(events)
            assert (latest and (latest.after, latest.content)) == self.snapshot[stream]

    def teardown(self) -> None:
        assert self.store.check() == []
        self.store.close()
        self.folder.cleanup()


TestStoreAgainstLists = StoreAgainstLists.TestCase
TestStoreAgainstLists.settings = settings(max_examples=25, stateful_step_count=25, deadline=None)
