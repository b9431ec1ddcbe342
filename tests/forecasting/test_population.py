"""The common prior is the mean and covariance of what the series have shown."""

import numpy as np

from onepass.engine.forecasting import ForecastWorkspace, posterior_weights
from onepass.forecasting.population import learn_priors, next_sharing, sampled, sharing_steps, weights_of
from tests.engine.test_forecasting import Series
from tests.engine.test_lag_sums import plan


def test_priors_are_the_moments_of_the_weights() -> None:
    own = plan()
    work, records = ForecastWorkspace(own, own.horizon), []
    for seed in range(12):
        series = Series(own)
        series.learn(60.0 + np.cumsum(np.random.default_rng(seed).normal(size=60)))
        records.append(series.record[0])
    shrinkage = [1.0, 0.5, 0.0]
    asked = [
        weights_of(own, np.array(part), shrinkage, own.empty_priors(), work) for part in (records[:5], records[5:])
    ]
    found = learn_priors(own, shrinkage, asked)
    _, p, at = own.tier_places(1)[1]
    beliefs = [posterior_weights(own, one, 1, 1, own.empty_priors(), work) for one in records]
    weights = np.array([belief[0] for belief in beliefs if belief is not None])
    cov = 0.5 * (np.cov(weights.T) + np.mean([belief[1] for belief in beliefs if belief is not None], axis=0))
    cov = 0.9 * cov + 0.1 * np.diag(np.diag(cov)) + 1e-6 * np.eye(p)
    assert found[at] == 1.0
    np.testing.assert_allclose(found[at + 1 : at + 1 + p], weights.mean(axis=0))
    np.testing.assert_allclose(found[at + 1 + p : at + 1 + p + p * p].reshape(p, p) @ cov, np.eye(p), atol=1e-6)
    assert not any(found[place] for _, _, place in own.tier_places(2))


def test_series_that_say_little_leave_the_prior_as_wide_as_their_weights_vary() -> None:
    own, rng = plan(), np.random.default_rng(0)
    work, records = ForecastWorkspace(own, own.horizon), []
    for _ in range(300):
        changes, weight = rng.normal(size=40), rng.normal(0.0, 0.25)
        for t in range(1, len(changes)):
            changes[t] += weight * changes[t - 1]
        series = Series(own)
        series.learn(60.0 + np.cumsum(changes))
        records.append(series.record[0])
    found = own.empty_priors()
    for _ in range(20):
        found = learn_priors(own, [1.0] * 3, [weights_of(own, np.array(records), [1.0] * 3, found, work)])
    _, p, at = own.tier_places(1)[0]
    variance = np.linalg.inv(found[at + 1 + p : at + 1 + p + p * p].reshape(p, p))[0, 0]
    assert 0.17 < np.sqrt(variance) < 0.3  # from the means alone it shrinks to nothing


def test_few_series_have_no_common_prior() -> None:
    own = plan()
    asked = weights_of(own, np.zeros((3, own.size)), [1.0] * 3, own.empty_priors(), ForecastWorkspace(own, 5))
    assert not learn_priors(own, [1.0] * 3, [asked]).any()


def test_no_more_series_are_asked_than_needed() -> None:
    (asked,) = sampled([100_000])
    assert len(asked) == 400
    np.testing.assert_array_equal(sampled([3])[0], [0, 1, 2])


def test_parts_are_asked_for_the_series_that_one_fleet_would_ask() -> None:
    lengths = [700, 0, 1, 299]
    parts, (whole,) = sampled(lengths), sampled([sum(lengths)])
    starts = [0, 700, 700, 701]
    np.testing.assert_array_equal(np.concatenate([own + at for own, at in zip(parts, starts, strict=True)]), whole)
    assert [len(own) for own in sampled([0, 0])] == [0, 0]


def test_series_share_when_there_are_30_percent_more_values() -> None:
    due, found = 0, []
    while due < 1000:
        due = next_sharing(due)
        found.append(due)
    assert found == [256, 333, 433, 563, 732, 952, 1238]
    assert sharing_steps(0, [1] * 1000) == [n - 1 for n in found[:-1]]
    assert sharing_steps(300, [10_000, 1, 4000]) == [0, 2]
    assert sharing_steps(300, []) == []
