"""What became of the rows that were read: learned or scored, left out for having no target, or rejected, and why."""

import os
from dataclasses import dataclass, field
from typing import NamedTuple

from onepass.estimators.rows import Rows
from onepass.tables.rejects import Reject

__all__ = ["ReadTally", "RejectKind"]

_MOST_KINDS = 200


class RejectKind(NamedTuple):
    """Rows that were rejected for the same reason in the same column: how many, and the first of them."""

    n: int
    file: str
    reject: Reject


@dataclass
class ReadTally:
    """Counts rows as they are read."""

    n_read: int = 0
    n_rejected: int = 0
    n_without_target: int = 0
    _kinds: dict[tuple[str, str], RejectKind] = field(default_factory=dict)

    def add(self, rows: Rows, file: str) -> None:
        """Count more rows of a file; only its name is kept, not where it lies."""
        self.n_read += rows.n_read
        for reject in rows.rejects:
            if reject.has_no_target:
                self.n_without_target += 1
                continue
            self.n_rejected += 1
            kind = reject.reason.code, reject.reason.column
            first = self._kinds.get(kind)
            if first is not None:
                self._kinds[kind] = first._replace(n=first.n + 1)
            elif len(self._kinds) < _MOST_KINDS:
                self._kinds[kind] = RejectKind(1, os.path.basename(file), reject)

    @property
    def kinds(self) -> list[RejectKind]:
        """The reasons, the most common one first."""
        return sorted(self._kinds.values(), key=lambda kind: -kind.n)
