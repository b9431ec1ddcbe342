"""Estimators of raw frames: scikit-learn's contract, frames of all libraries, and the same model as the command's."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils.estimator_checks import parametrize_with_checks

import onepass
from onepass import BayesianTabularClassifier, BayesianTabularRegressor
from onepass.tables import TabularModel, fit

N = 300


@parametrize_with_checks(  # type: ignore[untyped-decorator]
    [BayesianTabularRegressor(model_kind="perceptron"), BayesianTabularClassifier(model_kind="perceptron")],
    expected_failed_checks=lambda _: {
        "check_sample_weight_equivalence_on_dense_data": "the first rows, unweighted, say how large numbers are"
    },
)
def test_it_is_an_estimator(estimator: Any, check: Any) -> None:
    check(estimator)


def _trips(n: int = N, seed: int = 0) -> tuple[Any, Any]:
    random = np.random.default_rng(seed)
    km, car = random.uniform(1.0, 20.0, n), random.choice(["van", "bike", "taxi"], n)
    day = pd.Timestamp("2024-01-01") + pd.to_timedelta(random.integers(0, 700, n), "D")
    X = pd.DataFrame({"km": km, "car": car, "day": day, "note": random.choice(["1,5", "2,5"], n)})
    X.loc[::17, "km"] = np.nan
    X.loc[::13, "car"] = None
    price = pd.Series(3.0 + 2.0 * km + 5.0 * (car == "taxi") + random.normal(size=n), name="price")
    return X, price


def _forms(X: Any) -> dict[str, Any]:
    frame = pl.from_pandas(X)
    return {"polars": frame, "lazy": frame.lazy(), "arrow": pa.Table.from_pandas(X, preserve_index=False)}


@pytest.mark.parametrize("form", ["polars", "lazy", "arrow"])
def test_frames_of_all_libraries_give_the_same(form: str) -> None:
    X, y = _trips()
    expected = BayesianTabularRegressor(model_kind="perceptron").fit(X, y)
    other = BayesianTabularRegressor(model_kind="perceptron").fit(_forms(X)[form], y)
    assert other.predict(_forms(X)[form]) == pytest.approx(expected.predict(X), rel=1e-9)
    assert list(other.feature_names_in_) == list(X.columns)


@pytest.mark.parametrize("options", [{"model_kind": "perceptron"}, {"hidden": (4,)}, {"outliers": 0.05}, {}], ids=str)
def test_it_is_the_model_that_the_command_learns_of_the_same_table(options: dict[str, Any], tmp_path: Path) -> None:
    X, y = _trips()
    X.assign(y=y).to_parquet(tmp_path / "trips.parquet")
    expected = fit(tmp_path / "trips.parquet", "y", task="regression", **options).predict(X)
    found = BayesianTabularRegressor(**options).fit(X, y)
    mean, std = found.predict(X, return_std=True)
    assert mean == pytest.approx(expected["mean"].to_numpy(), rel=1e-9)
    assert std == pytest.approx(expected["std"].to_numpy(), rel=1e-9)
    low, high = found.predict_interval(X)
    assert low == pytest.approx(expected["lower"].to_numpy(), rel=1e-9)
    assert high == pytest.approx(expected["upper"].to_numpy(), rel=1e-9)


def test_gaps_dates_and_categories_that_were_never_seen_are_predicted() -> None:
    X, y = _trips()
    new = pd.DataFrame({"km": [5.0, None], "car": ["boat", None], "day": [None, "2031-05-05"], "note": ["9,5", None]})
    new["day"] = pd.to_datetime(new["day"])
    found = BayesianTabularRegressor().fit(X, y).predict(new)
    assert found == pytest.approx([15.0, 25.0], abs=8.0)


@pytest.mark.parametrize("wider", [1.0, 1.7])
@pytest.mark.parametrize("log_target", [True, False])
def test_the_distribution_has_the_interval_and_for_numbers_the_moments_of_predict(
    log_target: bool, wider: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(TabularModel, "widening", wider)
    X, y = _trips()
    model = BayesianTabularRegressor(model_kind="perceptron", log_target=log_target).fit(X, y)
    rows = X[1:6]
    seen, (mean, std) = model.predict(rows, return_dist=True), model.predict(rows, return_std=True)
    for end, expected in zip(seen.interval(0.9), model.predict_interval(rows, 0.9), strict=True):
        assert end == pytest.approx(expected, rel=1e-6)
    assert seen.mean == pytest.approx(mean, rel=0.02 * wider**2 if log_target else 1e-9)
    assert seen.std == pytest.approx(std, rel=0.05 * wider**2 if log_target else 1e-9)
    steepness = (seen.cdf(mean + 1e-4) - seen.cdf(mean - 1e-4)) / 2e-4
    assert seen.pdf(mean) == pytest.approx(steepness, rel=3e-3)  # they average over the unknown noise in two ways


@pytest.mark.parametrize("labels", [["near", "far"], [3, 7], [False, True], ["a", "b", "c"]], ids=str)
def test_classes_come_back_as_they_were_given(labels: list[Any], tmp_path: Path) -> None:
    X, price = _trips()
    place = np.minimum((price > price.median()).astype(int) + (price > price.quantile(0.8)), len(labels) - 1)
    y = np.array(labels)[place]
    model = BayesianTabularClassifier(model_kind="perceptron").fit(X, y)
    assert model.classes_.tolist() == sorted(labels)
    assert (model.predict(X) == y).mean() > 0.75
    assert model.predict(X).dtype == y.dtype
    onepass.save(model, tmp_path / "m")
    again = onepass.load(tmp_path / "m")
    assert again.classes_.dtype.kind == y.dtype.kind
    assert (again.predict_proba(X) == model.predict_proba(X)).all()


def test_in_pipelines_grid_searches_and_cross_validation() -> None:
    X, y = _trips()
    pipe = make_pipeline(FunctionTransformer(lambda X: X.assign(far=X["km"] > 9)), BayesianTabularRegressor())
    assert cross_val_score(pipe, X, y, cv=3).min() > 0.7
    mean, std = pipe.fit(X, y).predict(X, return_std=True)
    assert mean.shape == std.shape == (N,)
    search = GridSearchCV(BayesianTabularRegressor(), {"hidden": [(), (4,)], "log_target": [False, True]}, cv=2)
    assert search.fit(X, y).best_score_ > 0.7


@pytest.mark.parametrize("weighted", [False, True])
def test_what_is_saved_goes_on_learning_as_it_would_have(weighted: bool, tmp_path: Path) -> None:
    X, y = _trips()
    weights = {"sample_weight": np.arange(N) % 3} if weighted else {}
    model = BayesianTabularRegressor(model_kind="perceptron", kinds={"note": "category"}).fit(X, y, **weights)
    onepass.save(model, tmp_path / "m")
    again = onepass.load(tmp_path / "m")
    assert again.get_params() == model.get_params()
    more, later = _trips(100, seed=1)
    for one in (model, again):
        one.partial_fit(more, later)
    assert (again.predict(X) == model.predict(X)).all()
    assert model.model_.n_rows == (200 if weighted else N) + 100
    assert clone(again).get_params() == model.get_params()


def test_weights_count_as_copies() -> None:
    X, y = _trips()
    options: dict[str, Any] = {"model_kind": "perceptron", "shuffle": "off"}
    first = BayesianTabularRegressor(**options).partial_fit(X, y)
    copies = BayesianTabularRegressor(**options).partial_fit(X, y)
    X["km"], weights = X["km"].fillna(5.0), np.arange(N) % 3
    first.partial_fit(X, y, sample_weight=weights)
    copies.partial_fit(X.loc[np.repeat(np.arange(N), weights)], np.repeat(y, weights))
    # The noise is learned, and in another way from copies.
    assert first.predict(X) == pytest.approx(copies.predict(X), rel=5e-3)


def test_bad_input_is_refused_whole() -> None:
    X, y = _trips()
    model = BayesianTabularRegressor(model_kind="perceptron").fit(X, y)
    before = model.predict(X)
    bad = X.assign(km=np.where(np.arange(N) == 200, np.inf, X["km"]))
    with pytest.raises(ValueError, match="row 200, counted from 0, can't be learned: km is infinite"):
        model.partial_fit(bad, y)
    with pytest.raises(ValueError, match="row 200 of X, counted from 0, can't be predicted: km is infinite"):
        model.predict(bad)
    assert (model.predict(X) == before).all()
    with pytest.raises(ValueError, match="unknown class 'x'"):
        BayesianTabularClassifier().partial_fit(X, ["a", "b"] * 150).partial_fit(X, ["a", "x"] * 150)
    with pytest.raises(ValueError, match="at least two"):
        BayesianTabularClassifier().fit(X, ["a"] * N)


def test_columns_may_have_any_name() -> None:
    X, y = _trips()
    names = {"km": "y", "car": "sample_weight", "note": "y_"}
    options: dict[str, Any] = {"model_kind": "perceptron", "kinds": {"day": "date"}}
    plain, named = BayesianTabularRegressor(**options), BayesianTabularRegressor(**options)
    weights = np.ones(N)
    plain.fit(X, y, weights).partial_fit(X, y)
    named.fit(X.rename(columns=names), y, weights).partial_fit(X.rename(columns=names), y)
    assert (named.predict(X.rename(columns=names)) == plain.predict(X)).all()
    assert named.model_.n_rows == 2 * N


def test_targets_may_be_arrow_arrays() -> None:
    X, y = _trips()
    far = y > y.median()
    options: dict[str, Any] = {"model_kind": "perceptron"}
    expected = BayesianTabularRegressor(**options).fit(X, y).predict(X)
    for targets in (pa.array(y), pa.chunked_array([y[:100], y[100:]])):
        assert (BayesianTabularRegressor(**options).fit(X, targets).predict(X) == expected).all()
    texts = pa.array(np.where(far, "far", "near"))
    for targets in (texts, texts.dictionary_encode(), pa.chunked_array([texts]), pa.array(far)):
        model = BayesianTabularClassifier(**options).fit(X, targets)
        assert list(model.classes_) in (["far", "near"], [False, True])
        assert np.mean(model.predict(X) == np.asarray(targets.to_pylist())) > 0.8
    for estimator in (BayesianTabularRegressor(**options), BayesianTabularClassifier(**options)):
        for missing in (pa.array([None, *y[1:]]), pa.array([None, *far[1:]]), pa.array([None, *texts.to_pylist()[1:]])):
            with pytest.raises(ValueError, match=r"NaN|could not convert|missing"):
                estimator.fit(X, missing)


def test_one_column_may_be_ignored_by_its_name() -> None:
    X, y = _trips()
    one = BayesianTabularRegressor(model_kind="perceptron", ignore="car").fit(X, y)
    assert (
        one.predict(X) == BayesianTabularRegressor(model_kind="perceptron", ignore=["car"]).fit(X, y).predict(X)
    ).all()
    for wrong in ({"ignore": "cat"}, {"kinds": {"cat": "category"}}):
        with pytest.raises(ValueError, match=r"no column 'cat' \(did you mean 'car'\?\); it has km, car, day, note$"):
            BayesianTabularRegressor(**wrong).fit(X, y)


def test_classes_can_be_announced() -> None:
    X, _ = _trips()
    model = BayesianTabularClassifier(model_kind="perceptron").partial_fit(X, ["a", "b"] * 150, classes=["a", "b", "c"])
    assert model.predict_proba(X).shape == (N, 3)
    model.partial_fit(X, ["c"] * N)
    assert set(model.predict(X)) == {"c"}


def test_advice_is_given() -> None:
    X, y = _trips()
    model = BayesianTabularRegressor().fit(X.assign(paid=2 * y), y)
    assert any("'paid' alone explains" in words for words in model.advice_)
