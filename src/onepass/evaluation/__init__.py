"""How good predictions are: `evaluate` and `future_test` score a model on files; metrics, baselines."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from onepass.evaluation.evaluating import evaluate
    from onepass.evaluation.future import future_test

__all__ = ["evaluate", "future_test"]


def __getattr__(name: str) -> Any:
    if name == "evaluate":
        from onepass.evaluation.evaluating import evaluate

        return evaluate
    if name == "future_test":
        from onepass.evaluation.future import future_test

        return future_test
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
