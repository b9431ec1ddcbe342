from onepass._typing import FloatArray

def switch_rows(
    log_densities: FloatArray, weights: FloatArray, switching: float, evidence: float
) -> tuple[FloatArray, FloatArray, FloatArray, float]: ...
