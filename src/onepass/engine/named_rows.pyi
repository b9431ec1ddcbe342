from typing import Any

from onepass._typing import FloatArray

def named_row(
    x: dict[Any, Any], columns: dict[Any, int], n_columns: int, largest: float, absent: float
) -> tuple[FloatArray, int, float] | None: ...
