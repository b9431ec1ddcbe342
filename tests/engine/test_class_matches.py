"""The moment match of classes against brute force, and what must hold of it for any belief."""

import numpy as np
import pytest
from benchmarks.classes import Logits, exact_logits, matched_logits
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import log_softmax

from onepass._typing import FloatArray
from onepass.engine.class_matches import CategoricalOutputs
from onepass.engine.vector_matches import NetworkProgress, OutputMatch
from onepass.likelihoods import Bernoulli, Categorical
from tests.helpers.classes import error, sampled_logits


def match_class(mean: FloatArray, cov: FloatArray, label: int) -> OutputMatch:
    state = NetworkProgress.start(len(mean), None, False)
    return Categorical().outputs(len(mean)).moment_match(mean, cov, np.array([label]), state)


@pytest.mark.parametrize(
    ("n", "std"), [(n, std) for n in (3, 10, 20) for std in (0.1, 0.35, 0.8, 1.1, 2.0, 5.0)] + [(100, 2.0), (100, 5.0)]
)
def test_independent_logits_are_matched_to_a_ten_thousandth_of_a_deviation(n: int, std: float) -> None:
    rng = np.random.default_rng(n)
    mean, var = (1.0 + std) * rng.normal(size=n), std**2 * rng.uniform(0.5, 1.5, n)
    for label in (int(mean.argmax()), int(mean.argmin())) if n == 3 else (0,):
        exact = exact_logits(mean, var, label)
        assert (error(exact, matched_logits(mean, np.diag(var), label)) < 1e-4).all()


@pytest.mark.parametrize(("std", "gap"), [(0.2, 30.0), (1.2, 12.0), (3.0, 60.0)])
def test_a_label_against_all_belief_is_matched_as_well(std: float, gap: float) -> None:
    mean, var = np.array([-gap, 0.0, 0.5, -1.0]), std**2 * np.array([1.0, 0.8, 1.2, 1.0])
    exact = exact_logits(mean, var, 0)
    assert (error(exact, matched_logits(mean, np.diag(var), 0)) < 1e-3).all()


@pytest.mark.parametrize("stds", [(0.2, 20.0, 3.6), (24.0, 2.0, 16.0), (0.01, 7.0, 0.2)])
def test_logits_of_very_different_scales(stds: tuple[float, ...]) -> None:
    mean, std = np.array([0.2, -1.0, 3.0]), np.array(stds)
    draws = mean + std * np.random.default_rng(0).normal(size=(400_000, 3))
    expected = np.exp(log_softmax(draws, axis=1)).mean(axis=0)
    ours = [match_class(mean, np.diag(std**2), label).log_density for label in range(3)]
    np.testing.assert_allclose(np.exp(ours), expected, atol=3e-3)
    np.testing.assert_allclose(np.exp(ours).sum(), 1.0, atol=1e-3)


@pytest.mark.parametrize(("n", "std", "near"), [(5, 0.7, 0.02), (10, 2.0, 0.1), (10, 5.0, 0.1), (20, 5.0, 0.1)])
def test_correlated_logits_are_matched_to_a_tenth_of_a_deviation(n: int, std: float, near: float) -> None:
    rng = np.random.default_rng(11)
    for _ in range(3):
        mean, root = 0.7 * std * rng.normal(size=n), std * rng.normal(size=(n, n)) / np.sqrt(n)
        cov = root @ root.T
        label = int(rng.integers(n))
        ours = matched_logits(mean, cov, label)
        assert error(sampled_logits(mean, cov, label, ours), ours)[1:].max() < near


def test_two_classes_are_one_label() -> None:
    mean, cov = np.array([0.4, -1.0]), np.array([[2.0, 0.5], [0.5, 3.0]])
    for label in (0, 1):
        ours = match_class(mean, cov, label)
        state = NetworkProgress.start(1, None, False)
        exact = Bernoulli().outputs(1).moment_match(np.array([-1.4]), np.array([[4.0]]), np.array([label]), state)
        assert ours.log_density == pytest.approx(exact.log_density, abs=1e-12)
        for found, alone in ((ours.score, exact.score), (ours.shift, exact.shift)):
            np.testing.assert_allclose(found, [-alone[0], alone[0]], atol=1e-12)
        for found, alone in ((ours.information, exact.information), (ours.precision, exact.precision)):
            np.testing.assert_allclose(found, alone[0, 0] * np.array([[1.0, -1.0], [-1.0, 1.0]]), atol=1e-12)
    record = Categorical().outputs(2).records(mean[None], cov[None], NetworkProgress.start(2, None, False))
    np.testing.assert_allclose(record[0, :2], [[1.4, -1.4], [4.0, 4.0]], atol=1e-7)


def test_a_third_class_that_cannot_be_leaves_two() -> None:
    mean, cov = np.array([0.4, -1.0, -200.0]), np.diag([2.0, 3.0, 1.0])
    ours, two = match_class(mean, cov, 0), match_class(mean[:2], cov[:2, :2].copy(), 0)
    assert ours.log_density == pytest.approx(two.log_density, abs=1e-6)
    np.testing.assert_allclose(ours.score[:2], two.score, atol=1e-6)
    np.testing.assert_allclose(ours.information[:2, :2], two.information, atol=1e-6)


