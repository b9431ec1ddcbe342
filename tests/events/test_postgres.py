"""The event store in PostgreSQL: a server that is killed, connections that are lost, and databases of others."""

import errno
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, suppress
from errno import ECONNREFUSED, ECONNRESET
from typing import Any

import psycopg
import pytest

from onepass.events import Event, EventLog, EventStoreError, open_event_log
from onepass.events.postgres import PostgresEventStore, listening
from onepass.events.postgres.database import PostgresDatabase
from onepass.events.postgres.words import in_plain_words
from onepass.files.lock import LockedError
from tests.helpers.events import PostgresPlace, fill, numbers, undone
from tests.helpers.postgres_server import OwnPostgresServer, PostgresServer
from tests.helpers.waiting import wait_until

LISTENING = "FROM pg_stat_activity WHERE datname = current_database() AND query LIKE 'LISTEN%'"


@pytest.fixture
def place(postgres: PostgresServer) -> PostgresPlace:
    found = PostgresPlace(postgres)
    found.clear()
    return found


def connection_of(store: EventLog) -> listening.Connection:
    assert isinstance(store._database, PostgresDatabase)
    assert store._database._connection is not None
    return store._database._connection


def cut_off(store: EventLog, place: PostgresPlace) -> None:
    """End the store's connection from the other side."""
    place.execute(f"SELECT pg_terminate_backend({connection_of(store).info.backend_pid}, 5000)")


def can_write(store: EventLog, name: str) -> bool:
    with suppress(LockedError), store.only_writer(name):
        return True
    return False


# Servers and connections that go away


def appended_in_spite_of_all(store: EventLog, key: str, until: float) -> Event:
    while True:
        try:
            return store.append("s", "row", key, {"key": key}, b"x" * 500)
        except EventStoreError as error:
            if error.errno not in (ECONNRESET, ECONNREFUSED) or time.monotonic() > until:
                raise
            time.sleep(0.02)


def test_a_killed_server_loses_nothing_acknowledged_and_has_nothing_twice(
    server: OwnPostgresServer, place: PostgresPlace
) -> None:
    acknowledged: dict[str, Event] = {}
    stores = {name: open_event_log(place.target) for name in "abc"}
    going, until = threading.Event(), time.monotonic() + 60
    going.set()

    def work(name: str) -> None:
        with stores[name] as store:
            for i in range(100_000):
                if not going.is_set():
                    return
                acknowledged[f"{name} {i}"] = appended_in_spite_of_all(store, f"{name} {i}", until)

    with ThreadPoolExecutor(3) as pool:
        working = [pool.submit(work, name) for name in stores]
        for pause in (0, 0.017, 0.031):
            before = len(acknowledged)
            while len(acknowledged) < before + 10 and not any(one.done() for one in working):
                time.sleep(0.01)
            time.sleep(pause)
            server.kill()
            server.start()
        going.clear()
        assert [one.result() for one in working] == [None] * 3
    with open_event_log(place.target) as store:
        events = {event.key: event for event in store.events("s")}
        assert events == acknowledged
        assert numbers(store) == list(range(1, len(acknowledged) + 1))
        assert store.check() == []


def test_a_transaction_whose_connection_is_lost_is_not_applied(place: PostgresPlace) -> None:
    with open_event_log(place.target) as store:
        with pytest.raises(EventStoreError, match="connection to the server was lost; nothing was ackn") as caught:
            lose_the_connection_within_a_transaction(store, place)
        assert caught.value.errno == ECONNRESET
        assert numbers(store) == []
        assert store.append("s", "k", "c").number == 1


def lose_the_connection_within_a_transaction(store: EventLog, place: PostgresPlace) -> None:
    with store.transaction():
        store.append("s", "k", "a")
        cut_off(store, place)
        try:
            store.append("s", "k", "b")
        finally:  # and whoever goes on in spite of it has no new transaction
            with pytest.raises(EventStoreError, match="an earlier error has undone this transaction"):
                store.append("s", "k", "c")


