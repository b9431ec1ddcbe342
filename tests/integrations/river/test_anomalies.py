"""The scorer with River's interface gives the scores of the library's own."""

import numpy as np
import pytest
import river.base

from onepass import forecasting
from onepass.river import AnomalyScorer


def test_scores_are_those_of_the_scorer_behind() -> None:
    rng = np.random.default_rng(0)
    y, x = 50.0 + rng.normal(size=90).cumsum(), rng.normal(size=90)
    y[[60, 70]] = 200.0, np.nan
    model, own = AnomalyScorer(4, 3, 1e-2, "above", 3), forecasting.AnomalyScorer(4, 3, false_alarms=1e-2, side="above")
    expected = own.score_then_learn(y, x[:, None]).score
    found = []
    for value, driver in zip(y, x, strict=True):
        found.append(model.score_one({"driver": driver}, value))
        model.learn_one({"driver": driver}, value)
    np.testing.assert_array_equal(found, np.nan_to_num(expected))
    assert isinstance(model, river.base.SupervisedAnomalyDetector)


def test_alarms_come_with_the_score() -> None:
    y = np.random.default_rng(0).normal(size=200)
    y[150] = 30.0
    model = AnomalyScorer()
    found = [model.score_then_learn_one(None, value) for value in y]
    assert [i for i, one in enumerate(found) if one.alarm[0]] == [150]
    assert found[150].kind[0] == "spike"
    assert found[150].high[0] < 30.0


def test_scoring_learns_nothing_not_even_names() -> None:
    model = AnomalyScorer()
    assert model.score_one({"a": 1.0}, 1.0) == 0.0
    model.learn_one({"b": 1.0}, 1.0)
    with pytest.raises(ValueError, match="'a'"):
        model.score_one({"a": 1.0}, 1.0)


def test_a_clone_has_the_same_arguments() -> None:
    clone = AnomalyScorer((24, 168), false_alarms=1e-3, side="below", quiet=5).clone()
    assert (clone.season_length, clone.false_alarms, clone.side, clone.quiet) == ((24, 168), 1e-3, "below", 5)


def test_an_input_explains_a_jump() -> None:
    rng = np.random.default_rng(3)
    promotion = rng.random(730) < 0.2
    promotion[[600, 700]] = True, False
    sold = 100.0 + 60.0 * promotion + rng.normal(size=730)
    sold[700] += 60.0
    model = AnomalyScorer(7)
    found = [model.score_then_learn_one({"promo": on}, y) for on, y in zip(promotion.tolist(), sold, strict=True)]
    assert [i for i, one in enumerate(found) if one.alarm[0]] == [700]
