from typing import Any

from onepass._typing import FloatArray
from onepass.engine.rows import RowRule
from onepass.engine.step import LearningState

CANCELLED: dict[Any, float]

def block_size(size: int) -> int: ...
def learn_block(
    rows: FloatArray,
    y: FloatArray,
    rule: RowRule,
    state: LearningState,
    kept: float,
    added: FloatArray,
    mean: FloatArray,
    cov: FloatArray,
    out: FloatArray,
    sites: FloatArray,
) -> int: ...
