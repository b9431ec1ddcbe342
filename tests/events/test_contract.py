"""What holds for every event log, wherever it is: against a plain list, other processes, threads, and damage."""

import math
import os
import re
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule, run_state_machine_as_test

from onepass.events import ConflictError, Event, EventLog, EventStoreError, Snapshot, open_event_log
from onepass.files.lock import LockedError
from tests.helpers.events import Place, SQLitePlace, appending, fill, in_threads, numbers, undone

# Appending and reading


def test_what_is_appended_comes_back_bit_for_bit(store: EventLog, place: Place) -> None:
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
    with open_event_log(place.target) as again:
        (event,) = again.events("s")
        assert event == given
        assert [math.copysign(1, x) for x in event.payload["floats"]] == [1, 1, -1, 1, 1, 1]
        assert np.frombuffer(event.blob).tobytes() == array.tobytes()


def test_the_same_event_again_is_the_first_one(store: EventLog) -> None:
    first = store.append("s", "label", "a", {"x": 1.0, "y": 2.0}, b"z", time=1.0)
    assert store.append("s", "label", "a", {"y": 2.0, "x": 1.0}, b"z", time=9.0) == first
    assert numbers(store) == [1]


@pytest.mark.parametrize(("payload", "blob"), [({"y": 2}, b"z"), ({"y": 1}, b"")])
def test_a_key_with_other_content_is_a_conflict(store: EventLog, payload: dict[str, int], blob: bytes) -> None:
    store.append("s", "label", "a 17", {"y": 1}, b"z")
    with pytest.raises(ConflictError, match=r"'a 17' of kind 'label' in stream 's'.*event 1") as caught:
        store.append("s", "label", "a 17", payload, blob)
    assert (caught.value.stream, caught.value.key, caught.value.number) == ("s", "a 17", 1)
    assert numbers(store) == [1]


def test_streams_and_kinds_have_keys_of_their_own(store: EventLog) -> None:
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


def test_events_come_in_their_order_from_any_number_on_and_by_kind(store: EventLog) -> None:
    for i in range(250):  # more than are read at once
        store.append("s", "ab"[i % 2], str(-i))
    assert numbers(store) == list(range(1, 251))
    assert numbers(store, after=248) == [249, 250]
    assert numbers(store, after=250) == []
    assert [event.number for event in store.events("s", 5, kinds=["b"])] == list(range(6, 251, 2))
    assert list(store.events("s", kinds=[])) == []


def test_events_appended_while_reading_are_read(store: EventLog) -> None:
    fill(store, 100)
    reading = store.events("s")
    next(reading)
    store.append("s", "late", "1")
    assert [event.kind for event in reading][-1] == "late"


def test_the_clock_gives_the_time_unless_the_caller_does(store: EventLog) -> None:
    assert store.append("s", "k", "a").time == 1.5
    assert store.append("s", "k", "b", time=7).time == 7.0


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("", "k", "a"), "stream must be text of at least one character"),
        (("s", 3, "a"), "kind must be text, got 3"),
        (("s", "k", "a\0b"), "key must be text of at least one character and without NUL"),
        (("s", "k", "\ud800"), "key must be text that UTF-8 can encode"),
        (("s", "k", "a", b"x"), "payload must be a dict, got bytes; put bytes into blob"),
        (("s", "k", "a", {"x": math.nan}), "payload must contain only what JSON can hold"),
        (("s", "k", "a", {"x": np.zeros(2)}), "payload must contain only what JSON can hold: .*put arrays into blob"),
        (("s", "k", "a", {"x": (1, 2)}), "sequences must be lists, not tuples"),
        (("s", "k", "a", {1: 2}), "keys of dicts must be strings"),
        (("s", "k", "a", {}, 5), "blob must be bytes, got int"),
    ],
)
def test_what_cannot_be_stored_exactly_is_refused(store: EventLog, arguments: tuple[Any, ...], words: str) -> None:
    with pytest.raises((TypeError, ValueError), match=words):
        store.append(*arguments)
    assert store.streams() == []


