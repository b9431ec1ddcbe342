"""Requests in any order, in groups of any size, with deletions, restarts and crashes in between: no model is lost.

The writer takes a group when the test says so, in the test's own thread, so that every interleaving of its queue can
happen and happens again when a failure is repeated. After every step the store alone must give the model that is being
served, byte for byte.
"""

import asyncio
import tempfile
from collections.abc import Callable
from errno import ENOSPC
from pathlib import Path
from typing import Any

import pytest
from hypothesis import Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test

from onepass.events import EventStore, EventStoreError
from onepass.events.sqlite import database
from onepass.service import host, writer
from onepass.service.errors import ProblemError
from onepass.service.host import HostedModel
from onepass.service.journal import Journal
from onepass.service.operations import ChangeArm, Decide, Expire
from onepass.service.settings import ServiceSettings
from onepass.service.state import EVENTS
from onepass.service.wire import (
    ArmRequest,
    DecideRequest,
    ExpireRequest,
    LabelRequest,
    LearnRequest,
    PredictRequest,
    RewardRequest,
    RollbackRequest,
    RowsRequest,
)
from onepass.service.writer import Writer
from tests.service.running import Running, four_models, outcome, regressor

Send = Callable[[HostedModel], Any]
"""What is asked of a model: gives the coroutine of a request."""


class SteppedWriter(Writer):
    """A writer without a thread, which takes a group when it is asked to."""

    def start(self) -> None:
        """Wait to be asked."""

    def join(self, timeout: float | None = None) -> None:
        """Do what a thread does that is about to end."""
        self.run()

    def take_group(self) -> None:
        """Carry out the requests of one group."""
        group = self._take() or []
        self._carry_out([ticket for ticket in group if self._is_in_time(ticket)])
        self._answer_all(group)


async def at_once(action: Callable[..., Any], *given: Any) -> Any:
    """In place of `asyncio.to_thread`: nothing happens behind the test's back."""
    return action(*given)


