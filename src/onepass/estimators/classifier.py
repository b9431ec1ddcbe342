"""Classification: a perceptron for two classes, one joint softmax step for more."""

from typing import Any, Literal, Self, overload

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets, unique_labels
from sklearn.utils.validation import check_is_fitted, column_or_1d

from onepass._typing import FloatArray
from onepass._validation import as_nonnegative, as_share, one_of
from onepass.activations import as_activation
from onepass.beliefs.choice import Covariance
from onepass.beliefs.prior import PERCEPTRON_BELIEFS, prior_variances, takes_sparse_rows
from onepass.estimators.base import OnePassEstimator
from onepass.estimators.batch import PredictedRows
from onepass.estimators.inputs import INTERCEPT_SCALE, OUTLIERS
from onepass.estimators.posterior import contrast_belief, draw_functions, draw_labels, linear_coefficients
from onepass.files.state import Arrays, Parameters
from onepass.layers.layout import Layout
from onepass.likelihoods.mixtures import mixture_moments
from onepass.models.mixture import with_drift
from onepass.models.network import BayesianNetwork
from onepass.models.perceptron import BayesianPerceptron
from onepass.models.prediction import Prediction

__all__ = ["BayesianPerceptronClassifier", "OnePassClassifier"]

_TINY = 1e-300
_SOME_CLASSES, _MOST_CLASSES = 100, 1000  # whole numbers that are nearly all different are suspicious, and too many
_REGRESSORS = "BayesianPerceptronRegressor, BayesianMLPRegressor"
_LINKS = ("sigmoid", "probit", "step")
_COVARIANCES = ("auto", "full", "neuron", "diagonal")


