"""Which models an estimator learns with: perceptrons or networks, one for each of the prior scales that compete.

A blueprint has the arguments of its estimator, and makes the models when it is known how many inputs and which targets
there are. Errors name the arguments of the estimator, whatever those of the models are called.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from math import pi, sqrt
from typing import Any

import numpy as np

from onepass._validation import as_nonnegative, as_positive
from onepass.activations import as_activation
from onepass.beliefs.block import BlockGaussian
from onepass.beliefs.choice import Covariance, belief_type, count_numbers
from onepass.beliefs.diagonal import IndependentWeights
from onepass.beliefs.prior import PERCEPTRON_BELIEFS, prior_variances, takes_sparse_rows
from onepass.estimators.rows import Rows
from onepass.estimators.scaling import near, warn_of_range, warn_of_targets, zero_for_nan
from onepass.estimators.standardizer import MEAN_AND_STD, SIZE
from onepass.estimators.targets import ClassTargets, NumberTargets
from onepass.layers import ImageShape
from onepass.layers.layout import Layout
from onepass.models.committee import BayesianCommittee
from onepass.models.mixture import Mixture, with_drift
from onepass.models.network import BayesianNetwork
from onepass.models.perceptron import BayesianPerceptron
from onepass.models.weighting import FadingWeights

__all__ = [
    "INTERCEPT_SCALE",
    "NETWORK_SCALES",
    "SCALES",
    "WIDE_SCALES",
    "Blueprint",
    "ClassPerceptrons",
    "Networks",
    "NumberPerceptrons",
    "activation_is",
]

SCALES = (0.3, 1.0, 3.0, 10.0)  # of the priors that prior_scale="auto" weighs against each other
WIDE_SCALES = (1e2, 1e5, 1e8)  # and of those for targets whose units nobody has seen to
NETWORK_SCALES = (0.5, 1.0, 2.0)  # besides the network's own prior
INTERCEPT_SCALE = 4.0
"""Standard deviation of an intercept before the first row.

Of log odds -7, that is one row in a thousand, it is less than twice that; in balanced classes, or targets that were
standardised, it costs one to two nats in all.
"""
_LOG_ODDS = {"sigmoid": 1.0, "probit": sqrt(8.0 / pi)}  # per unit of the weighted sum, around 0
_EXPLAINED = 3.0  # times the targets' variance: what all features together explain before the first row
_NOISE_START = 0.1  # times the targets' variance
_MOST_NUMBERS = 200_000_000  # of the covariances of an estimator
_FEW_NUMBERS = 10_000_000
"""Up to so many perceptrons keep all correlations by default: a row takes some 1.5 ms on one core.