class Interleaving(RuleBasedStateMachine):
    """One model whose requests wait until the writer takes them; what differs between kinds is in subclasses."""

    content: bytes
    """The model, as it begins."""
    n_steps = 0

    def __init__(self) -> None:
        super().__init__()
        self.patches = pytest.MonkeyPatch()
        self.patches.setattr(host, "Writer", SteppedWriter)
        self.patches.setattr(asyncio, "to_thread", at_once)
        self.patches.setattr(writer, "_SNAPSHOT_EVENTS", 8)
        self.patches.setitem(database._SYNCHRONOUS, "relaxed", "OFF")  # nobody cuts the power here
        self.place = tempfile.TemporaryDirectory()
        self.waiting: list[asyncio.Task[Any]] = []
        self.replica: HostedModel | None = None
        self.running = self.started()

    def started(self) -> Running:
        """A service on the folder, which must load every model that is there."""
        # Nothing is too late, however long it waits.
        found = Running(Path(self.place.name), durability="relaxed", deadline=float("inf"), keep_pending=float("inf"))
        assert found.state.broken == {}
        return found

    @property
    def model(self) -> HostedModel | None:
        """The model that is served, if it was not deleted."""
        return next(iter(self.running.state.models()), None)

    # Requests.

    def enqueue(self, sends: list[Send]) -> None:
        """Send requests, which wait for the writer; a model that was deleted is made anew for them."""

        async def ask(send: Send) -> Any:
            return await send(self.running.state.model("m"))

        if self.model is None:
            self.running.ask(self.running.state.create("m", self.content))
        self.waiting += [self.running.loop.create_task(outcome(ask(send))) for send in sends]
        self.let_coroutines_run()

    def let_coroutines_run(self) -> None:
        """Let whoever has an answer go on, e.g. with the second part of a request."""
        for _ in range(8):
            self.running.ask(asyncio.sleep(0))
        for task in [task for task in self.waiting if task.done()]:
            self.waiting.remove(task)
            assert task.result() != 500

    @rule()
    def delete(self) -> None:
        """Delete the model, with all that waits behind this request."""
        self.enqueue([lambda model: self.running.state.delete("m")])

    # The writer.

    @rule(groups=st.integers(1, 4), size=st.sampled_from([1, 2, 3, 256]))
    def handle(self, groups: int, size: int) -> None:
        """Have the writer take some groups of requests that wait."""
        self.patches.setattr(writer, "_GROUP", size)
        for _ in range(groups):
            if self.model is not None and self.model.queue_length:
                self.writer_of(self.model).take_group()
                self.let_coroutines_run()

    def writer_of(self, model: HostedModel) -> SteppedWriter:
        """The writer of a model."""
        found = model._writer
        assert isinstance(found, SteppedWriter)
        return found

    @rule()
    def handle_without_room_for_snapshots(self) -> None:
        """Have the writer take a group when only events fit on the disk."""
        if self.model is None or not self.model.queue_length:
            return

        def no_room(*given: Any, **named: Any) -> None:
            raise EventStoreError(ENOSPC, "the disk is full")

        with pytest.MonkeyPatch.context() as patches:
            patches.setattr(self.model.journal.store, "save_snapshot", no_room)
            self.handle(1, 256)

    @rule(share=st.floats(0.0, 1.0))
    def prune(self, share: float) -> None:
        """Delete the oldest events, between two groups."""
        if self.model is not None:
            moment = self.time_at(self.model.journal, share)
            self.model.journal.prune(self.model._writer.state, moment)

    @rule(share=st.floats(0.0, 1.0))
    def expire(self, share: float) -> None:
        """Delete what has waited longest, between two groups."""
        if self.model is not None:
            self.model.journal.expire(self.time_at(self.model.journal, share))

    def time_at(self, journal: Journal, share: float) -> float:
        """The moment after a share of the events."""
        times = [event.time for event in journal.store.events(journal.stream, journal.store.first(journal.stream) - 1)]
        return times[int(share * (len(times) - 1))] + 1e-9 if times else 0.0

    # Restarts.

    @rule()
    def restart(self) -> None:
        """Stop in order, which finishes what waits, and start again."""
        while self.model is not None and self.model.queue_length and self.running.state._making.locked():
            self.handle(1, 256)  # a deletion that waits has to end before the service can
        model = self.model
        self.running.stop()
        self.start_again()
        if model is not None and self.model is not None:
            assert self.model._writer.state.content() == model._writer.state.content()

    @rule()
    def crash(self) -> None:
        """Go on with what a process leaves behind that is killed between two groups."""
        for task in self.waiting:
            task.cancel()
        self.let_coroutines_end()
        if self.model is not None:
            self.model.journal.close()
            self.running.state._models.clear()
        self.running.stop()
        self.start_again()

    def let_coroutines_end(self) -> None:
        """Let coroutines end that were cancelled."""

        async def ended() -> None:
            await asyncio.gather(*self.waiting, return_exceptions=True)

        self.running.ask(ended())

    def start_again(self) -> None:
        """Start a service where another one has ended."""
        self.waiting.clear()
        self.running = self.started()

    # A replica.

    @rule()
    def follow(self) -> None:
        """Have a replica read what was written since, however much of it was deleted again."""
        if self.model is None:
            self.leave()
            return
        if self.replica is None:
            place = self.running.folder / EVENTS
            own = ServiceSettings(self.running.folder, events=str(place), follow=True)
            store = EventStore(place, durability="relaxed")
            self.replica = HostedModel("m", store, own, self.running.state.clock, self.running.loop)
        for _ in range(3):
            try:
                if not self.replica.follow(0.0):
                    break
            except ProblemError:  # content deleted: it begins again with the latest snapshot
                continue
            except EventStoreError as error:
                if "were pruned" not in str(error.strerror):
                    raise
        assert self.replica._state.content() == self.model._writer.state.content()

    def leave(self) -> None:
        """End the replica."""
        if self.replica is not None:
            self.replica.journal.close()
            self.replica = None

    # What always holds.

    @invariant()
    def the_store_gives_the_model_that_is_served(self) -> None:
        """Byte for byte, and what waits as well."""
        type(self).n_steps += 1
        if self.model is None:
            return
        found = self.model._writer
        assert (found.outage.reason or "").find("can't be read again") < 0
        with EventStore(self.running.folder / EVENTS, durability="relaxed") as store:
            journal = Journal(store, "m")
            learner, _ = journal.recover()
            assert learner.content() == found.state.content()
            assert (journal.pending, journal.waiting) == (self.model.journal.pending, self.model.journal.waiting)

    def teardown(self) -> None:
        """Stop, and load the model once more."""
        try:
            self.leave()
            self.restart()
            self.running.stop()
        finally:
            self.place.cleanup()
            self.patches.undo()


IDS = st.sampled_from("abcdefghijkl")
NUMBERS = st.integers(-3, 3).map(float)
X = st.tuples(NUMBERS, NUMBERS).map(list)
BACK = st.integers(0, 20)
WHOLE = ["rollback", "rollback", "snapshot"]


