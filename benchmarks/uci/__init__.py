"""Networks on the standard regression sets; see `benchmarks.uci.__main__`."""
