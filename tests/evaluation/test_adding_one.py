"""The example on the page about adding a metric, taken from there and tried out."""

import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from onepass.cli.main import onepass
from onepass.evaluation.metrics import REGISTRY, MetricSet, NumberPredictions
from tests.helpers.extending import run_page


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
        MetricSet("numbers", with_std=False).update(NumberPredictions(y[own], mean[own]))
        for own in (slice(20), slice(20, None))
    ]
    expected = np.mean([abs(given - target) / target for given, target in zip(mean, y, strict=True)])
    assert parts[0].merge(parts[1]).get()["relative_error"] == pytest.approx(expected, rel=1e-12)


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
