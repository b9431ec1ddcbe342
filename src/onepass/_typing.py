"""Types that every layer shares."""

import numpy as np
from numpy.typing import NDArray

__all__ = ["FloatArray"]

FloatArray = NDArray[np.float64]
