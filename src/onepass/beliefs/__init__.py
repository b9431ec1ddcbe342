"""Gaussian beliefs about weights, with full, block, low-rank, Kronecker or diagonal covariance, and their update."""