def test_other_wrong_arguments(store: EventLog, place: Place) -> None:
    nested: list[Any] = []
    for _ in range(100_000):
        nested = [nested]
    calls: list[tuple[str, Callable[[], Any]]] = [
        (
            "payload must contain only what JSON can hold: maximum recursion",
            lambda: store.append("s", "k", "a", {"x": nested}),
        ),
        ("time must be a finite", lambda: store.append("s", "k", "a", time=math.inf)),
        ("time must be a number", lambda: store.append("s", "k", "a", time="now")),  # type: ignore[arg-type]
        ("after must be a whole number that is not negative, got -1", lambda: store.events("s", -1)),
        ("kinds must be a list of kinds, got the string 'label'", lambda: store.events("s", kinds="label")),
        ("content must be bytes", lambda: store.save_snapshot("s", 0, "text")),  # type: ignore[arg-type]
        ("durability must be one of 'full', 'relaxed'", lambda: open_event_log(place.target, durability="off")),
        ("timeout must be a number above 0", lambda: open_event_log(place.target, timeout=0)),
        ("timeout must be a", lambda: store.wait("s", 0, -1)),
    ]
    for words, call in calls:
        with pytest.raises((TypeError, ValueError), match=words):
            call()


# Transactions and threads


def test_a_transaction_is_written_whole_or_not_at_all(store: EventLog, place: Place) -> None:
    with open_event_log(place.target) as other:
        with undone(store):
            store.append("s", "k", "a")
            assert store.last("s") == 1
            assert other.last("s") == 0
        assert store.last("s") == 0
        with store.transaction():
            store.append("s", "k", "b")
            store.append("t", "k", "b")
        assert other.last("s") == other.last("t") == 1


def test_a_part_of_a_transaction_is_undone_alone(store: EventLog) -> None:
    with store.transaction():
        store.append("s", "k", "a", {"y": 1})
        with undone(store):
            store.append("s", "k", "b")
        with pytest.raises(ConflictError):
            store.append("s", "k", "a", {"y": 2})
        store.append("s", "k", "c")
    assert [(event.number, event.key) for event in store.events("s")] == [(1, "a"), (2, "c")]


def test_threads_share_a_store(store: EventLog) -> None:
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


# Processes


def test_two_processes_append_to_one_stream(place: Place) -> None:
    """Both create the store at the same moment; none of their events is lost or doubled."""
    processes = [appending(place.target, name, 150) for name in "ab"]
    acknowledged = [[int(line) for line in process.communicate()[0].split()] for process in processes]
    assert [process.returncode for process in processes] == [0, 0]
    with open_event_log(place.target) as store:
        events = list(store.events("s"))
        for name, theirs in zip("ab", acknowledged, strict=True):
            mine = [event for event in events if event.key.startswith(name)]
            assert [event.number for event in mine] == theirs
            assert [event.payload["i"] for event in mine] == list(range(150))
        assert len(events) == 300
        assert store.check() == []


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_process_must_open_the_store_anew(store: EventLog) -> None:
    child = os.fork()
    if child == 0:
        try:
            store.append("s", "k", "a")
        except EventStoreError as error:
            os._exit(7 if "fork" in str(error) else 8)
        os._exit(9)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    assert store.append("s", "k", "a").number == 1


# Damage


def test_a_closed_store_says_so(store: EventLog) -> None:
    store.close()
    store.close()
    with pytest.raises(EventStoreError, match="closed; open it again"):
        store.last("s")


def test_a_changed_or_missing_event_is_named(store: EventLog, place: Place) -> None:
    fill(store, 5)
    place.execute("UPDATE events SET payload = '{\"i\":9}' WHERE number = 3")
    with pytest.raises(EventStoreError, match="event 3 of stream 's' is not what was written"):
        list(store.events("s"))
    with pytest.raises(EventStoreError, match="event 3"):
        store.find("s", "row", "2")
    assert store.check() == ["stream 's': event 3 is not what was written"]
    place.execute("DELETE FROM events WHERE number = 3")
    with pytest.raises(EventStoreError, match="event 3 of stream 's' is missing"):
        list(store.events("s", kinds=["none"]))
    assert store.check() == ["stream 's': event 4 comes after event 2"]
    with pytest.raises(EventStoreError, match="ends with event 5, and those up to 8 are missing"):
        store.events("s", after=8)


