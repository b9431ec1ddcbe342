"""Bandits in an event store, against kill -9, full disks and other processes; replay gives the same bytes."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from onepass import BayesianPerceptron
from onepass.decisions import ContextualBandit, UnknownDecision, open_bandit, stored
from onepass.events import EventStore, EventStoreError
from onepass.events.sqlite.database import SQLiteDatabase
from onepass.files.checkpoint import to_bytes

SOURCE = Path(__file__).parents[2] / "src"
FEATURES = {"a": [1.0, 0.0], "b": [0.0, 1.0], "c": [0.5, -0.5]}
PLAIN = ["a", "b", "c"]
KINDS: dict[str, dict[str, Any]] = {
    "fleet": {"arms": PLAIN},
    "drift": {"arms": PLAIN, "drift": 0.05},
    "several drifts": {"arms": PLAIN, "drift": "auto", "standardize": True},
    "numbers": {"arms": PLAIN, "observation": "gaussian", "reward_range": (0.1, 0.7), "unknown_rewards": "count"},
    "population": {"arms": range(8), "population": True},
    "network": {"arms": PLAIN, "hidden": (4,)},
    "kronecker": {"arms": PLAIN, "hidden": (5,), "covariance": "kronecker"},
    "single precision": {"arms": PLAIN, "hidden": (5,), "covariance": "kronecker", "dtype": "float32"},
    "drifting kronecker": {"arms": PLAIN, "hidden": (5,), "covariance": "kronecker", "drift": "auto"},
    "shared": {"arms": FEATURES},
    "shared kronecker": {"arms": FEATURES, "hidden": (5,), "covariance": "kronecker"},
}


def _made(kind: str = "fleet") -> ContextualBandit:
    return ContextualBandit(n_features=2, **KINDS[kind])


@contextmanager
def _opened(path: Path, kind: str = "fleet") -> Iterator[ContextualBandit]:
    with EventStore(path / "store", durability="relaxed") as store:
        yield open_bandit(store, "one", lambda: _made(kind))


@pytest.fixture
def store(tmp_path: Path) -> Iterator[EventStore]:
    with EventStore(tmp_path / "store", durability="relaxed") as opened:
        yield opened


# Replay.


def _step(bandit: ContextualBandit, i: int, looks: bool) -> None:
    """One thing that happens to a bandit; and, if asked, looks at it, which must leave no trace."""
    rng = np.random.default_rng(i)
    context = rng.normal(size=2)
    features = None if bandit.get_params()["arms"] == list(bandit.arms) else [0.3, 0.4]
    if i % 4 < 2:
        choice = bandit.choose(context, 1 + i % 2, time=float(i))
    elif i % 16 == 2:
        bandit.choose_many(rng.normal(size=(20, 2)), time=float(i))
        bandit.expire(10.0, 1.0, now=float(i))
    elif i % 16 == 6:
        bandit.learn(rng.normal(size=(2, 2)), list(bandit.arms[:2]), [1.0, 0.0])
        if i == 22:
            bandit.add_arm("new", features).pause(bandit.arms[1])
        if i == 38:
            bandit.resume(bandit.arms[1]).remove_arm(bandit.arms[0])
    else:
        ids = bandit.pending[-3:]
        choice = bandit.choose(context, time=float(i))
        for key in (choice.id, *ids[:1]):
            bandit.reward(key, float(int(key) % 3 > 0))
    if looks:
        bandit.predict(rng.normal(size=(30, 2)))
        bandit.propensities(context)
        to_bytes(bandit)


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_replayed_is_the_same_bytes_whoever_looked_and_whenever_there_were_snapshots(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = {}
    for every in (11, 10**9):
        monkeypatch.setattr(stored, "_SNAPSHOT_EVERY", every)
        monkeypatch.setattr(stored, "_SNAPSHOT_SECONDS", 1e9)  # a busy machine must not save some more
        folder = tmp_path / str(every)
        folder.mkdir()
        with _opened(folder, kind) as live:
            for i in range(40):
                _step(live, i, looks=every == 11 and i % 3 == 0)
                if i % 20 == 19:
                    with _opened(folder) as again:
                        assert to_bytes(again) == to_bytes(live)
        with EventStore(folder / "store") as store:
            snapshot = store.latest_snapshot("one")
            assert snapshot is not None
            assert (snapshot.after > 40) == (every == 11)
            found[every] = to_bytes(open_bandit(store, "one"))
    assert found[11] == found[10**9]


@pytest.mark.parametrize("kind", ["fleet", "network", "numbers"])
def test_a_bandit_in_a_store_is_what_it_would_be_without(kind: str, tmp_path: Path) -> None:
    """But for rounding where rows wait in a block, and for the propensities that it writes down."""
    plain = _made(kind)
    with _opened(tmp_path, kind) as stored:
        for i in range(48):
            _step(stored, i, looks=False)
            _step(plain, i, looks=False)
        assert stored.pending == plain.pending
        np.testing.assert_array_equal(stored.predict(np.eye(2)).mean, plain.predict(np.eye(2)).mean)
        np.testing.assert_array_equal(stored.predict(np.eye(2)).std, plain.predict(np.eye(2)).std)


def test_choices_go_on_where_they_were(tmp_path: Path) -> None:
    contexts = np.random.default_rng(0).normal(size=(30, 2))
    plain, found = _made(), []
    for context in contexts:
        with _opened(tmp_path) as bandit:  # another process every time
            choice = bandit.choose(context)
            found.append(choice.arm)
            bandit.reward(choice.id, 1.0)
    for context, arm in zip(contexts, found, strict=True):
        choice = plain.choose(context)
        assert choice.arm == arm
        plain.reward(choice.id, 1.0)


def test_names_of_numpy_and_features_come_back(store: EventStore) -> None:
    bandit = open_bandit(store, "one", lambda: ContextualBandit([1, 2], 2, unknown_rewards="count"))
    bandit.learn(np.ones((2, 2)), np.array([1, 2]), np.array([1, 0])).add_arm(np.int64(3)).pause(np.int64(1))
    choice = bandit.choose(np.ones(2, dtype=np.float32), arms=np.array([2, 3]))
    bandit.reward(choice.id, np.float64(1.0), np.int64(choice.arm))
    assert bandit.reward_many(["none", "never"], np.array([0, 1])) == 0
    again = open_bandit(store, "one")
    assert (again.arms, again.paused, again.n_rewards, again.n_unknown) == ((1, 2, 3), (1,), 3, 2)
    shared = open_bandit(store, "two", lambda: _made("shared"))
    choice = shared.choose([1.0, 2.0], arms={"new": np.array([0.1, 1 / 3])})
    same = open_bandit(store, "two")
    same.reward(choice.id, 1.0)
    shared.choose([0.0, 1.0])  # learns first what the other did
    np.testing.assert_array_equal(shared.predict([1.0, 2.0]).mean, same.predict([1.0, 2.0]).mean)
    assert store.streams() == ["one", "two"]


def test_what_could_not_be_learned_then_is_not_learned_again(
    store: EventStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    bandit = open_bandit(store, "one", lambda: _made("numbers"))
    choices = [bandit.choose([0.5, 0.5], arms=["a"]) for _ in range(3)]
    before = to_bytes(bandit)
    with monkeypatch.context() as patched:
        patched.setattr("onepass.decisions.rewards._LARGEST", np.inf)
        with pytest.raises(ValueError, match="overflow"):
            bandit.reward_many([one.id for one in choices], [1.0, 1e306, -1e306])
    assert to_bytes(bandit) == before
    n = store.last("one")
    for wrong in (
        lambda: bandit.reward(choices[0].id, 1.0, "b"),
        lambda: bandit.reward(choices[0].id, np.nan),
        lambda: bandit.reward(choices[0].id, 1e306),
        lambda: bandit.choose([1.0, 2.0], id=choices[1].id),
        lambda: bandit.learn([1.0, 2.0], "z", 1.0),
    ):
        with pytest.raises(ValueError, match=r"chose|finite|below|was used|no arm"):
            wrong()
    assert store.last("one") == n  # what is refused is not written
    assert bandit.reward(choices[1].id, 0.5)
    with pytest.raises(ValueError, match="chose, 'a', got 'b'"):
        bandit.reward(choices[1].id, 0.5, "b")
    assert not bandit.reward(choices[1].id, 0.5)
    assert to_bytes(open_bandit(store, "one")) == to_bytes(bandit)


def test_a_bandit_whose_change_was_interrupted_refuses_to_go_on(
    store: EventStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    bandit = open_bandit(store, "one", _made)
    key = bandit.choose([1.0, 0.0]).id

    def interrupt(*given: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(bandit._model, "learn", interrupt)
        with pytest.raises(KeyboardInterrupt):
            bandit.reward(key, 1.0)
    with pytest.raises(EventStoreError, match="open the bandit again"):  # it would write a second reward
        bandit.reward(key, 1.0)
    again = open_bandit(store, "one")
    assert (again.pending, again.n_rewards, again.reward(key, 1.0)) == ((), 1, False)


def test_a_decision_can_be_forgotten_without_the_rewards_of_others(store: EventStore) -> None:
    bandit = open_bandit(store, "one", _made)
    for _ in range(3):
        bandit.reward(bandit.choose([1.0, 0.0]).id, 1.0)  # the first of the rewards is event 2
    assert store.forget("one", "2") == 1
    assert [event.kind for event in store.events("one") if event.forgotten] == ["decision"]
    with pytest.raises(EventStoreError, match="event 5 was forgotten"):
        open_bandit(store, "one")
    store.save_snapshot("one", store.last("one"), to_bytes(bandit))
    assert open_bandit(store, "one").n_rewards == 3


def test_a_new_bandit_does_not_take_the_events_of_something_else(store: EventStore) -> None:
    store.append("one", "label", "17", {"y": 1.0})
    with pytest.raises(EventStoreError, match="no sound snapshot"):
        open_bandit(store, "one", _made)


def test_what_is_not_there(store: EventStore) -> None:
    with pytest.raises(ValueError, match=r"no bandit 'one' in .*store, which has nothing; pass make"):
        open_bandit(store, "one")
    store.append("other", "row", "1")
    with pytest.raises(ValueError, match=r"no bandit 'one' in .*, which has 'other'; pass make"):
        open_bandit(store, "one")
    store.save_snapshot("model", 0, to_bytes(BayesianPerceptron(1)))
    with pytest.raises(ValueError, match=r"'model' in .* is a BayesianPerceptron, not a bandit"):
        open_bandit(store, "model")
    with pytest.raises(ZeroDivisionError):
        open_bandit(store, "one", lambda: 1 // 0)  # type: ignore[arg-type, return-value]
    assert store.latest_snapshot("one") is None


# Stores that fail.


def _pages(store: EventStore, limit: int | None) -> None:
    """Let the file grow no more, or again."""
    assert isinstance(store._database, SQLiteDatabase)
    connection = store._database._opened()
    (pages,) = connection.execute("PRAGMA page_count").fetchone()
    connection.execute(f"PRAGMA max_page_count = {pages + limit if limit is not None else 1_000_000}")


@pytest.mark.parametrize("kind", ["fleet", "several drifts", "kronecker"])
def test_a_full_disk_leaves_the_bandit_in_memory_as_it_was(kind: str, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    with EventStore(tmp_path / "store") as store:
        bandit = open_bandit(store, "one", lambda: _made(kind))
        waiting = bandit.choose_many(rng.normal(size=(40, 2)))
        ids = [one.id for one in waiting]
        bandit.reward_many(ids[:10], rng.integers(2, size=10))
        before = to_bytes(bandit)
        _pages(store, 0)
        acts = (
            lambda: bandit.choose_many(rng.normal(size=(300, 2))),
            lambda: bandit.learn(np.ones((3000, 2)), ["a"] * 3000, np.ones(3000)),
            lambda: [bandit.choose([1.0, 2.0], time=5.0) for _ in range(1000)],
        )
        for act in acts[:2]:
            with pytest.raises(EventStoreError, match="the disk is full; nothing was written"):
                act()
            assert to_bytes(bandit) == before
        with pytest.raises(EventStoreError, match="the disk is full"):
            acts[2]()
        with EventStore(tmp_path / "store") as other:
            assert to_bytes(open_bandit(other, "one")) == to_bytes(bandit)
        _pages(store, None)
        assert bandit.reward_many(ids[10:], np.ones(30)) == 30
        assert to_bytes(open_bandit(store, "one")) == to_bytes(bandit)


def test_a_snapshot_that_does_not_fit_on_the_disk_is_saved_later(
    store: EventStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stored, "_SNAPSHOT_EVERY", 3)
    bandit = open_bandit(store, "one", _made)
    failing = True
    original = store.save_snapshot

    def save(*args: Any) -> Any:
        if failing:
            raise EventStoreError(28, "the disk is full", "store")
        return original(*args)

    monkeypatch.setattr(store, "save_snapshot", save)
    for _ in range(5):
        assert bandit.reward(bandit.choose([1.0, 2.0]).id, 1.0)
    failing = False
    bandit.choose([1.0, 2.0])
    snapshot = store.latest_snapshot("one")
    assert snapshot is not None
    assert snapshot.after == 11
    assert to_bytes(open_bandit(store, "one")) == to_bytes(bandit)


# Several at a time.


@pytest.mark.parametrize("kind", ["fleet", "several drifts", "kronecker"])
def test_several_use_one_bandit_by_turns(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stored, "_SNAPSHOT_EVERY", 9)
    rng = np.random.default_rng(0)
    with _opened(tmp_path, kind) as first, _opened(tmp_path, kind) as second:
        both = (first, second)
        for i in range(40):
            choice = both[i % 2].choose(rng.normal(size=2), time=float(i))
            assert choice.id == str(i)
            other = both[int(rng.integers(2))]
            other.predict(rng.normal(size=(20, 2)))
            assert other.reward(choice.id, float(i % 2))
            assert not both[i % 3 % 2].reward(choice.id, float(i % 2))
            with pytest.raises(ValueError, match="before, got another reward"):
                both[i % 2].reward(choice.id, float(1 - i % 2))
        first.add_arm("d")
        assert second.choose([1.0, 2.0]).candidates == ("a", "b", "c", "d")
        first.expire(0.0)
        with pytest.raises(UnknownDecision):
            second.reward("40", 1.0)
        with _opened(tmp_path) as third:
            assert to_bytes(third) == to_bytes(first) == to_bytes(second)


_PROGRAM = """
import sys
import numpy as np
from onepass.decisions import ContextualBandit, open_bandit, stored
from onepass.events import EventStore

