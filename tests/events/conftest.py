"""Event logs in all places where they can be."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from onepass.events import EventLog, open_event_log
from tests.helpers.events import Place, PostgresPlace, SQLitePlace


@pytest.fixture(params=["sqlite", "postgres"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    if request.param == "sqlite":
        return SQLitePlace(tmp_path / "events.sqlite")
    found = PostgresPlace(request.getfixturevalue("postgres"))
    found.clear()
    return found


@pytest.fixture
def store(place: Place) -> Iterator[EventLog]:
    with open_event_log(place.target, clock=lambda: 1.5) as opened:
        yield opened
