"""One small perceptron for each of a million keys, in one array."""

from onepass.models.fleet.fleet import PerceptronFleet

__all__ = ["PerceptronFleet"]
