"""The models behind River's: how perceptrons and networks are made for so many features, and made larger.

The weights of a new feature start at the prior, as if it had been zero in all rows before.
"""

from dataclasses import replace
from typing import Any

import numpy as np

from onepass._validation import as_count, as_flag, as_nonnegative, as_positive, as_seed
from onepass.beliefs.prior import prior_variances
from onepass.files.state import Parameters
from onepass.models.committee import BayesianCommittee
from onepass.models.distribution import Prediction
from onepass.models.mixture import with_drift
from onepass.models.network import BayesianNetwork
from onepass.models.perceptron import BayesianPerceptron

__all__ = ["Networks", "Perceptrons"]

_ROOM = 1.25  # inputs of a network that has to grow, per feature: so that not every new feature makes it grow


def _arguments(model: Any, *names: str) -> Parameters:
    """Arguments of a River model that its core has too."""
    return {name: getattr(model, name) for name in (*names, "outliers", "forgetting", "drift")}


class Perceptrons:
    """Perceptrons, which may have more weights than there are features so far.

    When all are used up their number is doubled, so growing costs little overall.
    """

    takes_variances = True  # of inputs
    widens = True  # a weight at its prior can stand for those of all features that were never learned

    def __init__(self, model: Any, **options: Any) -> None:
        own = _arguments(model, "prior_scale", "intercept_scale", "fit_intercept", "activation", "covariance") | options
        scale, intercept_scale = own.pop("prior_scale"), own.pop("intercept_scale")
        self._scale = as_nonnegative(scale, "prior_scale")
        self._intercept_scale = None if intercept_scale is None else as_positive(intercept_scale, "intercept_scale")
        self._bias = as_flag(own.pop("fit_intercept"), "fit_intercept")
        self._options = own

    def new(self, n_features: int) -> Any:
        """A model for so many features, that has learned nothing."""
        size = max(n_features, 1)
        variances = prior_variances(size, int(self._bias), self._scale, self._intercept_scale)
        return with_drift(BayesianPerceptron, size, bias=self._bias, cov=variances, **self._options)

    smallest = new

    def larger(self, core: Any, n_features: int) -> Any:
        """The model with room for so many features: itself if it has it."""
        if n_features <= core.n_features:
            return core
        large = self.new(max(2 * core.n_features, n_features))
        return core.with_members([_grown(*pair) for pair in zip(core.members, large.members, strict=True)])

    @staticmethod
    def before_all_rows(seen: Prediction, core: Any) -> Prediction:
        """What is predicted by a model that has learned nothing."""
        return seen


def _grown(small: BayesianPerceptron, large: BayesianPerceptron) -> BayesianPerceptron:
    """The perceptron ``large``, so far at its prior, with all that ``small`` has learned about the first weights."""
    small_parameters, small_arrays = small.export_state()
    parameters, arrays = large.export_state()
    if "covariance" in small_arrays:  # and not its root: a prior's root is diagonal
        arrays["covariance"] = np.tril(arrays.pop("root") ** 2)
    for name, array in small_arrays.items():
        arrays[name][tuple(slice(extent) for extent in array.shape)] = array
    parameters["belief"] = small_parameters["belief"]
    return BayesianPerceptron.from_state(parameters, arrays)


class Networks:
    """Networks, or committees of several.

    The scales of their prior depend on the number of features in the first row, and not on what comes later.
    """

    takes_variances = False
    widens = False  # weights of inputs start at random means, so that none can stand for others

    def __init__(self, model: Any, hidden: Any, members: int, random_state: int | None, **options: Any) -> None:
        self._hidden = tuple(hidden) if np.iterable(hidden) else (hidden,)
        for units in self._hidden:
            as_count(units, "hidden_layer_sizes")
        self._members = as_count(members, "members")
        seed = 0 if random_state is None else as_seed(random_state, "random_state")
        self._options = _arguments(model, "prior_scale", "intercept_scale", "covariance") | {"seed": seed} | options

    def new(self, n_features: int, **outputs: Any) -> Any:
        """A model for so many features and such outputs, that has learned nothing."""
        return self._of_layers(self._hidden, max(n_features, 1), outputs)

    def smallest(self, n_features: int, **outputs: Any) -> Any:
        """The same with one unit per layer, which shows wrong options without the memory that large layers take."""
        return self._of_layers((1,) * len(self._hidden), n_features, outputs)

    def _of_layers(self, hidden: tuple[int, ...], n_features: int, outputs: Parameters) -> Any:
        options = {**self._options, **outputs, "hidden": hidden}
        prior = BayesianNetwork(n_features, **{**options, "drift": 0.0}).prior
        options["prior"] = replace(prior, most_inputs=min(n_features, prior.most_inputs))
        if self._members == 1:
            return with_drift(BayesianNetwork, n_features, **options)
        return BayesianCommittee(n_features, members=self._members, **options)

    def larger(self, core: Any, n_features: int) -> Any:
        """The model with room for so many features: itself if it has it."""
        if n_features <= core.n_features:
            return core
        return core.with_inputs(max(n_features, int(_ROOM * core.n_features)), self._options["covariance"])

    def with_outputs(self, core: Any, n_outputs: int) -> Any:
        """The model with more outputs."""
        return core.with_outputs(n_outputs, self._options["covariance"])

    @staticmethod
    def before_all_rows(seen: Prediction, core: Any) -> Prediction:
        """What is predicted by a model that has learned nothing: over all random means of weights numbers are 0."""
        return seen.centred() if core.observation.is_numeric else seen
