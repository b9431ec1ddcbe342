"""Perceptrons, networks, mixtures and fleets: how a belief about weights predicts outputs and learns from rows."""
