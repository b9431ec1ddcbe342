"""The Kalman Bayesian neural network, for comparison."""

from onepass.models.kalman_network import KalmanNetwork

__all__ = ["KalmanNetwork"]
