"""Rows that repeat the row before them are learned by `fit` as its weight, where they are copies of it."""

from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.datasets import load_diabetes

from onepass import (
    BayesianMLPClassifier,
    BayesianMLPRegressor,
    BayesianPerceptronClassifier,
    BayesianPerceptronRegressor,
)
from onepass.estimators.rows import Rows, as_dense

random = np.random.default_rng(0)
X = random.normal(size=(120, 3))
Y = X @ [1.0, -2.0, 0.5] + 0.3 * random.normal(size=120)
TIMES = random.integers(1, 6, 120)
INDEX = np.repeat(np.arange(120), TIMES)
HOLES = np.where(random.uniform(size=X.shape) < 0.2, np.nan, X)
SPARSE = csr_array(np.where(random.uniform(size=X.shape) < 0.3, 0.0, X))
COUNTS = random.poisson(np.exp(0.5 * X[:, 0])).astype(float)


@pytest.mark.parametrize(
    ("model", "rows", "y"),
    [
        (BayesianPerceptronRegressor(drift="auto"), X, Y),
        (BayesianPerceptronRegressor(outliers=0.05), X, Y),
        (BayesianPerceptronRegressor(prior_scale="auto"), X, Y),
        (BayesianPerceptronRegressor("exp", observation="poisson"), X, COUNTS),
        (BayesianPerceptronRegressor(), X, np.column_stack([Y, -Y])),
        (BayesianPerceptronRegressor(missing="mean"), HOLES, Y),
        (BayesianPerceptronRegressor(covariance="diagonal"), SPARSE, Y),
        (BayesianPerceptronClassifier(standardize=True), X, Y > 0.0),
        (BayesianPerceptronClassifier(standardize=True), X, np.digitize(Y, [-1.0, 1.0])),
        (BayesianMLPRegressor((4,)), X, Y),
        (BayesianMLPRegressor((4,), members=2), X, Y),
        (BayesianMLPClassifier((4,)), X, Y > 0.0),
    ],
    ids=lambda value: repr(value) if hasattr(value, "fit") else "",
)
def test_copies_in_succession_are_a_weight(model: Any, rows: Any, y: Any) -> None:
    repeated = clone(model).fit(rows[INDEX], y[INDEX])
    weighted = clone(model).fit(rows, y, sample_weight=TIMES)
    np.testing.assert_allclose(repeated.predict(rows), weighted.predict(rows), rtol=1e-9)
    assert repeated.log_evidence_ == pytest.approx(weighted.log_evidence_, rel=1e-9)
    assert (repeated.n_seen_, repeated.weight_sum_) == (120, TIMES.sum())


@pytest.mark.parametrize("options", [{"drift": "auto"}, {"outliers": 0.05}, {}], ids=str)
def test_a_sensor_that_holds_its_value_does_not_spoil_the_diabetes_data(options: dict[str, Any]) -> None:
    inputs, targets = load_diabetes(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(targets))
    train, test = np.repeat(order[:300], 10), order[300:]
    model = BayesianPerceptronRegressor(**options).fit(inputs[train], targets[train])
    assert model.score(inputs[test], targets[test]) >= 0.35


def test_weights_of_a_run_are_added_up_and_rows_of_weight_0_do_not_part_it() -> None:
    weights = random.uniform(0.1, 2.0, size=len(INDEX))
    zeros = weights.copy()
    zeros[np.flatnonzero(np.diff(INDEX))] = 0.0  # the last row of each run but one
    model = BayesianPerceptronRegressor(outliers=0.05)
    for given in (weights, zeros):
        repeated = clone(model).fit(X[INDEX], Y[INDEX], sample_weight=given)
        weighted = clone(model).fit(X, Y, sample_weight=np.bincount(INDEX, given))
        np.testing.assert_allclose(repeated.predict(X), weighted.predict(X), rtol=1e-9)
        assert repeated.weight_sum_ == pytest.approx(given.sum())


def test_the_weights_of_classes_are_those_of_all_rows() -> None:
    labels = Y > 1.0
    repeated = BayesianPerceptronClassifier(class_weight="balanced").fit(X[INDEX], labels[INDEX])
    shares = np.bincount(labels[INDEX]) / len(INDEX)
    weighted = BayesianPerceptronClassifier().fit(X, labels, sample_weight=TIMES / (2.0 * shares[labels.astype(int)]))
    np.testing.assert_allclose(repeated.predict_proba(X), weighted.predict_proba(X), rtol=1e-9)


def test_the_scale_counts_every_copy() -> None:
    model = BayesianPerceptronRegressor(warm_up=120).fit(X[INDEX], Y[INDEX])
    np.testing.assert_allclose(model._learner.state.inputs.centre, X[INDEX].mean(axis=0))
    np.testing.assert_allclose(model._learner.state.targets.scale, Y[INDEX].std())


