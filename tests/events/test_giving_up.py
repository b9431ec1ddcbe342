"""Events that can't be read any more: what is left of them is shown, and a stream can go on without them."""

import pytest

from onepass.events import EventLog, EventStoreError, Remains
from tests.helpers.events import Place


@pytest.fixture
def damaged(place: Place, store: EventLog) -> EventLog:
    """A stream of five events: the second was changed, the third deleted on request, the fourth is missing."""
    for key in "abcde":
        store.append("price", "label", key, {"y": 1}, b"row", time=2.0)
    store.forget("price", "c")
    place.execute("UPDATE events SET time = 3.0 WHERE stream = 'price' AND number = 2")
    place.execute("DELETE FROM events WHERE stream = 'price' AND number = 4")
    store.append("other", "label", "a", {"y": 1})
    return store


def test_what_is_left_is_shown_as_it_is(damaged: EventLog) -> None:
    assert list(damaged.remains("price", after=1)) == [
        Remains(2, "changed", "label", "b", 3.0, '{"y":1}', b"row"),
        Remains(3, "deleted", "label", "c", 2.0),
        Remains(4, "missing"),
        Remains(5, "whole", "label", "e", 2.0, {"y": 1}, b"row"),
    ]


def test_a_stream_goes_on_after_its_last_sound_event(damaged: EventLog) -> None:
    with pytest.raises(EventStoreError, match="event 2 of stream 'price' is not what was written"):
        list(damaged.events("price"))
    damaged.save_snapshot("price", 1, b"sound")
    damaged.save_snapshot("price", 5, b"of what can't be read")
    damaged.give_up("price", after=1)
    assert damaged.check() == []
    assert [(event.number, event.kind, event.forgotten) for event in damaged.events("price")] == [
        (1, "label", False),
        *((number, "lost", True) for number in range(2, 6)),
    ]
    snapshot = damaged.latest_snapshot("price")
    assert snapshot is not None
    assert (snapshot.after, snapshot.content) == (1, b"sound")
    assert damaged.append("price", "label", "b", {"y": 2}).number == 6  # its key is free, its number is not


def test_only_what_is_not_pruned_is_replaced_and_other_streams_are_left(damaged: EventLog) -> None:
    damaged.save_snapshot("price", 5, b"sound")
    damaged.prune("price", 5)
    damaged.give_up("price", after=2)
    assert [event.number for event in damaged.events("price", after=4)] == [5]
    assert [event.payload for event in damaged.events("other")] == [{"y": 1}]
