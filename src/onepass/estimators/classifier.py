"""Classification: what all classifiers predict, and the perceptron for two classes or the softmax for more."""

from typing import Any, Literal, Self, overload

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin
from sklearn.utils import check_random_state

from onepass._typing import FloatArray
from onepass._validation import as_nonnegative, as_share, one_of
from onepass.estimators.base import OUTLIERS, OnePassEstimator
from onepass.estimators.blueprints import INTERCEPT_SCALE, ClassPerceptrons
from onepass.estimators.documentation import documented
from onepass.estimators.learner import Learner, member_predictions
from onepass.estimators.posterior import contrast_belief, draw_functions, draw_labels, linear_coefficients
from onepass.estimators.rows import PredictedRows
from onepass.estimators.targets import ClassTargets
from onepass.files.state import Parameters
from onepass.likelihoods.mixtures import mixture_moments
from onepass.models.calibration import PROBABILITIES
from onepass.models.distribution import Prediction
from onepass.models.prediction import PredictedMoments

__all__ = ["BayesianPerceptronClassifier", "OnePassClassifier"]

_TINY = 1e-300
_LINKS = ("sigmoid", "probit", "step")
_COVARIANCES = ("auto", "full", "neuron", "diagonal")
_ALONE = np.ones(1)  # the weight of the only component of a mixture


