"""An estimator as a probabilistic regressor of skpro, which learns more rows by `update`."""

from typing import Any, Self

import numpy as np
import pandas as pd
from sklearn.base import clone
from skpro.regression.base import BaseProbaRegressor
from skpro.utils.sklearn import prep_skl_df

from onepass.estimators.mlp import BayesianMLPRegressor
from onepass.estimators.regressor import BayesianPerceptronRegressor
from onepass.integrations.skpro.distribution import PredictiveDistribution

__all__ = ["OnePassProbaRegressor"]


class OnePassProbaRegressor(BaseProbaRegressor):  # type: ignore[misc]
    """A onepass regressor with the interface of skpro.

    Its distributions, quantiles, intervals and variances are those of the estimator's `predict_dist`. `update` learns
    more rows as `partial_fit` does, without the earlier ones.

    Parameters
    ----------
    estimator : BayesianPerceptronRegressor or BayesianMLPRegressor, optional
        Of numbers, with one target; it is copied and stays as it is. By default a `BayesianPerceptronRegressor`.

    Attributes
    ----------
    estimator_ : the estimator that has learned

    Examples
    --------
    >>> import pandas as pd
    >>> from onepass.integrations.skpro import OnePassProbaRegressor
    >>> X = pd.DataFrame({"x": [0.0, 1.0, 2.0, 3.0]})
    >>> y = pd.DataFrame({"y": [0.1, 1.0, 2.1, 2.9]})
    >>> model = OnePassProbaRegressor().fit(X, y).update(X + 4.0, y + 4.0)
    >>> model.predict_interval(X, coverage=0.9).shape
    (4, 2)
    >>> model.estimator_.n_seen_
    8
    """

    _tags = {  # noqa: RUF012 # the name and form that skpro reads
        "authors": ["the onepass developers"],
        "capability:multioutput": False,
        "capability:missing": False,
        "capability:update": True,
    }

    def __init__(self, estimator: Any = None) -> None:
        self.estimator = estimator
        super().__init__()
        if getattr(estimator, "missing", "error") != "error":
            self.set_tags(**{"capability:missing": True})

    def _fit(self, X: pd.DataFrame, y: pd.DataFrame) -> Self:
        self._target = y.columns
        self.estimator_ = BayesianPerceptronRegressor() if self.estimator is None else clone(self.estimator)
        self.estimator_.fit(prep_skl_df(X), y.iloc[:, 0].to_numpy())
        return self

    def _update(self, X: pd.DataFrame, y: pd.DataFrame) -> Self:
        self.estimator_.partial_fit(prep_skl_df(X), y.iloc[:, 0].to_numpy())
        return self

    def _predict(self, X: pd.DataFrame) -> pd.DataFrame:
        return pd.DataFrame(self.estimator_.predict_dist(prep_skl_df(X)).mean, index=X.index, columns=self._target)

    def _predict_proba(self, X: pd.DataFrame) -> PredictiveDistribution:
        found = self.estimator_.predict_dist(prep_skl_df(X))
        return PredictiveDistribution(found, index=X.index, columns=self._target)

    def _predict_interval(self, X: pd.DataFrame, coverage: list[float]) -> pd.DataFrame:
        found = self.estimator_.predict_dist(prep_skl_df(X))  # whose intervals may be tracked, unlike its quantiles
        limits = [side for level in coverage for side in found.interval(level)]
        columns = self._get_columns(method="predict_interval", coverage=coverage)
        return pd.DataFrame(np.column_stack(limits), index=X.index, columns=columns)

    def _predict_quantiles(self, X: pd.DataFrame, alpha: list[float]) -> pd.DataFrame:
        found: pd.DataFrame = self._predict_proba(X).quantile(alpha)
        return found

    @classmethod
    def get_test_params(cls, parameter_set: str = "default") -> list[dict[str, Any]]:
        """Return what skpro's own checks make regressors of."""
        return [
            {},
            {"estimator": BayesianPerceptronRegressor(prior_scale="auto", drift="auto")},
            {"estimator": BayesianMLPRegressor((10,), random_state=0)},
        ]
