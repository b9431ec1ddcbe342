"""What all estimators share: scikit-learn's methods around a `Learner`.

An estimator checks what users give, and makes the learner with the first rows: an encoder of inputs, one of targets,
the warm-up and the models. A subclass says what a target is (`_targets_of`) and which models learn it (`_blueprint`),
and reads what the learner predicts. Other packages that have rows already encoded talk to the learner itself:
`learner_of` and `start_learner` give it.
"""

import warnings
from numbers import Integral, Real
from types import SimpleNamespace
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from onepass._typing import FloatArray
from onepass._validation import as_count, as_flag, as_outliers, as_positive, one_of
from onepass.beliefs.choice import Covariance
from onepass.engine.outliers import FAR
from onepass.estimators.blueprints import Blueprint
from onepass.estimators.files import (
    argument_from_json,
    argument_to_json,
    export_learner,
    feature_names,
    restore_encoder,
    restore_learner,
)
from onepass.estimators.inputs import InputEncoder, checked_weights
from onepass.estimators.learner import Learner
from onepass.estimators.refinement import Schedule
from onepass.estimators.rows import PredictedRows, Rows
from onepass.files.state import Arrays, Parameters
from onepass.models.distribution import Prediction
from onepass.models.missing import COLUMNS
from onepass.models.mixture import as_drift
from onepass.models.online import AUTO, REFINEMENTS

__all__ = ["OUTLIERS", "OnePassEstimator", "learner_of", "start_learner"]

OUTLIERS = 0.0
"""Share of the targets that are not to be trusted, if nothing else is said: all are."""


