"""Advice on made-up tables, where what is wrong is known, and no advice where nothing is."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn import datasets

from onepass.tables.inputs import Inputs
from onepass.tables.model import TabularModel
from onepass.tables.schema import SchemaOptions, infer_model

N = 400


def _model(folder: Path, frame: Any, target: str, **options: Any) -> TabularModel:
    file = folder / "a.csv"
    frame.to_csv(file, index=False)
    inputs = Inputs((str(file),))
    return infer_model(inputs.sources(), SchemaOptions.of(target, **options), rereadable=True)[0]


def _codes(model: TabularModel) -> set[tuple[str, str]]:
    return {(one.reason.code, one.reason.column) for one in model.advice}


def _shop() -> Any:
    random = np.random.default_rng(5)
    size, region = random.normal(size=N), random.integers(1, 5, N)
    price = 10.0 + 2.0 * size + np.array([3.0, -4.0, 6.0, 0.0])[region - 1] + random.normal(size=N)
    return pd.DataFrame({"size": size, "region": region, "rooms": random.integers(1, 6, N), "price": price})


def test_a_copy_of_the_target_may_be_a_leak(tmp_path: Path) -> None:
    shop = _shop()
    shop["paid"] = 1.19 * shop["price"] + 0.01 * shop["size"]
    found = _model(tmp_path, shop, "price").advice
    (leak,) = (one for one in found if one.reason.code == "leak")
    assert (leak.reason.column, leak.setting, leak.value) == ("paid", "ignore", "paid")
    assert leak.reason.facts["share"] > 0.99
    assert "leak" not in dict(_codes(_model(tmp_path, shop, "price", ignore=("paid",))))


def test_a_text_from_which_the_class_can_be_read_may_be_a_leak(tmp_path: Path) -> None:
    shop = _shop()
    shop["sold"] = np.where(shop["price"] > 10.0, "yes", "no")
    shop["status"] = np.where(shop["sold"] == "yes", "shipped", "open")
    assert ("leak", "status") in _codes(_model(tmp_path, shop, "sold", ignore=("price",)))


@pytest.mark.parametrize("kind", ["date", "number", "text"])
def test_a_column_that_is_filled_only_after_the_target_may_be_a_leak(kind: str, tmp_path: Path) -> None:
    shop = _shop()
    shop["sold"] = np.where(shop["price"] > 10.0, "yes", "no")
    days = pd.Timestamp("2024-01-01") + pd.to_timedelta(np.arange(N) % 97, "D")
    given = {"date": days, "number": np.arange(N) * 1.7 % 13.0, "text": [f"note {i % 97}" for i in range(N)]}[kind]
    shop["closed"] = pd.Series(given).where(shop["sold"] == "yes")
    assert ("leak_by_presence", "closed") in _codes(_model(tmp_path, shop, "sold", ignore=("price",)))
    shop.loc[::20, "closed"] = np.nan  # sometimes nobody fills it in
    assert not {"leak", "leak_by_presence"} & set(dict(_codes(_model(tmp_path, shop, "sold", ignore=("price",)))))


def test_codes_that_no_line_goes_through_are_taken_for_codes_and_counts_are_not(tmp_path: Path) -> None:
    assert _codes(_model(tmp_path, _shop(), "price")) == {("codes", "region")}
    assert not _codes(_model(tmp_path, _shop(), "price", kinds={"region": "category"}))


def test_identifiers_are_ignored_or_told_by_their_name(tmp_path: Path) -> None:
    shop = _shop().drop(columns="region")
    random = np.random.default_rng(6)
    shop["order_id"] = random.permutation(10 * N)[:N] + 1000
    shop["customerId"] = random.integers(1, 50, N)
    shop["height"] = random.permutation(10 * N)[:N]
    model = _model(tmp_path, shop, "price")
    assert _codes(model) == {("identifier_ignored", "order_id"), ("identifier", "customerId")}
    assert set(model.encoding.ignored) == {"order_id"}
    asked = _model(tmp_path, shop, "price", kinds={"order_id": "number", "customerId": "category"})
    assert not asked.encoding.ignored
    assert ("identifier_ignored", "order_id") not in _codes(asked)


@pytest.mark.parametrize(("first", "last", "told"), [(1, 3, True), (0, 9, True), (3, 8, False), (1, 30, False)])
def test_a_target_of_few_whole_numbers_from_0_or_1_may_be_codes_of_classes(
    first: int, last: int, told: bool, tmp_path: Path
) -> None:
    shop = _shop().drop(columns="region")
    shop["kind"] = first + np.arange(N) % (last - first + 1)
    assert (("class_codes", "kind") in _codes(_model(tmp_path, shop, "kind"))) == told
    assert not _codes(_model(tmp_path, shop, "kind", task="regression"))


@pytest.mark.parametrize("name", ["diabetes", "breast_cancer"])
def test_well_known_tables_need_no_advice(name: str, tmp_path: Path) -> None:
    frame = getattr(datasets, f"load_{name}")(as_frame=True).frame
    assert not _codes(_model(tmp_path, frame, "target"))


def test_the_option_is_in_the_words_of_the_reader(tmp_path: Path) -> None:
    (advice,) = _model(tmp_path, _shop(), "price").advice
    assert "--as region=category" in advice.words(lambda setting, value: f"--as {value}" if setting == "kinds" else "")
    assert "kinds=region=category" in str(advice)
    assert "{" not in str(advice)
