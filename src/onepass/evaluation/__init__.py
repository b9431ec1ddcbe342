"""How good predictions are: `evaluate` and `future_test` score a model on files, `backtest` forecasts of series."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from onepass.evaluation.backtesting import backtest
    from onepass.evaluation.evaluating import evaluate
    from onepass.evaluation.future import future_test

__all__ = ["backtest", "evaluate", "future_test"]


def __getattr__(name: str) -> Any:
    if name == "backtest":
        from onepass.evaluation.backtesting import backtest

        return backtest
    if name == "evaluate":
        from onepass.evaluation.backtesting import backtest
    from onepass.evaluation.evaluating import evaluate

        return evaluate
    if name == "future_test":
        from onepass.evaluation.future import future_test

        return future_test
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
