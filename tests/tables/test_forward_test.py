"""Forward tests: what they choose, by how much they widen, and that everything that predicts follows them."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import csv

import onepass
from onepass.estimators.rows import Rows
from onepass.files.checkpoint import CheckpointError
from onepass.tables.forward_record import CANDIDATES, IN_ORDER, ForwardTest
from onepass.tables.forward_test import MOST, thinned
from onepass.tables.model import TabularModel
from onepass.tables.readers.batches import RowBatch
from tests.helpers.exported import numpy_module

N = 400


def table(kind: str, n: int = N, seed: int = 0) -> dict[str, Any]:
    """Rows whose relation stays or has turned round, or whose level jumps where the first test predicts."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 2))
    slope = np.where((np.arange(n) < 0.3 * n) & (kind == "turned"), -3.0, 1.0)
    y = slope * x[:, 0] - x[:, 1] + 0.2 * rng.normal(size=n) + 10.0 * ((np.arange(n) >= 0.55 * n) & (kind == "jumped"))
    return {"a": x[:, 0], "b": x[:, 1], "y": np.exp(y) if kind == "factors" else y}


def fitted(folder: Path, kind: str, **options: Any) -> TabularModel:
    file = folder / f"{kind}.csv"
    csv.write_csv(pa.table(table(kind)), file)
    return onepass.tables.fit(str(file), "y", **options)


@pytest.fixture(scope="module")
def steady(tmp_path_factory: pytest.TempPathFactory) -> TabularModel:
    return fitted(tmp_path_factory.mktemp("steady"), "stays")


@pytest.fixture(scope="module")
def turned(tmp_path_factory: pytest.TempPathFactory) -> TabularModel:
    return fitted(tmp_path_factory.mktemp("turned"), "turned")


def test_a_relation_that_stays_needs_no_order_and_no_wider_intervals(steady: TabularModel) -> None:
    test = steady.forward_test
    assert test is not None
    assert (test.order_matters, test.widening, steady.needs_order) == (False, 1.0, False)
    assert (test.n_learned, test.n_predicted) == (320, 80)
    assert test.coverage == test.plain_coverage
    assert test.errors is not None
    assert test.errors["model"] < 0.5 * test.errors["the mean"]


def test_a_jump_that_is_past_does_not_widen_intervals_for_ever(tmp_path: Path) -> None:
    test = fitted(tmp_path, "jumped").forward_test
    assert test is not None
    assert test.widening < 1.5


def test_a_relation_that_moves_is_learned_in_order(turned: TabularModel) -> None:
    test = turned.forward_test
    assert test is not None
    assert test.candidate.in_order
    assert turned.needs_order
    assert test.scores[test.chosen] == max(test.scores.values())
    words = dict(turned.choices())["model"]
    assert "chosen as" in words
    assert "must be better by" not in words


def test_why_a_lower_score_was_chosen_is_said(turned: TabularModel) -> None:
    copied = widened(turned, 1.7)
    test = copied.forward_test
    assert test is not None
    copied.forward_test = replace(test, chosen="perceptron", scores={"perceptron": -0.67, "network in order": -0.63})
    assert "; others must be better by 0.05" in dict(copied.choices())["model"]


def widened(model: TabularModel, factor: float) -> TabularModel:
    """The same model as if its forward tests had asked for wider intervals."""
    copied = TabularModel.from_state(*model.export_state())
    assert copied.forward_test is not None
    copied.forward_test = replace(copied.forward_test, widening=factor)
    return copied


@pytest.mark.parametrize("kind", ["stays", "factors"])
def test_wider_intervals_have_the_same_mean_and_a_density_that_integrates_to_one(tmp_path: Path, kind: str) -> None:
    plain = fitted(tmp_path, kind)
    plain.forward_test = replace(plain.forward_test or _record(), widening=1.0)
    wide, rows = widened(plain, 1.7), pa.table({"a": [0.3], "b": [-1.0]})
    before, after = (model.predict(rows) for model in (plain, wide))
    assert after["mean"][0] == before["mean"][0]
    log = np.log if kind == "factors" else np.asarray
    ends = [log([found["lower"][0].as_py(), found["upper"][0].as_py()]) for found in (before, after)]
    assert np.ptp(ends[1]) == pytest.approx(1.7 * np.ptp(ends[0]), rel=1e-6)
    encoded = wide.encode(RowBatch(rows.to_batches()[0], 0, tuple)).X
    (one, mean, var, own_var), (total, same, wide_var, own_wide_var) = (_moments(one, encoded) for one in (plain, wide))
    assert total == pytest.approx(one, abs=1e-4)
    assert total == pytest.approx(1.0, abs=1e-4)
    assert same == pytest.approx(mean, abs=1e-4)
    assert wide_var == pytest.approx(1.7**2 * var, rel=1e-3)
    assert own_wide_var == pytest.approx(1.7**2 * own_var)


