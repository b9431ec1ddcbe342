"""Labels: moment matches against quadrature, and what must hold of them for any belief."""

import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from scipy.special import log_expit, log_ndtr

from onepass._typing import FloatArray
from onepass.activations import Activation, Probit, Sigmoid, Step, as_activation
from onepass.likelihoods import Bernoulli, Categorical
from onepass.likelihoods.mixtures import Components
from tests.helpers import quadrature
from tests.helpers.quadrature import worst_in_deviations


@pytest.mark.parametrize("label", [0.0, 1.0])
def test_exact_update_on_the_grid_of_section_five(label: float) -> None:
    for mean in np.arange(-30, 31) * 0.1:
        for var in np.arange(1, 11) * 0.2:
            truth = quadrature.tilted(lambda a: log_expit((2 * label - 1) * a), mean, var)
            step = Bernoulli().moment_match(Sigmoid(), mean, var, label)
            assert abs(mean + step.score * var - truth.mean) < 1e-7
            assert abs(var - step.information * var**2 - truth.var) < 1e-7
            assert step.log_z == pytest.approx(truth.log_z, abs=1e-7)


def label_likelihood(activation: Activation, label: float) -> Callable[[FloatArray], FloatArray]:
    sign = 2 * label - 1
    if isinstance(activation, Sigmoid):
        return lambda a: log_expit(sign * a)
    if isinstance(activation, Probit):
        return lambda a: log_ndtr(sign * a)
    return lambda a: np.where(sign * a > 0, 0.0, -1e30)


@pytest.mark.parametrize("label", [0.0, 1.0])
@pytest.mark.parametrize("activation", [Sigmoid(), Probit(), Step()], ids=str)
def test_labels_are_learned_exactly(activation: Activation, label: float) -> None:
    means, variances = np.linspace(-8, 8, 17), np.logspace(-4, 2, 13)
    likelihood = label_likelihood(activation, label)
    assert worst_in_deviations(Bernoulli(), activation, likelihood, label, means, variances, (0.0,)) < 1e-6


@pytest.mark.parametrize("activation", [Sigmoid(), Probit()], ids=str)
def test_labels_far_against_the_belief_are_learned_exactly(activation: Activation) -> None:
    means, variances = np.linspace(-40, -8, 9), np.logspace(-4, 1, 11)
    assert worst_in_deviations(Bernoulli(), activation, label_likelihood(activation, 1.0), 1.0, means, variances) < 1e-5


@pytest.mark.parametrize("activation", [Sigmoid(), Probit(), Step()], ids=str)
@given(mean=st.floats(-1e6, 1e6), var=st.floats(1e-12, 1e12), label=st.sampled_from([0.0, 1.0]))
@example(mean=-85940.0, var=4.0998516927123115e-07, label=1.0)  # the share kept is a rounding error
def test_labels_never_break_the_belief(activation: Activation, mean: float, var: float, label: float) -> None:
    step = Bernoulli().moment_match(activation, mean, var, label)
    assert np.isfinite([step.log_z, step.score, step.information]).all()
    assert step.log_z <= 1e-12
    assert step.score * (2 * label - 1) >= 0
    assert 0 <= step.information * var <= 1


@given(var=st.floats(1e-4, 1e6), label=st.sampled_from([0.0, 1.0]))
def test_a_label_surprises_the_more_the_more_it_is_against_the_belief(var: float, label: float) -> None:
    means = np.linspace(-2e3, 2e3, 401)
    step = Bernoulli().moment_match(Sigmoid(), means, var, label)
    assert (np.diff(step.log_z) * (2 * label - 1) >= -1e-9 * np.abs(step.log_z[1:])).all()
    assert (np.diff(np.abs(step.score)) * (2 * label - 1) <= 1e-6).all()


def test_a_label_has_the_variance_of_a_label_under_kalman() -> None:
    output = Sigmoid().moments(0.7, 1.3)
    step = Bernoulli().moment_match(Sigmoid(), 0.7, 1.3, 0.0, "kalman")
    total = output.mean * (1 - output.mean)
    assert float(step.score) == pytest.approx(float(-output.slope * output.mean / total))
    assert float(step.information) == pytest.approx(float(output.slope**2 / total))
    assert float(step.log_z) == pytest.approx(math.log(1 - output.mean))


def test_a_label_and_its_noise_have_the_variance_of_a_label() -> None:
    output = Sigmoid().moments(np.array([-2.0, 0.0, 3.0]), 1.5)
    total = output.var + Bernoulli().noise_var(output)
    np.testing.assert_allclose(total, output.mean * (1 - output.mean), rtol=1e-12)


@pytest.mark.parametrize("activation", [Sigmoid(), Probit()], ids=str)
def test_quantiles_are_those_of_drawn_probabilities(activation: Activation) -> None:
    drawn = activation(np.random.default_rng(0).normal(0.4, math.sqrt(2.0), 400_000))
    one, output = np.ones((1, 1)), activation.moments(0.4 * np.ones((1, 1)), 2.0)
    parts = Components(activation, one, output.mean, output.var, 0.4 * one, 2.0 * one, 0.0 * one, 0.0 * one)
    for level in (0.05, 0.5, 0.9):
        low, high = Bernoulli().interval(parts, level)
        assert (drawn < low).mean() == pytest.approx(0.5 - level / 2, abs=0.003)
        assert (drawn < high).mean() == pytest.approx(0.5 + level / 2, abs=0.003)


def test_what_is_no_label_or_class_is_refused_with_its_index() -> None:
    with pytest.raises(ValueError, match=r"labels 0 and 1 for observation='bernoulli', got 2 at index 1"):
        Bernoulli().check(np.array([0.0, 2.0]))
    with pytest.raises(ValueError, match=r"got 0.5 at index \(1, 0\)"):
        Bernoulli().check(np.array([[0.0, 1.0], [0.5, np.nan]]))
    Bernoulli().check(np.array([0.0, 1.0, np.nan]))  # which was not observed
    three = Categorical().outputs(3)
    for wrong in (3.0, -1.0, 0.5):
        with pytest.raises(ValueError, match=rf"labels 0 to 2, got {wrong:g} at index 1"):
            Categorical().as_targets([0.0, wrong], 2, False, three)
    with pytest.raises(ValueError, match="number of classes, at least 2, got 1"):
        Categorical().outputs(1)
    with pytest.raises(ValueError, match=r"needs an activation between 0 and 1.*got 'tanh'"):
        Bernoulli().check_activation(as_activation("tanh"))


def test_log_odds_between_two_classes_have_the_deviation_asked_for() -> None:
    std = Categorical().bias_std(3.0)
    assert std is not None
    assert math.sqrt(2 * std**2) == pytest.approx(3.0)
    assert Categorical().bias_std(None) is None
    assert Bernoulli().bias_std(3.0) == 3.0


def test_probabilities_of_classes_sum_to_one_and_those_of_known_outputs_are_the_softmax() -> None:
    mean = np.array([[0.3, -1.0, 2.0], [0.0, 0.0, 0.0]])
    np.testing.assert_allclose(Categorical().output_moments(Sigmoid(), mean, np.ones_like(mean)).mean.sum(axis=1), 1.0)
    odds = np.exp(mean)
    np.testing.assert_allclose(Categorical().response(mean), odds / odds.sum(axis=1, keepdims=True), rtol=1e-12)