class OnePassClassifier(ClassifierMixin, OnePassEstimator):  # type: ignore[misc]
    """What all classifiers share; a subclass says which models learn."""

    class_weight: Any
    probabilities: str

    @property
    def classes_(self) -> NDArray[Any]:
        """The classes, ``(K,)``: sorted, those that came later after them in the order of their appearance."""
        classes: NDArray[Any] = self._fitted.targets.classes
        return classes

    def _check_parameters(self) -> None:
        super()._check_parameters()
        one_of(self.probabilities, PROBABILITIES, "probabilities")
        given = self.class_weight
        if given is None or (isinstance(given, str) and given == "balanced"):
            return
        if not isinstance(given, dict):
            raise ValueError(f"class_weight must be None, 'balanced' or a dictionary of classes, got {given!r}")
        for label, weight in given.items():
            as_nonnegative(weight, f"class_weight[{label!r}]")

    def _targets_of(self, y: Any, classes: Any) -> ClassTargets:
        return ClassTargets.of(y, classes)

    def _restored_targets(self, parameters: Parameters) -> ClassTargets:
        return ClassTargets.from_parameters(parameters)

    def _learner_for(self, y: Any, classes: Any) -> Learner:
        learner = self._learner
        learner.targets.check_classes(classes)
        more = learner.targets.with_classes_of(y)
        return learner if more is learner.targets else learner.with_classes(more)

    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        """Learn more rows, in the order given.

        Parameters
        ----------
        X : (n, d) array, data frame or sparse matrix
        y : (n,) array
        classes : array, optional
            All classes that can ever occur, which the first call may name. Without it the first call must have rows of
            two classes or more. A class that appears later is appended to ``classes_``, in the order of appearance, and
            keeps what was learned about the others: a third class turns the one output for two classes into a
            softmax.
        sample_weight : (n,) array, optional
            A row of weight ``w`` counts as ``w`` copies of it; ``w`` need not be whole, and 0 leaves the row out.
        """
        if sample_weight is None and classes is None and self.class_weight is None and self._learn_row(X, y):
            return self
        self._check_balance()
        return self._learn(X, y, sample_weight, classes)

    def predict_then_learn(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> PredictedRows:
        """Predict every row just before learning it: test-then-train evaluation, at the speed of learning.

        The first ``warm_up`` rows of a standardised model are predicted with a preliminary scale, the very first row
        not at all (NaN), and they are not scored.
        """
        self._check_balance()
        return self._predict_then_learn(X, y, sample_weight, classes)

    @overload
    def predict(self, X: Any) -> NDArray[Any]: ...
    @overload
    def predict(self, X: Any, *, return_dist: Literal[True]) -> Prediction: ...
    def predict(self, X: Any, *, return_dist: bool = False) -> Any:
        """Most probable classes, ``(n,)``; with ``return_dist`` it is `predict_dist`, which a pipeline passes on.

        That one has probabilities of the classes in the order of ``classes_``.
        """
        if return_dist:
            return self.predict_dist(X)
        scores = self.decision_function(X)
        index = (scores > 0.0).astype(int) if scores.ndim == 1 else scores.argmax(axis=1)
        return np.asarray(self.classes_[index])

    @overload
    def predict_proba(self, X: Any, return_std: Literal[False] = False, *, calibrated: bool = True) -> FloatArray: ...
    @overload
    def predict_proba(
        self, X: Any, return_std: Literal[True], *, calibrated: bool = True
    ) -> tuple[FloatArray, FloatArray]: ...
    @overload
    def predict_proba(self, X: Any, return_std: bool, *, calibrated: bool = True) -> Any: ...
    def predict_proba(self, X: Any, return_std: bool = False, *, calibrated: bool = True) -> Any:
        """Probabilities of the classes, ``(n, K)``.

        With ``return_std`` also the standard deviations of the probabilities, which come from not knowing the weights.
        With ``probabilities="adaptive"`` probabilities are calibrated, unless ``calibrated`` is False; deviations
        remain the model's.
        """
        weights, parts = self._mixture_parts(X)
        mean, var = mixture_moments(weights, parts.mean, parts.var)
        if self._learner.targets.is_binary:
            mean, var = np.exp(self._log_sides(weights, parts)), np.column_stack([var, var])
        probabilities = mean / mean.sum(axis=1, keepdims=True)
        if calibrated:
            probabilities = self._learner.calibrated(probabilities)
        return (probabilities, np.sqrt(var)) if return_std else probabilities

    def predict_log_proba(self, X: Any) -> FloatArray:
        """Logs of the probabilities, ``(n, K)``."""
        if self._fitted.blueprint.calibrates:
            return np.log(np.maximum(self.predict_proba(X), _TINY))
        weights, parts = self._mixture_parts(X)
        if self._learner.targets.is_binary:
            return self._log_sides(weights, parts)
        return np.log(np.maximum(np.tensordot(weights, parts.mean, 1), _TINY))

    def decision_function(self, X: Any) -> FloatArray:
        """Log odds of the second class, ``(n,)``; for more than two classes log probabilities, ``(n, K)``."""
        logs = self.predict_log_proba(X)
        return logs[:, 1] - logs[:, 0] if logs.shape[1] == 2 else logs

    def predict_interval(self, X: Any, level: float = 0.95) -> tuple[FloatArray, FloatArray]:
        """Limits between which the probability of the second class lies, with the credibility ``level``.

        For more than two classes the limits of each, ``(n, K)``, with its log odds against all others taken as
        Gaussian. They are limits of what the model believes, before it is calibrated.
        """
        as_share(level, "level", open_above=True)
        learner = self._fitted
        low, high = learner.interval(self._encoded(X), level)
        return (low[:, 0], high[:, 0]) if learner.targets.is_binary else (low, high)

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
        rows = self._rows(X)
        drawn = draw_functions(self._learner.state.mixtures[0], rows, n_samples, random).outputs
        return self.classes_[draw_labels(drawn, random).T]

    def sample_function(self, X: Any, n_samples: int = 1, random_state: Any = None) -> FloatArray:
        """Draw functions from the posterior: probabilities of the second class, ``(n, n_samples)``.

        For more than two classes the probabilities of all, ``(n, K, n_samples)``. All rows of a draw share its weights,
        as Thompson sampling needs.
        """
        random = check_random_state(random_state)
        rows = self._rows(X)
        drawn = draw_functions(self._learner.state.mixtures[0], rows, n_samples, random).outputs
        return np.asarray(np.moveaxis(drawn, 0, -1))

    def _check_balance(self) -> None:
        if isinstance(self.class_weight, str) and self.class_weight == "balanced":
            raise ValueError(
                "class_weight='balanced' needs the counts of all rows, so it works with fit only; for partial_fit and "
                "predict_then_learn pass a dictionary, for example from sklearn.utils.class_weight.compute_class_weight"
            )

    def _with_class_weights(
        self, learner: Learner, targets: FloatArray, weights: FloatArray | None
    ) -> FloatArray | None:
        given, labels, places = self.class_weight, learner.targets.classes.tolist(), targets.astype(int)
        if given is None:
            return weights
        if isinstance(given, dict):
            unknown = [label for label in given if label not in labels]
            if unknown:
                raise ValueError(f"class_weight has the class {unknown[0]!r}, which is not among the classes {labels}")
            own = np.array([float(given.get(label, 1.0)) for label in labels])
        else:
            own = len(places) / (len(labels) * np.bincount(places))
        of_rows: FloatArray = own[places]
        return of_rows if weights is None else weights * of_rows

    def _mixture_parts(self, X: Any) -> tuple[FloatArray, PredictedMoments]:
        """The components' weights, and what each of them predicts, ``(k, n)`` or ``(k, n, K)``."""
        seen = self._predict_row(X)
        if seen is not None and len(self._learner.state.mixtures[0].components) == 1:
            return _ALONE, PredictedMoments(*(np.asarray(part)[None, None] for part in seen.moments))
        rows = self._rows(X)
        (mixture,) = self._learner.state.mixtures
        return mixture.component_weights, member_predictions(mixture, rows)

    def _log_sides(self, weights: FloatArray, parts: PredictedMoments) -> FloatArray:
        """Log probabilities of both classes; all links being odd around 1/2, each keeps its digits in its own tail."""
        link = self._learner.blueprint.link
        sides = [weights @ link.moments(sign * parts.pre_mean, parts.pre_var).mean for sign in (-1.0, 1.0)]
        return np.asarray(np.log(np.maximum(np.column_stack(sides), _TINY)))


@documented
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
    @fit_intercept
    covariance : {"auto", "full", "neuron", "diagonal"}
        Which correlations between weights are kept. ``"full"``: all. ``"neuron"``: those between the weights of one
        class; for more than about ten classes probabilities are nearly as good, and a row takes far less time.
        ``"diagonal"``: none, for very many features. The default keeps as many as is not too slow: with two classes all
        up to 10 million numbers, that is 3,162 weights with one ``prior_scale``, else none. `covariance_` says what was
        chosen.
    @outliers_of_classes
    @change
    @passes_of_perceptrons
    @probabilities
    standardize : bool
        Standardise the inputs by mean and standard deviation of the first ``warm_up`` rows; sparse rows that stay
        sparse (two classes, with a diagonal covariance) are only divided by the size of their entries. The statistics
        stay fixed after that.
    @warm_up
    missing : {"error", "mean", "standard"}
        What to do about NaN among the inputs: raise an error, or use the mean of the column so far; with two
        classes, the column's variance counts as its uncertainty. ``"standard"`` uses mean and variance of the
        rows that set the scale (0 and 1, if the inputs were standardised before). (A categorical column of a
        data frame becomes columns of 0 and 1; a category that the first data frame did not have is all zeros.)
    @class_weight

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
    @log_evidence_of_classes
    @learned

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from onepass import BayesianPerceptronClassifier
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = BayesianPerceptronClassifier().fit(X[:400], y[:400])
    >>> print(f"{model.score(X[400:], y[400:]):.2f}")
    0.97
    >>> low, high = model.predict_interval(X[400:402], level=0.9)
    """

    _blueprint = ClassPerceptrons

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
        probabilities: str = "model",
        standardize: bool = True,
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
        self.probabilities = probabilities
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
        is_full = self._learner.targets.is_binary and cov.ndim == 2
        return np.sqrt(np.atleast_2d(np.diag(cov) if is_full else cov))

    @property
    def coef_cov_(self) -> FloatArray:
        """Covariance of the weights, in the units of the data; for more than two classes their variances."""
        return self._linear_parts()[2]

    def _linear_parts(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        learner = self._fitted
        (mixture,), inputs = learner.state.mixtures, learner.state.inputs
        if learner.targets.is_binary:
            coef, intercept, cov = linear_coefficients(mixture, inputs)
            return coef[None], np.array([intercept]), cov
        mean, var = contrast_belief(mixture)
        coef = mean[:, 1:] / inputs.scale
        return coef, mean[:, 0] - coef @ inputs.centre, var[:, 1:] / inputs.scale**2

    def _check_parameters(self) -> None:
        super()._check_parameters()
        one_of(self.activation, _LINKS, "activation")
        one_of(self.covariance, _COVARIANCES, "covariance")
