"""The estimator around a moving level: what it predicts, and that a file keeps it."""

import numpy as np
import pytest

from onepass._typing import FloatArray
from onepass.estimators import MovingLevelRegressor, start_learner
from onepass.estimators.rows import Rows


def rows(n: int = 200, seed: int = 0) -> Rows:
    rng = np.random.default_rng(seed)
    X = np.column_stack([np.arange(n) / 100.0, rng.normal(size=n)])
    return Rows(X, X[:, 1] + np.cumsum(rng.normal(size=n)) / 5.0)


def fitted(**options: object) -> MovingLevelRegressor:
    model = MovingLevelRegressor(0, 0.01, **options)  # type: ignore[arg-type]
    start_learner(model, 2).learn(rows())
    return model


def at(*times: float) -> FloatArray:
    return np.column_stack([times, np.zeros(len(times))])


def test_a_file_keeps_everything() -> None:
    model = fitted(prior_scale=(1.0, 0.5), noise_start=0.2)
    again = MovingLevelRegressor.from_state(*model.export_state())
    more = rows(20, seed=1)
    for one in (model, again):
        one.learn(Rows(more.X + np.array([2.0, 0.0]), more.y))
    for name, array in model.export_state()[1].items():
        np.testing.assert_array_equal(array, again.export_state()[1][name])
    assert model.export_state()[0] == {**again.export_state()[0], "arguments": model.export_state()[0]["arguments"]}


def test_what_is_predicted_then_learned_is_what_was_predicted_right_before() -> None:
    model, data = fitted(), rows(3, seed=1)
    ahead = Rows(data.X + np.array([2.0, 0.0]), data.y)
    for k in range(3):
        row = ahead.at(slice(k, k + 1))
        seen, scored = model.predict_dist(row.X), model.score(row)
        found = model.predict_then_learn(row)
        np.testing.assert_allclose(found.mean, seen.mean)
        np.testing.assert_allclose(found.var, seen.var)
        np.testing.assert_allclose(found.log_density, seen.logpdf(row.y))
        np.testing.assert_allclose(found.log_density, scored.log_density)


def test_the_mean_is_the_level_on_top_of_the_weights() -> None:
    model = fitted()
    X = np.array([[2.0, 1.0], [2.5, -1.0]])
    level, var = model.level(X)
    assert (var > 0.0).all()
    np.testing.assert_allclose(model.predict(X), X @ model.coef_ + model.intercept_ + level)


def test_a_variance_ahead_is_shared_by_the_distance() -> None:
    near, far = fitted().share_ahead(at(1.99, 10.0))
    assert near < 0.05
    assert far > 0.5


def test_intervals_contain_as_many_targets_as_they_should() -> None:
    rng, inside = np.random.default_rng(2), []
    for _ in range(60):
        walk = np.cumsum(rng.normal(size=260)) / 5.0
        model = MovingLevelRegressor(0, 0.01)
        start_learner(model, 1).learn(Rows(np.arange(200)[:, None] / 100.0, walk[:200]))
        low, high = model.predict_dist(np.array([[1.99 + ahead / 100.0] for ahead in (1, 10, 50)])).interval(0.95)
        inside.append((low < walk[[200, 209, 249]]) & (walk[[200, 209, 249]] < high))
    shares = np.mean(inside, axis=0)
    assert (shares > 0.8).all(), shares


def test_a_time_that_is_no_feature_is_refused() -> None:
    with pytest.raises(ValueError, match="time must be the place of one of 2 features, got 2"):
        start_learner(MovingLevelRegressor(2, 1.0), 2)
