from typing import NamedTuple

from onepass._typing import FloatArray
from onepass.engine.matches import CompiledLikelihood
from onepass.engine.outliers import Trust

NOISE: int
NOISE_WEIGHT: int
NOISE_WINDOW: int
LOG_EVIDENCE: int
N_SEEN: int
LARGEST: int
REFERENCE: int
NOISE_START: float
NOISE_START_WEIGHT: float
SITE_SIZE: int
RECORD_SIZE: int
STATE_FIELDS: tuple[str, ...]
STATE_SIZE: int

class RowRecord(NamedTuple):
    mean: FloatArray
    var: FloatArray
    noise: FloatArray
    log_density: FloatArray
    distrust: FloatArray
    suspicion: FloatArray
    evidence: FloatArray
    @staticmethod
    def of(records: FloatArray) -> RowRecord: ...

class LearningState:
    noise: float
    noise_weight: float
    noise_window: float
    log_evidence: float
    n_seen: float
    largest: float
    log_density: float
    row_evidence: float
    reference: float
    squares: float
    weight: float
    copies: float
    trusted_copies: float
    log_start: float
    start_weight: float
    last_log_noise: float
    last_seen: float
    last_noise_weight: float
    total: float
    n_weighted: int
    trust: Trust
    def __init__(
        self,
        noise: float = ...,
        noise_weight: float = ...,
        noise_window: float = ...,
        trust: Trust | None = ...,
    ) -> None: ...
    def start_reweighing(self) -> None: ...
    def is_due(self, size: int) -> bool: ...
    def response_steps(self) -> int: ...
    def reweigh(
        self, diagonal: FloatArray, below: FloatArray, square: float, log_det: float, n_directions: float
    ) -> float: ...
    @property
    def learns_noise(self) -> bool: ...
    def copy(self) -> LearningState: ...
    def assign(self, other: LearningState) -> None: ...
    def to_array(self) -> FloatArray: ...
    @staticmethod
    def from_array(numbers: FloatArray) -> LearningState: ...
    def weigh(self, weights: FloatArray | None) -> None: ...
    def begin_anew(self) -> None: ...
    def record_row(self, records: FloatArray, i: int, mean: float, var: float, noise: float) -> None: ...

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
def learn_noise_from(state: LearningState, numbers: FloatArray) -> None: ...
def score_rows(
    likelihood: CompiledLikelihood,
    state: LearningState,
    mean: FloatArray,
    var: FloatArray,
    input_var: FloatArray,
    responses: FloatArray,
    y: FloatArray,
) -> FloatArray: ...
