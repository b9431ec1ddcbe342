"""The same events give the same model, byte for byte, wherever snapshots were taken and whoever read the rows."""

import json
from collections.abc import Mapping
from dataclasses import replace
from itertools import groupby
from typing import Any

import numpy as np
import pytest

from onepass.decisions import ContextualBandit
from onepass.decisions.changes import Change
from onepass.decisions.stored import data_of
from onepass.events import Event
from onepass.files.checkpoint import from_bytes, to_bytes
from onepass.service.errors import ProblemError
from onepass.service.journal import replay
from onepass.service.model_state import ModelState, Prepared
from onepass.service.served import BanditModel, RowModel, serve
from tests.helpers.served import EXAMPLES, content

_ROWS = 45  # in an event of many


_ALONE = {"create", "rollback", "shadow", "promote", "drop"}


def created(model: bytes) -> dict[str, Any]:
    """What the event that creates a model, or a candidate, says about its metrics."""
    return {"metrics": serve(from_bytes(model)).metrics_now}


class Past:
    """Events in memory, and what they had led to."""

    def __init__(self, model: bytes) -> None:
        self.events: list[Event] = []
        self._dice = np.random.default_rng(0)
        self._group = 0
        self.append("create", "create 1", {"request": "digest", **created(model)}, model)

    def append(self, kind: str, key: str, payload: Mapping[str, Any], blob: bytes = b"") -> Event:
        """Write an event, now and then together with those before it."""
        number = len(self.events) + 1
        if number < 3 or kind in _ALONE or self.events[-1].kind in _ALONE or self._dice.random() < 0.4:
            self._group = number
        event = Event(number, "model/a", kind, key, {**payload, "group": self._group}, blob, 1e9 + number)
        self.events.append(event)
        return event

    def find(self, kind: str, key: str) -> Event | None:
        """The event of this name."""
        return next((one for one in self.events if (one.kind, one.key) == (kind, key)), None)

    def at(self, version: int) -> ModelState:
        """What the events up to a version had led to."""
        return self.replayed(version)

    def replayed(self, until: int, snapshots: float = 0.0, seed: int = 0) -> ModelState:
        """Apply events, and take a snapshot after some groups of them, from which the learner goes on."""
        rng = np.random.default_rng(seed)
        learner: ModelState | None = None
        for _, group in groupby(self.events[:until], lambda event: event.payload["group"]):
            learner = replay(learner, iter(list(group)), self)
            assert learner is not None
            if rng.random() < snapshots:
                learner = ModelState.from_content(learner.content())
        assert learner is not None
        return learner


def lines(requests: Any) -> bytes:
    return json.dumps(requests).encode()


def past_of(name: str, seed: int, n: int) -> Past:
    """A random past of a model: all kinds of events, in any order that can be."""
    example, rng, past = EXAMPLES[name], np.random.default_rng(seed), Past(content(name))
    shadowed, waiting = False, []
    for number in range(n):
        kind = rng.choice(
            ["learn", "learn", "predict", "label", "early label", "rows", "rollback", "shadow", "promote"]
        )
        request = example.request(rng)
        y = request.pop("y")
        if kind == "learn":
            past.append("learn", f"id {number}", {"y": y}, lines(request))
        elif kind == "rows":
            many = example.requests(rng, _ROWS if rng.random() < 0.2 else 3)
            past.append("rows", f"id {number}", {"format": "json", "rows": len(many)}, lines(many))
        elif kind == "predict":
            past.append("prediction", f"id {number}", {}, lines(request))
            waiting.append(f"id {number}")
        elif kind == "label" and waiting:
            key = waiting.pop(int(rng.integers(len(waiting))))
            past.append("label", key, {"answer": {"status": "learned"}}, lines(y))
        elif kind == "early label":
            past.append("label", f"id {number}", {"answer": {"status": "waiting"}}, lines(y))
            past.append("prediction", f"id {number}", {"y": y}, lines(request))
        elif kind == "rollback" and rng.random() < 0.5:
            past.append("rollback", f"rollback {number}", {"to": int(rng.integers(1, len(past.events) + 1))})
            shadowed = past.replayed(len(past.events)).candidate is not None
        elif kind == "shadow":
            past.append("shadow", f"shadow {number}", created(content(name)), content(name))
            shadowed = True
        elif kind == "promote" and shadowed:
            past.append("promote" if rng.random() < 0.7 else "drop", f"end {number}", {})
            shadowed = False
    return past


@pytest.mark.parametrize("name", EXAMPLES)
def test_snapshots_change_nothing_wherever_they_are_taken(name: str) -> None:
    past = past_of(name, seed=len(name), n=30)
    whole = past.replayed(len(past.events))
    assert whole.n_refused == 0
    for share in (0.3, 1.0):
        parts = past.replayed(len(past.events), snapshots=share)
        assert parts.champion.content() == whole.champion.content()
        assert parts.content() == whole.content()


