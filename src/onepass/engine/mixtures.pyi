from onepass._typing import FloatArray

def mixture_quantiles(
    weights: FloatArray, means: FloatArray, stds: FloatArray, level: float, z: float
) -> FloatArray: ...
