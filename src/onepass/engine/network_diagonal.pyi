from onepass._typing import FloatArray
from onepass.engine.network_records import NetworkRule, NetworkShape, TrainingPass
from onepass.engine.vector_matches import NoiseState

def learn_diagonal(
    work: TrainingPass,
    shape: NetworkShape,
    rule: NetworkRule,
    noise: NoiseState,
    mean: FloatArray,
    variance: FloatArray,
) -> int: ...
def look_diagonal(
    row: FloatArray, shape: NetworkShape, rule: NetworkRule, mean: FloatArray, variance: FloatArray
) -> tuple[FloatArray, FloatArray]: ...