def together(sends: st.SearchStrategy[Send]) -> st.SearchStrategy[list[Send]]:
    """Requests that are there at the same time."""
    return st.lists(sends, min_size=1, max_size=12)


def of_any(kind: str, id: str, back: int) -> Send:
    """A request to any model; versions are counted from the one at which the request is sent."""
    return {
        "rollback": lambda model: model.rollback(RollbackRequest(max(model._writer.state.version - back, 1))),
        "snapshot": lambda model: model.snapshot(),
        "forget": lambda model: model.forget(id),
    }[kind]


def of_rows(kind: str, id: str, x: list[float | None], y: float, back: int) -> Send:
    """A request to a model that learns rows."""
    sends: dict[str, Send] = {
        "predict": lambda model: model.predict(PredictRequest(x, id=id)),
        "label": lambda model: model.label(LabelRequest(id, y)),
        "learn": lambda model: model.learn(LearnRequest(x, y, id=id)),
        "rows": lambda model: model.learn_rows(RowsRequest(records=[{"x": x, "y": y}, {"x": x, "y": -y}])),
        "shadow": lambda model: model.set_shadow(regressor()),
        "drop": lambda model: model.drop_shadow(),
        "promote": lambda model: model.promote(),
    }
    return sends[kind] if kind in sends else of_any(kind, id, back)


ROW_KINDS = ["predict", "label", "learn", "rows", "forget", "shadow", "drop", "promote", *WHOLE]


class RowsInterleaved(Interleaving):
    """A model of rows: predictions, labels and candidates."""

    content = regressor()

    @rule(
        asked=st.lists(st.builds(of_rows, st.sampled_from(ROW_KINDS), IDS, X, NUMBERS, BACK), min_size=1, max_size=12)
    )
    def send(self, asked: list[Send]) -> None:
        """Send requests that wait together."""
        self.enqueue(asked)


def of_bandits(kind: str, id: str, x: list[float], arm: str, back: int) -> Send:
    """A request to a bandit."""
    sends: dict[str, Send] = {
        "decide": lambda model: model.carry_out(Decide(DecideRequest(x, id=id))),
        "decide without id": lambda model: model.carry_out(Decide(DecideRequest(x))),
        "reward": lambda model: model.reward(RewardRequest(id, float(x[0] > 0))),
        "add": lambda model: model.carry_out(ChangeArm(ArmRequest(arm, "add"))),
        "remove": lambda model: model.carry_out(ChangeArm(ArmRequest(arm, "remove"))),
        "pause": lambda model: model.carry_out(ChangeArm(ArmRequest(arm, "pause"))),
        "expire": lambda model: model.carry_out(Expire(ExpireRequest(0.0))),
    }
    return sends[kind] if kind in sends else of_any(kind, id, back)


BANDIT_KINDS = ["decide", "decide without id", "reward", "add", "remove", "pause", "expire", "forget", *WHOLE]
ARMS = st.sampled_from(["left", "middle", "new"])


class BanditInterleaved(Interleaving):
    """A bandit: decisions, rewards and arms."""

    content = four_models()["bandit"]

    @rule(
        asked=st.lists(
            st.builds(of_bandits, st.sampled_from(BANDIT_KINDS), IDS, X, ARMS, BACK), min_size=1, max_size=12
        )
    )
    def send(self, asked: list[Send]) -> None:
        """Send requests that wait together."""
        self.enqueue(asked)


MACHINES = [RowsInterleaved, BanditInterleaved]


def run(machine: type[Interleaving], examples: int, steps: int) -> int:
    """Run a machine, and return how many steps there were."""
    machine.n_steps = 0
    phases = (Phase.explicit, Phase.reuse, Phase.generate)  # to make a failure shorter takes minutes
    own = settings(max_examples=examples, stateful_step_count=steps, deadline=None, phases=phases)
    run_state_machine_as_test(machine, settings=own)
    return machine.n_steps


@pytest.mark.parametrize("machine", MACHINES)
def test_no_interleaving_loses_a_model(machine: type[Interleaving]) -> None:
    assert run(machine, examples=8, steps=30) > 0


@pytest.mark.slow
@pytest.mark.parametrize("machine", MACHINES)
def test_no_interleaving_of_ten_thousand_steps_loses_a_model(machine: type[Interleaving]) -> None:
    assert run(machine, examples=250, steps=50) >= 10_000
