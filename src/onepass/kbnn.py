"""The Kalman Bayesian neural network (KBNN), another network learned in closed form, for comparison."""

from onepass.models.kalman_network import KalmanNetwork

__all__ = ["KalmanNetwork"]
