"""The plane that one clicks into, and arrays on their way to the page."""

from typing import Annotated, TypeAlias

import numpy as np
from msgspec import Meta
from numpy.typing import ArrayLike

from onepass._typing import FloatArray

__all__ = ["GRID", "MAX_POINTS", "X_RANGE", "Y_RANGE", "Coordinate", "NumberPoint", "floats"]

X_RANGE = (-3.0, 3.0)
Y_RANGE = (-3.0, 3.0)
MAX_POINTS = 200

Coordinate: TypeAlias = Annotated[float, Meta(ge=-10.0, le=10.0)]
NumberPoint: TypeAlias = tuple[Coordinate, Coordinate]

GRID: FloatArray = np.linspace(*X_RANGE, 121)
"""Where curves are drawn."""


def floats(values: ArrayLike) -> bytes:
    """Numbers as the page reads them: little-endian float32, row by row.

    Examples
    --------
    >>> floats([1.0, 2.0]).hex()
    '0000803f00000040'
    """
    return np.ascontiguousarray(values, dtype="<f4").tobytes()
