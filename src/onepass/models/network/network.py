"""The Bayesian network: perceptrons in layers, all weights learned jointly in closed form, one row at a time.

This module has construction, prediction, saving and loading; `learning` has the update of the belief by a row.
"""

import copy
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from math import isfinite
from typing import Any, Literal, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike

from onepass._typing import FloatArray
from onepass._validation import (
    as_count,
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
from onepass.activations import Activation, Narrowed, activation_text, as_activation
from onepass.beliefs.choice import Covariance, belief_type, count_numbers, start_belief
from onepass.beliefs.diagonal import DiagonalGaussian
from onepass.beliefs.forgetting import Forgetting
from onepass.beliefs.network import NetworkBelief
from onepass.beliefs.prior import as_scales
from onepass.engine.network_rows import NetworkRow
from onepass.engine.vector_matches import OUTPUT_RECORD_SIZE, NetworkProgress, OutputRecord, widening
from onepass.files.state import as_number, as_tally, check_network
from onepass.layers import (
    ImageShape,
    LayerSize,
    as_image_shape,
    as_layer_size,
    decode_layer,
    encode_layer,
    flat_size,
)
from onepass.layers.layout import Layout
from onepass.likelihoods import Likelihood, as_likelihood, encode_likelihood
from onepass.likelihoods.calibration import calibrated_covs, calibrated_roots
from onepass.models.ahead import RowsAhead, each_ahead
from onepass.models.distribution import Family, Mixed, Prediction, no_label_interval
from onepass.models.network.learning import Learner, Pass
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
)
from onepass.models.network.state import State, output_variances
from onepass.models.online import Component, as_rate, check_unchanged, set_aside_once, with_shared_arguments
from onepass.models.prediction import Parts, PredictedMoments, RowScores

__all__ = ["BayesianNetwork", "ForwardPass", "OutputMoments"]

