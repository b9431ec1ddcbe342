"""Inputs that are missing, and categories of data frames."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.utils import get_tags

import onepass
from onepass import (
    BayesianMLPClassifier,
    BayesianMLPRegressor,
    BayesianPerceptron,
    BayesianPerceptronClassifier,
    BayesianPerceptronRegressor,
)
from onepass.models.missing import ColumnMoments

rng = np.random.default_rng(0)
X = rng.normal(size=(300, 4)) * [1.0, 20.0, 0.5, 1.0] + [0.0, 300.0, 0.0, -1.0]
SCORE = X @ [1.0, 0.05, 1.0, 0.0] - 15.0
NUMBERS = SCORE + 0.3 * rng.normal(size=300)
LABELS = np.where(SCORE + rng.logistic(size=300) > 0, "yes", "no")
THREE = np.digitize(SCORE, [-1.0, 1.0])
HOLES = np.where(rng.uniform(size=X.shape) < 0.2, np.nan, X)
HOLES[0, 0] = np.nan  # of which nothing is known when it comes
MODELS: list[tuple[Any, Any]] = [
    (BayesianPerceptronRegressor(), NUMBERS),
    (BayesianPerceptronRegressor(), np.column_stack([NUMBERS, -NUMBERS])),
    (BayesianPerceptronRegressor(noise=0.3, prior_scale="auto"), NUMBERS),
    (BayesianPerceptronRegressor(covariance="diagonal", drift="auto"), NUMBERS),
    (BayesianPerceptronRegressor(outliers=0.05, warm_up=20), NUMBERS),
    (BayesianPerceptronClassifier(standardize=True), LABELS),
    (BayesianPerceptronClassifier(standardize=True), THREE),
    (BayesianMLPClassifier((5,), passes=1, shuffle=False), LABELS),
    (BayesianMLPRegressor((5,), members=2, passes=1, shuffle=False), NUMBERS),
]


def outputs(model: Any, rows: Any) -> Any:
    return model.predict_proba(rows) if hasattr(model, "predict_proba") else model.predict(rows)


@pytest.mark.parametrize(("model", "y"), MODELS)
def test_rows_with_holes_are_learned_and_predicted_in_any_split(model: Any, y: Any, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="NaN"):
        clone(model).fit(HOLES, y)
    model = clone(model).set_params(missing="mean")
    assert get_tags(model).input_tags.allow_nan
    whole = clone(model).fit(HOLES, y)
    assert whole.score(HOLES, y) > 0.5
    options = {"classes": np.unique(y)} if hasattr(model, "predict_proba") else {}
    split = clone(model).partial_fit(HOLES[:30], y[:30], **options)
    onepass.save(split, tmp_path / "model")
    split = onepass.load(tmp_path / "model").partial_fit(HOLES[30:150], y[30:150])
    onepass.save(split, tmp_path / "model")
    split = onepass.load(tmp_path / "model")
    predicted = split.predict_then_learn(HOLES[150:], y[150:])
    assert np.isfinite(predicted.log_density).all()
    rtol = 1e-6 if model.prior_scale != "auto" else 1e-3  # priors are weighed once per call
    np.testing.assert_allclose(outputs(split, HOLES), outputs(whole, HOLES), rtol=rtol, atol=1e-9)
    before = outputs(whole, HOLES)
    whole.outlier_probability(HOLES, y)
    np.testing.assert_array_equal(outputs(whole, HOLES), before)  # looking changes no means
    full = clone(model).fit(X, y)  # where nothing is missing nothing changes
    plain = clone(model).set_params(missing="error").fit(X, y)
    np.testing.assert_array_equal(outputs(full, X), outputs(plain, X))


def test_a_hole_is_the_running_mean_with_the_variance_of_the_column() -> None:
    rows = (HOLES - [0.0, 300.0, 0.0, 0.0]) / [1.0, 20.0, 1.0, 1.0]
    model = BayesianPerceptronRegressor(missing="mean", standardize=False, noise=0.3).fit(rows, NUMBERS)
    expected = BayesianPerceptron(4, "linear", noise=0.3, cov=[16.0, 1.0, 1.0, 1.0, 1.0])
    for i, row in enumerate(rows):
        values = [column[:i][~np.isnan(column[:i])] for column in rows.T]
        means = np.array([own.mean() if len(own) else 0.0 for own in values])
        variances = np.array([(1.0 + len(own) * own.var() if len(own) else 1.0) / (1.0 + len(own)) for own in values])
        holes = np.isnan(row)
        expected.learn(np.where(holes, means, row), NUMBERS[i], X_var=np.where(holes, variances, 0.0))
    np.testing.assert_allclose(model.coef_, expected.mean[1:], rtol=1e-6)
    known = np.nan_to_num(rows[:1])
    _, plain = model.predict(known, return_std=True)
    _, unsure = model.predict(np.where([True, False, False, False], np.nan, known), return_std=True)
    assert unsure[0] ** 2 - plain[0] ** 2 > 0.5  # the column's variance times the weight's square


def test_moments_of_columns_are_those_of_what_was_known() -> None:
    seen = ColumnMoments.start(4)
    for part in np.array_split(HOLES, 7):
        seen = seen.filled_in_order(part)[2]
    np.testing.assert_allclose(seen.mean, np.nanmean(HOLES, axis=0))
    np.testing.assert_allclose(seen.square, np.nanvar(HOLES, axis=0) * seen.count)


def test_wrong_ways_are_told() -> None:
    with pytest.raises(ValueError, match="missing must be one of 'error', 'mean', 'standard', got 'median'"):
        BayesianPerceptronRegressor(missing="median").fit(X, NUMBERS)
    model = BayesianPerceptronRegressor(missing="mean", covariance="diagonal")
    with pytest.raises(ValueError, match="needs dense rows with covariance='diagonal'"):
        model.fit(csr_array(HOLES), NUMBERS)
    BayesianPerceptronRegressor(missing="mean").fit(csr_array(HOLES), NUMBERS)


COLOURS = rng.choice(["red", "green", "blue"], 300)
PRICES = 1e4 * (X[:, 0] + np.select([COLOURS == "red", COLOURS == "green"], [2.0, -1.0], 0.0)) + 1e5
FRAME = pd.DataFrame({"size": X[:, 0], "colour": pd.Categorical(COLOURS), "new": rng.uniform(size=300) < 0.5})


@pytest.mark.parametrize("model", [BayesianPerceptronRegressor(), BayesianMLPRegressor((5,), warm_up=50)])
def test_categories_of_a_data_frame_are_columns_of_zeros_and_ones(model: Any, tmp_path: Path) -> None:
    model = clone(model).fit(FRAME, PRICES)
    hot = pd.get_dummies(FRAME, columns=["colour"])[["size", "colour_blue", "colour_green", "colour_red", "new"]]
    expected = clone(model).fit(hot.to_numpy(dtype=float), PRICES)
    np.testing.assert_allclose(model.predict(FRAME), expected.predict(hot.to_numpy(dtype=float)))
    assert model.score(FRAME, PRICES) > 0.9
    assert model.n_features_in_ == 3
    assert list(model.feature_names_in_) == ["size", "colour", "new"]
    assert list(model.encoded_feature_names_) == ["size", "colour=blue", "colour=green", "colour=red", "new"]
    onepass.save(model, tmp_path / "model")
    loaded = onepass.load(tmp_path / "model")
    texts = FRAME.assign(colour=pd.Series(COLOURS).astype(object))  # the values count, not the dtype
    other = FRAME.assign(colour=pd.Categorical(COLOURS, categories=["violet", "red", "green", "blue"]))
    for table in (FRAME, texts, other):
        np.testing.assert_array_equal(loaded.predict(table), model.predict(FRAME))
    unseen = FRAME[:1].assign(colour="violet")
    zeros = hot[:1].assign(colour_blue=0, colour_green=0, colour_red=0)
    np.testing.assert_allclose(model.predict(unseen), expected.predict(zeros.to_numpy(dtype=float)))
    assert np.isfinite(loaded.partial_fit(other[:50], PRICES[:50]).predict(unseen)).all()


def test_missing_categories_are_unknown() -> None:
    holes = FRAME.assign(colour=FRAME["colour"].where(rng.uniform(size=300) < 0.8))
    with pytest.raises(ValueError, match="NaN"):
        BayesianPerceptronRegressor().fit(holes, PRICES)
    model = BayesianPerceptronRegressor(missing="mean").fit(holes, PRICES)
    known, unknown = FRAME[:1], FRAME[:1].assign(colour=pd.Categorical([None], categories=["red", "green", "blue"]))
    assert model.predict(unknown, return_std=True)[1][0] > 1.5 * model.predict(known, return_std=True)[1][0]


def test_tables_without_the_categories_are_told(tmp_path: Path) -> None:
    model = BayesianPerceptronClassifier().fit(FRAME, PRICES > 1e5)
    with pytest.raises(ValueError, match="feature names"):
        model.predict(FRAME[["colour", "size", "new"]])
    with (
        pytest.warns(UserWarning, match="valid feature names"),
        pytest.raises(ValueError, match="X must be a data frame"),
    ):
        model.predict(FRAME.assign(colour=0.0).to_numpy(dtype=float))
    odd = FRAME.assign(colour=pd.Categorical(pd.to_datetime(["2020-01-01", "2021-01-01", "2022-01-01"] * 100)))
    with pytest.raises(TypeError, match="categories must be numbers or strings"):
        onepass.save(BayesianPerceptronRegressor().fit(odd, PRICES), tmp_path / "never")


def test_standard_is_the_mean_of_columns_known_to_have_mean_0_and_variance_1() -> None:
    rng = np.random.default_rng(5)
    X = rng.normal(size=(800, 2))
    y = X @ [2.0, 1.0] + 0.3 * rng.normal(size=800)
    X[rng.random(X.shape) < 0.2] = np.nan
    means, known = (
        BayesianPerceptronRegressor(missing=missing, standardize=False).fit(X, y) for missing in ("mean", "standard")
    )
    rows = np.array([[1.0, 1.0], [np.nan, 1.0], [np.nan, np.nan]])
    for found, expected in zip(known.predict(rows, return_std=True), means.predict(rows, return_std=True), strict=True):
        np.testing.assert_allclose(found, expected, atol=0.15)
    in_parts = BayesianPerceptronRegressor(missing="standard", standardize=False)
    for row, target in zip(X, y, strict=True):
        in_parts.partial_fit(row[None], [target])
    np.testing.assert_allclose(in_parts.predict(rows), known.predict(rows), rtol=1e-9)
