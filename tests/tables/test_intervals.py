"""Intervals of tables: one `Prediction` behind every number, tracked limits, several levels, fleets, files."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import csv

import onepass
from onepass import AdaptiveIntervals, BayesianPerceptron
from onepass.estimators import learner_of
from onepass.estimators.rows import Rows
from onepass.evaluation.prequential import Trial
from onepass.tables.columns.errors import SchemaError
from onepass.tables.fitting import fit
from onepass.tables.model import TabularModel
from onepass.tables.prediction import predict
from onepass.tables.readers.registry import open_source
from onepass.tables.schema import SchemaOptions, infer_model
from onepass.tables.targets import NumberTarget
from tests.helpers.commands import run_here
from tests.helpers.tables import write_csv

N = 1200
LEVELS = (0.5, 0.8, 0.95)


def rows(n: int = N, *, seed: int = 0, log: bool = False) -> list[dict[str, Any]]:
    """A line, whose noise is four times as large in the second half."""
    rng = np.random.default_rng(seed)
    x, noise = rng.normal(size=n), rng.normal(size=n) * np.repeat([0.3, 1.2], n // 2)
    y = 1.0 + 2.0 * x + noise
    y = np.exp(0.3 * y) if log else y
    shops = rng.choice(["north", "south"], n)
    return [{"x": a, "shop": b, "y": c} for a, b, c in zip(x.tolist(), shops.tolist(), y.tolist(), strict=True)]


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_csv(tmp_path_factory.mktemp("rows") / "rows.csv", rows())


def fitted(file: Path, **options: Any) -> TabularModel:
    made: TabularModel = fit(str(file), target="y", **{"model_kind": "perceptron", "ignore": ("shop",), **options})
    return made


@pytest.mark.parametrize("intervals", ["model", "adaptive"])
@pytest.mark.parametrize("kind", ["number", "log", "fleet"])
def test_columns_are_those_of_one_prediction(kind: str, intervals: str, file: Path, tmp_path: Path) -> None:
    given = write_csv(tmp_path / "log.csv", rows(log=True)) if kind == "log" else file
    kinds: dict[str, dict[str, Any]] = {"log": {"log_target": True}, "fleet": {"by": "shop", "ignore": ()}}
    own = kinds.get(kind, {})
    model = fitted(given, intervals=intervals, **own)
    assert model.tracks_intervals is (intervals == "adaptive")
    asked = rows(50, seed=1)
    found, table = model.predict_dist(asked), model.predict(asked, level=LEVELS)
    assert (found.tracked is None) is (intervals == "model")
    np.testing.assert_allclose(table["mean"], found.mean, rtol=1e-12)
    np.testing.assert_allclose(table["std"], found.std, rtol=1e-12)
    for level in LEVELS:
        for side, ends in zip(("lower", "upper"), found.interval(level), strict=True):
            np.testing.assert_allclose(table[f"{side}_{100 * level:g}"], ends, rtol=1e-12)
    names = ["lower_95", "lower_80", "lower_50", "upper_50", "upper_80", "upper_95"]
    assert (np.diff(np.column_stack([table[name] for name in names]), axis=1) >= 0.0).all()
    np.testing.assert_allclose(found.cdf(found.ppf(0.3)), 0.3, rtol=1e-9)


@pytest.mark.parametrize("log", [False, True])
def test_tracked_limits_are_those_of_the_core(log: bool, tmp_path: Path) -> None:
    model = fitted(write_csv(tmp_path / "rows.csv", rows(log=log)), intervals="adaptive", log_target=log, passes=1)
    read = pa.RecordBatch.from_pylist(rows(log=log))
    X, y = model.encoding.encode(read).X, model.target.encode(read["y"], {})
    (member,) = learner_of(model.estimator).blueprint.mixture(1.0).members
    core = AdaptiveIntervals(member).learn(X, y)
    asked = rows(40, seed=1)
    assert isinstance(model.target, NumberTarget)
    seen = core.predict(model.encoding.encode(pa.RecordBatch.from_pylist(asked)).X).in_units(model.target.units)
    found = model.predict_dist(asked)
    assert isinstance(member, BayesianPerceptron)
    for own, of_core in (
        (found.mean, seen.mean),
        (found.std, seen.std),
        *zip(found.interval(), seen.interval(), strict=True),
    ):
        np.testing.assert_allclose(own, of_core, rtol=1e-12)
    np.testing.assert_allclose(found.logpdf(2.0), seen.logpdf(2.0), rtol=1e-12)


def test_limits_follow_the_noise(file: Path) -> None:
    model, new = fitted(file, intervals="adaptive", forgetting=0.99), rows(seed=2)[N // 2 :]
    table = model.predict(new, level=0.8)
    y = np.array([row["y"] for row in new])
    assert np.mean((np.array(table["lower"]) <= y) & (y <= np.array(table["upper"]))) == pytest.approx(0.8, abs=0.06)


def test_limits_stay_while_nothing_is_learned_and_survive_the_file(file: Path, tmp_path: Path) -> None:
    model, asked = fitted(file, intervals="adaptive"), rows(30, seed=3)
    before = model.predict(asked, level=LEVELS)
    onepass.save(model, tmp_path / "model.onepass")
    assert model.predict(asked, level=LEVELS).equals(before)
    assert onepass.load(tmp_path / "model.onepass").predict(asked, level=LEVELS).equals(before)


def test_learning_in_two_runs_gives_the_same_file(file: Path, tmp_path: Path) -> None:
    first, second = rows()[:700], rows()[700:]
    for name, part in (("a", first), ("b", second)):
        write_csv(tmp_path / f"{name}.csv", part)
    options = ("--target", "y", "--intervals", "adaptive", "--model-kind", "perceptron", "--passes", "1", "--quiet")
    both = [tmp_path / "a.csv", tmp_path / "b.csv"]
    assert run_here("fit", *both, *options, "--model", tmp_path / "whole.onepass") == 0
    assert run_here("fit", tmp_path / "a.csv", *options, "--model", tmp_path / "parts.onepass") == 0
    assert run_here("learn", tmp_path / "parts.onepass", tmp_path / "b.csv", "--quiet") == 0
    whole, parts = (onepass.load(tmp_path / f"{name}.onepass") for name in ("whole", "parts"))
    tables = [model.predict(rows(20, seed=4), level=LEVELS) for model in (whole, parts)]
    assert tables[0].equals(tables[1])


def test_several_levels_on_the_command_line(file: Path, tmp_path: Path) -> None:
    onepass.save(fitted(file, intervals="adaptive"), tmp_path / "model.onepass")
    out = tmp_path / "out.parquet"
    args = ("--level", "0.95", "--level", "0.5", "--out", out, "--quiet")
    assert run_here("predict", tmp_path / "model.onepass", file, *args) == 0
    found = pa.parquet.read_table(out)
    assert found.column_names == ["mean", "std", "lower_50", "upper_50", "lower_95", "upper_95"]
    assert found.equals(predict(tmp_path / "model.onepass", file, level=(0.5, 0.95)).combine_chunks())
    text = tmp_path / "out.csv"  # which has the digits that matter
    assert run_here("predict", tmp_path / "model.onepass", file, *args[:4], "--out", text, "--quiet") == 0
    read, std = csv.read_csv(text), np.array(found["std"])
    for name in found.column_names:
        assert (np.abs(np.array(read[name]) - np.array(found[name])) < 1e-6 * std).all()


def test_classes_of_a_model_per_key_have_no_calibrated_probabilities(tmp_path: Path) -> None:
    given = [{"x": float(i % 7), "k": "a", "y": ["no", "yes"][i % 2]} for i in range(100)]
    with pytest.raises(SchemaError) as caught:
        fit(str(write_csv(tmp_path / "rows.csv", given)), target="y", intervals="adaptive", by="k")
    assert caught.value.reason.code == "intervals_of_classes"
    assert caught.value.setting == "intervals"


def test_probabilities_of_classes_are_calibrated_by_the_same_option(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    x, hidden = rng.normal(size=1000), np.repeat(3.0 * rng.normal(size=20), 50)
    labels = np.where(x + hidden + rng.logistic(size=1000) > 0.0, "yes", "no")
    given = [{"x": own, "y": label} for own, label in zip(x.tolist(), labels.tolist(), strict=True)]
    file = write_csv(tmp_path / "rows.csv", given)
    plain, adaptive = (fit(str(file), target="y", intervals=kind) for kind in ("model", "adaptive"))
    found = np.array(adaptive.predict(given)["p_yes"])
    own = np.array(plain.predict(given)["p_yes"])
    assert np.abs(found - own).max() > 0.01
    onepass.save(adaptive, tmp_path / "model.onepass")
    assert onepass.load(tmp_path / "model.onepass").predict(given).equals(adaptive.predict(given))


def shares(file: Path, **options: Any) -> dict[str, float]:
    """Scores of a table's model over the rows of a file, each predicted before it is learned."""
    sources = [open_source(str(file))]
    asked = SchemaOptions.of("y", **{"model_kind": "perceptron", "ignore": ("shop",), **options})
    model, _ = infer_model(sources, asked, rereadable=True)
    trial = Trial(model)
    for batch in sources[0].batches(model.types(target=True), 0):
        trial.add(model.rows([batch]))
    return trial.scores()["onepass"]


@pytest.mark.parametrize("by", [{}, {"by": "shop", "ignore": ()}])
def test_coverage_is_that_of_the_limits_that_were_given(by: dict[str, Any], file: Path) -> None:
    plain, tracked = shares(file, **by), shares(file, intervals="adaptive", **by)
    assert plain["coverage_80"] < 0.75
    assert tracked["coverage_80"] == pytest.approx(0.8, abs=0.02)
    assert tracked["rmse"] == plain["rmse"]


def test_every_row_is_judged_by_the_limits_right_before_it(file: Path) -> None:
    one, many = (fitted(file, intervals="adaptive") for _ in range(2))
    batch = pa.RecordBatch.from_pylist(rows(40, seed=5))
    X, y = one.encoding.encode(batch).X, one.target.encode(batch["y"], {})
    inside = []
    for i in range(len(y)):
        low, high = (one.target.encode(pa.array(end), {}) for end in one.distribution(X[i : i + 1]).interval(0.8))
        inside.append(bool(low[0] <= y[i] <= high[0]))
        one.learn(Rows(X[i : i + 1], y[i : i + 1]))
    assert many.predict_then_learn(Rows(X, y)).places.inside(0.8).tolist() == inside
    assert 0 < sum(inside) < len(inside)