class OnePassClassifier(ClassifierMixin, OnePassEstimator):  # type: ignore[misc]
    """What all classifiers share; a subclass says which models learn (`_new_member`)."""

    classes_: NDArray[Any]
    class_weight: Any

    _balanced: Any = None  # weights of classes that `fit` has found

    def _check_parameters(self) -> None:
        super()._check_parameters()
        given = self.class_weight
        if given is None or (isinstance(given, str) and given == "balanced"):
            return
        if not isinstance(given, dict):
            raise ValueError(f"class_weight must be None, 'balanced' or a dictionary of classes, got {given!r}")
        for label, weight in given.items():
            as_nonnegative(weight, f"class_weight[{label!r}]")

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Forget everything, then learn the rows, ``passes`` times in the order given; networks shuffle by default.

        A row that repeats the one before it is added to its weight, unless repeats are mere chance, ``forgetting`` or
        ``drift`` is a number, or targets change while their inputs stay.

        Parameters
        ----------
        X : (n, d) array, data frame or sparse matrix
        y : (n,) array
        sample_weight : (n,) array, optional
            A row of weight ``w`` counts as ``w`` copies of it; ``w`` need not be whole, and 0 leaves the row out. It is
            multiplied by ``class_weight``.
        """
        if isinstance(self.class_weight, str) and self.class_weight == "balanced":
            labels, counts = np.unique(column_or_1d(y), return_counts=True)
            weights = counts.sum() / (len(counts) * counts)
            self._balanced = dict(zip(labels.tolist(), weights.tolist(), strict=True))
        return self._learn(X, y, sample_weight, restart=True)

    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        """Learn more rows, in the order given.

        Parameters
        ----------
        X : (n, d) array, data frame or sparse matrix
        y : (n,) array
        classes : array, optional
            All classes that can ever occur. By default these are the classes in the first call.
        sample_weight : (n,) array, optional
            A row of weight ``w`` counts as ``w`` copies of it; ``w`` need not be whole, and 0 leaves the row out.
        """
        self._check_balance()
        return self._learn(X, y, sample_weight, restart=False, classes=classes)

    def predict_then_learn(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> PredictedRows:
        """Predict every row just before learning it: test-then-train evaluation, at the speed of learning.

        The first ``warm_up`` rows of a standardised model are predicted with a preliminary scale, the very first row
        not at all (NaN), and they are not scored.
        """
        self._check_balance()
        return self._predict_then_learn(X, y, sample_weight, classes)

    def outlier_probability(self, X: Any, y: Any) -> FloatArray:
        """Probability that each label is wrong, by the current belief, ``(n,)``; 0 with ``outliers=0``."""
        return self._outlier_probability(X, y)

    def predict(self, X: Any) -> NDArray[Any]:
        """Most probable classes, ``(n,)``."""
        scores = self.decision_function(X)
        index = (scores > 0.0).astype(int) if scores.ndim == 1 else scores.argmax(axis=1)
        return np.asarray(self.classes_[index])

    @overload
    def predict_proba(self, X: Any, return_std: Literal[False] = False) -> FloatArray: ...
    @overload
    def predict_proba(self, X: Any, return_std: Literal[True]) -> tuple[FloatArray, FloatArray]: ...
    @overload
    def predict_proba(self, X: Any, return_std: bool) -> Any: ...
    def predict_proba(self, X: Any, return_std: bool = False) -> Any:
        """Probabilities of the classes, ``(n, K)``.

        With ``return_std`` also the standard deviations of the probabilities, which come from not knowing the weights.
        """
        weights, parts = self._mixture_parts(X)
        mean, var = mixture_moments(weights, parts.mean, parts.var)
        if self._binary:
            mean, var = np.exp(self._log_sides(weights, parts)), np.column_stack([var, var])
        probabilities = mean / mean.sum(axis=1, keepdims=True)
        return (probabilities, np.sqrt(var)) if return_std else probabilities

    def predict_log_proba(self, X: Any) -> FloatArray:
        """Logs of the probabilities, ``(n, K)``."""
        weights, parts = self._mixture_parts(X)
        if self._binary:
            return self._log_sides(weights, parts)
        return np.log(np.maximum(np.tensordot(weights, parts.mean, 1), _TINY))

    def decision_function(self, X: Any) -> FloatArray:
        """Log odds of the second class, ``(n,)``; for more than two classes log probabilities, ``(n, K)``."""
        logs = self.predict_log_proba(X)
        return logs[:, 1] - logs[:, 0] if self._binary else logs

    def predict_interval(self, X: Any, level: float = 0.95) -> tuple[FloatArray, FloatArray]:
        """Limits between which the probability of the second class lies, with the credibility ``level``.

        For more than two classes the limits of each, ``(n, K)``, with its log odds against all others taken as
        Gaussian.
        """
        as_share(level, "level", open_above=True)
        (mixture,) = self._mixtures
        low, high = mixture.interval_of(self._interval_parts(mixture, list(self._rows(X))), level)
        return low, high

    def sample_y(self, X: Any, n_samples: int = 1, random_state: Any = None) -> Any:
        """Draw labels of new rows, ``(n, n_samples)``.

        Labels of the same draw belong to one function (see `sample_function`), so a class that is uncertain in one row
        is wrong in similar rows of the same draw. A ``random_state`` makes the draws repeatable.

        Examples
        --------
        >>> from onepass import BayesianPerceptronClassifier
        >>> model = BayesianPerceptronClassifier().fit([[-1.0], [1.0]], ["no", "yes"])
        >>> model.sample_y([[3.0]], 5, random_state=0)
        array([['no', 'yes', 'yes', 'yes', 'yes']], dtype='<U3')
        """
        random = check_random_state(random_state)
        drawn = draw_functions(self._mixtures[0], list(self._rows(X)), n_samples, random).outputs
        return self.classes_[draw_labels(drawn, random).T]

    def sample_function(self, X: Any, n_samples: int = 1, random_state: Any = None) -> FloatArray:
        """Draw functions from the posterior: probabilities of the second class, ``(n, n_samples)``.

        For more than two classes the probabilities of all, ``(n, K, n_samples)``. All rows of a draw share its weights,
        as Thompson sampling needs.
        """
        random = check_random_state(random_state)
        drawn = draw_functions(self._mixtures[0], list(self._rows(X)), n_samples, random).outputs
        return np.asarray(np.moveaxis(drawn, 0, -1))

    def _check_balance(self) -> None:
        if isinstance(self.class_weight, str) and self.class_weight == "balanced":
            raise ValueError(
                "class_weight='balanced' needs the counts of all rows, so it works with fit only; for partial_fit and "
                "predict_then_learn pass a dictionary, for example from sklearn.utils.class_weight.compute_class_weight"
            )

    def _with_class_weights(self, weights: FloatArray | None, targets: FloatArray) -> FloatArray | None:
        given = self.class_weight
        if given is None:
            return weights
        chosen = given if isinstance(given, dict) else self._balanced
        own = np.array([float(chosen.get(label, 1.0)) for label in self.classes_.tolist()])
        unknown = [label for label in chosen if label not in self.classes_.tolist()]
        if unknown:
            raise ValueError(
                f"class_weight has the class {unknown[0]!r}, which is not among the classes {self.classes_.tolist()}"
            )
        of_rows: FloatArray = own[targets.astype(int)]
        return of_rows if weights is None else weights * of_rows

    @property
    def _binary(self) -> bool:
        return len(self.classes_) == 2

    def _encoded(self, y: Any, classes: Any, *, restart: bool) -> FloatArray:
        y = column_or_1d(y, warn=True)
        _check_labels(y, are_all=restart and classes is None)
        if restart:
            known = np.unique(y) if classes is None else unique_labels(np.asarray(classes))
            _check_number(len(known))
            if len(known) < 2:
                got = f"only one class, {known.tolist()[0]!r}" if len(known) else "none"
                raise ValueError(
                    f"y must have at least two classes, got {got}; to partial_fit pass all classes that can occur, as "
                    "classes=[...]"
                )
            self.classes_ = known
        elif classes is not None and not np.array_equal(unique_labels(np.asarray(classes)), self.classes_):
            raise ValueError(f"classes must be those of the first call, {self.classes_.tolist()}, got {classes!r}")
        unseen = np.setdiff1d(y, self.classes_)
        if len(unseen):
            raise ValueError(
                f"y has the class {unseen.tolist()[0]!r}, which was not among the classes of the first call, "
                f"{self.classes_.tolist()}; pass all classes that can occur to the first call, as classes=[...]"
            )
        return np.asarray(np.searchsorted(self.classes_, y), dtype=np.float64)

    @property
    def _link(self) -> Any:
        """What turns a pre-activation into the probability of the second class."""
        raise NotImplementedError

    @property
    def _prediction_shape(self) -> tuple[int, ...]:
        return (len(self.classes_),)

    def _predicted(self, predictions: list[Prediction]) -> tuple[FloatArray, FloatArray, FloatArray]:
        (seen,) = predictions
        mean, var, noise = seen.mean, seen.var, seen.noise_var
        if not self._binary:
            return mean, var, noise
        mean = np.column_stack([1.0 - mean, mean])
        return mean, np.column_stack([var, var]), np.column_stack([noise, noise])

    def _mixture_parts(self, X: Any) -> tuple[FloatArray, Prediction]:
        """The components' weights, and what each of them predicts, ``(k, n)`` or ``(k, n, K)``."""
        rows = list(self._rows(X))
        (mixture,) = self._mixtures
        return mixture.component_weights, self._member_predictions(mixture, rows)

    def _log_sides(self, weights: FloatArray, parts: Prediction) -> FloatArray:
        """Log probabilities of both classes; all links being odd around 1/2, each keeps its digits in its own tail."""
        sides = [weights @ self._link.moments(sign * parts.pre_mean, parts.pre_var).mean for sign in (-1.0, 1.0)]
        return np.asarray(np.log(np.maximum(np.column_stack(sides), _TINY)))

    def export_state(self) -> tuple[Parameters, Arrays]:
        """Return the complete state, as JSON-compatible parameters and arrays: see `onepass.save`."""
        parameters, arrays = super().export_state()
        labels = self.classes_.tolist()
        if not all(isinstance(label, (bool, int, float, str)) for label in labels):
            raise TypeError(f"classes must be numbers or strings to be saved, got {labels!r}")
        if "waiting/targets" in arrays:
            arrays["waiting/targets"] = arrays["waiting/targets"][:, 0]
        return {**parameters, "classes": labels, "classes_dtype": self.classes_.dtype.str}, arrays

    def _restore(self, parameters: Parameters, arrays: Arrays) -> None:
        labels, dtype = parameters["classes"], np.dtype(parameters["classes_dtype"])
        if dtype.kind not in "biufUO" or not isinstance(labels, list) or len(parameters["mixtures"]) != 1:
            raise ValueError(f"the saved classes must be numbers or strings, got {str(labels)[:40]}")
        self.classes_ = np.array(labels, dtype=np.str_ if dtype.kind == "U" else dtype)
        if self.classes_.ndim != 1 or len(np.unique(self.classes_)) != len(labels) or len(labels) < 2:
            raise ValueError(f"the saved classes must be at least two different ones, got {str(labels)[:40]}")


