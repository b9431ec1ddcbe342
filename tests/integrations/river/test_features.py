"""Named features as the columns of a model: names, values and weights."""

import math
from datetime import datetime
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

import onepass
import onepass.activations
from onepass.river import PerceptronClassifier, PerceptronRegressor
from tests.helpers.river_rows import NAMES, SCORE, rows


def test_missing_features_count_as_zero_and_strange_ones_widen() -> None:
    model = PerceptronRegressor(noise=0.1, prior_scale=3.0)
    for x, y in zip(rows(), SCORE, strict=True):
        model.learn_one(x, y)
    some = dict.fromkeys(NAMES[:4], 1.0)
    row = np.zeros(25)
    row[:4] = 1.0
    assert model.predict_one(some) == pytest.approx(model.predict_one(dict(zip(NAMES, row.tolist(), strict=True))))
    near, far = (model.predict_one(x, with_dist=True) for x in (some, {**some, "new": 2.0}))
    assert far.mu == pytest.approx(near.mu)
    assert far.sigma**2 == pytest.approx(near.sigma**2 + 4.0 * 9.0)
    assert "new" not in model.weights


def test_features_named_by_numbers_and_tuples_are_saved(tmp_path: Path) -> None:
    model = PerceptronClassifier()
    model.learn_one({1: 0.5, ("a", 2): -1.0, "1": 2.0}, True)
    onepass.save(model, tmp_path / "model")
    assert onepass.load(tmp_path / "model").weights == model.weights
    model.learn_one({1.5: 1.0}, True)
    with pytest.raises(TypeError, match=r"strings, integers or tuples of these, got 1\.5"):
        onepass.save(model, tmp_path / "model")


def test_gaps_in_frames_are_named() -> None:
    frame = pd.DataFrame({"a": [1.0, 2.0], "b": [1.0, None]})
    model = PerceptronRegressor()
    with pytest.raises(ValueError, match=r"feature 'b' must be finite, got nan in row 1; .*fillna"):
        model.learn_many(frame, pd.Series([1.0, 2.0]))
    assert model.weights == {}


@pytest.mark.parametrize("name", ["known", "new"])
@pytest.mark.parametrize("value", [math.nan, math.inf, "x", None])
def test_what_is_no_number_is_refused_by_name_in_predictions_too(name: str, value: Any) -> None:
    model = PerceptronClassifier()
    model.learn_one({"known": 1.0}, True)
    for call in (model.predict_proba_one, lambda x: model.learn_one(x, True)):
        with pytest.raises(ValueError, match=f"feature {name!r} must be a finite number"):
            call({name: value})
    if isinstance(value, float):
        with pytest.raises(ValueError, match=f"feature {name!r} must be finite"):
            model.predict_proba_many(pd.DataFrame({name: [1.0, value]}))


def test_a_huge_value_of_a_feature_never_met_says_nothing() -> None:
    model = PerceptronClassifier()
    model.learn_one({"known": 1.0}, True)
    assert model.predict_proba_one({"new": 1e200})[True] == pytest.approx(0.5, abs=0.01)
    assert PerceptronRegressor().predict_one({"new": 1e200}, with_dist=True).sigma > 1e100


def test_rows_may_be_any_mapping() -> None:
    model, other = PerceptronClassifier(), PerceptronClassifier()
    for x in rows()[:20]:
        model.learn_one(x, True)
        other.learn_one(MappingProxyType(x), np.True_)
    assert other.weights == model.weights


@pytest.mark.parametrize("wrong", [-1.0, math.nan, math.inf, "two", None])
def test_a_wrong_weight_is_refused(wrong: Any) -> None:
    model = PerceptronRegressor()
    with pytest.raises(ValueError, match=r"w must be 0 for a row that is left out, or a finite number above, got "):
        model.learn_one({"x": 1.0}, 1.0, w=wrong)
    model.learn_one({"x": 1.0}, 1.0, w=0)
    assert (model.n_seen, model.weights) == (0, {})


@pytest.mark.parametrize("library", [pd, pl], ids=["pandas", "polars"])
@pytest.mark.parametrize("wrong", ["red", datetime(2024, 1, 31), None], ids=str)
def test_values_of_a_frame_that_are_no_numbers_are_named_with_their_row(library: Any, wrong: Any) -> None:
    frame = library.DataFrame({"size": [1.0, 2.0], "colour": [wrong, wrong]})
    shown = "None" if wrong is None and library is pl else "(None|nan)" if wrong is None else "('red'|.*2024)"
    for model, y in ((PerceptronRegressor(), [1.0, 2.0]), (PerceptronClassifier(), [True, False])):
        with pytest.raises(
            ValueError, match=rf"feature 'colour' must be a finite number, got {shown}.* in row 0; leave"
        ):
            model.learn_many(frame, library.Series(y))
        assert model.features == ()
        model.learn_many(frame[["size"]], library.Series(y))
        with pytest.raises(ValueError, match="feature 'colour' must be a finite number"):
            model.predict_many(frame)
