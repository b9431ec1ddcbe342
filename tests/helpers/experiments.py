"""Results of the paper's experiments, compared from run to run."""

from typing import Any

__all__ = ["without_times"]


def without_times(value: Any) -> Any:
    """Return only the numbers that the same seed must give again."""
    if isinstance(value, dict):
        return {k: without_times(v) for k, v in value.items() if "seconds" not in k and "runtime" not in k}
    return value