The time grows with the square of the features, that of a learned noise with their cube, and what the correlations are
worth does not: ``python -m benchmarks.many_features``.
"""


@dataclass(frozen=True)
class Blueprint(ABC):
    """What the models of an estimator are before their first row."""

    given: Any
    """The arguments of the estimator, by their names."""
    n_inputs: int
    targets: Any  # NumberTargets or ClassTargets
    seed: int = 0
    expects_scaled_targets: bool = False
    """Whether targets that are not standardised have a size of about 1, so that no prior need be very wide."""

    takes_variances = False
    """Whether the models know what to do with inputs that are uncertain."""
    _auto_scales: tuple[float, ...] = SCALES

    def scales(self, n_entries: float | None = None) -> tuple[Any, ...]:
        """The prior scales that learn side by side, each a number or an array of one per feature.

        ``n_entries`` is the mean number of entries of sparse rows that stay sparse.
        """
        own = self.given.prior_scale
        if isinstance(own, str):
            return self._auto_scales
        return (np.array(own, dtype=np.float64) if np.ndim(own) else float(own),)

    @property
    def targets_by(self) -> str | None:
        """By which statistics the models want their targets to be standardised."""
        is_number = isinstance(self.targets, NumberTargets) and not self.targets.likelihood.is_count
        return MEAN_AND_STD if is_number and self.given.standardize else None

    @property
    def keeps_sparse(self) -> bool:
        """Whether sparse rows reach the models as they are."""
        return False

    @property
    def form(self) -> Covariance:
        """The form of the models' covariance."""
        form: Covariance = self.given.covariance
        return form

    @property
    @abstractmethod
    def layout(self) -> Layout:
        """Sizes of the models' layers."""

    @property
    def tracks_intervals(self) -> bool:
        """Whether limits of intervals are tracked as targets arrive."""
        return bool(vars(self.given).get("intervals") == "adaptive")

    @property
    def calibrates(self) -> bool:
        """Whether probabilities of classes are calibrated by rows that were predicted before they were learned."""
        return bool(vars(self.given).get("probabilities") == "adaptive")

    @property
    def link(self) -> Any:
        """What turns the output for two classes into the probability of the second."""
        return as_activation("sigmoid")

    @abstractmethod
    def member(self, scale: Any, target_scale: float) -> Any:
        """Make a model that has learned nothing, with a prior of this scale, for targets divided by theirs."""

    def mixture(self, target_scale: float, n_entries: float | None = None) -> Mixture:
        """Make the models for one number of a target."""
        members = [self.member(scale, target_scale) for scale in self.scales(n_entries)]
        return Mixture(members, FadingWeights.start(len(members)))

    def continue_from_two_classes(self, model: Any, two: Any) -> None:
        """Let a model for more classes, that has learned nothing, take what one for two of them has learned."""
        if isinstance(model, Mixture):
            for pair in zip(model.members, two.members, strict=True):
                self.continue_from_two_classes(*pair)
            model.weigh_as(two)
        else:
            model.continue_from_two_classes(self._as_network(two, model.covariance))

    def _as_network(self, two: Any, covariance: Covariance) -> BayesianNetwork:
        """A model for two classes as a network with one output."""
        network: BayesianNetwork = two
        return network

    def noise_of(self, member: Any) -> float:
        """Variance of the noise that a model has learned or was given; classes have none."""
        return 0.0

    def n_numbers(self, form: Covariance) -> int:
        """How many numbers covariances of this form have."""
        return count_numbers(form, self.layout) * len(self.scales())

    def perceptron_form(self) -> str:
        """What ``"auto"`` means for perceptrons: all correlations, or none where that would be slow."""
        return "full" if self.n_numbers("full") <= _FEW_NUMBERS else "diagonal"

    def check_size(self) -> None:
        """Raise a ValueError where covariances would take too much memory, before anything of their size is made."""
        form = self.form
        if (isinstance(form, str) and form == "auto") or (numbers := self.n_numbers(form)) <= _MOST_NUMBERS:
            return
        raise ValueError(
            f"covariance={form!r} of {self.layout.size} weights would take {8e-9 * numbers:.1f} GB for "
            f"{self.n_inputs} features; at most {8e-9 * _MOST_NUMBERS:.1f} GB are allowed: pass "
            "covariance='diagonal', or fewer features"
        )

    def warn_of_targets(self, rows: Rows) -> None:
        """Warn of first targets that the prior can't explain."""
        if not self._expects_some_size:
            return
        scale = max(float(np.max(scale)) for scale in self.scales())
        trusted = (near(rows.y, self.given.outliers) | np.isnan(rows.y)).all(axis=1)
        own = self.intercept_scale or scale
        warn_of_targets(rows.y[trusted], zero_for_nan(rows.X[trusted]), scale, own)

    @property
    def _expects_some_size(self) -> bool:
        """Whether the prior tells of which size targets are, in their own units."""
        is_number = isinstance(self.targets, NumberTargets) and not self.targets.likelihood.is_count
        return is_number and self.targets_by is None

    @property
    def intercept_scale(self) -> float | None:
        """Standard deviation of the intercept before the first row; None for that of a weight."""
        own: float | None = self.given.intercept_scale
        return own

    @property
    def _change(self) -> dict[str, Any]:
        """Options of all models for targets and relations that change."""
        return {name: getattr(self.given, name) for name in ("outliers", "forgetting", "drift")}

    def _noise(self, target_scale: float) -> Any:
        """The noise that is given, in the units of the models."""
        noise = self.given.noise
        return noise if isinstance(noise, str) else as_nonnegative(noise, "noise") / target_scale**2


