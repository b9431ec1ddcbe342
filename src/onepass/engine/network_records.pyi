from typing import Any

import numpy as np
from numpy.typing import NDArray

from onepass._typing import FloatArray
from onepass.engine.moments import CompiledActivation
from onepass.engine.vector_matches import VectorLikelihood

Indices = NDArray[np.int64]

class NetworkShape:
    n_layers: int
    n_outputs: int
    size: int
    widest: int
    n_units: int
    def __init__(self, widths: Any, starts: Indices) -> None: ...

class BlockShape(NetworkShape):
    n_blocks: int
    cuts: Indices
    offsets: Indices
    def __init__(self, widths: Any, starts: Indices, unit_starts: Indices, cuts: Indices) -> None: ...

class NetworkRule:
    activation: CompiledActivation
    likelihood: VectorLikelihood
    drift: float
    def __init__(
        self, activation: CompiledActivation, likelihood: VectorLikelihood, drift: float, prior_var: FloatArray
    ) -> None: ...

class TrainingPass:
    noise_gain: float
    noise_bound: float
    keeps_record: bool
    is_first: bool
    def __init__(
        self,
        rows: FloatArray,
        targets: FloatArray,
        order: Any,
        densities: FloatArray,
        gains: FloatArray,
        trust: FloatArray,
        record: FloatArray | None,
        outputs: FloatArray | None,
        is_first: bool,
        noise_gain: float,
        noise_bound: float,
        weights: FloatArray | None = ...,
    ) -> None: ...

class Sites:
    filled: bool
    def __init__(self, n: int, shape: NetworkShape) -> None: ...
