"""The event store in a SQLite file: kill -9, full disks, and files that are not as they should be."""

import errno
import os
import sqlite3
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from onepass.events import Event, EventStore, EventStoreError
from onepass.events.sqlite.database import SQLiteDatabase
from tests.helpers.events import appending, fill, in_threads, numbers, undone


@pytest.fixture
def store(tmp_path: Path) -> Iterator[EventStore]:
    with EventStore(tmp_path / "events.sqlite", clock=lambda: 1.5) as opened:
        yield opened


def connection_of(store: EventStore) -> sqlite3.Connection:
    assert isinstance(store._database, SQLiteDatabase)
    return store._database._opened()


def test_a_new_file_may_be_opened_many_times_at_once(tmp_path: Path) -> None:
    together = threading.Barrier(4, timeout=60)

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
    last, within = SQLiteDatabase.last, set[bool]()

    def watched(database: SQLiteDatabase, stream: str) -> int:
        within.add(database._in_transaction())
        return last(database, stream)

    monkeypatch.setattr(SQLiteDatabase, "last", watched)
    other = threading.Thread(target=store.append, args=("s", "k", "b"))
    with undone(store):
        store.append("s", "k", "a")
        other.start()
        time.sleep(0.02)
    other.join()
    assert within == {True}
    monkeypatch.undo()
    assert [(event.number, event.key) for event in store.events("s")] == [(1, "b")]


def test_opening_tries_again_while_the_log_cannot_be_set_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not on every system does SQLite wait by itself with this one statement."""
    run, refusals = SQLiteDatabase._run, [1, 2]

    def refusing(database: SQLiteDatabase, statement: str, *values: Mapping[str, Any]) -> list[tuple[Any, ...]]:
        if "journal_mode" in statement and refusals:
            raise EventStoreError(errno.EAGAIN, f"refused {refusals.pop()} more times", database.address)
        return run(database, statement, *values)

    monkeypatch.setattr(SQLiteDatabase, "_run", refusing)
    with pytest.raises(EventStoreError, match="refused 2 more"):
        EventStore(tmp_path / "e", timeout=1e-9)
    EventStore(tmp_path / "e").close()
    assert not refusals


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


def append_small_and_too_big(store: EventStore) -> None:
    with store.transaction():
        store.append("s", "row", "small")
        with pytest.raises(EventStoreError, match="disk is full"):
            store.append("s", "row", "big", {}, bytes(100_000))
        store.append("s", "row", "after")


def test_a_full_disk_writes_nothing_and_the_store_goes_on(store: EventStore) -> None:
    fill(store, 10)
    connection = connection_of(store)
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
    connection = connection_of(store)
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


@pytest.mark.parametrize(("version", "which"), [(5, "a newer onepass"), (3, "the onepass that wrote it")])
def test_a_file_of_another_version_is_refused(tmp_path: Path, version: int, which: str) -> None:
    EventStore(tmp_path / "e").close()
    with sqlite3.connect(tmp_path / "e") as other:
        other.execute(f"PRAGMA user_version = {version}")
    other.close()
    with pytest.raises(EventStoreError, match=f"has version {version}, and this onepass reads version 4; use {which}"):
        EventStore(tmp_path / "e")


def test_an_empty_file_becomes_a_store(tmp_path: Path) -> None:
    """It is what a process leaves that was killed while it created the file."""
    (tmp_path / "e").touch()
    with EventStore(tmp_path / "e") as store:
        assert store.append("s", "k", "a").number == 1


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
    words = r"2 transactions that were acknowledged are gone .*; if you have just restored a backup, delete e-tail: "
    for _ in range(2):  # the first refusal makes nothing worse
        with pytest.raises(EventStoreError, match=words):
            EventStore(tmp_path / "e")
    (tmp_path / "e-tail").unlink()
    with EventStore(tmp_path / "e") as older:
        assert numbers(older) == [1, 2]


def test_a_store_that_is_gone_is_not_taken_for_a_new_one(tmp_path: Path) -> None:
    with EventStore(tmp_path / "e") as store:
        fill(store, 2)
    kept = (tmp_path / "e").read_bytes()
    (tmp_path / "e").unlink()
    words = "the file is missing, and it had events, as can be seen from e-tail; put it back; or move e-tail away and"
    for _ in range(2):  # the first refusal makes nothing worse
        with pytest.raises(EventStoreError, match=words) as caught:
            EventStore(tmp_path / "e")
        assert caught.value.errno == errno.ENOENT
        assert not (tmp_path / "e").exists()
    (tmp_path / "e").write_bytes(kept)
    with EventStore(tmp_path / "e") as store:
        assert numbers(store) == [1, 2]
    for name in ("e", "e-tail"):
        (tmp_path / name).unlink()
    with EventStore(tmp_path / "e") as store:  # on purpose
        assert numbers(store) == []


def test_a_log_without_its_file_is_not_thrown_away(tmp_path: Path) -> None:
    with EventStore(tmp_path / "e", durability="relaxed") as store:
        fill(store, 2)
        log = (tmp_path / "e-wal").read_bytes()
    (tmp_path / "e").unlink()
    (tmp_path / "e-wal").write_bytes(log)
    with pytest.raises(EventStoreError, match="as can be seen from e-wal"):
        EventStore(tmp_path / "e")
    assert (tmp_path / "e-wal").read_bytes() == log


def test_a_store_that_never_had_events_may_go(tmp_path: Path) -> None:
    for _ in range(2):
        EventStore(tmp_path / "e").close()
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


def test_what_was_erased_is_in_no_file_once_the_log_is_emptied(store: EventStore) -> None:
    store.append("s", "prediction", "a", {}, b"SECRET" * 2000)
    store.erase("s", "prediction", "a")
    store.close()
    for file in Path(store.path).parent.iterdir():
        assert b"SECRET" not in file.read_bytes()


def test_forgetting_leaves_no_trace_of_the_content_in_any_file(store: EventStore) -> None:
    fill(store, 50)
    store.append("s", "prediction", "a", {"name": "SECRET"}, b"SECRET" * 2000)
    assert store.forget("s", "a") == 1
    for file in Path(store.path).parent.iterdir():
        assert b"SECRET" not in file.read_bytes()


@pytest.mark.parametrize(
    ("statement", "words"),
    [
        ("DELETE FROM events WHERE number = 3", "ends with event 2, and was noted to end with 3"),
        ("UPDATE ends SET last = 2", "ends with event 3, and was noted to end with 2"),
        ("UPDATE ends SET checksum = x'00'", "ends with event 3, and was noted to end with 3"),
        ("DELETE FROM ends", "ends with event 3, and was noted to end with None"),
    ],
)
def test_the_loss_of_the_last_event_is_noticed(store: EventStore, statement: str, words: str) -> None:
    """No later number and no snapshot shows it, and the index by which events are found has no checksum."""
    fill(store, 3)
    fill(store, 2, "other")
    connection = store._database._connection  # type: ignore[attr-defined]
    connection.execute(f"{statement}{' AND' if 'WHERE' in statement else ' WHERE'} stream = 's'")
    for use in (lambda: store.events("s"), lambda: store.append("s", "row", "new"), lambda: store.last("s")):
        with pytest.raises(EventStoreError, match=words):
            use()
    assert any(words in problem for problem in store.check())
    assert numbers(store, "other") == [1, 2]
    assert store.streams() == ["other", "s"]
