"""Arguments that estimators share have the same words in each."""

import re

import pytest
from sklearn.base import BaseEstimator

import onepass
from onepass.estimators.documentation import documented


@pytest.mark.parametrize(
    "estimator",
    [
        onepass.BayesianPerceptronClassifier,
        onepass.BayesianPerceptronRegressor,
        onepass.BayesianMLPClassifier,
        onepass.BayesianMLPRegressor,
    ],
)
def test_every_argument_is_documented_and_no_placeholder_is_left(estimator: type[BaseEstimator]) -> None:
    text = estimator.__doc__ or ""
    assert not re.search(r"(?m)^ *@", text)
    assert set(estimator().get_params()) <= {found[1] for found in re.finditer(r"(?m)^(\w+) : ", text)}


def test_words_that_are_not_there_are_noticed() -> None:
    class Wrong:
        """Parameters.

        @no_such_words
        """

    with pytest.raises(KeyError, match="no_such_words"):
        documented(Wrong)
