"""What can be asked of the one who writes a model's events; each operation is one request.

An operation is prepared before the transaction, together with all others of its group, so that rows are read and
predicted at once. Inside the transaction it is planned: its answer and its changes, as plain data; one that has come
before is answered as before. Changes are appended as events, and applied after the transaction: what is learned is
durable already.
"""

from onepass.service.operations.bandits import ChangeArm, Decide, Expire, Reward, Withdraw
from onepass.service.operations.base import Change, Operation, Plan, Planning, digest, plan_once
from onepass.service.operations.learning import Label, Learn, LearnRows, Predict, prepare
from onepass.service.operations.whole import (
    DropShadow,
    Promote,
    Rollback,
    Shadow,
    WriterCall,
    checked_candidate,
    checked_content,
)

__all__ = [
    "Change",
    "ChangeArm",
    "Decide",
    "DropShadow",
    "Expire",
    "Label",
    "Learn",
    "LearnRows",
    "Operation",
    "Plan",
    "Planning",
    "Predict",
    "Promote",
    "Reward",
    "Rollback",
    "Shadow",
    "Withdraw",
    "WriterCall",
    "checked_candidate",
    "checked_content",
    "digest",
    "plan_once",
    "prepare",
]
