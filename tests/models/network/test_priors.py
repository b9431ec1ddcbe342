"""The weights of a network before the first row."""

from dataclasses import replace

import numpy as np
import pytest

from onepass.layers.layout import Layout
from onepass.models.network.priors import CLASSIFICATION, REGRESSION, PriorScales, choose_prior, start_weights

LAYOUT = Layout((4, 400, 3))


def start(prior: object, layout: Layout = LAYOUT, weights: float = 1.0, n_noise: int = 0) -> list[np.ndarray]:
    scales = PriorScales(np.asarray(weights), None)
    mean, variance = start_weights(layout, prior, scales, n_noise, np.random.default_rng(0))  # type: ignore[arg-type]
    return [*layout.layers(mean), *layout.layers(np.sqrt(variance))]


def test_means_and_deviations_have_the_sizes_of_the_prior() -> None:
    prior = replace(REGRESSION, few_inputs=1)
    first, last, first_std, last_std = start(prior)
    assert first[:, 1:].std() == pytest.approx(prior.weight_means / 2.0, rel=0.1)  # the root of four inputs
    assert first[:, 0].std() == pytest.approx(prior.bias_means / 2.0, rel=0.1)
    assert last[:, 1:].std() == pytest.approx(prior.output_means / 20.0, rel=0.1)
    assert np.unique(first_std[:, 1:]) == pytest.approx(prior.weight_std / 2.0)
    assert np.unique(last_std[:, 1:]) == pytest.approx(prior.output_std / 20.0)


def test_the_scale_multiplies_deviations_and_not_means() -> None:
    one, three = start(REGRESSION), start(REGRESSION, weights=3.0)
    for k in range(2):
        np.testing.assert_array_equal(one[k], three[k])
        np.testing.assert_allclose(3.0 * one[2 + k], three[2 + k])


def test_units_for_labels_cancel_in_pairs() -> None:
    first, last, *_ = start(CLASSIFICATION)
    np.testing.assert_array_equal(first[:200], first[200:])
    np.testing.assert_array_equal(last[:, 1:201], -last[:, 201:])


def test_without_hidden_layers_all_means_are_zero() -> None:
    mean, std = start(REGRESSION, Layout((4, 2)), weights=2.0)
    assert not mean.any()
    assert np.unique(std).tolist() == [2.0]


def test_outputs_of_noise_start_at_the_log_of_the_priors_and_do_not_follow_the_scale() -> None:
    _, last, _, last_std = start(REGRESSION, weights=3.0, n_noise=1)
    assert last[-1, 0] == np.log(REGRESSION.noise)
    assert not last[-1, 1:].any()
    assert last_std[-1, 0] == pytest.approx(REGRESSION.log_noise_bias_std)


def test_the_wider_the_layers_the_smaller_the_share_of_the_variance() -> None:
    shares = [choose_prior(False, Layout((4, units, 3)), wide=True).variance_share for units in (5, 100, 1000)]
    assert shares == [1.0, 0.1, 0.01]
    assert choose_prior(True, LAYOUT) is REGRESSION
    assert choose_prior(False, LAYOUT) is CLASSIFICATION
