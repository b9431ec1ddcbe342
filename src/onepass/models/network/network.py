"""The Bayesian network: perceptrons in layers, all weights learned jointly in closed form, one row at a time.

This module has construction, prediction, saving and loading; `learning` has the update of the belief by a row.
"""

import copy
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, replace
from functools import cached_property
from math import isfinite
from typing import Any, Literal, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike

from onepass._typing import FloatArray
from onepass._validation import (
    as_count,
    as_fraction,
    as_generator,
    as_nonnegative,
    as_outliers,
    as_positive,
    as_row_weights,
    as_rows,
    as_seed,
    as_share,
    as_whole,
    one_of,
)
from onepass.activations import Activation, Narrowed, as_activation
from onepass.beliefs.diagonal import DiagonalGaussian
from onepass.beliefs.forgetting import Forgetting
from onepass.beliefs.layout import (
    Conv2D,
    ImageShape,
    LayerSize,
    Layout,
    as_image_shape,
    decode_layer,
    encode_layer,
    flat_size,
)
from onepass.beliefs.prior import as_scales
from onepass.beliefs.structures import Covariance, Structure, count_numbers, make_structure
from onepass.engine.vector_matches import NoiseState, widening
from onepass.files.state import as_number, as_tally, check_definite, check_network, decode_trust
from onepass.likelihoods.outputs import OutputLikelihood, choose_outputs, noise_models, output_names
from onepass.models.ahead import RowsAhead, each_ahead
from onepass.models.drift import DriftChoice
from onepass.models.network.learning import Learner, Pass, State, output_variances
from onepass.models.network.priors import (
    NetworkPrior,
    PriorScales,
    choose_count_prior,
    choose_prior,
    start_weights,
)
from onepass.models.network.propagation import (
    curvature_covariance,
    linear_response,
    output_moments,
    parts_of_rows,
    propagate,
    through_weights,
)
from onepass.models.perceptron import Prediction, RowScores, renamed_kernel, set_aside_once

__all__ = ["BayesianNetwork", "OutputMoments"]

_FEW = 8  # rows, which are predicted faster one by one
_PLAIN_ARGUMENTS = (
    "n_outputs",
    "observation",
    "noise",
    "covariance",
    "prior_scale",
    "intercept_scale",
    "seed",
    "outliers",
    "forgetting",
    "drift",
    "calibrate",
    "dtype",
)


class OutputMoments(NamedTuple):
    """Mean and covariance of a network's outputs: ``(K,)`` and ``(K, K)`` for one row, ``(n, ...)`` for many."""

    mean: FloatArray
    cov: FloatArray


def _as_prior_scale(given: Any, layout: Layout) -> float | tuple[float, ...]:
    """Check the scale of a prior, or one per feature where features have weights of their own."""
    if not np.ndim(given):
        return as_nonnegative(given, "prior_scale")
    if layout.n_layers > 1:
        raise ValueError(
            f"prior_scale must be one number for a network with hidden layers, got shape {np.shape(given)}; to make "
            "features count differently, scale them"
        )
    return tuple(as_nonnegative(scale, "prior_scale") for scale in as_scales(given, layout.widths[0]).tolist())


def _default_prior(likelihood: type[OutputLikelihood], structure: Structure) -> NetworkPrior:
    if likelihood.is_count:
        return choose_count_prior(structure.layout)
    return choose_prior(likelihood.is_numeric, structure.layout, structure.for_wide_layers)


