from onepass._typing import FloatArray
from onepass.engine.network_records import BlockShape, NetworkRule, TrainingPass
from onepass.engine.vector_matches import NoiseState

def learn_separate(
    work: TrainingPass, shape: BlockShape, rule: NetworkRule, noise: NoiseState, mean: FloatArray, cov: FloatArray
) -> int: ...
