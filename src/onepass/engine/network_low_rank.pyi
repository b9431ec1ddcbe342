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
