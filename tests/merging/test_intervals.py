"""Merged limits of adaptive intervals: those of all rows, in one round and in several."""

import copy
from typing import Any

import numpy as np
import pytest

from onepass import BayesianPerceptronRegressor, merge
from onepass.merging import Rounds

RNG = np.random.default_rng(0)
N = 8000
X = RNG.normal(size=(N, 2))
Y = X.sum(axis=1) + RNG.laplace(size=N)  # far from a Gaussian's shape
PARTS = np.split(np.arange(400, N), 4)


def prior() -> BayesianPerceptronRegressor:
    return BayesianPerceptronRegressor(intervals="adaptive").fit(X[:400], Y[:400])


@pytest.mark.parametrize("rounds", [1, 2])
def test_merged_limits_hold(rounds: int) -> None:
    start = prior()
    if rounds == 1:
        merged = merge(start, [copy.deepcopy(start).partial_fit(X[part], Y[part]) for part in PARTS])
    else:
        steps = Rounds(start, len(PARTS))
        for _ in range(rounds):
            starts: list[Any] = steps.starts()
            steps.take([model.partial_fit(X[part], Y[part]) for model, part in zip(starts, PARTS, strict=True)])
        merged = steps.merged()
    assert merged.n_seen_ == N
    trackers = merged._learner.state.trackers
    assert trackers[0].total == pytest.approx(N)
    rng = np.random.default_rng(1)
    new = rng.normal(size=(20_000, 2))
    y = new.sum(axis=1) + rng.laplace(size=len(new))
    plain = merged.predict_dist(new).with_tracked(None)
    for level in (0.5, 0.8, 0.95):
        low, high = merged.predict_interval(new, level)
        assert ((low <= y) & (y <= high)).mean() == pytest.approx(level, abs=0.06)  # ends move by steps
    low, high = plain.interval(0.5)
    assert ((low <= y) & (y <= high)).mean() > 0.58, "the plain interval would do"


def test_limits_are_means_by_the_rows_since_the_prior() -> None:
    start = prior()
    models = [copy.deepcopy(start).partial_fit(X[400:stop], Y[400:stop]) for stop in (500, 700)]
    merged = merge(start, models)
    ends = [model._learner.state.trackers[0].ends for model in models]
    np.testing.assert_allclose(merged._learner.state.trackers[0].ends, 0.25 * ends[0] + 0.75 * ends[1])
