"""Intervals that hold on streams that change, of several levels, in files and merged."""

import copy
import pickle
from collections.abc import Callable

import numpy as np
import pytest
from scipy.special import ndtri

from onepass.models.tracking import LEVELS, QuantileTracker


def windows(inside: np.ndarray, size: int = 500) -> np.ndarray:
    total = np.cumsum(np.concatenate([[0], inside]))
    return np.asarray((total[size:] - total[:-size]) / size)


def streams() -> dict[str, np.ndarray]:
    rng, n = np.random.default_rng(7), 4000
    t, u = np.arange(n), rng.normal(size=n)
    return {
        "right": u,
        "louder": np.where(t < n // 2, 1.0, 10.0) * u,
        "quieter": np.where(t < n // 2, 1.0, 0.1) * u,
        "offset": u + 6.0 * ((t // 1000) % 2),
        "heavy tails": rng.standard_t(2, n),
        "skewed": rng.exponential(size=n) - 1.0,
        "trend": 0.05 * t + u,
        "walk": np.cumsum(0.1 * rng.normal(size=n)) + u,
    }


@pytest.mark.parametrize("name", streams())
def test_every_window_of_500_rows_is_covered(name: str) -> None:
    z, tracker = streams()[name], QuantileTracker()
    low, high = tracker.update(z).limits(0.95)
    covered = windows((low <= z) & (z <= high))[200:]
    assert covered.min() >= 0.92
    assert covered.max() <= 0.98
    if name in ("louder", "offset"):
        assert windows(np.abs(z) < 1.96)[200:].min() < 0.5, "the plain interval would do"


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("name", streams())
def test_all_levels_hold_overall(name: str, level: float) -> None:
    z, tracker = streams()[name], QuantileTracker()
    low, high = tracker.update(z).limits(level)
    assert ((low <= z) & (z <= high)).mean() == pytest.approx(level, abs=0.015)


def test_limits_before_the_first_row_are_those_of_a_normal_distribution() -> None:
    for level in (0.3, 0.5, 0.66, 0.95, 0.97, 0.999):
        np.testing.assert_allclose(QuantileTracker().next.limits(level), ndtri([0.5 - level / 2, 0.5 + level / 2]))


def test_levels_between_are_nested() -> None:
    tracker = QuantileTracker((0.5, 0.95))
    tracker.update(np.random.default_rng(1).standard_t(2, 2000) * 3.0)
    sides = np.array([tracker.next.limits(level) for level in np.linspace(0.05, 0.999, 60)])
    assert (np.diff(sides[:, 0]) < 0.0).all()
    assert (np.diff(sides[:, 1]) > 0.0).all()


def test_arrays_restore_everything() -> None:
    rng = np.random.default_rng(2)
    tracker = QuantileTracker((0.6, 0.9))
    tracker.update(rng.normal(size=100) * 2.0)
    twin, more = QuantileTracker.from_arrays(tracker.to_arrays()), rng.normal(size=50)
    np.testing.assert_array_equal(twin.update(more).quantiles, tracker.update(more).quantiles)
    assert twin.total == tracker.total == 150.0


@pytest.mark.parametrize(
    ("name", "value", "problem"),
    [
        ("levels", np.array([0.5, 1.5]), "level"),
        ("ends", np.zeros(3), "shape"),
        ("ends", np.full(10, np.nan), "finite"),
        ("state", np.array([0.0, -1.0, 3.0]), "scale"),
        ("state", np.array([0.0, 1.0, -3.0]), "negative"),
    ],
)
def test_impossible_arrays_are_refused(name: str, value: np.ndarray, problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        QuantileTracker.from_arrays({**QuantileTracker().to_arrays(), name: value})


@pytest.mark.parametrize("weight", [1.0, 0.3])
def test_rows_one_by_one_give_the_same_as_all_at_once(weight: float) -> None:
    z = np.random.default_rng(3).standard_t(2, 300)
    z[[0, 7, 100]] = np.nan, np.nan, np.inf
    whole, single = QuantileTracker(), QuantileTracker()
    rows = whole.update(z, np.full(300, weight)).quantiles
    for i in range(300):
        np.testing.assert_array_equal(single.next.quantiles, np.sort(rows[i]))
        np.testing.assert_array_equal(single.update_one(z[i], weight).quantiles, rows[i])
    np.testing.assert_array_equal(single.next.quantiles, whole.next.quantiles)
    assert single.total == pytest.approx(whole.total, rel=1e-12)
    assert single.total == pytest.approx(298 * weight, rel=1e-12)


def test_one_late_row_is_scored_with_what_it_was_given() -> None:
    z = np.random.default_rng(4).normal(size=100)
    whole, single = QuantileTracker(), QuantileTracker()
    given = whole.next
    for tracker in (whole, single):
        tracker.update(4.0 + z)
    expected = whole.update(np.array([2.5]), given=given).quantiles[0]
    np.testing.assert_array_equal(expected, given.quantiles)
    np.testing.assert_array_equal(single.update_one(2.5, given=given).quantiles, expected)
    np.testing.assert_array_equal(single.next.quantiles, whole.next.quantiles)
    assert not np.shares_memory(single.update_one(2.5, given=given).quantiles, given.quantiles)


@pytest.mark.parametrize("copied", [QuantileTracker.copy, copy.deepcopy, lambda one: pickle.loads(pickle.dumps(one))])
def test_copies_go_on_alike_and_apart(copied: Callable[[QuantileTracker], QuantileTracker]) -> None:
    tracker = QuantileTracker((0.5, 0.9))
    tracker.update(np.random.default_rng(5).normal(size=50) * 3.0)
    twin = copied(tracker)
    for z in (0.3, -5.0, 9.0):
        np.testing.assert_array_equal(twin.update_one(z).quantiles, tracker.update_one(z).quantiles)
    assert twin.total == tracker.total == 53.0
    before = tracker.next.quantiles
    twin.update_one(30.0)
    np.testing.assert_array_equal(tracker.next.quantiles, before)
    np.testing.assert_array_equal(twin.next.quantiles, np.sort(twin.update(np.array([np.nan, 0.0])).quantiles[0]))


def test_a_copy_is_independent() -> None:
    tracker = QuantileTracker()
    twin = tracker.copy()
    twin.update(np.full(10, 5.0))
    np.testing.assert_array_equal(tracker.next.quantiles, QuantileTracker().next.quantiles)


@pytest.mark.parametrize("levels", [(), (0.0,), (1.0,), ("a",), 0.9])
def test_impossible_levels_are_refused(levels: tuple[float, ...]) -> None:
    with pytest.raises((ValueError, TypeError)):
        QuantileTracker(levels)
