from typing import NamedTuple, Self

from onepass._typing import FloatArray
from onepass.engine.matches import CompiledLikelihood
from onepass.engine.outliers import Trust

SCALE_START_WEIGHT: float
SCALE_GAIN: float
SCALE_CLIP: float
ROUNDING: float
LEAST_LEFT: float
OUTPUT_NOISE_START: float
OUTPUT_NOISE_START_WEIGHT: float
ALONE: float

class NoiseState:
    noise: FloatArray
    noise_weight: FloatArray
    scale: FloatArray
    scale_weight: FloatArray
    usual_var: FloatArray
    largest: FloatArray
    trust: Trust
    row_weight: float
    row_evidence: float
    log_evidence: float
    n_seen: int
    def __init__(
        self,
        noise: FloatArray,
        noise_weight: FloatArray,
        scale: FloatArray,
        scale_weight: FloatArray,
        usual_var: FloatArray,
        largest: FloatArray,
        trust: Trust | None = ...,
    ) -> None: ...
    @staticmethod
    def start(n_outputs: int, noise: float | None, calibrate: bool, outliers: float = ...) -> NoiseState: ...
    def begin_anew(self) -> None: ...
    def restart_calibration(self) -> None: ...
    def widened(self) -> NoiseState: ...
    def with_noise_times(self, factor: FloatArray) -> NoiseState: ...
    def copy(self) -> Self: ...
    def to_array(self) -> FloatArray: ...
    def assign(self, array: FloatArray) -> None: ...

def widening(scale_weight: FloatArray) -> FloatArray: ...

class OutputMatch(NamedTuple):
    log_density: float
    score: FloatArray
    information: FloatArray
    precision: FloatArray
    shift: FloatArray

class OutputRecord(NamedTuple):
    mean: FloatArray
    var: FloatArray
    noise: FloatArray
    scale: FloatArray
    unknown_noise: FloatArray
    scale_weight: FloatArray
    usual_var: FloatArray
    @staticmethod
    def of(records: FloatArray) -> OutputRecord: ...

OUTPUT_RECORD_SIZE: int

class VectorLikelihood:
    n_outputs: int
    size: int
    n_columns: int
    may_widen: bool
    def __init__(self, n_outputs: int) -> None: ...
    def moment_match(self, mean: FloatArray, cov: FloatArray, target: FloatArray, state: NoiseState) -> OutputMatch: ...
    def separate_match(
        self, mean: FloatArray, var: FloatArray, target: FloatArray, state: NoiseState
    ) -> tuple[float, FloatArray, FloatArray]: ...
    def memory_of(self, n_rows: int, state: NoiseState) -> FloatArray: ...
    def kept(self, means: FloatArray, covs: FloatArray, state: NoiseState) -> FloatArray: ...
    def score_rows(self, kept: FloatArray, targets: FloatArray, noise_scale: FloatArray) -> FloatArray: ...
    def records(self, means: FloatArray, covs: FloatArray, state: NoiseState) -> FloatArray: ...
    def learn_noise(
        self, mean: FloatArray, cov: FloatArray, target: FloatArray, state: NoiseState, gain: float, bound: float
    ) -> None: ...
    def raise_pending(self) -> None: ...

class NoisyNumbers(VectorLikelihood): ...
class GaussianOutputs(NoisyNumbers): ...

class HeteroscedasticOutputs(NoisyNumbers):
    def __init__(self, n_outputs: int, log_noise: float, log_noise_var: float) -> None: ...

class SeparateOutputs(VectorLikelihood):
    def __init__(self, n_outputs: int, one: CompiledLikelihood) -> None: ...

def site_removal(
    cov: FloatArray, precision: FloatArray, h: FloatArray, values: FloatArray
) -> tuple[FloatArray, FloatArray] | None: ...
