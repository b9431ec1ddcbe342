"""Tracked quantiles by key: against one tracker per key and one of all, in any split, and in files."""

from typing import Any

import numpy as np
import pytest

from onepass.models.fleet.tracking import KeyedTracker
from onepass.models.tracking import QuantileTracker

RNG = np.random.default_rng(0)
N = 3000
KEYS = RNG.choice(["a", "b", "c"], N, p=[0.6, 0.39, 0.01]).tolist()
Z = RNG.standard_t(4, N) * np.array([{"a": 1.0, "b": 3.0, "c": 1.0}[key] for key in KEYS])


def test_quantiles_are_those_of_the_key_and_of_all_keys_by_the_rows_of_the_key() -> None:
    tracker, population = KeyedTracker((0.9,)), QuantileTracker((0.9,))  # two ends, which never cross
    own = {key: QuantileTracker((0.9,)) for key in "abc"}
    found = tracker.update(Z[:400], keys=KEYS[:400])
    for i, key in enumerate(KEYS[:400]):
        share = own[key].total / (own[key].total + 50.0)
        mixed = share * own[key].next.quantiles + (1.0 - share) * population.next.quantiles
        np.testing.assert_allclose(found.quantiles[i], np.sort(mixed), rtol=1e-12)
        own[key].update(Z[i : i + 1], given=found.row(i))
        population.update(Z[i : i + 1])
    np.testing.assert_allclose(tracker.next(["new"]).quantiles[0], population.next.quantiles, rtol=1e-12)


def test_each_key_is_covered_after_some_rows() -> None:
    tracker = KeyedTracker()
    low, high = tracker.update(Z, keys=KEYS).limits(0.9)
    inside = (low <= Z) & (high >= Z)
    for key in "ab":
        own = np.array([one == key for one in KEYS])
        assert inside[own][100:].mean() == pytest.approx(0.9, abs=0.02)
    common = QuantileTracker().update(Z).limits(0.9)
    wide = np.array([key == "b" for key in KEYS])
    assert ((common[0] <= Z) & (common[1] >= Z))[wide].mean() < 0.87, "one tracker of all keys would do"


@pytest.mark.parametrize("keys", [KEYS, [ord(key) for key in KEYS]], ids=["texts", "numbers"])
def test_any_split_gives_the_same_and_files_too(keys: Any) -> None:
    whole, parts = KeyedTracker((0.5, 0.9)), KeyedTracker((0.5, 0.9))
    expected = whole.update(Z, keys=keys).quantiles
    found = [parts.update(Z[:700], keys=keys[:700]).quantiles]
    parts = KeyedTracker.from_arrays(parts.copy().to_arrays())
    assert parts.levels == (0.5, 0.9)
    found.append(parts.update(Z[700:], keys=keys[700:]).quantiles)
    np.testing.assert_array_equal(np.concatenate(found), expected)
    np.testing.assert_array_equal(parts.next(keys[:9]).quantiles, whole.next(keys[:9]).quantiles)


def test_nothing_tracked_is_restored_too() -> None:
    empty = KeyedTracker.from_arrays(KeyedTracker().to_arrays())
    np.testing.assert_array_equal(empty.next(["a"]).quantiles[0], QuantileTracker().next.quantiles)


def test_a_copy_is_independent_and_asking_changes_nothing() -> None:
    tracker = KeyedTracker()
    tracker.update(Z[:50], keys=KEYS[:50])
    before = tracker.next(["a"]).quantiles
    tracker.copy().update(Z[50:90], keys=KEYS[50:90])
    tracker.next(["zzz"])
    np.testing.assert_array_equal(tracker.next(["a"]).quantiles, before)


@pytest.mark.parametrize(
    ("name", "value", "problem"),
    [
        ("ends", np.full((4, 10), np.nan), "finite"),
        ("state", np.array([[0.0, -1.0, 3.0]] * 4), "scales"),
        ("key_ends", np.array([1, 1, 9]), "cut"),
    ],
)
def test_impossible_arrays_are_refused(name: str, value: np.ndarray, problem: str) -> None:
    tracker = KeyedTracker()
    tracker.update(Z, keys=KEYS)
    with pytest.raises(ValueError, match=problem):
        KeyedTracker.from_arrays({**tracker.to_arrays(), name: value})
