"""The probability that each of several Gaussian scores is the highest: against other ways to the same numbers."""

from typing import Any

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import log_ndtr, ndtr

from onepass._typing import FloatArray
from onepass.decisions import propensities
from onepass.decisions.propensities import best_probabilities

CASES: list[tuple[list[float], list[float]]] = [
    ([0.0, 0.0], [1.0, 1.0]),
    ([0.0, 1.0, 1.0], [1.0, 1.0, 0.001]),
    ([0.3, 0.2, -1.0, 0.25], [0.01, 0.1, 1.0, 0.001]),
    ([1e-3, 0.0], [1e-6, 1e-3]),
]


def _best(means: Any, stds: Any) -> FloatArray:
    return best_probabilities(np.array(means, dtype=float), np.array(stds, dtype=float))


def _by_mpmath(means: list[float], stds: list[float], k: int) -> float:
    """The integral over the quantile of one arm, in which no density is narrow."""

    def others_below(t: Any) -> Any:
        return mpmath.fprod(mpmath.ncdf(t, m, s) for j, (m, s) in enumerate(zip(means, stds, strict=True)) if j != k)

    def integrand(z: Any) -> Any:
        return mpmath.npdf(z) * others_below(means[k] + stds[k] * z)

    steps = [(m + i * s - means[k]) / stds[k] for m, s in zip(means, stds, strict=True) for i in (-4, -1, 1, 4)]
    points = sorted({-9.0, 0.0, 9.0, *(z for z in steps if abs(z) < 9.0)})
    with mpmath.workdps(20):
        return float(mpmath.quad(integrand, points, maxdegree=6))


def _by_trapezoid(means: FloatArray, stds: FloatArray) -> FloatArray:
    """On a grid that is dense near every arm."""
    steps = np.linspace(-9.0, 9.0, 4001)
    t = np.unique((means + stds * steps[:, None]).ravel())
    z = (t[:, None] - means) / stds
    below, found = log_ndtr(z), []
    for k, std in enumerate(stds):
        density = np.exp(np.delete(below, k, axis=1).sum(axis=1) - 0.5 * z[:, k] ** 2) / (std * np.sqrt(2.0 * np.pi))
        found.append(np.trapezoid(density, t))
    return np.array(found)


@pytest.mark.parametrize(("means", "stds"), CASES)
def test_they_are_those_of_quadrature_in_high_precision(means: list[float], stds: list[float]) -> None:
    expected = [_by_mpmath(means, stds, k) for k in range(len(means))]
    assert sum(expected) == pytest.approx(1.0, abs=1e-9)
    np.testing.assert_allclose(_best(means, stds), expected, rtol=0, atol=2e-8)


@pytest.mark.parametrize("seed", range(12))
def test_they_are_those_of_a_dense_grid_whatever_the_deviations(seed: int) -> None:
    """Up to ten arms, whose deviations differ by a factor of up to 1,000; some have the same mean."""
    rng = np.random.default_rng(seed)
    n_arms = int(rng.integers(2, 11))
    stds = 10.0 ** rng.uniform(-3.0, 0.0, n_arms)
    means = rng.choice([0.0, 0.01, 0.3, 1.0]) * rng.normal(size=n_arms)
    means[-1] = means[0]
    np.testing.assert_allclose(_best(means, stds), _by_trapezoid(means, stds), rtol=0, atol=1e-6)


@pytest.mark.parametrize("gap", [0.0, 1e-9, 0.5, 3.0, 12.0])
@pytest.mark.parametrize("stds", [(1.0, 1.0), (1.0, 1e-3), (1e-4, 2.0), (0.7, 0.0)])
def test_of_two_arms_they_have_a_closed_form(gap: float, stds: tuple[float, float]) -> None:
    first = ndtr(gap / np.hypot(*stds))
    np.testing.assert_allclose(_best([gap, 0.0], stds), [first, 1.0 - first], rtol=0, atol=3e-8)


