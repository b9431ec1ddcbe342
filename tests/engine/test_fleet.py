"""The kernel of fleets: its hash table against a dictionary, and each key's rows in closed form."""

import numpy as np

from onepass import PerceptronFleet
from onepass.engine.fleet import find_keys, put_keys, remove_keys
from tests.helpers.regression import linear_posterior, linear_rows


def test_keys_are_put_found_and_removed_as_in_a_dictionary() -> None:
    rng = np.random.default_rng(0)
    slot_keys = np.zeros(100, dtype=np.int64)
    table = np.zeros(256, dtype=np.int32)
    slot_keys[:] = rng.choice(10**6, 100, replace=False) * 256  # which all begin at one place of the table
    slots = np.arange(100)
    put_keys(slots, table, slot_keys)
    np.testing.assert_array_equal(find_keys(slot_keys, table, slot_keys), slots)
    np.testing.assert_array_equal(find_keys(slot_keys + 1, table, slot_keys), -1)
    gone = rng.permutation(100)[:40]
    remove_keys(gone, table, slot_keys)
    left = np.setdiff1d(slots, gone)
    np.testing.assert_array_equal(find_keys(slot_keys[left], table, slot_keys), left)
    np.testing.assert_array_equal(find_keys(slot_keys[gone], table, slot_keys), -1)


def test_every_key_comes_to_the_linear_regression_of_its_own_rows() -> None:
    X, y = linear_rows(90, 3)
    keys = np.random.default_rng(1).choice(["a", "b", "c"], 90)
    fleet = PerceptronFleet(3, "linear", noise=0.09).learn(X, y[:, 0], keys=keys)
    for key in "abc":
        expected = linear_posterior(X[keys == key], y[keys == key], np.ones(4), 0.09)
        found = fleet.perceptron(key)
        np.testing.assert_allclose(found.mean, expected.mean[0], atol=1e-10)
        np.testing.assert_allclose(found.cov, expected.cov, atol=1e-12)
        Z = np.hstack([np.ones((5, 1)), X[:5]])
        variances = np.einsum("ni,ij,nj->n", Z, expected.cov, Z)
        np.testing.assert_allclose(fleet.predict(X[:5], keys=[key] * 5).epistemic, variances, rtol=1e-9)
    unknown = fleet.predict(X[:5], keys=["d"] * 5)
    np.testing.assert_allclose(unknown.epistemic, 1.0 + np.square(X[:5]).sum(axis=1))