_FEW = 8  # rows, which are predicted faster one by one
_KNOWN = 1e-8  # times the prior's variance: of weights that are known
_PLAIN_ARGUMENTS = (
    "n_outputs",
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


def _as_noise(noise: Any) -> float:
    """Check a fixed variance."""
    return as_positive(noise, "noise", "or 'learn' (observation='heteroscedastic' learns one for each input)")


def _default_prior(likelihood: Likelihood, layout: Layout, belief: type[NetworkBelief]) -> NetworkPrior:
    if likelihood.is_count:
        return choose_count_prior(layout)
    return choose_prior(likelihood.is_numeric, layout, belief.for_wide_layers)


class ForwardPass(NamedTuple):
    """All that a network predicts a row with, for those who write it down in another language."""

    belief: NetworkBelief
    layout: Layout
    units: Activation
    outputs: Any
    noise: NetworkProgress


class BayesianNetwork(Component):
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
    observation : name or Likelihood
        What a target is. ``"gaussian"``, the default: numbers with Gaussian noise. ``"heteroscedastic"``: numbers whose
        noise depends on the input, learned with one additional output of the network per target. ``"bernoulli"``:
        labels 0/1, one per output. ``"categorical"``: a class from 0 to ``n_outputs - 1``. ``"poisson"``,
        ``"negative_binomial"``: a count whose rate is the exponential of the output. Or pass a likelihood, also one of
        your own (`onepass.likelihoods.Likelihood`).
    noise : float or "learn", optional
        Variance of the Gaussian noise: a fixed number or, by default, one learned for all rows. For negative binomial
        counts it is the dispersion: counts of mean ``m`` have the variance ``m + noise m²``.
    covariance : {"auto", "full", "low_rank", "layer", "neuron", "kronecker", "diagonal"} or tuple of str
        Between which weights correlations are kept. ``"full"``: between all. ``"layer"``, ``"neuron"``: between those
        of a layer or of a neuron. ``"diagonal"``: none. ``"low_rank"``: between all weights, but only in the 100
        directions known best (fewer beyond 10,000 weights); for networks with few outputs and thousands of weights.
        ``"kronecker"``: between those of a layer, as the product of one matrix for its inputs and one for its outputs;
        for wide layers. A tuple names ``"kronecker"`` or ``"full"`` for each layer of weights, without correlations
        between layers. The default keeps as many as is not too slow: full up to 2,000 weights; beyond that low rank
        with one or two outputs, else Kronecker; see `onepass.beliefs.choice`.
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
    drift : float
        How fast the weights change, in [0, 1], as for `BayesianPerceptron`.
    calibrate : bool or "auto"
        Scale the predictive variance to match the errors made so far, each row predicted before it was learned. By
        default this is on if the noise is learned and there is a hidden layer: the network is linearised, so its own
        variance is somewhat too large or too small, and the errors show by how much. Only for numbers as targets.
    dtype : {"float64", "float32"}
        Precision of the belief.
    kernel : {"auto", "reference"}
        Use the compiled code or the readable NumPy reference; both give the same result.

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

    _curves_labels = True

    def __init__(
        self,
        n_features: int | ImageShape,
        hidden: LayerSize | tuple[LayerSize, ...] = (50,),
        n_outputs: int = 1,
        activation: Any = "relu",
        *,
        observation: str | Likelihood = "auto",
        noise: float | Literal["learn"] | None = None,
        covariance: Covariance = "auto",
        prior: NetworkPrior | None = None,
        prior_scale: Any = 1.0,
        intercept_scale: float | None = None,
        seed: int = 0,
        outliers: float = 0.0,
        forgetting: float = 1.0,
        drift: float = 0.0,
        calibrate: bool | Literal["auto"] = "auto",
        dtype: str = "float64",
        kernel: str = "auto",
    ) -> None:
        self.image_shape: ImageShape | None = as_image_shape(n_features) if np.iterable(n_features) else None
        self.n_features: int = flat_size(self.image_shape or as_count(n_features, "n_features"))
        layers = hidden if np.iterable(hidden) and not isinstance(hidden, str) else (hidden,)
        self.hidden: tuple[LayerSize, ...] = tuple(as_layer_size(layer, "hidden") for layer in layers)
        self.n_outputs: int = as_count(n_outputs, "n_outputs")
        self.activation: Activation = as_activation(activation)
        self._activation_name = activation if isinstance(activation, str) else None
        likelihood = as_likelihood(observation)
        chosen = likelihood.choose_noise(None if noise == "learn" and not likelihood.takes_noise else noise)
        learns_noise = chosen is None or (isinstance(chosen, str) and chosen == "learn")
        self.noise: float | str = "learn" if learns_noise else _as_noise(chosen)
        self._likelihood = likelihood.with_noise(None)  # which the state has
        self._family = Family(self._likelihood, self._likelihood.link)
        sizes = (self.image_shape or self.n_features, *self.hidden, self._likelihood.outputs(self.n_outputs).size)
        form = belief_type(covariance, Layout(sizes))
        self._layout = Layout(sizes, form.input_major)
        self.prior: NetworkPrior = _default_prior(self._likelihood, self._layout, form) if prior is None else prior
        self._outputs = self._likelihood.outputs(self.n_outputs, self.prior.log_noise)
        self.outliers: float = as_outliers(outliers)
        self.forgetting: float = as_share(forgetting, "forgetting")
        self.drift: float = as_rate(drift)
        self.prior_scale: float | tuple[float, ...] = _as_prior_scale(prior_scale, self._layout)
        self.intercept_scale: float | None = (
            None if intercept_scale is None else as_positive(intercept_scale, "intercept_scale")
        )
        self.seed: int = as_seed(seed)
        self.calibrate: bool = self._as_calibrate(calibrate, learns_noise)
        self.dtype: str = one_of(dtype, ("float64", "float32"), "dtype")
        self.kernel: str = one_of(kernel, ("auto", "reference"), "kernel")
        self._likelihood.check_outliers(self.outliers)
        self._state: State = self._start(covariance, None if learns_noise else float(self.noise))
        self.covariance: Any = self._state.belief.covariance

    def __repr__(self) -> str:
        sizes = f"{self.image_shape or self.n_features}, {self.hidden}, {self.n_outputs}"
        return (
            f"BayesianNetwork({sizes}, {activation_text(self.activation)}, "
            f"observation={self._likelihood.name or self._likelihood!r}, covariance={self.covariance!r}, "
            f"n_seen={self.n_seen})"
        )

    def _start(self, covariance: Covariance, noise: float | None) -> State:
        """The state before the first row."""
        n_noise, rng = self._outputs.size - self.n_outputs, np.random.default_rng(self.seed)
        scales = PriorScales(np.asarray(self.prior_scale), self._likelihood.bias_std(self.intercept_scale))
        weights = start_weights(self._layout, self.prior, scales, n_noise, rng)
        mean, variance = (numbers.astype(self.dtype) for numbers in weights)
        belief, prior = start_belief(covariance, self._layout, mean, variance), DiagonalGaussian(mean, variance)
        progress = self._likelihood.start_noise(self.n_outputs, noise, self.calibrate, self.outliers)
        progress.largest[:] = output_variances(self._layout, prior)[: self.n_outputs].sum(axis=1)
        return State(belief, progress, prior)

    def _as_calibrate(self, given: Any, learns_noise: bool) -> bool:
        """Check a user's choice; ``"auto"`` calibrates where the noise is learned and the network is linearised."""
        if isinstance(given, str) and given == "auto":
            return learns_noise and bool(self.hidden) and self._likelihood.can_calibrate
        if not isinstance(given, (bool, np.bool_)):
            raise TypeError(f"calibrate must be True, False or 'auto', got {given!r}")
        if given and not self._likelihood.can_calibrate:
            raise ValueError(
                "calibrate=True needs numbers as targets: labels and counts have no variance apart from their mean; "
                f"use calibrate='auto' or False, got observation={self._likelihood.name or self._likelihood!r}"
            )
        return bool(given)

    # Predicting.

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
        seen, X = self._state.seen, X.copy() if type(X) is np.ndarray else X  # callers may use its memory again
        return Prediction(
            self._family,
            self._predict_component(X, rows_ahead=rows_ahead),
            0.0,
            lambda y: self._density(seen, X, y, rows_ahead=rows_ahead),
            interval_mixed=self._interval_parts(X, rows_ahead) if self._likelihood.is_label else None,
        )

    def _predict_component(
        self, X: ArrayLike, *, noise_scale: FloatArray | None = None, rows_ahead: RowsAhead = 1
    ) -> PredictedMoments:
        """Predict, with the noise that it has in a mixture: see `_noise_in`."""
        if type(X) is np.ndarray and X.ndim == 1 and type(rows_ahead) is int and rows_ahead == 1:
            one_row = self._one_row if noise_scale is None else None
            seen = None if one_row is None else one_row.predict(X)
            if seen is not None:
                return self._prediction(seen, True, alone=True)
        rows, single = self._rows(X)
        (record,) = each_ahead(rows_ahead, (rows,), lambda ahead, own: (self.ahead(ahead)._records(noise_scale, own),))
        return self._prediction(record, single, alone=noise_scale is None)

    def _prediction_of_one(self, seen: FloatArray) -> PredictedMoments:
        """What the network alone predicts for one row, from the compiled record ``(1, 7, K)`` of it."""
        return self._prediction(seen, True, alone=True)

    def _records(self, noise_scale: FloatArray | None, rows: FloatArray) -> FloatArray:
        """What rows are predicted from by the belief as it is, ``(n, 7, K)``."""
        with np.errstate(over="ignore", invalid="ignore"):
            means, covs = self._output_moments(rows)
            record = self._outputs.records(means, covs, self._noise_in(noise_scale))
        _check_predicted(rows, means, record[:, 0])
        return np.asarray(record)

    def _output_moments(self, rows: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Means and covariances of the outputs, ``(n, K)`` and ``(n, K, K)``.

        A few rows are looked at one by one where the belief has a block for it, which stays open then; others need
        the belief with all rows learned, as do rows that single precision has no numbers for.
        """
        seen = [self._learner.look(self._state, row) for row in rows] if len(rows) <= _FEW else [None]
        parts = [part for part in seen if part is not None and isfinite(part[0].sum() + part[1].sum())]
        if len(parts) == len(rows):
            return np.array([mean for mean, _ in parts]), np.array([cov for _, cov in parts])
        return output_moments(self._state.belief, self._units, rows)

    def forward_pass(self, noise_scale: FloatArray | None = None) -> ForwardPass:
        """What the next row is predicted with; ``noise_scale`` as in `_noise_in`."""
        later = self.ahead()
        return ForwardPass(later.belief, self._layout, self._units, self._outputs, later._noise_in(noise_scale))

    def _noise_in(self, noise_scale: FloatArray | None) -> NetworkProgress:
        """The noise multiplied by the scale ``(K,)`` of a mixture, or alone (None), with scales widened by few rows."""
        noise = self._state.noise
        return noise.widened() if noise_scale is None else noise.with_noise_times(noise_scale)

    def _prediction(self, record: FloatArray, single: bool, alone: bool) -> PredictedMoments:
        """Put together what is predicted from the compiled records, ``(n, 7, K)``: see `OutputRecord`."""
        if single and self._one_column:  # one number of each without NumPy, which would take most of the time
            one = OutputRecord(*record[0, :, 0].tolist())
            found = self._likelihood.predictive(one, alone)
            return PredictedMoments(float(found.mean), float(found.var), one.mean, one.var, float(found.noise_var))
        given = OutputRecord.of(record.copy())
        output = self._likelihood.predictive(given, alone)
        parts = (output.mean, output.var, given.mean, given.var, output.noise_var)
        columns = [part[:, 0] if self._one_column else part for part in parts]
        return PredictedMoments(*((column[0][()] if single else column) for column in columns))

    # Learning.

    @with_shared_arguments
    def learn(
        self,
        X: ArrayLike,
        y: ArrayLike,
        *,
        sample_weight: ArrayLike | None = None,
        passes: int = 1,
        refine: str = "auto",
        batch: int = 1,
    ) -> Self:
        """Learn one row and its target, or many in the order given: all of them or, if one is invalid, none.

        Parameters
        ----------
        X : (d,) or (n, d) array
            Images may also have their own shape, such as ``(n, height, width)``.
        y : number, (n,) or (n, K) array
            With several outputs, NaN marks those that were not observed; the others are learned. A row without any
            target still counts as seen, so weights drift and older rows fade.
        <shared arguments>
            With ``observation="heteroscedastic"`` a pass is kept only if it predicts the rows, each without its own
            contribution, significantly better than the best pass before it.
        batch : int
            Number of rows learned in one step; all of them see the network as it was before the step. With a large
            covariance this learns more rows per second, and somewhat less from each. Not for ``"ep"``, nor for a
            diagonal, Kronecker or low-rank covariance.
        """
        if sample_weight is None and passes == batch == 1 and type(X) is np.ndarray and X.ndim == 1:
            one_row = self._one_row
            if one_row is not None and one_row(X, y):
                return self
        how = {"sample_weight": sample_weight, "passes": passes, "refine": refine, "batch": batch}
        for _ in self._passes(X, y, records=False, **how):
            pass
        return self

    @property
    def _one_row(self) -> NetworkRow | None:
        """The fast path for one row; None where there is none."""
        return self._learner.one_row(self._state)

    def learning(self, X: ArrayLike, y: ArrayLike, *, records: bool = False, **how: Any) -> "Iterator[_LearnedRows]":
        """Learn as `learn` does, and yield after each pass what the rows were predicted from just before.

        In later passes with ``refine="ep"`` that is the prediction given all other rows. It is meant for weighting
        several networks against each other; only with ``records`` it has the predictions themselves.
        """
        records = records or self._scores_errors
        for work in self._passes(X, y, records=records, **how):
            yield _LearnedRows(self, work, self._rows(X)[1])

    def _passes(
        self,
        X: ArrayLike,
        y: ArrayLike,
        *,
        records: bool,
        sample_weight: Any = None,
        passes: Any = 1,
        refine: Any = "auto",
        batch: Any = 1,
    ) -> Iterator[Pass]:
        """Learn pass after pass."""
        rows, targets, _ = self._pairs(X, y)
        weights = as_row_weights(sample_weight, len(rows))
        self._check_batch(as_count(batch, "batch"), passes, refine)
        removes_sites = self._removes_sites(passes, "reuse" if refine == "auto" and batch > 1 else refine)
        before = None if passes == batch == 1 and self._is_safe(len(rows)) else self._state.copy()
        sites = self._learner.start_sites(self._state, len(rows)) if removes_sites else None
        n_far = 0.0
        best: tuple[Pass, State] | None = None
        for number in range(passes):
            order = np.arange(len(rows))
            if number:
                order = np.random.default_rng([self.seed, self.n_seen, number]).permutation(len(rows))
                self._state.noise.restart_calibration()
            densities, gains = np.empty((2, len(rows)))
            trust = np.zeros((2, len(rows)))
            record = np.empty((len(rows), OUTPUT_RECORD_SIZE, self.n_outputs)) if records else None
            outputs = self._outputs.memory_of(len(rows), self._state.noise) if records and self.calibrate else None
            given = (rows, targets, order, number, batch, sites, densities, gains, trust, record, outputs)
            work = Pass(*given, self.outliers > 0.0, weights)
            with self._all_or_none(before):
                self._check_learned(self._learner.run(self._state, work), before, work)
            if number == 0:
                self._state.evidence += float(work.gains.sum())
                self._state.seen += len(rows)
                n_far = self._state.noise.trust.n_far
            elif self._state.noise.trust.n_far > n_far:
                self._state.noise.trust = set_aside_once(self._state.noise.trust, n_far)
            if sites is not None and self._outputs.may_widen:  # then more passes need not converge
                if best is None or work.predicts_better_than(best[0]):
                    best = work, self._state.copy()
                if number == passes - 1:
                    work, self._state = best
            yield work

    def _is_safe(self, n_rows: int) -> bool:
        """Whether a row that can't be learned is found before anything of it is written."""
        if n_rows > 1 or not self._learner.compiled or self._learner.changes_first(self._state):
            return False
        return self.dtype == "float64" or self._state.open_block() is not None

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
        return self._state.belief.is_finite() and bool(np.isfinite(self._state.noise.to_array()).all())

    def _check_batch(self, batch: int, passes: int, refine: str) -> None:
        if batch > 1 and not self._state.belief.learns_batches:
            raise ValueError(
                f"batch must be 1 with covariance={self.covariance!r}, got {batch}: with this covariance batches would "
                "not be faster"
            )
        if batch > 1 and refine == "ep" and passes > 1:
            raise ValueError(f"refine='ep' removes rows one by one and needs batch=1, got {batch}")

    def close_block(self) -> None:
        """Finish the block of rows that were learned one per call.

        Rows that come one per call may be collected into blocks, and reading the weights ends a block. So the rounding
        errors of later rows depend on when the weights were read. After this call they don't.
        """
        _ = self._state.belief

    # What else is asked of the predictive distribution.

    def _interval_parts(self, X: ArrayLike, rows_ahead: RowsAhead) -> Callable[[], Mixed]:
        """What intervals of labels are taken from, when they are asked for."""
        seen = self.n_seen

        def parts() -> Mixed:
            check_unchanged(self, seen)
            moments = self._interval_prediction(X, rows_ahead=rows_ahead)
            return Mixed(np.ones(1), PredictedMoments(*(np.asarray(part)[None] for part in moments)), np.zeros(1))

        return parts

    def _interval_prediction(
        self, X: ArrayLike, *, noise_scale: FloatArray | None = None, rows_ahead: RowsAhead = 1
    ) -> PredictedMoments:
        """Return the prediction that `interval` takes its quantiles from: that of `predict`, wider for labels."""
        if not self._likelihood.is_label:
            return self._predict_component(X, noise_scale=noise_scale, rows_ahead=rows_ahead)
        rows, single = self._rows(X)
        (record,) = each_ahead(rows_ahead, (rows,), lambda ahead, own: (self.ahead(ahead)._curved_records(own),))
        return self._prediction(record, single, alone=True)

    def _curved_records(self, rows: FloatArray) -> FloatArray:
        """`_records` with the variance that hidden units add by not being linear."""
        with np.errstate(over="ignore", invalid="ignore"):
            means, covs = self._output_moments(rows)
            covs = covs + curvature_covariance(self._state.belief, self._units, rows)
            record = self._outputs.records(means, covs, self._noise_in(None))
        _check_predicted(rows, means, record[:, 0])
        return np.asarray(record)

    def _scores(
        self, X: Any, y: ArrayLike, *, noise_scale: FloatArray | None = None, rows_ahead: RowsAhead = 1
    ) -> tuple[Any, Any]:
        """Log density of a target and the probability that it is not to be trusted, per row.

        With the noise that it has in a mixture: see `_noise_in`.
        """
        rows, targets, single = self._pairs(X, y)

        def score(ahead: int, own: FloatArray, own_targets: FloatArray) -> Any:
            later = self.ahead(ahead)
            kept = self._outputs.kept(*later._output_moments(own), later._state.noise)
            return self._score(kept, own_targets, noise_scale)

        log_densities, outliers = each_ahead(rows_ahead, (rows, targets), score)
        return (float(log_densities[0]), float(outliers[0])) if single else (log_densities, outliers)

    def _score(self, kept: FloatArray, targets: FloatArray, noise_scale: FloatArray | None) -> FloatArray:
        """Log density of each target, and how far it is distrusted, ``(2, n)``, from the outputs before it is learned.

        Alone (None), or with the noise that it has in a mixture.
        """
        shape = (len(kept), self.n_outputs)
        scales = np.empty((0, self.n_outputs)) if noise_scale is None else np.broadcast_to(noise_scale, shape)
        return np.asarray(self._outputs.score_rows(kept, targets, np.ascontiguousarray(scales)))

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
        return self._component_moments(X, rows_ahead=rows_ahead)

    def _component_moments(
        self, X: ArrayLike, *, rows_ahead: RowsAhead = 1, noise_scale: FloatArray | None = None
    ) -> OutputMoments:
        rows, single = self._rows(X)
        means, covs = each_ahead(
            rows_ahead, (rows,), lambda ahead, own: self.ahead(ahead)._calibrated_moments(own, noise_scale)
        )
        return OutputMoments(means[0], covs[0]) if single else OutputMoments(means, covs)

    def _calibrated_moments(self, rows: FloatArray, noise_scale: FloatArray | None) -> OutputMoments:
        """Means and covariances of the outputs by the belief as it is, ``(n, K)`` and ``(n, K, K)``."""
        own = slice(self.n_outputs)
        with np.errstate(over="ignore", invalid="ignore"):
            means, covs = self._output_moments(rows)
            means, covs = means[:, own], covs[:, own, own]
            if self.calibrate:
                covs = calibrated_covs(covs, self._noise_in(noise_scale), alone=noise_scale is None)
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
        layout, belief, own = self._layout, self.ahead(rows_ahead)._state.belief, slice(self.n_outputs)
        found = np.empty((len(rows), self.n_outputs, self.n_features))
        for part in parts_of_rows(belief, len(rows)):
            signals = propagate(belief, self._units, rows[part])
            entering = layout.wirings[0].through_weights(layout.layers(belief.mean)[0], signals.output_jacobian[0])
            found[part] = entering[:, own]
        return found[0] if single else found

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
        return self._sample_component(X, n, rng, rows_ahead=rows_ahead)

    def _sample_component(
        self, X: Any, n: int, rng: Any, *, rows_ahead: int = 1, noise_scale: FloatArray | None = None
    ) -> FloatArray:
        rows, single = self._rows(X)
        later = self.ahead(rows_ahead)
        outputs = later._drawn(rows, later.sample_weights(n, rng, rows_ahead=0), noise_scale)
        outputs = self._likelihood.response(outputs)
        outputs = outputs[:, 0] if single else outputs
        return np.asarray(outputs[..., 0] if self._one_column else outputs)

    def _drawn(self, rows: FloatArray, weights: FloatArray, noise_scale: FloatArray | None) -> FloatArray:
        """Outputs ``(n, rows, K)`` of weights ``(n, p)``, linearised; without the logs of noise variances."""
        belief, own = self._state.belief, slice(self.n_outputs)
        noise, alone = self._noise_in(noise_scale), noise_scale is None
        gaps = self._layout.layers(weights - belief.mean)
        outputs = np.empty((len(weights), len(rows), self.n_outputs))
        for part in parts_of_rows(belief, len(rows)):
            signals = propagate(belief, self._units, rows[part])
            roots = calibrated_roots(belief.output_covariance(signals), noise, alone)
            for i in range(len(weights)):
                shift = linear_response(signals, [gap[i] for gap in gaps])
                outputs[i, part] = signals.mean[:, own] + roots * shift[:, own]
        return outputs

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

    # What was learned.

    @property
    def mean(self) -> FloatArray:
        """Mean of all weights, ``(p,)``."""
        return np.array(self._state.belief.mean)

    @property
    def cov(self) -> Any:
        """Covariance of the weights: its blocks, or with ``covariance="diagonal"`` the variances ``(p,)``.

        If layers are independent, a list with one entry per layer: the whole matrix for ``"full"``; for
        ``"kronecker"`` a pair of matrices, between units and between inputs, the bias first.
        """
        return self._state.belief.cov

    @property
    def weights(self) -> list[FloatArray]:
        """Mean weights of each layer, ``(n_out, n_in + 1)``, the bias first."""
        return [layer.copy() for layer in self._layout.layers(self._state.belief.mean)]

    @property
    def weight_variances(self) -> list[FloatArray]:
        """Variances of the weights of each layer, in the shape of `weights`."""
        return [layer.copy() for layer in self._layout.layers(self._state.belief.marginal_variances())]

    @property
    def noise_var(self) -> FloatArray:
        """Current variance of the noise of each output, ``(K,)``; if it depends on the input, its mean over the rows.

        For negative binomial counts it is the dispersion.
        """
        return np.array(self._state.noise.noise)

    @property
    def observation(self) -> Likelihood:
        """The likelihood, with the current noise of each output, ``(K,)``."""
        return self._likelihood.with_noise(self.noise_var)

    @property
    def belief_size(self) -> int:
        """How many numbers the covariance has; the cost of learning a row grows with it."""
        return count_numbers(self.covariance, self._layout)

    @property
    def log_evidence(self) -> float:
        """Sum of the log predictive densities of all rows learned, each before it was learned for the first time.

        It ranks priors and features, and so has the densities that rows are learned by: those before calibration. A row
        of weight ``w`` adds the log density of ``w`` copies. `log_predictive` has the calibrated densities.
        """
        return self._state.evidence

    @property
    def n_seen(self) -> int:
        """Number of rows learned."""
        return self._state.seen

    # Rows predicted before they were learned, and as one of several models in a mixture.

    def predict_score_learn(self, X: ArrayLike, y: ArrayLike, **options: Any) -> tuple[Prediction, RowScores]:
        """Predict every row just before learning it, and say how well."""
        (rows,) = self.learning(X, y, records=True, **options)
        moments = self._predicted(rows.work, alone=True, single=rows.single)
        refused = no_label_interval if self._likelihood.is_label else None
        return Prediction(self._family, moments, interval_mixed=refused), rows.scores(alone=True)

    def _predicted(self, work: Pass, *, alone: bool, single: bool = False) -> PredictedMoments:
        """What rows were predicted to be before they were learned.

        ``alone``, a network widens its scales while they rest on few rows; in a mixture the members' differ instead.
        """
        assert work.record is not None
        record = work.record.copy()
        if alone:
            parts = OutputRecord.of(record)
            parts.scale[:] *= widening(parts.scale_weight)
        return self._prediction(record, single, alone)

    @property
    def _scores_errors(self) -> bool:
        """Whether its errors tell a committee more than its densities: how much of them is noise."""
        return self.calibrate and self.noise == "learn" and self._likelihood.is_gaussian

    @staticmethod
    def _mixture_cov(weights: FloatArray, members: "list[BayesianNetwork]") -> Any:
        """Covariance of the weights of the most probable one of several networks."""
        return members[int(np.argmax(weights))].cov

    # Larger networks that know what this one has learned.

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
        if self._likelihood.has_noise_outputs:
            raise ValueError(
                f"outputs can't be added to a network with observation={self._likelihood.name!r}; make it with "
                "observation='gaussian'"
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
        own["observation"] = self._likelihood
        own["covariance"] = self.covariance if covariance is None else covariance
        network = type(self)(**{**own, "n_features": self.image_shape or self.n_features, **sizes})
        network._state.take_over(self._state)
        return network

    def continue_from_two_classes(self, two: "BayesianNetwork") -> None:
        """Take what a network for two classes, with one output for both, has learned, before this one learns a row.

        The output of the other, the log odds of the second class, becomes the first class's output with its sign
        changed, and that of the second class is 0: as probabilities depend on differences of outputs alone, those of
        the first two classes are the same as before. The others have their prior weights, and a bias by
        which a class that did not occur in so many rows is rare.
        """
        layout, prior = self._layout, self._state.prior
        first, second, *others = layout.layers(np.arange(layout.size))[-1]
        positions, old = layout.positions_of(two._layout), two._state.belief
        mean, variance = prior.mean.copy(), prior.variance.copy()
        mean[second], variance[second] = 0.0, _KNOWN * variance[second]
        for bias, *_ in others:  # a class that did not occur in so many rows is rare
            mean[bias], variance[bias] = -np.log1p(two._state.seen), min(variance[bias], 1.0)
        if self.covariance != two.covariance:
            mean[positions], variance[positions] = old.mean, old.marginal_variances()
        belief = start_belief(self.covariance, layout, mean, variance)
        if self.covariance == two.covariance:
            belief.take_over(old, positions)
        belief.negate(first)
        self._state = State(belief, self._state.noise, prior, two._state.evidence, two._state.seen)

    # What rows and outputs are.

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
        return rows, self._likelihood.as_targets(y, len(rows), single, self._outputs), single

    @property
    def _one_column(self) -> bool:
        return self.n_outputs == 1

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
        belief, in_steps = self._state.belief, self._state.belief.drifts_in_steps
        return {
            "layout": self._layout,
            "outputs": self._outputs,
            "activation": self._units,
            "forgetting": Forgetting(self.forgetting, belief.widest),
            "drift": 0.0 if in_steps else self.drift,
            "drifting": Forgetting(1.0 - self.drift if in_steps else 1.0, belief.widest),
        }

    # Files.

    def export_state(self) -> tuple[dict[str, Any], dict[str, FloatArray]]:
        """All that makes this network: parameters that JSON can hold, and arrays. See `from_state`."""
        if self._activation_name is None:
            raise ValueError(
                f"only a network whose activation is given by name can be saved, got the object {self.activation!r}"
            )
        parameters: dict[str, Any] = {name: getattr(self, name) for name in ("n_features", *_PLAIN_ARGUMENTS)}
        parameters |= {
            "kernel": self.kernel,
            "observation": encode_likelihood(self._likelihood),
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
        fades = self.forgetting < 1.0 or self.drift > 0.0
        return parameters, self._state.export(with_prior=fades or self.outliers > 0.0 or self.n_set_aside > 0)

    @classmethod
    def from_state(cls, parameters: dict[str, Any], arrays: dict[str, FloatArray]) -> Self:
        """Make the network that `export_state` described; it continues learning exactly as that one would."""
        given = dict(parameters)
        evidence, seen = given.pop("log_evidence"), as_tally(given.pop("n_seen"), "n_seen")
        check_network(given, arrays)  # before anything of its size is made
        network = cls(**cls._arguments_from(given))
        network._state.restore(arrays, network.outliers)
        network._state.evidence, network._state.seen = as_number(evidence, "log_evidence"), seen
        return network

    @classmethod
    def _arguments_from(cls, given: dict[str, Any]) -> dict[str, Any]:
        """Arguments of the constructor from parameters that JSON held."""
        hidden = tuple(decode_layer(layer) for layer in given["hidden"])
        if not isinstance(given["prior"], dict):
            raise ValueError(f"prior must be a table, got {str(given['prior'])[:40]!r}")
        return {**given, "hidden": hidden, "prior": NetworkPrior(**given["prior"])}


@dataclass(frozen=True)
class _LearnedRows:
    """Rows that a network has learned, with what the kernels have recorded of them."""

    network: BayesianNetwork
    work: Pass
    single: bool

    def parts(self, alone: bool) -> Parts:
        """What they were predicted to be, as the only part of a mixture."""
        prediction = self.network._predicted(self.work, alone=alone, single=self.single)
        return Parts.alone(prediction, np.zeros(len(self.work.rows)))

    def densities(self, noise_scale: FloatArray | None) -> FloatArray:
        """Log density of each target, and how far it was distrusted, ``(2, n)``; with the noise of a mixture."""
        if self.work.outputs is None:  # nothing is calibrated: they are those of learning
            return np.stack([self.work.densities, self.work.trust[0]])
        return self.network._score(self.work.outputs, self.work.targets, noise_scale)

    def scores(self, alone: bool) -> RowScores:
        """How well they were predicted; in a mixture with the errors by which it learns its noise, where it can."""
        if not alone:
            return (self.work if self.network._scores_errors else replace(self.work, record=None)).scores
        log_densities, outliers = self.densities(None)
        return replace(self.work, record=None).scores._replace(log_densities=log_densities, outliers=outliers)


def _check_predicted(rows: FloatArray, *parts: FloatArray) -> None:
    """Raise a ValueError if not all that is predicted is finite."""
    if not all(np.isfinite(part).all() for part in parts):
        raise ValueError(
            f"X overflows float64 in the network: its largest magnitude is {np.abs(rows).max():.3g}; rescale it"
        )
