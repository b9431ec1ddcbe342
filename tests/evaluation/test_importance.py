"""What columns are good for, where it is known: y is 3 a + b, an effect of a town, and noise."""

from pathlib import Path

import numpy as np

from onepass.evaluation import evaluate
from onepass.evaluation.importance import column_importance
from tests.helpers.tables import write_csv


def test_the_rise_of_the_error_is_that_of_the_shares_of_the_columns(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    a, b, c = rng.normal(size=(3, 1500))
    town = rng.integers(0, 5, 1500)
    effect = rng.normal(size=5)
    y = 3.0 * a + b + 2.0 * effect[town] + 0.5 * rng.normal(size=1500)
    rows = [{"a": p, "b": q, "c": r, "town": f"t{t}", "y": v} for p, q, r, t, v in zip(a, b, c, town, y, strict=True)]
    trial = evaluate(write_csv(tmp_path / "t.csv", rows), "y", model_kind="perceptron", kinds={"town": "category"})
    kept = trial.drawn.kept
    assert kept is not None
    found = {one.column: one for one in column_importance(trial.model, kept, trial.worst.metric)}
    # A column that changes places doubles its own part of the variance: a squared error of 2 w^2 more.
    for name, part in (("a", 9.0), ("b", 1.0), ("town", 4.0 * effect[town].var())):
        expected = np.sqrt(0.25 + 2.0 * part) - 0.5
        assert abs(found[name].rise - expected) < 0.1 * expected + 4.0 * found[name].std, name
    assert abs(found["c"].rise) < 0.02


def test_what_is_kept_does_not_depend_on_blocks() -> None:
    from onepass.estimators.rows import Rows
    from onepass.evaluation.kept_rows import KeptRows
    from onepass.evaluation.metrics import NumberPredictions

    rng = np.random.default_rng(0)
    X, y, priority = rng.normal(size=(300, 2)), rng.normal(size=300), rng.random(300)
    expected = np.sort(np.argsort(-priority)[:30])
    for size in (7, 300):
        keeper = KeptRows(30)
        for k in range(0, 300, size):
            part = slice(k, k + size)
            predicted = NumberPredictions(y[part], np.zeros_like(y[part]), np.ones_like(y[part]))
            lines = range(k, min(k + size, 300))
            rows = Rows(X[part], y[part])
            keeper.update(rows, predicted, priority[part], lambda lines=lines: ("a.csv", lines))  # type: ignore[misc]
        assert keeper.kept is not None
        np.testing.assert_array_equal([line for _, line in keeper.kept.origins], expected)
        np.testing.assert_array_equal(keeper.kept.y, y[expected])
