"""Streams that misbehave: outliers, wrong labels, drift; see `benchmarks.misbehaving.__main__`."""
