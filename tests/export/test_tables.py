"""Models of tables in their exported forms: raw rows in, the target's own units and labels out."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from onepass.export import NotExportableError, program_of, to_c, to_numpy
from onepass.files.checkpoint import load
from onepass.tables.model import TabularModel
from tests.helpers.commands import run_here
from tests.helpers.exported import difference, numpy_module, predict_by_c, predict_by_onnx
from tests.helpers.tables import trips, write_csv

TARGETS: dict[str, Callable[[float], Any]] = {
    "price": lambda price: price,
    "dear": lambda price: "dear" if price > 15.0 else "cheap",
    "size": lambda price: "low" if price < 12.0 else "mid" if price < 25.0 else "high",
    "stops": lambda price: int(max(price / 8.0, 0.0)),
    "factor": lambda price: float(np.exp(price / 15.0)),
}


def fitted(folder: Path, target: str, *options: str) -> TabularModel:
    rows = [
        {**{k: v for k, v in row.items() if k not in ("id", "price")}, target: TARGETS[target](row["price"])}
        for row in trips(600)
    ]
    write_csv(folder / "trips.csv", rows)
    command = ["fit", folder / "trips.csv", "--target", target, "--model", folder / "m.onepass", "--quiet", *options]
    assert run_here(*command) == 0
    model: TabularModel = load(folder / "m.onepass")
    return model


def new_rows() -> list[dict[str, Any]]:
    """Rows with missing values and an unknown category."""
    rows = [{k: v for k, v in row.items() if k not in ("id", "price")} for row in trips(400, seed=5)]
    for k, (name, value) in enumerate({"km": None, "car": "tram", "vip": None, "start": None, "town": None}.items()):
        rows[k][name] = value
    return rows


def expected(model: TabularModel, rows: list[dict[str, Any]]) -> tuple[Any, Any]:
    encoded = model.encoding.encode(pa.RecordBatch.from_pylist(rows))
    assert not encoded.bad
    if model.labels:
        found: tuple[Any, Any] = model.estimator.predict_proba(encoded.X, return_std=True)
        return found
    columns = model.predictions(encoded.X, 0.95)
    return columns["mean"], columns["std"]


@pytest.mark.parametrize(
    ("target", "options"),
    [
        ("price", ("--model-kind", "perceptron")),
        ("price", ("--hidden", "6")),
        ("dear", ("--model-kind", "perceptron")),
        ("size", ("--model-kind", "perceptron", "--covariance", "neuron")),
        ("stops", ("--model-kind", "perceptron", "--task", "counts")),
        ("factor", ("--model-kind", "perceptron", "--log-target")),
    ],
)
def test_raw_rows_are_predicted_as_the_model_of_the_table_does(
    target: str, options: tuple[str, ...], tmp_path: Path
) -> None:
    model = fitted(tmp_path, target, *options)
    names, rows = numpy_module(model), new_rows()
    true = expected(model, rows)
    codes = names["encode"](rows)
    if model.labels:
        assert names["CLASSES"] == list(model.labels)
        found = names["predict_proba"](rows, True)
    else:
        found = names["predict"](rows)
    for mean, std in (found, predict_by_c(model, codes, tmp_path), predict_by_onnx(model, codes)):
        if len(model.labels) > 2:
            np.testing.assert_allclose((mean, std), true, atol=5e-6)
        else:
            assert max(difference((mean, std), true)) < 1e-11
    if "predict_interval" in names and not model.labels:
        encoded = model.encoding.encode(pa.RecordBatch.from_pylist(rows))
        columns = model.predictions(encoded.X, 0.9)
        np.testing.assert_allclose(
            names["predict_interval"](rows, 0.9), (columns["lower"], columns["upper"]), rtol=1e-9
        )


def test_texts_and_models_per_key_are_refused_with_the_way_out(tmp_path: Path) -> None:
    by_key = fitted(tmp_path, "price", "--by", "car")
    with pytest.raises(NotExportableError, match="fit one model for all keys"):
        program_of(by_key)
    text = fitted(tmp_path, "price", "--model-kind", "perceptron", "--as", "town=text")
    with pytest.raises(NotExportableError, match=r"column 'town' is text.*fit without it"):
        to_numpy(text)


def test_the_command_writes_all_three_and_says_so(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    fitted(tmp_path, "price", "--model-kind", "perceptron")
    for name, language in (("price.py", "numpy"), ("price.h", "c"), ("price.onnx", "onnx")):
        assert run_here("export", tmp_path / "m.onepass", "--out", tmp_path / name, "--json") == 0
        assert json.loads(capfd.readouterr().out.splitlines()[-1])["to"] == language
    assert (tmp_path / "price.py").read_text() == to_numpy(load(tmp_path / "m.onepass"))
    assert (tmp_path / "price.h").read_text() == to_c(load(tmp_path / "m.onepass"), "price")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--out", "price.txt"), "give --to numpy, c or onnx"),
        (("--out", "p.h", "--name", "int"), "can't be used as a prefix in a C header"),
        (("--out", "m.onepass", "--to", "c"), "is also an input"),
    ],
)
def test_what_can_not_be_written_is_refused_in_a_sentence(
    options: tuple[str, ...],
    words: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    fitted(tmp_path, "price", "--model-kind", "perceptron")
    monkeypatch.chdir(tmp_path)
    capfd.readouterr()
    assert run_here("export", "m.onepass", *options) in (1, 2)
    told = capfd.readouterr().err
    assert words in told
    assert len(told.splitlines()) == 1


def test_an_activation_of_the_users_own_is_refused() -> None:
    import onepass

    model = onepass.BayesianPerceptron(1, onepass.Quadrature(np.sin), noise=0.1)
    with pytest.raises(NotExportableError, match="can't be exported: use a named activation"):
        to_numpy(model)
    images = onepass.BayesianNetwork((8, 8), (onepass.Conv2D(2, 3),))
    with pytest.raises(NotExportableError, match="convolutions can't be exported"):
        to_numpy(images)
