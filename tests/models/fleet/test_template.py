"""Perceptrons from records and back."""

from typing import Any

import numpy as np
import pytest

from onepass import BayesianPerceptron, Quadrature
from onepass.models.fleet.template import Template, pack

X = np.random.default_rng(0).normal(size=(20, 2))
OPTIONS: list[dict[str, Any]] = [
    {},
    {"activation": "linear", "noise": "learn", "cov": [[2.0, 0.5, 0.0], [0.5, 1.0, 0.0], [0.0, 0.0, 3.0]]},
    {"activation": "linear", "noise": 0.1, "outliers": 0.05},
]


@pytest.mark.parametrize("options", OPTIONS, ids=["labels", "learned noise", "outliers"])
def test_a_perceptron_survives_its_record(options: dict[str, Any]) -> None:
    prior = BayesianPerceptron(2, **options)
    template, record = Template.of(prior), pack(prior)
    model = template.unpack(record, record)
    y = (X[:, 0] > 0.0).astype(float)
    np.testing.assert_array_equal(model.learn(X, y).mean, prior.learn(X, y).mean)
    np.testing.assert_allclose(model.cov, prior.cov, rtol=1e-12)
    assert model.log_evidence == prior.log_evidence


def test_what_a_model_has_learned_is_the_start_of_another_that_has_seen_no_row() -> None:
    learned = BayesianPerceptron(2, "linear", noise="learn").learn(X, X[:, 0])
    start = Template.of(learned).unpack(pack(learned), pack(learned))
    np.testing.assert_array_equal(start.mean, learned.mean)
    assert (start.n_seen, start.log_evidence) == (0, 0.0)


def test_activations_without_a_name_are_refused() -> None:
    with pytest.raises(TypeError, match="a fleet takes named activations and PiecewiseLinear only"):
        Template.of(BayesianPerceptron(2, Quadrature(np.sin), noise=0.1))


@pytest.mark.parametrize(
    ("prior", "words"),
    [
        (None, "must be a BayesianPerceptron, got NoneType"),
        (BayesianPerceptron(3, "linear", noise=0.1), "n_features=3 where the fleet has 2"),
        (BayesianPerceptron(2, "linear", noise="learn"), "noise='learn' where the fleet has noise=0.1"),
        (BayesianPerceptron(2, "linear", noise=0.1, covariance="diagonal"), "with covariance='full'"),
    ],
    ids=["none", "features", "noise", "covariance"],
)
def test_a_prior_that_cannot_replace_the_fleets_is_refused(prior: Any, words: str) -> None:
    own = BayesianPerceptron(2, "linear", noise=0.1)
    template = Template.of(own)
    template.check_prior(BayesianPerceptron(2, "linear", noise=0.2), pack(own))
    with pytest.raises((TypeError, ValueError), match=f"^prior .*{words}"):
        template.check_prior(prior, pack(own))
