"""Bandits behind the service: one id is one decision, and what is deleted or has expired is gone."""

from pathlib import Path

import numpy as np
import pytest

from onepass.service.errors import ProblemError
from onepass.service.wire import DecideRequest, Decision, RewardRequest
from tests.service.running import Running, four_models, served

CONTEXT = [0.8414709848078965, -0.9092974268256817]  # bytes that occur nowhere else
ARMS = ["left", "right"]


def begin(running: Running) -> None:
    running.ask(running.state.create("bandit", four_models()["bandit"]))


def decide(running: Running, request: DecideRequest) -> Decision:
    decision: Decision = running.ask(running.model("bandit").decide(request))
    return decision


@pytest.mark.parametrize(
    "other",
    [
        DecideRequest(CONTEXT, id="a", arms=["left"]),
        DecideRequest(CONTEXT, id="a"),
        DecideRequest(CONTEXT, id="a", n=2, arms=ARMS),
        DecideRequest(CONTEXT[::-1], id="a", arms=ARMS),
    ],
)
def test_an_id_names_one_request(other: DecideRequest, tmp_path: Path) -> None:
    with served(tmp_path) as running:
        begin(running)
        first = decide(running, DecideRequest(CONTEXT, id="a", arms=ARMS))
        with pytest.raises(ProblemError) as refused:
            decide(running, other)
        assert (refused.value.status, refused.value.field) == (422, "id")
        assert decide(running, DecideRequest(CONTEXT, id="a", arms=ARMS)) == first
    with served(tmp_path) as running:
        assert decide(running, DecideRequest(CONTEXT, id="a", arms=ARMS)) == first


@pytest.mark.parametrize("is_rewarded", [True, False])
def test_what_is_deleted_on_request_is_nowhere_in_the_folder(is_rewarded: bool, tmp_path: Path) -> None:
    with served(tmp_path) as running:
        begin(running)
        bandit = running.model("bandit")
        decide(running, DecideRequest(CONTEXT, id="secret"))
        decide(running, DecideRequest([1.0, 2.0], id="other"))
        running.ask(bandit.snapshot())
        if is_rewarded:
            running.ask(bandit.reward(RewardRequest("secret", 1.0)))
        running.ask(bandit.forget("secret"))
        assert bandit.n_pending == 1
        with pytest.raises(ProblemError) as refused:
            decide(running, DecideRequest(CONTEXT, id="secret"))
        assert refused.value.status == 410
        content = running.ask(bandit.file())
    kept = b"".join(path.read_bytes() for path in tmp_path.iterdir() if path.is_file())
    assert np.array([1.0, 2.0]).tobytes() in kept
    assert np.array(CONTEXT).tobytes() not in kept
    with served(tmp_path) as running:
        assert running.ask(running.model("bandit").file()) == content


def test_a_decision_waits_for_so_long(tmp_path: Path) -> None:
    with served(tmp_path, keep_pending=0.0) as running:
        begin(running)
        bandit = running.model("bandit")
        decide(running, DecideRequest(CONTEXT, id="late"))
        assert bandit.n_pending == 1
        bandit._next_look = 0.0
        for _ in range(3):
            running.call("bandit", lambda model: None)
        assert bandit.n_pending == 0
        with pytest.raises(ProblemError, match="expired"):
            running.ask(bandit.reward(RewardRequest("late", 1.0)))
        content = running.ask(bandit.file())
    with served(tmp_path) as running:
        assert running.ask(running.model("bandit").file()) == content
