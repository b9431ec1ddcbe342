"""Batches of rows as they come in one request: JSON lines or an Arrow batch, not yet checked against a model."""

from typing import Any, NamedTuple

__all__ = ["Rows"]


class Rows(NamedTuple):
    """Rows of one request, in one of two forms."""

    table: Any = None
    """A `pyarrow.RecordBatch` with a column per input, and the target's column where rows are to be learned."""
    records: list[dict[str, Any]] | None = None
    """JSON lines, decoded: ``{"x": {...}, "y": ..., "id": ...}``."""

    def __len__(self) -> int:
        return len(self.records) if self.records is not None else int(self.table.num_rows)
