"""The classes that a file can hold, by the names they have in files.

This is the only table of such classes in the package; everything else that turns a name from a file into a class asks
`savable`. It names modules rather than classes so that loading a perceptron does not import scikit-learn, and a class
is imported only when a file asks for it. To make a new class savable, give it ``export_state`` and ``from_state`` (see
`onepass.files.state`), add one line here and a model of it to ``tests/helpers/savable_models.py``. Estimators, whose
public methods are those that users of scikit-learn expect, have them with an underscore: use `exported`, `restored`.
"""

from importlib import import_module
from typing import Any

__all__ = ["exported", "restored", "savable", "savable_names"]

# The names are part of the file format, so they never change.
_MODULES = {
    "AdaptiveIntervals": "onepass.models.adaptive",
    "AnomalyScorer": "onepass.forecasting",
    "BayesianForecaster": "onepass.forecasting",
    "BayesianMLPClassifier": "onepass.estimators",
    "BayesianMLPRegressor": "onepass.estimators",
    "BayesianNetwork": "onepass.models.network",
    "BayesianPerceptron": "onepass.models.perceptron",
    "BayesianPerceptronClassifier": "onepass.estimators",
    "BayesianPerceptronRegressor": "onepass.estimators",
    "BayesianTabularClassifier": "onepass.tables.estimators",
    "BayesianTabularRegressor": "onepass.tables.estimators",
    "ContextualBandit": "onepass.decisions.bandit",
    "DetectionModel": "onepass.tables.detection_model",
    "FleetEstimator": "onepass.estimators",
    "ForecastingFleet": "onepass.forecasting",
    "KalmanNetwork": "onepass.paper.kalman_network",
    "MLPClassifier": "onepass.integrations.river",
    "MLPRegressor": "onepass.integrations.river",
    "Mixture": "onepass.models.mixture",
    "MovingLevelRegressor": "onepass.estimators",
    "PerceptronClassifier": "onepass.integrations.river",
    "PerceptronFleet": "onepass.models.fleet",
    "PerceptronRegressor": "onepass.integrations.river",
    "SeriesModel": "onepass.tables.series_model",
    "SoftmaxClassifier": "onepass.integrations.river",
    "TabularModel": "onepass.tables.model",
}


def savable(name: str) -> type:
    """Import the class with this name in files; a KeyError if there is none.

    Examples
    --------
    >>> savable("BayesianPerceptron")
    <class 'onepass.models.perceptron.BayesianPerceptron'>
    """
    cls: type = getattr(import_module(_MODULES[name]), name)
    return cls


def exported(model: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """The whole state of a savable model, as JSON-compatible parameters and arrays."""
    export: Any = getattr(model, "export_state", None) or model._export_state
    found: tuple[dict[str, Any], dict[str, Any]] = export()
    return found


def restored(cls: Any, parameters: dict[str, Any], arrays: dict[str, Any]) -> Any:
    """The model of a savable class whose state was `exported`."""
    make = getattr(cls, "from_state", None) or cls._from_state
    return make(parameters, arrays)


def savable_names(module: str | None = None) -> tuple[str, ...]:
    """Names of the savable classes in alphabetical order: all of them, or those of one module.

    Examples
    --------
    >>> savable_names("onepass.models.network")
    ('BayesianNetwork',)
    """
    return tuple(sorted(name for name, home in _MODULES.items() if module in (None, home)))
