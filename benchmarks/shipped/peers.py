"""The batch learners that ours is compared with, each at its best: settings by cross-validation on the whole table.

Ridge and logistic regression get the features that `onepass fit` makes of the columns, standardised. Gradient boosting
gets the columns themselves, as it likes them: numbers, dates as days, and categories as such.
"""

import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
from scipy.sparse import issparse
from sklearn.base import clone
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.linear_model import LogisticRegression, RidgeCV
from sklearn.model_selection import GridSearchCV, KFold, StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

__all__ = ["BOOSTING", "LINEAR", "columns_for_boosting", "predicted", "tuned_boosting", "tuned_linear"]

LINEAR, BOOSTING = "ridge / logistic regression", "gradient boosting"
_TREES = [
    {"learning_rate": [0.1], "max_leaf_nodes": [31], "min_samples_leaf": [20]},
    {"learning_rate": [0.05], "max_leaf_nodes": [7], "min_samples_leaf": [20], "max_iter": [200]},
    {"learning_rate": [0.1], "max_leaf_nodes": [4], "min_samples_leaf": [3]},
]


def tuned_linear(X: Any, y: np.ndarray, *, classes: int) -> Any:
    """Ridge or logistic regression with the penalty that cross-validation finds best."""
    scaler = StandardScaler(with_mean=not issparse(X))
    if not classes:
        return make_pipeline(scaler, RidgeCV(np.logspace(-3, 4, 15)))  # which looks for it whenever it learns
    return _tuned(
        make_pipeline(scaler, LogisticRegression(max_iter=300)),
        [{"logisticregression__C": np.logspace(-3, 2, 6)}],
        (X, y),
        classes,
    )


def tuned_boosting(X: pd.DataFrame, y: np.ndarray, *, classes: int) -> Any:
    """Gradient boosting with the settings that cross-validation finds best."""
    kind = HistGradientBoostingClassifier if classes else HistGradientBoostingRegressor
    return _tuned(kind(random_state=0, categorical_features="from_dtype"), _TREES, (X, y), classes)


def predicted(model: Any, X: Any, y: np.ndarray, at: Any, *, classes: int) -> np.ndarray:
    """Means, or probabilities of all classes, at some rows, learned from others."""
    fresh = clone(model)
    return _probabilities(fresh, X, y, at, classes) if classes else np.asarray(fresh.fit(X, y).predict(at))


def _tuned(model: Any, grid: list[dict[str, Any]], rows: tuple[Any, np.ndarray], classes: int) -> Any:
    folds = _folds(rows[1]) if classes else KFold(3, shuffle=True, random_state=0)
    if folds is None:
        return model
    scoring = "neg_log_loss" if classes else "neg_root_mean_squared_error"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return clone(GridSearchCV(model, grid, cv=folds, scoring=scoring, refit=True).fit(*rows).best_estimator_)


def _folds(y: np.ndarray) -> StratifiedKFold | None:
    """Folds that all have every class, or None if a class is too rare."""
    rarest = int(np.unique(y, return_counts=True)[1].min())
    return StratifiedKFold(min(3, rarest), shuffle=True, random_state=0) if rarest >= 2 else None


def _probabilities(model: Any, X: Any, y: np.ndarray, at: Any, classes: int) -> np.ndarray:
    """Probabilities of all classes; one that the training rows lack has next to none."""
    out = np.full((len(at), classes), 1e-6)
    known = np.unique(y).astype(int)
    if len(known) == 1:
        out[:, known] = 1.0
    else:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            out[:, known] = np.maximum(model.fit(X, y).predict_proba(at), 1e-6)
    return np.asarray(out / out.sum(axis=1, keepdims=True))


def columns_for_boosting(table: pd.DataFrame, kinds: Mapping[str, str]) -> pd.DataFrame:
    """Columns as gradient boosting takes them, by what onepass found in each."""
    out: dict[str, Any] = {}
    for name, kind in kinds.items():
        column = table[name]
        if kind == "number":
            out[name] = pd.to_numeric(column, errors="coerce")
        elif kind == "date":
            out[name] = _days(column)
        else:
            texts = column.astype(str)
            common = texts.value_counts().index[:200]  # as many as it takes
            out[name] = pd.Categorical(texts.where(texts.isin(common), "others"))
    return pd.DataFrame(out)


def _days(column: pd.Series) -> pd.Series:
    dates = pd.to_datetime(column, errors="coerce", format="mixed", utc=True)
    return (dates - pd.Timestamp("1970-01-01", tz="UTC")) / pd.Timedelta(days=1)
