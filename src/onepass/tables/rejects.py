"""Records that were rejected on the way from a file to an estimator, and what was read of them."""

import json
from typing import NamedTuple

from onepass.tables.columns.values import Bad
from onepass.tables.readers.batches import RowBatch
from onepass.tables.reasons import Reason

__all__ = ["Reject", "rejects_of"]


class Reject(NamedTuple):
    """A record that was not learned or predicted, and why."""

    line: int
    reason: Reason
    text: str = ""

    @property
    def has_no_target(self) -> bool:
        """Whether nothing is wrong but that the target is missing: such a row is left out, and no error."""
        return self.reason.role == "target" and self.reason.code == "missing"


def rejects_of(batch: RowBatch, bad: Bad) -> tuple[Reject, ...]:
    """Everything wrong with a batch, in the order of its lines."""
    found = [Reject(one.line, one.reason, one.text) for one in batch.malformed]
    if bad:
        lines = batch.lines
        found += [Reject(lines[row], reason, _record_text(batch, row)) for row, reason in bad.items()]
    return tuple(sorted(found, key=lambda one: one.line))


def _record_text(batch: RowBatch, row: int) -> str:
    """What was read of a row, as a line that can be corrected and learned."""
    (values,) = batch.record_batch.slice(row, 1).to_pylist()
    return json.dumps(values, default=str, ensure_ascii=False)
