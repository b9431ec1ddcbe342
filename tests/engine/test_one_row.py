"""Several models learn a row that comes alone: all of them or none."""

from typing import Any

import numpy as np

from onepass import BayesianPerceptron
from onepass.engine.one_row import RowMixture
from onepass.engine.switching import Switching


def test_a_row_that_one_hypothesis_can_not_learn_is_learned_by_none() -> None:
    models = [BayesianPerceptron(2, "linear", noise=1.0, cov=cov, drift=drift) for cov, drift in ((1, 0.1), (1e306, 0))]
    for model in models:
        model.learn([[0.1, 0.2]], [0.3])
    switching = Switching(np.array([0.5, 0.5]), np.full(2, 0.005))
    learners: Any = [model._one_row for model in models]
    mixture = RowMixture(learners, switching)
    before = [(model.mean, model.cov, model.log_evidence, model.n_seen) for model in models]
    assert not mixture(np.array([100.0, 100.0]), 1.0)
    for model, (mean, cov, evidence, seen) in zip(models, before, strict=True):
        np.testing.assert_array_equal(model.mean, mean)
        np.testing.assert_array_equal(model.cov, cov)
        assert (model.log_evidence, model.n_seen) == (evidence, seen)
    np.testing.assert_array_equal(switching.weights, [0.5, 0.5])
    assert learners[0](np.array([100.0, 100.0]), 1.0)  # which could have learned it
    assert mixture(np.array([0.1, 0.1]), 1.0)
    assert switching.weights[0] > 0.5


def test_what_is_no_row_of_numbers_is_left_to_the_long_way() -> None:
    model = BayesianPerceptron(2, "linear", noise=1.0, drift=0.1).learn([[0.1, 0.2]], [0.3])
    switching = Switching(np.ones(1), np.full(1, 0.005))
    learners: Any = [model._one_row]
    mixture = RowMixture(learners, switching)
    for x, y in ((np.ones(3), 1.0), (np.ones(2), "one"), (np.ones((1, 2)), 1.0), (np.ones(2, dtype=int), 1.0)):
        assert not mixture(x, y)
        assert not learners[0](x, y)
    assert model.n_seen == 1
    assert mixture(np.ones(2), 1.0)
    assert model.n_seen == 2