def _check_labels(y: Any, *, are_all: bool) -> None:
    """Raise a ValueError where labels are numbers and not classes; ``are_all`` where no other classes will come."""
    if y.dtype.kind == "f" and np.isfinite(y).all() and (fractions := y[y != np.floor(y)]).size:
        raise ValueError(
            f"Unknown label type: continuous. A classifier needs classes, got numbers such as {fractions[0]:g} in y: "
            f"use a regressor ({_REGRESSORS}), or turn the numbers into classes, such as y > {np.median(y):.3g}"
        )
    if are_all and y.dtype.kind in "iuf" and (count := len(np.unique(y))) > _SOME_CLASSES and 2 * count > len(y):
        fewer = f"merge rare ones, as at most {_MOST_CLASSES} are allowed, and " if count > _MOST_CLASSES else ""
        raise ValueError(
            f"y has {count} different numbers in {len(y)} rows, so they are probably not classes: use a regressor "
            f"({_REGRESSORS}); if they are classes, {fewer}pass them as strings"
        )
    check_classification_targets(y)


def _check_number(count: int) -> None:
    """Raise a ValueError where there are too many classes."""
    if count > _MOST_CLASSES:
        raise ValueError(
            f"y has {count} classes, and every row would update the weights of all of them: at most {_MOST_CLASSES} "
            f"are allowed; merge rare classes, or use a regressor ({_REGRESSORS}) if they are numbers"
        )


