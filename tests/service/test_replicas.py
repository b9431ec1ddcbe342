"""Several machines: one learner with its events in PostgreSQL, and replicas that predict with what it has learned."""

import asyncio
from collections.abc import Callable, Iterator
from dataclasses import replace
from errno import EBADMSG
from pathlib import Path
from typing import Any

import pytest

from onepass.events import EventStoreError
from onepass.files.lock import LockedError
from onepass.service.errors import ProblemError
from onepass.service.settings import ServiceSettings
from onepass.service.state import ServiceState
from onepass.service.wire import Declared, Inputs, LabelRequest, LearnRequest, PredictRequest
from tests.helpers.postgres_server import OwnPostgresServer, PostgresServer

SPEED = Declared(rows=[{"x": i % 7, "y": i % 5} for i in range(30)], target="y", options={"task": "regression"})
ROW: Inputs = {"x": 1.0}


@pytest.fixture
def settings(postgres: PostgresServer, tmp_path: Path) -> Iterator[ServiceSettings]:
    with postgres.new_database() as name:
        yield ServiceSettings(tmp_path / "learner", events=postgres.address(database=name))


def followed(settings: ServiceSettings) -> ServiceSettings:
    return replace(settings, data=settings.data.with_name("replica"), follow=True)


async def until(condition: Callable[[], bool], seconds: float = 20.0) -> None:
    for _ in range(int(seconds / 0.02)):
        if condition():
            return
        await asyncio.sleep(0.02)
    raise AssertionError("it did not happen in time")


async def recovers(settings: ServiceSettings, content: bytes) -> None:
    """A new process has the same model."""
    again = ServiceState(settings)
    await again.start()
    await until(lambda: again.is_ready)
    assert await again.model("speed").file() == content
    await again.stop()


def test_a_replica_knows_what_the_learner_has_learned_and_predicts_the_same(settings: ServiceSettings) -> None:
    async def run() -> None:
        learner, replica = ServiceState(settings), ServiceState(followed(settings))
        await learner.start()
        await replica.start()
        model, _ = await learner.create("speed", SPEED)
        for y in (1.0, 2.0, 3.0):
            await model.learn(LearnRequest(ROW, y))
        await until(lambda: any(one.published.version == model.published.version for one in replica.models()))
        twin = replica.model("speed")
        assert await twin.predict(PredictRequest(ROW)) == await model.predict(PredictRequest(ROW))
        assert twin.counters["rows"] == model.counters["rows"]
        assert "writable" not in twin.counters
        with pytest.raises(ProblemError, match="send this to the service that learns"):
            await twin.learn(LearnRequest(ROW, 1.0))
        with pytest.raises(ProblemError, match="send this to the service that learns"):
            await twin.predict(PredictRequest(ROW, id="kept"))
        await learner.delete("speed")
        await until(lambda: not replica.models())
        await replica.stop()
        await learner.stop()

    asyncio.run(run())


def test_a_model_that_a_replica_could_not_load_is_forgotten_as_broken_once_it_loads_or_is_deleted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("onepass.service.state._FOLLOWING", 0.02)
    settings, bad = ServiceSettings(tmp_path / "learner", events=str(tmp_path / "events.sqlite")), {"speed", "gone"}
    host = ServiceState._host

    def fail(state: ServiceState, name: str) -> Any:
        if state.settings.follow and name in bad:
            raise EventStoreError(EBADMSG, "it is damaged", "/srv/secret")
        return host(state, name)

    monkeypatch.setattr(ServiceState, "_host", fail)

    async def run() -> None:
        learner, replica = ServiceState(settings), ServiceState(followed(settings))
        await learner.start()
        for name in sorted(bad):
            await learner.create(name, SPEED)
        await replica.start()
        await until(lambda: len(replica.broken) == 2)
        assert replica.broken == {"speed": "it is damaged", "gone": "it is damaged"}  # the path is for the log alone
        bad.discard("speed")
        await until(lambda: [one.name for one in replica.models()] == ["speed"])
        assert set(replica.broken) == {"gone"}
        await learner.delete("gone")
        await until(lambda: replica.broken == {})
        assert replica.is_ready
        await replica.stop()
        await learner.stop()

    asyncio.run(run())


def test_there_is_one_learner(settings: ServiceSettings) -> None:
    async def run() -> None:
        first = ServiceState(settings)
        await first.start()
        second = ServiceState(replace(settings, data=settings.data.with_name("other")))
        with pytest.raises(LockedError):
            await second.start()
        await first.stop()

    asyncio.run(run())


def test_nothing_is_lost_when_the_database_is_killed(server: OwnPostgresServer, settings: ServiceSettings) -> None:
    async def run() -> None:
        state = ServiceState(settings)
        await state.start()
        model, _ = await state.create("speed", SPEED)
        await model.predict(PredictRequest(ROW, id="a"))
        await model.learn(LearnRequest(ROW, 1.0, id="first"))
        server.kill()
        with pytest.raises(ProblemError) as refused:
            await model.learn(LearnRequest(ROW, 2.0, id="second"))
        assert refused.value.status in (503, 507)
        assert (await model.predict(PredictRequest(ROW))).version == model.published.version  # predictions go on
        server.start()
        learned = await model.learn(LearnRequest(ROW, 2.0, id="second"))
        assert learned.n_seen == 2
        assert (await model.label(LabelRequest("a", 3.0))).n_seen == 3
        content = await model.file()
        await state.stop()
        await recovers(settings, content)

    asyncio.run(run())


def test_a_learner_that_lost_its_lock_to_another_writes_nothing_until_it_knows_what_that_one_wrote(
    server: OwnPostgresServer, settings: ServiceSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("onepass.service.state._FOLLOWING", 3600.0)  # the first does not notice that its lock is gone

    async def run() -> None:
        first = ServiceState(settings)
        await first.start()
        model, _ = await first.create("speed", SPEED)
        await model.learn(LearnRequest(ROW, 1.0, id="a"))
        server.kill()
        server.start()
        second = ServiceState(replace(settings, data=settings.data.with_name("other")))
        await second.start()
        await until(lambda: second.is_ready)
        other = second.model("speed")
        for n_seen in (2, 3):  # whether the second has written anything yet or not
            with pytest.raises(ProblemError) as refused:
                await model.learn(LearnRequest(ROW, 3.0, id="c"))
            assert refused.value.status in (503, 507)
            assert (await other.learn(LearnRequest(ROW, 2.0, id=f"b{n_seen}"))).n_seen == n_seen
        assert (await model.predict(PredictRequest(ROW))).version == model.published.version
        await second.stop()
        # Now the first has the lock again, and reads what the second has written before it goes on.
        assert (await model.learn(LearnRequest(ROW, 3.0, id="c"))).n_seen == 4
        assert (await model.learn(LearnRequest(ROW, 2.0, id="b2"))).n_seen == 2  # the answer that it had got
        content = await model.file()
        await first.stop()
        await recovers(settings, content)

    asyncio.run(run())
