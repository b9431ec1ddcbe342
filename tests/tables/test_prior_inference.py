"""The prior that first rows suggest: against brute force, and for what it is there."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from scipy.optimize import minimize
from scipy.stats import multivariate_normal

from onepass.tables.columns.inference import infer
from onepass.tables.inputs import Inputs, steps
from onepass.tables.model import TabularModel
from onepass.tables.prior_inference import column_groups, evident_scales, infer_prior
from onepass.tables.readers.batches import RowBatch
from onepass.tables.schema import SchemaOptions, infer_model
from onepass.tables.settings import Settings
from onepass.tables.targets import ClassTarget, CountTarget, NumberTarget


def learned(folder: Path, table: Any, **settings: Any) -> TabularModel:
    pq.write_table(table, folder / "a.parquet")
    inputs = Inputs((str(folder / "a.parquet"),))
    sources = inputs.sources()
    model, _ = infer_model(sources, SchemaOptions("y", settings=Settings(**settings)), rereadable=True)
    for step in steps(model, inputs, sources):
        model.learn(step.rows)
    return model


def predicted(model: TabularModel, table: Any) -> dict[str, Any]:
    return model.predictions(model.encoding.encode(table.to_batches()[0]).X, 0.95)


def table_of(y: Any, **columns: Any) -> Any:
    return pa.table({**columns, "y": y})


@pytest.mark.parametrize("n", [44, 60], ids=["fewer-rows-than-features", "more-rows"])
def test_scales_are_those_of_the_largest_evidence(n: int) -> None:
    rng = np.random.default_rng(1)
    X, groups = rng.normal(size=(n, 45)), np.repeat([0, 1], [5, 40])
    y = X @ np.concatenate([rng.normal(0.0, 1.0, 5), rng.normal(0.0, 0.1, 40)]) + rng.normal(0.0, 0.5, n)
    y = (y - y.mean()) / y.std()
    centred = X - X.mean(axis=0)
    guess = n / np.square(centred).sum()

    def loss(logs: Any) -> float:
        *two, last = np.clip(logs, -13.0, 5.0)
        variances, noise = np.exp(two), np.exp(last)
        cov = (centred * variances[groups]) @ centred.T + noise * np.eye(n)
        # The guess counts as one more weight of each group.
        prior = -0.5 * np.sum(np.log(variances) + guess / variances)
        return float(-multivariate_normal(cov=cov).logpdf(y) - prior)

    best = min(
        (minimize(loss, [a, b, -1.0], method="Nelder-Mead") for a in (-1, -4) for b in (-1, -4)), key=lambda r: r.fun
    )
    scales, noise = evident_scales(X, y[:, None], groups)
    # The steps are near the optimum, not on it.
    assert loss([*np.log(scales**2), np.log(noise)]) < best.fun + 0.05


def test_weights_of_labels_are_of_the_size_of_log_odds() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1000, 10))
    weights = rng.normal(0.0, 0.8, 10)
    columns = {f"x{i}": X[:, i] for i in range(10)}
    labels = np.where(rng.random(1000) < 1.0 / (1.0 + np.exp(-X @ weights)), "b", "a")
    sample = pa.table({**columns, "y": labels})
    prior = infer_prior(infer(sample, ["y"]), ClassTarget("y", ("a", "b"), False), sample)
    assert prior is not None
    size = np.sqrt(np.mean(weights**2))
    assert 0.6 * size < prior.scales[0] < 1.6 * size


def test_weights_of_counts_are_of_the_size_of_log_rates() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1000, 10))
    weights = rng.normal(0.0, 0.3, 10)
    for level in (-2.0, 3.0):
        y = rng.poisson(np.exp(level + X @ weights)).astype(float)
        sample = pa.table({**{f"x{i}": X[:, i] for i in range(10)}, "y": y})
        prior = infer_prior(infer(sample, ["y"]), CountTarget("y"), sample)
        assert prior is not None
        size = np.sqrt(np.mean(weights**2))
        assert 0.5 * size < prior.scales[0] < 2.0 * size


def test_numbers_share_a_scale_and_each_column_of_categories_has_its_own() -> None:
    rng = np.random.default_rng(0)
    n = 600
    strong, weak = rng.integers(8, size=n), rng.integers(8, size=n)
    z = rng.normal(size=(n, 2))
    y = rng.normal(0.0, 1.0, 8)[strong] + rng.normal(0.0, 0.05, 8)[weak] + 0.3 * z[:, 0] + rng.normal(0.0, 0.3, n)
    names = np.array(list("abcdefgh"))
    sample = table_of(y, a=z[:, 0], strong=names[strong], b=z[:, 1], weak=names[weak])
    encoding = infer(sample, ["y"])
    assert column_groups(encoding.columns) == [0, *[1] * 9, 0, *[2] * 9]
    prior = infer_prior(encoding, NumberTarget("y", float(y.mean()), float(y.std())), sample)
    assert prior is not None
    assert prior.scales[0] == prior.scales[10]
    assert prior.scales[1] > 3 * prior.scales[11]
    assert 0.5 < prior.noise / (0.3**2 / y.var()) < 2.0


def test_too_few_rows_and_equal_targets_say_nothing() -> None:
    sample = table_of([1.0] * 50, a=np.arange(50.0) % 7)
    assert infer_prior(infer(sample, ["y"]), NumberTarget("y", 0.0, 1.0), sample) is None
    few = table_of([1.0, 2.0], a=[1.0, 2.5])
    assert infer_prior(infer(few, ["y"]), NumberTarget("y", 0.0, 1.0), few) is None


def test_wild_targets_do_not_set_the_prior() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(500, 4))
    y = x @ [1.0, 0.5, 0.0, 0.0] + rng.normal(0.0, 0.3, 500)
    target = NumberTarget("y", 0.0, float(y.std()))
    clean = table_of(y, **{f"x{i}": x[:, i] for i in range(4)})
    wild = table_of(np.where(np.arange(500) == 250, 1e6, y), **{f"x{i}": x[:, i] for i in range(4)})
    found = [infer_prior(infer(sample, ["y"]), target, sample) for sample in (clean, wild)]
    assert found[0] is not None
    assert found[1] is not None
    assert found[1].scales[0] > 0.5 * found[0].scales[0]


@pytest.mark.parametrize(("std", "noise"), [(0.2, 0.5), (1.0, 0.3)])
def test_intervals_of_unseen_categories_are_as_wide_as_categories_differ(
    std: float, noise: float, tmp_path: Path
) -> None:
    widths, inside = [], []
    for seed in range(6):
        rng = np.random.default_rng(seed)
        known, effects = rng.integers(15, size=800), rng.normal(0.0, std, 215)
        level = np.concatenate([known, np.arange(15, 215)])
        x = rng.normal(size=1000)
        y = effects[level] + x + rng.normal(0.0, noise, 1000)
        rows = table_of(y, car=[f"car {k}" for k in level], x=x)
        found = predicted(learned(tmp_path, rows[:800], model_kind="perceptron"), rows[800:])
        widths.append(np.mean(found["upper"] - found["lower"]) / (2 * 1.96 * np.hypot(std, noise)))
        inside.append(np.mean((found["lower"] < y[800:]) & (y[800:] < found["upper"])))
    assert 0.9 < np.mean(inside) < 0.99
    assert 0.8 < np.mean(widths) < 1.3  # with a prior of 1 for all weights 1.5 to 2.5


def test_few_rows_of_hashed_categories_are_not_fitted_by_chance(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    n = 1000
    columns = {name: [f"v{k}" for k in rng.integers(300, size=n)] for name in "abcd"}
    y = rng.normal(size=n)
    rows = table_of(y, **columns)
    errors = [
        np.sqrt(
            np.mean((predicted(learned(tmp_path, rows[:150], prior_scale=scale), rows[150:])["mean"] - y[150:]) ** 2)
        )
        for scale in ("sample", 1.0)
    ]
    assert errors[0] < 1.06 * y[150:].std()  # predicting the mean
    assert errors[1] > 1.2 * y[150:].std()


def test_large_opposite_weights_of_columns_that_are_nearly_equal_are_found(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    base = rng.normal(size=(600, 1))
    X = base + 0.03 * rng.normal(size=(600, 6))
    y = X[:, 0] - X[:, 1]
    rows = table_of(y, **{f"x{i}": X[:, i] for i in range(6)})
    model = learned(tmp_path, rows[:500], model_kind="perceptron")
    error = predicted(model, rows[500:])["mean"] - y[500:]
    assert np.std(error) < 0.01 * np.std(y)


def test_six_hundred_features_keep_their_correlations(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(900, 600))
    y = X @ rng.normal(size=600)
    rows = table_of(y, **{f"x{i}": X[:, i] for i in range(600)})
    model = learned(tmp_path, rows[:800])
    assert np.std(predicted(model, rows[800:])["mean"] - y[800:]) < 1e-2 * y.std()
    assert "601 weights about 0.1 ms per row (diagonal" in dict(model.choices())["covariance"]


def test_thousands_of_features_keep_the_correlations_known_best(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    common = rng.normal(size=(400, 20))
    X = common @ rng.normal(size=(20, 2100)) + 0.1 * rng.normal(size=(400, 2100))
    y = common @ rng.normal(size=20)
    rows = table_of(y, **{f"x{i}": X[:, i] for i in range(2100)})
    model, independent = (learned(tmp_path, rows[:300], covariance=one) for one in (None, "diagonal"))
    assert model.covariance == "low_rank"
    assert not model.is_network
    assert dict(model.choices())["activation"] == "linear"
    errors = [np.std(predicted(one, rows[300:])["mean"] - y[300:]) for one in (model, independent)]
    assert errors[0] < 0.8 * errors[1]
    (weights,) = model.weights().values()
    assert len(weights) == 200


def test_scales_side_by_side_are_those_of_standardised_targets(tmp_path: Path) -> None:
    x = np.random.default_rng(1).normal(size=400)
    y = 5e4 + 1e3 * x + np.random.default_rng(2).normal(0.0, 100.0, 400)
    model = learned(tmp_path, table_of(y, x=x), model_kind="perceptron", prior_scale="auto")
    assert len(model.estimator.prior_weights_) == 4
    fresh = TabularModel(model.encoding, model.target, Settings("perceptron", prior_scale="auto"))
    (batch,) = table_of(y, x=x).to_batches()
    rows = fresh.rows([RowBatch(batch, 0, lambda: range(400))])
    predicted = fresh.predict_then_learn(rows)
    gaps = np.abs(rows.y - predicted.mean) / predicted.std
    assert 0.4 < np.mean(gaps < 0.674) < 0.6
    assert predicted.log_density.sum() == pytest.approx(fresh.estimator.log_evidence_, abs=3.0)


def test_a_model_per_key_starts_from_what_the_rows_of_its_keys_suggest(tmp_path: Path) -> None:
    rng = np.random.default_rng(5)
    keys, X = rng.integers(6, size=600), rng.normal(size=(600, 40))
    slopes = np.array([2.0, -2.0, 2.0, -2.0, 2.0, -2.0])  # together they are none
    columns = {f"x{i}": X[:, i] for i in range(40)} | {"k": [f"key {key}" for key in keys]}
    model = learned(tmp_path, table_of(slopes[keys] * X[:, 0] + 0.1 * rng.normal(size=600), **columns), by="k")
    (scale,) = set(model.estimator.prior_scale)  # the numbers share one
    # In units of the target's standard deviation, 2, one weight in 40 is 1 and the others are 0.
    assert scale == pytest.approx(1.0 / np.sqrt(40.0), rel=0.3)
    fixed = learned(tmp_path, table_of(slopes[keys] * X[:, 0], **columns), by="k", prior_scale=0.7)
    assert fixed.estimator.prior_scale == 0.7
    again = TabularModel.from_state(*model.export_state())
    assert list(again.estimator.prior_scale) == list(model.estimator.prior_scale)


def test_without_a_key_of_enough_rows_a_model_per_key_starts_from_one(tmp_path: Path) -> None:
    x = np.linspace(0.0, 1.0, 40)
    table = table_of(x + np.sin(20.0 * x), x=x, k=[f"key {i % 20}" for i in range(40)])
    assert learned(tmp_path, table, by="k").estimator.prior_scale == 1.0
