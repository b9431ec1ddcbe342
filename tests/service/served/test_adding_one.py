"""The example on the page about serving another kind of model, taken from there and tried out."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from onepass.files.checkpoint import from_bytes, to_bytes
from onepass.river import PerceptronRegressor
from onepass.service import served as kinds
from onepass.service.wire import LearnRequest, PredictRequest
from tests.helpers.extending import run_page
from tests.service.running import served


def test_a_river_model_answers_for_itself_and_survives_a_restart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = run_page("served-model", __name__="onepass.service.served.river")
    monkeypatch.setattr(kinds, "loaded", lambda kind: [page["RiverRows"]])
    plain = PerceptronRegressor()
    for a, b in np.random.default_rng(0).normal(size=(20, 2)).tolist():
        plain.learn_one({"a": a, "b": b}, a - b)
    x: dict[str, Any] = {"a": 0.5, "b": 1.0}
    y = 2.0
    with served(tmp_path) as running:
        running.ask(running.state.create("m", to_bytes(plain)))
        model = running.model("m")
        found = running.ask(model.predict(PredictRequest(x)))
        own = plain.predict_one(x, with_dist=True)
        assert (found.mean, found.std) == (own.mu, pytest.approx(own.sigma))
        assert found.lower == pytest.approx(own.mu - 1.959964 * own.sigma, rel=1e-6)
        assert running.ask(model.learn(LearnRequest(x, y))).n_seen == 21
        plain.learn_one(x, y)
        assert running.ask(model.predict(PredictRequest(x))).mean == plain.predict_one(x)
        assert model.counters["learned"] == 1.0
        before = running.ask(model.file())
        assert from_bytes(before).predict_one(x) == plain.predict_one(x)
    with served(tmp_path) as running:
        assert running.ask(running.model("m").file()) == before
        assert running.model("m").status()["kind"] == "river"
