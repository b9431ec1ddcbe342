"""One model in production: requests go to its writer or are predicted at once, answers come back to the event loop."""

import asyncio
import time
from collections.abc import Callable, Coroutine, Iterable
from contextlib import suppress
from itertools import islice
from typing import Any

from onepass.events import EventLog
from onepass.service.clock import ServiceClock
from onepass.service.counting import Counts, Durations, UpAndDown
from onepass.service.declared import model_content
from onepass.service.errors import ProblemError
from onepass.service.journal import Journal
from onepass.service.model_state import ModelState
from onepass.service.operations import (
    DropShadow,
    Expire,
    Label,
    Learn,
    LearnRows,
    Operation,
    Predict,
    Promote,
    Reward,
    Rollback,
    Shadow,
    Withdraw,
    WriterCall,
    checked_candidate,
)
from onepass.service.predictor import Predictor, Published
from onepass.service.settings import ServiceSettings
from onepass.service.wire import (
    ArmsRequest,
    Declared,
    ExpireRequest,
    Explained,
    ExplainRequest,
    Forecasted,
    ForecastRequest,
    LabelRequest,
    Learned,
    LearnRequest,
    Prediction,
    PredictRequest,
    RewardRequest,
    RollbackRequest,
    RowsRequest,
)
from onepass.service.writer import Ticket, Writer

__all__ = ["HostedModel"]

_SHOWN = 100  # of those that wait
_HOUSEKEEPING = 60.0  # seconds between looks for what has expired


