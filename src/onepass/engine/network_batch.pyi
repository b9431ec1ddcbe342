from onepass._typing import FloatArray
from onepass.engine.network_records import BlockShape, NetworkRule, TrainingPass
from onepass.engine.vector_matches import NoiseState

def learn_batches(
    work: TrainingPass,
    batch: int,
    shape: BlockShape,
    rule: NetworkRule,
    noise: NoiseState,
    mean: FloatArray,
    cov: FloatArray,
) -> int: ...