def test_a_connection_that_was_lost_meanwhile_is_made_again(place: PostgresPlace) -> None:
    with open_event_log(place.target, durability="relaxed") as store:
        fill(store, 2)
        cut_off(store, place)
        assert numbers(store) == [1, 2]
        cut_off(store, place)
        assert store.append("s", "row", "new").number == 3
        assert connection_of(store).execute("SHOW synchronous_commit").fetchone() == ("off",)


def test_a_server_that_is_away(server: OwnPostgresServer, place: PostgresPlace) -> None:
    with open_event_log(place.target) as store:
        fill(store, 2)
        server.kill()
        answers: dict[str, int | None] = {}

        def is_refused() -> bool:
            key = f"try {len(answers)}"
            answers[key] = _refused(store, key)
            return answers[key] == ECONNREFUSED

        wait_until(is_refused, "the rest of the server to end")
        assert set(answers.values()) <= {None, ECONNREFUSED, ECONNRESET}
        server.start()
        there = {event.key for event in store.events("s", after=2)}
        assert {key for key, refused in answers.items() if refused is None} <= there  # no acknowledged one is lost
        for key in answers:  # whatever came of those that were refused, they can be tried again
            store.append("s", "row", key)
        assert [event.key for event in store.events("s", after=2)] == [
            *(key for key in answers if key in there),
            *(key for key in answers if key not in there),
        ]
        assert store.check() == []


def _refused(store: EventLog, key: str) -> int | None:
    """The number of the error with which an append is refused; none while a process of the server outlives it."""
    try:
        store.append("s", "row", key)
    except EventStoreError as error:
        return error.errno
    return None


@pytest.mark.parametrize("arrives", [True, False], ids=["it arrived", "it did not arrive"])
def test_an_append_whose_commit_was_cut_off_is_not_acknowledged_and_can_be_tried_again(
    place: PostgresPlace, monkeypatch: pytest.MonkeyPatch, arrives: bool
) -> None:
    """Whether the server has carried out the last COMMIT of a connection that was lost is unknown to its client."""
    run = PostgresDatabase._run_once

    def cut(database: PostgresDatabase, statement: str, *values: Any) -> list[tuple[Any, ...]]:
        if statement != "COMMIT":
            return run(database, statement, *values)
        if arrives:
            run(database, statement, *values)
        cut_off(store, place)
        return run(database, "SELECT 1")  # the answer that does not come

    with open_event_log(place.target) as store:
        fill(store, 2)
        monkeypatch.setattr(PostgresDatabase, "_run_once", cut)
        assert _refused(store, "new") == ECONNRESET
        monkeypatch.undo()
        assert numbers(store) == ([1, 2, 3] if arrives else [1, 2])
        assert [store.append("s", "row", key).number for key in ("new", "new", "next")] == [3, 3, 4]


def test_a_writer_that_was_cut_off_is_the_writer_again_unless_another_is(place: PostgresPlace) -> None:
    with open_event_log(place.target) as store, open_event_log(place.target) as other:
        with store.only_writer("price"):
            cut_off(store, place)
            assert store.last("s") == 0
            with pytest.raises(LockedError), other.only_writer("price"):
                pass
            cut_off(store, place)
            with other.only_writer("price"):
                for _ in range(2):
                    with pytest.raises(EventStoreError, match="is the writer of 'price' now"):
                        store.append("s", "k", "a")
            assert store.append("s", "k", "a").number == 1
        with other.only_writer("price"):
            pass


def test_a_writer_within_a_failed_transaction_gives_the_lock_back(place: PostgresPlace) -> None:
    def fail(store: EventLog) -> None:
        with store.transaction(), store.only_writer("price"):
            store.append("s", "k", os.urandom(3000).hex())  # too large

    with open_event_log(place.target) as store, open_event_log(place.target) as other:
        with pytest.raises(EventStoreError, match="larger than"):
            fail(store)
        assert store.append("s", "k", "a").number == 1
        wait_until(lambda: can_write(other, "price"), "the server to see that a connection is closed")


