"""Networks of perceptrons as River models, and the softmax perceptron, which is one without hidden layers.

Inputs are added when new features come, outputs when new classes do. The weights of a new feature start at the prior,
as if it had been zero in all rows before. The prior is scaled for the number of features in the first row, so it does
not depend on what comes later.

A network for classes has one output more than there are classes. It stands for any class that has not come yet, and
learns from every row that none came. The next new class takes it over, so it is just as if that class had been known
from the start.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Self

import numpy as np
from river import base

from onepass._typing import FloatArray
from onepass._validation import as_count, one_of
from onepass.beliefs.choice import Covariance
from onepass.files.state import Arrays, Parameters, nested, under
from onepass.integrations.river.features import NO_TARGET, Columns, as_target, as_weight, gaussian
from onepass.integrations.river.targets import StandardizedTargets
from onepass.likelihoods import likelihood_names, named
from onepass.models.mixture import Mixture, as_drift, with_drift
from onepass.models.network import BayesianNetwork
from onepass.models.online import AUTO

__all__ = ["MLPClassifier", "MLPRegressor", "SoftmaxClassifier"]

_ROOM = 1.25  # inputs of a network that has to grow, per feature: so that not every new feature makes it grow


class _NamedInputs:
    """A network over named features, whose number grows; None before the first row."""

    covariance: Covariance
    drift: float | str

    def _start(self) -> None:
        self._columns = Columns()
        self._network: BayesianNetwork | Mixture | None = None
        self._check_options()

    def _options(self) -> Parameters:
        """Options of the network, apart from its inputs and outputs."""
        raise NotImplementedError

    def _outputs(self) -> Parameters:
        """Options of its outputs."""
        raise NotImplementedError

    @property
    def n_seen(self) -> int:
        """Rows learned."""
        return 0 if self._network is None else self._network.n_seen

    @property
    def log_evidence(self) -> float:
        """Sum of the log predictive densities of all rows, each before it was learned."""
        return 0.0 if self._network is None else self._network.log_evidence

    @property
    def drift_(self) -> dict[float | str, float]:
        """Current probability of each rate of drift; with ``drift="auto"`` also of a return to the ``"prior"``."""
        return self._started().drift_

    @property
    def outliers_(self) -> float:
        """Estimated share of the targets that can't be trusted."""
        return self._started().outliers_

    @property
    def n_set_aside(self) -> int:
        """Rows that were not learned because their target was absurdly far off."""
        return 0 if self._network is None else self._network.n_set_aside

    @property
    def features(self) -> tuple[Any, ...]:
        """Names of the features that the network has inputs for."""
        return tuple(self._columns)

    def _started(self) -> BayesianNetwork | Mixture:
        return self._new_network(1) if self._network is None else self._network

    def _check_options(self) -> None:
        """Raise a ValueError for wrong arguments now, and not at the first row; without the memory for large layers."""
        hidden = self._options()["hidden"]
        layers = hidden if isinstance(hidden, (tuple, list)) else (hidden,)
        for units in layers:
            as_count(units, "hidden")
        small = {"hidden": (1,) * len(layers), "covariance": self.covariance}
        with_drift(BayesianNetwork, 1, **{**self._options(), **self._outputs(), **small})

    def _new_network(self, n_features: int) -> BayesianNetwork | Mixture:
        options = {**self._options(), **self._outputs(), "covariance": self.covariance}
        network = BayesianNetwork(n_features, **{**options, "drift": 0.0})
        # Fixed now: the scales of the prior are not to change with the features that come.
        prior = replace(network.prior, most_inputs=min(n_features, network.prior.most_inputs))
        return with_drift(BayesianNetwork, n_features, **options, prior=prior)

    def _grow(self, names: Mapping[Any, Any]) -> None:
        """Make room for new names, in an order that does not depend on that of the row."""
        old = tuple(self._columns)
        self._columns = Columns([*old, *sorted(names.keys() - set(old), key=repr)])
        needed = max(len(self._columns), 1)
        if self._network is None:
            self._network = self._new_network(needed)
        elif needed > self._network.n_features:
            larger = max(needed, int(_ROOM * self._network.n_features))
            self._network = self._network.with_inputs(larger, self.covariance)

    def _learn_row(self, x: Mapping[Any, Any], target: float, weight: float) -> None:
        n_inputs = 0 if self._network is None else self._network.n_features
        row, n_new, _ = self._columns.load(x, n_inputs)
        before = self._columns, self._network
        try:
            if n_new or self._network is None:
                self._grow(x)
                row = self._columns.load(x, self._started().n_features)[0]
            self._started().learn(row, target, sample_weight=None if weight == 1.0 else weight)
        except BaseException:  # a row that can't be learned leaves no inputs behind
            self._columns, self._network = before
            raise

    def _known_row(self, x: Mapping[Any, Any]) -> tuple[BayesianNetwork | Mixture, FloatArray]:
        """The network, and a row without the features that it has no inputs for; before the first, one for this row."""
        columns, network = self._columns, self._network
        if network is None:
            columns = Columns(sorted(x, key=repr))
            network = self._new_network(max(len(columns), 1))
        return network, columns.load(x, network.n_features)[0]

    # Files: see onepass.files.checkpoint.

    def export_state(self) -> tuple[Parameters, Arrays]:
        """Return the complete state, as JSON-compatible parameters and arrays: see `onepass.save`."""
        core, arrays = (None, {}) if self._network is None else self._network.export_state()
        state = {"arguments": self._arguments(), "core": core, "feature_names": self._columns.to_plain()}
        return state, nested("core", arrays)

    def _arguments(self) -> Parameters:
        """Arguments of the constructor, for JSON."""
        own: Any = self
        return {name: _plain(value) for name, value in own._get_params().items()}

    @classmethod
    def from_state(cls, parameters: Parameters, arrays: Arrays) -> Self:
        """Make the model that `export_state` described; it continues to learn exactly as that one would."""
        model = cls(**{name: _from_plain(value) for name, value in parameters["arguments"].items()})
        if parameters["core"] is not None:
            kind = Mixture if model.drift == AUTO else BayesianNetwork
            model._network = kind.from_state(parameters["core"], under("core", arrays))
        n_inputs = 0 if model._network is None else model._network.n_features
        model._columns = Columns.from_plain(parameters["feature_names"], n_inputs)
        return model


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value


