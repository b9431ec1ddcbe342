"""scikit-learn's own contract, on every estimator and in several settings."""

from typing import Any

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from onepass import (
    BayesianMLPClassifier,
    BayesianMLPRegressor,
    BayesianPerceptronClassifier,
    BayesianPerceptronRegressor,
)

ORDER = "it reorders the rows, and what a one-pass learner ends up with depends on their order"

AGAIN = "a weight of 1000 learns a row as often, by which a past that fades is forgotten"


def expected_failures(estimator: Any) -> dict[str, str]:
    failures = {f"check_sample_weight_equivalence_on_{kind}_data": ORDER for kind in ("dense", "sparse")}
    if estimator.forgetting < 1.0 or estimator.drift:
        failures["check_class_weight_classifiers"] = AGAIN
    return failures


@pytest.mark.filterwarnings("ignore:features differ in scale", "ignore:targets are of size")
# The rows of a check are sorted by their targets, of which the first are then all equal.
@pytest.mark.filterwarnings("ignore:the targets are all")
@parametrize_with_checks(  # type: ignore[untyped-decorator]
    [
        BayesianPerceptronClassifier(),
        BayesianPerceptronClassifier("probit", prior_scale="auto", standardize=True),
        BayesianPerceptronClassifier(covariance="diagonal", forgetting=0.99),
        BayesianPerceptronClassifier(drift="auto"),
        BayesianPerceptronClassifier(outliers=0.05, standardize=True),
        BayesianPerceptronRegressor(),
        BayesianPerceptronRegressor(outliers=0.05, standardize=True, warm_up=20),
        BayesianPerceptronRegressor(prior_scale="auto", standardize=True, warm_up=20),
        BayesianPerceptronRegressor(noise=0.1, covariance="diagonal", forgetting=0.999),
        BayesianPerceptronRegressor(missing="mean", standardize=False),
        BayesianPerceptronClassifier(missing="mean", standardize=True),
        BayesianMLPClassifier(hidden_layer_sizes=(5,)),
        BayesianMLPClassifier(hidden_layer_sizes=(4,), outliers=0.05),
        BayesianMLPRegressor(hidden_layer_sizes=(5,)),
        BayesianMLPRegressor(hidden_layer_sizes=(4,), drift="auto"),
        BayesianMLPRegressor(hidden_layer_sizes=(4,), activation="tanh", prior_scale="auto", covariance="diagonal"),
    ],
    expected_failed_checks=expected_failures,
)
def test_it_is_an_estimator(estimator: Any, check: Any) -> None:
    check(estimator)
