"""The mean, the last value and the same time last period, against loops; what is kept of rows; importance."""

from typing import Any

import numpy as np
import pytest

from onepass.evaluation.references import LAST, MEAN, PERIODS, SAME_TIME, References


def by_loop(y: Any) -> tuple[list[float], list[float], list[float]]:
    means, lasts, periods = [], [], []
    for t in range(len(y)):
        means.append(y[:t].mean() if t else 0.0)
        lasts.append(y[t - 1] if t else 0.0)
        errors = {lag: np.mean((y[lag:t] - y[: t - lag]) ** 2) for lag in PERIODS if t >= 2 * lag}
        lag = min(errors, key=lambda one: errors[one], default=1)
        periods.append(y[t - lag] if t else 0.0)
    return means, lasts, periods


@pytest.mark.parametrize("block", [1, 13, 120])
def test_numbers_are_predicted_from_the_rows_before(block: int) -> None:
    rng = np.random.default_rng(0)
    y = np.sin(np.arange(120) * 2 * np.pi / 12) * 5 + rng.normal(size=120)
    references = References(np.zeros(1))
    parts = [references.predict_then_learn(y[k : k + block, None]) for k in range(0, 120, block)]
    for name, expected in zip((MEAN, LAST, SAME_TIME), by_loop(y), strict=True):
        np.testing.assert_allclose(np.concatenate([part[name][:, 0] for part in parts]), expected, atol=1e-12)
    assert references.period in (12, 24, 48)


def test_ahead_the_last_period_comes_again() -> None:
    week = np.arange(70.0)[:, None] % 7
    references = References(np.zeros(1))
    references.learn(week)
    found = references.predict_ahead(np.arange(20))
    np.testing.assert_array_equal(found[SAME_TIME][:, 0], np.arange(20) % 7)
    np.testing.assert_array_equal(found[LAST][:, 0], 6.0)
    np.testing.assert_allclose(found[MEAN][:, 0], 3.0)


def test_probabilities_of_classes_sum_to_one_and_know_how_often_classes_come_again() -> None:
    rng = np.random.default_rng(1)
    labels = np.repeat(rng.integers(0, 3, 100), 4)  # three of four rows are like the last one
    references = References(np.zeros(3), are_classes=True)
    found = references.predict_then_learn(np.eye(3)[labels])
    for name in (MEAN, LAST, SAME_TIME):
        np.testing.assert_allclose(found[name].sum(axis=1), 1.0)
    same = (labels[1:] == labels[:-1]).mean()
    assert found[LAST][-1, labels[-2]] == pytest.approx(same + (1 - same) / 3, abs=0.03)
