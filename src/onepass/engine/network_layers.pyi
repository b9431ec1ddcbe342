from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onepass._typing import FloatArray
from onepass.engine.network_records import NetworkRule, TrainingPass
from onepass.engine.vector_matches import NoiseState

BLOCK: int
FARTHEST: float

class LayerForm:
    is_kronecker: bool
    n_in: int
    rows: int
    cols: int
    patches: Any
    pools: Any
    pool_size: int
    n_out: int
    width: int
    n_numbers: int
    def __init__(
        self, is_kronecker: bool, n_in: int, rows: int, cols: int, patches: Any, pools: Any, pool_size: int
    ) -> None: ...

class LayerShape:
    n_layers: int
    n_outputs: int
    table: Sequence[LayerForm]
    def __init__(self, forms: Sequence[LayerForm]) -> None: ...

class OpenBlock:
    def __init__(self, shape: LayerShape, mean: FloatArray, values: FloatArray) -> None: ...
    def look(self, row: FloatArray, rule: NetworkRule) -> tuple[FloatArray, FloatArray]: ...
    def learn(self, work: TrainingPass, rule: NetworkRule, noise: NoiseState) -> int: ...
    def close(self) -> None: ...

def release(
    inputs: NDArray[np.intp],
    input_root: FloatArray,
    output_root: FloatArray,
    idle: FloatArray,
    prior_outputs: FloatArray,
) -> None: ...
def learn_layers(
    work: TrainingPass, shape: LayerShape, rule: NetworkRule, noise: NoiseState, mean: FloatArray, values: FloatArray
) -> int: ...