def test_the_server_tells_of_new_events(place: PostgresPlace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listening, "_LONGEST", 60)
    with (
        open_event_log(place.target) as store,
        open_event_log(place.target) as other,
        ThreadPoolExecutor() as pool,
    ):
        waiting = [pool.submit(store.wait, "s", 0, 60) for _ in range(3)]
        time.sleep(0.1)
        other.append("s", "k", "a")
        assert [one.result(60) for one in waiting] == [True] * 3


def test_waiting_goes_on_when_its_connection_is_lost(place: PostgresPlace) -> None:
    with open_event_log(place.target) as store, ThreadPoolExecutor() as pool:
        waiting = pool.submit(store.wait, "s", 0, 60)
        time.sleep(0.1)
        place.execute(f"SELECT pg_terminate_backend(pid) {LISTENING}")
        time.sleep(0.1)
        assert not waiting.done()
        with open_event_log(place.target) as other:
            other.append("s", "k", "a")
        assert waiting.result(60)


def test_closing_ends_the_waiting_of_other_threads(place: PostgresPlace) -> None:
    store = open_event_log(place.target)
    with ThreadPoolExecutor() as pool:
        waiting = pool.submit(store.wait, "s", 0, 60)
        time.sleep(0.1)
        store.close()
        with pytest.raises(EventStoreError, match="closed"):
            waiting.result(60)
    wait_until(
        lambda: place.execute(f"SELECT count(*) {LISTENING}") == [(0,)], "the server to notice that nobody listens"
    )


# Other processes


def test_those_who_wait_too_long_for_a_stream_are_told_and_other_streams_are_free(place: PostgresPlace) -> None:
    with open_event_log(place.target) as store, open_event_log(place.target, timeout=0.05) as other:
        with store.transaction():
            store.append("s", "k", "a")
            with pytest.raises(EventStoreError, match="kept the stream locked for too long; nothing was") as caught:
                other.append("s", "k", "b")
            assert caught.value.errno == errno.EAGAIN
            assert other.append("t", "k", "b").number == 1
        assert other.append("s", "k", "b").number == 2


def test_a_part_that_was_undone_has_given_its_turn_back(place: PostgresPlace) -> None:
    """Within the transaction the stream is then locked anew, or two would take the same number."""
    with open_event_log(place.target) as store, open_event_log(place.target) as other, ThreadPoolExecutor() as pool:
        with store.transaction():
            with undone(store):
                store.append("s", "k", "a")
            store.append("s", "k", "b")
            waiting = pool.submit(other.append, "s", "k", "c")
            time.sleep(0.1)
        assert waiting.result(60).number == 2
        assert [event.key for event in store.events("s")] == ["b", "c"]


def test_two_who_write_to_two_streams_in_turned_order_do_not_wait_for_ever(place: PostgresPlace) -> None:
    together = threading.Barrier(2, timeout=60)

    def work(streams: str) -> None:
        with open_event_log(place.target) as store, store.transaction():
            store.append(streams[0], "k", streams)
            together.wait()
            store.append(streams[1], "k", streams)

    with ThreadPoolExecutor(2) as pool:
        (error,) = filter(None, [one.exception() for one in [pool.submit(work, streams) for streams in ("st", "ts")]])
    assert "in another order; nothing was written" in str(error)
    with open_event_log(place.target) as store:
        assert store.last("s") == store.last("t") == 1


def test_the_default_isolation_of_a_server_does_not_matter(place: PostgresPlace) -> None:
    """Who has waited for the turn must see what was written meanwhile."""
    target = f"{place.target}&options=-cdefault_transaction_isolation%3Dserializable"
    with open_event_log(target) as store, open_event_log(target) as other, ThreadPoolExecutor() as pool:
        with store.transaction():
            store.append("s", "k", "a")
            waiting = pool.submit(other.append, "s", "k", "b")
            time.sleep(0.1)
            store.append("s", "k", "c")
        assert waiting.result(60).number == 3


# Servers and databases that are not as they should be


@contextmanager
def existing(place: PostgresPlace, what: str, *endings: str) -> Iterator[None]:
    """A database or a role that is there for the length of the block."""
    place.execute(f"CREATE {what}")
    try:
        yield
    finally:
        for statement in endings:
            place.execute(statement)


