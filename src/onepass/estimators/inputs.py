"""What users give as rows, checked once: tables of numbers, data frames with categories, images, missing values."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from numbers import Real
from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_array, check_consistent_length, check_X_y, validate_data

from onepass._typing import FloatArray
from onepass._validation import as_row_weights
from onepass.estimators.categories import Categories, text_column
from onepass.estimators.frames import date_column
from onepass.estimators.targets import check_numbers, has_columns
from onepass.layers import ImageShape, flat_size

__all__ = ["InputEncoder", "checked_weights"]


_CHECKS: dict[str, Any] = {"accept_sparse": "csr", "dtype": np.float64, "ensure_all_finite": "allow-nan"}
"""How scikit-learn checks rows; whether numbers may be missing is up to the encoder."""


@dataclass(frozen=True)
class InputEncoder:
    """Turns rows into the numbers that models learn from; what is missing stays NaN, and sparse rows stay sparse."""

    missing: str = "error"
    image_shape: ImageShape | None = None
    categories: Categories | None = None

    @classmethod
    def of(cls, X: Any, missing: str, image_shape: ImageShape | None) -> Self:
        """The encoder for rows such as the first ones."""
        return cls(missing, image_shape, Categories.of(X))

    def n_inputs(self, n_features: int) -> int:
        """Numbers of an encoded row: a category has several."""
        return n_features if self.categories is None else self.categories.n_inputs

    def names(self, columns: list[str]) -> list[str]:
        """Names of the encoded columns, such as ``colour=red``."""
        return columns if self.categories is None else self.categories.names(columns)

    @property
    def n_channels(self) -> int | None:
        """Channels of images, whose pixels share their scale; None for other rows."""
        return None if self.image_shape is None else _with_channels(tuple(self.image_shape))[-1]

    def rows(self, estimator: Any, X: Any, *, reset: bool = False) -> Any:
        """Check and encode rows; at a reset they say how many features the estimator has."""
        with _remedies(X):
            if self.categories is None:
                return self._known(validate_data(estimator, self._as_table(X), reset=reset, **_CHECKS))
            validate_data(estimator, X, reset=reset, skip_check_array=True)
            return self._known(check_array(self.categories.encoded(X), **_CHECKS))

    def pairs(self, estimator: Any, X: Any, y: Any, *, reset: bool, **target_checks: Any) -> tuple[Any, Any]:
        """Check and encode rows, and check their targets, of which NaN among several numbers was not observed."""
        if target_checks:
            check_numbers(y)
        if target_checks and has_columns(y):
            X = self.rows(estimator, X, reset=reset)
            y = check_array(y, dtype=np.float64, ensure_all_finite="allow-nan", input_name="y")
            check_consistent_length(X, y)
            return X, y
        with _remedies(X):
            if self.categories is None:
                X, y = validate_data(estimator, self._as_table(X), y, reset=reset, **_CHECKS, **target_checks)
            else:
                validate_data(estimator, X, reset=reset, skip_check_array=True)
                X, y = check_X_y(self.categories.encoded(X), y, **_CHECKS, **target_checks)
        X = self._known(X)
        if target_checks and np.isnan(y).any():  # None, which scikit-learn takes for a number
            raise ValueError("Input y contains NaN.")
        return X, y

    def _known(self, X: Any) -> Any:
        """Checked rows, unless some of their numbers are missing and may not be."""
        numbers: Any = X if isinstance(X, np.ndarray) else X.data
        with np.errstate(over="ignore", invalid="ignore"):
            some = self.missing == "error" and np.isnan(np.sum(numbers))  # or the sum has overflowed
        if some and np.isnan(numbers).any():
            raise ValueError(
                "Input X contains NaN: pass missing='mean', which uses the mean of the column so far, or fill in the "
                "missing values"
            )
        return X

    def _as_table(self, X: Any) -> Any:
        """Rows ``(n, d)``; of images their pixels."""
        if self.image_shape is None:
            given = tuple(getattr(X, "shape", ()))
            if len(given) > 2:
                raise ValueError(
                    f"X must have shape (n, d), got shape {given}; for images pass image_shape={given[1:]} to a "
                    "BayesianMLPClassifier or BayesianMLPRegressor"
                )
            return X
        given, shape = np.shape(X), tuple(self.image_shape)
        if len(given) > 2 and _with_channels(given[1:]) == _with_channels(shape):
            return np.asarray(X).reshape(given[0], -1)
        if len(given) != 2 or given[1] != flat_size(shape):
            wide = ", ".join(map(str, shape))
            raise ValueError(
                f"X must have shape (n, {flat_size(shape)}) or (n, {wide}) with image_shape={shape}, got shape {given}"
            )
        return X


@contextmanager
def _remedies(X: Any) -> Iterator[None]:
    """Say what to do about dates, and about columns of texts, which are to blame where scikit-learn refuses a frame."""
    if (dates := date_column(X)) is not None:
        raise ValueError(
            f"{dates} has dates or times, which aren't numbers: derive features from it, such as the weekday or the "
            "hours since some event, or leave it out"
        )
    try:
        yield
    except (TypeError, ValueError) as error:
        if (found := text_column(X)) is not None:
            name, code = found
            raise ValueError(
                f"column {name!r} of X has strings or other objects, where numbers or categories are needed ({error}): "
                f"make it categorical, with {code}, or leave it out"
            ) from error
        raise


def checked_weights(sample_weight: Any, n_rows: int) -> FloatArray | None:
    """Weights of rows, ``(n,)``; None if all are 1 because none were given."""
    if sample_weight is None:
        return None
    if isinstance(sample_weight, Real):  # one weight for all rows, as scikit-learn allows
        sample_weight = np.full(n_rows, sample_weight)
    return as_row_weights(sample_weight, n_rows, zero_allowed=True)


def _with_channels(shape: tuple[int, ...]) -> tuple[int, ...]:
    """The shape of images with the number of channels, where one may be left out."""
    return (*shape, 1) if len(shape) == 2 else shape