class BayesianNetwork(DriftChoice):
    """A neural network that keeps a Gaussian distribution over its weights, the belief, updated in closed form.

    Inputs and numeric targets should have a scale of about 1: standardise them.

    Parameters
    ----------
    n_features : int or tuple of int
        Length of an input row; or the shape of images, ``(height, width)`` or ``(height, width, channels)``.
    hidden : int, Conv2D or tuple of them
        Number of units of each hidden layer, or of the only one; ``()`` makes a perceptron, with classes a softmax
        regression. For images the first layers may be convolutions, see `Conv2D`.
    n_outputs : int
        How many numbers or labels a target has, or how many classes there are.
    activation : str or Activation
        Activation of the hidden units, as for `BayesianPerceptron`.
    observation : {"auto", "gaussian", "bernoulli", "categorical", "poisson", "negative_binomial"}
        What a target is: numbers with Gaussian noise, the default; labels 0/1, one per output; a class from 0 to
        ``n_outputs - 1``; or a count whose rate is the exponential of the output.
    noise : float, "learn" or "heteroscedastic"
        Variance of the Gaussian noise: a fixed number; ``"learn"``, one learned for all rows; ``"heteroscedastic"``,
        learned as a function of the input, with one additional output of the network per target. For negative binomial
        counts it is the dispersion: counts of mean ``m`` have the variance ``m + noise m²``.
    covariance : {"auto", "full", "low_rank", "layer", "neuron", "kronecker", "diagonal"} or tuple of str
        Between which weights correlations are kept. ``"full"``: between all. ``"layer"``, ``"neuron"``: between those
        of a layer or of a neuron. ``"diagonal"``: none. ``"low_rank"``: between all weights, but only in the 100
        directions known best (fewer beyond 10,000 weights); for networks with few outputs and thousands of weights.
        ``"kronecker"``: between those of a layer, as the product of one matrix for its inputs and one for its outputs;
        for wide layers. A tuple names ``"kronecker"`` or ``"full"`` for each layer of weights, without correlations
        between layers. The default keeps as many as is not too slow: full up to 2,000 weights; beyond that low rank
        with one or two outputs, else Kronecker; see `onepass.beliefs.cost`.
    prior : NetworkPrior, optional
        Means and standard deviations of the weights before the first row. The default depends on the task: one prior
        each for regression with one hidden layer, regression with several, counts, and labels.
    prior_scale : float or (n_features,) array
        Multiplies all standard deviations of the prior, except those of a noise that depends on the input. Without
        hidden layers it may be an array with one number per feature.
    intercept_scale : float, optional
        Prior standard deviation of the outputs' biases, independent of ``prior_scale``; for classes, of the log odds
        between any two. By default it comes from ``prior`` and is multiplied by ``prior_scale``.
    seed : int
        Seed of the prior's random means, and of the order of rows in passes after the first.
    outliers : float
        Share of the targets that can't be trusted, in [0, 0.5), as for `BayesianPerceptron`; 0 trusts all of them. All
        outputs of a row are trusted or distrusted together.
    forgetting : float
        In (0, 1]. Below 1 older rows count less: the weight of a row is ``forgetting`` to the power of its age, and the
        prior always counts in full, as in `BayesianPerceptron`. The belief forgets every ``0.25 / (1 - forgetting)``
        rows, or every ``p / 3`` rows if the largest block of the covariance has that many weights ``p``, and always
        before a batch, never within it. Rows of later passes count as further rows.
    drift : float or "auto"
        How fast the weights change, in [0, 1], or ``"auto"`` for several hypotheses side by side: as for
        `BayesianPerceptron`.
    calibrate : bool or "auto"
        Scale the predictive variance to match the errors made so far, each row predicted before it was learned. By
        default this is on if the noise is learned and there is a hidden layer: the network is linearised, so its own
        variance is somewhat too large or too small, and the errors show by how much.
    dtype : {"float64", "float32"}
        Precision of the belief.
    kernel : {"auto", "reference"}
        Use the compiled code or the readable NumPy reference; both give the same result. (``engine`` is the old name of
        this argument.)

    Examples
    --------
    >>> import numpy as np
    >>> from onepass import BayesianNetwork
    >>> X = np.linspace(-2, 2, 200)[:, None]
    >>> net = BayesianNetwork(1, hidden=(20,)).learn(X[::-1], np.sin(2 * X[::-1, 0]), passes=3)
    >>> bool(abs(net.predict([0.5]).mean - np.sin(1.0)) < 0.1)
    True

    Ten classes of images of 8 x 8 pixels, scaled to about 1, with one convolution:

    >>> from sklearn.datasets import load_digits
    >>> from onepass import Conv2D
    >>> digits = load_digits()
    >>> images = (digits.images - 5.0) / 6.0
    >>> net = BayesianNetwork((8, 8), (Conv2D(8, 3),), n_outputs=10, observation="categorical")
    >>> net = net.learn(images[:1000], digits.target[:1000])
    >>> bool(np.mean(net.predict(images[1000:]).mean.argmax(axis=1) == digits.target[1000:]) > 0.9)
    True
    """

    def __init__(
        self,
        n_features: int | ImageShape,
        hidden: LayerSize | tuple[LayerSize, ...] = (50,),
        n_outputs: int = 1,
        activation: Any = "relu",
        *,
        observation: str = "auto",
        noise: float | Literal["learn", "heteroscedastic"] = "learn",
        covariance: Covariance = "auto",
        prior: NetworkPrior | None = None,
        prior_scale: Any = 1.0,
        intercept_scale: float | None = None,
        seed: int = 0,
        outliers: float = 0.0,
        forgetting: float = 1.0,
        drift: float | str = 0.0,
        calibrate: bool | Literal["auto"] = "auto",
        dtype: str = "float64",
        kernel: str = "auto",
        engine: str | None = None,
    ) -> None:
        self.image_shape: ImageShape | None = as_image_shape(n_features) if np.iterable(n_features) else None
        self.n_features: int = flat_size(self.image_shape or as_count(n_features, "n_features"))
        layers = hidden if np.iterable(hidden) and not isinstance(hidden, str) else (hidden,)
        self.hidden: tuple[LayerSize, ...] = tuple(
            layer if isinstance(layer, Conv2D) else as_count(layer, "hidden") for layer in layers
        )
        self.n_outputs: int = as_count(n_outputs, "n_outputs")
        self.activation: Activation = as_activation(activation)
        self._activation_name = activation if isinstance(activation, str) else None
        one_of(observation, ("auto", *output_names()), "observation")
        self.observation: str = "gaussian" if observation == "auto" else observation
        words = noise_models()
        learns_noise = noise in words
        self.noise = noise if learns_noise else as_positive(noise, "noise", "or " + " or ".join(map(repr, words)))
        kind = choose_outputs(self.observation, self.noise)
        sizes = (self.image_shape or self.n_features, *self.hidden, kind(self.n_outputs).size)
        self._structure = make_structure(covariance, sizes)
        self.covariance: str = self._structure.name
        self.prior: NetworkPrior = _default_prior(kind, self._structure) if prior is None else prior
        self._likelihood = kind(self.n_outputs, self.prior.log_noise)
        self.outliers: float = as_outliers(outliers)
        self.forgetting: float = as_share(forgetting, "forgetting")
        self.drift: Any = as_fraction(drift, "drift", "or 'auto'")
        self.prior_scale: float | tuple[float, ...] = _as_prior_scale(prior_scale, self._structure.layout)
        self.intercept_scale: float | None = (
            None if intercept_scale is None else as_positive(intercept_scale, "intercept_scale")
        )
        self.seed: int = as_seed(seed)
        learned = learns_noise and bool(self.hidden) and self._likelihood.is_numeric
        self.calibrate: bool = learned if calibrate == "auto" else bool(calibrate)
        self.dtype: str = one_of(dtype, ("float64", "float32"), "dtype")
        self.kernel: str = one_of(renamed_kernel(kernel, engine), ("auto", "reference"), "kernel")
        n_noise = self._likelihood.size - self.n_outputs
        rng = np.random.default_rng(self.seed)
        scales = PriorScales(np.asarray(self.prior_scale), self._likelihood.bias_std(self.intercept_scale))
        mean, variance = start_weights(self._structure.layout, self.prior, scales, n_noise, rng)
        belief = self._structure.start(mean.astype(self.dtype), variance.astype(self.dtype))
        start = DiagonalGaussian(mean.astype(self.dtype), variance.astype(self.dtype))
        fixed = None if learns_noise else float(self.noise)
        progress = self._likelihood.start_noise(fixed, self.calibrate, self.outliers)
        progress.largest[:] = output_variances(self._structure, start)[: self.n_outputs].sum(axis=1)
        self._state = State(belief, progress, start)

    def __repr__(self) -> str:
        activation = self._activation_name or self.activation
        return (
            f"BayesianNetwork({self.image_shape or self.n_features}, {self.hidden}, {self.n_outputs}, {activation!r}, "
            f"observation={self.observation!r}, covariance={self.covariance!r}, n_seen={self.n_seen})"
        )

    @property
    def mean(self) -> FloatArray:
        """Mean of all weights, ``(p,)``."""
        return np.array(self._state.belief.mean)

    @property
    def cov(self) -> Any:
        """Covariance of the weights: its blocks, or with ``covariance="diagonal"`` the variances ``(p,)``.

        If layers are independent, a list with one entry per layer: the whole matrix for ``"full"``; for
        ``"kronecker"`` a pair of matrices, between units and between inputs, the bias last.
        """
        return self._state.belief.cov

    @property
    def weights(self) -> list[FloatArray]:
        """Mean weights of each layer, ``(n_out, n_in + 1)``, the bias last."""
        return [layer.copy() for layer in self._structure.layout.layers(self._state.belief.mean)]

    @property
    def weight_variances(self) -> list[FloatArray]:
        """Variances of the weights of each layer, in the shape of `weights`."""
        return [layer.copy() for layer in self._structure.layout.layers(self._state.belief.marginal_variances())]

    @property
    def noise_var(self) -> FloatArray:
        """Current variance of the noise of each output, ``(K,)``; if it depends on the input, its mean over the rows.

        For negative binomial counts it is the dispersion.
        """
        return np.array(self._state.noise.noise)

    @property
    def belief_size(self) -> int:
        """How many numbers the covariance has; the cost of learning a row grows with it."""
        return count_numbers(self.covariance, self._structure.layout)

    @property
    def log_evidence(self) -> float:
        """Sum of the log predictive densities of all rows learned, each before it was learned for the first time."""
        return self._state.evidence

    @property
    def n_seen(self) -> int:
        """Number of rows learned."""
        return self._state.seen

    def close_block(self) -> None:
        """Finish the block of rows that were learned one per call.

        Rows that come one per call may be collected into blocks, and reading the weights ends a block. So the rounding
        errors of later rows depend on when the weights were read. After this call they don't.
        """
        _ = self._state.belief

    def predict(self, X: ArrayLike, *, rows_ahead: RowsAhead = 1) -> Prediction:
        """Predictive distribution for one row ``(d,)`` or many ``(n, d)``.

        Each field is ``(n,)``, or ``(n, K)`` for several outputs. For classes ``mean`` and ``var`` are those of the
        class probabilities; ``pre_mean`` and ``pre_var`` are those of each class's log odds against all others.

        If the noise depends on the input, ``noise_var`` is ``e^{E[a]}``, where ``a`` is the log of the noise variance.
        The uncertainty about ``a`` is part of ``var``, because more data would reduce it. Far from the data, where
        ``a`` is less certain than before the first row, the noise of the prior is used.

        For counts ``mean`` is the rate. If the variance of the log rate is above 4, as it can be far from the data, it
        is taken as 4: otherwise mean and variances would describe only the tail of the distribution.

        Parameters
        ----------
        X : (d,) or (n, d) array
        rows_ahead : int or (n,) array
            Which row is predicted, counted from the last one learned: 1 for the next row. Before each row weights move,
            as ``drift`` and ``forgetting`` say. 0 predicts with the belief as it is.
        """
        return self._predict_with(None, X, rows_ahead)

    def _predict_with(self, noise_scale: FloatArray | None, X: ArrayLike, rows_ahead: RowsAhead) -> Prediction:
        """Predict, with the noise that it has in a mixture: see `_noise_in`."""
        rows, single = self._rows(X)
        (record,) = each_ahead(rows_ahead, (rows,), lambda ahead, own: (self.ahead(ahead)._records(noise_scale, own),))
        return self._prediction(record, single)

    def _records(self, noise_scale: FloatArray | None, rows: FloatArray) -> FloatArray:
        """What rows are predicted from by the belief as it is, ``(n, 6, K)``."""
        with np.errstate(over="ignore", invalid="ignore"):
            means, covs = self._output_moments(rows)
            record = self._likelihood.compiled.records(means, covs, self._noise_in(noise_scale))
        _check_predicted(rows, means, record[:, 0])
        return np.asarray(record)

    def ahead(self, rows: int = 1) -> Self:
        """Return the network as it predicts so many rows ahead: itself, or a copy in which the weights have moved.

        Before each row weights drift and the past fades, so the next row is predicted one row ahead. It is meant for
        reading the belief behind a prediction; learn with the network itself.
        """
        state = self._learner.ahead(self._state, as_whole(rows, "rows"))
        if state is self._state:
            return self
        twin = copy.copy(self)
        twin._state = state
        return twin

    def output_moments(self, X: ArrayLike, *, rows_ahead: RowsAhead = 1) -> OutputMoments:
        """Joint mean and covariance of all outputs, for one row ``(d,)`` or many ``(n, d)``.

        Mean ``(K,)`` and covariance ``(K, K)`` for one row, ``(n, K)`` and ``(n, K, K)`` for many. The outputs are
        those before the sigmoid or softmax for labels and classes (log odds), and log rates for counts. Noise is not
        included, nor are the additional outputs for a noise that depends on the input. Calibration is included, so the
        draws of `sample_output` have this mean and covariance in each row. This is meant for choosing between outputs,
        such as the arms of a bandit; with a covariance by layers, learning the same row next reuses the computation.
        ``rows_ahead`` is as for `predict`.

        Examples
        --------
        >>> import numpy as np
        >>> from onepass import BayesianNetwork
        >>> rng = np.random.default_rng(0)
        >>> X = rng.normal(size=(100, 2))
        >>> net = BayesianNetwork(2, (10,), n_outputs=3, observation="bernoulli").learn(X, X[:, [0, 1, 0]] > 0.0)
        >>> outputs = net.output_moments(X[0])
        >>> outputs.mean.shape, outputs.cov.shape
        ((3,), (3, 3))
        >>> draws = rng.multivariate_normal(outputs.mean, outputs.cov, size=5)
        """
        rows, single = self._rows(X)
        means, covs = each_ahead(rows_ahead, (rows,), lambda ahead, own: self.ahead(ahead)._calibrated_moments(own))
        return OutputMoments(means[0], covs[0]) if single else OutputMoments(means, covs)

    def _calibrated_moments(self, rows: FloatArray) -> OutputMoments:
        """Means and covariances of the outputs by the belief as it is, ``(n, K)`` and ``(n, K, K)``."""
        own = slice(self.n_outputs)
        with np.errstate(over="ignore", invalid="ignore"):
            means, covs = self._output_moments(rows)
            means, covs = means[:, own], covs[:, own, own]
            if self.calibrate:
                root = self._scale_root
                covs = covs * np.outer(root, root)
        _check_predicted(rows, means, covs)
        return OutputMoments(means, covs)

    def input_jacobian(self, X: ArrayLike, *, rows_ahead: int = 1) -> FloatArray:
        """Expected derivative of every output by every input, ``(K, d)`` for one row or ``(n, K, d)`` for many.

        Outputs are log odds for labels and classes, and log rates for counts. ``rows_ahead`` is as for `predict`.

        Examples
        --------
        >>> import numpy as np
        >>> from onepass import BayesianNetwork
        >>> net = BayesianNetwork(2, (), covariance="full", noise=0.01)
        >>> net = net.learn(np.eye(2).repeat(50, axis=0), np.repeat([3.0, -1.0], 50))
        >>> net.input_jacobian([0.5, 0.5]).shape
        (1, 2)
        """
        rows, single = self._rows(X)
        layout, belief, own = self._structure.layout, self.ahead(rows_ahead)._state.belief, slice(self.n_outputs)
        found = np.empty((len(rows), self.n_outputs, self.n_features))
        for part in parts_of_rows(self._structure, len(rows)):
            signals = propagate(self._structure, belief, self._units, rows[part])
            entering = through_weights(layout.wirings[0], layout.layers(belief.mean)[0], signals.output_jacobian[0])
            found[part] = entering[:, own]
        return found[0] if single else found

    @property
    def _scale_root(self) -> FloatArray:
        """Of the predictive scales ``(K,)``, which are wider while they rest on few rows."""
        noise = self._state.noise
        return np.sqrt(noise.scale * widening(noise.scale_weight))

    def learn(
        self,
        X: ArrayLike,
        y: ArrayLike,
        *,
        passes: int = 1,
        refine: str = "reuse",
        batch: int = 1,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Learn one row and its target, or many in the order given: all of them or, if one is invalid, none.

        Parameters
        ----------
        X : (d,) or (n, d) array
            Images may also have their own shape, such as ``(n, height, width)``.
        y : number, (n,) or (n, K) array
            With several outputs, NaN marks those that were not observed; the others are learned. A row without any
            target still counts as seen, so weights drift and older rows fade.
        passes : int
            1 is online learning. Later passes take the rows in a random order, set by the seed.
        refine : {"reuse", "ep"}
            What the later passes do. ``"reuse"`` counts the data again, which is fast but makes the belief
            overconfident. ``"ep"`` (expectation propagation) removes a row's previous contribution before learning it
            again, so every row counts once; it needs ``covariance="full"``. With ``noise="heteroscedastic"`` a pass is
            kept only if it predicts the rows, each without its own contribution, significantly better than the best
            pass before it.
        batch : int
            Number of rows learned in one step; all of them see the network as it was before the step. With a large
            covariance this learns more rows per second, and somewhat less from each. Not for ``"ep"``, nor for a
            diagonal, Kronecker or low-rank covariance.
        sample_weight : number or (n,) array, optional
            Weights above 0: a row of weight ``w`` counts as ``w`` copies of it.
        """
        for _ in self._passes(X, y, passes, refine, batch, sample_weight, records=False):
            pass
        return self

    def learning(
        self,
        X: ArrayLike,
        y: ArrayLike,
        *,
        passes: int = 1,
        refine: str = "reuse",
        batch: int = 1,
        sample_weight: ArrayLike | None = None,
    ) -> Iterator[RowScores]:
        """Learn as `learn` does, and yield after each pass how well each row was predicted before it was learned.

        In later passes with ``refine="ep"`` that is the prediction given all other rows. It is meant for weighting
        several networks against each other.
        """
        for work in self._passes(X, y, passes, refine, batch, sample_weight, records=self._scores_errors):
            yield self._scores_in_mixture(work)

    def _scores_in_mixture(self, work: Pass) -> RowScores:
        """The scores by which a committee weighs the network, and learns the noise where it can."""
        return (work if self._scores_errors else replace(work, record=None)).scores

    def _passes(
        self,
        X: ArrayLike,
        y: ArrayLike,
        passes: int,
        refine: str,
        batch: int,
        sample_weight: ArrayLike | None,
        *,
        records: bool,
    ) -> Iterator[Pass]:
        """Learn pass after pass."""
        rows, targets, _ = self._pairs(X, y)
        weights = as_row_weights(sample_weight, len(rows))
        as_count(passes, "passes")
        one_of(refine, ("reuse", "ep"), "refine")
        self._check_refinement(passes, refine, as_count(batch, "batch"))
        before = None if passes == batch == 1 and self._is_safe(len(rows)) else self._state.copy()
        sites = self._learner.start_sites(len(rows)) if refine == "ep" and passes > 1 else None
        n_far = 0.0
        best: tuple[Pass, State] | None = None
        for number in range(passes):
            order = np.arange(len(rows))
            if number:
                order = np.random.default_rng([self.seed, self.n_seen, number]).permutation(len(rows))
                self._state.noise.restart_calibration()
            densities, trust = np.empty(len(rows)), np.zeros((2, len(rows)))
            record = np.empty((len(rows), 6, self.n_outputs)) if records else None
            given = (rows, targets, order, number, batch, sites, densities, trust, record, self.outliers > 0.0)
            work = Pass(*given, weights)
            with self._all_or_none(before):
                self._check_learned(self._learner.run(self._state, work), before, work)
            if number == 0:
                self._state.evidence += float(work.gains.sum())
                self._state.seen += len(rows)
                n_far = self._state.noise.trust.n_far
            elif self._state.noise.trust.n_far > n_far:
                self._state.noise.trust = set_aside_once(self._state.noise.trust, n_far)
            if sites is not None and self._likelihood.compiled.may_widen:  # then more passes need not converge
                if best is None or work.predicts_better_than(best[0]):
                    best = work, self._state.copy()
                if number == passes - 1:
                    work, self._state = best
            yield work

    def predict_then_learn(
        self,
        X: ArrayLike,
        y: ArrayLike,
        *,
        sample_weight: ArrayLike | None = None,
        return_outlier_probability: bool = False,
    ) -> Any:
        """Predict every row just before learning it: test-then-train evaluation, at the speed of learning alone.

        Returns the `Prediction` or, with ``return_outlier_probability``, a pair: the prediction, and for each row the
        probability that its target can't be trusted, ``(n,)``.
        """
        prediction, scores = self._predict_then_learn(X, y, sample_weight)
        return (prediction, scores.outliers) if return_outlier_probability else prediction

    def _predict_then_learn(
        self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None
    ) -> tuple[Prediction, RowScores]:
        """Predict every row just before learning it, and say how well."""
        work = self._learn_recorded(X, y, sample_weight)
        return self._predicted(work, alone=True, single=self._rows(X)[1]), self._scores_of(work)

    def _predict_in_mixture(self, X: ArrayLike, y: ArrayLike, **options: Any) -> tuple[Prediction, RowScores]:
        work = self._learn_recorded(X, y, **options)
        return self._predicted(work, alone=False, single=self._rows(X)[1]), self._scores_in_mixture(work)

    def _learn_recorded(
        self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None, batch: int = 1
    ) -> Pass:
        """Learn rows, and keep what each was predicted from."""
        (work,) = self._passes(X, y, 1, "reuse", batch, sample_weight, records=True)
        return work

    def _predicted(self, work: Pass, *, alone: bool, single: bool = False) -> Prediction:
        """What rows were predicted to be before they were learned.

        ``alone``, a network widens its scales while they rest on few rows; in a mixture the members' differ instead.
        """
        assert work.record is not None
        record = work.record.copy()
        if alone:
            record[:, 3] *= widening(record[:, 5])
        return self._prediction(record, single)

    def _scores_of(self, work: Pass) -> RowScores:
        """How well rows were predicted, by the densities of what the network alone predicted."""
        targets = work.targets[:, 0] if self._one_column else work.targets
        return replace(work, record=None).scores._replace(
            log_densities=self._densities_of(self._predicted(work, alone=True), targets, work.densities, work.trust[0])
        )

    def _densities_of(
        self, prediction: Prediction, y: ArrayLike, log_densities: FloatArray, set_aside: FloatArray
    ) -> FloatArray:
        """Log densities ``(n,)`` of targets under what was predicted: of numbers the Gaussian with these moments.

        Of others, and of rows that were ``set_aside``, they are those that the kernel has found.
        """
        if self.observation != "gaussian" or self.noise == "heteroscedastic" or self.outliers:
            return log_densities
        targets = np.asarray(y, dtype=np.float64)
        total, error = prediction.var + prediction.noise_var, targets - prediction.mean
        with np.errstate(over="ignore"):
            logs = np.where(np.isnan(targets), 0.0, -0.5 * (np.log(2.0 * np.pi * total) + error**2 / total))
        logs = np.asarray(logs if self._one_column else logs.sum(axis=-1)).reshape(-1)
        return np.where(set_aside == 1.0, log_densities, logs)

    def with_outputs(self, n_outputs: int, covariance: Covariance | None = None) -> Self:
        """Make a network with more outputs that keeps what this one has learned.

        The new outputs come last; their weights and their noise start at the prior, and they share the hidden units
        learned so far. Rows learned before say nothing about a new class: they count as rows in which it could not
        occur. ``covariance`` is as in `with_inputs`.

        Examples
        --------
        >>> import numpy as np
        >>> from onepass import BayesianNetwork
        >>> net = BayesianNetwork(1, (5,), 2).learn([[1.0], [2.0]], [[1.0, 0.0], [2.0, 0.0]])
        >>> more = net.with_outputs(3).learn([1.5], [np.nan, np.nan, -1.0])
        >>> net.predict([1.5]).mean.shape, more.predict([1.5]).mean.shape
        ((2,), (3,))
        """
        if as_count(n_outputs, "n_outputs") < self.n_outputs:
            raise ValueError(
                f"n_outputs must be at least {self.n_outputs}, as many as the network has now, got {n_outputs}"
            )
        if self.noise == "heteroscedastic":
            raise ValueError(
                "outputs can't be added to a network with noise='heteroscedastic'; make it with noise='learn' or a "
                "number"
            )
        return self._larger(covariance, n_outputs=n_outputs)

    def with_inputs(self, n_features: int, covariance: Covariance | None = None) -> Self:
        """Make a network with more inputs that keeps what this one has learned.

        The new inputs come last, and their weights start at the prior: the network is as if these inputs had been there
        from the start and zero in all rows. With a Kronecker covariance that holds on average over the units.

        Parameters
        ----------
        n_features : int
            Length of a row from now on. The prior's scales are those for this number of inputs, unless the prior's
            ``most_inputs`` were reached before.
        covariance : str or tuple of str, optional
            Between which weights correlations are kept from now on, for a network that grows too large for the present
            form. A new form starts from the variances alone, without correlations. By default the form stays.

        Examples
        --------
        >>> from onepass import BayesianNetwork
        >>> net = BayesianNetwork(1, (5,)).learn([[1.0], [2.0]], [1.0, 2.0])
        >>> more = net.with_inputs(2)
        >>> bool(abs(net.predict([1.5]).mean - more.predict([1.5, 0.0]).mean) < 1e-12)
        True
        """
        if self.image_shape is not None:
            raise ValueError(
                f"inputs can be added only to networks for rows of numbers; this one is for images of shape "
                f"{self.image_shape}"
            )
        if as_count(n_features, "n_features") < self.n_features:
            raise ValueError(
                f"n_features must be at least {self.n_features}, as many as the network has now, got {n_features}"
            )
        return self._larger(covariance, n_features=n_features)

    def _larger(self, covariance: Covariance | None, **sizes: int) -> Self:
        """A network of other sizes, by which it has more weights, that knows what this one has learned."""
        own: dict[str, Any] = {name: getattr(self, name) for name in (*_PLAIN_ARGUMENTS, "hidden", "prior", "kernel")}
        own["activation"] = self._activation_name or self.activation
        own["covariance"] = self.covariance if covariance is None else covariance
        network = type(self)(**{**own, "n_features": self.image_shape or self.n_features, **sizes})
        structure, prior = network._structure, network._state.prior
        positions = structure.layout.positions_of(self._structure.layout)
        prior.mean[positions], prior.variance[positions] = self._state.prior.mean, self._state.prior.variance
        if network.covariance == self.covariance:
            structure.take_over(network._state.belief, self._state.belief, positions)
        else:
            mean, variance = prior.mean.copy(), prior.variance.copy()
            mean[positions] = self._state.belief.mean
            variance[positions] = self._state.belief.marginal_variances()
            network._state = State(structure.start(mean, variance), network._state.noise, prior)
        numbers = network._state.noise.to_array()
        numbers[:, : self.n_outputs] = self._state.noise.to_array()
        network._state.noise.assign(numbers)
        network._state.noise.trust = self._state.noise.trust.copy()
        network._state.evidence, network._state.seen = self._state.evidence, self._state.seen
        return network

    def interval(self, X: ArrayLike, level: float = 0.95, *, rows_ahead: RowsAhead = 1) -> tuple[Any, Any]:
        """Lower and upper limits that contain a new target with probability ``level``; for labels, their probability.

        For classes the limits are those of the probability of each class, ``(n, K)``. ``rows_ahead`` is as for
        `predict`.

        The interval of a probability is wider than the ``pre_var`` of `predict` says: it includes the variance that
        hidden units add by not being linear, which a new label, learned or scored, can't distinguish from chance.
        """
        as_share(level, "level", open_above=True)
        return self._likelihood.interval(self._interval_prediction(X, rows_ahead=rows_ahead), level)

    def _interval_prediction(self, X: ArrayLike, *, rows_ahead: RowsAhead = 1) -> Prediction:
        """Return the prediction that `interval` takes its quantiles from: that of `predict`, wider for labels."""
        if not self._likelihood.is_label:
            return self.predict(X, rows_ahead=rows_ahead)
        rows, single = self._rows(X)
        (record,) = each_ahead(rows_ahead, (rows,), lambda ahead, own: (self.ahead(ahead)._curved_records(own),))
        return self._prediction(record, single)

    def _curved_records(self, rows: FloatArray) -> FloatArray:
        """`_records` with the variance that hidden units add by not being linear."""
        with np.errstate(over="ignore", invalid="ignore"):
            means, covs = self._output_moments(rows)
            covs = covs + curvature_covariance(self._structure, self._state.belief, self._units, rows)
            record = self._likelihood.compiled.records(means, covs, self._noise_in(None))
        _check_predicted(rows, means, record[:, 0])
        return np.asarray(record)

    def log_predictive(self, X: ArrayLike, y: ArrayLike, *, rows_ahead: RowsAhead = 1) -> Any:
        """Log density (or probability) of each row's target; with several outputs, of those that are not NaN.

        ``rows_ahead`` is as for `predict`.
        """
        return self._scores(X, y, rows_ahead=rows_ahead)[0]

    @property
    def n_set_aside(self) -> int:
        """Number of rows set aside, that is counted but not learned, since their target was absurdly far off."""
        return int(self._state.noise.trust.n_far)

    @property
    def outliers_(self) -> float:
        """Estimated share of the targets that can't be trusted; 0 with ``outliers=0``."""
        return 1.0 - float(self._state.noise.trust.shares[0]) if self.outliers else 0.0

    def outlier_probability(self, X: ArrayLike, y: ArrayLike, *, rows_ahead: RowsAhead = 1) -> Any:
        """Probability that each target can't be trusted, before it is learned; 0 with ``outliers=0``.

        For labels and classes it is the probability that the label is wrong. ``rows_ahead`` is as for `predict`.
        """
        return self._scores(X, y, rows_ahead=rows_ahead)[1]

    def _scores(
        self, X: Any, y: ArrayLike, *, noise_scale: FloatArray | None = None, rows_ahead: RowsAhead = 1
    ) -> tuple[Any, Any]:
        """Log density of a target and the probability that it is not to be trusted, per row.

        With the noise that it has in a mixture: see `_noise_in`.
        """
        rows, targets, single = self._pairs(X, y)

        def score(ahead: int, own: FloatArray, own_targets: FloatArray) -> Any:
            later = self.ahead(ahead)
            noise = later._noise_in(noise_scale)
            return self._likelihood.score_rows(*later._output_moments(own), own_targets, noise)

        log_densities, outliers = each_ahead(rows_ahead, (rows, targets), score)
        return (float(log_densities[0]), float(outliers[0])) if single else (log_densities, outliers)

    def _noise_in(self, noise_scale: FloatArray | None) -> NoiseState:
        """The noise multiplied by the scale ``(K,)`` of a mixture, or alone (None), with scales widened by few rows."""
        noise = self._state.noise
        return noise.widened() if noise_scale is None else noise.with_noise_times(noise_scale)

    def sample_weights(self, n: int, rng: np.random.Generator | int, *, rows_ahead: int = 1) -> FloatArray:
        """Draw ``n`` vectors of all weights from the posterior, ``(n, p)``; ``rows_ahead`` is as for `predict`."""
        return np.asarray(self.ahead(rows_ahead)._state.belief.sample(as_count(n, "n"), as_generator(rng)))

    def sample_output(self, X: ArrayLike, n: int, rng: np.random.Generator | int, *, rows_ahead: int = 1) -> FloatArray:
        """Draw ``n`` functions from the posterior and return their outputs, without noise; for labels, probabilities.

        The shape is ``(n,)`` for one row and ``(n, rows)`` for many, followed by ``K`` for several outputs. All rows of
        a draw share its weights ``w``. The belief is about the network linearised in its weights, so the outputs are
        ``mean + J (w - E[w])``. They have the mean and variance of `predict`, calibration included, without the
        uncertainty about a noise that depends on the input; for classes this holds approximately, as their
        probabilities have no closed form. Sending the weights of `sample_weights` through the network itself gives a
        wider scatter wherever the network is strongly curved in its weights. ``rows_ahead`` is as for `predict`.
        """
        rows, single = self._rows(X)
        later = self.ahead(rows_ahead)
        outputs = later._drawn(rows, later.sample_weights(n, rng, rows_ahead=0))
        outputs = self._likelihood.response(outputs)
        outputs = outputs[:, 0] if single else outputs
        return np.asarray(outputs[..., 0] if self._one_column else outputs)

    def _drawn(self, rows: FloatArray, weights: FloatArray) -> FloatArray:
        """Outputs ``(n, rows, K)`` of weights ``(n, p)``, linearised; without the logs of noise variances."""
        belief, own = self._state.belief, slice(self.n_outputs)
        root = self._scale_root
        gaps = self._structure.layout.layers(weights - belief.mean)
        outputs = np.empty((len(weights), len(rows), self.n_outputs))
        for part in parts_of_rows(self._structure, len(rows)):
            signals = propagate(self._structure, belief, self._units, rows[part])
            for i in range(len(weights)):
                shift = linear_response(signals, [gap[i] for gap in gaps])
                outputs[i, part] = signals.mean[:, own] + root * shift[:, own]
        return outputs

    def export_state(self) -> tuple[dict[str, Any], dict[str, FloatArray]]:
        """All that makes this network: parameters that JSON can hold, and arrays. See `from_state`."""
        if self._activation_name is None:
            raise ValueError(
                f"only a network whose activation is given by name can be saved, got the object {self.activation!r}"
            )
        parameters: dict[str, Any] = {name: getattr(self, name) for name in ("n_features", *_PLAIN_ARGUMENTS)}
        parameters |= {
            "engine": self.kernel,
            "hidden": [encode_layer(layer) for layer in self.hidden],
            "activation": self._activation_name,
            "prior": asdict(self.prior),
            "log_evidence": self._state.evidence,
            "n_seen": self._state.seen,
        }
        if self.image_shape is not None:
            parameters["n_features"] = list(self.image_shape)
        if not isinstance(self.covariance, str):
            parameters["covariance"] = list(self.covariance)
        arrays = {name: values.copy() for name, values in self._structure.arrays(self._state.belief).items()}
        prior, noise = self._state.prior, self._state.noise
        if self.forgetting < 1.0 or self.drift > 0.0 or self.outliers > 0.0 or self.n_set_aside:
            arrays |= {"prior_mean": prior.mean.copy(), "prior_variances": prior.cov}
        return parameters, {**arrays, "trust": noise.trust.to_array(), "scales": noise.to_array()}

    @classmethod
    def from_state(cls, parameters: dict[str, Any], arrays: dict[str, FloatArray]) -> Self:
        """Make the network that `export_state` described; it continues learning exactly as that one would."""
        given = dict(parameters)
        evidence, seen = given.pop("log_evidence"), as_tally(given.pop("n_seen"), "n_seen")
        check_network(given, arrays)  # before anything of its size is made
        network = cls(**cls._arguments_from(given))
        state = network._state
        for name, values in network._structure.arrays(state.belief).items():
            values[...] = arrays[name]
        state.noise.assign(arrays["scales"])
        state.noise.trust = decode_trust(arrays["trust"], network.outliers)
        if "prior_mean" in arrays:  # else it is that of the constructor's arguments
            state.prior = DiagonalGaussian(arrays["prior_mean"], arrays["prior_variances"])
        network._structure.check(state.belief, check_definite)
        state.evidence, state.seen = as_number(evidence, "log_evidence"), seen
        return network

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        if not self._state.belief.mean.flags.writeable:  # from shared memory, as clusters hand models over
            self._state = self._state.copy()

    @classmethod
    def _arguments_from(cls, given: dict[str, Any]) -> dict[str, Any]:
        """Arguments of the constructor from parameters that JSON held."""
        prior = NetworkPrior(**given["prior"])
        hidden = tuple(decode_layer(layer) for layer in given["hidden"])
        read = {"hidden": hidden, "prior": prior, "kernel": given["engine"]}
        return {name: value for name, value in {**given, **read}.items() if name != "engine"}

    def _output_moments(self, rows: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Means and covariances of the outputs, ``(n, K)`` and ``(n, K, K)``.

        A few rows are looked at one by one where the structure has a block for it, which stays open then; others need
        the belief with all rows learned, as do rows that single precision has no numbers for.
        """
        seen = [self._learner.look(self._state, row) for row in rows] if len(rows) <= _FEW else [None]
        parts = [part for part in seen if part is not None and isfinite(part[0].sum() + part[1].sum())]
        if len(parts) == len(rows):
            return np.array([mean for mean, _ in parts]), np.array([cov for _, cov in parts])
        return output_moments(self._structure, self._state.belief, self._units, rows)

    @property
    def _units(self) -> Activation:
        """The activation, with the variance that units are averaged over."""
        share = self.prior.variance_share
        return self.activation if share == 1.0 else Narrowed(self.activation, share)

    @cached_property
    def _learner(self) -> Learner:
        return Learner(**self._learner_settings, compiled=self.kernel != "reference")

    @property
    def _learner_settings(self) -> dict[str, Any]:
        return {
            "structure": self._structure,
            "likelihood": self._likelihood,
            "activation": self._units,
            "forgetting": Forgetting(self.forgetting, self._structure.widest),
            "drift": self.drift,
        }

    def _is_safe(self, n_rows: int) -> bool:
        """Whether a row that can't be learned is found before anything of it is written."""
        if n_rows > 1 or not self._learner.compiled or self._learner.changes_first(self._state):
            return False
        return self.dtype == "float64" or self._state.open_block(self._structure) is not None

    @property
    def _scores_errors(self) -> bool:
        """Whether its errors tell a committee more than its densities: how much of them is noise."""
        return self.calibrate and self.noise == "learn" and self.observation == "gaussian"

    @contextmanager
    def _all_or_none(self, before: State | None) -> Iterator[None]:
        """Go back to what was ``before``, whatever goes wrong; without one nothing was written."""
        try:
            yield
        except BaseException:  # an activation in Python may raise anything, and Ctrl-C comes at any time
            self._state = self._state if before is None else before
            raise

    def _check_learned(self, learned: int, before: State | None, work: Pass) -> None:
        """Raise a ValueError if not all rows could be learned."""
        # One row needs no look at all numbers: the kernel has looked at the row before it wrote anything.
        if learned < len(work.rows) or not (before is None or self._is_finite()):
            raise ValueError(
                f"X and y overflow {self.dtype}: their largest magnitudes are {np.abs(work.rows).max():.3g} and "
                f"{np.nanmax(np.abs(work.targets), initial=0.0):.3g}; rescale them. Nothing was learned."
            )

    def _is_finite(self) -> bool:
        """Whether all that was learned is."""
        arrays = (*self._structure.arrays(self._state.belief).values(), self._state.noise.to_array())
        return all(bool(np.isfinite(values).all()) for values in arrays)

    # What comes in and what goes out.

    @property
    def _one_column(self) -> bool:
        return self.n_outputs == 1

    def _rows(self, X: ArrayLike) -> tuple[FloatArray, bool]:
        """Rows ``(n, d)``, and whether it was one; images may come in their shape."""
        shape = self.image_shape
        if shape is not None:
            given = np.asarray(X)
            if given.ndim >= len(shape) and given.shape[-len(shape) :] == shape:
                X = given.reshape(*given.shape[: -len(shape)], self.n_features)
            elif given.ndim > 2:
                each = ", ".join(map(str, shape))
                raise ValueError(f"X must have shape ({each}) for one image or (n, {each}), got shape {given.shape}")
        return as_rows(X, self.n_features)

    def _pairs(self, X: ArrayLike, y: ArrayLike) -> tuple[FloatArray, FloatArray, bool]:
        rows, single = self._rows(X)
        return rows, self._likelihood.as_targets(y, len(rows), single), single

    def _check_refinement(self, passes: int, refine: str, batch: int) -> None:
        if batch > 1 and not self._structure.learns_batches:
            raise ValueError(
                f"batch must be 1 with covariance={self.covariance!r}, got {batch}: with this covariance batches would "
                "not be faster"
            )
        if refine != "ep" or passes == 1:
            return
        if not self._structure.keeps_sites:
            raise ValueError(
                f"refine='ep' needs covariance='full', got covariance={self.covariance!r}, which stores only a part of "
                "what a row contributed, so it can't be removed again; use refine='reuse', or covariance='full' with a "
                "network small enough for it"
            )
        if self.forgetting < 1.0:
            raise ValueError(f"refine='ep' needs forgetting=1, got {self.forgetting:g}; use refine='reuse'")
        if self.drift:
            raise ValueError(
                f"refine='ep' needs weights that don't drift, got drift={self.drift:g}; use refine='reuse'"
            )
        if batch > 1:
            raise ValueError(f"refine='ep' removes rows one by one and needs batch=1, got {batch}")

    def _prediction(self, record: FloatArray, single: bool) -> Prediction:
        """Put together what is predicted from the compiled ``records``, ``(n, 6, K)``."""
        mean, var, noise, scale, unknown_noise, _ = record.swapaxes(0, 1).copy()
        output = self._likelihood.predictive(mean, var + unknown_noise, noise, scale)
        parts = (output.mean, output.var, mean, var, output.rest)
        columns = [part[:, 0] if self._one_column else part for part in parts]
        return Prediction(*((column[0][()] if single else column) for column in columns))


def _check_predicted(rows: FloatArray, *parts: FloatArray) -> None:
    """Raise a ValueError if not all that is predicted is finite."""
    if not all(np.isfinite(part).all() for part in parts):
        raise ValueError(
            f"X overflows float64 in the network: its largest magnitude is {np.abs(rows).max():.3g}; rescale it"
        )
