"""How good predictions are: `evaluate` scores a model on files; metrics, prequential scores, baselines."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from onepass.evaluation.evaluating import evaluate

__all__ = ["evaluate"]


def __getattr__(name: str) -> Any:
    if name != "evaluate":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from onepass.evaluation.evaluating import evaluate

    return evaluate
