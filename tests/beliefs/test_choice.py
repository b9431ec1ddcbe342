"""Which covariance a network gets: by name, by a form per layer, and by what rows may cost."""

from typing import Any

import numpy as np
import pytest

from onepass.beliefs.block import FullCovariance, NeuronBlocks
from onepass.beliefs.choice import (
    BELIEFS,
    belief_type,
    choose_covariance,
    count_numbers,
    register,
    start_belief,
)
from onepass.beliefs.layered import LayeredGaussian
from onepass.beliefs.names import COVARIANCES
from onepass.layers import Conv2D
from onepass.layers.layout import Layout

SMALL = Layout((3, 4, 2))


def layout_for(name: str) -> Layout:
    return Layout((3, 4, 1) if name == "low_rank" else (3, 4, 2), input_major=BELIEFS[name].input_major)


@pytest.mark.parametrize("name", COVARIANCES)
def test_every_covariance_is_found_by_its_name_and_has_its_numbers(name: str) -> None:
    layout = layout_for(name)
    kind = belief_type(name, layout)
    assert kind.name == name
    rng = np.random.default_rng(0)
    mean, variance = rng.normal(size=layout.size), np.ones(layout.size)
    belief = start_belief(name, layout, mean, variance)
    assert type(belief) is kind
    assert belief.values.size == count_numbers(name, layout)
    np.testing.assert_array_equal(belief.mean, mean)
    np.testing.assert_allclose(belief.marginal_variances(), variance)


def test_a_form_per_layer_is_a_layered_belief() -> None:
    belief = start_belief(("kronecker", "full"), SMALL, np.zeros(SMALL.size), np.ones(SMALL.size))
    assert isinstance(belief, LayeredGaussian)
    assert belief.values.size == count_numbers(["kronecker", "full"], SMALL)
    with pytest.raises(ValueError, match="covariance"):
        belief_type(("full",), SMALL)


def test_an_unknown_name_lists_the_known_ones() -> None:
    with pytest.raises(ValueError, match=r"covariance must be .*'auto'.*'kronecker'.*got 'block'"):
        belief_type("block", SMALL)


def test_auto_is_the_richest_that_is_not_too_slow() -> None:
    for sizes in [(2, 5, 1), (8, 50, 1), (100, 100, 1), (64, 100, 10), (784, 300, 10), (20, 10), (20, 100), (784, 10)]:
        layout = Layout(sizes)
        assert belief_type("auto", layout) is BELIEFS[choose_covariance(layout)]
    chosen = [choose_covariance(Layout((n, 20, 1))) for n in (10, 80, 110, 100_000)]
    assert chosen == ["full", "full", "low_rank", "diagonal"]
    assert choose_covariance(Layout(((8, 8), Conv2D(2, 3), 10))) == "kronecker"


def test_convolutions_have_no_covariance_of_separate_weights() -> None:
    with pytest.raises(ValueError, match=r"convolutions need covariance='auto', 'kronecker'.*got covariance='neuron'"):
        belief_type("neuron", Layout(((8, 8), Conv2D(2, 3), 10)))


def test_a_covariance_of_ones_own_is_registered_by_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("onepass.beliefs.choice.BELIEFS", known := dict[str, Any](BELIEFS))

    class Mine(NeuronBlocks):
        name = "mine"

    assert register(Mine) is Mine
    assert known["mine"] is Mine
    assert belief_type("mine", SMALL) is Mine


def test_the_cost_of_a_full_covariance_grows_with_the_square_of_its_weights() -> None:
    one, two = (FullCovariance.multiply_adds(Layout((n, 1))) for n in (99, 199))
    assert two / one == pytest.approx(4.0, rel=0.05)