@pytest.mark.parametrize("std", [0.1, 0.9, 1.2, 4.0])
@pytest.mark.parametrize("n", [3, 10, 100])
def test_probabilities_sum_to_one_and_are_those_predicted(n: int, std: float) -> None:
    rng = np.random.default_rng(n)
    root = std * rng.normal(size=(n, n)) / np.sqrt(n)
    mean, cov = (1.0 + std) * rng.normal(size=n), root @ root.T
    each = np.array([match_class(mean, cov, label).log_density for label in range(n)])
    assert np.exp(each).sum() == pytest.approx(1.0, abs=5e-6)
    predicted = CategoricalOutputs(n).log_probabilities(mean, cov)
    assert np.exp(predicted).sum() == pytest.approx(1.0, abs=1e-12)
    np.testing.assert_allclose(np.exp(predicted), np.exp(each), atol=5e-6)


def test_a_number_added_to_all_logits_changes_nothing() -> None:
    rng = np.random.default_rng(4)
    root = rng.normal(size=(6, 6))
    mean, cov, common = rng.normal(size=6), root @ root.T, rng.normal(size=6)
    moved = cov + np.add.outer(common, common) + 50.0
    ours, shifted = match_class(mean, cov, 2), match_class(mean + 7.0, moved, 2)
    assert shifted.log_density == pytest.approx(ours.log_density, abs=1e-9)
    np.testing.assert_allclose(shifted.precision, ours.precision, atol=1e-9)
    for match in (ours, shifted):
        assert abs(match.score.sum()) < 1e-12
        np.testing.assert_allclose(match.information.sum(axis=0), 0.0, atol=1e-12)


@st.composite
def beliefs(draw: st.DrawFn) -> tuple[FloatArray, FloatArray, int]:
    """Means, a root of the covariance and a label; correlated, near singular or of many scales."""
    n = draw(st.sampled_from([2, 3, 4, 7, 12, 30, 100]))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    root = rng.normal(size=(n, draw(st.integers(1, n)))) * 10.0 ** draw(st.floats(-6.0, 3.0))
    root *= 10.0 ** rng.uniform(-draw(st.floats(0.0, 3.0)), 0.0, (n, 1))
    root /= np.sqrt(root.shape[1])
    mean = rng.normal(size=n) * 10.0 ** draw(st.floats(-2.0, 4.0))
    return mean, root, draw(st.integers(0, n - 1))


@given(beliefs())
@settings(max_examples=300, deadline=None)
def test_no_label_leaves_less_than_a_covariance(belief: tuple[FloatArray, FloatArray, int]) -> None:
    mean, root, label = belief
    cov = root @ root.T
    match = match_class(mean, cov, label)
    assert all(np.isfinite(part).all() for part in match)
    assert match.log_density < 0.01
    taken = np.linalg.eigvalsh(root.T @ match.information @ root)
    assert taken[0] > -1e-8
    assert taken[-1] < 1.0
    known = np.linalg.eigvalsh(match.precision)
    assert known[0] > -1e-9 * max(1.0, known[-1])
    # The site makes the step.
    shrink = np.eye(len(mean)) + match.precision @ cov
    size = 1e-6 * max(1.0, np.abs(shrink).max())
    np.testing.assert_allclose(shrink @ match.information, match.precision, atol=size)
    np.testing.assert_allclose(shrink @ match.score, match.shift, atol=size * max(1.0, np.abs(match.shift).max()))


def separate_match(
    mean: FloatArray, var: FloatArray, label: int, outliers: float = 0.0
) -> tuple[float, FloatArray, FloatArray]:
    state = NetworkProgress.start(len(mean), None, False, outliers)
    return CategoricalOutputs(len(mean)).separate_match(mean, var, np.array([float(label)]), state)


@pytest.mark.parametrize(("n", "scale", "std"), [(4, 6.0, 0.1), (20, 4.0, 0.3), (20, 6.0, 1.3), (40, 4.0, 0.8)])
@pytest.mark.parametrize("rank", [0, 1, -1], ids=["expected", "second", "last"])
def test_faint_classes_together_are_matched_as_each_alone(n: int, scale: float, std: float, rank: int) -> None:
    """Against trapezoidal rules over each logit; the last class is one that nobody expected."""
    rng = np.random.default_rng(n)
    mean, var = scale * rng.normal(size=n), std**2 * rng.uniform(0.5, 1.5, n)
    label = int(np.argsort(-mean)[rank])
    log_z, score, information = separate_match(mean, var, label)
    exact = exact_logits(mean, var, label)
    ours = Logits(log_z, mean + var * score, np.diag(var - var**2 * information))
    assert abs(score.sum()) < 1e-12 * n
    assert (error(exact, ours) < 1e-4).all()


@pytest.mark.parametrize("outliers", [0.0, 0.1])
@pytest.mark.parametrize("n", [2, 3, 30])
def test_the_own_information_is_the_diagonal_of_all(n: int, outliers: float) -> None:
    rng = np.random.default_rng(5)
    for std in (0.1, 0.7, 3.0):
        mean, var = 3.0 * rng.normal(size=n), std**2 * rng.uniform(0.5, 1.5, n)
        state, label = NetworkProgress.start(n, None, False, outliers), np.array([float(rng.integers(n))])
        joint = CategoricalOutputs(n).moment_match(mean, np.diag(var), label, state)
        log_z, score, information = separate_match(mean, var, int(label[0]), outliers)
        assert log_z == pytest.approx(joint[0], rel=1e-9)
        np.testing.assert_allclose(score, joint[1], rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(information, np.diag(joint[2]), rtol=1e-9, atol=1e-12)


def test_classes_that_are_all_faint_but_alike_have_equal_probabilities() -> None:
    n = 60
    log_p = CategoricalOutputs(n).log_probabilities(np.zeros(n), np.diag(np.full(n, 0.01)))
    np.testing.assert_allclose(np.exp(log_p), 1.0 / n, rtol=1e-6)
    assert separate_match(np.zeros(n), np.full(n, 0.01), 7)[0] == pytest.approx(log_p[7], abs=1e-6)
