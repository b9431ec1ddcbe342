"""Integrals of the Gaussian and mixtures of Gaussians, from which everything else is built."""
