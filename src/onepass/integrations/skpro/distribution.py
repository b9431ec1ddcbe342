"""A prediction as a distribution of skpro: the same numbers, in data frames with the index of the rows."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
from skpro.distributions.base import BaseDistribution

from onepass._typing import FloatArray
from onepass.models.distribution import Prediction

__all__ = ["PredictiveDistribution"]


class PredictiveDistribution(BaseDistribution):  # type: ignore[misc]
    """The predictive distribution of one number per row.

    Parameters
    ----------
    prediction : onepass.Prediction
        Of ``n`` rows.
    rows : (m,) array of int, optional
        Which rows of the prediction these are; all by default. A single number makes a scalar distribution.
    index : pd.Index, optional
        Names of the rows.
    columns : pd.Index, optional
        Name of the target.

    Examples
    --------
    >>> from onepass import BayesianPerceptronRegressor
    >>> from onepass.integrations.skpro import PredictiveDistribution
    >>> model = BayesianPerceptronRegressor().fit([[0.0], [1.0], [2.0], [3.0]], [0.0, 1.0, 2.1, 2.9])
    >>> found = PredictiveDistribution(model.predict_dist([[4.0], [5.0]]), columns=["y"])
    >>> found.mean().shape, found.iloc[0, 0].shape
    ((2, 1), ())
    """

    _tags = {  # noqa: RUF012 # the name and form that skpro reads
        "authors": ["the onepass developers"],
        "capabilities:exact": ["mean", "var", "pdf", "log_pdf", "cdf", "ppf"],
        "capabilities:approx": ["energy", "pdfnorm"],
        "distr:measuretype": "continuous",
        "distr:paramtype": "general",
    }

    def __init__(self, prediction: Prediction, rows: Any = None, index: Any = None, columns: Any = None) -> None:
        self.prediction = prediction
        self.rows = rows
        if np.ndim(rows) == 0 and rows is not None:
            super().__init__()
            return
        size = len(prediction) if rows is None else len(rows)
        super().__init__(
            index=pd.RangeIndex(size) if index is None else index,
            columns=pd.RangeIndex(1) if columns is None else columns,
        )

    @property
    def _places(self) -> Any:
        """Rows of the prediction, ``(m,)``."""
        return np.arange(len(self.prediction)) if self.rows is None else np.atleast_1d(self.rows)

    def _shaped(self, numbers: Any) -> Any:
        """Numbers of the rows, ``(m,)``, in the distribution's own shape."""
        return np.reshape(numbers, self.shape)

    def _evaluated(self, function: Callable[[Any], Any], given: Any, filler: FloatArray) -> Any:
        """A function of the prediction at numbers of the rows; a row may occur more than once.

        The prediction takes a number for each of its rows: rows that are not asked for get a ``filler``.
        """
        places = self._places
        numbers = np.broadcast_to(np.ravel(given), places.shape)
        turns = pd.Series(places).groupby(places).cumcount().to_numpy()
        found = np.empty(len(places))
        for turn in range(int(turns.max(initial=-1)) + 1):
            now = turns == turn
            full = filler.copy()
            full[places[now]] = numbers[now]
            found[now] = np.asarray(function(full))[places[now]]
        return self._shaped(found)

    def _mean(self) -> Any:
        return self._shaped(np.asarray(self.prediction.mean)[self._places])

    def _var(self) -> Any:
        return self._shaped(np.asarray(self.prediction.var)[self._places])

    def _pdf(self, x: Any) -> Any:
        return self._evaluated(self.prediction.pdf, x, np.asarray(self.prediction.mean))

    def _log_pdf(self, x: Any) -> Any:
        return self._evaluated(self.prediction.logpdf, x, np.asarray(self.prediction.mean))

    def _cdf(self, x: Any) -> Any:
        return self._evaluated(self.prediction.cdf, x, np.asarray(self.prediction.mean))

    def _ppf(self, p: Any) -> Any:
        return self._evaluated(self.prediction.ppf, p, np.full(len(self.prediction), 0.5))

    def _iloc(self, rowidx: Any = None, colidx: Any = None) -> "PredictiveDistribution":
        if isinstance(rowidx, (int, np.integer)) and isinstance(colidx, (int, np.integer)):
            return self._iat(rowidx, colidx)
        rows = np.arange(len(self.index))
        rows = rows if rowidx is None else np.atleast_1d(rows[rowidx])
        columns = self.columns if colidx is None else self.columns[np.atleast_1d(np.arange(1)[colidx])]
        return type(self)(self.prediction, self._places[rows], self.index[rows], columns)

    def _iat(self, rowidx: Any = None, colidx: Any = None) -> "PredictiveDistribution":
        if rowidx is None or colidx is None:
            raise ValueError("iat needs a row and a column, such as iat[0, 0]")
        return type(self)(self.prediction, int(self._places[rowidx]))

    @classmethod
    def get_test_params(cls, parameter_set: str = "default") -> list[dict[str, Any]]:
        """Return what skpro's own checks make distributions of."""
        from onepass import BayesianPerceptronRegressor

        x = np.arange(12.0)[:, None]
        model = BayesianPerceptronRegressor().fit(x, np.sin(x[:, 0]))
        several = model.predict_dist(x[:3])
        return [
            {"prediction": several},
            {"prediction": several, "index": pd.Index([1, 2, 5]), "columns": pd.Index(["a"])},
            {"prediction": several, "rows": 1},
        ]
