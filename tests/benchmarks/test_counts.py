import numpy as np
from benchmarks.counts import noise_far_away, predicted_over_actual

from onepass import BayesianPerceptronClassifier


def test_rare_events_are_not_predicted_too_often() -> None:
    ratios = [predicted_over_actual(BayesianPerceptronClassifier(), seed) for seed in range(5)]
    assert 0.75 < np.median(ratios) < 1.3
    old = predicted_over_actual(BayesianPerceptronClassifier(intercept_scale=None), 0)
    assert old > 1.5 * ratios[0]


def test_noise_far_from_the_data_stays_that_of_the_targets() -> None:
    assert noise_far_away(0) < 3.0
