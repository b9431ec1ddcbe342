"""How good predictions are: `evaluate` and `future_test` score a model on files, `backtest` forecasts of series."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from onepass.evaluation.backtesting import backtest
    from onepass.evaluation.evaluating import evaluate
    from onepass.evaluation.future import future_test

__all__ = ["backtest", "evaluate", "future_test"]

_MODULES = {"backtest": "backtesting", "evaluate": "evaluating", "future_test": "future"}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
