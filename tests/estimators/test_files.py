"""Arguments as JSON has them, and saved states that can't be; whole files are tested with all other models."""

from typing import Any

import numpy as np
import pytest

from onepass import BayesianPerceptronRegressor, Conv2D, max_linear
from onepass.estimators.base import learner_of
from onepass.estimators.files import (
    argument_from_json,
    argument_to_json,
    export_learner,
    feature_names,
    restore_learner,
)


@pytest.mark.parametrize(
    ("name", "value", "restored"),
    [
        ("passes", "auto", "auto"),
        ("prior_scale", np.array([1.0, 2.0]), (1.0, 2.0)),
        ("outliers", np.float64(0.1), 0.1),
        ("hidden_layer_sizes", (Conv2D(4, 3), 10), (Conv2D(4, 3), 10)),
        ("activation", max_linear(0.1, 1.0), max_linear(0.1, 1.0)),
        ("class_weight", {"yes": 2, "no": 1}, {"yes": 2.0, "no": 1.0}),
        ("intercept_scale", None, None),
    ],
)
def test_arguments_survive(name: str, value: Any, restored: Any) -> None:
    assert argument_from_json(argument_to_json(name, value)) == restored


def test_an_argument_that_json_lacks_is_named() -> None:
    with pytest.raises(TypeError, match=r"an estimator with random_state=RandomState.* can't be saved"):
        argument_to_json("random_state", np.random.RandomState(0))


def test_names_that_do_not_fit_are_refused() -> None:
    assert feature_names(["a", "b"], 2).tolist() == ["a", "b"]
    for wrong in ("ab", ["a"], ["a", 1]):
        with pytest.raises(ValueError, match="the saved feature names must be 2 strings"):
            feature_names(wrong, 2)


def test_a_state_without_one_of_its_outputs_is_refused() -> None:
    X = np.random.default_rng(0).normal(size=(30, 2))
    learner = learner_of(BayesianPerceptronRegressor().fit(X, X))
    parameters, arrays = export_learner(learner)
    restore_learner(learner, parameters, arrays)
    with pytest.raises(ValueError, match="the saved state is incomplete: it should have 2 outputs"):
        restore_learner(learner, {**parameters, "mixtures": parameters["mixtures"][:1]}, arrays)
