from onepass._typing import FloatArray
from onepass.engine.network_records import NetworkRule, NetworkShape, TrainingPass
from onepass.engine.vector_matches import NoiseState

def learn_low_rank(
    work: TrainingPass,
    first: int,
    shape: NetworkShape,
    rule: NetworkRule,
    noise: NoiseState,
    mean: FloatArray,
    variance: FloatArray,
    precision_root: FloatArray,
    cov_root: FloatArray,
    used: FloatArray,
    rounding: float,
) -> int: ...
def look_low_rank(
    row: FloatArray,
    shape: NetworkShape,
    rule: NetworkRule,
    mean: FloatArray,
    variance: FloatArray,
    cov_root: FloatArray,
    used: FloatArray,
    rounding: float,
) -> tuple[FloatArray, FloatArray]: ...