@pytest.mark.parametrize("name", EXAMPLES)
def test_rows_that_were_read_together_are_learned_as_if_each_were_read_alone(name: str) -> None:
    example, rng, past = EXAMPLES[name], np.random.default_rng(5), Past(content(name))
    requests = example.requests(rng, 12)
    writer = past.replayed(1)
    model = writer.champion
    assert isinstance(model, RowModel)
    rows, bad = model.read([one["x"] for one in requests], [one.get("key") for one in requests])
    y, bad_targets = model.read_targets([one["y"] for one in requests])
    assert not bad
    assert not bad_targets
    pairs: list[tuple[Event, Prepared | None]] = []
    for i, request in enumerate(requests):
        target = request.pop("y")
        event = past.append("learn", f"id {i}", {"y": target}, lines(request))
        pairs.append((event, Prepared(model, replace(rows, y=y).at([i]))))
    for _, group in groupby(pairs, lambda pair: pair[0].payload["group"]):
        assert writer.apply(list(group), past) == {}
    assert writer.content() == past.replayed(len(past.events)).content()


@pytest.mark.parametrize("name", ["table", "regressor", "perceptron", "fleet"])
def test_what_one_model_has_read_is_not_learned_by_another(name: str) -> None:
    past = Past(content(name))
    writer = past.replayed(1)
    model = writer.champion
    assert isinstance(model, RowModel)
    request = EXAMPLES[name].request(np.random.default_rng(5))
    rows, _ = model.read([request["x"]], [request.get("key")])
    y, _ = model.read_targets([request["y"]])
    wrong = Prepared(model, replace(rows, X=rows.X + 1.0, y=y))  # as another scaling would have it
    event = past.append("rollback", "rollback", {"to": 1})
    writer.apply([(event, None)], past)
    event = past.append("learn", "id", {"y": request.pop("y")}, lines(request))
    writer.apply([(event, wrong)], past)
    assert writer.content() == past.replayed(len(past.events)).content()


def test_a_row_that_a_new_champion_can_t_read_is_refused_in_words_and_counted() -> None:
    past = Past(content("perceptron"))
    past.append("shadow", "shadow", created(content("fleet")), content("fleet"))
    past.append("promote", "promote", {})
    past.append("learn", "id", {"y": 1.0}, lines({"x": [1.0, 2.0, 3.0]}))
    learner = past.replayed(3)
    before = learner.champion.content()
    problems = learner.apply([(past.events[-1], None)], past)
    assert "key is missing" in problems[4].detail
    assert (learner.n_refused, learner.version) == (1, 4)
    assert learner.champion.content() == before


def test_a_candidate_that_can_t_read_rows_learns_none_and_the_champion_does() -> None:
    past = Past(content("perceptron"))
    past.append("shadow", "shadow", created(content("table")), content("table"))
    past.append("learn", "id", {"y": 1.0}, lines({"x": [1.0, 2.0, 3.0]}))
    learner = past.replayed(3)
    assert learner.n_refused == 0
    assert learner.champion.n_seen == past.replayed(1).champion.n_seen + 1
    assert learner.candidate is not None
    assert learner.candidate.content() == content("table")


def test_a_label_whose_prediction_is_gone_is_told_so() -> None:
    past = Past(content("perceptron"))
    past.append("prediction", "id", {}, b"")
    past.append("label", "id", {"y": 1.0, "answer": {"status": "learned"}})
    with pytest.raises(ProblemError, match="was deleted"):
        past.replayed(3)


@pytest.mark.parametrize(
    "options",
    [
        {"observation": "gaussian"},
        {"hidden": (4,), "observation": "bernoulli"},
        {"hidden": (6,), "covariance": "kronecker", "drift": "auto"},
        {"drift": "auto", "standardize": True},
    ],
    ids=str,
)
def test_a_bandit_that_is_replayed_with_snapshots_is_the_one_that_decided(options: dict[str, Any]) -> None:
    bandit = ContextualBandit(["a", "b", "c"], 2, seed=3, **options)
    past = Past(to_bytes(bandit))
    living = past.replayed(1)
    assert isinstance(living.champion, BanditModel)
    rng, model = np.random.default_rng(0), living.champion.model

    def happen(changes: list[Change]) -> None:
        for change in changes:
            key = change.key or f"{change.kind} {len(past.events)}"
            living.apply([(past.append(change.kind, key, *data_of(change)), None)], past)

    for i in range(20):
        happen(model.plan_choice(rng.normal(size=2), id=f"id {i}")[1])
    for i in rng.permutation(20):
        happen(model.plan_rewards([f"id {i}"], [float(rng.random() < 0.5)])[1])
        if rng.random() < 0.3:
            happen(model.plan_choice(rng.normal(size=2))[1])
    for share in (0.0, 0.3, 1.0):
        replayed = past.replayed(len(past.events), snapshots=share)
        assert replayed.champion.content() == living.champion.content()
        assert replayed.champion.n_seen == 20
