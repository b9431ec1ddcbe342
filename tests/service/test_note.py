"""A lost event store is not taken for that of a new service, and nothing of a wrong one is served."""

import asyncio
from pathlib import Path

import pytest

from onepass.events import EventStoreError
from onepass.service.checking import check_state
from onepass.service.export import export_events
from onepass.service.note import NOTE
from onepass.service.settings import ServiceSettings
from onepass.service.state import EVENTS, ServiceState
from onepass.service.wire import LearnRequest
from tests.helpers.postgres_server import PostgresServer
from tests.service.running import Running, four_models, regressor, served


def begin(folder: Path, **settings: str) -> None:
    """Serve a model for a while."""
    with served(folder, **settings) as service:
        service.ask(service.state.create("m", regressor()))
        service.ask(service.model("m").learn(LearnRequest([1.0, 2.0], 1.0)))


@pytest.mark.parametrize("durability", ["full", "relaxed"])
def test_a_folder_without_its_events_is_refused(tmp_path: Path, durability: str) -> None:
    folder = tmp_path / "state"
    begin(folder, durability=durability)
    (folder / EVENTS).rename(tmp_path / "backup")
    for _ in range(2):
        with pytest.raises(EventStoreError, match=f"the file is missing, .*copy a backup there; .*{NOTE} away"):
            Running(folder, durability=durability)
        assert not (folder / EVENTS).exists()
    (found,) = check_state(folder)
    assert found.startswith(f"The event store can't be read: {EVENTS}: the file is missing, and it had events")
    with pytest.raises(EventStoreError, match="the file is missing"):
        export_events(folder, tmp_path / "events.parquet")
    (tmp_path / "backup").rename(folder / EVENTS)
    with served(folder) as service:
        assert service.model("m").status()["n_seen"] == 4


def test_what_the_refusal_names_is_what_is_in_the_way_of_a_new_start(tmp_path: Path) -> None:
    begin(tmp_path)
    (tmp_path / EVENTS).unlink()
    with pytest.raises(EventStoreError) as refused:
        Running(tmp_path)
    left = [path for path in tmp_path.iterdir() if path.name in str(refused.value)]
    assert {path.name for path in left} == {NOTE, f"{EVENTS}-tail"}
    for path in left:
        path.unlink()
    with served(tmp_path) as service:
        assert service.state.models() == []


def test_events_of_another_service_are_refused(tmp_path: Path) -> None:
    begin(tmp_path / "a")
    begin(tmp_path / "b")
    with pytest.raises(EventStoreError, match=r"the events of another service, and .*b belongs to the events"):
        Running(tmp_path / "b", events=str(tmp_path / "a" / EVENTS))
    (tmp_path / "b" / NOTE).unlink()
    with served(tmp_path / "b", events=str(tmp_path / "a" / EVENTS)) as service:  # on purpose
        assert [model.name for model in service.state.models()] == ["m"]


def test_a_backup_is_served_from_a_new_folder_and_from_the_old_one(tmp_path: Path) -> None:
    begin(tmp_path / "old")
    content = (tmp_path / "old" / EVENTS).read_bytes()
    (tmp_path / "new").mkdir()
    (tmp_path / "new" / EVENTS).write_bytes(content)
    with served(tmp_path / "new") as service:
        service.ask(service.state.create("more", four_models()["number"]))
    with served(tmp_path / "old") as service:
        assert [model.name for model in service.state.models()] == ["m"]


def test_a_damaged_note_is_told(tmp_path: Path) -> None:
    begin(tmp_path)
    (tmp_path / NOTE).write_bytes(b"{")
    with pytest.raises(ValueError, match=f"{NOTE} is damaged .*; delete it if the events are those of this service"):
        Running(tmp_path)


def test_a_database_without_the_events_of_the_folder_is_refused(server: PostgresServer, tmp_path: Path) -> None:
    async def start(follow: bool = False) -> list[str]:
        folder = tmp_path / ("replica" if follow else "learner")
        state = ServiceState(ServiceSettings(folder, events=server.address(database="kept"), follow=follow))
        await state.start()
        await asyncio.gather(*state._recoveries)
        if not state.models() and not follow:
            await state.create("m", regressor())
        names = [model.name for model in state.models()]
        await state.stop()
        return names

    server.execute("CREATE DATABASE kept")
    assert asyncio.run(start()) == ["m"]
    assert asyncio.run(start(follow=True)) == ["m"]
    server.execute("ALTER DATABASE kept RENAME TO lost")
    server.execute("CREATE DATABASE kept")
    for follow in (False, True):
        with pytest.raises(EventStoreError, match=r"no events of a service.*restore these from a backup"):
            asyncio.run(start(follow))
    server.execute("DROP DATABASE kept")
    server.execute("ALTER DATABASE lost RENAME TO kept")
    assert asyncio.run(start()) == ["m"]
