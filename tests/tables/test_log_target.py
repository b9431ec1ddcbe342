"""Targets learned as their logarithm: when, and in which units they come back; SciPy's log-normal is the judge."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from scipy.integrate import quad
from scipy.stats import lognorm, norm

import onepass
from onepass.estimators.rows import Rows
from onepass.evaluation.metrics import LogNormalPredictions
from onepass.tables.columns.errors import SchemaError
from onepass.tables.inputs import Inputs, steps
from onepass.tables.model import TabularModel
from onepass.tables.schema import SchemaOptions, infer_model
from onepass.tables.settings import Settings
from onepass.tables.targets import LogTarget, NumberTarget, target_from_state
from tests.helpers.tables import write_csv

N = 400


def table(target: Any) -> list[dict[str, Any]]:
    """Rows with three numbers, of which two are skewed, and a target made of them and of noise."""
    rng = np.random.default_rng(3)
    a, b, c, noise = rng.normal(size=(4, N))
    y = target(a, np.exp(b), np.exp(c), noise)
    return [dict(zip("abcy", row, strict=True)) for row in np.column_stack([a, np.exp(b), np.exp(c), y]).tolist()]


def factors(a: Any, _: Any, __: Any, noise: Any) -> Any:
    return np.exp(2.0 + a + 0.5 * noise)


def learned(folder: Path, rows: list[dict[str, Any]], **options: Any) -> TabularModel:
    inputs = Inputs((str(write_csv(folder / "a.csv", rows)),))
    sources = inputs.sources()
    model, _ = infer_model(sources, SchemaOptions("y", **options), rereadable=True)
    for step in steps(model, inputs, sources):
        model.learn(step.rows)
    return model


@pytest.mark.parametrize(
    ("target", "is_log"),
    [
        (factors, True),
        (lambda a, b, c, noise: 10.0 + a + 0.5 * noise, False),
        (lambda a, b, c, noise: b + c + 0.3 * np.abs(noise), False),  # as skewed, but a plain sum
        (lambda a, b, c, noise: noise**2 * np.exp(0.5 * a), False),  # more probable, but with larger errors
        (lambda a, b, c, noise: 1000.0 + np.exp(noise), False),  # as skewed, but hardly a matter of factors
        (lambda a, b, c, noise: factors(a, b, c, noise) - 1.0, False),  # some are below 0
        (lambda a, b, c, noise: -factors(a, b, c, noise), False),
        (lambda a, b, c, noise: np.full(N, 7.0), False),
    ],
)
def test_the_logarithm_is_taken_where_it_predicts_better(target: Any, is_log: bool, tmp_path: Path) -> None:
    model = learned(tmp_path, table(target), task="regression")
    assert isinstance(model.target, LogTarget) == is_log
    if is_log:
        words = dict(model.choices())["target"]
        assert "learned as its logarithm, (log y - 2" in words
        assert "positive and skewed" in words


@pytest.mark.parametrize(
    "options",
    [{"log_target": False}, {"settings": Settings(noise=1.0)}, {"settings": Settings(activation="relu")}],
    ids=["refused", "noise", "activation"],
)
def test_other_wishes_of_the_user_keep_the_target_as_it_is(options: dict[str, Any], tmp_path: Path) -> None:
    assert not isinstance(learned(tmp_path, table(factors), **options).target, LogTarget)


def test_few_rows_say_nothing(tmp_path: Path) -> None:
    assert not isinstance(learned(tmp_path, table(factors)[:40]).target, LogTarget)
    assert isinstance(learned(tmp_path, table(factors)[:40], log_target=True).target, LogTarget)


def test_the_logarithm_can_be_asked_for_if_there_is_one(tmp_path: Path) -> None:
    model = learned(tmp_path, table(lambda a, b, c, noise: 10.0 + a), log_target=True)
    assert dict(model.choices())["target"].endswith(": as asked")
    for rows, options in (
        (table(lambda a, b, c, noise: a), {}),
        (table(lambda a, b, c, noise: np.floor(b)), {"task": "counts"}),
        (table(lambda a, b, c, noise: np.floor(b)), {"task": "classification"}),
    ):
        with pytest.raises(SchemaError) as error:
            learned(tmp_path, rows, log_target=True, **options)
        assert error.value.setting == "log_target"


def test_targets_without_a_logarithm_are_rejected_with_the_reason(tmp_path: Path) -> None:
    rows = table(factors)
    for row, value in zip(rows[200:205], (0.0, -2.5, "inf", "x", ""), strict=True):
        row["y"] = value
    inputs = Inputs((str(write_csv(tmp_path / "a.csv", rows)),))
    sources = inputs.sources()
    model, _ = infer_model(sources, SchemaOptions("y", sample=150), rereadable=True)
    assert isinstance(model.target, LogTarget)
    found = Rows.joined([step.rows for step in steps(model, inputs, sources)])
    reasons = [reject.reason for reject in found.rejects]
    assert [(one.code, one.column) for one in reasons] == [
        (code, "y") for code in ("no_logarithm", "no_logarithm", "infinite", "not_a_number", "missing")
    ]
    assert [one.value for one in reasons[:2]] == [0.0, -2.5]
    assert len(found.y) == N - 5
    assert np.isfinite(found.y).all()


def test_predictions_are_those_of_the_log_normal_distribution(tmp_path: Path) -> None:
    model = learned(tmp_path, table(factors))
    target = model.target
    assert isinstance(target, LogTarget)
    X = model.encoding.encode(pa.RecordBatch.from_pylist(table(factors)[:5])).X
    found = model.predictions(X, 0.8)
    mean, std = model.estimator.predict(X, return_std=True)
    low, high = model.estimator.predict_interval(X, level=0.8)
    logs = mean * target.scale + target.centre
    noise = np.sqrt(model.estimator.noise_) * target.scale
    np.testing.assert_allclose(found["mean"], lognorm(noise, scale=np.exp(logs)).mean(), rtol=1e-12)
    np.testing.assert_allclose(found["std"], lognorm(std * target.scale, scale=np.exp(logs)).std(), rtol=1e-12)
    for name, limit in (("lower", low), ("upper", high)):
        np.testing.assert_allclose(np.log(found[name]), limit * target.scale + target.centre, rtol=1e-12)


def test_intervals_cover_and_means_are_unbiased(tmp_path: Path) -> None:
    model = learned(tmp_path, table(factors))
    rng = np.random.default_rng(8)
    a, b, c, noise = rng.normal(size=(4, 4000))
    y = factors(a, b, c, noise)
    X = model.encoding.encode(pa.RecordBatch.from_pydict({"a": a, "b": np.exp(b), "c": np.exp(c)})).X
    found = model.predictions(X, 0.8)
    assert abs(((found["lower"] < y) & (y < found["upper"])).mean() - 0.8) < 0.05
    assert abs(np.mean(y / found["mean"]) - 1.0) < 0.06


def test_densities_are_of_the_target_itself() -> None:
    target = LogTarget("y", 1.2, 0.7)

    def density(y: float) -> float:
        scaled = (np.log(np.array([y])) - 1.2) / 0.7
        return float(np.exp(target.log_density(scaled, norm(0.4, 0.6).logpdf(scaled)))[0])

    assert quad(density, 0.0, np.inf)[0] == pytest.approx(1.0, abs=1e-6)
    assert density(3.0) == pytest.approx(lognorm(0.42, scale=np.exp(0.4 * 0.7 + 1.2)).pdf(3.0), rel=1e-12)


def test_a_model_that_knows_nothing_predicts_finite_numbers() -> None:
    target = LogTarget("y", 2.0, 1.5)
    mean, std = target.moments(np.array([0.0, 1e50, -1e50]), np.array([10.0, 1e50, 0.0]), 1e50)
    assert np.isfinite([mean, std]).all()
    assert mean[0] == pytest.approx(np.exp(2.0 + 1.5**2 / 2))
    assert std[2] == 0.0
    assert np.isfinite(target.decode(np.array([1e50, -1e50]))).all()


def test_a_mean_is_at_most_twice_the_largest_target_and_quantiles_are_exact() -> None:
    target = LogTarget("y", 2.0, 1.5, largest=2.5)
    largest = np.exp(2.0 + 1.5 * 2.5)
    logs, std, noise = np.linspace(-3.0, 9.0, 50), 0.9, 0.5
    mean, deviation = target.moments(logs, np.full(50, std), noise)
    exact: Any = lognorm(std * 1.5, scale=np.exp(2.0 + 1.5 * logs))
    of_noise: Any = lognorm(np.sqrt(noise) * 1.5, scale=np.exp(2.0 + 1.5 * logs))
    np.testing.assert_allclose(mean, np.minimum(of_noise.mean(), 2.0 * largest), rtol=1e-9)
    np.testing.assert_allclose(deviation / mean, exact.std() / of_noise.mean(), rtol=1e-9)
    for level in (0.025, 0.5, 0.975):
        np.testing.assert_allclose(target.decode(logs + norm.ppf(level) * std), exact.ppf(level), rtol=1e-9)


def test_means_far_from_the_rows_that_were_learned_stay_plausible(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    size = rng.lognormal(0.0, 1.0, 300)
    rows = [{"size": x, "y": np.exp(20.0 + x + 2.0 * e)} for x, e in zip(size, rng.normal(size=300), strict=True)]
    model = learned(tmp_path, rows, log_target=True)
    largest = max(row["y"] for row in rows)
    found = model.predict([{"size": 40.0}]).to_pylist()[0]
    assert found["upper"] > 1e6 * largest  # what the model has learned
    assert found["mean"] == pytest.approx(2.0 * largest)
    inside = model.predict(rows).column("mean").to_numpy()
    assert np.median(inside) < 0.1 * largest
    onepass.save(model, tmp_path / "a.onepass")
    again = onepass.load(tmp_path / "a.onepass")
    assert again.predict([{"size": 40.0}]).to_pylist()[0] == found
    batch = pa.RecordBatch.from_pylist([{"size": 12.0, "y": 100.0 * largest}])
    y = again.target.encode(batch.column("y"), {})
    again.learn(Rows(again.encoding.encode(batch).X, y))
    assert again.predict([{"size": 40.0}]).to_pylist()[0]["mean"] == pytest.approx(200.0 * largest)


def test_metrics_know_where_a_target_lies_in_its_distribution() -> None:
    rng = np.random.default_rng(4)
    log_mean, log_std = rng.normal(size=20), rng.uniform(0.1, 2.0, 20)
    judge: Any = lognorm(log_std, scale=np.exp(log_mean))
    y = judge.rvs(random_state=rng)
    rows = LogNormalPredictions(y, judge.mean(), judge.std(), log_mean=log_mean, log_std=log_std)
    np.testing.assert_allclose(norm.cdf(rows.z), judge.cdf(y), atol=1e-12)
    np.testing.assert_allclose(rows.log_density, judge.logpdf(y), rtol=1e-10)
    low, high = judge.interval(0.5)
    np.testing.assert_array_equal(rows.inside(0.5), (low < y) & (y < high))
    np.testing.assert_array_equal(rows.error, y - judge.mean())


def test_it_survives_its_file(tmp_path: Path) -> None:
    model = learned(tmp_path, table(factors))
    onepass.save(model, tmp_path / "a.onepass")
    again = onepass.load(tmp_path / "a.onepass")
    assert again.target == model.target
    assert again.predictions(np.ones((1, 3)), 0.9) == model.predictions(np.ones((1, 3)), 0.9)
    state = {"kind": "log", **model.target.state()}
    assert target_from_state(state) == model.target
    with pytest.raises(ValueError, match="scale"):
        target_from_state(state | {"scale": -1.0})


def test_weights_are_changes_of_the_logarithm(tmp_path: Path) -> None:
    model = learned(tmp_path, table(factors))
    weights = {weight.feature: weight for weight in model.weights()["y"]}
    assert abs(weights["a"].mean - 1.0) < 0.1  # a has the standard deviation 1
    assert abs(weights["b"].mean) < 4.0 * weights["b"].std
    facts = dict(model.facts())
    assert facts["noise now"].startswith("a factor of 1.58")  # near exp(0.5)
    assert "of the logarithm of y" in facts["evidence"]


@pytest.mark.parametrize(("outliers", "told"), [(0.0, True), (0.05, False)])
def test_wild_targets_are_told_unless_they_are_expected(outliers: float, told: bool, tmp_path: Path) -> None:
    rows = table(lambda a, b, c, noise: a + 0.2 * noise)
    rows[7]["y"] = 900.0
    rows[70]["y"] = -900.0
    model = learned(tmp_path, rows, settings=Settings(outliers=outliers))
    assert isinstance(model.target, NumberTarget)
    assert ("; 2 of the first targets are far away from all others" in dict(model.choices())["target"]) == told
