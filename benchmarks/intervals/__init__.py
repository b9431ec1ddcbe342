"""Intervals that are tracked as targets arrive; see `benchmarks.intervals.__main__`."""