@pytest.mark.parametrize("inputs", ["constant", "one switch", "the last target"])
@pytest.mark.parametrize("model", [BayesianPerceptronRegressor(drift="auto"), BayesianMLPRegressor((4,), drift="auto")])
def test_a_level_that_jumps_and_holds_is_still_followed(model: Any, inputs: str) -> None:
    levels = np.repeat(np.random.default_rng(1).normal(size=20), 50)
    switch = (np.arange(1000) >= 300).astype(float)
    rows = {"constant": np.ones(1000), "one switch": switch, "the last target": np.append(0.0, levels[:-1])}[inputs]
    model = clone(model).fit(rows[:, None], levels)
    assert model.n_seen_ == 1000
    assert abs(model.predict(rows[-1:, None])[0] - levels[-1]) < 0.1 * levels.std()


def test_equal_rows_of_coarse_data_are_rows_of_their_own() -> None:
    coarse = np.random.default_rng(2)
    rare = coarse.uniform(size=1000) < 0.05
    for rows, targets in (
        (coarse.integers(0, 2, size=(1000, 2)), coarse.uniform(size=1000) < 0.2),
        (rare[:, None], np.where(rare, coarse.normal(size=1000), 0.0)),
        (np.repeat([[0, 0], [0, 1], [1, 0], [1, 1]], 100, axis=0), np.repeat([0, 1, 1, 0], 100)),
        (np.ones((50, 2)), np.ones(50)),
    ):
        batch = Rows(rows.astype(float), targets.astype(float)[:, None])
        assert batch.run_length_encoded() is batch


@pytest.mark.parametrize("given", [{"drift": 0.01}, {"forgetting": 0.99}], ids=str)
def test_a_rate_that_was_given_is_a_rate_per_row(given: dict[str, Any]) -> None:
    model = BayesianPerceptronRegressor(**given)
    once, in_parts = clone(model).fit(X[INDEX], Y[INDEX]), clone(model).partial_fit(X[INDEX], Y[INDEX])
    np.testing.assert_array_equal(once.predict(X), in_parts.predict(X))
    assert once.n_seen_ == len(INDEX)


def test_missing_numbers_equal_missing_numbers_only() -> None:
    rows = np.repeat(X[:40], 2, axis=0)
    rows[1::4, 1] = np.nan  # in the second row of 20 pairs
    rows[2::4, 2] = rows[3::4, 2] = np.nan  # in both rows of the other 20
    found = Rows(rows, np.repeat(Y[:40, None], 2, axis=0)).run_length_encoded()
    np.testing.assert_array_equal(found.full_weights, np.tile([1.0, 1.0, 2.0], 20))


def test_sparse_rows_are_compared_exactly() -> None:
    rows = np.repeat(SPARSE.toarray(), 2, axis=0)
    rows[:2, 0], rows[2:4, 0] = 1.0, 0.0
    rows[1, 0] += 1e-15
    rows[3, 0] = 1e-300
    found = Rows(csr_array(rows), np.repeat(Y, 2)[:, None]).run_length_encoded()
    dense = Rows(rows, np.repeat(Y, 2)[:, None]).run_length_encoded()
    np.testing.assert_array_equal(found.full_weights, dense.full_weights)
    np.testing.assert_array_equal(found.full_weights[:4], 1.0)
    assert isinstance(found.X, csr_array)


# The record of rows.


def known_rows(X: Any) -> Rows:
    return Rows(
        X,
        np.arange(6.0),
        np.arange(1.0, 7.0),
        tuple("abcdef"),
        np.ones((6, 2)),
        ids=lambda: range(10, 16),
        rejects=("r",),
    )


@pytest.mark.parametrize("form", [np.asarray, csr_array])
def test_what_is_known_of_a_row_stays_with_it(form: Any) -> None:
    rows = known_rows(form(np.arange(12.0).reshape(6, 2)))
    for some in (rows.at(slice(1, 5, 3)), rows.at([1, 4]), Rows.joined([rows.at([1]), rows.at(slice(4, 5))])):
        np.testing.assert_array_equal(as_dense(some.X), [[2.0, 3.0], [8.0, 9.0]])
        assert some.y.tolist() == [1.0, 4.0]
        assert some.full_weights.tolist() == [2.0, 5.0]
        assert some.keys == ("b", "e")
        assert list(some.ids()) == [11, 14]
        assert not some.rejects
    assert rows.at([4, 1]).at([1]).keys == ("b",)
    assert (rows.n_read, Rows.joined([rows, rows]).n_read) == (7, 14)


def test_rows_of_which_only_some_have_weights_are_joined_with_weights_of_1() -> None:
    light, plain = Rows(np.ones((1, 2)), np.ones(1), np.array([0.5])), Rows(csr_array(np.ones((2, 2))), np.ones(2))
    joined = Rows.joined([light, plain])
    assert joined.full_weights.tolist() == [0.5, 1.0, 1.0]
    assert isinstance(joined.X, np.ndarray)
    assert isinstance(Rows.joined([plain, plain]).X, csr_array)
    assert Rows.joined([plain, plain]).weights is None
    assert Rows.joined([Rows(np.ones((1, 2)))] * 2).y is None
