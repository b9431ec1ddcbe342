from onepass._typing import FloatArray
from onepass.engine.network_records import BlockShape, NetworkRule, Sites, TrainingPass
from onepass.engine.vector_matches import NoiseState

def learn_blocks(
    work: TrainingPass,
    shape: BlockShape,
    rule: NetworkRule,
    noise: NoiseState,
    sites: Sites | None,
    mean: FloatArray,
    cov: FloatArray,
) -> int: ...
def look_blocks(
    row: FloatArray, shape: BlockShape, rule: NetworkRule, mean: FloatArray, cov: FloatArray
) -> tuple[FloatArray, FloatArray]: ...
