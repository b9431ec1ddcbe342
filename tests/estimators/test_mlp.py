"""Derivatives of networks in their inputs, and the importance of features that follows."""

from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.feature_selection import SelectFromModel

from onepass import BayesianMLPClassifier, BayesianMLPRegressor, BayesianNetwork, Conv2D
from onepass.estimators.categories import Categories
from onepass.models.mixture import with_drift

rng = np.random.default_rng(0)
X = rng.normal(size=(600, 4)) * [1.0, 100.0, 1.0, 1.0]


@pytest.mark.parametrize(
    ("entering", "options"),
    [
        (4, {"hidden": (5, 3), "n_outputs": 2}),
        (4, {"hidden": (), "n_outputs": 3, "observation": "categorical"}),
        ((2, 2), {"hidden": (Conv2D(3, 2),)}),
        (4, {"hidden": (5,), "observation": "heteroscedastic"}),
        (4, {"hidden": (5,), "drift": "auto"}),
    ],
)
def test_derivatives_are_those_of_the_network_where_its_weights_are_known(entering: Any, options: Any) -> None:
    network = with_drift(BayesianNetwork, entering, activation="tanh", prior_scale=1e-7, **options)
    rows = rng.normal(size=(3, 4))
    found = network.input_jacobian(rows)
    for j, step in enumerate(1e-4 * np.eye(4)):
        after, before = (network.output_moments(rows + sign * step).mean for sign in (1.0, -1.0))
        np.testing.assert_allclose(found[:, :, j], (after - before) / 2e-4, atol=1e-6)
    np.testing.assert_allclose(network.input_jacobian(rows[0]), found[0])


@pytest.mark.parametrize("options", [{}, {"members": 2}, {"prior_scale": "auto"}, {"drift": "auto"}])
def test_importances_are_what_an_input_moves_the_target_by(options: Any) -> None:
    y = 3.0 * X[:, 0] + 0.02 * X[:, 1]  # whose standard deviations are 3 and 2
    model = BayesianMLPRegressor((10,), **options).fit(X, np.column_stack([y, y]))
    np.testing.assert_allclose(model.feature_importances_, [0.6, 0.4, 0.0, 0.0], atol=0.06)
    assert model.feature_importances_.sum() == pytest.approx(1.0)


def test_importances_for_classes() -> None:
    for y in (X[:, 0] > 0.0, np.digitize(X[:, 0], [-0.5, 0.5])):
        model = BayesianMLPClassifier((10,)).fit(X, y)
        assert model.feature_importances_.argmax() == 0
        assert model.feature_importances_[0] > 0.6


def test_a_column_of_categories_has_one_importance_so_that_columns_can_be_selected() -> None:
    random = np.random.default_rng(1)
    colour = random.choice(["red", "green", "blue"], 400)
    table = pd.DataFrame({"noise": random.normal(size=400), "size": random.normal(size=400)})
    table.insert(1, "colour", pd.Series(colour, index=table.index).astype("category"))
    y = 2.0 * table["size"] + 3.0 * (colour == "red") - 2.0 * (colour == "blue")
    selector = SelectFromModel(BayesianMLPRegressor((8,)), threshold=0.15).fit(table, y)
    importances = selector.estimator_.feature_importances_
    assert importances.shape == (selector.estimator_.n_features_in_,)
    assert importances.sum() == pytest.approx(1.0)
    assert selector.get_feature_names_out().tolist() == ["colour", "size"]
    encoded = Categories(3, {1: ("blue", "green", "red")})
    np.testing.assert_allclose(encoded.sizes_of_columns(np.array([1.0, 3.0, 0.0, 4.0, 2.0])), [1.0, 5.0, 2.0])
