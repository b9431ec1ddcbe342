"""Gaussian beliefs over weights in several structures of their covariance, and the step that moves them."""