# Snapshots


def test_snapshots_stand_at_an_event_and_three_are_kept(store: EventLog, place: Place) -> None:
    assert store.latest_snapshot("s") is None
    store.save_snapshot("s", 0, b"start")
    fill(store, 5)
    for after in (1, 2, 4):
        store.save_snapshot("s", after, b"state %d" % after)
    latest = store.latest_snapshot("s")
    assert latest == Snapshot("s", 4, b"state 4", 1.5)
    assert numbers(store, after=latest.after) == [5]
    assert kept(place) == [1, 2, 4]
    store.save_snapshot("s", 4, b"again")
    assert store.latest_snapshot("s") == Snapshot("s", 4, b"again", 1.5)
    for wrong in (3, 6):
        with pytest.raises(ValueError, match=f"from 4, .* to 5, the last event, got {wrong}"):
            store.save_snapshot("s", wrong, b"")


def test_a_damaged_snapshot_gives_way_to_the_one_before(store: EventLog, place: Place) -> None:
    fill(store, 3)
    for after in (1, 2, 3):
        store.save_snapshot("s", after, b"state %d" % after)
    place.execute("UPDATE snapshots SET content = checksum WHERE after = 3")
    with pytest.warns(RuntimeWarning, match="stream 's' after event 3 is damaged; using the one before"):
        assert store.latest_snapshot("s") == Snapshot("s", 2, b"state 2", 1.5)
    assert store.check() == ["stream 's': the snapshot after event 3 is not what was written"]
    place.execute("UPDATE snapshots SET content = checksum")
    with pytest.warns(RuntimeWarning, match="damaged"):
        assert store.latest_snapshot("s") is None


def test_a_snapshot_shows_that_the_last_events_are_lost(store: EventLog, place: Place) -> None:
    fill(store, 3)
    store.save_snapshot("s", 3, b"")
    place.execute("DELETE FROM events WHERE number > 1")
    with pytest.raises(EventStoreError, match=r"ends with event 1, .* 3"):
        store.latest_snapshot("s")
    for problem in store.check():
        assert re.match(r"stream 's'.* (3, but the last event is 1|event 1, and was noted to end with 3)", problem)
    assert store.check()


def kept(place: Place) -> list[int]:
    return [after for (after,) in place.execute("SELECT after FROM snapshots ORDER BY after")]


def test_a_pinned_snapshot_is_kept_until_it_is_deleted(store: EventLog, place: Place) -> None:
    fill(store, 10)
    store.save_snapshot("s", 1, b"one", pinned=True)
    for after in (2, 3, 4, 5):
        store.save_snapshot("s", after, b"state")
    assert kept(place) == [1, 3, 4, 5]
    store.save_snapshot("s", 5, b"five", pinned=True)
    store.save_snapshot("s", 5, b"again")
    assert store.latest_snapshot("s") == Snapshot("s", 5, b"again", 1.5, pinned=True)
    store.save_snapshot("s", 6, b"six")
    assert kept(place) == [1, 3, 4, 5, 6]
    store.prune("s", before=7)
    assert kept(place) == [1, 5, 6]
    assert store.delete_snapshot("s", 1)
    assert not store.delete_snapshot("s", 1)
    with pytest.raises(ValueError, match="events 1 to 6 of stream 's' were pruned, and no other snapshot"):
        store.delete_snapshot("s", 6)
    assert kept(place) == [5, 6]
    assert store.check() == []
    place.execute("UPDATE snapshots SET pinned = 0 WHERE after = 5")
    assert store.check() == ["stream 's': the snapshot after event 5 is not what was written"]


def test_the_way_back_to_an_earlier_version(store: EventLog, place: Place) -> None:
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
    place.execute("UPDATE snapshots SET content = checksum WHERE after = 9")
    with pytest.warns(RuntimeWarning, match="after event 9 is damaged"):
        assert store.snapshot_before("s", 10) == Snapshot("s", 2, b"state 2", 1.5, pinned=True)


# Waiting for others


