from typing import Any

from onepass._typing import FloatArray
from onepass.engine.matches import CompiledLikelihood
from onepass.engine.one_row import OneRow
from onepass.engine.outliers import Trust
from onepass.engine.step import LearningState

EXHAUSTED: float

class Rows:
    X: Any
    y: FloatArray
    X_var: FloatArray
    record: FloatArray
    sites: FloatArray
    def __init__(self, X: Any, y: FloatArray, X_var: FloatArray, record: FloatArray, sites: FloatArray) -> None: ...
    def __len__(self) -> int: ...
    def part(self, start: int, stop: int) -> Rows: ...

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
    rows: Rows, rule: RowRule, state: LearningState, mean: FloatArray, root: FloatArray, forgets: bool
) -> int: ...
def rows_dense(
    rows: Rows,
    rule: RowRule,
    state: LearningState,
    wander: Wander,
    cancelled: float,
    mean: FloatArray,
    cov: FloatArray,
) -> tuple[int, bool]: ...
def rows_diagonal(
    rows: Rows, rule: RowRule, state: LearningState, wander: Wander, mean: FloatArray, variance: FloatArray
) -> int: ...
def rows_sparse(
    rows: Rows,
    data: FloatArray,
    indices: Any,
    indptr: Any,
    rule: RowRule,
    state: LearningState,
    wander: Wander,
    mean: FloatArray,
    variance: FloatArray,
) -> int: ...
