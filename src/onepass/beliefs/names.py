"""The covariances that networks can have, by name; the command line lists them without waiting for NumPy.

To add one, put its class into a module of this package and its name here.
"""

__all__ = ["COVARIANCES"]

COVARIANCES = {
    "full": "block.FullCovariance",
    "low_rank": "low_rank.LowRankGaussian",
    "layer": "block.LayerBlocks",
    "neuron": "block.NeuronBlocks",
    "kronecker": "layered.LayeredGaussian",
    "diagonal": "diagonal.IndependentWeights",
}
"""Module of `onepass.beliefs` and class, from the most to the fewest correlations."""
