"""Labels that come twice, late, early, in any order, with other content, or after their prediction was deleted.

A model of ten lines says what each request is answered, and which rows are learned in which order; a model of the
library that learns just these rows ends up as the same bytes.
"""

import asyncio
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from onepass.files.checkpoint import from_bytes, to_bytes
from onepass.service.wire import LabelRequest, Learned, LearnRequest, Prediction, PredictRequest
from tests.service.running import Running, crashed_copy, outcome, regressor

MODEL = regressor()
PHASES = (Phase.explicit, Phase.reuse, Phase.generate)  # to make a failure shorter takes minutes
COUNTERPART = {"predict": "label", "label": "predict"}
RIVALS = {"predict": ("learn",), "label": ("learn",), "learn": ("predict", "label")}


class TenLines:
    """What was asked by kind and id (None: deleted), whose features have expired, and the rows learned in order."""

    def __init__(self) -> None:
        self.asked: dict[tuple[str, str], Any] = {}
        self.expired: set[tuple[str, str]] = set()
        self.rows: list[tuple[Any, Any]] = []

    def ask(self, kind: str, id: str, given: Any) -> str | int:
        """The status of a request: of a prediction, of a label, or of a row with its target."""
        if (kind, id) in self.asked:
            earlier = self.asked[kind, id]
            return 410 if earlier is None else "again" if earlier == given else 422
        for rival in ((one, id) for one in RIVALS[kind] if (one, id) in self.asked):
            if self.asked[rival] is None or rival not in self.expired:
                return 410 if self.asked[rival] is None else 422
        other = COUNTERPART.get(kind, ""), id
        if other in self.expired or self.asked.get(other, "") is None:
            return 410
        self.asked[kind, id] = given
        if kind != "learn" and other not in self.asked:
            return "waiting"
        x, y = given if kind == "learn" else (self.asked["predict", id], self.asked["label", id])
        self.rows.append((x, y))
        return "learned"

    def forget(self, id: str) -> None:
        """Delete all content of an id."""
        self.asked.update((name, None) for name in self.asked if name[1] == id)

    def expire(self) -> None:
        """Delete the features of predictions without label, and labels without prediction; their answers stay."""
        self.expired.update(self.waiting("predict") | self.waiting("label"))

    def waiting(self, kind: str) -> set[tuple[str, str]]:
        """Those that their counterpart has not come for."""
        there = {name for name, given in self.asked.items() if name[0] == kind and given is not None}
        return {name for name in there - self.expired if (COUNTERPART[kind], name[1]) not in self.asked}


IDS = st.sampled_from("abcd")
NUMBERS = st.integers(-3, 3).map(float)
INPUTS = st.sampled_from([(0.0, 1.0), (1.0, 2.0), (-1.0, 0.5)])
REQUESTS = st.one_of(
    st.tuples(st.just("predict"), IDS, INPUTS),
    st.tuples(st.just("label"), IDS, NUMBERS),
    st.tuples(st.just("learn"), IDS, st.tuples(INPUTS, NUMBERS)),
)


class Labels(RuleBasedStateMachine):
    """The service beside the ten lines."""

    def __init__(self) -> None:
        super().__init__()
        self.place = tempfile.TemporaryDirectory()
        self.lives = 0
        self.expected = TenLines()
        self.answers: dict[tuple[str, str], Any] = {}
        self.running = Running(Path(self.place.name) / "0", durability="relaxed")  # nobody cuts the power here
        self.running.ask(self.running.state.create("m", MODEL))

    @property
    def model(self) -> Any:
        """The model that is served."""
        return self.running.model("m")

    def send(self, kind: str, id: str, given: Any) -> Any:
        """The coroutine of a request."""
        if kind == "predict":
            return self.model.predict(PredictRequest(list(given), id=id))
        if kind == "label":
            return self.model.label(LabelRequest(id, given))
        return self.model.learn(LearnRequest(list(given[0]), given[1], id=id))

    @rule(requests=st.lists(REQUESTS, min_size=1, max_size=12))
    def ask_at_once(self, requests: list[tuple[str, str, Any]]) -> None:
        """Requests that are there at the same time are answered as if one came after the other."""

        async def all_at_once() -> list[Any]:
            return await asyncio.gather(*(outcome(self.send(*request)) for request in requests))

        for request, answer in zip(requests, self.running.ask(all_at_once()), strict=True):
            self.compare(request, answer)

    @rule(request=REQUESTS)
    def ask_one(self, request: tuple[str, str, Any]) -> None:
        """One request after the other."""
        self.compare(request, self.running.ask(outcome(self.send(*request))))

    def compare(self, request: tuple[str, str, Any], answer: Any) -> None:
        """What was answered, and what the ten lines say."""
        kind, id, given = request
        status = self.expected.ask(kind, id, given)
        if isinstance(status, int):
            assert answer == status, request
        elif status == "again":
            assert answer == self.answers[kind, id], request
        else:
            self.answers[kind, id] = answer
            if isinstance(answer, Prediction):
                assert answer.learned == (status == "learned"), request
            else:
                assert isinstance(answer, Learned), request
                assert (answer.status, answer.n_seen) == (status, 3 + len(self.expected.rows)), request

    @rule(id=IDS)
    def forget(self, id: str) -> None:
        """Delete what was kept under an id."""
        self.running.ask(self.model.forget(id))
        self.expected.forget(id)

    @rule()
    def expire(self) -> None:
        """Let all time pass that predictions and labels are kept for."""
        self.running.call("m", lambda model: model.journal.expire(float("inf")))
        self.expected.expire()

    @rule()
    def snapshot(self) -> None:
        """Save a snapshot."""
        self.running.ask(self.model.snapshot())

    @rule()
    def restart(self) -> None:
        """Stop in order, and start again."""
        self.running.stop()
        self.running = Running(self.running.folder, durability="relaxed")

    @rule()
    def crash(self) -> None:
        """Go on with what a killed process leaves behind."""
        self.lives += 1
        copy = crashed_copy(self.running.folder, Path(self.place.name) / str(self.lives))
        self.running.stop()
        self.running = Running(copy, durability="relaxed")

    @invariant()
    def what_waits_is_what_the_ten_lines_say(self) -> None:
        """Predictions without label and labels without prediction."""
        assert {("predict", id) for id in self.model.journal.pending} == self.expected.waiting("predict")
        assert {("label", id) for id in self.model.journal.waiting} == self.expected.waiting("label")

    @invariant()
    def the_model_has_learned_these_rows_in_this_order(self) -> None:
        """Byte for byte what the library makes of them."""
        plain = from_bytes(MODEL)
        for x, y in self.expected.rows:
            plain.partial_fit([x], [y])
        assert self.running.ask(self.model.file()) == to_bytes(plain)

    def teardown(self) -> None:
        """Stop."""
        self.running.stop()
        self.place.cleanup()


def machine(examples: int, steps: int) -> Any:
    """The machine as a test case."""

    own = settings(max_examples=examples, stateful_step_count=steps, deadline=None, phases=PHASES)
    return type("Case", (Labels.TestCase,), {"settings": own})


TestLabels = machine(15, 20)
TestManyLabels = pytest.mark.slow(machine(1000, 40))
