"""The Bayesian network: perceptrons in layers, learned whole in closed form, one observation at a time.

What a network is, what it predicts and how it is saved. How a row moves its belief stands in `learning`.
"""

from collections.abc import Iterator
from dataclasses import asdict
from functools import cached_property
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtri, softmax

from onepass._typing import FloatArray
from onepass._validation import as_count, as_generator, as_nonnegative, as_positive, as_rows, as_seed, as_share, one_of
from onepass.activations import Sigmoid, as_activation
from onepass.beliefs.blocks import STRUCTURES, BlockGaussian, choose_structure, make_belief
from onepass.beliefs.layout import Layout
from onepass.files.state import as_number, as_tally, check_definite, check_network
from onepass.likelihoods.multivariate import (
    BERNOULLI,
    CATEGORICAL,
    HEADS,
    NOISE,
    SCALE,
    VARYING,
    as_network_targets,
    check_outputs,
    choose_head,
    expected_noise,
    marginals,
    predictive,
    read,
    restart_calibration,
    start_scales,
    widened,
)
from onepass.models.network.learning import Learner, Pass, State, compile_plan
from onepass.models.network.priors import NetworkPrior, choose_prior, start_weights
from onepass.models.network.propagation import moved, output_moments, parts_of_rows, propagate
from onepass.models.perceptron import Prediction

__all__ = ["BayesianNetwork"]

_LEARNED = ("learn", "heteroscedastic")
_SIGMOID = Sigmoid()