def test_open_keys_are_those_without_a_counterpart(store: EventLog) -> None:
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


def test_waiting_ends_with_an_event_of_another_store(store: EventLog, place: Place) -> None:
    assert not store.wait("s", 0, 0)
    with open_event_log(place.target) as other, ThreadPoolExecutor(3) as pool:
        waiting = [pool.submit(store.wait, stream, 0, 60) for stream in ("s", "t")]
        late = pool.submit(store.wait, "s", 1, 0.4)
        time.sleep(0.05)
        assert store.last("s") == 0  # nobody waits for those who wait
        with undone(other):
            other.append("s", "k", "never")
        time.sleep(0.05)
        assert not any(one.done() for one in waiting)
        other.append("s", "k", "a")
        assert waiting[0].result(60)
        assert not waiting[1].done()
        other.append("t", "k", "a")
        assert waiting[1].result(60)
        assert not late.result(60)
    assert store.wait("s", 0, 0)


def test_a_stream_may_have_a_very_long_name(store: EventLog) -> None:
    store.append("s" * 9000, "k", "a")
    assert store.wait("s" * 9000, 0, 0)


def test_there_is_one_writer_of_a_name(store: EventLog, place: Place) -> None:
    with open_event_log(place.target) as other:
        with store.only_writer("a/../b"):
            for one in (store, other):
                with pytest.raises(LockedError, match=f"process {os.getpid()} on"), one.only_writer("a/../b"):
                    pass
            with other.only_writer("c"):
                other.append("s", "k", "a")  # the lock is for those who ask
        with other.only_writer("a/../b"):
            store.append("s", "k", "b")
    assert numbers(store) == [1, 2]


# Deleting


def test_erasing_deletes_the_blob_and_keeps_the_payload(store: EventLog, place: Place) -> None:
    fill(store, 3)
    store.append("s", "prediction", "a", {"mean": 0.1}, b"SECRET" * 2000)
    assert store.erase("s", "prediction", "a")
    assert not store.erase("s", "prediction", "a")
    assert not store.erase("s", "label", "a")
    gone = Event(4, "s", "prediction", "a", {"mean": 0.1}, b"", 1.5, erased=True)
    assert store.find("s", "prediction", "a") == gone
    assert store.append("s", "prediction", "a", {"mean": 0.2}, b"other") == gone
    assert store.check() == []
    place.execute("UPDATE events SET blob = checksum WHERE number = 4")
    assert store.check() == ["stream 's': event 4 is not what was written"]
    place.execute("UPDATE events SET blob = NULL WHERE number = 4")
    assert store.forget("s", "a") == 1
    assert store.check() == []


def test_what_is_forgotten_keeps_its_name_and_number_alone(store: EventLog) -> None:
    fill(store, 50)
    secret = b"SECRET" * 2000
    store.append("s", "prediction", "a", {"name": "SECRET"}, secret)
    store.append("s", "label", "a", {"name": "SECRET"})
    store.append("t", "label", "a", {"y": 1})
    assert store.forget("s", "a") == 2
    assert store.forget("s", "a") == store.forget("s", "none") == 0
    assert store.append("s", "label", "a", {"name": "SECRET"}) == (52, "s", "label", "a", {}, b"", 1.5, True, True)
    assert [event.number for event in store.events("s") if event.forgotten] == [51, 52]
    found = store.find("t", "label", "a")
    assert found is not None
    assert found.payload == {"y": 1}
    assert store.check() == []


def test_pruned_numbers_are_not_used_again(store: EventLog) -> None:
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

    def __init__(self, place: Place) -> None:
        super().__init__()
        place.clear()
        self.target = place.target
        self.store = open_event_log(self.target, durability="relaxed")
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
        self.store = open_event_log(self.target, durability="relaxed")

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


def test_any_calls_in_any_order_against_lists(place: Place) -> None:
    class Here(StoreAgainstLists):
        def __init__(self) -> None:
            super().__init__(place)

    examples = 25 if isinstance(place, SQLitePlace) else 8  # each one creates a schema
    run_state_machine_as_test(Here, settings=settings(max_examples=examples, stateful_step_count=25, deadline=None))
