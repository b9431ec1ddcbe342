"""SIGKILL at random moments under clients that predict, learn, label, decide, reward, repeat and reorder.

What was acknowledged is learned exactly once, and what the service ends with is, byte for byte, what a fresh learner
makes of all events without any snapshot.
"""

import asyncio
import random
import socket
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from onepass.events import EventStore
from onepass.service.checking import check_state, replayed
from onepass.service.journal import Journal, stream_of
from onepass.service.state import EVENTS
from tests.service.running import four_models, served

CLIENTS = 8
LABELS = {"number": (-1.5, 0.25, 2.0), "class": ("red", "green", "blue"), "keyed": (-1.0, 0.5)}


class Lives:
    """The process that forks one life of the service after the other."""

    def __init__(self, folder: Path) -> None:
        with closing(socket.socket()) as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        command = [sys.executable, "-m", "tests.service.lives", str(folder), str(self.port)]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
        self._wait()

    def _wait(self) -> None:
        assert self._process.stdout is not None
        assert self._process.stdout.readline() == b"ready\n", "the service did not come back"

    def kill(self) -> None:
        """End this life and wait for the next one."""
        assert self._process.stdin is not None
        self._process.stdin.write(b"\n")
        self._process.stdin.flush()
        self._wait()

    def end(self) -> None:
        """End for good."""
        self._process.communicate()


@contextmanager
def lives(folder: Path) -> Iterator[Lives]:
    """A service that can be killed."""
    running = Lives(folder)
    try:
        yield running
    finally:
        running.end()


class Client:
    """Sends requests until they are acknowledged, in whichever life; keeps what was, and repeats some of it."""

    def __init__(self, name: str, port: int) -> None:
        self.name = name
        self._http = httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}/v1/models/", timeout=30.0)
        self.random = random.Random(name)
        self.acknowledged: dict[tuple[str, str, str], Any] = {}  # answers by model, what and id
        self.sent: dict[tuple[str, str, str], Any] = {}
        self.later: list[tuple[str, str, dict[str, Any]]] = []
        self.count = 0
        self.answers = self.resent = 0

    async def run(self, until: asyncio.Event) -> None:
        """Go on until told to end, then send what is left."""
        while not until.is_set():
            await self.turn()
        while self.later:
            await self.send(*self.later.pop())
        await self._http.aclose()

    async def turn(self) -> None:
        """A new request, one that was put off, or one again."""
        lot = self.random.random()
        if self.later and lot < 0.4:
            await self.send(*self.later.pop(self.random.randrange(len(self.later))))
        elif self.sent and lot < 0.55:
            (model, what, _), request = self.random.choice(list(self.sent.items()))
            await self.send(model, what, request)
        else:
            await self.begin()

    async def begin(self) -> None:
        """Something new: a row, a decision, or a prediction and its label in either order."""
        self.count += 1
        id, model = f"{self.name}-{self.count}", self.random.choice(["number", "class", "bandit", "keyed"])
        a, b = (self.random.choice((-1.0, -0.5, 0.0, 0.75, 2.0)) for _ in range(2))
        if model == "bandit":
            await self.send(model, "decide", {"context": [a, b], "id": id})
            self.later.append((model, "reward", {"id": id, "reward": float(self.random.random() < 0.5)}))
            return
        x: dict[str, Any] = {"a": a, "b": b} | ({"key": self.random.choice("wxyz")} if model == "keyed" else {})
        y = self.random.choice(LABELS[model])
        if self.random.random() < 0.4:
            await self.send(model, "learn", {"x": x, "y": y, "id": id})
            return
        pair: list[tuple[str, str, dict[str, Any]]] = [
            (model, "predict", {"x": x, "id": id}),
            (model, "label", {"id": id, "y": y}),
        ]
        self.random.shuffle(pair)
        await self.send(*pair[0])
        self.later.append(pair[1])

    async def send(self, model: str, what: str, request: dict[str, Any]) -> None:
        """Send until there is an answer; the same request has the same answer in every life."""
        name = (model, what, request["id"])
        found = await self._attempt(model, what, request)
        while found is None or found.status_code in (429, 503):
            self.resent += 1
            await asyncio.sleep(0.005)
            found = await self._attempt(model, what, request)
        self.answers += 1
        assert found.status_code == 200, (name, found.text)
        answer = found.json()
        if what == "reward":  # it says how many rewards there are by now
            answer = answer["status"]
        assert self.acknowledged.setdefault(name, answer) == answer, name
        self.sent[name] = request

    async def _attempt(self, model: str, what: str, request: dict[str, Any]) -> httpx.Response | None:
        try:
            return await self._http.post(f"{model}/{what}", json=request)
        except httpx.TransportError:
            return None


