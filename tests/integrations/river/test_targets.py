"""Targets that are standardised as they come."""

import math
from typing import Any

import numpy as np
import pandas as pd
import pytest
from river import preprocessing

from onepass.river import PerceptronRegressor
from tests.helpers.river_rows import NAMES, SCORE, rows


def test_standardised_targets_are_those_of_rivers_scaler_with_their_distribution() -> None:
    ours: Any = PerceptronRegressor(standardize=True)
    theirs: Any = preprocessing.TargetStandardScaler(PerceptronRegressor())
    targets = (5000.0 + 300.0 * SCORE).tolist()
    inside = []
    for x, y in zip(rows(NAMES[:3]), targets, strict=True):
        seen = ours.predict_one(x, with_dist=True)
        inside.append(abs(y - seen.mu) < 1.96 * seen.sigma)
        for model in (ours, theirs):
            model.learn_one(x, y)
        assert ours.predict_one(x) == pytest.approx(theirs.predict_one(x), rel=1e-9)
    assert np.mean(inside[20:]) > 0.85
    assert seen.sigma == pytest.approx(300.0, rel=0.25)  # the noise has a standard deviation of 1
    assert list(ours.weights.values()) == pytest.approx([300.0] * 3, abs=100.0)
    pipeline = preprocessing.StandardScaler() | ours
    assert pipeline.predict_one(rows()[0], with_dist=True).sigma > 100.0
    assert ours.predict_many(pd.DataFrame(rows(NAMES[:3]))).tolist() == pytest.approx(
        [ours.predict_one(x) for x in rows(NAMES[:3])]
    )


@pytest.mark.parametrize("activation", ["linear", "relu"])
@pytest.mark.parametrize("size", [1e-9, 1.0, 1e9])
def test_standardised_targets_may_have_any_unit(activation: str, size: float) -> None:
    small, large = (PerceptronRegressor(activation=activation, standardize=True, outliers=0.05) for _ in range(2))
    for x, y in zip(rows(), np.maximum(2.0 + SCORE, 0.0).tolist(), strict=True):
        small.learn_one(x, y)
        large.learn_one(x, size * y)
    one, other = (model.predict_one(rows()[0], with_dist=True) for model in (small, large))
    assert (size * one.mu, size * one.sigma) == pytest.approx((other.mu, other.sigma), rel=1e-4)
    assert large.outlier_probability_one(rows()[0], 1e3 * size) > 0.9 > large.outlier_probability_one(rows()[0], size)


def test_one_target_or_some_that_are_the_same_have_a_scale() -> None:
    for value in (0.0, 700.0):
        model = PerceptronRegressor(standardize=True)
        for _ in range(3):
            model.learn_one({"x": 1.0}, value)
            seen = model.predict_one({"x": 1.0}, with_dist=True)
            assert seen.mu == pytest.approx(value)
            assert 0.0 < seen.sigma < math.inf


@pytest.mark.parametrize("arguments", [{"activation": "exp"}, {"activation": "tanh"}])
def test_targets_that_have_their_own_units_are_not_standardised(arguments: Any) -> None:
    with pytest.raises(ValueError, match=r"standardize=True needs observation='gaussian' and activation='linear'"):
        PerceptronRegressor(standardize=True, **arguments)
    with pytest.raises(TypeError, match="standardize must be True or False, got 'yes'"):
        PerceptronRegressor(standardize="yes")  # type: ignore[arg-type]