class NumberPerceptrons(Blueprint):
    """A perceptron for each number of a target, all on the same inputs."""

    takes_variances = True
    targets: NumberTargets

    @property
    def layout(self) -> Layout:
        """Sizes of the models' layers."""
        return Layout((self.n_inputs, 1))

    @property
    def keeps_sparse(self) -> bool:
        """Whether sparse rows reach the models as they are."""
        return takes_sparse_rows(self.form)

    @property
    def form(self) -> Covariance:
        """The form of the models' covariance."""
        own: Covariance = self.given.covariance
        return self.perceptron_form() if own == "auto" else own

    @property
    def _expects_some_size(self) -> bool:
        # Of "exp" the prior's standard deviation is that of the targets' logarithm.
        return super()._expects_some_size and not activation_is(self.given.activation, "exp")

    @property
    def targets_by(self) -> str | None:
        """By which statistics the models want their targets to be standardised."""
        # Shifted targets would leave the range of any other activation, and scaled ones that of most.
        if self.given.standardize and activation_is(self.given.activation, "relu", "leaky_relu"):
            return None if self.targets.likelihood.is_count else SIZE
        return super().targets_by if activation_is(self.given.activation, "linear") else None

    def scales(self, n_entries: float | None = None) -> tuple[Any, ...]:
        """The prior scales that learn side by side."""
        if self.given.prior_scale is None:
            n_features = self.n_inputs if n_entries is None else n_entries
            return (min(1.0, sqrt(_EXPLAINED / max(n_features, 1.0))) if self._chosen_for_targets else 1.0,)
        known = self.targets_by or self.targets.likelihood.is_count or self.expects_scaled_targets
        wide = () if known or not isinstance(self.given.prior_scale, str) else WIDE_SCALES
        return (*super().scales(n_entries), *wide)

    @property
    def _chosen_for_targets(self) -> bool:
        """Whether the prior scale is left to the estimator, and targets of variance 1 tell what it may be."""
        return self.given.prior_scale is None and self.targets_by == MEAN_AND_STD

    @property
    def intercept_scale(self) -> float | None:
        """Standard deviation of the intercept before the first row; None for that of a weight."""
        if not (isinstance(self.given.intercept_scale, str) and self.given.intercept_scale == "auto"):
            return super().intercept_scale
        narrow = not self.targets.likelihood.is_count and (
            activation_is(self.given.activation, "exp")
            or (self.given.standardize and activation_is(self.given.activation, "relu", "leaky_relu"))
        )
        return 1.0 if narrow else INTERCEPT_SCALE

    def _intercept_scale_of(self, scale: float) -> float | None:
        """The intercept's scale; next to weights so wide that the targets' units must be unknown, as wide as these."""
        unknown = isinstance(self.given.prior_scale, str) and scale > max(SCALES)
        own = self.intercept_scale
        return max(own, scale) if unknown and own is not None else own

    def member(self, scale: Any, target_scale: float) -> Any:
        """Make a model that has learned nothing."""
        given, kind = self.given, self.targets.likelihood
        noise_start = _NOISE_START if self._chosen_for_targets else None
        if given.noise_start is not None:
            noise_start = as_positive(given.noise_start, "noise_start") / target_scale**2
        bias = given.fit_intercept
        return with_drift(
            BayesianPerceptron,
            self.n_inputs,
            given.activation,
            bias=bias,
            cov=prior_variances(self.n_inputs, int(bias), scale, self._intercept_scale_of(scale)),
            observation=kind.name,
            noise=self._noise(target_scale) if kind.takes_noise else None,
            noise_start=noise_start,
            covariance=str(self.form),
            **self._change,
        )

    def warn_of_targets(self, rows: Rows) -> None:
        """Warn of first targets that the prior can't explain, or the activation."""
        super().warn_of_targets(rows)
        warn_of_range(rows.y, as_activation(self.given.activation))

    def noise_of(self, member: Any) -> float:
        """Variance of the noise that a model has learned or was given."""
        return float(member.noise)


