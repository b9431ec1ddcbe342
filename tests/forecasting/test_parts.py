"""A fleet in parts: its series learn apart, and share what one fleet's would."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

import onepass
from onepass.forecasting import ForecastingFleet, Member, sampled
from onepass.models.fleet.keys import as_keys, parts_of
from tests.forecasting.test_fleet import fleet, rows, same


def learned_in_parts(n_parts: int, y: np.ndarray, keys: np.ndarray, ends: Sequence[int]) -> ForecastingFleet:
    """A fleet that was in so many parts, which shared after so many values."""
    parts, part_of = fleet().split(n_parts), parts_of(as_keys(keys, len(keys)), n_parts)
    for start, stop in zip([0, *ends], [*ends, len(y)], strict=False):
        for number, part in enumerate(parts):
            own = start + np.flatnonzero(part_of[start:stop] == number)
            part.learn(y[own], keys=keys[own])
        asked = sampled([len(part) for part in parts])
        contributions = [part.contribution(own) for part, own in zip(parts, asked, strict=True)]
        for part in parts:
            part.share(contributions)
    return parts[0].join(parts[1:])


def test_means_do_not_depend_on_the_number_of_parts() -> None:
    y, keys = rows(30, 60)
    whole, ends = learned_in_parts(1, y, keys, [300, 600, 1200]), [300, 600, 1200]
    assert whole.export_state()[1]["priors"].any()
    for n_parts in (3, 40):  # some of the 40 have no series
        joined = learned_in_parts(n_parts, y, keys, ends)
        assert set(joined.keys) == set(whole.keys)
        assert joined.n_seen == whole.n_seen
        for key in (0, 17, 29):
            np.testing.assert_allclose(joined.forecast(4, key=key).mean, whole.forecast(4, key=key).mean, rtol=1e-9)


def test_intervals_are_about_as_wide_in_parts_as_in_one_fleet() -> None:
    y, keys = rows(60, 100)
    whole, joined = (learned_in_parts(n, y, keys, range(256, len(y), 1000)) for n in (1, 4))
    widths = [
        [np.diff(own.forecast(4, key=key).interval(0.95), axis=0) for key in range(60)] for own in (joined, whole)
    ]
    assert abs(np.log(np.mean(widths[0]) / np.mean(widths[1]))) < 0.05


def test_a_fleet_that_was_split_and_joined_goes_on_as_before() -> None:
    y, keys = rows(20, 40)
    whole = fleet().learn(y[:500], keys=keys[:500])
    first, *others = whole.split(3)
    joined = first.join(others)
    assert sum(part.n_seen for part in whole.split(3)) == joined.n_seen == 500
    for key in range(20):
        np.testing.assert_array_equal(joined.forecast(4, key=key).cov, whole.forecast(4, key=key).cov)
    for own in (joined, whole):  # of which the order of series is another one
        own.learn(y[500:], keys=keys[500:])
    for key in range(20):
        np.testing.assert_allclose(joined.forecast(4, key=key).cov, whole.forecast(4, key=key).cov, rtol=1e-9)


def test_a_part_keeps_its_prior_until_it_is_asked_to_share(tmp_path: Path) -> None:
    y, keys = rows(20, 40)
    (part,) = fleet().split(1)
    part.learn(y, keys=keys)
    onepass.save(part, tmp_path / "part.onepass")
    loaded = onepass.load(tmp_path / "part.onepass")
    assert not part.export_state()[1]["priors"].any()
    for own in (part, loaded):
        own.share([own.contribution()])
        assert not own.export_state()[1]["priors"].any()
        own.share([own.contribution(range(20))])
    assert part.export_state()[1]["priors"].any()
    same(part, loaded)


def test_what_does_not_belong_together_is_refused_and_changes_nothing() -> None:
    y, keys = rows(20, 40)
    whole = fleet().learn(y, keys=keys)
    with pytest.raises(ValueError, match=r"only a part .* see ForecastingFleet\.split"):
        whole.share([])
    first, second = whole.split(2)
    with pytest.raises(ValueError, match="contributions must be those of all parts"):
        first.share([])
    first.learn(y[:200], keys=first.keys[:5] * 40)
    with pytest.raises(ValueError, match="use share first"):
        first.join([second])
    with pytest.raises(ValueError, match="make them with split"):
        second.join(ForecastingFleet(1, 4, members=[Member((1,))]).split(1))
    with pytest.raises(ValueError, match="keys of a fleet must differ"):
        second.join([second])
    given = [first.contribution(), second.contribution()]
    before = second.export_state()[1]["sizing"]
    first.share(given)
    with pytest.raises(ValueError, match="since they shared last"):
        second.share([first.contribution(), second.contribution()])
    np.testing.assert_array_equal(second.export_state()[1]["sizing"], before)
    assert len(first.join([second.share(given)])) == 20


def test_what_cannot_be_divided_is_refused() -> None:
    with pytest.raises(ValueError, match="accepts revisions can't be split"):
        ForecastingFleet(1, revisions=2).split(2)
    with pytest.raises(TypeError, match="all integers or all strings"):
        fleet().learn([1.0, 2.0], keys=["a", 1]).split(2)
    with pytest.raises(ValueError, match="n_parts"):
        fleet().split(0)
