"""What can't be learned well is refused at once, before anything is allocated, and says what to do instead."""

import tracemalloc
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_array

from onepass import (
    BayesianMLPClassifier,
    BayesianMLPRegressor,
    BayesianPerceptronClassifier,
    BayesianPerceptronRegressor,
)

rng = np.random.default_rng(0)
X = rng.normal(size=(2500, 3))
CLASSIFIERS = [BayesianPerceptronClassifier(), BayesianMLPClassifier((5,))]


def refused(model: Any, X: Any, y: Any, message: str) -> None:
    tracemalloc.start()
    try:
        with pytest.raises(ValueError, match=message):
            model.fit(X, y)
        assert tracemalloc.get_traced_memory()[1] < 20e6
    finally:
        tracemalloc.stop()
    assert not hasattr(model, "_ensembles")


@pytest.mark.parametrize("model", CLASSIFIERS)
def test_numbers_are_no_classes(model: Any) -> None:
    refused(model, X, X[:, 0], r"continuous.*got numbers such as 0\.12.*BayesianPerceptronRegressor.*such as y > ")
    refused(model, X, np.arange(2500.0), "2500 different numbers in 2500 rows.*MLPRegressor.*pass them as texts")
    refused(model, X, np.arange(2500) % 1300, "1300 different numbers in 2500 rows")


@pytest.mark.parametrize("model", CLASSIFIERS)
def test_thousands_of_classes(model: Any) -> None:
    names = np.char.add("user", (np.arange(2500) % 1200).astype(str))
    refused(model, X, names, "1200 classes, .* at most 1000 are allowed; put rare classes together")
    with pytest.raises(ValueError, match="5000 classes"):
        model.partial_fit(X, np.zeros(2500, dtype=int), classes=np.arange(5000))


@pytest.mark.parametrize(
    ("model", "gigabytes"),
    [
        (BayesianPerceptronRegressor(), "3.2"),
        (BayesianPerceptronClassifier(covariance="full"), "3.2"),
        (BayesianPerceptronClassifier(), "3.2"),
        (BayesianMLPRegressor((5,), covariance="full"), "80"),
    ],
)
def test_correlations_of_very_many_features(model: Any, gigabytes: str) -> None:
    rows, columns = rng.integers(0, 50, 500), rng.integers(0, 20_000, 500)
    sparse = csr_array((np.ones(500), (rows, columns)), shape=(50, 20_000))
    y = np.arange(50) % 2
    refused(model, sparse, y, rf"'full' of .* weights would take {gigabytes}.* GB for 20000 features.*'diagonal'")
    model.set_params(covariance="diagonal").fit(sparse, y)


def test_what_can_be_learned_is_not_refused() -> None:
    BayesianPerceptronClassifier(covariance="diagonal").fit(X[:300], np.arange(300) % 120)
    BayesianPerceptronClassifier().fit(X[:60], np.arange(60) // 2)
