from typing import Any

from onepass._typing import FloatArray
from onepass.engine.matches import CompiledLikelihood
from onepass.engine.one_row import OneRow
from onepass.engine.outliers import Trust
from onepass.engine.step import LearningState

class RowRule:
    likelihood: CompiledLikelihood
    bias: int
    period: int
    keep: float
    def __init__(
        self,
        likelihood: CompiledLikelihood,
        bias: int,
        period: int = 0,
        keep: float = 1.0,
        priors: FloatArray | None = None,
        centre: FloatArray = ...,
        precisions: FloatArray = ...,
    ) -> None: ...

class Wander:
    kept: float
    def __init__(self, kept: float, added: FloatArray) -> None: ...

def rescaled(prior: FloatArray, trust: Trust, mean: FloatArray, root: FloatArray) -> None: ...

class RowLearner(OneRow):
    def __init__(self, rule: RowRule, state: LearningState, mean: FloatArray, root: FloatArray) -> None: ...
    def predict(self, x: FloatArray) -> tuple[float, float, float, float, float] | None: ...

class DenseRowLearner(RowLearner):
    def __init__(
        self,
        rule: RowRule,
        state: LearningState,
        wander: Wander,
        cancelled: float,
        mean: FloatArray,
        cov: FloatArray,
    ) -> None: ...

def rows_root(
    X: FloatArray,
    X_var: FloatArray,
    y: FloatArray,
    rule: RowRule,
    state: LearningState,
    mean: FloatArray,
    root: FloatArray,
    forgets: bool,
    out: FloatArray,
    sites: FloatArray,
) -> int: ...
def rows_dense(
    X: FloatArray,
    X_var: FloatArray,
    y: FloatArray,
    rule: RowRule,
    state: LearningState,
    wander: Wander,
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
    wander: Wander,
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
    wander: Wander,
    mean: FloatArray,
    variance: FloatArray,
    out: FloatArray,
) -> int: ...
