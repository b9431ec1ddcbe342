from onepass._typing import FloatArray
from onepass.engine.matches import CompiledLikelihood
from onepass.engine.outliers import Trust

NOISE: int
NOISE_WEIGHT: int
NOISE_WINDOW: int
LOG_EVIDENCE: int
N_SEEN: int
NOISE_FLOOR: float
NOISE_START: float
NOISE_START_WEIGHT: float
SITE_SIZE: int
RECORD_SIZE: int
STATE_SIZE: int

class LearningState:
    noise: float
    noise_weight: float
    noise_window: float
    log_evidence: float
    n_seen: float
    log_density: float
    trust: Trust
    def __init__(
        self,
        noise: float = ...,
        noise_weight: float = ...,
        noise_window: float = ...,
        log_evidence: float = ...,
        n_seen: float = ...,
        trust: Trust | None = ...,
    ) -> None: ...
    @property
    def learns_noise(self) -> bool: ...
    def copy(self) -> LearningState: ...
    def assign(self, other: LearningState) -> None: ...
    def to_array(self) -> FloatArray: ...
    @staticmethod
    def from_array(numbers: FloatArray) -> LearningState: ...
    def weigh(self, weights: FloatArray | None) -> None: ...
    def begin_anew(self) -> None: ...

def learn_scalar(
    likelihood: CompiledLikelihood,
    state: LearningState,
    mean: float,
    var: float,
    input_var: float,
    y: float,
) -> tuple[float, float, float]: ...
def learn_with_site(
    likelihood: CompiledLikelihood,
    state: LearningState,
    mean: float,
    var: float,
    input_var: float,
    y: float,
    site: FloatArray,
) -> tuple[float, float, float]: ...
def score_rows(
    likelihood: CompiledLikelihood, state: LearningState, mean: FloatArray, var: FloatArray, y: FloatArray
) -> FloatArray: ...
