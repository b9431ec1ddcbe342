from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from onepass._typing import FloatArray
from onepass.engine.rows import RowRule

AT_NOISE: int
AT_NOISE_WEIGHT: int
AT_EVIDENCE: int
AT_SEEN: int
AT_LARGEST: int
AT_PRIOR: int
AT_TOUCHED: int
HEAD: int
OF_REFERENCE: int
OF_SQUARES: int
OF_LOG_START: int
OF_START_WEIGHT: int
N_REWEIGHED: int

Slots = NDArray[np.int64]
Table = NDArray[np.int32]

class Projection(NamedTuple):
    mean: FloatArray
    var: FloatArray
    noise: FloatArray
    noise_weight: FloatArray
    distrust: FloatArray

def learn_fleet(
    X: FloatArray,
    y: FloatArray,
    weights: FloatArray | None,
    slots: Slots,
    order: Slots,
    rule: RowRule,
    noise_window: float,
    clock: float,
    records: FloatArray,
    out: FloatArray,
) -> int: ...
def project_fleet(
    X: FloatArray, slots: Slots, ahead: Slots, rule: RowRule, records: FloatArray, prior: FloatArray
) -> Projection: ...
def distrust_fleet(
    X: FloatArray, y: FloatArray, slots: Slots, ahead: Slots, rule: RowRule, records: FloatArray, prior: FloatArray
) -> FloatArray: ...
def find_keys(keys: Slots, table: Table, slot_keys: Slots) -> Slots: ...
def put_keys(slots: Slots, table: Table, slot_keys: Slots) -> None: ...
def remove_keys(slots: Slots, table: Table, slot_keys: Slots) -> None: ...
