"""Going back to an earlier version, also of a model that was deleted and made anew under the same name."""

from pathlib import Path

import pytest

from onepass.service.errors import ProblemError
from onepass.service.wire import LearnRequest, RollbackRequest
from tests.service.running import regressor, served


def test_a_model_made_anew_goes_back_to_its_own_beginning_and_not_further(tmp_path: Path) -> None:
    with served(tmp_path) as running:
        for _ in range(2):
            running.ask(running.state.create("m", regressor()))
            model = running.model("m")
            first = model.status()["version"]
            begun = running.ask(model.file())
            for _ in range(5):
                running.ask(model.learn(LearnRequest([1.0, 2.0], 3.0)))
                running.ask(model.snapshot())
            running.ask(model.rollback(RollbackRequest(first)))
            assert running.ask(model.file()) == begun
            for version in range(1, first):
                with pytest.raises(ProblemError) as refused:
                    running.ask(model.rollback(RollbackRequest(version)))
                assert refused.value.status in (404, 410)
            running.ask(running.state.delete("m"))
