"""What users pass to models, and what models say of it."""

from typing import Any

import pytest

from onepass import BayesianCommittee, BayesianNetwork, BayesianPerceptron, Mixture, PerceptronFleet
from onepass.likelihoods import Gaussian

over_drift: Any = Mixture.over_drift  # for what a type checker refuses


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Mixture.over_drift(BayesianPerceptron, 2, drift=0.1), r"over_drift.*got drift=0\.1; leave it out"),
        (lambda: Mixture.over_drift(BayesianNetwork, 2, forgetting=0.9), r"over_drift.*got forgetting=0\.9; leave it"),
        (lambda: Mixture.over_drift(PerceptronFleet, 2), "BayesianPerceptron or BayesianNetwork.*got PerceptronFleet"),
        (lambda: Mixture.over_drift(BayesianCommittee, 2), "BayesianCommittee takes drift='auto' itself"),
        (lambda: over_drift(BayesianPerceptron(2)), r"then its arguments, got BayesianPerceptron\(2, 'sig"),
        (lambda: over_drift("perceptron", 2), "then its arguments, got 'perceptron'"),
    ],
)
def test_a_mixture_over_drift_names_what_was_passed(make: Any, words: str) -> None:
    with pytest.raises((TypeError, ValueError), match=words):
        make()


@pytest.mark.parametrize("observation", ["bernoulli", "categorical", "poisson", "negative_binomial"])
def test_only_numbers_are_calibrated(observation: str) -> None:
    with pytest.raises(ValueError, match=f"calibrate=True needs numbers as targets.*got observation='{observation}'"):
        BayesianNetwork(2, (3,), 2 if observation == "categorical" else 1, observation=observation, calibrate=True)
    assert not BayesianNetwork(2, (3,), observation="poisson").calibrate


@pytest.mark.parametrize("wrong", ["yes", 1, None])
def test_calibrate_is_a_flag_or_auto(wrong: Any) -> None:
    with pytest.raises(TypeError, match="calibrate must be True, False or 'auto'"):
        BayesianNetwork(2, (3,), calibrate=wrong)


@pytest.mark.parametrize(
    ("model", "text"),
    [
        (BayesianPerceptron(2, "linear"), "BayesianPerceptron(2, 'linear', observation=Gaussian(noise=0.01), "),
        (PerceptronFleet(2, "linear"), "PerceptronFleet(2, 'linear', keys=0)"),
        (BayesianNetwork(2, (3,), activation="linear"), "BayesianNetwork(2, (3,), 1, 'linear', "),
        (Mixture.over_drift(BayesianPerceptron, 2, "linear"), "Mixture(BayesianPerceptron(2, 'linear', "),
    ],
)
def test_a_representation_names_a_linear_activation(model: Any, text: str) -> None:
    assert repr(model).startswith(text)


def test_a_fleet_refuses_a_likelihood_without_a_name_and_names_the_ways_out() -> None:
    class Reading(Gaussian):
        pass

    with pytest.raises(TypeError, match=r"observation=.*Reading.*onepass\.likelihoods\.register, or use one Bayes"):
        PerceptronFleet(2, "linear", observation=Reading(0.1))
