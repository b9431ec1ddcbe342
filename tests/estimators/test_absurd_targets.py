"""One absurd target, where no outliers are expected: it is set aside, with a warning, and has no say in the scale."""

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_diabetes

import onepass
from onepass import BayesianMLPRegressor, BayesianPerceptronClassifier, BayesianPerceptronRegressor
from onepass.estimators.scaling import absurd

X, Y = (part[np.random.default_rng(0).permutation(442)] for part in load_diabetes(return_X_y=True))
LEARNED, HELD_OUT = slice(0, 342), slice(342, 442)
WARNING = "1 target was set aside, since it is more than 30 standard deviations from its prediction; pass outliers=0.01"


def with_absurd(at: int, value: float) -> tuple[Any, Any]:
    """The rows to learn, and one more."""
    return np.insert(X[LEARNED], at, X[0], axis=0), np.insert(Y[LEARNED], at, value)


@pytest.mark.parametrize("at", [0, 20, 50, 200])
@pytest.mark.parametrize("value", [1e6, 1e12, -1e300])
@pytest.mark.parametrize(
    "model",
    [
        BayesianPerceptronRegressor(),
        BayesianPerceptronRegressor("relu"),
        BayesianPerceptronRegressor(covariance="diagonal"),
        BayesianPerceptronRegressor(passes=3),
        BayesianPerceptronRegressor(prior_scale="auto"),
        BayesianPerceptronRegressor(drift="auto"),
        BayesianMLPRegressor(10, passes=1, shuffle=False),
        BayesianMLPRegressor(10, members=3, passes=1, shuffle=False),
    ],
    ids=str,
)
def test_an_absurd_target_changes_no_prediction(model: Any, value: float, at: int) -> None:
    mean, std = clone(model).fit(X[LEARNED], Y[LEARNED]).predict(X[HELD_OUT], return_std=True)
    with pytest.warns(UserWarning, match="1 target was set aside") as issued:
        robust = clone(model).fit(*with_absurd(at, value))
    assert [str(one.message)[: len(WARNING)] for one in issued] == [WARNING]
    assert issued[0].filename == __file__
    assert robust.n_set_aside_ == 1
    assert robust.n_seen_ == 343
    moved, wider = robust.predict(X[HELD_OUT], return_std=True)
    assert np.max(np.abs(moved - mean) / std) < 0.1
    np.testing.assert_allclose(wider, std, rtol=0.1)


def test_a_call_warns_of_its_own_targets_only() -> None:
    rows, targets = with_absurd(50, 1e12)
    model = BayesianPerceptronRegressor()
    n_warnings = []
    for start in range(0, 340, 20):
        with warnings.catch_warnings(record=True) as issued:
            warnings.simplefilter("always")
            model.partial_fit(rows[start : start + 20], targets[start : start + 20])
        n_warnings.append(len(issued))
    assert n_warnings == [0, 0, 1] + [0] * 14
    assert model.n_set_aside_ == 1
    with pytest.warns(UserWarning, match="2 targets were set aside, since each is more than 30 standard deviations"):
        model.predict_then_learn(X[:3], [1e12, 100.0, -1e12])
    assert model.n_set_aside_ == 3
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert model.fit(X, Y).n_set_aside_ == 0


@pytest.mark.parametrize("at", [20, 150])
def test_rows_set_aside_are_counted_per_output_and_saved(at: int, tmp_path: Path) -> None:
    targets = np.column_stack([Y, Y[::-1], Y**2])
    targets[at, 1], targets[at + 1, 1], targets[at + 2, 2] = 1e15, -1e16, 1e17
    with pytest.warns(UserWarning, match="3 targets were set aside"):
        model = BayesianPerceptronRegressor().fit(X, targets)
    np.testing.assert_array_equal(model.n_set_aside_, [0, 2, 1])
    onepass.save(model, tmp_path / "model")
    np.testing.assert_array_equal(onepass.load(tmp_path / "model").n_set_aside_, [0, 2, 1])
    assert BayesianPerceptronClassifier().fit(X, Y > 100.0).n_set_aside_ == 0


def test_a_warm_up_that_is_saved_goes_on_the_same(tmp_path: Path) -> None:
    rows, targets = with_absurd(20, 1e12)
    with pytest.warns(UserWarning, match="1 target was set aside"):
        part = BayesianPerceptronRegressor().partial_fit(rows[:60], targets[:60])
    onepass.save(part, tmp_path / "part")
    loaded = onepass.load(tmp_path / "part")
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # of a target that was set aside before
        loaded.partial_fit(rows[60:], targets[60:])
    with pytest.warns(UserWarning, match="1 target was set aside"):
        whole = BayesianPerceptronRegressor().fit(rows, targets)
    assert loaded.n_set_aside_ == whole.n_set_aside_ == 1
    np.testing.assert_allclose(loaded.predict(X), whole.predict(X), rtol=1e-9)
    assert loaded.log_evidence_ == pytest.approx(whole.log_evidence_, rel=1e-9)


def test_a_far_target_with_inputs_as_far_off_is_learned() -> None:
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(200, 2))
    rows[20, 0] = 1e6
    targets = rows @ [3.0, 1.0] + 0.1 * rng.normal(size=200)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = BayesianPerceptronRegressor().fit(rows, targets)
    assert model.n_set_aside_ == 0
    assert model.coef_[0] == pytest.approx(3.0, rel=1e-3)


def test_what_is_merely_far_is_not_absurd() -> None:
    rng = np.random.default_rng(0)
    for values in (
        rng.normal(size=1000),
        rng.lognormal(sigma=2.0, size=1000),
        rng.standard_t(2.0, size=1000),
        np.where(np.arange(1000) % 20 == 0, 1e6, 1e-6 * rng.normal(size=1000)),  # rare events, but not so rare
        np.append(np.zeros(999), 1e9),  # of which no scale is known
        np.append(np.arange(8.0), 1e9),  # too few to tell
    ):
        assert not absurd(values[:, None]).any()
    assert list(absurd(np.append(np.arange(9.0), 1e9)[:, None])[:, 0].nonzero()[0]) == [9]
    some = np.column_stack([np.append(np.arange(20.0), np.nan), np.append(np.arange(20.0), 1e9)])
    np.testing.assert_array_equal(np.argwhere(absurd(some)), [[20, 1]])