def _from_plain(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


class _NetworkClassifier(_NamedInputs, base.Classifier):
    """What classifiers share: the classes, which may come at any time."""

    def _start(self) -> None:
        self._classes: tuple[Any, ...] = ()
        self._places: dict[Any, int] = {}
        super()._start()

    @property
    def _multiclass(self) -> bool:
        return True

    @property
    def classes(self) -> tuple[Any, ...]:
        """The classes so far, in the order in which they came; ``(False, True)`` for boolean labels."""
        return self._classes

    @property
    def _is_binary(self) -> bool:
        """Whether labels are False and True, which are known from the start and need one output for both."""
        return self._classes == (False, True) and isinstance(self._classes[0], bool)

    def _outputs(self) -> Parameters:
        if self._is_binary:
            return {"n_outputs": 1, "observation": "bernoulli"}
        return {"n_outputs": max(len(self._classes), 1) + 1, "observation": "categorical"}

    def _set_classes(self, classes: tuple[Any, ...]) -> None:
        self._classes, self._places = classes, {name: place for place, name in enumerate(classes)}

    def _place(self, y: Any) -> int:
        """The output of a class, or of any that has not come yet."""
        if y is None or y != y:
            raise ValueError(f"y must be a label, got {y!r}; {NO_TARGET}")
        if self._is_binary and not isinstance(y, (bool, np.bool_)):
            raise ValueError(
                f"y must be True or False, as the first label was, got {y!r}; don't mix booleans with other labels"
            )
        return self._places.get(y, len(self._classes))

    def learn_one(self, x: Mapping[Any, Any], y: Any, w: float = 1.0) -> None:
        """Learn one row and its label; a new label becomes a class.

        ``w`` is the weight of the row: 2 counts as if it had come twice, 0.5 raises its likelihood to the power 0.5,
        and 0 leaves it out.
        """
        place, weight = self._place(y), as_weight(w)
        if weight == 0.0:
            return
        if place < len(self._classes):
            self._learn_row(x, place, weight)
            return
        before = self._classes, self._network
        try:
            self._add_class(y)
            self._learn_row(x, self._places[y], weight)
        except BaseException:  # a row that can't be learned leaves no class behind
            self._network = before[1]
            self._set_classes(before[0])
            raise

    def _add_class(self, y: Any) -> None:
        if not self._classes and isinstance(y, (bool, np.bool_)):
            self._set_classes((False, True))
            return
        self._set_classes((*self._classes, y))
        if self._network is not None:
            self._network = self._network.with_outputs(len(self._classes) + 1, self.covariance)

    def predict_proba_one(self, x: Mapping[Any, Any], **kwargs: Any) -> dict[Any, float]:
        """Probabilities of the classes so far."""
        if not self._classes:
            self._columns.load(x, 0)  # what is no number is refused from the start
            return {}
        network, row = self._known_row(x)
        mean = network.predict(row).mean
        if self._is_binary:
            return {False: 1.0 - float(mean), True: float(mean)}
        known = mean[:-1].tolist()  # without what is left to classes that have not come yet
        total = sum(known)
        if total == 0.0:  # it is sure of none of them
            return dict.fromkeys(self._classes, 1.0 / len(known))
        return dict(zip(self._classes, (p / total for p in known), strict=True))

    def outlier_probability_one(self, x: Mapping[Any, Any], y: Any) -> float:
        """Probability that the label of a row is wrong, by the current belief; 0 with ``outliers=0``."""
        place = self._place(y)
        if not self._classes:
            raise ValueError("outlier_probability_one needs a model that has learned at least one row; learn one first")
        network, row = self._known_row(x)
        return float(network.outlier_probability(row, place))

    def export_state(self) -> tuple[Parameters, Arrays]:
        """Return the complete state, as JSON-compatible parameters and arrays: see `onepass.save`."""
        parameters, arrays = super().export_state()
        labels = [label.item() if isinstance(label, np.generic) else label for label in self._classes]
        if not all(isinstance(label, (bool, int, float, str)) for label in labels):
            raise TypeError(f"to be saved, classes must be numbers or strings, got {labels!r}")
        return {**parameters, "classes": labels}, arrays

    @classmethod
    def from_state(cls, parameters: Parameters, arrays: Arrays) -> Self:
        """Make the model that `export_state` described; it continues to learn exactly as that one would."""
        model = super().from_state(parameters, arrays)
        labels = parameters["classes"]
        if not isinstance(labels, list) or not all(isinstance(label, (bool, int, float, str)) for label in labels):
            raise ValueError("the saved classes must be numbers or strings")
        model._set_classes(tuple(labels))
        network, outputs = model._network, model._outputs()
        if len(model._places) != len(labels) or (network is None) != (not labels):
            raise ValueError("classes and outputs do not match")
        if network is not None and outputs != {"n_outputs": network.n_outputs, "observation": network.observation.name}:
            raise ValueError("classes and outputs do not match")
        return model


class SoftmaxClassifier(_NetworkClassifier):
    """Bayesian softmax perceptron for any number of classes, all learned jointly.

    New classes may come at any time. The labels True and False are two classes from the start; for these
    `PerceptronClassifier` predicts the same, about 20 times as fast. Other labels become classes when they first come.
    A value must be a finite number. A feature that a row leaves out counts as zero, and so does a feature that was
    never learned.

    Parameters
    ----------
    prior_scale
        Standard deviation of a weight before the first row.
    intercept_scale
        Standard deviation of the log odds between any two classes before the first row, for a row of zeros; the default
        is wide enough for rare classes.
    covariance
        Between which weights correlations are kept: `"full"` (all), `"neuron"` (those of each class) or `"diagonal"`
        (none). `"auto"` keeps all while that is fast, and fewer when there are many features or classes.
    forgetting
        In (0, 1]. Below 1 older rows count less, for classes that change.
    drift
        How fast the weights change, in [0, 1]: before each row their covariance moves this share of the way back to the
        prior's. `"auto"` learns six hypotheses side by side (five rates, and a quick return to the prior), weighted row
        by row by how well they predict. It takes seven to ten times as long as a fixed rate, and needs `forgetting=1`.
    outliers
        Share of the labels that are wrong, in [0, 0.5). Above 0 it is learned, starting from this value, and each row
        is weighted by the probability that its label is right.

    Examples
    --------
    >>> from river import datasets, evaluate, metrics, preprocessing
    >>> from onepass.river import SoftmaxClassifier
    >>> model = preprocessing.StandardScaler() | SoftmaxClassifier()
    >>> loss = evaluate.progressive_val_score(datasets.ImageSegments(), model, metrics.CrossEntropy())
    >>> print(f"{loss.get():.2f}")
    0.28
    """

    def __init__(
        self,
        prior_scale: float = 1.0,
        intercept_scale: float = 4.0,
        covariance: Covariance = "auto",
        forgetting: float = 1.0,
        drift: float | str = 0.0,
        outliers: float = 0.0,
    ) -> None:
        self.prior_scale = prior_scale
        self.intercept_scale = intercept_scale
        self.covariance = covariance
        self.forgetting = forgetting
        self.drift: float | str = as_drift(drift)
        self.outliers = outliers
        self._start()

    def _options(self) -> Parameters:
        names = ("prior_scale", "intercept_scale", "forgetting", "drift", "outliers")
        return {"hidden": (), **{name: getattr(self, name) for name in names}}


class MLPClassifier(_NetworkClassifier):
    """Network of Bayesian perceptrons for any number of classes; there is no learning rate and no optimiser to choose.

    New features and classes may come at any time. The labels True and False are two classes from the start; other
    labels become classes when they first come. Features should have a scale of about 1: put
    `preprocessing.StandardScaler` before the model. A value must be a finite number. A feature that a row leaves out
    counts as zero, and so does a feature that was never learned.

    Parameters
    ----------
    hidden
        Number of units of each hidden layer.
    activation
        Activation of the hidden units, as for `onepass.BayesianPerceptron`.
    prior_scale
        Multiplies the standard deviations of the weights before the first row.
    intercept_scale
        Standard deviation of the output's bias before the first row; with more than two classes, of the log odds
        between any two.
    covariance
        Between which weights correlations are kept: `"full"`, `"low_rank"`, `"layer"`, `"neuron"`, `"kronecker"` or
        `"diagonal"`, see `onepass.BayesianNetwork`. `"auto"` keeps all while the network is small, and fewer when more
        features or classes make it too large.
    forgetting
        In (0, 1]. Below 1 older rows count less, for classes that change.
    drift
        How fast the weights change, in [0, 1]: before each row their covariance moves this share of the way back to the
        prior's. `"auto"` learns six hypotheses side by side (five rates, and a quick return to the prior), weighted row
        by row by how well they predict. It takes seven to ten times as long as a fixed rate, and needs `forgetting=1`.
    outliers
        Share of the labels that are wrong, in [0, 0.5). Above 0 it is learned, starting from this value, and each row
        is weighted by the probability that its label is right.
    seed
        Seed of the random means of the weights before the first row.

    Examples
    --------
    >>> from river import datasets, evaluate, metrics, preprocessing
    >>> from onepass.river import MLPClassifier
    >>> model = preprocessing.StandardScaler() | MLPClassifier(hidden=(20,))
    >>> loss = evaluate.progressive_val_score(datasets.Bananas(), model, metrics.LogLoss())
    >>> print(f"{loss.get():.2f}")
    0.27
    """

    def __init__(
        self,
        hidden: tuple[int, ...] = (20,),
        activation: str = "relu",
        prior_scale: float = 1.0,
        intercept_scale: float = 4.0,
        covariance: Covariance = "auto",
        forgetting: float = 1.0,
        drift: float | str = 0.0,
        outliers: float = 0.0,
        seed: int = 0,
    ) -> None:
        self.hidden = hidden
        self.activation = activation
        self.prior_scale = prior_scale
        self.intercept_scale = intercept_scale
        self.covariance = covariance
        self.forgetting = forgetting
        self.drift: float | str = as_drift(drift)
        self.outliers = outliers
        self.seed = seed
        self._start()

    def _options(self) -> Parameters:
        names = ("hidden", "activation", "prior_scale", "intercept_scale", "forgetting", "drift", "outliers", "seed")
        return {name: getattr(self, name) for name in names}


class MLPRegressor(StandardizedTargets, _NamedInputs, base.Regressor):
    """Network of Bayesian perceptrons for numbers or counts; there is no learning rate and no optimiser to choose.

    New features may come at any time. Features and targets should have a scale of about 1: scale the features, and use
    `standardize=True` for the targets; do not scale counts. A value must be a finite number. A feature that a row
    leaves out counts as zero, and so does a feature that was never learned.

    Parameters
    ----------
    hidden
        Number of units of each hidden layer.
    activation
        Activation of the hidden units, as for `onepass.BayesianPerceptron`.
    prior_scale
        Multiplies the standard deviations of the weights before the first row.
    observation
        `"gaussian"` for numbers, `"heteroscedastic"` where their noise depends on the features; `"poisson"` or
        `"negative_binomial"` for counts, whose rate is the exponential of the output. Negative binomial counts
        vary more than Poisson counts, by a dispersion that is learned.
    noise
        Variance of the targets' noise, or the dispersion of negative binomial counts; `"learn"` estimates it from the
        rows.
    intercept_scale
        Standard deviation of the output's bias before the first row. None uses the network's prior, which is made for
        scaled targets.
    covariance
        Between which weights correlations are kept: `"full"`, `"low_rank"`, `"layer"`, `"neuron"`, `"kronecker"` or
        `"diagonal"`, see `onepass.BayesianNetwork`. `"auto"` keeps all while the network is small, and fewer when more
        features or classes make it too large.
    forgetting
        In (0, 1]. Below 1 older rows count less, for relations that change.
    drift
        How fast the weights change, in [0, 1]: before each row their covariance moves this share of the way back to the
        prior's. `"auto"` learns six hypotheses side by side (five rates, and a quick return to the prior), weighted row
        by row by how well they predict. It takes seven to ten times as long as a fixed rate, and needs `forgetting=1`.
    outliers
        Share of the targets that can't be trusted, in [0, 0.5). Above 0 it is learned, starting from this value, and
        each row is weighted by the probability that its target can be trusted.
    seed
        Seed of the random means of the weights before the first row.
    standardize
        Subtract the mean of the targets so far and divide by their standard deviation so far, for targets in any units.
        River's `TargetStandardScaler` does the same, but has no `with_dist`. Predictions are in the targets' own units;
        the scales of the prior, `noise` and `log_evidence` are those of standardised targets. Counts can't be
        standardised.

    Examples
    --------
    >>> from river import datasets, evaluate, metrics, preprocessing
    >>> from onepass.river import MLPRegressor
    >>> model = preprocessing.StandardScaler() | MLPRegressor(hidden=(20,), standardize=True)
    >>> error = evaluate.progressive_val_score(datasets.TrumpApproval(), model, metrics.MAE())
    >>> print(f"{error.get():.2f}")
    0.37
    """

    def __init__(
        self,
        hidden: tuple[int, ...] = (20,),
        activation: str = "relu",
        observation: str = "gaussian",
        noise: float | str = "learn",
        prior_scale: float = 1.0,
        intercept_scale: float | None = None,
        covariance: Covariance = "auto",
        forgetting: float = 1.0,
        drift: float | str = 0.0,
        outliers: float = 0.0,
        seed: int = 0,
        standardize: bool = False,
    ) -> None:
        self.hidden = hidden
        self.activation = activation
        self.observation: str = one_of(observation, likelihood_names(lambda kind: not kind.is_label), "observation")
        self.noise = noise
        self.prior_scale = prior_scale
        self.intercept_scale = intercept_scale
        self.covariance = covariance
        self.forgetting = forgetting
        self.drift: float | str = as_drift(drift)
        self.outliers = outliers
        self.seed = seed
        self._start_units(standardize)
        if standardize and not named(observation).is_numeric:
            raise ValueError(
                f"standardize=True needs observation='gaussian', got {observation!r}; pass standardize=False for counts"
            )
        self._start()

    def _options(self) -> Parameters:
        names = ("hidden", "activation", "prior_scale", "intercept_scale", "forgetting", "drift", "outliers", "seed")
        return {name: getattr(self, name) for name in names}

    def _outputs(self) -> Parameters:
        return {"n_outputs": 1, "observation": self.observation, "noise": self.noise}

    def export_state(self) -> tuple[Parameters, Arrays]:
        """Return the complete state, as JSON-compatible parameters and arrays: see `onepass.save`."""
        parameters, arrays = super().export_state()
        return ({**parameters, "units": self._units_to_plain()} if self.standardize else parameters), arrays

    @classmethod
    def from_state(cls, parameters: Parameters, arrays: Arrays) -> Self:
        """Make the model that `export_state` described; it continues to learn exactly as that one would."""
        model = super().from_state(parameters, arrays)
        return model._take_units(parameters["units"]) if model.standardize else model

    def learn_one(self, x: Mapping[Any, Any], y: Any, w: float = 1.0) -> None:
        """Learn one row and its target.

        ``w`` is the weight of the row: 2 counts as if it had come twice, 0.5 raises its likelihood to the power 0.5,
        and 0 leaves it out.
        """
        self._learn_target(x, as_target(y), as_weight(w))

    def predict_one(self, x: Mapping[Any, Any], with_dist: bool = False) -> Any:
        """Expected target; with ``with_dist`` a Gaussian with the mean and variance of a new target."""
        network, row = self._known_row(x)
        seen = network.predict(row)
        if network.n_seen == 0 and named(self.observation).is_numeric:
            # The means that weights start with are drawn, about zero: over all draws the output is zero too.
            seen = seen._replace(mean=0.0, var=seen.var + seen.mean**2)
        seen = self._units.undo(seen)
        return gaussian(seen) if with_dist else float(seen.mean)

    def outlier_probability_one(self, x: Mapping[Any, Any], y: Any) -> float:
        """Probability that the target of a row can't be trusted, by the current belief; 0 with ``outliers=0``."""
        network, row = self._known_row(x)
        return float(network.outlier_probability(row, self._units.standardized(as_target(y))))
