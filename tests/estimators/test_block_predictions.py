"""Predicting a row reads each block of a covariance once and copies none: it costs no more than learning the row."""

import tracemalloc

import numpy as np

from onepass import BayesianPerceptronClassifier
from onepass.beliefs.block import LayerBlocks
from onepass.layers.layout import Layout


def test_a_prediction_makes_no_copy_of_a_block() -> None:
    random = np.random.default_rng(0)
    X, y = random.normal(size=(20, 300)), np.arange(20) % 4
    model = BayesianPerceptronClassifier(covariance="neuron").fit(X, y)
    model.predict_proba(X[:1])
    tracemalloc.start()
    try:
        model.predict_proba(X[:1])
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 8 * 301**2 / 2


def test_only_the_lower_triangle_counts() -> None:
    random = np.random.default_rng(1)
    belief = LayerBlocks(Layout((2, 1, 2)), np.zeros(7), np.ones(7))
    dense = np.zeros((7, 7))
    for part, block in belief.blocks():
        root = random.normal(size=block.shape)
        dense[part, part] = root @ root.T
        block[...] = np.where(np.tri(len(block)) > 0.0, dense[part, part], 1e3)
    jacobian = random.normal(size=(5, 2, 7))
    gain, cov = belief.project_outputs(jacobian)
    np.testing.assert_allclose(gain, jacobian @ dense)
    np.testing.assert_allclose(cov, jacobian @ dense @ jacobian.swapaxes(-1, -2))
    np.testing.assert_allclose(belief.project_outputs(jacobian[0, :1])[0], jacobian[0, :1] @ dense)
    for part in (slice(0, 3), slice(3, 5), slice(5, 7)):
        rows = random.normal(size=(2, 4, part.stop - part.start))
        expected = np.einsum("nmi,ij,nmj->nm", rows, dense[part, part], rows)
        np.testing.assert_allclose(belief.quadratic_form(part, rows), expected)
