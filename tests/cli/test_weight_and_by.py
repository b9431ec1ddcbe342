"""--weight and --by, from the user's side."""

import csv
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import onepass
from onepass.models.fleet.records import AT_TOUCHED
from tests.cli.conftest import Run
from tests.helpers.tables import Row, write_csv

FIXED = ("--target", "sales", "--noise", "1", "--model-kind", "perceptron")


def stores(n: int = 900, seed: int = 0) -> list[Row]:
    rng = np.random.default_rng(seed)
    base = {f"store {i}": (10 + 3 * rng.normal(), 2 + 0.5 * rng.normal()) for i in range(12)}
    rows = []
    for _ in range(n):
        store, size = f"store {rng.integers(12)}", float(rng.gamma(2, 2))
        sales = base[store][0] + base[store][1] * size + float(rng.normal())
        rows.append({"store": store, "size": round(size, 3), "w": int(rng.integers(0, 4)), "sales": round(sales, 3)})
    return rows


ROWS = stores()


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return write_csv(tmp_path / "stores.csv", ROWS)


def predicted(run: Run, model: Path, file: Path, out: Path) -> list[dict[str, str]]:
    done = run("predict", model, file, "--out", out, "-q")
    assert done.code in (0, 3), done
    with out.open() as opened:
        return list(csv.DictReader(opened))


def test_a_weight_is_the_number_of_times_that_a_row_counts(run: Run, file: Path, tmp_path: Path) -> None:
    sample = [dict(row) for row in ROWS]
    repeated = [row for row in sample for _ in range(row["w"])]
    # The same columns and scales: those of the first rows, which are the same in both files.
    first = [{**row, "w": 1} for row in sample]
    same = ("--ignore", "store", "--sample", len(ROWS))
    weighted = write_csv(tmp_path / "weighted.csv", first + sample)
    plain = write_csv(tmp_path / "plain.csv", first + repeated)
    assert run("fit", weighted, *FIXED, *same, "--weight", "w", "--model", tmp_path / "a", "-q").code == 0
    assert run("fit", plain, *FIXED, "--ignore", "store,w", *same[2:], "--model", tmp_path / "b", "-q").code == 0
    one, two = onepass.load(tmp_path / "a"), onepass.load(tmp_path / "b")
    assert one.n_rows == len(first) + sum(row["w"] > 0 for row in sample)
    assert "w" not in one.encoding.features
    np.testing.assert_allclose(one.estimator.coef_, two.estimator.coef_, rtol=1e-9)
    np.testing.assert_allclose(one.estimator.coef_cov_, two.estimator.coef_cov_, rtol=1e-6)


