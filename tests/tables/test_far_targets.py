from math import inf
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from onepass.tables.columns.inference import infer
from onepass.tables.far_targets import far_targets, without_far_targets
from onepass.tables.model import TabularModel
from onepass.tables.rows import Rows
from onepass.tables.settings import Settings
from onepass.tables.targets import ClassTarget, NumberTarget, Target


def model_of(target: Target, **settings: Any) -> TabularModel:
    sample = pa.RecordBatch.from_pylist([{"km": 0.0, "shop": "a"}, {"km": 1.0, "shop": "b"}])
    encoding = infer(sample, ["shop"])
    return TabularModel(encoding, target, Settings("perceptron", **settings)).start()


def rows_of(y: Any, seed: int = 0, **given: Any) -> Rows:
    y = np.asarray(y, dtype=float)
    X = np.random.default_rng(seed).normal(size=(len(y), 1))
    return Rows(X, y, (), len(y), lambda: range(1, len(y) + 1), record=lambda row: f"record {row}", **given)


def taught(n: int, scale: float = 1.0, target: Target | None = None) -> TabularModel:
    model = model_of(target or NumberTarget("price", 30.0, 10.0))
    model.learn(rows_of(scale * np.random.default_rng(1).normal(size=n)))
    return model


def test_an_absurd_target_is_far_in_its_own_units() -> None:
    model = taught(200)
    found = far_targets(model, rows_of([0.0, 1e11, -3.0, 90.0]), model.n_rows, 10_000.0)
    assert list(found) == [1]
    far = found[1]
    assert far.limit == 10_000.0
    assert far.target == pytest.approx(1e12 + 30.0)
    assert far.mean == pytest.approx(30.0, abs=10.0)
    assert far.std == pytest.approx(10.0, rel=0.2)
    assert far.deviations == pytest.approx(abs(far.target - far.mean) / far.std)
    assert not far_targets(model, rows_of([1e11]), model.n_rows, inf)


@pytest.mark.parametrize(("n", "expected"), [(0, []), (9, []), (10, [0])])
def test_a_model_that_has_hardly_learned_anything_does_not_judge(n: int, expected: list[int]) -> None:
    model = taught(n)
    assert list(far_targets(model, rows_of([1e11]), model.n_rows, 10_000.0)) == expected


@pytest.mark.filterwarnings("ignore:targets are of size")
def test_a_narrow_prior_learns_its_scale_from_the_first_rows() -> None:
    model = model_of(NumberTarget("price", 0.0, 1.0))
    y = 1e6 + 1e5 * np.random.default_rng(2).normal(size=60)
    for i in range(60):
        rows = rows_of(y[i : i + 1], seed=i)
        assert without_far_targets(model, rows, 10_000.0) is rows
        model.learn(rows)
    assert far_targets(model, rows_of([1e13]), model.n_rows, 10_000.0)


@pytest.mark.parametrize("level", [0.0, 5.0])
def test_what_was_constant_so_far_may_change(level: float) -> None:
    model = taught(5_000, scale=0.0)
    assert not far_targets(model, rows_of([level, 50.0]), model.n_rows, 10_000.0)
    assert far_targets(model, rows_of([1e6]), model.n_rows, 10_000.0)


def test_a_model_that_expects_outliers_learns_hardly_anything_from_an_absurd_row() -> None:
    model = model_of(NumberTarget("price", 30.0, 10.0), outliers=0.05)
    model.learn(rows_of(np.random.default_rng(1).normal(size=200)))
    assert not far_targets(model, rows_of([1e11]), model.n_rows, 10_000.0)
    before = model.estimator.predict([[0.0]])
    model.learn(rows_of([1e11]))
    assert model.estimator.predict([[0.0]]) == pytest.approx(before, abs=0.01)


def test_classes_are_never_far() -> None:
    target = ClassTarget("sold", ("no", "yes"), numeric=False)
    model = model_of(target)
    model.learn(rows_of(np.tile([0.0, 1.0], 20)))
    assert not far_targets(model, rows_of([1.0]), model.n_rows, 1e-9)


def test_a_new_key_does_not_judge_while_a_known_one_does() -> None:
    model = model_of(NumberTarget("price", 30.0, 10.0), by="shop")
    model.learn(rows_of(np.random.default_rng(3).normal(size=400), keys=("a",) * 395 + ("b",) * 5))
    rows = rows_of([1e11, 1e11, 1e11], keys=("a", "b", "new"))
    assert list(far_targets(model, rows, model.n_rows, 10_000.0)) == [0]


def test_far_rows_are_rejected_with_what_was_read_and_the_others_stay() -> None:
    model = taught(200)
    rows = Rows.joined([rows_of([0.0, 1e11]), rows_of([0.5, -1e11, 1.0])])
    kept = without_far_targets(model, rows, 10_000.0)
    assert kept.y.tolist() == [0.0, 0.5, 1.0]
    assert kept.lines == 5
    assert [kept.record(row) for row in range(3)] == ["record 0", "record 0", "record 2"]
    assert [(one.line, one.text) for one in kept.rejects] == [(2, "record 1"), (2, "record 1")]
    assert all(one.reason.startswith("the target price is ") for one in kept.rejects)
    assert "; at most 10,000 are accepted" in kept.rejects[0].reason
