"""The calibration error of the benchmark, and what it measures."""

import numpy as np
import pytest
from benchmarks.probabilities import calibration_error, measure

from onepass import BayesianPerceptronClassifier


def test_the_calibration_error_is_the_gap_in_each_group_by_its_size() -> None:
    sure = np.repeat([0.55, 0.95], [20, 80])
    labels = np.zeros(100, dtype=int)
    labels[:9] = 1  # 11 of 20 are right
    labels[20:40] = 1  # 60 of 80
    assert calibration_error(np.column_stack([sure, 1.0 - sure]), labels) == pytest.approx(0.8 * 0.2)


def test_rows_of_the_warm_up_are_left_out() -> None:
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(150, 2)), rng.integers(0, 2, 150)
    model = BayesianPerceptronClassifier()
    assert np.isfinite(measure(model, X, y)).all()
    assert measure(BayesianPerceptronClassifier(), X, y).log_loss == pytest.approx(-model.log_evidence_ / 50)