def test_fractions_are_weighted_least_squares(run: Run, tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    x, w = rng.normal(size=400), rng.uniform(0.01, 3.0, size=400)
    y = 3.0 + 2.0 * x + rng.normal(size=400) / np.sqrt(w)
    table = [{"x": a, "w": b, "y": c} for a, b, c in zip(x.tolist(), w.tolist(), y.tolist(), strict=True)]
    file = write_csv(tmp_path / "a.csv", table)
    options = ("--target", "y", "--noise", "1", "--prior-scale", "1000", "--intercept-scale", "1000", "--shuffle", "on")
    assert run("fit", file, *options, "--weight", "w", "--model", tmp_path / "m", "-q").code == 0
    found = [float(row["mean"]) for row in predicted(run, tmp_path / "m", file, tmp_path / "out.csv")]
    X = np.column_stack([np.ones(400), x])
    line = np.linalg.solve(X.T @ (w[:, None] * X), X.T @ (w * y))
    np.testing.assert_allclose(found, X @ line, rtol=1e-4)


def test_the_weight_belongs_to_the_model_and_bad_ones_are_rejected(run: Run, file: Path, tmp_path: Path) -> None:
    model = tmp_path / "m"
    done = run("fit", file, "--target", "sales", "--weight", "w", "--model", model)
    assert "weight:        w: how often a row counts" in done.out
    write_csv(tmp_path / "none.csv", [{"store": "a", "size": 1, "sales": 3}])
    assert "has no column 'w'" in run("learn", model, tmp_path / "none.csv").err
    assert run("predict", model, tmp_path / "none.csv", "-q").code == 0  # a weight is for learning
    bad = [{**ROWS[0], "w": value} for value in ("-1", "", "x", "inf", "0", "5000", "0.5")]
    done = run("learn", model, write_csv(tmp_path / "bad.csv", bad))
    assert done.code == 3
    for words in (
        "w is -1, which is negative",
        "w is missing",
        "w is 'x', not a number",
        "w is infinite",
    ):
        assert words in done.err
    assert "learned 2 rows " in done.out


def test_weights_that_can_not_be_meant_are_refused(run: Run, file: Path, tmp_path: Path) -> None:
    none = write_csv(tmp_path / "none.csv", [{**row, "w": 0} for row in ROWS])
    for given, words in (
        ((none, "--weight", "w"), "--weight: no row would count: the weights in 'w' are all 0"),
        ((file, "--weight", "store"), "--weight: no row would count: store is 'store"),
        ((file, "--weight", "sales"), "--weight: 'sales' is the target"),
        ((file, "--weight", "wight"), "--weight: "),
        ((file, "--weight", "w", "--by", "store"), "--by: a model per key"),
    ):
        done = run("fit", *given, "--target", "sales", "--model", tmp_path / "m")
        assert done.code == 1, done
        assert words in done.err


def test_every_key_has_its_model_and_unknown_ones_what_all_share(run: Run, file: Path, tmp_path: Path) -> None:
    model = tmp_path / "m"
    done = run("fit", file, *FIXED, "--by", "store", "--model", model, "--ignore", "w", "--json")
    assert done.code == 0, done
    new = [{"store": store, "size": 4.0} for store in ("store 1", "store 2", "store 99")]
    one, two, unknown = predicted(run, model, write_csv(tmp_path / "new.csv", new), tmp_path / "out.csv")
    for found, store in ((one, "store 1"), (two, "store 2")):
        own = [row for row in ROWS if row["store"] == store]
        slope, start = np.polyfit([row["size"] for row in own], [row["sales"] for row in own], 1)
        assert abs(float(found["mean"]) - (start + 4 * slope)) < 0.5
    assert float(unknown["std"]) > 2 * float(one["std"])
    shown = run("show", model)
    assert "keys now:      12 values of store" in shown.out
    assert "weight size:" in shown.out


def test_models_per_key_go_on_learning_and_are_evaluated(run: Run, file: Path, tmp_path: Path) -> None:
    model = tmp_path / "m"
    halves = [write_csv(tmp_path / f"{i}.csv", ROWS[450 * i : 450 * (i + 1)]) for i in range(2)]
    options = (*FIXED, "--by", "store", "--ignore", "w", "--sample", 450)
    assert run("fit", halves[0], *options, "--model", model, "-q").code == 0
    assert run("learn", model, halves[1], "-q").code == 0
    assert run("fit", file, *options, "--model", tmp_path / "whole", "-q").code == 0
    one, whole = (onepass.load(path).estimator.export_state()[1] for path in (model, tmp_path / "whole"))
    of_rows = np.arange(one["fleet/records"].shape[1]) != AT_TOUCHED  # that one counts calls
    np.testing.assert_allclose(one["fleet/records"][:, of_rows], whole["fleet/records"][:, of_rows], rtol=1e-9)
    scores: list[Any] = []
    for by in (("--by", "store"), ()):
        done = run("evaluate", file, "--target", "sales", "--ignore", "w,store" if not by else "w", *by, "--json")
        scores.append(json.loads(done.out.splitlines()[-1])["scores"]["onepass"])
    assert scores[0]["rmse"] < 0.8 * scores[1]["rmse"]
    missing = write_csv(tmp_path / "missing.csv", [{**ROWS[0], "store": None}])
    done = run("learn", model, missing)
    assert "the key store is missing" in done.err
    assert "has no column 'store'" in run("predict", model, write_csv(tmp_path / "x.csv", [{"size": 1}])).err


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--hidden", "5"), "can't be used with hidden layers"),
        (("--task", "counts", "--target", "w"), "can't be used with counts"),
        (("--task", "classification", "--target", "w"), "can't be used with 4 classes"),
        (("--drift", "auto"), "can't be used with drift"),
        (("--covariance", "diagonal"), "can't be used with covariance"),
        (("--prior-scale", "auto"), "can't be used with prior_scale"),
        (("--buckets", "300", "--as", "size=hashed"), "can have at most 200 features, got 30"),
        (("--by", "sales"), "'sales' is the target"),
    ],
)
def test_what_a_model_per_key_does_not_have_is_refused(
    run: Run, file: Path, tmp_path: Path, options: tuple[str, ...], words: str
) -> None:
    done = run("fit", file, "--target", "sales", "--by", "store", "--model", tmp_path / "m", *options)
    assert done.code == 1, done
    assert done.err.startswith("onepass: --by: ")
    assert words in done.err


def test_files_per_key_and_weights_are_for_one_process(run: Run, file: Path) -> None:
    for option in ("--by", "--weight"):
        done = run("fit", file, "--target", "sales", option, "store", "--executor", "dask")
        assert done.code == 2
        assert f"{option} can't be used with --executor dask" in done.err


def test_that_river_is_missing_is_told(run: Run, file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "river", None)  # as if it were not installed
    done = run("evaluate", file, "--compare", "--model-kind", "perceptron", "--target", "sales")
    assert (
        "--compare: models of River are left out, which is not installed: pip install 'onepass-learn[river]'"
        in done.err
    )
    assert "scikit-learn" in done.out
    assert "River" not in done.out


def test_what_baselines_are_not_given_is_told(run: Run, file: Path) -> None:
    common = ("evaluate", file, "--compare", "--model-kind", "perceptron")
    weighted = run(*common, "--target", "sales", "--weight", "w")
    assert "--compare:" not in weighted.err  # all of them take weights
    per_key = run(*common, "--target", "sales", "--by", "store")
    assert "--compare: those compared have one model for all values of store, which they don't see" in per_key.err
    classes = run(*common, "--target", "store", "--weight", "w")
    assert "--compare: rows count once, whatever their w, for River SoftmaxRegression: no weights there" in classes.err
    assert "--compare:" not in run(*common, "--target", "sales").err
