"""Rows of named features."""

import numpy as np

__all__ = ["NAMES", "SCORE", "X", "rows"]

NAMES = [f"x{i}" for i in range(25)]
_rng = np.random.default_rng(0)
X = _rng.normal(size=(120, 25))
SCORE = X[:, :3].sum(axis=1) + _rng.normal(size=120)


def rows(names: list[str] = NAMES) -> list[dict[str, float]]:
    return [dict(zip(names, row.tolist(), strict=False)) for row in X]