class HostedModel:
    """A model, its writer, and the belief that predictions are made with.

    Parameters
    ----------
    name : of the model
    store : an event store of its own, used by the writer's thread alone, which closes it in the end
    settings : of the service
    clock : by which what waits grows old
    loop : the event loop that answers are given to
    """

    def __init__(
        self,
        name: str,
        store: EventLog,
        settings: ServiceSettings,
        clock: ServiceClock,
        loop: asyncio.AbstractEventLoop,
    ) -> None:
        self.name = name
        self._settings, self._clock, self._loop = settings, clock, loop
        self._overdue = 0
        self.journal: Journal = Journal(store, name)
        try:
            if settings.is_shared_learner:
                self.journal.lock()
            state, begin = self.journal.recover()
        except BaseException:
            self.journal.close()
            raise
        self.published: Published
        self._state, self._counts = state, Counts()
        self._noted = (0, 0, 0)
        self._publish(state)
        self._predictor = Predictor(self)
        self._writer = Writer(
            self.journal,
            state,
            self._publish,
            self._answer,
            self._keep_house,
            queue=settings.queue,
            begin=begin,
        )
        self._next_look = time.monotonic()
        self._is_interrupted = False  # of a replica: whether its state may have applied a part of what was written
        if not settings.follow:
            self._writer.start()

    # What there is.

    @property
    def kind(self) -> str:
        """What kind of model it is."""
        return str(self.published.model.kind)

    @property
    def origin_digest(self) -> str:
        """What tells the request that made it from others."""
        return str(self._state.origin["digest"])

    @property
    def queue_length(self) -> int:
        """Requests that wait for the writer."""
        return len(self._writer)

    @property
    def counters(self) -> dict[str, float]:
        """Numbers for monitoring, those that there are for a model of this kind."""
        model, found = self.published.model, self._counts.numbers(with_shadow=self._state.candidate is not None)
        if model.n_pending is not None:
            found["decisions_waiting"] = float(self.n_pending)
        else:
            found |= {"predictions_waiting": float(self.n_pending), "labels_waiting": float(len(self.journal.waiting))}
        if not self._settings.follow:  # a replica never learns: that is nothing to be alarmed about
            found |= {"queue": float(self.queue_length), "writable": float(self._is_writable)}
            found["overdue"] = float(self._overdue)
        return {**found, "rows": float(self._noted[1])}

    @property
    def scores(self) -> dict[str, float]:
        """Each metric over all rows scored."""
        found: dict[str, float] = self._state.scores.total()
        return found

    @property
    def shadow_scores(self) -> dict[str, float]:
        """The same of the candidate, if there is one."""
        candidate = self._state.candidate_scores
        return {} if candidate is None else candidate.total()

    @property
    def score_sums(self) -> dict[str, UpAndDown]:
        """The sum of each metric over the rows scored, up and down."""
        return self._counts.score_sums(of_shadow=False)

    @property
    def shadow_score_sums(self) -> dict[str, UpAndDown]:
        """The same of the candidate, if there is one."""
        return self._counts.score_sums(of_shadow=True) if self._state.candidate is not None else {}

    @property
    def durations(self) -> dict[str, Durations]:
        """How long things took."""
        return {"label_lag": self._counts.label_lag, "commit": self._writer.commits}

    @property
    def why_not_writable(self) -> str | None:
        """Why the model can't learn now; None if it can, or if it is a replica, which never does."""
        return self._writer.outage.reason

    @property
    def _is_writable(self) -> bool:
        return self.why_not_writable is None and not self._settings.follow

    @property
    def n_pending(self) -> int:
        """Predictions that wait for a label, or decisions for a reward."""
        own = self.published.model.n_pending
        return len(self.journal.pending) if own is None else own

    def status(self) -> dict[str, Any]:
        """What there is to know about the model at a glance, and what requests to it must look like."""
        return {**self.glance(), "schema": self.published.model.schema()}

    def glance(self) -> dict[str, Any]:
        """What there is to know about the model at a glance."""
        candidate, state = self._state.candidate, self._state
        version, n_seen, n_set_aside = self._noted
        return {
            "name": self.name,
            "kind": self.published.model.kind,
            "n_seen": n_seen,
            "n_set_aside": n_set_aside,
            "version": version,
            "pending": self.n_pending,
            "waiting": len(self.journal.waiting),
            "created": state.origin["time"],
            "first_version": state.origin["version"],
            "overdue": self._overdue,
            "writable": self._is_writable,
            "why_not_writable": self.why_not_writable,
            "shadow": None if candidate is None else {"kind": candidate.kind, "n_seen": candidate.n_seen},
            "alarms": state.scores.n_alarms,
        }

    def metrics(self) -> dict[str, Any]:
        """How well rows were predicted before they were learned, or how a bandit fares; with the candidate's."""
        state = self._state
        champion = state.champion
        counts = {"n_seen": champion.n_seen, "n_set_aside": champion.n_set_aside}
        report = {"version": state.version, **counts, **state.scores.report()}
        if state.candidate_scores is not None:
            report["shadow"] = state.candidate_scores.report()
        return report

    async def weights(self) -> dict[str, Any]:
        """What each feature does, with error bars, and what the model is in words."""
        version, model = await self._latest()
        found = {
            label: [{"feature": one.feature, "mean": one.mean, "std": one.std} for one in weights]
            for label, weights in model.weights().items()
        }
        return {"version": version, "weights": found, "facts": model.facts()}

    async def waiting(self) -> dict[str, Any]:
        """The oldest predictions, or decisions, that wait for a label, and the oldest labels without prediction."""
        found: dict[str, Any] = await self.carry_out(WriterCall(self._list_waiting))
        return found

    def _list_waiting(self) -> dict[str, Any]:
        journal, model = self.journal, self._writer.state.champion
        pending: Iterable[tuple[str, float | None]] = journal.pending.items()
        if model.n_pending is not None:
            decisions = ((key, journal.find("decision", key)) for key in model.pending)
            pending = ((key, None if event is None else event.time) for key, event in decisions)
        return {
            "pending": [{"id": key, "since": since} for key, since in islice(pending, _SHOWN)],
            "waiting": [{"id": key, "since": since} for key, since in islice(journal.waiting.items(), _SHOWN)],
        }

    # Predicting.

    async def predict(self, request: PredictRequest) -> Prediction:
        """Predict a row; one with an id is kept until its label comes."""
        asked = self._predictor.predict(request) if request.id is None else self.carry_out(Predict(request))
        found: Prediction = await asked
        self._counts.predicted += 1
        return found

    async def predict_rows(self, rows: RowsRequest, level: float = 0.95) -> dict[str, Any]:
        """Columns of answers to a batch of rows, with the version of the model that gave them."""
        found: dict[str, Any] = await asyncio.to_thread(_predict_rows, await self._latest(), rows, level)
        self._counts.predicted += len(rows)
        return found

    async def forecast(self, request: ForecastRequest) -> Forecasted:
        """The next steps of a series."""
        found = await asyncio.to_thread(_forecast, await self._latest(), request)
        self._counts.predicted += request.horizon
        return found

    async def explain(self, request: ExplainRequest) -> Explained:
        """What each column adds to the prediction of a row."""
        return await asyncio.to_thread(_explain, await self._latest(), request)

    # Learning.

    def learn(self, request: LearnRequest) -> Coroutine[Any, Any, Learned]:
        """Learn a row."""
        return self.carry_out(Learn(request))

    async def learn_rows(self, rows: RowsRequest, id: str | None = None) -> Learned:
        """Learn several rows: all of them or, with a problem, none."""
        found: Learned = await self.carry_out(LearnRows(rows, id))
        return found

    async def label(self, request: LabelRequest) -> Learned:
        """Learn the target of an earlier prediction."""
        since = self.journal.pending.get(request.id)
        found: Learned = await self.carry_out(Label(request))
        if since is not None:
            self._counts.label_lag.add(max(time.time() - since, 0.0))
        return found

    async def label_many(self, requests: list[LabelRequest]) -> list[Learned | ProblemError]:
        """Learn the targets of earlier predictions, each with an answer of its own."""
        found = await asyncio.gather(*(self.label(request) for request in requests), return_exceptions=True)
        for one in found:
            if isinstance(one, BaseException) and not isinstance(one, ProblemError):
                raise one
        return found  # type: ignore[return-value]

    async def arms(self, request: ArmsRequest) -> dict[str, Any]:
        """What a bandit expects of each arm in a context; decides nothing."""

        def look() -> dict[str, Any]:  # in the writer's thread, where the bandit doesn't change
            state = self._writer.state
            arms = state.champion.as_bandit("arms").beliefs(request.context)
            return {"arms": arms, "version": state.version}

        found: dict[str, Any] = await self.carry_out(WriterCall(look))
        return found

    async def reward(self, request: RewardRequest) -> Learned:
        """Tell a bandit what came of a decision."""
        reward = Reward(request)
        found: Learned = await self.carry_out(reward)
        if reward.lag is not None:
            self._counts.label_lag.add(reward.lag)
        return found

    # The model as a whole.

    async def snapshot(self) -> dict[str, Any]:
        """Save a snapshot that is kept for good."""

        def save() -> dict[str, Any]:
            self.journal.save(self._writer.state, pinned=True)
            return {"version": self._writer.state.version}

        found: dict[str, Any] = await self.carry_out(WriterCall(save, "no snapshot was saved"))
        return found

    async def rollback(self, request: RollbackRequest) -> dict[str, Any]:
        """Go back to an earlier version."""
        found: dict[str, Any] = await self.carry_out(Rollback(request.version))
        return found

    async def set_shadow(self, content: bytes | Declared) -> dict[str, Any]:
        """Let a candidate, a model file or a description, learn the same stream."""
        sound = await asyncio.to_thread(lambda: checked_candidate(model_content(content)))  # an event is for good
        found: dict[str, Any] = await self.carry_out(Shadow(sound))
        return found

    async def drop_shadow(self) -> None:
        """End the shadow of a candidate."""
        await self.carry_out(DropShadow())

    async def promote(self) -> dict[str, Any]:
        """Let the candidate answer from now on."""
        found: dict[str, Any] = await self.carry_out(Promote())
        return found

    async def forget(self, id: str) -> int:
        """Delete what was kept under an id; the model keeps what it has learned from it."""

        def forget() -> int:
            if self._writer.state.champion.n_pending is not None:
                self._writer.carry_out_now(Withdraw(id))
            return self.journal.forget(id, self._writer.state)

        found: int = await self.carry_out(WriterCall(forget, "nothing was deleted"))
        return found

    async def file(self) -> bytes:
        """The model as `onepass.save` writes it."""
        found: bytes = await self.carry_out(WriterCall(lambda: self._writer.state.champion.content()))
        return found

    async def delete(self) -> None:
        """Delete the model and all its events."""
        await self.carry_out(WriterCall(self._writer.delete, "the model was not deleted"))
        await self.stop()

    async def stop(self) -> None:
        """Finish what is queued, save a snapshot, and close the store."""
        self.end()
        await asyncio.to_thread(self.join)

    def end(self) -> None:
        """Take no more requests."""
        if not self._settings.follow:
            self._writer.end()

    def join(self) -> None:
        """Wait until what is queued is finished and saved, and the store is closed."""
        self.journal.close() if self._settings.follow else self._writer.join()

    def follow(self, timeout: float) -> bool:
        """Wait for what a learner elsewhere writes, and apply it; for the threads of a replica."""
        state = self._state
        if self._is_interrupted:
            state, _ = self.journal.recover()
        elif self.journal.store.wait(self.journal.stream, state.version, timeout):
            self._is_interrupted = True  # by a lost connection, or where content was deleted that a snapshot includes
            self.journal.follow(state)
        else:
            return False
        self._is_interrupted = False
        self._publish(state)
        return True

    # Between the threads.

    @property
    def is_published(self) -> bool:
        """Whether what is published includes all that was acknowledged."""
        return self._writer.is_published

    def look(self, action: Callable[[Published], None]) -> bool:
        """Have something done with the model as it is now, in the writer's thread; False if that has ended."""

        def look() -> None:
            state = self._writer.sound_state
            with suppress(RuntimeError):  # the loop is closed, and no client waits any more
                action(self.published if state is None else Published(state.version, state.champion))

        return self._writer.look(look)

    async def _latest(self) -> Published:
        """What is published, once it includes all that was acknowledged."""
        future: asyncio.Future[None] = self._loop.create_future()

        def publish(_: Published) -> None:
            self._writer.publish()
            self._loop.call_soon_threadsafe(_release, future)

        if not self.is_published and self.look(publish):
            await future
        return self.published

    async def carry_out(self, operation: Operation) -> Any:
        """Have the writer carry out an operation, and return its answer."""
        if self._settings.follow:
            raise ProblemError(409, "a replica", "this service only predicts; send this to the service that learns")
        future: asyncio.Future[Any] = self._loop.create_future()
        self._writer.submit(Ticket(operation, time.monotonic() + self._settings.deadline, future))
        result = await future
        if isinstance(result, ProblemError):
            raise result
        return result

    def _answer(self, tickets: list[Ticket]) -> None:
        """Called by the writer: hand all results of a group over at once, and count what they have changed."""
        self._note(self._writer.state)
        with suppress(RuntimeError):  # the loop is closed, and no client waits any more
            self._loop.call_soon_threadsafe(_resolve, tickets)

    def _publish(self, state: ModelState) -> None:
        """Called by the writer: what predictions are made with from now on."""
        self.published, self._state = Published(state.version, state.champion.published()), state
        self._note(state)

    def _note(self, state: ModelState) -> None:
        """Note what the status says about the model until the next group."""
        self._counts.look(state)
        self._noted = (state.version, state.champion.n_seen, state.champion.n_set_aside)

    def _keep_house(self) -> bool:
        """Called by the writer: delete what has been kept for long enough; False if it is too early for a look."""
        if time.monotonic() < self._next_look:
            return False
        now, behind, keep = self._clock.now(), self._clock.behind(), self._settings.keep_pending
        self._next_look = time.monotonic() + _HOUSEKEEPING
        if self.journal.expire(now - keep):  # there may be more
            self._next_look = time.monotonic()
        champion = self._writer.state.champion
        if champion.n_pending:
            with suppress(ProblemError):  # a full queue, or the end: the next look tries again
                self._writer.submit(Ticket(Expire(ExpireRequest(keep), now), float("inf"), None))
        self._overdue = self._count_overdue(now + behind - keep) if behind else 0
        if self._settings.keep_events is not None:
            self.journal.prune(self._writer.state, now - self._settings.keep_events)
        return True

    def _count_overdue(self, before: float) -> int:
        """How many that wait would have expired if the clock of the system were trusted."""
        champion = self._writer.state.champion
        if champion.n_pending is not None:
            return len(champion.pending_until(before))
        journal = self.journal
        return sum(since < before for waiting in (journal.pending, journal.waiting) for since in waiting.values())


