# All else is called from compiled code only: see gumbel.pxd.
from onepass._typing import FloatArray

MIXTURE: FloatArray
