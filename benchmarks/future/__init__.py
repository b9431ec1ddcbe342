"""How well `onepass fit` predicts the rest of a table; see `__main__`."""
