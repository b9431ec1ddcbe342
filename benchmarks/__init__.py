"""Measurements: run by `make bench`, each a ratio of things timed side by side."""
