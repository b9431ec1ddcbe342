from typing import Any

from onepass._typing import FloatArray
from onepass.engine.rows import RowRule, Rows, Wander
from onepass.engine.step import LearningState

ALARMED: int
CANCELLED: dict[Any, float]
DIGITS_LOST: int
NOT_FINITE: int

def block_size(size: int) -> int: ...
def learn_block(
    rows: Rows,
    inputs: FloatArray,
    rule: RowRule,
    state: LearningState,
    wander: Wander,
    mean: FloatArray,
    cov: FloatArray,
) -> int: ...
