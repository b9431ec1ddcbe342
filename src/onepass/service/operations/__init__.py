"""What can be asked of the one who writes a model's events; each operation is one request.

An operation is prepared before the transaction, together with all others of its group, so that rows are read and
predicted at once. Inside the transaction it looks whether the same was asked before and writes its event. Events are
applied after the transaction: what is learned is durable already.
"""

from onepass.service.operations.bandits import ChangeArm, Decide, Expire, Reward, Withdraw
from onepass.service.operations.base import Desk, Operation, digest
from onepass.service.operations.rows import Label, Learn, LearnRows, Predict, prepare
from onepass.service.operations.whole import (
    Call,
    DropShadow,
    Promote,
    Rollback,
    Shadow,
    checked_candidate,
    checked_content,
)

__all__ = [
    "Call",
    "ChangeArm",
    "Decide",
    "Desk",
    "DropShadow",
    "Expire",
    "Label",
    "Learn",
    "LearnRows",
    "Operation",
    "Predict",
    "Promote",
    "Reward",
    "Rollback",
    "Shadow",
    "Withdraw",
    "checked_candidate",
    "checked_content",
    "digest",
    "prepare",
]