def database(place: PostgresPlace, name: str, options: str) -> AbstractContextManager[None]:
    return existing(place, f"DATABASE {name} TEMPLATE template0 {options}", f"DROP DATABASE {name} WITH (FORCE)")


def user(place: PostgresPlace, name: str, options: str = "") -> AbstractContextManager[None]:
    return existing(place, f"ROLE {name} LOGIN {options}", f"DROP OWNED BY {name}", f"DROP ROLE {name}")


def test_a_wrong_password_is_refused_and_never_shown(server: OwnPostgresServer, place: PostgresPlace) -> None:
    with user(place, "locked", "PASSWORD 'right'"):
        place.execute("GRANT CREATE ON DATABASE postgres TO locked")
        for password in (":SECRET", ""):
            with pytest.raises(EventStoreError, match=r"the server can't be used: .*password") as caught:
                open_event_log(server.address(f"locked{password}"))
            assert caught.value.errno == errno.EACCES
            assert "SECRET" not in str(caught.value)
            assert caught.value.filename.startswith("postgresql://locked@")
        with open_event_log(server.address("locked:right")) as store:
            assert store.append("s", "k", "a").number == 1
            assert "right" not in store.address + repr(store)
        place.clear()


def test_an_address_that_is_none(postgres: PostgresServer) -> None:
    with pytest.raises(EventStoreError, match="the address must look like postgresql://") as caught:
        open_event_log("postgresql://me:SEC%ZZRET@host/name")
    assert "SEC" not in str(caught.value)
    with pytest.raises(EventStoreError, match='database "nowhere" does not exist') as caught:
        open_event_log(postgres.address(database="nowhere"))
    assert caught.value.errno == errno.ENOENT
    with pytest.raises(EventStoreError, match="the server can't be used") as caught:
        open_event_log("postgresql://127.0.0.1:1/name")
    assert caught.value.errno == ECONNREFUSED
    assert caught.value.filename == "postgresql://127.0.0.1:1/name"


def test_the_schema_of_another_program_is_refused_and_left_as_it_is(place: PostgresPlace) -> None:
    place.execute("CREATE SCHEMA onepass; CREATE TABLE onepass.events (x INTEGER)")
    with pytest.raises(EventStoreError, match="belongs to another program") as caught:
        open_event_log(place.target)
    assert caught.value.errno == errno.EINVAL
    place.execute("DROP TABLE onepass.events")
    with open_event_log(place.target) as store:  # an empty schema is one that was made for us
        assert store.append("s", "k", "a").number == 1
    place.execute("UPDATE event_log_version SET version = 7")
    with pytest.raises(EventStoreError, match="has version 7, and this onepass reads version 4; use a newer onepass"):
        open_event_log(place.target)


def test_users_without_rights(server: OwnPostgresServer, place: PostgresPlace) -> None:
    with user(place, "guest"):
        with pytest.raises(EventStoreError, match="the user has no right to do this") as caught:
            open_event_log(server.address("guest"))
        assert caught.value.errno == errno.EACCES
        with open_event_log(place.target) as store:
            fill(store, 2)
        with pytest.raises(EventStoreError, match="the user has no right to do this"):
            open_event_log(server.address("guest"))
        place.execute("GRANT USAGE ON SCHEMA onepass TO guest; GRANT SELECT ON ALL TABLES IN SCHEMA onepass TO guest")
        with open_event_log(server.address("guest")) as reader:
            assert numbers(reader) == [1, 2]
            with pytest.raises(EventStoreError, match="no right"):
                reader.append("s", "k", "a")


def test_a_read_only_server(place: PostgresPlace) -> None:
    with open_event_log(place.target) as store:
        fill(store, 2)
    with open_event_log(f"{place.target}&options=-cdefault_transaction_read_only%3Don") as store:
        assert numbers(store) == [1, 2]
        with pytest.raises(EventStoreError, match=r"the server is read-only.*; nothing was written") as caught:
            store.append("s", "k", "a")
        assert caught.value.errno == errno.EROFS


