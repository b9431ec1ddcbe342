"""Members are checked, and those of common rhythms are what they should be."""

import numpy as np
import pytest

from onepass.forecasting import Member, count_members, default_members


@pytest.mark.parametrize("seasons", [(), (4,), (7, 365.25), (12,), (24, 168), (52.18,), (48, 336), (5.5,), (400,)])
def test_every_season_has_members_that_fit(seasons: tuple[float, ...]) -> None:
    members = default_members(seasons)
    assert 3 <= len(members) <= 12
    assert len(set(members)) == len(members)
    assert {member.logarithm for member in members} == {False, True}


def test_lags_of_the_season_are_among_those_of_its_members() -> None:
    assert all(12 in member.lags or member.difference == 12 or member.waves for member in default_members([12]))


@pytest.mark.parametrize(("difference", "first"), [(0, 1.0), (1, 0.0), (12, 0.7)])
def test_a_series_is_at_first_taken_to_go_on_as_it_is(difference: int, first: float) -> None:
    start, precision = Member(lags=(1, 4, 9), waves=((12, (1, 2)),), difference=difference).first_prior(0)
    assert start == [first] + [0.0] * 7
    np.testing.assert_allclose(precision, [10.0, 20.0, 30.0, *[10.0] * 5])


def test_the_weights_of_inputs_may_be_anything_at_first() -> None:
    start, precision = Member(lags=(1, 2)).first_prior(2)
    assert start == [1.0, 0.0, 0.0, 0.0, 0.0]
    assert precision[2:] == [1e-6, 0.01, 0.01]  # so may a level, which makes up for the mean of the inputs
    assert Member(lags=(1, 2), difference=1).first_prior(2)[1][2:] == [10.0, 0.01, 0.01]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"lags": ()}, "at least one number"),
        ({"lags": (0,)}, "each lag"),
        ({"lags": (5000,)}, "none above"),
        ({"lags": (1,), "forgetting": 0.1}, "between 0.5 and 1"),
        ({"lags": (1,), "difference": -1}, "difference"),
    ],
)
def test_wrong_members_are_refused(options: dict[str, object], words: str) -> None:
    with pytest.raises((ValueError, TypeError), match=words):
        Member(**options)  # type: ignore[arg-type]


@pytest.mark.parametrize("seasons", [(), (4,), (7, 365.25), (12,), (24, 168), (52.18,), (2,), (8766,)])
def test_counts_have_levels_among_their_members(seasons: tuple[float, ...]) -> None:
    members = count_members(seasons)
    assert 3 <= len(members) <= 7
    assert len(set(members)) == len(members)
    assert any(not member.difference and not member.logarithm and member.lags == (1,) for member in members)
