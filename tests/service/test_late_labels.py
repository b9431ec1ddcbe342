"""Labels that come late are scored with the limits that their predictions were given, live and replayed."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from onepass import BayesianPerceptronRegressor
from onepass.estimators import learner_of
from onepass.files.checkpoint import from_bytes, to_bytes
from onepass.service.wire import LabelRequest, LearnRequest, PredictRequest
from onepass.tables.fitting import fit
from tests.helpers.tables import write_csv
from tests.service.running import crashed_copy, served

RNG = np.random.default_rng(0)
X = RNG.normal(size=(300, 2))
Y = X @ [1.0, -2.0] + 0.3 * RNG.normal(size=300)
NEW = RNG.normal(size=(40, 2))
LEVEL = 0.8


def made(kind: str, folder: Path) -> Any:
    target = Y if kind == "estimator" else np.exp(0.3 * Y)
    if kind == "estimator":
        return BayesianPerceptronRegressor(intervals="adaptive").fit(X, target)
    if kind == "transform":
        return BayesianPerceptronRegressor(intervals="adaptive", target_transform="log").fit(X, target)
    pairs = enumerate(zip(X.tolist(), target.tolist(), strict=True))
    rows = [{"a": a, "b": b, "k": "uv"[i % 2], "y": y} for i, ((a, b), y) in pairs]
    own: dict[str, Any] = {"by": "k"} if kind == "fleet" else {"ignore": ("k",), "log_target": True}
    file = write_csv(folder / "rows.csv", rows)
    return fit(str(file), target="y", model_kind="perceptron", intervals="adaptive", **own)


def row(kind: str, i: int) -> Any:
    a, b = NEW[i].tolist()
    if kind in ("estimator", "transform"):
        return [a, b]
    return {"a": a, "b": b} | ({"k": "u"} if kind == "fleet" else {})


def wild(kind: str, i: int) -> float:
    """A target twenty times as far off as those that were learned."""
    y = float(NEW[i] @ [1.0, -2.0] + (-1.0) ** i * 6.0)
    return y if kind == "estimator" else float(np.exp(0.3 * y))


@pytest.mark.parametrize("kind", ["estimator", "transform", "log table", "fleet"])
def test_late_labels_are_scored_with_the_limits_that_were_given(kind: str, tmp_path: Path) -> None:
    model = made(kind, tmp_path)
    with served(tmp_path / "state") as running:
        running.ask(running.state.create("m", to_bytes(model)))
        host = running.model("m")
        given = running.ask(host.predict(PredictRequest(row(kind, 0), id="late", level=LEVEL)))
        for i in range(1, 30):  # limits move out
            running.ask(host.learn(LearnRequest(row(kind, i), wild(kind, i))))
        now = running.ask(host.predict(PredictRequest(row(kind, 0), level=LEVEL)))
        assert now.upper > given.upper
        y = 0.5 * (given.upper + now.upper)  # outside then, inside now
        before = running.ask(host.file())
        running.ask(host.label(LabelRequest("late", y)))
        after = running.ask(host.file())
        crashed = crashed_copy(tmp_path / "state", tmp_path / "crashed")
    with served(crashed) as running:  # which replays its events
        assert running.ask(running.model("m").file()) == after
    late, timely = (from_bytes(before) for _ in range(2))
    for one, limits in ((late, True), (timely, False)):
        learn(one, row(kind, 0), y, made(kind, tmp_path) if limits else None)
    assert ends(from_bytes(after)) == ends(late)
    assert ends(late) != ends(timely)


def learn(model: Any, x: Any, y: float, then: Any) -> None:
    """Learn a row, scored with the limits of the model from which it was predicted, if there is one."""
    from onepass.service.served import serve  # its units are tested elsewhere

    rows = serve(model)
    numbers, _ = rows.read([x], [None])  # type: ignore[attr-defined]
    limits = None
    if then is not None:
        seen = serve(then).distribution(numbers)  # type: ignore[attr-defined]
        normal = seen.tracked.normal
        levels = 2.0 * (0.5 - 0.5 * np.array([0.99, 0.95, 0.9, 0.8, 0.5]))
        assert len(normal) == 2 * len(levels)
        sides = [seen.interval(1.0 - tail) for tail in levels]
        limits = np.array([[*(float(low[0]) for low, _ in sides), *(float(high[0]) for _, high in reversed(sides))]])
    target, _ = rows.read_targets([y])  # type: ignore[attr-defined]
    rows.learn(replace(numbers, y=target, limits=limits))  # type: ignore[attr-defined]


def ends(model: Any) -> list[float]:
    """What has been tracked."""
    estimator = getattr(model, "estimator", model)
    learner = learner_of(estimator)
    tracker = learner._tracker if hasattr(learner, "_tracker") else learner.state.trackers[0]
    return [round(float(end), 9) for end in np.ravel(tracker.to_arrays()["ends"])]
