"""Perceptrons and networks: they turn an input and a belief into the mean of an output and its Jacobian."""
