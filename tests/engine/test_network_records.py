"""Shapes and rules that the loops of networks read, made from a layout and taken along by copies."""

import pickle

import numpy as np

from onepass.activations import as_activation, compiled_activation
from onepass.beliefs.block import LayerBlocks, NeuronBlocks
from onepass.engine.network_records import BlockShape, NetworkRule, NetworkShape, Sites
from onepass.layers.layout import Layout
from onepass.likelihoods import Gaussian

LAYOUT = Layout((2, 4, 3))


def block_shape(kind: type[LayerBlocks] | type[NeuronBlocks]) -> BlockShape:
    return BlockShape(LAYOUT.widths, LAYOUT.starts, LAYOUT.unit_starts, kind.cut(LAYOUT))


def test_a_shape_counts_layers_outputs_and_units() -> None:
    shape = NetworkShape(LAYOUT.widths, LAYOUT.starts)
    assert (shape.n_layers, shape.n_outputs, shape.size, shape.widest) == (
        2,
        3,
        27,
        5,
    )  # the widest layer with its constant


def test_blocks_begin_where_the_squares_of_those_before_end() -> None:
    layers, neurons = block_shape(LayerBlocks), block_shape(NeuronBlocks)
    assert (layers.n_blocks, neurons.n_blocks) == (2, 7)
    np.testing.assert_array_equal(layers.cuts, [0, 12, 27])
    np.testing.assert_array_equal(layers.offsets, [0, 144, 144 + 225])
    np.testing.assert_array_equal(neurons.offsets, np.cumsum([0] + [9] * 4 + [25] * 3))


def test_shapes_and_rules_survive_pickling() -> None:
    shape = pickle.loads(pickle.dumps(block_shape(LayerBlocks)))
    np.testing.assert_array_equal(shape.cuts, [0, 12, 27])
    assert shape.n_outputs == 3
    rule = NetworkRule(compiled_activation(as_activation("relu")), Gaussian().outputs(3), 0.02, np.ones(27))
    assert pickle.loads(pickle.dumps(rule)).drift == 0.02


def test_sites_are_empty_before_the_first_pass() -> None:
    assert not Sites(5, block_shape(LayerBlocks)).filled
