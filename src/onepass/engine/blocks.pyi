from typing import Any

from onepass._typing import FloatArray
from onepass.engine.rows import RowRule
from onepass.engine.step import LearningState

ALARMED: int
CANCELLED: dict[Any, float]
DIGITS_LOST: int
NOT_FINITE: int

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
