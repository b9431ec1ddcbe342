"""One step of learning a target: the noise that is learned beside the weights."""

import math

import numpy as np
import pytest

from onepass.activations import as_activation
from onepass.engine.step import PerceptronProgress, learn_scalar
from onepass.likelihoods import Gaussian


def residuals(state: PerceptronProgress, values: list[float], var: float = 1e-12) -> None:
    """Learn targets so far from what a known linear output predicts."""
    linear = Gaussian(1.0).compiled(as_activation("linear"), "adf")
    for value in values:
        learn_scalar(linear, state, 0.0, var, 0.0, value)


def test_learned_noise_follows_its_samples() -> None:
    state = PerceptronProgress(1.0, 1.0)
    residuals(state, [math.sqrt(3.0)] * 400)
    assert state.noise == pytest.approx(3.0, rel=0.02)
    windowed = PerceptronProgress(1.0, 1.0, noise_window=10.0)
    residuals(windowed, [1.0] * 500 + [math.sqrt(5.0)] * 60)
    assert windowed.noise == pytest.approx(5.0, rel=0.2)


def test_a_fixed_noise_stays() -> None:
    fixed = PerceptronProgress(0.5)
    residuals(fixed, [100.0])
    assert fixed.noise == 0.5


def test_a_row_that_the_weights_took_up_says_nothing_of_the_noise() -> None:
    state = PerceptronProgress(0.1, 20.0)
    state.n_seen = 1e3
    residuals(state, [3.0], var=1e6)
    assert state.noise == pytest.approx(0.1, rel=1e-5)
    assert state.noise_weight == pytest.approx(20.0, rel=1e-5)


def test_a_row_that_cannot_be_learned_changes_nothing() -> None:
    state = PerceptronProgress(0.1, 1.0)
    before = state.to_array()
    residuals(state, [math.nan])
    np.testing.assert_array_equal(state.to_array(), before)
