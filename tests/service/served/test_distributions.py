"""One prediction everywhere: core, estimator, table, service and client give the same numbers, to 1e-12."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from onepass import AdaptiveIntervals, BayesianPerceptron, BayesianPerceptronRegressor
from onepass.client import Prediction as Answer
from onepass.files.checkpoint import to_bytes
from onepass.service.errors import ProblemError
from onepass.service.wire import LearnRequest, PredictRequest, RowsRequest
from onepass.tables.fitting import fit
from tests.helpers.tables import write_csv
from tests.service.running import served

RNG = np.random.default_rng(0)
X = RNG.normal(size=(400, 2))
Y = X @ [1.0, -2.0] + np.repeat([0.3, 1.0], 200) * RNG.normal(size=400)
LEVELS = (0.5, 0.95)


def core(intervals: str) -> Any:
    model = BayesianPerceptron(2, "linear", noise=0.25)
    return AdaptiveIntervals(model).learn(X, Y) if intervals == "adaptive" else model.learn(X, Y)


def estimator(intervals: str) -> BayesianPerceptronRegressor:
    made = BayesianPerceptronRegressor(noise=0.25, standardize=False, prior_scale=1.0, intercept_scale=None)
    made.set_params(intervals=intervals)
    return made.fit(X, Y)


def numbers(found: Any) -> list[float]:
    """Everything that a prediction of one row says."""
    ends = [float(np.ravel(end)[0]) for level in LEVELS for end in found.interval(level)]
    return [
        float(np.ravel(getattr(found, name))[0]) for name in ("mean", "std", "var", "epistemic", "aleatoric")
    ] + ends


def answered(folder: Path, model: Any, x: Any) -> tuple[list[float], dict[str, Any]]:
    """What the client makes of the service's answer, and columns of an answer to many rows."""
    with served(folder) as running:
        running.ask(running.state.create("m", to_bytes(model)))
        found = running.ask(running.model("m").predict(PredictRequest(x, level=0.95, levels=[0.5])))
        columns = running.ask(running.model("m").predict_rows(RowsRequest(records=[{"x": x}])))
    limits = {one.level: (one.lower, one.upper) for one in found.intervals} | {0.95: (found.lower, found.upper)}
    answer = Answer(found.mean, found.std, found.epistemic, found.aleatoric, limits, None, None, 1, None, False)
    return numbers(answer), columns


@pytest.mark.parametrize("intervals", ["model", "adaptive"])
def test_an_estimator_is_served_with_the_numbers_of_the_core(intervals: str, tmp_path: Path) -> None:
    expected = numbers(core(intervals).predict(X[:1]))
    np.testing.assert_allclose(numbers(estimator(intervals).predict_dist(X[:1])), expected, rtol=1e-12)
    found, columns = answered(tmp_path, estimator(intervals), X[0].tolist())
    np.testing.assert_allclose(found, expected, rtol=1e-12)
    assert [columns[name][0] for name in ("mean", "std", "lower", "upper")] == [*found[:2], *found[-2:]]


@pytest.mark.parametrize("intervals", ["model", "adaptive"])
@pytest.mark.parametrize("kind", ["number", "log", "fleet"])
def test_a_table_is_served_with_its_own_numbers(kind: str, intervals: str, tmp_path: Path) -> None:
    target = np.exp(0.3 * Y) if kind == "log" else Y
    rows = [
        {"a": a, "b": b, "k": "uv"[i % 2], "y": c}
        for i, ((a, b), c) in enumerate(zip(X.tolist(), target.tolist(), strict=True))
    ]
    own: dict[str, Any] = {"by": "k"} if kind == "fleet" else {"ignore": ("k",), "log_target": kind == "log"}
    file = write_csv(tmp_path / "rows.csv", rows)
    model = fit(str(file), target="y", model_kind="perceptron", intervals=intervals, **own)
    asked = {name: value for name, value in rows[0].items() if name != "y"}
    expected = numbers(model.predict_dist([asked]))
    sent = asked if kind == "fleet" else {name: asked[name] for name in ("a", "b")}
    found, columns = answered(tmp_path / "state", model, sent)
    np.testing.assert_allclose(found, expected, rtol=1e-12)
    table = model.predict([asked], level=LEVELS)
    names = ("mean", "std", "lower_50", "upper_50", "lower_95", "upper_95")
    np.testing.assert_allclose([table[name][0].as_py() for name in names], [*expected[:2], *expected[5:]], rtol=1e-12)
    np.testing.assert_allclose(columns["upper"][0], expected[-1], rtol=1e-12)


def test_a_served_estimator_learns_the_logarithms_of_its_targets(tmp_path: Path) -> None:
    y = np.exp(0.3 * Y)
    model = BayesianPerceptronRegressor(target_transform="log").fit(X[:300], y[:300])
    with served(tmp_path) as running:
        running.ask(running.state.create("m", to_bytes(model)))
        host = running.model("m")
        for row, target in zip(X[300:310].tolist(), y[300:310].tolist(), strict=True):
            running.ask(host.learn(LearnRequest(row, target)))
        found = running.ask(host.predict(PredictRequest(X[320].tolist())))
        with pytest.raises(ProblemError, match="defined for"):
            running.ask(host.learn(LearnRequest(X[0].tolist(), -1.0)))
    own = model.partial_fit(X[300:310], y[300:310]).predict_dist(X[320:321])
    np.testing.assert_allclose([found.mean, found.std], [own.mean[0], own.std[0]], rtol=1e-12)