def test_a_database_in_another_encoding(server: OwnPostgresServer, place: PostgresPlace) -> None:
    with (
        database(place, "latin", "ENCODING 'LATIN1'"),
        pytest.raises(EventStoreError, match="the database is in LATIN1"),
    ):
        open_event_log(server.address(database="latin"))


def test_the_language_of_a_database_does_not_matter(server: OwnPostgresServer, place: PostgresPlace) -> None:
    with database(place, "english", "LOCALE_PROVIDER icu ICU_LOCALE 'en'"):
        ((first,),) = server.execute("SELECT min(x) FROM (VALUES ('B'), ('a')) AS names (x)", "english")
        assert first == "a"  # by the alphabet
        with open_event_log(server.address(database="english")) as store:
            for stream in "aBc":
                store.append(stream, "k", "a")
            assert store.streams() == ["B", "a", "c"]


def test_what_is_too_large_is_refused_in_words(place: PostgresPlace) -> None:
    name = os.urandom(3000).hex()
    with open_event_log(place.target) as store:
        with pytest.raises(EventStoreError, match="larger than PostgreSQL can store; nothing was written") as caught:
            store.append("s", "k", name)
        assert caught.value.errno == errno.EFBIG
        assert store.append("s", "k", "a").number == 1


@pytest.mark.parametrize(
    ("error", "number", "words"),
    [
        (psycopg.errors.DiskFull(), errno.ENOSPC, "disk is full; nothing was written"),
        (psycopg.errors.DataCorrupted(), errno.EBADMSG, "damaged; restore it from a backup"),
        (psycopg.errors.UniqueViolation(), errno.EBADMSG, "damaged"),
        (psycopg.errors.QueryCanceled(), errno.EAGAIN, "asked to stop; nothing was written"),
        (psycopg.errors.UndefinedTable("no such\ntable"), errno.EIO, "PostgreSQL reports 'no such'"),
    ],
)
def test_other_errors_in_words(error: psycopg.Error, number: int, words: str) -> None:
    found = in_plain_words(error, "postgresql://host/name")
    assert found.errno == number
    assert words in str(found)


@pytest.mark.parametrize(
    ("durability", "given", "used"),
    [("full", "on", "on"), ("full", "off", "on"), ("full", "remote_apply", "remote_apply"), ("relaxed", "on", "off")],
)
def test_durability_is_that_of_commits(place: PostgresPlace, durability: str, given: str, used: str) -> None:
    target = f"{place.target}&options=-csynchronous_commit%3D{given}"
    with open_event_log(target, durability=durability) as store:
        assert connection_of(store).execute("SHOW synchronous_commit").fetchone() == (used,)


@pytest.mark.usefixtures("server")
def test_a_server_that_never_waits_for_its_disk_is_no_durable_one(place: PostgresPlace) -> None:
    place.execute("ALTER SYSTEM SET fsync = off")
    try:
        place.execute("SELECT pg_reload_conf(), pg_sleep(0.3)")
        with pytest.raises(EventStoreError, match="fsync = off"):
            open_event_log(place.target)
        open_event_log(place.target, durability="relaxed").close()
    finally:
        place.execute("ALTER SYSTEM RESET fsync")
        place.execute("SELECT pg_reload_conf(), pg_sleep(0.3)")


def test_what_an_address_says_counts(place: PostgresPlace) -> None:
    with open_event_log(f"{place.target}&connect_timeout=7&application_name=mine") as store:
        assert isinstance(store, PostgresEventStore)
        assert connection_of(store).info.get_parameters()["connect_timeout"] == "7"
        with store.only_writer("a"), pytest.raises(LockedError, match="written by mine"), store.only_writer("a"):
            pass


def test_without_psycopg_one_sentence_says_what_to_install() -> None:
    program = """
import sys
sys.modules["psycopg"] = None
from onepass.events import open_event_log
try:
    open_event_log("postgresql://host/name")
except ImportError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "an event store in PostgreSQL needs psycopg: pip install 'onepass-learn[postgres]'\n"
