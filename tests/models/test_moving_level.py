"""A level that moves: the filter is the Gaussian process it stands for, and predicts no more than is known."""

import numpy as np
import pytest
from scipy.special import logsumexp
from scipy.stats import multivariate_t

from onepass._typing import FloatArray
from onepass.models import moving_level
from onepass.models.moving_level import MovingLevels

PRIOR = np.array([16.0, 0.5, 2.0])


def data(n: int, level: str = "walk", seed: int = 0) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Times with gaps and repeats, rows after a 1, and targets around a level."""
    rng = np.random.default_rng(seed)
    times = np.cumsum(rng.choice([0.0, 1.0, 1.0, 7.5], n))
    rows = np.column_stack([np.ones(n), rng.normal(size=(n, 2))])
    walk = np.cumsum(rng.normal(size=n) * np.sqrt(np.diff(times, prepend=times[0])))
    moving = {"walk": walk, "none": np.zeros(n)}[level]
    return times, rows, rows @ [0.5, 1.0, -1.0] + moving + 0.5 * rng.normal(size=n)


def covariance(hypothesis: tuple[float, float, float], times: FloatArray, rows: FloatArray, step: float) -> FloatArray:
    """Covariance of targets over the noise's variance, as the module's docstring has the model."""
    walk, steps, returning = hypothesis
    apart = np.abs(times[:, None] - times[None])
    since = np.minimum(times[:, None], times[None]) - times[0]
    level = returning * np.exp(-apart / (steps * step)) + walk / step * since
    return np.asarray(rows * (PRIOR / 0.1) @ rows.T + level + np.eye(len(times)))


def test_weights_and_level_are_learned_as_the_gaussian_process_that_they_are() -> None:
    step, n = 2.0, 40
    times, rows, targets = data(n + 5)
    model = MovingLevels(PRIOR, 0.1, step)
    model.learn(times[:n], rows[:n], targets[:n])
    seen = model.predict(times[n:], rows[n:])
    evidence = []
    for k, hypothesis in enumerate(moving_level._HYPOTHESES):
        whole = covariance(hypothesis, times, rows, step)
        known, cross = whole[:n, :n], whole[n:, :n]
        first = 0.1 / (1.0 + hypothesis[2])  # of the noise's variance
        density = multivariate_t(np.zeros(n), first * known, df=4)
        evidence.append(density.logpdf(targets[:n]))
        np.testing.assert_allclose(seen.mean[k], cross @ np.linalg.solve(known, targets[:n]), rtol=1e-7, atol=1e-8)
        noise = (4.0 * first + targets[:n] @ np.linalg.solve(known, targets[:n])) / (4.0 + n - 2.0)
        left = np.diag(whole[n:, n:] - cross @ np.linalg.solve(known, cross.T)) - 1.0
        np.testing.assert_allclose(seen.noise_var[k], noise, rtol=1e-7)
        np.testing.assert_allclose(seen.var[k], noise * left, rtol=1e-6)
    own = model.state.evidence - model.state.evidence.max()
    np.testing.assert_allclose(own, np.array(evidence) - max(evidence), atol=1e-6)
    odds = logsumexp(evidence[1:]) - np.log(len(evidence) - 1) - evidence[0]
    np.testing.assert_allclose(model.level_probability, 1.0 / (1.0 + np.exp(-odds)), rtol=1e-9)


def test_a_row_of_weight_two_is_two_rows_of_one_time() -> None:
    times, rows, targets = data(30)
    weighted, repeated = MovingLevels(PRIOR, 0.1, 1.0), MovingLevels(PRIOR, 0.1, 1.0)
    weighted.learn(times, rows, targets, np.full(30, 2.0))
    twice = np.repeat(np.arange(30), 2)
    repeated.learn(times[twice], rows[twice], targets[twice])
    np.testing.assert_allclose(weighted.weights, repeated.weights, atol=1e-9)
    for one, other in zip(weighted.predict(times, rows), repeated.predict(times, rows), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-6)


def test_any_split_of_the_rows_gives_the_same_posterior() -> None:
    times, rows, targets = data(60)
    whole, parts = MovingLevels(PRIOR, 0.1, 1.0), MovingLevels(PRIOR, 0.1, 1.0)
    whole.learn(times, rows, targets)
    for part in np.split(np.arange(60), [1, 17, 18, 40]):
        parts.learn(times[part], rows[part], targets[part])
    for name, array in whole.to_arrays().items():
        np.testing.assert_array_equal(array, parts.to_arrays()[name])


def test_the_last_residual_counts_right_after_it_and_intervals_widen_from_there() -> None:
    times = np.arange(300.0)
    walk = np.cumsum(np.random.default_rng(1).normal(size=300))
    model = MovingLevels(np.array([16.0]), 0.1, 1.0)
    model.learn(times, np.ones((300, 1)), walk)
    mean, var, noise = model.predict(np.array([299.0, 300.0, 310.0, 400.0, 700.0]), np.ones((5, 1))).moments()
    std = np.sqrt(var + noise)
    assert abs(mean[1] - walk[-1]) < 1.0
    assert (np.diff(std) > 0.0).all()
    assert std[1] < 2.0  # in truth 1, and 10 after a hundred steps
    assert 5.0 < std[3] < 20.0


def test_independent_rows_leave_no_level_and_intervals_that_do_not_widen() -> None:
    times, rows, targets = data(500, "none")
    model = MovingLevels(PRIOR, 0.1, 1.0)
    model.learn(times, rows, targets)
    assert model.level_probability < 0.2
    _, var, noise = model.predict(times[-1] + np.array([1.0, 500.0]), rows[[0, 0]]).moments()
    near, far = np.sqrt(var + noise)
    assert far / near < 1.15
    assert near == pytest.approx(0.5, rel=0.15)


def test_an_earlier_time_is_as_uncertain_as_one_equally_far_ahead() -> None:
    times, rows, targets = data(50)
    model = MovingLevels(PRIOR, 0.1, 1.0)
    model.learn(times, rows, targets)
    before, after = (model.predict(times[-1:] + sign * 20.0, rows[:1]) for sign in (-1.0, 1.0))
    np.testing.assert_array_equal(before.var, after.var)


def test_a_row_that_comes_late_tells_less_of_the_level_and_no_less_of_the_weights() -> None:
    times, rows, targets = data(50)
    found = {}
    for late in (0.0, 1000.0):
        model = MovingLevels(PRIOR, 0.1, 1.0)
        model.learn(times, rows, targets)
        before = model.predict(times[-1:], rows[-1:]).moments()[0]
        model.learn(times[-1:] - late, rows[-1:], targets[-1:] + 5.0)
        found[late] = abs(float((model.predict(times[-1:], rows[-1:]).moments()[0] - before)[0]))
        assert model.last_time == times[-1]
    assert found[1000.0] < 0.2 * found[0.0]


def test_an_absurd_target_is_set_aside_unless_more_follow() -> None:
    times, rows, targets = data(60)
    model, wild = MovingLevels(PRIOR, 0.1, 1.0), targets.copy()
    wild[40] = 1e9
    found = model.learn(times, rows, wild)
    assert [row.set_aside for row in found].index(True) == 40
    assert model.n_set_aside == 1
    assert np.isfinite(found[40].log_density)
    assert abs(found[41].mean) < 100.0
    ahead = times[-1] + 1.0 + np.arange(40.0)
    shifted = model.learn(ahead, rows[:40], np.full(40, 1e6))
    assert not shifted[-1].set_aside


def test_a_call_that_is_interrupted_leaves_nothing_learned() -> None:
    times, rows, targets = data(20)
    model = MovingLevels(PRIOR, 0.1, 1.0)
    model.learn(times[:10], rows[:10], targets[:10])
    before = model.to_arrays()
    with pytest.raises(ValueError, match="zip"):
        model.learn(times[10:], rows[10:19], targets[10:])
    for name, array in model.to_arrays().items():
        np.testing.assert_array_equal(array, before[name])
