"""Tracked quantiles against the rule written out, and against the bound that it guarantees."""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.special import ndtri

from onepass.engine.tracking import RowTracker, track_quantiles

PROBABILITIES = np.array([0.025, 0.25, 0.75, 0.975])
RATES = np.array([0.4, 0.05, 0.05, 0.4])
ONE = np.ones(1)
NONE = np.empty((0, 4))


MIRRORED = 0.7


def moves(errors: np.ndarray) -> np.ndarray:
    """How far ends move, from the errors of all quantiles."""
    return np.asarray(RATES * (errors - MIRRORED * errors[::-1]))


def start() -> tuple[np.ndarray, np.ndarray]:
    return ndtri(PROBABILITIES), np.array([0.0, 1.0])


def shrunk(value: float, noise: float) -> float:
    return float(np.sign(value) * max(abs(value) - noise, 0.0))


def test_the_rule_written_out() -> None:
    z = np.random.default_rng(0).standard_t(3, 500) * 2.0 + 1.0
    ends, location = start()
    found = track_quantiles(z, ONE, PROBABILITIES, RATES, ends, location, NONE)
    own, (mean, scale) = start()
    for i, value in enumerate(z):
        centre = shrunk(mean, 0.2)
        quantiles = centre + np.exp(shrunk(np.log(scale), 0.1)) * own
        np.testing.assert_allclose(found[i], np.sort(quantiles), rtol=1e-12, atol=1e-12)
        own = own + moves(PROBABILITIES - (value <= quantiles))
        distance = min(abs(value - centre), 50.0 * scale) / np.sqrt(2.0 / np.pi)
        mean = mean + 0.02 * np.clip(value - mean, -50.0 * scale, 50.0 * scale)
        scale = max(0.97 * scale + 0.03 * distance, 0.3)
    np.testing.assert_allclose(ends, own, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(location, [mean, scale], rtol=1e-12)


def test_single_rows_are_tracked_in_the_arrays_that_were_given() -> None:
    z, weights = np.random.default_rng(1).standard_t(3, 200) * 2.0, np.random.default_rng(2).uniform(0.5, 2.0, 200)
    z[50] = np.nan
    given = np.full((200, 4), np.nan)
    given[60:70] = np.linspace(-3.0, 3.0, 4)
    (ends, location), (own, place), found = start(), start(), np.empty(4)
    expected = track_quantiles(z, weights, PROBABILITIES, RATES, ends, location, given)
    rows = RowTracker(PROBABILITIES, RATES, own, place)
    for i in range(200):
        is_late = bool(np.isfinite(given[i, 0]))
        if is_late:
            found[:] = given[i]
        else:
            rows.look(found)
            np.testing.assert_array_equal(found, expected[i])
        rows.track(z[i], weights[i], found, is_late)
        np.testing.assert_array_equal(found, expected[i])
    np.testing.assert_array_equal(own, ends)
    np.testing.assert_array_equal(place, location)


@pytest.mark.parametrize(("p", "rate"), list(zip(PROBABILITIES[:2], RATES[:2], strict=True)))
@given(arrays(np.float64, st.integers(1, 100), elements=st.floats(-1e3, 1e3)))
def test_shares_differ_from_their_probabilities_by_no_more_than_the_way_of_the_ends(
    p: float, rate: float, z: np.ndarray
) -> None:
    """For one interval whose limits stay in order, whatever the values are."""
    pair, begin = np.array([p, 1.0 - p]), ndtri([p, 1.0 - p])
    ends, location, found = begin.copy(), np.array([0.0, 1.0]), []
    for value in z:
        assume(ends[0] <= ends[1])
        found.append(track_quantiles(np.array([value]), ONE, pair, np.full(2, rate), ends, location, NONE[:, :2])[0])
    (low, high), way = np.array(found).T, np.abs(ends - begin)
    inside = ((low < z) & (z <= high)).mean()
    assert abs(inside - (1.0 - 2.0 * p)) <= way.sum() / ((1.0 + MIRRORED) * rate * len(z)) + 1e-9
    for share, own in (((z <= low).mean(), p), ((z <= high).mean(), 1.0 - p)):
        assert abs(share - own) <= way.max() / ((1.0 - MIRRORED) * rate * len(z)) + 1e-9


@given(arrays(np.float64, st.integers(1, 100), elements=st.floats(-60.0, 60.0)), st.integers(0, 100))
def test_any_split_gives_the_same(z: np.ndarray, cut: int) -> None:
    whole, parts = start(), start()
    expected = track_quantiles(z, ONE, PROBABILITIES, RATES, *whole, NONE)
    found = [track_quantiles(part, ONE, PROBABILITIES, RATES, *parts, NONE) for part in (z[:cut], z[cut:])]
    np.testing.assert_array_equal(np.concatenate(found), expected)
    np.testing.assert_array_equal(parts[0], whole[0])


@given(arrays(np.float64, st.integers(1, 200), elements=st.floats(-1e6, 1e6)))
def test_quantiles_never_cross(z: np.ndarray) -> None:
    found = track_quantiles(z, ONE, PROBABILITIES, RATES, *start(), NONE)
    assert np.isfinite(found).all()
    assert (np.diff(found, axis=1) >= 0.0).all()


def test_a_value_that_was_not_observed_moves_nothing() -> None:
    state = start()
    track_quantiles(np.array([3.0, np.nan]), ONE, PROBABILITIES, RATES, *state, NONE)
    other = start()
    track_quantiles(np.array([3.0]), ONE, PROBABILITIES, RATES, *other, NONE)
    np.testing.assert_array_equal(state[0], other[0])
    np.testing.assert_array_equal(state[1], other[1])


@pytest.mark.parametrize("weight", [0.0, 0.5, 3.0])
def test_a_weight_multiplies_the_move(weight: float) -> None:
    one, weighted = start(), start()
    track_quantiles(np.array([2.5]), ONE, PROBABILITIES, RATES, *one, NONE)
    track_quantiles(np.array([2.5]), np.array([weight]), PROBABILITIES, RATES, *weighted, NONE)
    begin = start()[0]
    np.testing.assert_allclose(weighted[0] - begin, weight * (one[0] - begin), rtol=1e-12)


def test_a_late_value_is_compared_with_the_quantiles_that_it_was_given() -> None:
    late, now = start(), start()
    given_then = np.array([[-9.0, -8.0, 8.0, 9.0]])
    np.testing.assert_array_equal(
        track_quantiles(np.array([5.0]), ONE, PROBABILITIES, RATES, *late, given_then), given_then
    )
    track_quantiles(np.array([5.0]), ONE, PROBABILITIES, RATES, *now, NONE)
    begin = start()[0]
    np.testing.assert_allclose(late[0] - begin, moves(PROBABILITIES - [0.0, 0.0, 1.0, 1.0]))
    np.testing.assert_allclose(now[0] - begin, moves(PROBABILITIES))
    np.testing.assert_array_equal(late[1], now[1])
