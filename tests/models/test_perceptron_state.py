"""What runs along with a perceptron's belief."""

from typing import Any

import numpy as np
import pytest

from onepass import BayesianPerceptron
from onepass.likelihoods import Gaussian
from onepass.models.perceptron_state import PerceptronState, expected_square, start_learning

X = np.random.default_rng(0).normal(size=(40, 2))
Y = X @ [1.0, -1.0]


def test_a_copy_is_independent() -> None:
    model = BayesianPerceptron(2, "linear", noise="learn").learn(X[:20], Y[:20])
    before = model._state.copy()
    mean, seen = before.belief.mean.copy(), before.progress.n_seen
    model.learn(X[20:], Y[20:])
    np.testing.assert_array_equal(before.belief.mean, mean)
    assert (before.progress.n_seen, seen) == (20, 20)


def test_the_state_survives_its_arrays() -> None:
    model = BayesianPerceptron(2, "linear", noise="learn", cov=[[2.0, 0.5, 0.0], [0.5, 1.0, 0.0], [0.0, 0.0, 3.0]])
    state = model.learn(X, Y)._state
    _, arrays = state.export()
    again = PerceptronState.restore(state.belief, arrays, 0.0)
    np.testing.assert_array_equal(again.progress.to_array(), state.progress.to_array())
    assert again.prior_fingerprint() == state.prior_fingerprint()


def test_priors_are_told_apart() -> None:
    priors: list[dict[str, Any]] = [{}, {"cov": [1.0, 2.0, 1.0]}, {"mean": [0.0, 0.1, 0.0]}]
    marks = [BayesianPerceptron(2, **options)._state.prior_fingerprint() for options in priors]
    assert len(set(marks)) == 3
    assert BayesianPerceptron(2).learn(X, Y > 0.0)._state.prior_fingerprint() == marks[0]


@pytest.mark.parametrize(
    ("noise", "window", "words"),
    [
        (0.1, 20, "noise_window needs noise='learn', got noise=0.1"),
        ("guess", None, "noise must be a number that is not negative, or 'learn', got 'guess'"),
        (-1.0, None, "noise must be .* not negative"),
    ],
)
def test_wrong_noise_is_refused(noise: Any, window: int | None, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        start_learning(Gaussian(), noise, window)


def test_the_noise_is_fixed_or_starts_somewhere() -> None:
    assert start_learning(Gaussian(), 0.3, None).noise == 0.3
    learned = start_learning(Gaussian(), "learn", 30)
    assert learned.noise_window == 30.0
    assert 0.0 < learned.noise_weight <= 30.0


def test_a_prior_expects_the_sum_of_its_variances() -> None:
    prior = BayesianPerceptron(2, cov=[1.0, 2.0, 3.0])._state.prior
    assert expected_square(prior) == pytest.approx(6.0)