def _moments(model: TabularModel, row: Any) -> tuple[float, float, float, float]:
    """Integral, mean and variance of the density that a model gives to targets of a row, and the variance it states."""
    y = np.linspace(-40.0, 40.0, 8001)
    found = model.predict_and_score(Rows(np.repeat(row, len(y), axis=0), y))
    density = np.exp(found.log_density)
    total, mean = (float(np.trapezoid(values, y)) for values in (density, y * density))
    return total, mean, float(np.trapezoid((y - mean) ** 2 * density, y)), float(found.var[0])


def _record() -> ForwardTest:
    return ForwardTest("perceptron", {"perceptron": 0.0}, 80, 20, 1.0)


def test_a_model_that_needs_order_or_width_keeps_both_in_its_file(turned: TabularModel, tmp_path: Path) -> None:
    model = widened(turned, 1.25)
    onepass.save(model, tmp_path / "m.onepass")
    again = onepass.load(tmp_path / "m.onepass")
    assert again.forward_test == model.forward_test
    assert again.needs_order
    rows = [{"a": 1.0, "b": 0.0}]
    assert again.predict(rows) == model.predict(rows)
    assert again.predict(rows) != turned.predict(rows) or turned.widening == 1.25


@pytest.mark.parametrize("wrong", [{"widening": 0.5}, {"widening": "wide"}, {"chosen": "best"}, {"n_learned": -1}])
def test_a_record_that_can_not_be_is_refused(steady: TabularModel, tmp_path: Path, wrong: dict[str, Any]) -> None:
    copied = TabularModel.from_state(*steady.export_state())
    assert copied.forward_test is not None
    copied.forward_test = replace(copied.forward_test, **wrong)
    onepass.save(copied, tmp_path / "m.onepass")
    with pytest.raises(CheckpointError):
        onepass.load(tmp_path / "m.onepass")


@pytest.mark.parametrize("kind", ["stays", "factors"])
def test_an_exported_model_has_the_wider_intervals(tmp_path: Path, kind: str) -> None:
    plain = fitted(tmp_path, kind)
    plain.forward_test = replace(plain.forward_test or _record(), widening=1.0)
    model = widened(plain, 2.0)
    rows = [{"a": 0.5, "b": 1.0}, {"a": -2.0, "b": 0.0}]
    mean, std = numpy_module(model)["predict"](rows)
    expected = model.predict(rows)
    assert np.allclose(mean, expected["mean"])
    assert np.allclose(std, expected["std"])
    assert not np.allclose(std, plain.predict(rows)["std"])


def test_many_rows_are_thinned_evenly_in_their_order() -> None:
    y = np.arange(5.0 * MOST)
    parts = (Rows(y[i : i + 1000, None], y[i : i + 1000]) for i in range(0, len(y), 1000))
    kept = thinned(parts)
    assert kept is not None
    assert MOST / 2 <= len(kept.y) <= MOST
    assert (np.diff(kept.y) == 8.0).all()
    assert (kept.X[:, 0] == kept.y).all()
    assert thinned([]) is None


@pytest.mark.parametrize("options", [{"shuffle": "on"}, {"passes": 2}, {"drift": 0.01}, {"model_kind": "perceptron"}])
def test_what_says_how_rows_are_to_be_learned_is_not_tested(tmp_path: Path, options: dict[str, Any]) -> None:
    model = fitted(tmp_path, "turned", **options)
    assert model.forward_test is None
    assert model.widening == 1.0


def test_few_rows_and_classes_without_dates_are_not_tested(tmp_path: Path) -> None:
    rows = table("stays")
    file = tmp_path / "few.csv"
    csv.write_csv(pa.table(rows).slice(0, 40), file)
    assert onepass.tables.fit(str(file), "y").forward_test is None
    csv.write_csv(pa.table({**rows, "y": np.where(rows["y"] > 0.0, "up", "down")}), file)
    assert onepass.tables.fit(str(file), "y").forward_test is None


def test_names_of_candidates_are_distinct_and_one_of_them_learns_in_order() -> None:
    assert len(CANDIDATES) == 5
    assert CANDIDATES[IN_ORDER.name].is_network
