"""Bandits behind the service: one id is one decision, and what is deleted or has expired is gone."""

import asyncio
import threading
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest

from onepass.decisions import ContextualBandit
from onepass.files.checkpoint import to_bytes
from onepass.service.errors import ProblemError
from onepass.service.operations import ChangeArm, Decide, Expire, WriterCall
from onepass.service.wire import ArmRequest, ArmsRequest, DecideRequest, Decision, ExpireRequest, RewardRequest
from tests.service.running import Running, four_models, outcome, served

CONTEXT = [0.8414709848078965, -0.9092974268256817]  # bytes that occur nowhere else
ARMS: list[str | int] = ["left", "right"]


def begin(running: Running) -> None:
    running.ask(running.state.create("bandit", four_models()["bandit"]))


def decide(running: Running, request: DecideRequest) -> Decision:
    decision: Decision = running.ask(running.model("bandit").carry_out(Decide(request)))
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
        assert running.ask(outcome(bandit.reward(RewardRequest("secret", 1.0)))) == 410
        content = running.ask(bandit.file())
    kept = b"".join(path.read_bytes() for path in tmp_path.iterdir() if path.is_file())
    assert np.array([1.0, 2.0]).tobytes() in kept
    assert np.array(CONTEXT).tobytes() not in kept
    with served(tmp_path) as running:
        assert running.ask(running.model("bandit").file()) == content


def test_a_decision_that_has_waited_for_too_long_expires_when_the_service_starts(tmp_path: Path) -> None:
    with served(tmp_path) as running:
        begin(running)
        decide(running, DecideRequest(CONTEXT, id="late"))
        for _ in range(3):
            running.call("bandit", lambda model: None)
        assert running.model("bandit").n_pending == 1
    with served(tmp_path, keep_pending=0.0) as running:
        bandit = running.model("bandit")
        for _ in range(3):
            running.call("bandit", lambda model: None)
        assert bandit.n_pending == 0
        assert running.ask(outcome(bandit.reward(RewardRequest("late", 1.0)))) == 410
        content = running.ask(bandit.file())
    with served(tmp_path) as running:
        assert running.ask(running.model("bandit").file()) == content


def test_a_reward_is_learned_once_and_gets_the_same_answer_again(tmp_path: Path) -> None:
    with served(tmp_path) as running:
        begin(running)
        bandit = running.model("bandit")
        both = decide(running, DecideRequest(CONTEXT, id="both", n=2)).arms
        decide(running, DecideRequest(CONTEXT, id="other"))
        first = running.ask(bandit.reward(RewardRequest("both", 1.0)))
        running.ask(bandit.reward(RewardRequest("other", 0.0)))
        second = running.ask(bandit.reward(RewardRequest("both", 0.0, arm=both[1])))
        assert [first.n_seen, second.n_seen, bandit.status()["n_seen"]] == [1, 3, 3]
        assert running.ask(bandit.reward(RewardRequest("both", 1.0))) == first
        assert running.ask(bandit.reward(RewardRequest("both", 1.0, arm=both[0]))) == first
        assert running.ask(outcome(bandit.reward(RewardRequest("both", 0.0)))) == 422
        assert running.ask(outcome(bandit.reward(RewardRequest("both", 0.0, arm="nowhere")))) == 422
        assert running.ask(outcome(bandit.reward(RewardRequest("never made", 0.0)))) == 404
        assert bandit.status()["n_seen"] == 3


def test_arms_come_and_go_and_old_decisions_get_the_reward_that_silence_means(tmp_path: Path) -> None:
    with served(tmp_path) as running:
        begin(running)
        bandit = running.model("bandit")

        def change(arm: str, what: Literal["add", "remove", "pause", "resume"]) -> Any:
            return running.ask(outcome(bandit.carry_out(ChangeArm(ArmRequest(arm, what)))))

        assert change("new", "add")["arms"] == ["left", "middle", "right", "new"]
        version = bandit.status()["version"]
        assert change("new", "add")["version"] == version
        assert change("left", "pause")["paused"] == ["left"]
        assert change("middle", "remove")["arms"] == ["left", "right", "new"]
        assert change("gone", "remove") == 422
        for i in range(20):
            assert decide(running, DecideRequest([1.0, 0.1 * i], id=f"{i}")).arm in ("right", "new")
        with pytest.raises(ProblemError) as refused:
            decide(running, DecideRequest(CONTEXT, arms=["middle"]))
        assert refused.value.field == "arms"
        with pytest.raises(ProblemError) as refused:
            decide(running, DecideRequest(CONTEXT, n=3))
        assert refused.value.field == "n"
        assert running.ask(bandit.carry_out(Expire(ExpireRequest(0.0, 0.0))))["expired"] == 20
        assert (bandit.status()["n_seen"], bandit.n_pending) == (20, 0)
        content = running.ask(bandit.file())
    with served(tmp_path) as running:
        assert running.ask(running.model("bandit").file()) == content


def test_arms_may_have_whole_numbers_as_names(tmp_path: Path) -> None:
    with served(tmp_path) as running:
        running.ask(running.state.create("prices", to_bytes(ContextualBandit([9, 12], n_features=1))))
        bandit = running.model("prices")
        assert bandit.status()["schema"]["arms"] == [9, 12]
        decision = running.ask(bandit.carry_out(Decide(DecideRequest([1.0], id="a", arms=[9]))))
        assert decision.arm == 9
        running.ask(bandit.carry_out(ChangeArm(ArmRequest(15, "add"))))
        running.ask(bandit.carry_out(ChangeArm(ArmRequest(9, "pause"))))
        assert running.ask(bandit.weights())["facts"]["arms"] == "9, 12, 15, of which 9 rest"
        running.ask(bandit.arms(ArmsRequest([1.0])))
        assert running.ask(bandit.reward(RewardRequest("a", 1.0, arm=9))).n_seen == 1


def test_requests_of_one_transaction_know_of_each_other(tmp_path: Path) -> None:
    """They are planned before any of them is applied."""
    asked = [
        DecideRequest(CONTEXT, id="a", n=2),
        DecideRequest(CONTEXT, id="a", n=2),  # again
        DecideRequest(CONTEXT),
        DecideRequest(CONTEXT),
    ]
    with served(tmp_path) as running:
        begin(running)
        model, gate = running.model("bandit"), threading.Event()

        async def together() -> list[Any]:
            held = asyncio.create_task(model.carry_out(WriterCall(gate.wait)))
            await asyncio.sleep(0)
            questions: list[Any] = [model.carry_out(Decide(request)) for request in asked]
            questions += [model.reward(RewardRequest("a", value)) for value in (1.0, 1.0, 0.0)]
            tasks = [asyncio.create_task(outcome(question)) for question in questions]
            await asyncio.sleep(0)
            gate.set()
            await held
            return await asyncio.gather(*tasks)

        first, again, one, other, reward, repeated, another = running.ask(together())
        assert first == again
        assert (one.id, other.id) == ("1", "2")
        assert reward == repeated
        assert (reward.status, reward.version, reward.n_seen, another) == ("learned", 5, 1, 422)
        assert (model.published.model.n_seen, model.n_pending) == (1, 3)  # one arm of two is rewarded
        file = running.ask(model.file())
        assert running.call("bandit", lambda host: host.journal.at(5).champion.content()) == file
    with served(tmp_path) as running:
        assert running.ask(running.model("bandit").file()) == file