class ClassPerceptrons(Blueprint):
    """A perceptron for two classes, one joint softmax for more."""

    targets: ClassTargets

    @property
    def takes_variances(self) -> bool:  # type: ignore[override]
        """Whether the models know what to do with inputs that are uncertain."""
        return self.targets.is_binary

    @property
    def keeps_sparse(self) -> bool:
        """Whether sparse rows reach the models as they are."""
        return self.targets.is_binary and takes_sparse_rows(self.form)

    @property
    def link(self) -> Any:
        """What turns the output for two classes into the probability of the second."""
        return as_activation(self.given.activation)

    @property
    def layout(self) -> Layout:
        """Sizes of the models' layers."""
        return Layout((self.n_inputs, 1 if self.targets.is_binary else len(self.targets.classes)))

    @property
    def form(self) -> Covariance:
        """The form of the models' covariance."""
        own: Covariance = self.given.covariance
        if not self.targets.is_binary:
            return own
        if own == "auto":
            return self.perceptron_form()
        # Two classes have one output, all of whose weights are a neuron's.
        return own if own in PERCEPTRON_BELIEFS else "full"

    def member(self, scale: Any, target_scale: float) -> Any:
        """Make a model that has learned nothing."""
        given = self.given
        if self.targets.is_binary:
            bias = given.fit_intercept
            return with_drift(
                BayesianPerceptron,
                self.n_inputs,
                given.activation,
                bias=bias,
                cov=prior_variances(self.n_inputs, int(bias), scale, given.intercept_scale),
                covariance=str(self.form),
                **self._change,
            )
        n_classes = len(self.targets.classes)
        if not given.fit_intercept:
            raise ValueError(
                f"fit_intercept=False works with two classes only, got {n_classes}; pass fit_intercept=True"
            )
        return with_drift(
            BayesianNetwork,
            self.n_inputs,
            hidden=(),
            n_outputs=n_classes,
            observation="categorical",
            covariance=given.covariance,
            prior_scale=scale,
            intercept_scale=given.intercept_scale,
            **self._change,
        )

    def _as_network(self, two: BayesianPerceptron, covariance: Covariance) -> BayesianNetwork:
        """A perceptron for two classes as a network with one output, whose log odds are those of the activation."""
        if (unit := _LOG_ODDS.get(self.given.activation)) is None:
            raise ValueError(
                f"activation={self.given.activation!r} has no log odds, so a third class can't be added to the two "
                "that were learned: pass all classes that can occur to the first call of partial_fit, as "
                "classes=[...], or activation='sigmoid'"
            )
        kind = belief_type(covariance, Layout((two.n_features, 1)))
        form = covariance if issubclass(kind, (BlockGaussian, IndependentWeights)) else "full"
        network = BayesianNetwork(two.n_features, (), observation="bernoulli", covariance=form)
        parameters, arrays = network.export_state()
        whole = two.cov if two.cov.ndim == 2 else np.diag(two.cov)
        arrays["mean"] = unit * two.mean
        arrays["covariance"] = unit**2 * (np.diag(whole) if kind is IndependentWeights else whole.ravel())
        parameters |= {"log_evidence": two.log_evidence, "n_seen": two.n_seen}
        return BayesianNetwork.from_state(parameters, arrays)


class Networks(Blueprint):
    """Networks of perceptrons; with ``members`` above 1 a `BayesianCommittee` of them."""

    _auto_scales = NETWORK_SCALES

    def mixture(self, target_scale: float, n_entries: float | None = None) -> Mixture:
        """Make the models for one number of a target."""
        if self.given.members == 1:
            return super().mixture(target_scale, n_entries)
        options = self._options(float(self.given.prior_scale), target_scale)
        return BayesianCommittee(self._entering, members=self.given.members, **options)

    def member(self, scale: Any, target_scale: float) -> Any:
        """Make a model that has learned nothing."""
        return with_drift(BayesianNetwork, self._entering, **self._options(scale, target_scale))

    @property
    def _entering(self) -> int | ImageShape:
        """The number of features, or the shape of images."""
        return self.n_inputs if self.given.image_shape is None else tuple(self.given.image_shape)

    @property
    def layout(self) -> Layout:
        """Sizes of the models' layers."""
        hidden = self.given.hidden_layer_sizes
        return Layout((self._entering, *(hidden if np.iterable(hidden) else (hidden,)), self._n_outputs))

    @property
    def _n_outputs(self) -> int:
        is_single = isinstance(self.targets, NumberTargets) or self.targets.is_binary
        return 1 if is_single else len(self.targets.classes)

    def _options(self, scale: float, target_scale: float) -> dict[str, Any]:
        """Options of a network."""
        given, options = self.given, self._change
        options |= {
            "hidden": given.hidden_layer_sizes,
            "activation": given.activation,
            "covariance": given.covariance,
            "prior_scale": scale,
            "intercept_scale": given.intercept_scale,
            "seed": self.seed,
            "n_outputs": self._n_outputs,
        }
        if isinstance(self.targets, NumberTargets):
            return {**options, "observation": self.targets.likelihood.name, "noise": self._noise(target_scale)}
        return {**options, "observation": "bernoulli" if self.targets.is_binary else "categorical"}

    def noise_of(self, member: Any) -> float:
        """Variance of the noise that a model has learned or was given."""
        return float(member.noise_var[0])


def activation_is(activation: Any, *names: str) -> bool:
    """Whether an activation is one of these."""
    return as_activation(activation) in [as_activation(name) for name in names]
