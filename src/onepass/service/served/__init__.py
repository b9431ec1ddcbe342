"""What a served model can be asked, whatever it is: rows of a table, plain features, keys of a fleet, a bandit's arms.

A `RowModel` turns requests into numbers, predicts, and learns rows; a `BanditModel` decides and is rewarded. The rest
of the service knows nothing else about models.
"""

from collections.abc import Iterator
from typing import Any

from onepass._plugins import loaded
from onepass.service.errors import ProblemError
from onepass.service.served.bandit import BanditModel
from onepass.service.served.base import RowModel, Served
from onepass.service.served.estimator import EstimatorRows
from onepass.service.served.fleet import FleetEstimatorRows, FleetRows
from onepass.service.served.forecaster import FleetForecasterRows, ForecasterRows
from onepass.service.served.plain import PlainRows
from onepass.service.served.table import TableRows

__all__ = [
    "BanditModel",
    "EstimatorRows",
    "FleetForecasterRows",
    "FleetRows",
    "ForecasterRows",
    "PlainRows",
    "RowModel",
    "Served",
    "TableRows",
    "serve",
]

_KINDS: tuple[type[Served], ...] = (
    TableRows,
    EstimatorRows,
    PlainRows,
    FleetRows,
    FleetEstimatorRows,
    ForecasterRows,
    FleetForecasterRows,
    BanditModel,
)


def _kinds() -> Iterator[type[Served]]:
    """The kinds of this library, then those of other packages, which are looked for if none of its own will do."""
    yield from _KINDS
    yield from loaded("served")


def serve(model: Any) -> Served:
    """Put a model of the library behind the questions that the service asks."""
    for kind in _kinds():
        if kind.accepts(model):
            return kind(model)
    raise ProblemError(
        422,
        "not a model to serve",
        f"a {type(model).__name__} can't be served; serve a model made by 'onepass fit', an estimator, a perceptron, a "
        "network, a fleet of perceptrons, a BayesianForecaster or ForecastingFleet with revisions, or a bandit",
    )
