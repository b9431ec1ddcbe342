"""From files with columns to a model that knows what they mean, in constant memory.

`fit` learns a model from files, `predict` predicts their rows and `forecast` what comes next, as the commands do;
`onepass.evaluation.evaluate` scores one. The way of a row: `readers` (file to Arrow batches), `columns` (batches to
numbers), `model` (numbers to the estimator). `schema` makes a new model by the first rows of some files, `training`
learns files into it, `writing` writes predictions.
"""

from typing import TYPE_CHECKING, Any

from onepass._extras import require

if TYPE_CHECKING:
    from onepass.tables.fitting import fit
    from onepass.tables.forecasting import forecast
    from onepass.tables.model import TabularModel
    from onepass.tables.prediction import predict

__all__ = ["TabularModel", "fit", "forecast", "predict"]

require("cli", "onepass.tables", "pyarrow")

_MODULES = {"TabularModel": "model", "fit": "fitting", "forecast": "forecasting", "predict": "prediction"}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
