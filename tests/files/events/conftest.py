"""Event logs in all places where they can be."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from onepass.files.events import EventLog, open_event_log
from tests.helpers.events import Place, PostgresPlace, SQLitePlace
from tests.helpers.postgres_server import PostgresServer, installed, running


@pytest.fixture(scope="session")
def server() -> Iterator[PostgresServer]:
    """One server for all tests of a process."""
    if installed() is None:
        pytest.skip("there is no PostgreSQL server (Debian: package postgresql)")
    with running() as started:
        yield started


@pytest.fixture(params=["sqlite", "postgres"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    if request.param == "sqlite":
        return SQLitePlace(tmp_path / "events.sqlite")
    found = PostgresPlace(request.getfixturevalue("server"))
    found.clear()
    return found


@pytest.fixture
def store(place: Place) -> Iterator[EventLog]:
    with open_event_log(place.target, clock=lambda: 1.5) as opened:
        yield opened
