"""The example on the page about adding a metric, taken from there and tried out."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

from onepass.cli.main import onepass
from onepass.evaluation.metrics import REGISTRY, NumberPredictions
from onepass.service.checking import check_state
from onepass.service.web.prometheus import Metrics
from onepass.service.wire import LearnRequest, PredictRequest
from tests.helpers.extending import run_page
from tests.service.running import four_models, served
from tests.service.web.conftest import problem_of


@pytest.fixture(autouse=True)
def metric() -> Iterator[None]:
    """The metric that the page defines, which is known for one test only."""
    run_page("metric", __name__=__name__)
    yield
    del REGISTRY["numbers"]["relative_error"]


def test_it_is_the_mean_over_rows_and_merges() -> None:
    rng = np.random.default_rng(0)
    y, mean = rng.uniform(1.0, 2.0, 50), rng.normal(size=50)
    parts = [
        REGISTRY["numbers"]["relative_error"]().update(NumberPredictions(y[own], mean[own]))
        for own in (slice(20), slice(20, None))
    ]
    expected = np.mean([abs(given - target) / target for given, target in zip(mean, y, strict=True)])
    assert parts[0].merge(parts[1]).get() == pytest.approx(expected, rel=1e-12)


def test_evaluate_shows_it_in_all_and_over_time(tmp_path: Path) -> None:
    file = tmp_path / "rows.csv"
    file.write_text("x,y\n" + "".join(f"{i % 7},{3 * (i % 7) + i % 2 + 1}\n" for i in range(300)))
    arguments = ["evaluate", str(file), "--target", "y"]
    shown = CliRunner().invoke(onepass, arguments, standalone_mode=False)
    assert shown.exception is None
    assert "rel. error" in shown.stdout
    done = CliRunner().invoke(onepass, [*arguments, "--json"], standalone_mode=False)
    event = json.loads(done.stdout.splitlines()[-1])
    assert 0.0 < event["scores"]["onepass"]["relative_error"] < 1.0
    assert len(event["over_time"]["relative_error"]) == len(event["over_time"]["rows"])


def test_the_service_scores_with_it_describes_it_to_the_page_and_counts_it_for_prometheus(tmp_path: Path) -> None:
    targets, predicted = [2.0, 4.0, -3.0], []
    with served(tmp_path) as running:
        running.ask(running.state.create("price", four_models()["number"]))
        model = running.model("price")
        for y in targets:
            x: dict[str, Any] = {"a": y, "b": 1.0}
            predicted.append(running.ask(model.predict(PredictRequest(x))).mean)
            running.ask(model.learn(LearnRequest(x, y)))
        report, sums = model.metrics(), model.score_sums["relative_error"]
        expected = sum(abs(mean - y) / abs(y) for mean, y in zip(predicted, targets, strict=True))
        assert report["scores"]["relative_error"] == pytest.approx(expected / 3)
        assert sums.up - sums.down == pytest.approx(expected)
        described = {metric["name"]: metric for metric in report["metrics"]}["relative_error"]
        assert (described["title"], described["unit"], described["goal"]) == ("rel. error", "share", None)
        assert described["meaning"] == "Absolute error as a share of the target."
        text = Metrics(running.state).text(lambda name: True).decode()
        assert 'onepass_score_sum_up_total{metric="relative_error",model="price"}' in text
        assert 'onepass_score{metric="relative_error",model="price"}' in text


def test_a_model_keeps_the_metrics_it_was_created_with(tmp_path: Path) -> None:
    """The metric comes and goes with a package; what a model is scored with does not follow it silently."""
    with served(tmp_path) as running:
        metric = REGISTRY["numbers"].pop("relative_error")
        running.ask(running.state.create("before", four_models()["number"]))
        REGISTRY["numbers"]["relative_error"] = metric
        running.ask(running.state.create("after", four_models()["number"]))
        for name in ("before", "after"):
            running.ask(running.model(name).learn(LearnRequest({"a": 1.0, "b": 1.0}, 2.0)))
    with served(tmp_path) as running:  # both were installed when the folder was opened again
        found = {name: running.model(name).metrics()["scores"] for name in ("before", "after")}
    assert "relative_error" not in found["before"]
    assert "relative_error" in found["after"]
    assert check_state(tmp_path) == []
    del REGISTRY["numbers"]["relative_error"]
    try:
        with served(tmp_path) as running:
            assert running.model("before").metrics()["scores"] == found["before"]
            problem = problem_of(lambda: running.model("after"))
        assert problem is not None
        assert problem.title == "damaged"
        assert "'relative_error'" in problem.detail
    finally:
        REGISTRY["numbers"]["relative_error"] = metric


def test_the_html_report_shows_it(tmp_path: Path) -> None:
    file, page = tmp_path / "rows.csv", tmp_path / "report.html"
    file.write_text("x,y\n" + "".join(f"{i % 7},{3 * (i % 7) + i % 2 + 1}\n" for i in range(300)))
    arguments = ["evaluate", str(file), "--target", "y", "--html", str(page)]
    assert CliRunner().invoke(onepass, arguments, standalone_mode=False).exception is None
    text = page.read_text()
    assert "<th>rel. error</th>" in text.replace(' scope="col"', "")
    assert "log-likelihood and rel. error along the stream" in text
