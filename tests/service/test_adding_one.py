"""The example on the page about adding an HTTP operation, taken from there and tried out."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from onepass.service.errors import ProblemError
from tests.helpers.extending import run_page
from tests.service.running import Running, four_models, served


def paused(running: Running) -> Any:
    return running.model("bandit").status()["schema"]["paused"]


def test_arms_are_paused_together_or_not_at_all_and_stay_so(tmp_path: Path) -> None:
    page = run_page("operation", __name__="onepass.service.operations.pause_arms")
    with served(tmp_path) as running:
        running.ask(running.state.create("bandit", four_models()["bandit"]))
        bandit = running.model("bandit")
        asked = page["PauseRequest"](["left", "right"])
        assert running.ask(bandit.carry_out(page["PauseArms"](asked))) == {"paused": ["left", "right"]}
        with pytest.raises(ProblemError) as refused:
            running.ask(bandit.carry_out(page["PauseArms"](page["PauseRequest"](["middle", "none"]))))
        assert (refused.value.status, refused.value.field) == (422, "arms")
        assert running.ask(page["paused"](SimpleNamespace(model=bandit))) == {"paused": ["left", "right"]}
    with served(tmp_path) as running:
        assert paused(running) == ["left", "right"]