def test_of_a_thousand_arms_they_are_the_frequencies_of_being_the_highest() -> None:
    rng = np.random.default_rng(0)
    means, stds = rng.normal(0.0, 0.3, size=1000), rng.uniform(0.05, 1.0, size=1000)
    found, n = best_probabilities(means, stds), 20_000
    assert found.sum() == pytest.approx(1.0, abs=1e-12)
    drawn = [np.argmax(means + stds * rng.standard_normal((1000, 1000)), axis=1) for _ in range(n // 1000)]
    counts = np.bincount(np.concatenate(drawn), minlength=1000)
    many = found > 5.0 / n
    expected = np.append(n * found[many], n * found[~many].sum())
    seen = np.append(counts[many], counts[~many].sum())
    squares = ((seen - expected) ** 2 / expected).sum()
    assert abs(squares - len(expected)) < 5.0 * np.sqrt(2.0 * len(expected))  # chi-square
    np.testing.assert_allclose(_best(np.zeros(1000), np.full(1000, 2.0)), 1e-3, rtol=1e-9)


def test_scores_that_are_known() -> None:
    np.testing.assert_array_equal(_best([1.0, 2.0, 2.0], [0.0, 0.0, 0.0]), [0.0, 0.5, 0.5])
    np.testing.assert_array_equal(_best([3.0], [0.0]), [1.0])
    np.testing.assert_array_equal(_best([0.0, 1e-12], [0.0, 0.0]), [0.0, 1.0])
    below = ndtr(0.5)  # the highest of the known ones against one that is not
    np.testing.assert_allclose(_best([0.5, 0.5, 0.4, 0.0], [0.0, 0.0, 0.0, 1.0]), [below / 2, below / 2, 0, 1 - below])


@pytest.mark.parametrize("shift", [0.0, -3.0, 1e6])
@pytest.mark.parametrize("scale", [1.0, 1e-9, 1e-290, 1e290])
def test_only_differences_in_units_of_the_deviations_count(shift: float, scale: float) -> None:
    means, stds = np.array([0.25, 0.5, -1.0]), np.array([0.125, 1.0, 2.0])
    np.testing.assert_allclose(_best(scale * (means + shift), scale * stds), _best(means, stds), rtol=0, atol=1e-7)


def test_an_arm_that_can_not_be_the_highest_changes_nothing() -> None:
    found = _best([0.0, 0.1, -50.0], [1.0, 0.5, 2.0])
    assert found[2] == 0.0
    np.testing.assert_array_equal(found[:2], _best([0.0, 0.1], [1.0, 0.5]))


_magnitudes = st.floats(1e-300, 1e300) | st.sampled_from([0.0, 1e-300, 1.0, 1e300])
_scores = st.tuples(_magnitudes, st.booleans(), _magnitudes).map(lambda one: (one[0] if one[1] else -one[0], one[2]))


@given(st.lists(_scores, min_size=1, max_size=6))
def test_wild_scores_have_probabilities_too(scores: list[tuple[float, float]]) -> None:
    means, stds = np.array(scores).T
    with np.errstate(all="raise", under="ignore"):
        found = best_probabilities(means, stds)
    assert (found >= 0.0).all()
    assert found.sum() == pytest.approx(1.0, abs=1e-12)
    order = np.argsort(means)
    if len(set(stds.tolist())) == 1:  # then the arm with the higher mean is the better one
        assert (np.diff(found[order]) >= -1e-7).all()


@given(st.integers(2, 6), st.integers(0, 2**32 - 1))
def test_the_order_of_arms_does_not_matter(n_arms: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    means, stds = rng.normal(size=n_arms), 10.0 ** rng.uniform(-6.0, 2.0, n_arms)
    order = rng.permutation(n_arms)
    np.testing.assert_allclose(_best(means[order], stds[order]), _best(means, stds)[order], rtol=0, atol=1e-12)


def test_the_grid_stays_small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Panels grow with the distance from narrow arms, so that their number depends on the ratio's logarithm only."""
    sizes = []
    original = propensities._grid

    def grid(*args: Any) -> Any:
        nodes, weights = original(*args)
        sizes.append(len(nodes))
        return nodes, weights

    monkeypatch.setattr(propensities, "_grid", grid)
    for std in (1.0, 1e-3, 1e-6, 1e-12, 0.0):
        _best([0.0, 0.1, 0.1], [1.0, std, 0.5])
    _best(np.linspace(-1.0, 1.0, 1000), np.geomspace(1e-3, 1.0, 1000))
    assert max(sizes) < 1500
    assert sizes[0] < 100