class BayesianPerceptronClassifier(OnePassClassifier):
    """Bayesian perceptron for classification, learned in one pass.

    Parameters
    ----------
    activation : {"sigmoid", "probit", "step"}
        The function that turns the weighted sum of the inputs into the probability of the second class; with more than
        two classes it is always the softmax.
    prior_scale : float, (d,) array or "auto"
        Standard deviation of the weights before the first row: one number for all, or one per feature. ``"auto"``
        learns with several scales side by side, weighted by how well each predicted the last rows; it needs
        ``passes=1``.
    intercept_scale : float, optional
        Standard deviation of the intercept before the first row, independent of ``prior_scale``; the default is wide
        enough for rare classes. With more than two classes it is the standard deviation of the log odds between any
        two. None gives the intercept the prior of a weight.
    fit_intercept : bool
        Whether there is an intercept.
    covariance : {"auto", "full", "neuron", "diagonal"}
        Which correlations between weights are kept. ``"full"``: all. ``"neuron"``: those between the weights of one
        class; for more than about ten classes probabilities are nearly as good, and a row takes far less time.
        ``"diagonal"``: none, for very many features. The default with two classes is all, or none if that does not fit
        into memory; with more classes, as many as is not too slow. `covariance_` says what was chosen.
    outliers : float
        Share of the labels that are wrong, in [0, 0.5). 0 trusts all of them; above 0 the share is learned, starting
        from this value, and each row is weighted by the probability that its label is right. If many rows in succession
        are distrusted, the relation itself is taken to have changed, and the model returns to the uncertainty of the
        prior.
    forgetting : float
        In (0, 1]; below 1 older rows count less, for classes that change.
    drift : float or "auto"
        How fast the weights change, in [0, 1]: before each row their covariance moves this share of the way back to the
        prior's. ``"auto"`` learns six hypotheses side by side (five rates, and a quick return to the prior), weighted
        row by row by how well they predict. It takes seven to ten times as long as a fixed rate, and needs ``passes=1``
        and ``forgetting=1``.
    passes : int
        How often ``fit`` goes over its rows; ``partial_fit`` always makes one pass. One pass is online learning; five
        correct intervals that one pass over few rows leaves too narrow, and make the order of the rows unimportant.
    refine : {"auto", "ep", "reuse"}
        What the later passes do. ``"ep"`` (expectation propagation) removes a row's contribution before learning it
        again, so each row counts once; ``"reuse"`` counts it again, which makes intervals too narrow. The default is
        ``"ep"`` if it is possible, that is with a full covariance, no forgetting and no drift; else ``"reuse"``.
    standardize : bool
        Standardise the inputs by mean and standard deviation of the first ``warm_up`` rows; sparse rows that stay
        sparse (``covariance="diagonal"``) are only divided by the size of their entries. The statistics stay fixed
        after that.
    warm_up : int
        With ``standardize``: how many of the first rows determine mean and standard deviation.
    missing : {"error", "mean"}
        What to do about NaN among the inputs: raise an error, or use the mean of the column so far; with two classes,
        the column's variance counts as its uncertainty. (A categorical column of a data frame becomes columns of 0
        and 1; a category that the first data frame did not have is all zeros.)
    class_weight : dict or "balanced", optional
        Weight of the rows of each class, 1 for classes left out. ``"balanced"`` makes all classes count the same: the
        weight is the number of rows, divided by the number of classes and by the rows of the class; only ``fit`` can do
        that, as it needs all rows. A row of weight ``w`` counts as ``w`` copies.

    Attributes
    ----------
    classes_ : (K,) array
    coef_ : (1, d) or (K, d) array
        Mean weights, in the units of the data. For more than two classes the mean over the classes is subtracted, which
        changes no probability.
    intercept_ : (1,) or (K,) array
    coef_std_ : (1, d) or (K, d) array
        Their standard deviations.
    coef_cov_ : (d, d) array
        Covariance of the weights, in the same units; with ``covariance="diagonal"`` its diagonal ``(d,)``, and for more
        than two classes the variances ``(K, d)``.
    log_evidence_ : float
        Sum of the log probabilities of all labels, each before it was learned. With ``standardize=True`` the first
        ``warm_up`` rows are left out, so compare only models with the same ``standardize`` and ``warm_up``.
    outliers_ : float
        Estimated share of the labels that are wrong.
    drift_ : dict
        Current probability of each rate of drift; for several outputs a list of such dictionaries.
    n_seen_ : int
        Rows learned; a row counts once whatever its weight, and not at all if its weight is 0.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from onepass import BayesianPerceptronClassifier
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = BayesianPerceptronClassifier(standardize=True).fit(X[:400], y[:400])
    >>> print(f"{model.score(X[400:], y[400:]):.2f}")
    0.97
    >>> low, high = model.predict_interval(X[400:402], level=0.9)
    """

    def __init__(
        self,
        activation: str = "sigmoid",
        *,
        prior_scale: Any = 1.0,
        intercept_scale: float | None = INTERCEPT_SCALE,
        fit_intercept: bool = True,
        covariance: str = "auto",
        outliers: float = OUTLIERS,
        forgetting: float = 1.0,
        drift: float | str = 0.0,
        passes: int = 1,
        refine: str = "auto",
        standardize: bool = False,
        warm_up: int = 100,
        missing: str = "error",
        class_weight: Any = None,
    ) -> None:
        self.activation = activation
        self.prior_scale = prior_scale
        self.intercept_scale = intercept_scale
        self.fit_intercept = fit_intercept
        self.covariance = covariance
        self.outliers = outliers
        self.forgetting = forgetting
        self.drift = drift
        self.passes = passes
        self.refine = refine
        self.standardize = standardize
        self.warm_up = warm_up
        self.missing = missing
        self.class_weight = class_weight

    @property
    def coef_(self) -> FloatArray:
        """Mean weights, in the units of the data; for more than two classes, minus the mean over the classes."""
        return self._linear_parts()[0]

    @property
    def intercept_(self) -> FloatArray:
        """Mean of the bias, in the units of the data."""
        return self._linear_parts()[1]

    @property
    def coef_std_(self) -> FloatArray:
        """Standard deviations of the weights, in the units of the data: of the shape of `coef_`."""
        cov = self.coef_cov_
        is_full = self._binary and cov.ndim == 2
        return np.sqrt(np.atleast_2d(np.diag(cov) if is_full else cov))

    @property
    def coef_cov_(self) -> FloatArray:
        """Covariance of the weights, in the units of the data; for more than two classes their variances."""
        return self._linear_parts()[2]

    def _linear_parts(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        check_is_fitted(self)
        (mixture,) = self._mixtures
        inputs = self._input_scaling
        if self._binary:
            coef, intercept, cov = linear_coefficients(mixture, inputs)
            return coef[None], np.array([intercept]), cov
        mean, var = contrast_belief(mixture)
        coef = mean[:, 1:] / inputs.scale
        return coef, mean[:, 0] - coef @ inputs.centre, var[:, 1:] / inputs.scale**2

    def _check_parameters(self) -> None:
        super()._check_parameters()
        one_of(self.activation, _LINKS, "activation")
        one_of(self.covariance, _COVARIANCES, "covariance")

    @property
    def _keeps_sparse(self) -> bool:
        return self._binary and takes_sparse_rows(self._form)

    @property
    def _link(self) -> Any:
        return as_activation(self.activation)

    @property
    def _takes_variances(self) -> bool:  # type: ignore[override]
        return self._binary

    @property
    def _layout(self) -> Layout:
        return Layout((self._n_inputs, 1 if self._binary else len(self.classes_)))

    @property
    def _form(self) -> Covariance:
        if not self._binary:
            return super()._form
        if self.covariance == "auto" and not self._fits("full"):
            return "diagonal"
        # Two classes have one output, all of whose weights are a neuron's.
        return self.covariance if self.covariance in PERCEPTRON_BELIEFS else "full"

    def _new_member(self, scale: float, target_scale: float) -> Any:
        if self._binary:
            return with_drift(
                BayesianPerceptron,
                self._n_inputs,
                self.activation,
                bias=self.fit_intercept,
                cov=prior_variances(self._n_inputs, int(self.fit_intercept), scale, self.intercept_scale),
                covariance=str(self._form),
                outliers=self.outliers,
                forgetting=self.forgetting,
                drift=self.drift,
            )
        if not self.fit_intercept:
            raise ValueError(
                f"fit_intercept=False works with two classes only, got {len(self.classes_)}; pass fit_intercept=True"
            )
        return with_drift(
            BayesianNetwork,
            self._n_inputs,
            hidden=(),
            n_outputs=len(self.classes_),
            observation="categorical",
            covariance=self.covariance,
            prior_scale=scale,
            intercept_scale=self.intercept_scale,
            outliers=self.outliers,
            forgetting=self.forgetting,
            drift=self.drift,
        )