def _release(future: "asyncio.Future[None]") -> None:
    if not future.done():  # else its client has gone
        future.set_result(None)


def _resolve(tickets: list[Ticket]) -> None:
    for ticket in tickets:
        if ticket.future is not None and not ticket.future.done():  # else its client has gone
            ticket.future.set_result(ticket.result)


def _predict_rows(published: Published, rows: RowsRequest, level: float) -> dict[str, Any]:
    model = published.model.as_rows("predictions")
    numbers = model.read_all(rows, learn=False)
    return {**model.predict(numbers, level), "version": published.version}


def _forecast(published: Published, request: ForecastRequest) -> Forecasted:
    found = published.model.as_forecaster("forecasts").forecast(request)
    return Forecasted(published.version, *found)


def _explain(published: Published, request: ExplainRequest) -> Explained:
    model = published.model.as_rows("explaining predictions")
    rows, bad = model.read([request.x], [request.key])
    if bad:
        raise bad[0]
    unit, found = model.explain(rows)
    values = request.x if isinstance(request.x, dict) else dict(zip(found.columns, request.x, strict=False))
    columns = [
        {"column": name, "value": values.get(name), "add": float(add), "std": float(std)}
        for name, add, std in zip(found.columns, found.add[0], found.std[0], strict=True)
    ]
    columns.sort(key=lambda one: -abs(one["add"]))
    return Explained(unit, float(found.baseline[0]), float(found.total[0]), columns, published.version)
