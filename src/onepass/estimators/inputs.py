"""What users give an estimator, checked once: parameters that all estimators have, rows, targets and sample weights."""

from collections.abc import Iterator
from contextlib import contextmanager
from numbers import Real
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import (
    check_array,
    check_is_fitted,
    check_X_y,
    validate_data,
)

from onepass._typing import FloatArray
from onepass._validation import as_count, as_flag, as_outliers, as_positive, as_row_weights, one_of
from onepass.beliefs.prior import takes_sparse_rows
from onepass.estimators.categories import Categories, text_column

__all__ = ["INTERCEPT_SCALE", "OUTLIERS", "SCALES", "WIDE_SCALES", "CheckedInputs"]

SCALES = (0.3, 1.0, 3.0, 10.0)  # of the priors that prior_scale="auto" weighs against each other
WIDE_SCALES = (1e2, 1e5, 1e8)  # and of those for targets whose units nobody has seen to
INTERCEPT_SCALE = 4.0
"""Standard deviation of an intercept before the first row.

Of log odds -7, that is one row in a thousand, it is less than twice that; in balanced classes, or targets that were
standardised, it costs one to two nats in all.
"""
OUTLIERS = 0.0
"""Share of the targets that are not to be trusted, if nothing else is said: all are."""


class CheckedInputs(BaseEstimator):  # type: ignore[misc]
    """Checks of what comes in; a subclass says what its models can take."""

    prior_scale: Any  # a number, one per feature, "auto", or None where an estimator chooses it
    intercept_scale: Any  # a number, None for that of a weight, or "auto" where an estimator has several defaults
    covariance: Any  # a name, or the form of each layer of a network
    outliers: float
    standardize: bool
    warm_up: int
    missing: str

    _categories: Categories | None = None
    _auto_scales: tuple[float, ...] = SCALES
    _wide_scales: tuple[float, ...] = ()  # more of them, for targets in units of their own
    _target_checks: dict[str, Any] = {}  # noqa: RUF012 (how scikit-learn checks the targets)
    _chooses_scale = False  # whether a prior_scale of None is allowed
    _sparse_models = True  # whether the models can take sparse rows

    def expect_scaled_targets(self) -> None:
        """Say that targets are already scaled to about 1, so ``prior_scale="auto"`` needs no very wide priors."""
        self._wide_scales = ()

    def _check_parameters(self) -> None:
        scale = self.prior_scale
        numbers = (scale,) if isinstance(scale, str) or not np.iterable(scale) else tuple(scale)
        known = [isinstance(one, Real) and not isinstance(one, bool) and 0.0 < float(one) < np.inf for one in numbers]
        named = (isinstance(scale, str) and scale == "auto") or (scale is None and self._chooses_scale)
        if not (known and all(known)) and not named:
            others = "'auto' or None" if self._chooses_scale else "or 'auto'"
            raise ValueError(
                f"prior_scale must be a positive number, an array with one per feature, {others}, got {scale!r}"
            )
        if self._own_intercept_scale is not None:
            as_positive(self._own_intercept_scale, "intercept_scale", "or None for the prior of a weight")
        as_outliers(self.outliers)
        one_of(self.missing, ("error", "mean"), "missing")
        for name in ("standardize", "fit_intercept"):
            as_flag(getattr(self, name, True), name)
        if self.standardize:
            as_count(self.warm_up, "warm_up")

    @property
    def _scales(self) -> tuple[Any, ...]:
        """The prior scales that learn side by side, each a number or an array of one per feature."""
        if isinstance(self.prior_scale, str):
            return self._auto_scales
        return (np.array(self.prior_scale, dtype=np.float64) if np.ndim(self.prior_scale) else float(self.prior_scale),)

    @property
    def _own_intercept_scale(self) -> float | None:
        """Standard deviation of the intercept before the first row; None for that of a weight."""
        own: float | None = self.intercept_scale
        return own

    @property
    def _n_inputs(self) -> int:
        """Numbers of a row as the models have them: those of a category are several."""
        return int(self.n_features_in_ if self._categories is None else self._categories.n_inputs)

    @property
    def encoded_feature_names_(self) -> Any:
        """Names of the columns that the models learn from, such as ``colour=red``, in the order of `coef_`."""
        check_is_fitted(self)
        return np.array(self._input_names, dtype=object)

    @property
    def _input_names(self) -> list[str]:
        given = getattr(self, "feature_names_in_", [f"x{i}" for i in range(self.n_features_in_)])
        names = [str(name) for name in given]
        return names if self._categories is None else self._categories.names(names)

    def _checked_pairs(self, X: Any, y: Any, *, restart: bool) -> tuple[Any, Any]:
        """Rows and targets to learn; at a restart they say how many features there are."""
        if restart:
            self._categories = Categories.of(X)
        with self._remedies(X):
            if self._categories is None:
                X, y = validate_data(
                    self, self._as_table(X), y, reset=restart, **self._row_checks, **self._target_checks
                )
            else:
                validate_data(self, X, reset=restart, skip_check_array=True)
                X, y = check_X_y(self._categories.encoded(X), y, **self._row_checks, **self._target_checks)
        return X, y

    def _checked_rows(self, X: Any, *, restart: bool = False) -> Any:
        """Rows to predict, or to learn; at a restart they say how many features there are."""
        if restart:
            self._categories = Categories.of(X)
        with self._remedies(X):
            if self._categories is None:
                X = validate_data(self, self._as_table(X), reset=restart, **self._row_checks)
            else:
                validate_data(self, X, reset=restart, skip_check_array=True)
                X = check_array(self._categories.encoded(X), **self._row_checks)
        return X

    @contextmanager
    def _remedies(self, X: Any) -> Iterator[None]:
        """Say what estimators can do about missing numbers and columns of texts, where scikit-learn refuses them."""
        try:
            yield
        except ValueError as error:
            if "X contains NaN" in str(error):
                raise ValueError(
                    "Input X contains NaN: pass missing='mean', which uses the mean of the column so far, or fill in "
                    "the missing values"
                ) from error
            if "could not convert" in str(error) and (found := text_column(X)) is not None:
                name, code = found
                raise ValueError(
                    f"column {name!r} of X has strings, where numbers or categories are needed ({error}): make it "
                    f"categorical, with {code}, or leave it out"
                ) from error
            raise

    @property
    def _row_checks(self) -> dict[str, Any]:
        """How scikit-learn checks the rows."""
        finite = "allow-nan" if self.missing == "mean" else True
        return {"accept_sparse": "csr", "dtype": np.float64, "ensure_all_finite": finite}

    def _as_table(self, X: Any) -> Any:
        """Rows ``(n, d)``, in whatever form a subclass accepts."""
        return X

    @property
    def _keeps_sparse(self) -> bool:
        """Whether sparse rows reach the models as they are."""
        return self._sparse_models and takes_sparse_rows(self.covariance)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = self.missing == "mean"
        return tags

    def _checked_weights(self, sample_weight: Any, X: Any) -> FloatArray | None:
        if sample_weight is None:
            return None
        if isinstance(sample_weight, Real):  # one weight for all rows, as scikit-learn allows
            sample_weight = np.full(X.shape[0], sample_weight)
        weights = as_row_weights(sample_weight, X.shape[0], zero_allowed=True)
        if weights is not None and not weights.any():
            raise ValueError("sample_weight must contain at least one number above 0, got only zeros")
        return weights