stored._SNAPSHOT_EVERY = 25
MAKE = {
    "fleet": lambda: ContextualBandit(["a", "b"], 2, drift=0.01),
    "network": lambda: ContextualBandit(["a", "b"], 2, hidden=(5,), covariance="kronecker"),
}

def step(bandit):
    '''What comes next follows from the bandit alone: another choice, or the reward of one that has waited.'''
    if bandit.n_pending > bandit.n_decisions % 4:
        key = bandit.pending[bandit.n_rewards % bandit.n_pending]
        bandit.reward(key, float(int(key) % 3 == 0))
        return "reward"
    bandit.choose(np.random.default_rng(bandit.n_decisions).normal(size=2), time=float(bandit.n_decisions))
    return "choice"

if __name__ == "__main__":
    with EventStore(sys.argv[1], durability="relaxed") as store:
        bandits = {name: open_bandit(store, name, make) for name, make in MAKE.items()}
        for _ in range(int(sys.argv[2])):
            for name, bandit in bandits.items():
                print(name, step(bandit), flush=True)
"""


def _process(path: Path, n: int) -> "subprocess.Popen[bytes]":
    environment = {**os.environ, "PYTHONPATH": str(SOURCE)}
    return subprocess.Popen(
        [sys.executable, "-c", _PROGRAM, str(path), str(n)], stdout=subprocess.PIPE, env=environment
    )


def _killed(path: Path, counts: list[int]) -> None:
    """Kill a process that decides and learns once it has acknowledged so much; nothing is lost, nothing doubled."""
    scope: dict[str, Any] = {"__name__": "program"}
    snapshot_every = stored._SNAPSHOT_EVERY
    try:
        exec(_PROGRAM, scope)
    finally:
        stored._SNAPSHOT_EVERY = snapshot_every
    acknowledged: dict[tuple[str, str], int] = {}
    flying = 0
    with EventStore(path.with_name("whole"), durability="relaxed") as whole:
        expected = {name: open_bandit(whole, name, make) for name, make in scope["MAKE"].items()}
        for count in counts:
            with _process(path, 1_000_000) as process:
                assert process.stdout is not None
                lines = b"".join(process.stdout.readline() for _ in range(count))
                process.kill()
                lines += process.stdout.read()
            for line in lines.decode().splitlines()[: lines.count(b"\n")]:
                name, what = line.split()
                acknowledged[name, what] = acknowledged.get((name, what), 0) + 1
            flying += 1
            with EventStore(path) as store:
                for name, one in expected.items():
                    found = open_bandit(store, name)
                    learned, made = acknowledged.get((name, "reward"), 0), acknowledged.get((name, "choice"), 0)
                    assert learned <= found.n_rewards <= learned + flying  # one more, that was on its way, per kill
                    assert made <= found.n_decisions <= made + flying
                    assert learned + made <= store.last(name) <= learned + made + flying
                    while whole.last(name) < store.last(name):
                        scope["step"](one)
                    assert to_bytes(found) == to_bytes(one)
    assert sum(acknowledged.values()) >= sum(counts)


def test_after_kill_9_exactly_what_was_acknowledged_is_learned_once(tmp_path: Path) -> None:
    _killed(tmp_path / "store", [10, 20, 1])


@pytest.mark.slow
def test_after_many_kills_exactly_what_was_acknowledged_is_learned_once(tmp_path: Path) -> None:
    _killed(tmp_path / "store", np.random.default_rng(0).integers(1, 100, size=20).tolist())


def test_two_processes_at_a_time_lose_and_double_nothing(tmp_path: Path) -> None:
    processes = [_process(tmp_path / "store", 60) for _ in range(2)]
    lines = b"".join(process.communicate()[0] for process in processes).decode().split("\n")
    assert [process.returncode for process in processes] == [0, 0]
    with EventStore(tmp_path / "store") as store:
        for name in ("fleet", "network"):
            bandit = open_bandit(store, name)
            assert store.last(name) <= lines.count(f"{name} choice") + lines.count(f"{name} reward")
            assert bandit.n_decisions == lines.count(f"{name} choice")
            assert bandit.n_rewards == bandit.n_decisions - bandit.n_pending
            rewarded = [key for event in store.events(name, kinds=["reward"]) for key, _, _ in event.payload["rewards"]]
            assert len(set(rewarded)) == len(rewarded) == bandit.n_rewards
        assert store.check() == []