class OnePassEstimator(BaseEstimator):  # type: ignore[misc]
    """Fit, partial fit and prediction for all estimators; the module docstring says what a subclass adds."""

    prior_scale: Any  # a number, one per feature, "auto", or None where an estimator chooses it
    intercept_scale: Any  # a number, None for that of a weight, or "auto" where an estimator has several defaults
    covariance: Any  # a name, or the form of each layer of a network
    outliers: float
    forgetting: float
    drift: float | str
    passes: Any
    refine: str
    standardize: bool
    warm_up: int
    missing: str

    n_features_in_: int
    feature_names_in_: Any

    _blueprint: type[Blueprint]
    _target_checks: ClassVar[dict[str, Any]] = {}  # how scikit-learn checks the targets
    _learner: Learner  # once there are rows

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Forget everything, then learn the rows, ``passes`` times in the order given; networks shuffle by default.

        A row that repeats the one before it is added to its weight, unless repeats are mere chance, ``forgetting`` or
        ``drift`` is a number, or targets change while their inputs stay.

        Parameters
        ----------
        X : (n, d) array, data frame or sparse matrix
        y : (n,) array
        sample_weight : (n,) array, optional
            A row of weight ``w`` counts as ``w`` copies of it; ``w`` need not be whole, and 0 leaves the row out. In
            classifiers it is multiplied by ``class_weight``.
        """
        return self._learn(X, y, sample_weight, restart=True)

    def _learn(self, X: Any, y: Any, sample_weight: Any, classes: Any = None, *, restart: bool = False) -> Self:
        learner, rows = self._prepared(X, y, sample_weight, classes, restart=restart)
        if rows.weights is not None and not rows.weights.any():
            if restart:
                raise ValueError("sample_weight must contain at least one number above 0, got only zeros")
            return self
        if learner.state.n_rows == 0:
            learner.blueprint.warn_of_targets(rows.in_columns)
        (learner.fit if restart else learner.learn)(rows)
        self._learner = learner
        if n := learner.newly_set_aside():
            _warn_of_set_aside(n)
        return self

    def _learn_row(self, X: Any, y: Any) -> bool:
        """Learn a single dense row of numbers the short way; False if something asks for the long one."""
        row = self._plain_row(X)
        if row is None:
            return False
        learner = self._learner
        self._refuse_changes(learner)
        target = learner.targets.encode_one(y)
        if target is None or not learner.learn_row(row, target):
            return False
        if n := learner.newly_set_aside():
            _warn_of_set_aside(n)
        return True

    def _predict_row(self, X: Any) -> Prediction | None:
        """What is predicted for a single dense row of numbers; None if something asks for the long way."""
        row = self._plain_row(X)
        return None if row is None else self._learner.predict_row(row)

    def predict_dist(self, X: Any) -> Prediction:
        """Predictive distributions of new targets, in their own units; of classes, by their places in ``classes_``.

        Examples
        --------
        >>> from sklearn.datasets import load_diabetes
        >>> from onepass import BayesianPerceptronRegressor
        >>> X, y = load_diabetes(return_X_y=True)
        >>> seen = BayesianPerceptronRegressor().fit(X[:400], y[:400]).predict_dist(X[400:401])
        >>> low, high = seen.interval(0.9)
        >>> print(f"{seen.mean[0]:.0f} ± {seen.std[0]:.0f}, from {low[0]:.0f} to {high[0]:.0f} with 90 %")
        184 ± 57, from 91 to 277 with 90 %
        >>> print(f"above 200 with {1 - seen.cdf(200)[0]:.0%}")
        above 200 with 39%
        """
        found = self._fitted.distributions(self._encoded(X))
        if len(found) > 1:
            raise ValueError(
                f"predict_dist is for targets of one number, and y had {len(found)} columns: use predict_interval, "
                "predict with return_std=True, or an estimator for each column"
            )
        return found[0]

    def _plain_row(self, X: Any) -> FloatArray | None:
        """The only row of a dense array of numbers, ``(d,)``; None if rows have to be looked at more closely."""
        learner: Learner | None = self.__dict__.get("_learner")
        if learner is None or type(X) is not np.ndarray or X.shape != learner.row_shape or X.dtype != np.float64:
            return None
        row: FloatArray = X[0]
        return None if "feature_names_in_" in self.__dict__ else row  # names, which the row lacks

    def _encoded(self, X: Any) -> Any:
        """Rows to predict, checked and encoded."""
        learner, row = self._fitted, self._plain_row(X)
        return X if row is not None and learner.scaled(row) is not None else learner.encoder.rows(self, X)

    def _predict_then_learn(self, X: Any, y: Any, sample_weight: Any, classes: Any = None) -> PredictedRows:
        """Predict every row just before learning it."""
        learner, rows = self._prepared(X, y, sample_weight, classes)
        found = learner.predict_then_learn(rows)
        self._learner = learner
        if n := learner.newly_set_aside():
            _warn_of_set_aside(n)
        return found

    def _prepared(
        self, X: Any, y: Any, sample_weight: Any, classes: Any, *, restart: bool = False
    ) -> tuple[Learner, Rows]:
        """The learner, which is new before the first rows, and the rows as it takes them."""
        restart = restart or not self.__sklearn_is_fitted__()
        if restart:
            self._check_parameters()
            self.__dict__.pop("_learner", None)
            encoder = InputEncoder.of(X, self.missing, getattr(self, "image_shape", None))
        else:
            self._refuse_changes(self._learner)
            encoder = self._learner.encoder
        X, y = encoder.pairs(self, X, y, reset=restart, **self._target_checks)
        weights = checked_weights(sample_weight, X.shape[0])
        learner = self._new_learner(encoder, self._targets_of(y, classes)) if restart else self._learner_for(y, classes)
        targets = learner.targets.encode(y)
        weights = self._with_class_weights(learner, targets, weights)
        if restart:
            names = encoder.names(self._columns) if hasattr(self, "feature_names_in_") else None
            learner.start().warn_of_scales(X, names)
        return learner, Rows(X, targets, weights)

    def _new_learner(self, encoder: InputEncoder, targets: Any, seed: int | None = None, **options: Any) -> Learner:
        n_inputs = encoder.n_inputs(self.n_features_in_)
        given = SimpleNamespace(**self.get_params(deep=False))
        blueprint = self._blueprint(given, n_inputs, targets, self._seed if seed is None else seed, **options)
        return Learner(encoder, blueprint, self._schedule, self.n_features_in_)

    def _learner_for(self, y: Any, classes: Any) -> Learner:
        """The learner, for targets of more rows."""
        return self._learner

    @property
    def _seed(self) -> int:
        """Seed of what is random, drawn if it was left open."""
        state = getattr(self, "random_state", 0)
        return int(state) if isinstance(state, Integral) else int(check_random_state(state).randint(2**31 - 1))

    @property
    def _schedule(self) -> Schedule:
        # A rate that was given is one per row, also per row that repeats.
        merges = self.forgetting == 1.0 and self.drift in (0.0, AUTO)
        return Schedule(self.passes, self.refine, merges_repeats=merges)

    def _refuse_changes(self, learner: Learner) -> None:
        """Raise a ValueError if an argument was changed since the first rows: it would have no effect."""
        now = self.__dict__
        for name, value in learner.arguments:
            if now[name] is not value and not _equal(now[name], value):
                raise ValueError(
                    f"{name} was changed from {value!r} to {now[name]!r} after the first rows, but the model keeps "
                    f"learning with what it has started with: set {name} back, or call fit to start again"
                )

    def outlier_probability(self, X: Any, y: Any) -> FloatArray:
        """Probability that each target can't be trusted, by the current belief, ``(n,)``.

        For labels it is the probability that they are wrong, and 0 with ``outliers=0``. For numbers it is then 1 for
        targets that would be set aside, and 0 for all others. Of several outputs it is that of the least trusted one.
        To score the anomalies of a time series use `onepass.forecasting.AnomalyScorer`.
        """
        learner = self._fitted
        X, y = learner.encoder.pairs(self, X, y, reset=False, **self._target_checks)
        return learner.outlier_probability(Rows(X, learner.targets.encode(y)))

    def _start(self, n_features: int, classes: Any, *, scaled_targets: bool) -> Learner:
        """Forget everything, and give the learner, ready to predict from the prior alone: see `start_learner`."""
        self._check_parameters()
        if self.standardize:
            raise ValueError(
                "an estimator can start without rows only with standardize=False, got standardize=True, which takes "
                "its scales from the first rows"
            )
        self.__dict__.pop("feature_names_in_", None)
        self.n_features_in_ = as_count(n_features, "n_features")
        encoder = InputEncoder(self.missing, getattr(self, "image_shape", None))
        targets = self._targets_of(np.empty(0), classes)
        learner = self._new_learner(encoder, targets, expects_scaled_targets=scaled_targets)
        self._learner = learner.start()
        return self._learner

    # What a subclass says.

    def _targets_of(self, y: Any, classes: Any) -> Any:
        """What targets are, from those of the first rows."""
        raise NotImplementedError

    def _restored_targets(self, parameters: Parameters) -> Any:
        """The same from a file."""
        raise NotImplementedError

    def _with_class_weights(
        self, learner: Learner, targets: FloatArray, weights: FloatArray | None
    ) -> FloatArray | None:
        """Weights of rows, times those of their classes."""
        return weights

    _chooses_scale = False  # whether a prior_scale of None is allowed
    _chooses_intercept_scale = False  # and an intercept_scale of "auto"

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
        own = self.intercept_scale
        if own is not None and not (self._chooses_intercept_scale and isinstance(own, str) and own == "auto"):
            as_positive(own, "intercept_scale", "or None for the prior of a weight")
        as_outliers(self.outliers)
        one_of(self.missing, ("error", *COLUMNS), "missing")
        for name in ("standardize", "fit_intercept"):
            as_flag(getattr(self, name, True), name)
        if self.standardize:
            as_count(self.warm_up, "warm_up")
        one_of(self.refine, REFINEMENTS, "refine")
        self._check_passes()

    def _check_passes(self) -> None:
        if as_count(self.passes, "passes") > 1 and isinstance(self.prior_scale, str):
            raise ValueError(
                f"prior_scale='auto' compares what one pass predicted and needs passes=1, got passes={self.passes}; "
                "pass prior_scale as a number, or passes=1"
            )
        if as_drift(self.drift) == AUTO and self.passes > 1:
            raise ValueError(
                f"drift='auto' compares what one pass predicted and needs passes=1, got passes={self.passes}; pass "
                "drift as a number, or passes=1"
            )

    # What was learned.

    def __sklearn_is_fitted__(self) -> bool:
        learner: Learner | None = self.__dict__.get("_learner")
        return learner is not None and bool(learner.state.mixtures)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = self.missing != "error"
        return tags

    @property
    def _fitted(self) -> Learner:
        if not self.__sklearn_is_fitted__():
            check_is_fitted(self)  # which says so, and takes longer
        return self._learner

    @property
    def _columns(self) -> list[str]:
        """Names of the columns before they are encoded."""
        return [str(name) for name in getattr(self, "feature_names_in_", [f"x{i}" for i in range(self.n_features_in_)])]

    def _rows(self, X: Any) -> list[Rows]:
        """Rows to predict, checked, standardised and in chunks."""
        return list(self._fitted.rows(self._encoded(X)))

    def _of_outputs(self, values: list[Any]) -> Any:
        """What each mixture has; alone if there is but one."""
        return values[0] if len(values) == 1 else values if isinstance(values[0], dict) else np.array(values)

    @property
    def encoded_feature_names_(self) -> Any:
        """Names of the columns that the models learn from, such as ``colour=red``, in the order of `coef_`."""
        return np.array(self._fitted.encoder.names(self._columns), dtype=object)

    @property
    def n_seen_(self) -> int:
        """Rows learned, each counted once whatever its weight, and none of weight 0; `weight_sum_` sums the weights.

        Rows that `fit` takes for copies of the row before them are part of its weight.
        """
        return self._fitted.state.n_rows

    @property
    def weight_sum_(self) -> float:
        """Sum of the weights of all rows learned; without weights, the number of rows."""
        return self._fitted.weight_sum

    @property
    def covariance_(self) -> Covariance:
        """Which correlations between weights are kept; the choice made by ``covariance="auto"``."""
        chosen: Covariance = self._fitted.state.mixtures[0].members[0].covariance
        return chosen

    @property
    def prior_weights_(self) -> FloatArray:
        """Current weight of each prior scale, ``(k,)``, or ``(q, k)`` for several outputs."""
        return np.asarray(self._of_outputs([mixture.weights for mixture in self._fitted.state.mixtures]))

    @property
    def outliers_(self) -> Any:
        """Estimated share of the targets that can't be trusted; ``(q,)`` for several outputs."""
        return self._of_outputs([mixture.outliers_ for mixture in self._fitted.state.mixtures])

    @property
    def n_set_aside_(self) -> Any:
        """Targets that were counted but not learned, since they were absurdly far off; ``(q,)`` for several outputs."""
        return self._of_outputs(self._fitted.n_set_aside.tolist())

    @property
    def drift_(self) -> Any:
        """Current probability of each rate of drift; a list of such dictionaries for several outputs."""
        return self._of_outputs([mixture.drift_ for mixture in self._fitted.state.mixtures])

    @property
    def log_evidence_(self) -> float:
        """Sum of the log densities of all rows, each before it was learned, without the first ``warm_up`` rows.

        With ``prior_scale="auto"`` the densities are those of the mixture of all scales. Without ``standardize`` all
        rows count.
        """
        return self._fitted.log_evidence

    # Files.

    def _export_state(self) -> tuple[Parameters, Arrays]:
        """The whole state of the estimator, as parameters for JSON and arrays: see `onepass.save`."""
        parameters, arrays = export_learner(self._fitted)
        given = self.get_params(deep=False)
        parameters["arguments"] = {name: argument_to_json(name, value) for name, value in given.items()}
        if hasattr(self, "feature_names_in_"):
            parameters["feature_names"] = self.feature_names_in_.tolist()
        return parameters, arrays

    @classmethod
    def _from_state(cls, parameters: Parameters, arrays: Arrays) -> Self:
        """Make the estimator that was exported; it continues to learn exactly as that one would."""
        estimator = cls(**{name: argument_from_json(value) for name, value in parameters["arguments"].items()})
        estimator._check_parameters()
        estimator.n_features_in_ = as_count(parameters["n_features"], "n_features")
        if "feature_names" in parameters:
            estimator.feature_names_in_ = feature_names(parameters["feature_names"], estimator.n_features_in_)
        encoder = restore_encoder(parameters, estimator.missing, getattr(estimator, "image_shape", None))
        targets = estimator._restored_targets(parameters)
        learner = estimator._new_learner(encoder, targets, seed=int(parameters["seed"]))
        restore_learner(learner, parameters, arrays)
        estimator._learner = learner
        return estimator


