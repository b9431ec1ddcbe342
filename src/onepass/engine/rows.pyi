from typing import Any

from onepass._typing import FloatArray
from onepass.engine.matches import CompiledLikelihood
from onepass.engine.step import LearningState

class RowRule:
    likelihood: CompiledLikelihood
    bias: int
    forgetting: float
    prior_trace: float
    def __init__(self, likelihood: CompiledLikelihood, bias: int, forgetting: float, prior_trace: float) -> None: ...

class RowLearner:
    def __init__(self, rule: RowRule, state: LearningState, mean: FloatArray, root: FloatArray) -> None: ...
    def __call__(self, x: FloatArray, y: Any) -> bool: ...
    def predict(self, x: FloatArray) -> tuple[Any, float, float] | None: ...

def rows_root(
    X: FloatArray,
    X_var: FloatArray,
    y: FloatArray,
    rule: RowRule,
    state: LearningState,
    mean: FloatArray,
    root: FloatArray,
    out: FloatArray,
    sites: FloatArray,
) -> int: ...
def rows_dense(
    X: FloatArray,
    X_var: FloatArray,
    y: FloatArray,
    rule: RowRule,
    state: LearningState,
    process_noise: FloatArray,
    cancelled: float,
    mean: FloatArray,
    cov: FloatArray,
    out: FloatArray,
    sites: FloatArray,
) -> tuple[int, bool]: ...
def rows_diagonal(
    X: FloatArray,
    X_var: FloatArray,
    y: FloatArray,
    rule: RowRule,
    state: LearningState,
    prior_var: FloatArray,
    process_noise: FloatArray,
    mean: FloatArray,
    variance: FloatArray,
    out: FloatArray,
) -> int: ...
def rows_sparse(
    data: FloatArray,
    indices: Any,
    indptr: Any,
    y: FloatArray,
    rule: RowRule,
    state: LearningState,
    prior_var: FloatArray,
    process_noise: FloatArray,
    mean: FloatArray,
    variance: FloatArray,
    out: FloatArray,
) -> int: ...
