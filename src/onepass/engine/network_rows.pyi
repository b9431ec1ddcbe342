from collections.abc import Callable

from onepass._typing import FloatArray
from onepass.engine.network_records import BlockShape, NetworkRule
from onepass.engine.one_row import OneRow
from onepass.engine.vector_matches import NoiseState

class NetworkRow(OneRow):
    def __init__(
        self,
        shape: BlockShape,
        rule: NetworkRule,
        noise: NoiseState,
        mean: FloatArray,
        cov: FloatArray,
        noise_gain: float,
        period: int,
        fade: Callable[[], tuple[FloatArray, FloatArray]],
    ) -> None: ...
