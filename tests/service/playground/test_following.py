"""A model that follows points by the shortest way, against the library told the same rows at once."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from onepass import BayesianNetwork, BayesianPerceptron, Mixture
from onepass.service.playground.following import Follower, Recipe, Row

ROWS: list[Row] = [(-2.0, 0.5), (-0.7, -1.0), (0.4, 0.3), (1.5, 1.2), (2.4, 0.9), (0.1, 0.2)]
GRID = np.linspace(-3.0, 3.0, 31)[:, None]
RECIPES = {
    "perceptron": Recipe(kind="perceptron", activation="linear", noise=0.2, prior_scale=1.5),
    "bent perceptron": Recipe(kind="perceptron", activation="tanh", noise=0.2),
    "bumps": Recipe(kind="bumps", activation="linear", units=9, noise=0.2),
    "network": Recipe(kind="network", activation="tanh", units=6, noise=0.2),
    "deep network": Recipe(kind="deep", activation="relu", units=4, noise="learn"),
    "robust": Recipe(kind="perceptron", activation="linear", noise="learn", outliers=0.05),
    "forgetting": Recipe(kind="perceptron", activation="linear", noise=0.2, forgetting=0.8),
    "drifting": Recipe(kind="perceptron", activation="linear", noise=0.2, drift="auto"),
}


def bumps(x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Nine bumps at -3, -2.25, ..., 3, as wide as they are apart, written out."""
    centres = np.array([-3.0, -2.25, -1.5, -0.75, 0.0, 0.75, 1.5, 2.25, 3.0])
    return np.asarray(np.exp(-((x - centres) ** 2) / (2 * 0.75**2)))


def library_model(name: str) -> Any:
    """The models of `RECIPES`, made by hand."""
    made: dict[str, Callable[[], Any]] = {
        "perceptron": lambda: BayesianPerceptron(1, "linear", cov=2.25, noise=0.04),
        "bent perceptron": lambda: BayesianPerceptron(1, "tanh", noise=0.04),
        "bumps": lambda: BayesianPerceptron(9, "linear", noise=0.04),
        "network": lambda: BayesianNetwork(1, (6,), activation="tanh", noise=0.04),
        "deep network": lambda: BayesianNetwork(1, (4, 4), activation="relu", noise="learn"),
        "robust": lambda: BayesianPerceptron(1, "linear", noise="learn", outliers=0.05),
        "forgetting": lambda: BayesianPerceptron(1, "linear", noise=0.04, forgetting=0.8),
        "drifting": lambda: Mixture.over_drift(BayesianPerceptron, 1, "linear", noise=0.04),
    }
    return made[name]()


@pytest.mark.parametrize("name", RECIPES)
def test_points_added_one_by_one_are_what_the_library_learns_in_one_call(name: str) -> None:
    follower = Follower()
    for n in range(len(ROWS) + 1):
        learned = follower.follow(RECIPES[name], ROWS[:n])
        assert (learned.n_new, learned.anew) == (min(n, 1), False)
    rows = np.array(ROWS)
    see = bumps if name == "bumps" else np.asarray
    wanted = library_model(name).learn(see(rows[:, :1]), rows[:, 1]).predict(see(GRID))
    found = follower.predict(GRID)
    np.testing.assert_allclose(found.mean, wanted.mean, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(found.var, wanted.var, rtol=1e-9)
    assert follower.model.n_seen == len(ROWS)


@pytest.mark.parametrize(
    "rows",
    [
        pytest.param([*ROWS[:2], (0.4, -0.3), *ROWS[3:]], id="a point was moved"),
        pytest.param([*ROWS[:2], *ROWS[3:]], id="a point was removed"),
        pytest.param(ROWS[:3], id="the last ones were removed"),
        pytest.param(ROWS[::-1], id="another order"),
    ],
)
def test_a_changed_past_is_learned_again_from_the_prior(rows: list[Row]) -> None:
    recipe = RECIPES["bent perceptron"]
    follower, fresh = Follower(), Follower()
    follower.follow(recipe, ROWS)
    learned = follower.follow(recipe, rows)
    assert (learned.n_new, learned.anew) == (len(rows), True)
    fresh.follow(recipe, rows)
    np.testing.assert_array_equal(follower.predict(GRID).mean, fresh.predict(GRID).mean)
    assert follower.predicted == fresh.predicted


def test_another_setting_is_learned_from_the_prior_and_the_same_one_not() -> None:
    follower = Follower()
    follower.follow(RECIPES["perceptron"], ROWS)
    assert follower.follow(RECIPES["network"], ROWS).anew
    assert follower.follow(RECIPES["network"], ROWS) == (0, False, None)


def test_the_effect_of_a_row_is_what_the_library_predicts_before_and_after_it() -> None:
    follower, model = Follower(), library_model("perceptron")
    follower.follow(RECIPES["perceptron"], ROWS[:-1])
    effect = follower.follow(RECIPES["perceptron"], ROWS).effect
    *before, last = ROWS
    model.learn([row[:1] for row in before], [row[1] for row in before])
    old = model.predict(last[:1])
    new = model.learn(last[:1], last[1]).predict(last[:1])
    assert effect is not None
    np.testing.assert_allclose(effect, (old.mean, old.epistemic**0.5, new.mean, new.epistemic**0.5), rtol=1e-12)
    np.testing.assert_allclose(follower.predicted[-1], (old.mean, (old.epistemic + 0.04) ** 0.5), rtol=1e-12)
    assert effect.std_after < effect.std_before


def test_drawn_functions_bend_with_the_belief_and_do_not_jump() -> None:
    follower = Follower()
    follower.follow(RECIPES["bumps"], ROWS)
    before = follower.draw(GRID, 3)
    np.testing.assert_array_equal(follower.draw(GRID, 3), before)
    follower.follow(RECIPES["bumps"], [*ROWS, (2.4, 0.9)])  # hardly news
    assert 0.0 < np.abs(follower.draw(GRID, 3) - before).max() < 0.5
