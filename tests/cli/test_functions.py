"""The functions of the library do what the commands of the same names do."""

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import onepass
import onepass.evaluation
import onepass.tables
from onepass.files.checkpoint import to_bytes
from tests.cli.conftest import Run
from tests.helpers.tables import trips, write_csv


@pytest.mark.parametrize(
    "options",
    [
        {"model_kind": "perceptron"},
        {"hidden": (4,)},  # shuffled, and learned again as a batch
        {"ignore": ("km",), "noise": "learn", "covariance": "auto", "decimal": ".", "outliers": 0.05, "passes": 2},
        {"by": "car", "columns": ("km",)},
    ],
    ids=str,
)
def test_fit_makes_the_model_of_the_command(
    options: dict[str, Any], run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1700000000")
    file, path = write_csv(tmp_path / "a.csv", trips(300)), tmp_path / "m"
    flags = [
        part
        for name, value in options.items()
        for part in (
            f"--{name.replace('_', '-')}",
            ",".join(map(str, value)) if isinstance(value, tuple) else str(value),
        )
    ]
    assert run("fit", file, "--target", "price", "--model", path, *flags, "-q").code == 0
    model = onepass.tables.fit(str(file), target="price", **options)
    assert to_bytes(model) == path.read_bytes()


def test_predict_and_evaluate_give_what_the_commands_give(run: Run, tmp_path: Path) -> None:
    file, path, out = write_csv(tmp_path / "a.csv", trips(300)), tmp_path / "m", tmp_path / "p.jsonl"
    kind = ("--model-kind", "perceptron")
    assert run("fit", file, "--target", "price", "--model", path, *kind, "-q").code == 0
    assert (
        run("predict", path, file, "--keep", "car", "--level", "0.8", "--full-precision", "--out", out, "-q").code == 0
    )
    found = onepass.tables.predict(onepass.load(path), str(file), keep=("car",), level=0.8)
    assert found.to_pylist() == [json.loads(line) for line in out.read_text().splitlines()]
    done = run("evaluate", file, "--target", "price", *kind, "--json", "--test-split", "20%")
    told = json.loads(done.out.splitlines()[-1])
    trial = onepass.evaluation.evaluate([str(file)], "price", model_kind="perceptron", test_split=0.2)
    assert (trial.rows, trial.scores()) == (told["rows"], told["scores"])


def test_what_is_wrong_is_told(tmp_path: Path) -> None:
    file = str(write_csv(tmp_path / "a.csv", [*trips(30), {**trips(1)[0], "km": "far"}]))
    with pytest.raises(TypeError, match="'hiden' is not an option of a model; did you mean 'hidden'"):
        onepass.tables.fit(file, target="price", hiden=(3,))
    with pytest.raises(TypeError, match="either target"):
        onepass.evaluation.evaluate(file)
    with pytest.raises(AttributeError):
        _ = onepass.tables.predicted
    model = onepass.tables.fit(file, target="price", kinds={"km": "number"}, model_kind="perceptron")
    assert (model.n_rows, model.n_rejected) == (30, 1)
    with pytest.warns(UserWarning, match="1 rows can't be predicted, the first in .*a.csv, line 32: "):
        assert onepass.tables.predict(model, file).num_rows == 31


def test_files_may_be_paths(tmp_path: Path) -> None:
    file = write_csv(tmp_path / "trips.csv", trips(200))
    model = onepass.tables.fit(file, "price", model_kind="perceptron")
    assert to_bytes(onepass.tables.fit([str(file)], "price", model_kind="perceptron")) == to_bytes(model)
    assert len(onepass.tables.predict(model, file)) == 200
    assert onepass.evaluation.evaluate(file, "price", model_kind="perceptron") is not None


@pytest.mark.parametrize(
    ("option", "value"),
    [
        *(("task", "class"), ("model_kind", "nn"), ("passes", 0), ("shuffle", "yes"), ("kinds", {"km": "nmber"})),
        *(("one_hot", -1), ("log_target", "x"), ("seed", "x"), ("ignore", "km"), ("hidden", 5)),
    ],
)
def test_an_option_that_can_not_be_right_is_named(option: str, value: Any, tmp_path: Path) -> None:
    file = write_csv(tmp_path / "trips.csv", trips(50))
    with pytest.raises((ValueError, TypeError), match=f"^{option}"):
        onepass.tables.fit(file, "price", **{option: value})


def test_what_is_not_a_file_or_a_model_is_refused_in_plain_words(tmp_path: Path) -> None:
    file = write_csv(tmp_path / "trips.csv", trips(60))
    with pytest.raises(TypeError, match="files must be a path or a list of paths, got DataFrame; write a data frame"):
        onepass.tables.fit(pd.DataFrame({"km": [1.0]}), target="price")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="got int"):
        onepass.tables.fit(3, target="price")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="model must be a TabularModel, or the path of one, got dict"):
        onepass.tables.predict({}, file)  # type: ignore[arg-type]
    model = onepass.tables.fit(file, target="price", model_kind="perceptron")
    onepass.save(model, tmp_path / "trips.onepass")
    assert onepass.tables.predict(tmp_path / "trips.onepass", file) == onepass.tables.predict(model, file)