async def under_fire(server: Lives, kills: int, seed: int) -> list[Client]:
    """Clients at work while the service is killed: as it begins, or after some answers, at any moment of the next."""
    moments, ends = random.Random(seed), asyncio.Event()
    clients = [Client(f"client{i}", server.port) for i in range(CLIENTS)]
    at_work = asyncio.gather(*(client.run(ends) for client in clients))
    for _ in range(kills):
        enough = sum(client.answers for client in clients) + moments.choice((0, 1, 8, 25))
        while not at_work.done() and sum(client.answers for client in clients) < enough:
            await asyncio.sleep(0.001)
        await asyncio.sleep(moments.uniform(0.0, 0.02))
        if at_work.done():
            break
        await asyncio.to_thread(server.kill)
    ends.set()
    await at_work
    return clients


def last_files(port: int) -> dict[str, bytes]:
    """The models as the last life has them in memory."""
    return {name: httpx.get(f"http://127.0.0.1:{port}/v1/models/{name}/file").content for name in four_models()}


def check(folder: Path, clients: list[Client], last: dict[str, bytes]) -> None:
    """Every acknowledged request is in the events once, each row was learned once, and the models are their replay."""
    with EventStore(folder / EVENTS) as store:
        events = {name: list(store.events(stream_of(name))) for name in four_models()}
        replays = {name: replayed(Journal(store, name)).champion for name in events}
    kinds = {"predict": "prediction", "label": "label", "learn": "learn", "decide": "decision"}
    learned: Counter[str] = Counter()
    for name, of_model in events.items():
        there = Counter((event.kind, event.key) for event in of_model)
        rewards = Counter(id for event in of_model if event.kind == "reward" for id, _, _ in event.payload["rewards"])
        assert set(there.values()) == {1}
        assert set(rewards.values()) <= {1}
        for client in clients:
            for model, what, id in client.acknowledged:
                if model == name:
                    assert (rewards[id] if what == "reward" else there[kinds[what], id]) == 1, (model, what, id)
                    learned[name] += what in ("reward", "learn", "label")
    with served(folder) as running:
        assert running.state.broken == {}
        for name, content in running.files().items():
            assert content == last[name] == replays[name].content(), name
            assert running.model(name).status()["n_seen"] == learned[name] + (0 if name == "bandit" else 30)
            assert running.model(name).n_pending == len(running.model(name).journal.waiting) == 0
    assert check_state(folder) == []


def killed(folder: Path, kills: int, seed: int) -> None:
    """The whole test."""
    with served(folder) as running:
        for name, content in four_models().items():
            running.ask(running.state.create(name, content))
    with lives(folder) as server:
        clients = asyncio.run(under_fire(server, kills, seed))
        last = last_files(server.port)
    assert sum(client.resent for client in clients) > kills / 10  # some died while they were waited for
    check(folder, clients, last)


def test_thirty_kills(tmp_path: Path) -> None:
    killed(tmp_path / "state", 30, seed=1)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_a_thousand_kills(tmp_path: Path, seed: int) -> None:
    killed(tmp_path / "state", 250, seed=10 + seed)