def learner_of(estimator: Any) -> Any:
    """What learns encoded rows inside an estimator that has been fitted or started.

    Examples
    --------
    >>> from onepass import BayesianPerceptronRegressor
    >>> model = BayesianPerceptronRegressor().fit([[0.0], [1.0], [2.0]], [1.0, 3.0, 5.0])
    >>> learner_of(model).state.n_rows
    3
    """
    return estimator._learner


def start_learner(estimator: Any, n_features: int, classes: Any = None, *, scaled_targets: bool = False) -> Any:
    """Let an estimator forget everything and be ready to predict from the prior alone; returns its learner.

    Parameters
    ----------
    estimator : a scikit-learn estimator of this package, with ``standardize=False``
    n_features : int
        Number of input columns.
    classes : array, optional
        All classes, which classifiers need.
    scaled_targets : bool
        Whether targets are already scaled to about 1, so ``prior_scale="auto"`` needs no very wide priors.

    Examples
    --------
    >>> from onepass import BayesianPerceptronRegressor
    >>> model = BayesianPerceptronRegressor(standardize=False)
    >>> learner = start_learner(model, 2)
    >>> model.n_seen_, model.predict([[1.0, 2.0]])
    (0, array([0.]))
    """
    return estimator._start(n_features, classes, scaled_targets=scaled_targets)


def _warn_of_set_aside(n: int) -> None:
    """Warn that so many targets were set aside in a call; in a warm-up that is learned again it may be fewer."""
    if n > 0:
        which = "1 target was set aside, since it is" if n == 1 else f"{n} targets were set aside, since each is"
        warnings.warn(
            f"{which} more than {FAR:.0f} standard deviations from its prediction; pass outliers=0.01 if wild "
            "targets are to be expected",
            stacklevel=4,
        )


def _equal(one: Any, other: Any) -> bool:
    """Whether two values of an argument are the same."""
    if isinstance(one, np.ndarray) or isinstance(other, np.ndarray):
        return np.array_equal(one, other)
    return type(one) is type(other) and bool(one == other)
