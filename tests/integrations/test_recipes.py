"""The recipes for Ray and Spark, as they stand in the docs. Neither is a dependency: without them there is no test."""

import sys
import textwrap
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import onepass

pytestmark = pytest.mark.slow

DOCS = Path(__file__).parents[2] / "docs" / "how-to" / "spark-and-ray.md"
RNG = np.random.default_rng(0)
X = RNG.normal(size=(8000, 3))
Y = (X @ [1.0, -1.0, 0.5] + RNG.logistic(size=8000) > 0).astype(float)


def recipe(name: str) -> str:
    """The indented lines that follow the paragraph which begins with a name."""
    _, text = DOCS.read_text().split(f"\n{name}, with ", 1)
    _, text = text.split("\n\n", 1)
    lines = []
    for line in text.splitlines():
        if line and not line.startswith("    "):
            break
        lines.append(line)
    return textwrap.dedent("\n".join(lines))


def check(model: Any) -> None:
    """As close to one sequence as the docs say."""
    alone = onepass.BayesianPerceptron(3).learn(X, Y)
    gap = (model.mean - alone.mean) / np.sqrt(np.diag(alone.cov))
    assert np.sqrt(np.mean(gap**2)) < 0.06
    assert model.n_seen == 8000


def test_ray() -> None:
    ray = pytest.importorskip("ray", reason="ray is not installed")
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
    try:
        names: dict[str, Any] = {"X": X, "y": Y}
        exec(recipe("Ray"), names)
        check(names["model"])
    finally:
        ray.shutdown()


def test_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    sql = pytest.importorskip("pyspark.sql", reason="pyspark is not installed")
    monkeypatch.setenv("PYSPARK_PYTHON", sys.executable)  # otherwise workers run whatever python3 is
    spark = sql.SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
    try:
        frame = spark.createDataFrame(np.column_stack([X, Y]).tolist()).repartition(4)
        names: dict[str, Any] = {"frame": frame, "spark": spark}
        exec(recipe("Spark"), names)
        check(names["model"])
    finally:
        spark.stop()
