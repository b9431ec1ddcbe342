"""What can't be learned well is refused at once, before anything is allocated, and says what to do instead."""

import tracemalloc
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array
from sklearn.base import clone

from onepass import (
    BayesianMLPClassifier,
    BayesianMLPRegressor,
    BayesianPerceptronClassifier,
    BayesianPerceptronRegressor,
)
from onepass.estimators.blueprints import ClassPerceptrons
from onepass.estimators.targets import ClassTargets

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
    assert not hasattr(model, "_learner")


@pytest.mark.parametrize("model", CLASSIFIERS)
def test_numbers_are_no_classes(model: Any) -> None:
    refused(model, X, X[:, 0], r"continuous.*got numbers such as 0\.12.*BayesianPerceptronRegressor.*such as y > ")
    refused(model, X, np.arange(2500.0), "2500 different numbers in 2500 rows.*MLPRegressor.*pass them as strings")
    refused(model, X, np.arange(2500) % 1300, "1300 different numbers in 2500 rows")


@pytest.mark.parametrize("model", CLASSIFIERS)
def test_thousands_of_classes(model: Any) -> None:
    names = np.char.add("user", (np.arange(2500) % 1200).astype(str))
    refused(model, X, names, "1200 classes, .* at most 1000 are allowed; merge rare classes")
    with pytest.raises(ValueError, match="5000 classes"):
        model.partial_fit(X, np.zeros(2500, dtype=int), classes=np.arange(5000))


@pytest.mark.parametrize(
    ("model", "gigabytes"),
    [
        (BayesianPerceptronRegressor(covariance="full"), "3.2"),
        (BayesianPerceptronClassifier(covariance="full"), "3.2"),
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


@pytest.mark.parametrize("model", [BayesianPerceptronRegressor(), BayesianMLPRegressor((5,))])
def test_missing_numbers_and_texts_have_a_remedy(model: Any) -> None:
    holes = X[:50].copy()
    holes[3, 1] = np.nan
    refused(model, holes, X[:50, 0], "Input X contains NaN: pass missing='mean'")
    table = pd.DataFrame(X[:50], columns=["a", "b", "c"])
    table["kind"] = pd.Categorical(np.where(X[:50, 0] > 0.0, "x", "y"))
    table.loc[2, "a"] = np.nan
    refused(model, table, X[:50, 0], "Input X contains NaN: pass missing='mean'")
    for categories in ([], ["kind"]):
        texts = table[["b", *categories]].assign(colour="red")
        refused(model, texts, X[:50, 0], r"column 'colour' of X has strings.*X\['colour'\]\.astype\('category'\)")
    fitted = clone(model).fit(X[:50], X[:50, 0])
    with pytest.raises(ValueError, match="pass missing='mean'"):
        fitted.predict(holes)
    with pytest.raises(ValueError, match="Input y contains NaN"):
        fitted.fit(X[:50], holes[:, 1])


@pytest.mark.parametrize("model", CLASSIFIERS)
def test_numbers_too_many_for_classes_are_told_the_limit_at_once(model: Any) -> None:
    refused(model, X, np.arange(2500), "if they are classes, merge rare ones, as at most 1000 are allowed, and")
    with pytest.raises(ValueError, match=r"if they are classes, pass them as strings"):
        model.fit(X[:900], np.arange(900))


@pytest.mark.parametrize(
    ("model", "forms"),
    [
        (BayesianPerceptronRegressor, "'auto', 'full', 'diagonal'"),
        (BayesianPerceptronClassifier, "'auto', 'full', 'neuron', 'diagonal'"),
        (BayesianMLPRegressor, "'auto', 'full', 'low_rank', 'layer', 'neuron', 'kronecker', 'diagonal'"),
    ],
)
def test_an_unknown_covariance_is_told_the_forms_that_the_estimator_has(model: Any, forms: str) -> None:
    refused(model(covariance="foo"), X, X[:, 0] > 0.0, f"covariance must be one of {forms}, got 'foo'")


def test_auto_keeps_no_correlations_of_very_many_features() -> None:
    columns = np.arange(40) * 500
    wide = csr_array((np.ones(40), (np.arange(40), columns)), shape=(40, 20_000))
    labels = np.arange(40) % 2
    model = BayesianPerceptronClassifier().fit(wide, labels)
    assert model.covariance_ == "diagonal"
    same = BayesianPerceptronClassifier(covariance="diagonal").fit(wide, labels)
    np.testing.assert_array_equal(model.predict_proba(wide), same.predict_proba(wide))
    assert model.coef_std_.shape == (1, 20_000)
    refused(BayesianPerceptronClassifier(covariance="full"), wide, labels, "covariance='full' of 20001 weights")
    regressor = BayesianPerceptronRegressor().fit(wide, labels.astype(float))
    assert regressor.covariance_ == "diagonal"
    assert regressor.coef_std_.shape == (20_000,)
    assert BayesianPerceptronRegressor().fit(X[:50], X[:50, 0]).covariance_ == "full"


@pytest.mark.parametrize(
    ("n_features", "prior_scale", "chosen"),
    [(3161, 1.0, "full"), (3162, 1.0, "diagonal"), (1580, "auto", "full"), (1581, "auto", "diagonal")],
)
def test_auto_keeps_correlations_up_to_ten_million_numbers(n_features: int, prior_scale: Any, chosen: str) -> None:
    targets = ClassTargets(np.array([0, 1]))
    blueprint = ClassPerceptrons(BayesianPerceptronClassifier(prior_scale=prior_scale), n_features, targets)
    assert blueprint.form == chosen
    blueprint = ClassPerceptrons(BayesianPerceptronClassifier(covariance="full"), n_features, targets)
    assert blueprint.form == "full"