class BayesianNetwork:
    """A neural network whose weights are a Gaussian belief, learned in closed form.

    Made for inputs and numeric targets of about unit scale: standardise them.

    Parameters
    ----------
    n_features : int
        Length of an input row.
    hidden : int or tuple of int
        Units of each hidden layer, or of the only one; none makes a (softmax) perceptron.
    n_outputs : int
        Numbers a target has, or classes it can be.
    activation : str or Activation
        Of the hidden units, as for `BayesianPerceptron`.
    observation : {"auto", "gaussian", "bernoulli", "categorical"}
        Gaussian noise around the outputs; labels 0/1; classes 0 to ``n_outputs - 1``. By default Gaussian.
    noise : float, "learn" or "heteroscedastic"
        Variance of the Gaussian noise: fixed; learned, one for all rows; or learned as a function of the input, by a
        second output of the network for each of the first ones.
    covariance : {"auto", "full", "layer", "neuron", "diagonal"}
        Between which weights correlations are kept: all, those of a layer, of a neuron, none. By default the richest
        that is not too large.
    prior : NetworkPrior, optional
        Spread of the prior's means and its standard deviations. By default one for regression, another one for it with
        several hidden layers, and one for labels.
    prior_scale : float
        Multiplies all standard deviations of the prior, but for those of a noise that depends on the input.
    seed : int
        Of the prior's means, and of the order of the rows in passes after the first.
    forgetting : float
        In (0, 1]. Below 1 the past fades: before a row the covariance is divided by it, unless its trace would pass the
        prior's.
    calibrate : bool or "auto"
        Scale the predictive variance by what the errors of the rows turned out to be, each before it was learned. By
        default where the noise is learned and there is a hidden layer: a linearised network's own variance is somewhat
        off, in either direction, and its errors tell by how much.
    dtype : {"float64", "float32"}
        Of the belief.
    engine : {"auto", "reference"}
        Compiled where that can be, or by the readable reference. The result is the same.

    Examples
    --------
    >>> X = np.linspace(-2, 2, 200)[:, None]
    >>> net = BayesianNetwork(1, hidden=(20,)).learn(X[::-1], np.sin(2 * X[::-1, 0]), passes=3)
    >>> bool(abs(net.predict([0.5]).mean - np.sin(1.0)) < 0.1)
    True
    """

    def __init__(
        self,
        n_features: int,
        hidden: int | tuple[int, ...] = (50,),
        n_outputs: int = 1,
        activation: Any = "relu",
        *,
        observation: str = "auto",
        noise: float | Literal["learn", "heteroscedastic"] = "learn",
        covariance: str = "auto",
        prior: NetworkPrior | None = None,
        prior_scale: float = 1.0,
        seed: int = 0,
        forgetting: float = 1.0,
        calibrate: bool | Literal["auto"] = "auto",
        dtype: str = "float64",
        engine: str = "auto",
    ) -> None:
        self.n_features = as_count(n_features, "n_features")
        self.hidden = tuple(as_count(width, "hidden") for width in (hidden if np.iterable(hidden) else (hidden,)))
        self.n_outputs = as_count(n_outputs, "n_outputs")
        self.activation = as_activation(activation)
        self._activation_name = activation if isinstance(activation, str) else None
        one_of(observation, ("auto", *HEADS), "observation")
        self.observation = "gaussian" if observation == "auto" else observation
        self.noise = noise if noise in _LEARNED else as_positive(noise, "noise", "or 'learn' or 'heteroscedastic'")
        self._kind = choose_head(self.observation, varying=self.noise == "heteroscedastic")
        check_outputs(self._kind, self.n_outputs)
        self.forgetting = as_share(forgetting, "forgetting")
        self.prior_scale = as_nonnegative(prior_scale, "prior_scale")
        self.prior = prior if prior is not None else choose_prior(self.observation == "gaussian", len(self.hidden))
        self.seed = as_seed(seed)
        learned = self.noise in _LEARNED and bool(self.hidden) and self.observation == "gaussian"
        self.calibrate = learned if calibrate == "auto" else bool(calibrate)
        self.dtype = one_of(dtype, ("float64", "float32"), "dtype")
        self.engine = one_of(engine, ("auto", "reference"), "engine")
        n_noise = self.n_outputs if self._kind == VARYING else 0
        widths = (self.n_features, *self.hidden, self.n_outputs + n_noise)
        one_of(covariance, ("auto", *STRUCTURES), "covariance")
        self.covariance = choose_structure(widths) if covariance == "auto" else covariance
        layout = Layout(widths, input_major=self.covariance == "diagonal")
        rng = np.random.default_rng(self.seed)
        mean, variance = start_weights(layout, self.prior, self.prior_scale, n_noise, rng)
        self._prior_trace = float(variance.sum())
        belief = make_belief(layout, self.covariance, mean.astype(self.dtype), variance.astype(self.dtype))
        self._state = State(belief, start_scales(self.n_outputs, self.noise, self.calibrate), 0.0, 0)

    def __repr__(self) -> str:
        activation = self._activation_name or self.activation
        return (
            f"BayesianNetwork({self.n_features}, {self.hidden}, {self.n_outputs}, {activation!r}, "
            f"observation={self.observation!r}, covariance={self.covariance!r}, n_seen={self.n_seen})"
        )

    @property
    def mean(self) -> FloatArray:
        """Mean of all weights, ``(p,)``."""
        return self._state.belief.mean.copy()

    @property
    def cov(self) -> Any:
        """Covariance of the weights: its blocks, or with ``covariance="diagonal"`` the variances ``(p,)``."""
        return self._state.belief.cov

    @property
    def weights(self) -> list[FloatArray]:
        """Mean weights of each layer, ``(n_out, n_in + 1)``, the bias last."""
        return [layer.copy() for layer in self._state.belief.layout.layers(self._state.belief.mean)]

    @property
    def weight_variances(self) -> list[FloatArray]:
        """Variances of the weights of each layer, in the shape of `weights`."""
        belief = self._state.belief
        return [layer.copy() for layer in belief.layout.layers(belief.marginal_variances())]

    @property
    def noise_var(self) -> FloatArray:
        """Variance of the noise of each output as it is now, ``(K,)``; its mean over rows where it depends on them."""
        return np.array(self._state.scales[NOISE])

    @property
    def log_evidence(self) -> float:
        """Sum of the log predictive densities of all rows learned, each before it was learned for the first time."""
        return self._state.evidence

    @property
    def n_seen(self) -> int:
        """Number of rows learned."""
        return self._state.seen

    def predict(self, X: ArrayLike) -> Prediction:
        """Predictive distribution for one row ``(d,)`` or many ``(n, d)``.

        Its parts are ``(n,)``, or ``(n, K)`` for more outputs. For classes the means are their probabilities and the
        variances those of the probabilities, by what ``pre_mean`` and ``pre_var`` say of each class's log odds against
        all others.
        """
        rows, single = as_rows(X, self.n_features)
        with np.errstate(over="ignore", invalid="ignore"):
            mean, var = marginals(self._kind, *self._output_moments(rows))
        if not np.isfinite(mean).all():
            raise ValueError(f"X overflows float64 in the network: its largest magnitude is {np.abs(rows).max():.3g}")
        noise = expected_noise(self._kind, mean, var, self._state.scales[NOISE])
        own = slice(self.n_outputs)
        return self._prediction(mean[:, own], var[:, own], noise, self._state.scales[SCALE], single)

    def learn(self, X: ArrayLike, y: ArrayLike, *, passes: int = 1, refine: str = "reuse", batch: int = 1) -> Self:
        """Learn one row and its target, or many in their order: all of them or, if anything is wrong, none.

        Parameters
        ----------
        X : (d,) or (n, d) array
        y : number, (n,) or (n, K) array
        passes : int
            1 is online learning. Later passes take the rows in random order, under the seed.
        refine : {"reuse", "ep"}
            What more passes do. ``"reuse"`` counts the data again, which is fast and grows overconfident. ``"ep"``
            (expectation propagation) takes back what a row has said before it speaks again, so that every row counts
            once; it needs ``covariance="full"``.
        batch : int
            Rows that make one step: all of a batch see the network as it was before it. More rows a second where the
            covariance is large, for somewhat less learned from each; not for ``"ep"`` or a diagonal covariance.
        """
        for _ in self.learning(X, y, passes=passes, refine=refine, batch=batch):
            pass
        return self

    def learning(
        self, X: ArrayLike, y: ArrayLike, *, passes: int = 1, refine: str = "reuse", batch: int = 1
    ) -> Iterator[FloatArray]:
        """Learn as `learn` does, and yield after each pass the log density that each row had before it was learned.

        In a refining pass that is the density given all other rows. Made for weighing networks against each other.
        """
        rows, targets, single = self._pairs(X, y)
        as_count(passes, "passes")
        one_of(refine, ("reuse", "ep"), "refine")
        self._check_refinement(passes, refine, as_count(batch, "batch"))
        before = None if single and passes == batch == 1 and self._is_safe else self._state.copy()
        sites = self._learner.start_sites(len(rows)) if refine == "ep" and passes > 1 else None
        for number in range(passes):
            order = np.arange(len(rows))
            if number:
                order = np.random.default_rng([self.seed, self.n_seen, number]).permutation(len(rows))
                restart_calibration(self._state.scales)
            densities = np.empty(len(rows))
            learned = self._run(Pass(rows, targets, order, number, batch, sites, densities))
            self._check_learned(learned, before, rows, targets)
            if number == 0:
                self._state.evidence += float(densities.sum())
                self._state.seen += len(rows)
            yield densities

    def predict_then_learn(self, X: ArrayLike, y: ArrayLike) -> Prediction:
        """Predict every row just before learning it: test-then-train evaluation, at the speed of learning alone."""
        return self._foretell(X, y)[0]

    def _foretell(self, X: ArrayLike, y: ArrayLike) -> tuple[Prediction, FloatArray]:
        """Predict every row just before learning it, and give the log density that it had too."""
        rows, targets, single = self._pairs(X, y)
        before = self._state.copy()
        record, densities = np.empty((len(rows), 4, self.n_outputs)), np.empty(len(rows))
        learned = self._run(Pass(rows, targets, np.arange(len(rows)), 0, 1, None, densities, record))
        self._check_learned(learned, before, rows, targets)
        self._state.evidence += float(densities.sum())
        self._state.seen += len(rows)
        mean, var, noise, scale = record.swapaxes(0, 1).copy()
        return self._prediction(mean, var, noise, scale, single), densities

    def interval(self, X: ArrayLike, level: float = 0.95) -> tuple[Any, Any]:
        """Central interval that holds with probability ``level``: of a new target; for labels of their probability.

        For classes it is that of each one's probability, ``(n, K)``.
        """
        as_share(level, "level", open_above=True)
        prediction = self.predict(X)
        reach = ndtri(0.5 + level / 2)
        if self._kind in (BERNOULLI, CATEGORICAL):
            spread = reach * np.sqrt(prediction.pre_var)
            return _SIGMOID(prediction.pre_mean - spread)[()], _SIGMOID(prediction.pre_mean + spread)[()]
        spread = reach * np.sqrt(prediction.var + prediction.noise_var)
        return prediction.mean - spread, prediction.mean + spread

    def log_predictive(self, X: ArrayLike, y: ArrayLike) -> Any:
        """Log density (or probability) of a target, one number a row."""
        rows, targets, single = self._pairs(X, y)
        scales = self._state.scales
        means, covs, noise = widened(self._kind, *self._output_moments(rows), scales[NOISE], scales[SCALE])
        logs = [
            read(self._kind, mean, cov, target, noise).log_density
            for mean, cov, target in zip(means, covs, targets, strict=True)
        ]
        return logs[0] if single else np.array(logs)

    def sample_weights(self, n: int, rng: np.random.Generator | int) -> FloatArray:
        """Draw ``n`` vectors of all weights from the posterior, ``(n, p)``."""
        return self._state.belief.sample(as_count(n, "n"), as_generator(rng))

    def sample_output(self, X: ArrayLike, n: int, rng: np.random.Generator | int) -> FloatArray:
        """Draw ``n`` outputs from the posterior, without noise; for labels and classes as probabilities.

        The shape is ``(n,)`` for one row, ``(n, rows)`` for many, with ``K`` after it for more outputs. All rows of a
        draw share its weights ``w``. The belief is one about the network linearised in its weights, so the outputs are
        ``mean + J (w - E[w])`` and have the mean and variance that `predict` says, its calibration included; for
        classes, whose probabilities have no closed form, roughly. Weights of `sample_weights` sent through the network
        itself spread further where its curvature is felt.
        """
        rows, single = as_rows(X, self.n_features)
        outputs = self._drawn(rows, self.sample_weights(n, rng))
        if self._kind == BERNOULLI:
            outputs = _SIGMOID(outputs)
        elif self._kind == CATEGORICAL:
            outputs = np.asarray(softmax(outputs, axis=-1))
        outputs = outputs[:, 0] if single else outputs
        return np.asarray(outputs[..., 0] if self._one_column else outputs)

    def _drawn(self, rows: FloatArray, weights: FloatArray) -> FloatArray:
        """Outputs ``(n, rows, K)`` that weights ``(n, p)`` have, linearised; a head of the noise is no part of them."""
        belief, own = self._state.belief, slice(self.n_outputs)
        spread = np.sqrt(self._state.scales[SCALE])
        gaps = belief.layout.layers(weights - belief.mean)
        outputs = np.empty((len(weights), len(rows), self.n_outputs))
        for part in parts_of_rows(belief, len(rows)):
            signals = propagate(belief, self.activation, rows[part])
            for i in range(len(weights)):
                shift = moved(signals, [gap[i] for gap in gaps])
                outputs[i, part] = signals.mean[:, own] + spread * shift[:, own]
        return outputs

    def export_state(self) -> tuple[dict[str, Any], dict[str, FloatArray]]:
        """All that makes this network: parameters that JSON can hold, and arrays. See `from_state`."""
        names = (
            "n_features",
            "n_outputs",
            "observation",
            "noise",
            "covariance",
            "prior_scale",
            "seed",
            "forgetting",
            "calibrate",
            "dtype",
            "engine",
        )
        if self._activation_name is None:
            raise ValueError("only an activation given by its name can be exported, got an object")
        parameters: dict[str, Any] = {name: getattr(self, name) for name in names}
        parameters |= {
            "hidden": list(self.hidden),
            "activation": self._activation_name,
            "prior": asdict(self.prior),
            "log_evidence": self._state.evidence,
            "n_seen": self._state.seen,
        }
        arrays = {name: values.copy() for name, values in self._state.belief.arrays.items()}
        return parameters, {**arrays, "scales": self._state.scales.copy()}

    @classmethod
    def from_state(cls, parameters: dict[str, Any], arrays: dict[str, FloatArray]) -> Self:
        """Make the network that `export_state` described; it goes on as the first would have."""
        given = dict(parameters)
        evidence, seen = given.pop("log_evidence"), as_tally(given.pop("n_seen"), "n_seen")
        check_network(given, arrays)  # before anything of its size is made
        network = cls(**cls._arguments_from(given))
        state = network._state
        for name, values in {**state.belief.arrays, "scales": state.scales}.items():
            values[...] = arrays[name]
        if isinstance(state.belief, BlockGaussian):
            for _, block in state.belief.blocks():
                check_definite(block)
        state.evidence, state.seen = as_number(evidence, "log_evidence"), seen
        return network

    @classmethod
    def _arguments_from(cls, given: dict[str, Any]) -> dict[str, Any]:
        """Arguments of the constructor from parameters that JSON held."""
        return {**given, "hidden": tuple(given["hidden"]), "prior": NetworkPrior(**given["prior"])}

    def _output_moments(self, rows: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Means and covariances of the outputs, ``(n, K)`` and ``(n, K, K)``."""
        return output_moments(self._state.belief, self.activation, rows)

    def _run(self, work: Pass) -> int:
        """Learn one pass; how many rows could be learned."""
        return self._learner.run(self._state, work)

    @cached_property
    def _learner(self) -> Learner:
        plan = None if self.engine == "reference" else compile_plan(self.activation, self._state.belief)
        return Learner(self._kind, self.activation, self.forgetting, self._prior_trace, plan)

    @property
    def _is_safe(self) -> bool:
        """Whether a row that can't be learned is found before anything of it is written."""
        return self._learner.plan is not None and self.forgetting == 1.0 and self.dtype == "float64"

    def _check_learned(self, learned: int, before: State | None, rows: FloatArray, targets: FloatArray) -> None:
        """Go back to what was ``before`` if not all rows could be learned; without one nothing was written."""
        if learned == len(rows) and (before is None or self._state.is_finite()):
            return
        self._state = self._state if before is None else before
        raise ValueError(
            f"X and y overflow {self.dtype}: their largest magnitudes are {np.abs(rows).max():.3g} and "
            f"{np.abs(targets).max():.3g}; rescale them. Nothing was learned."
        )

    # What comes in and what goes out.

    @property
    def _one_column(self) -> bool:
        return self.n_outputs == 1

    def _pairs(self, X: ArrayLike, y: ArrayLike) -> tuple[FloatArray, FloatArray, bool]:
        rows, single = as_rows(X, self.n_features)
        return rows, as_network_targets(y, len(rows), self.n_outputs, self._kind, single), single

    def _check_refinement(self, passes: int, refine: str, batch: int) -> None:
        if batch > 1 and self.covariance == "diagonal":
            raise ValueError(
                f"batch must be 1 with covariance='diagonal', got {batch}: its rows touch every weight once, and "
                "learning them together would save nothing"
            )
        if refine != "ep" or passes == 1:
            return
        if self.covariance != "full":
            raise ValueError(
                "refine='ep' needs covariance='full', since what a row said can't be taken back from blocks that kept "
                f"only a part of it, got covariance={self.covariance!r}; use refine='reuse' or a smaller network"
            )
        if self.forgetting < 1.0:
            raise ValueError(f"refine='ep' needs forgetting=1, got {self.forgetting:g}; use refine='reuse'")
        if batch > 1:
            raise ValueError(f"refine='ep' takes rows back one by one and needs batch=1, got {batch}")

    def _prediction(
        self, mean: FloatArray, var: FloatArray, noise: FloatArray, scale: FloatArray, single: bool
    ) -> Prediction:
        """Put together what is predicted, from the outputs' moments ``(n, K)``."""
        output = predictive(self._kind, mean, var, noise, scale)
        parts = (output.mean, output.var, mean, var, output.rest)
        columns = [part[:, 0] if self._one_column else part for part in parts]
        return Prediction(*((column[0][()] if single else column) for column in columns))
