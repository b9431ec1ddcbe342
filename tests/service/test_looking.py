"""What people look at besides predictions: who waits, how bandits fare, and candidates."""

import asyncio
import shutil
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from onepass.service.errors import ProblemError
from onepass.service.operations import Decide
from onepass.service.settings import ServiceSettings
from onepass.service.state import ServiceState
from onepass.service.wire import (
    ArmsRequest,
    DecideRequest,
    Declared,
    LabelRequest,
    LearnRequest,
    PredictRequest,
    RewardRequest,
)

_ROWS: list[dict[str, Any]] = [{"a": float(i % 7), "y": float(i % 7) + 0.1 * (i % 3)} for i in range(40)]
_TABLE = Declared(rows=_ROWS, target="y", learn=True)
_BANDIT = Declared(bandit={"arms": ["red", "blue"], "n_features": 2, "observation": "gaussian"})


def run(folder: Path, action: Callable[[ServiceState], Awaitable[Any]]) -> Any:
    """Open a folder, do something, and close it."""

    async def done() -> Any:
        state = ServiceState(ServiceSettings(folder))
        await state.start()
        try:
            while state.replaying:
                await asyncio.sleep(0.01)
            return await action(state)
        finally:
            await state.stop()

    return asyncio.run(done())


def test_a_bandit_without_arms_says_so(tmp_path: Path) -> None:
    async def look(state: ServiceState) -> Any:
        model, _ = await state.create("offer", Declared(bandit={"arms": [], "n_features": 1}))
        with pytest.raises(ProblemError) as refused:
            await model.arms(ArmsRequest([1.0]))
        return model.status()["schema"], (await model.weights())["facts"], refused.value

    schema, facts, refused = run(tmp_path / "state", look)
    assert "no arms yet" in schema["note"]
    assert facts["arms"] == "none yet"
    assert refused.status == 409
    assert "no arms yet: add one" in refused.detail


def test_what_a_kind_of_model_can_t_do_is_told_in_a_sentence(tmp_path: Path) -> None:
    async def ask(state: ServiceState) -> list[str]:
        bandit, _ = await state.create("offer", _BANDIT)
        asked = (bandit.learn(LearnRequest([1.0], 1.0)), bandit.predict(PredictRequest([1.0])))
        found = await asyncio.gather(*asked, return_exceptions=True)
        return [one.detail for one in found if isinstance(one, ProblemError)]

    assert run(tmp_path, ask) == [
        "a model of kind 'bandit' can't be used for rows with targets",
        "a model of kind 'bandit' can't be used for predictions",
    ]


def test_rewards_of_each_arm_are_counted_and_survive_an_end_and_a_crash(tmp_path: Path) -> None:
    rewards: dict[str, list[float]] = {"red": [], "blue": []}
    decisions = {"red": 0, "blue": 0}
    rng = np.random.default_rng(3)

    async def play(state: ServiceState) -> dict[str, Any]:
        model, _ = await state.create("offer", _BANDIT)
        for i in range(50):
            made = await model.carry_out(Decide(DecideRequest([1.0, float(rng.normal())], id=f"visit {i}")))
            decisions[made.arm] += 1
            if i % 5:
                rewards[made.arm].append(float(rng.normal()))
                await model.reward(RewardRequest(made.id, rewards[made.arm][-1]))
        shutil.copytree(tmp_path / "state", tmp_path / "crashed")  # as if the process had been killed here
        return model.metrics()

    async def look(state: ServiceState) -> dict[str, Any]:
        return state.model("offer").metrics()

    found = run(tmp_path / "state", play)
    everything = rewards["red"] + rewards["blue"]
    assert found["rows"] == len(everything) == 40
    assert found["scores"]["reward"] == pytest.approx(np.mean(everything))
    for arm in found["arms"]:
        own = rewards[arm["arm"]]
        assert (arm["decisions"], arm["rewards"]) == (decisions[arm["arm"]], len(own))
        assert arm["mean"] == pytest.approx(np.mean(own))
        assert arm["std_error"] == pytest.approx(np.std(own, ddof=1) / np.sqrt(len(own)))
    assert run(tmp_path / "state", look) == found
    assert run(tmp_path / "crashed", look) == found


def test_arms_are_compared_without_a_decision(tmp_path: Path) -> None:
    async def compare(state: ServiceState) -> None:
        model, _ = await state.create("offer", _BANDIT)
        for _ in range(20):
            made = await model.carry_out(Decide(DecideRequest([1.0, 0.5])))
            await model.reward(RewardRequest(made.id, 1.0 if made.arm == "red" else -1.0))
        before = model.status()
        found = {one["arm"]: one for one in (await model.arms(ArmsRequest([1.0, 0.5])))["arms"]}
        assert found["red"]["mean"] > found["blue"]["mean"]
        assert found["red"]["propensity"] + found["blue"]["propensity"] == pytest.approx(1.0)
        assert model.status() == before
        with pytest.raises(ProblemError, match="2"):
            await model.arms(ArmsRequest([1.0]))

    run(tmp_path, compare)


def test_arms_are_for_bandits_only(tmp_path: Path) -> None:
    async def compare(state: ServiceState) -> None:
        model, _ = await state.create("price", _TABLE)
        with pytest.raises(ProblemError) as refused:
            await model.arms(ArmsRequest([1.0]))
        assert refused.value.status == 409

    run(tmp_path, compare)


def test_who_waits_is_listed_the_oldest_first(tmp_path: Path) -> None:
    async def wait(state: ServiceState) -> tuple[Any, Any]:
        model, _ = await state.create("price", _TABLE)
        for name in ("b", "a", "c"):
            await model.predict(PredictRequest({"a": 1.0}, id=name))
        await model.label(LabelRequest("early", 2.0))
        await model.label(LabelRequest("a", 2.0))
        bandit, _ = await state.create("offer", _BANDIT)
        for i in range(3):
            await bandit.carry_out(Decide(DecideRequest([1.0, 0.0], id=f"visit {i}")))
        await bandit.reward(RewardRequest("visit 1", 0.5))
        return await model.waiting(), await bandit.waiting()

    rows, decisions = run(tmp_path, wait)
    assert [one["id"] for one in rows["pending"]] == ["b", "c"]
    assert rows["pending"][0]["since"] <= rows["pending"][1]["since"]
    assert [one["id"] for one in rows["waiting"]] == ["early"]
    assert [one["id"] for one in decisions["pending"]] == ["visit 0", "visit 2"]
    assert all(one["since"] > 0 for one in decisions["pending"])


def test_a_candidate_can_be_described_and_a_bad_file_is_no_candidate(tmp_path: Path) -> None:
    async def compare(state: ServiceState) -> dict[str, Any]:
        model, _ = await state.create("price", _TABLE)
        version = model.status()["version"]
        with pytest.raises(ProblemError, match="model"):
            await model.set_shadow(b"nothing of the kind")
        assert model.status()["version"] == version
        await model.set_shadow(_TABLE)
        await model.learn(LearnRequest({"a": 1.0}, 1.0))
        return model.metrics()

    found = run(tmp_path, compare)
    assert found["shadow"]["rows"] == 1
    assert found["shadow"]["scores"] == found["scores"]  # the same model on the same row
