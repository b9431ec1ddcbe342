"""The Bayesian perceptron: Algorithms 1 and 2 of the paper, written so that both can be read side by side.

The paper is M. F. Huber, "Bayesian Perceptron: Towards fully Bayesian Neural Networks", 2020; equations are cited by
the numbers printed there. `BayesianPerceptron.predict` is the forward pass and `_learn_row` the backward pass for one
row, both in NumPy. They are the reference for the compiled kernels of `onepass.engine`, which handle many rows at once.
"""

import copy
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import csr_array

from onepass._typing import FloatArray
from onepass._validation import (
    as_count,
    as_flag,
    as_generator,
    as_nonnegative,
    as_outliers,
    as_positive,
    as_row_weights,
    as_share,
    as_targets,
    as_variances,
    as_whole,
    one_of,
)
from onepass.activations import Activation, Moments, activation_text, as_activation
from onepass.beliefs.base import PerceptronBelief, Weights
from onepass.beliefs.diagonal import DiagonalGaussian
from onepass.beliefs.forgetting import Forgetting, reciprocals
from onepass.beliefs.full import FullGaussian, pack_root
from onepass.beliefs.moved import MovedGaussian
from onepass.beliefs.prior import PERCEPTRON_BELIEFS, as_prior, simplest_form
from onepass.beliefs.rows import RowPlan
from onepass.engine.outliers import Trust
from onepass.engine.rows import PerceptronRule, RowLearner, Rows
from onepass.engine.step import (
    RECORD_DISTRUST,
    RECORD_LOG_DENSITY,
    RECORD_NOISE_WEIGHT,
    RECORD_SIZE,
    SITE_SIZE,
    RowRecord,
    learn_noise_from,
    learn_scalar,
    learn_with_site,
    score_rows,
)
from onepass.files.state import (
    Arrays,
    Parameters,
    decode_activation,
    decode_belief,
    encode_activation,
    sized,
)
from onepass.likelihoods import Likelihood, as_likelihood, encode_likelihood
from onepass.likelihoods.mixtures import mixture_mean
from onepass.models.ahead import RowsAhead, each_ahead
from onepass.models.distribution import Family, Prediction
from onepass.models.inputs import Inputs, as_inputs
from onepass.models.online import Component, as_rate, set_aside_once, with_shared_arguments
from onepass.models.perceptron_state import PerceptronState, expected_square, start_learning
from onepass.models.prediction import Parts, Posterior, PredictedMoments, RowScores, log_noise_var, one_or_many

__all__ = ["BayesianPerceptron"]

_CHUNK = 4096  # rows predicted at a time, which bounds the memory that takes
_SLOW = 1e-3  # the largest rate of drift at which labels of the past still tell of the scale of the weights


class BayesianPerceptron(Component):
    """A perceptron ``y = f(x'w) + noise`` that keeps a Gaussian distribution over its weights, the belief.

    The belief is updated in closed form with every row. There is no learning rate, and predictions come with their
    uncertainty.

    Parameters
    ----------
    n_features : int
        Length of an input row, without the bias.
    activation : str or Activation
        ``"sigmoid"``, ``"tanh"``, ``"relu"``, ``"leaky_relu"``, ``"linear"``, ``"hard_tanh"``, ``"hard_sigmoid"``,
        ``"relu6"``, ``"step"``, ``"probit"``, ``"erf"``, ``"gelu"``, ``"softplus"``, ``"exp"``, or an object with a
        method ``moments``: a `PiecewiseLinear`, a `Quadrature` of any function, or a class of your own.
    bias : bool
        Put a constant 1 in front of every row; weight 0 is then the bias.
    mean : (p,) array, optional
        Prior mean of the weights, ``p = n_features + bias``; zeros by default.
    cov : number, (p,) or (p, p) array, optional
        Prior covariance of the weights: one variance for all, one for each, or a matrix; the identity by default.
    observation : {"auto", "gaussian", "bernoulli", "poisson", "negative_binomial"} or Likelihood
        What a target is: the output plus Gaussian noise; a label 0/1, with the output as the probability of a 1; or a
        count, with the output as its rate (``"negative_binomial"`` if counts vary more than a Poisson distribution
        allows). Or pass a likelihood of your own (`onepass.likelihoods.Likelihood`). The default is labels for sigmoid,
        probit and step, Poisson counts for ``"exp"``, and Gaussian otherwise, or whenever ``noise`` is given.
    noise : float or "learn", optional
        Variance of the Gaussian noise, the paper's epsilon; 0.01 by default. ``"learn"`` estimates it from the rows
        and, around a linear output, re-weighs the rows of the past whenever the estimate has moved.
        For negative binomial counts it is the dispersion, learned by default: counts of mean ``m`` have the variance
        ``m + noise m²``.
    noise_window : int, optional
        With ``noise="learn"``: how many recent rows the estimate rests on; all by default. If weights drift, prefer
        ``process_noise``: a learned noise first mistakes a sudden change for noise, and so adapts slowly.
    noise_start : float, optional
        With ``noise="learn"``: the first estimate, which counts less than one row; by default a tenth of the prior
        variance of a weight.
    update : {"auto", "adf", "kalman"}
        ``"adf"`` (assumed density filtering) uses the exact posterior mean and variance of the pre-activation ``x'w``,
        which need a closed form; ``"kalman"`` is the paper's rule. The default is the exact one if it exists.
    moments : {"exact", "paper"}
        Mean and variance of sigmoid and tanh outputs: nearly exact, or approximated as in the paper.
    covariance : {"full", "diagonal"}
        Keep all correlations between weights, or only the variances, for very many features and for sparse rows.
    outliers : float
        Share of the targets that can't be trusted, in [0, 0.5), such as sensor spikes or wrong labels. 0 trusts every
        target; above 0 the share is learned, starting from this value. An untrusted number has 10 to 10⁸ times the
        variance, an untrusted label may be flipped, and an untrusted count may be anything; each row is weighted by the
        probability that it can be trusted. Predictions are for targets that can be trusted. If many rows in succession
        are distrusted, the relation itself is taken to have changed: the belief returns to the prior's covariance and
        learns the new relation within a few rows. If the prior can't reach the new targets, the model starts over in
        their units.
    forgetting : float
        In (0, 1]. Below 1 older rows count less, for weights that change: the weight of a row is ``forgetting`` to the
        power of its age. The prior always counts in full, so no direction becomes less certain than before the first
        row, and inputs that are always zero change nothing. The belief forgets every ``0.25 / (1 - forgetting)`` rows,
        or every ``p / 3`` rows with a large full covariance. Rows of later passes count as further rows.
    drift : float
        In [0, 1]. How fast the weights change: before each row the covariance ``C`` moves this share of the way back to
        the prior's, to ``(1 - drift) C + drift C_0``, and the mean stays. So the belief never becomes vaguer than the
        prior. If the rate is not known, `Mixture.over_drift` learns several side by side.
    process_noise : float or (p,) array
        Variance added to every weight before each row, for weights that follow a random walk.
    dtype : {"float64", "float32"}
        Precision of the belief.
    kernel : {"auto", "rows", "blocks", "reference"}
        How rows are learned: compiled row by row, compiled in blocks of rows by matrix products, or by the readable
        NumPy reference. The result is the same; the default is the fastest.

    Attributes
    ----------
    n_seen : int
        Rows learned.
    log_evidence : float
        Sum of the log predictive densities of all rows, each before it was learned; with a learned noise around a
        linear output, the log density of all rows together. The higher it is, the better prior, activation and features
        suit the data.
    outliers_ : float
        Estimated share of the targets that can't be trusted.
    drift_ : dict
        The rate of drift, with the probability 1.

    Examples
    --------
    >>> from onepass import BayesianPerceptron
    >>> bp = BayesianPerceptron(n_features=1, activation="relu", noise=0.01)
    >>> bp = bp.learn([[1.0], [2.0], [3.0]], [2.1, 3.9, 6.0])
    >>> prediction = bp.predict([2.5])
    >>> print(f"{prediction.mean:.2f} +- {prediction.epistemic ** 0.5:.2f}")
    4.97 +- 0.07
    """

    def __init__(
        self,
        n_features: int,
        activation: str | Activation = "sigmoid",
        *,
        bias: bool = True,
        mean: ArrayLike | None = None,
        cov: ArrayLike | None = None,
        observation: str | Likelihood = "auto",
        noise: float | Literal["learn"] | None = None,
        noise_window: int | None = None,
        noise_start: float | None = None,
        update: str = "auto",
        moments: str = "exact",
        covariance: str = "full",
        outliers: float = 0.0,
        forgetting: float = 1.0,
        drift: float = 0.0,
        process_noise: ArrayLike = 0.0,
        dtype: str = "float64",
        kernel: str = "auto",
    ) -> None:
        self.n_features: int = as_count(n_features, "n_features")
        self.bias: int = int(as_flag(bias, "bias"))
        self.activation: Activation = as_activation(activation, moments)
        likelihood = as_likelihood(observation, self.activation if noise is None else None)
        if likelihood.needs_network:
            raise ValueError(f"observation={likelihood.name!r} needs a BayesianNetwork: a perceptron has one output")
        likelihood.check_activation(self.activation)
        progress = start_learning(likelihood, noise, noise_window)
        self._likelihood = likelihood.with_noise(progress.noise)
        self._family = Family(self._likelihood, self.activation)
        self.update: str = self._likelihood.choose_update(update, self.activation)
        self.outliers: float = as_outliers(outliers)
        self.forgetting: float = as_share(forgetting, "forgetting")
        self.drift: float = as_rate(drift)
        self.kernel: str = one_of(kernel, ("auto", "rows", "blocks", "reference"), "kernel")
        size = self.n_features + self.bias
        self.process_noise: FloatArray = as_variances(process_noise, size, "process_noise")
        one_of(covariance, tuple(PERCEPTRON_BELIEFS), "covariance")
        prior = as_prior(mean, cov, size, covariance, one_of(dtype, ("float64", "float32"), "dtype"))
        if progress.learns_noise and likelihood.is_gaussian:
            unit = _output_variance(self.activation, prior.marginal_variances()[self.bias :])
            progress.noise = progress.noise * unit if noise_start is None else as_positive(noise_start, "noise_start")
            steady = not (self.outliers or self.drift or self.process_noise.any()) and self.forgetting == 1.0
            if self._matcher.linear and steady and prior.keeps_correlations and noise_window is None:
                progress.start_reweighing()
        self._likelihood.check_outliers(self.outliers)
        progress.trust = Trust.start(self.outliers, firm=self._matcher.continuous)
        progress.largest = expected_square(prior)
        self._state: PerceptronState = PerceptronState(prior, progress, simplest_form(prior))

    def __repr__(self) -> str:
        return (
            f"BayesianPerceptron({self.n_features}, {activation_text(self.activation)}, "
            f"observation={self.observation!r}, update={self.update!r}, n_seen={self.n_seen})"
        )

    # The forward pass: Algorithm 1.

    def predict(self, X: Inputs, *, rows_ahead: RowsAhead = 1, X_var: ArrayLike | None = None) -> Prediction:
        """Forward pass (Algorithm 1) for one row ``(d,)`` or many ``(n, d)``, which may be sparse.

        Parameters
        ----------
        X : (d,) or (n, d) array
        rows_ahead : int or (n,) array
            Which row is predicted, counted from the last one learned: 1 for the next row, 2 for the one after it.
            Before each row weights move, as ``drift``, ``process_noise`` and ``forgetting`` say, and predictions become
            less certain. 0 predicts with the belief as it is.
        X_var : number, (d,) or array of the same shape, optional
            Variances of the inputs, if these are themselves uncertain, such as readings of a noisy sensor.
        """
        n_seen, X = self._state.progress.n_seen, X.copy() if type(X) is np.ndarray else X

        def density(y: Any) -> Any:
            return self._density(n_seen, X, y, rows_ahead=rows_ahead, X_var=X_var)

        if X_var is None and type(X) is np.ndarray and X.ndim == 1 and type(rows_ahead) is int and rows_ahead == 1:
            one_row = self._one_row
            seen = None if one_row is None else one_row.predict(X)
            if seen is not None:
                weight = self._state.progress.noise_weight
                log_noise_var = 2.0 / weight if weight > 0.0 else 0.0
                return Prediction(self._family, self._prediction_of_one(seen), log_noise_var, density)
        return Prediction(self._family, *self._predicted(X, rows_ahead, X_var), density)

    def _predicted(self, X: Inputs, rows_ahead: RowsAhead, X_var: ArrayLike | None) -> tuple[PredictedMoments, Any]:
        """Moments of rows, and how uncertain the log of their noise is."""
        rows, row_vars, single = as_inputs(X, X_var, self.n_features, self._state.belief)

        def predict(ahead: int, *own: Any) -> tuple[FloatArray, ...]:
            state = self._outlook(ahead)
            moments = self._prediction(*self._pre_activation(state.belief, *own), self._observation_of(state))
            return *moments, np.full(len(moments.mean), state.log_noise_var)

        *columns, log_noise_var = each_ahead(rows_ahead, (rows, row_vars), predict)
        return PredictedMoments.of(columns, single), one_or_many(log_noise_var, single)

    def _pre_activation(
        self, belief: PerceptronBelief | MovedGaussian, rows: Any, row_vars: FloatArray | None
    ) -> tuple[FloatArray, FloatArray]:
        """Mean, equation (6), and variance, (7), of the pre-activation."""
        bias = self.bias
        with np.errstate(over="ignore", invalid="ignore"):  # the variance of huge inputs is infinite, and says so
            pre_mean = np.asarray(rows @ belief.mean[bias:], dtype=np.float64)
            if bias:
                pre_mean += belief.mean[0]
            pre_var = np.empty(len(pre_mean))
            for start in range(0, len(pre_mean), _CHUNK):
                chunk = slice(start, start + _CHUNK)
                pre_var[chunk] = belief.variances(rows[chunk], bias)
            return pre_mean, pre_var + self._input_variances(belief, row_vars, len(pre_var))

    def _input_variances(self, belief: Weights, row_vars: FloatArray | None, n_rows: int) -> FloatArray:
        """Variance that uncertain inputs add to the pre-activation, ``(n,)``."""
        if row_vars is None:
            return np.zeros(n_rows)
        return _input_variance(belief, np.hstack([np.zeros((n_rows, self.bias)), row_vars]))

    def _prediction(self, pre_mean: FloatArray, pre_var: FloatArray, likelihood: Likelihood) -> PredictedMoments:
        """Add mean, (4), and variance, (5), of the output, in the activation's closed form, such as (12) and (13)."""
        output = likelihood.output_moments(self.activation, pre_mean, pre_var)
        return PredictedMoments(output.mean, output.var, pre_mean, pre_var, likelihood.noise_var(output))

    # The backward pass: Algorithm 2, for one row and for many.

    def _learn_row(
        self, state: PerceptronState, x: FloatArray, y: float, x_var: FloatArray | None, site: FloatArray | None
    ) -> tuple[float, float]:
        """Backward pass (Algorithm 2) for one row, the bias's constant among it.

        Returned are the mean and variance of its pre-activation from before.
        """
        belief = state.belief
        if self._forgetting.is_due(state.progress.n_seen):
            belief.forget(self._forgetting.keep, self._state.prior)
        if self.drift:
            belief.drift(self.drift, self._state.prior)
        if self.process_noise.any():
            belief.diffuse(self.process_noise)
        seen = belief.project(x)  # sigma_a² of equation (7), and sigma_wa
        pre_mean = float(x @ belief.mean)  # (6)
        input_var = 0.0 if x_var is None else float(_input_variance(belief, x_var[None])[0])
        # (17), restated as score, information and variance ratio of the belief's step; of the variance only
        # the weights' own part can be learned away.
        if site is None:
            step = learn_scalar(self._matcher, state.progress, pre_mean, seen.var, input_var, y)
        else:
            step = learn_with_site(self._matcher, state.progress, pre_mean, seen.var, input_var, y, site)
        learn_noise_from(state.progress, self._noise_responses(state, x[None, self.bias :], np.array([seen.var]))[0])
        belief.rank_one_step(seen, *step)  # (22)
        state.reweigh_if_due()
        return pre_mean, seen.var + input_var

    @with_shared_arguments
    def learn(
        self,
        X: Inputs,
        y: ArrayLike,
        *,
        sample_weight: ArrayLike | None = None,
        passes: int = 1,
        refine: str = "auto",
        X_var: ArrayLike | None = None,
    ) -> Self:
        """Backward pass (Algorithm 2): learn one row and its target, or many in the order given.

        Either all rows are learned or, if one of them is invalid, none.

        Parameters
        ----------
        X : (d,) or (n, d) array
        y : number or (n,) array
        <shared arguments>
        X_var : number, (d,) or array of the same shape as X, optional
            Variances of the inputs, if these are themselves uncertain.
        """
        if passes == 1 and X_var is None and sample_weight is None and type(X) is np.ndarray and X.ndim == 1:
            one_row = self._one_row
            if one_row is not None and one_row(X, y):
                return self
        rows, row_vars, targets, _ = self._pairs(X, y, X_var)
        weights = as_row_weights(sample_weight, len(targets))
        record, sites = np.empty((0, RECORD_SIZE)), np.empty((0, SITE_SIZE))
        removes_sites = self._removes_sites(passes, refine)
        # Where rows are re-weighed, each says what it does given all the others after the first pass already.
        if passes == 1 or (removes_sites and self._state.progress.reference):
            self._learn(rows, row_vars, targets, record, sites, weights)
            return self
        if removes_sites:
            sites = np.full((len(targets), SITE_SIZE), np.nan)
        before = self._state.copy()
        try:
            self._learn(rows, row_vars, targets, record, sites, weights)
            evidence, seen, n_far = self.log_evidence, self._state.progress.n_seen, self._state.progress.trust.n_far
            for _ in range(1, passes):
                self._learn(rows, row_vars, targets, record, sites, weights)
            progress = self._state.progress
            progress.total = self._state.asked().total  # what rows to come add is counted from here
            progress.last_seen = min(progress.last_seen, seen)
            progress.log_evidence, progress.n_seen = evidence, seen
            if progress.trust.n_far > n_far:
                progress.trust = set_aside_once(progress.trust, n_far)
        except BaseException:
            self._restore(before)
            raise
        return self

    # What else is asked of the predictive distribution.

    def _scores(
        self, X: Inputs, y: ArrayLike, *, rows_ahead: RowsAhead = 1, X_var: ArrayLike | None = None
    ) -> tuple[Any, Any]:
        """Log density of each target, and the probability that it is not to be trusted."""
        rows, row_vars, targets, single = self._pairs(X, y, X_var)

        def score(ahead: int, own: Any, own_vars: FloatArray | None, own_targets: FloatArray) -> Any:
            state = self._outlook(ahead)
            mean, var = self._pre_activation(state.belief, own, None)
            input_var = self._input_variances(state.belief, own_vars, len(var))
            responses = self._noise_responses(state, own, var)
            return score_rows(self._matcher, state.progress, mean, var, input_var, responses, own_targets)

        log_densities, outliers = each_ahead(rows_ahead, (rows, row_vars, targets), score)
        return one_or_many(log_densities, single), one_or_many(outliers, single)

    def _noise_responses(self, state: PerceptronState, rows: Any, pre_var: FloatArray) -> FloatArray:
        """How rows change with the noise, as the kernels have it: see `FullGaussian.noise_responses`."""
        belief, prior, steps = state.belief, state.prior, state.progress.response_steps()
        if steps > 1 and not (self.kernel == "reference" or FullGaussian.is_small(len(prior.mean), self.kernel)):
            steps = 1
        if not isinstance(belief, FullGaussian) or (steps == 1 and not isinstance(prior, DiagonalGaussian)):
            steps = 0
        if not steps:
            return np.empty((len(pre_var), 3, 0))
        assert isinstance(belief, FullGaussian)
        return belief.noise_responses(np.hstack([np.ones((len(rows), self.bias)), rows]), pre_var, prior, steps)

    def sample_weights(self, n: int, rng: np.random.Generator | int, *, rows_ahead: int = 1) -> FloatArray:
        """Draw ``n`` weight vectors from the posterior, ``(n, p)``; ``rows_ahead`` is as for `predict`."""
        belief = self._outlook(as_whole(rows_ahead, "rows_ahead")).belief
        return np.asarray(belief.sample(as_count(n, "n"), as_generator(rng)))

    def sample_output(self, X: Inputs, n: int, rng: np.random.Generator | int, *, rows_ahead: int = 1) -> FloatArray:
        """Draw ``n`` functions from the posterior and return their outputs ``f(x'w)``: ``(n,)`` or ``(n, rows)``.

        Each draw has one weight vector for all rows, as Thompson sampling needs. ``rows_ahead`` is as for `predict`.
        """
        rows, _, single = as_inputs(X, None, self.n_features, self._state.belief)
        weights = self.sample_weights(n, rng, rows_ahead=rows_ahead)
        outputs = self.activation((rows @ weights[:, self.bias :].T).T + weights[:, : self.bias].sum(axis=1)[:, None])
        return outputs[:, 0] if single else outputs

    # What was learned.

    @property
    def mean(self) -> FloatArray:
        """Mean of the weights, ``(p,)``; the bias first."""
        return np.array(self._state.belief.mean)

    @property
    def cov(self) -> FloatArray:
        """Covariance of the weights, ``(p, p)``; with ``covariance="diagonal"`` its diagonal, ``(p,)``."""
        return np.asarray(self._state.belief.cov)

    def posterior(self) -> Posterior:
        """Return the posterior of the weights given all rows, averaged over what is known of a learned noise.

        Predictions are made with `mean` and `cov`, which hold the weights at one noise; they differ from this while
        there are few rows per weight. Without a learned noise around a linear output they are the same.

        Examples
        --------
        >>> from onepass import BayesianPerceptron
        >>> model = BayesianPerceptron(1, "linear", noise="learn").learn([[0.0], [1.0], [2.0]], [1.0, 3.0, 5.1])
        >>> model.posterior().mean.round(1)
        array([1., 2.])
        """
        return self._state.posterior()

    @property
    def covariance(self) -> str:
        """``"full"`` or ``"diagonal"``."""
        return str(self._state.belief.name)

    @property
    def belief_size(self) -> int:
        """How many numbers the covariance has; the cost of learning a row grows with it."""
        p = self.n_features + self.bias
        return p if isinstance(self._state.belief, DiagonalGaussian) else p * p

    @property
    def log_evidence(self) -> float:
        """Log density of all rows learned; without a learned noise the sum of those that were predicted."""
        return self._state.asked().log_evidence

    @property
    def n_seen(self) -> int:
        """Number of rows learned."""
        return int(self._state.progress.n_seen)

    @property
    def noise(self) -> float:
        """Current variance of the Gaussian noise, or dispersion of counts; a fixed Gaussian variance can be set."""
        return self._state.progress.noise

    @noise.setter
    def noise(self, value: float) -> None:
        if not self._likelihood.is_gaussian or self._state.progress.learns_noise:
            raise ValueError(
                "noise can be set only if it is Gaussian and fixed; make a new perceptron to change it otherwise"
            )
        self._state.progress.noise = as_nonnegative(value, "noise")

    @property
    def observation(self) -> Likelihood:
        """The likelihood, with the current noise."""
        return self._likelihood.with_noise(self.noise)

    def _observation_of(self, state: PerceptronState) -> Likelihood:
        """The likelihood with the noise of a state."""
        return self._likelihood.with_noise(state.progress.noise)

    @property
    def log_noise_var(self) -> float:
        """How uncertain a learned noise is: the variance of its logarithm; 0 if the noise is fixed."""
        return self._state.log_noise_var

    # The belief some rows ahead.

    def ahead(self, rows: int = 1) -> Self:
        """Return the model as it predicts so many rows ahead: itself, or a copy in which the weights have moved.

        Before each row weights drift and the past fades, so the next row is predicted one row ahead. It is meant for
        reading the belief behind a prediction; learn with the model itself.

        Examples
        --------
        >>> from onepass import BayesianPerceptron
        >>> model = BayesianPerceptron(1, "linear", noise=0.25, drift=0.1).learn([[0.0], [1.0]], [1.0, 3.0])
        >>> bool((model.ahead(10).cov.diagonal() > model.cov.diagonal()).all())
        True
        """
        state = self._outlook(as_whole(rows, "rows"))
        if state is self._state:
            return self
        twin, belief = copy.copy(self), state.belief
        later = belief.to_belief() if isinstance(belief, MovedGaussian) else belief
        twin._state = PerceptronState(later, state.progress.copy(), state.prior)
        twin._forget_plans()
        return twin

    def _outlook(self, rows: int) -> PerceptronState:
        """The state by which a row so many ahead is predicted: the model's own unless something changes before it."""
        state, plan = self._state, self._plan
        steps = self._forgetting.steps(int(state.progress.n_seen), rows)
        if rows and (steps or state.progress.trust.is_alarmed()):
            state = state.copy()
            state.answer_alarm()
            plan = replace(plan, prior=state.prior)
            if not plan.drifts:  # with nothing between them, all steps of forgetting are one
                if steps:
                    state.belief.forget(self._forgetting.keep**steps, state.prior)
                return state
            for start, stop, faded in self._forgetting.segments(int(state.progress.n_seen), rows):
                if faded:
                    state.belief.forget(self._forgetting.keep**faded, state.prior)
                state.belief = MovedGaussian.after(state.belief, plan, stop - start).to_belief()
            return state
        if not (rows and plan.drifts):
            return state
        return PerceptronState(MovedGaussian.after(state.belief, plan, rows), state.progress, state.prior)

    # Many rows, all or none.

    def _learn(
        self,
        X: Any,
        row_vars: FloatArray | None,
        targets: FloatArray,
        record: FloatArray,
        sites: FloatArray,
        weights: FloatArray | None = None,
    ) -> None:
        state = self._state
        state.progress.trust.learns_scale = self._keeps_past
        if self.kernel != "reference":
            state.belief.prepare(self._plan, len(targets))
            if self._plan.drifts:
                self.__dict__.pop("_one_row", None)  # the form of the belief may change
        before: PerceptronState | None = None
        # The kernels look at a row, in double precision, before they write anything of it: one row needs no way back.
        changed_first = self._plan.drifts or self._forgetting.is_due(state.progress.n_seen)
        changed_first = changed_first or state.progress.trust.is_alarmed() or weights is not None
        single = state.belief.mean.dtype != np.float64
        if len(targets) > 1 or single or self.kernel == "reference" or changed_first:
            before = state.copy()
        rows = Rows(X, targets, np.empty((0, 0)) if row_vars is None else row_vars, record, sites)
        state.progress.weigh(weights)
        try:
            learned = 0
            while True:
                if not len(sites) and state.progress.trust.is_alarmed():  # what rows contributed can't be removed then
                    state.answer_alarm()
                    self._forget_plans()
                part = rows.part(learned, len(rows))
                if self.kernel == "reference":
                    more = self._learn_by_reference(part)
                else:
                    more = state.belief.learn(self._plan, state.progress, part)
                learned += more
                reweighed = state.reweigh_if_due()
                if more == 0 or learned == len(rows) or not (reweighed or state.progress.trust.is_alarmed()):
                    break
            if learned < len(targets) or not (before is None or state.belief.is_finite()):
                raise ValueError(
                    f"X and y overflow {state.belief.mean.dtype}: their largest magnitudes are "
                    f"{abs(X).max():.3g} and {np.abs(targets).max():.3g}; rescale them. Nothing was learned."
                )
        except BaseException:  # an activation of the user's that fails, or Ctrl-C, leaves no half-learned model either
            if before is not None:
                self._restore(before)
            raise
        finally:
            state.progress.weigh(None)

    def _learn_by_reference(self, rows: Rows) -> int:
        dense = rows.X.toarray() if isinstance(rows.X, csr_array) else rows.X
        with np.errstate(over="ignore", invalid="ignore"):  # answered by the check of what was learned
            for i, target in enumerate(rows.y):
                x = np.concatenate([np.ones(self.bias), dense[i]])
                x_var = np.concatenate([np.zeros(self.bias), rows.X_var[i]]) if len(rows.X_var) else None
                site = rows.sites[i] if len(rows.sites) else None
                noise, noise_weight = self._state.progress.noise, self._state.progress.noise_weight
                seen = self._learn_row(self._state, x, target, x_var, site)
                self._matcher.raise_pending()
                if len(rows.record):
                    self._state.progress.record_row(rows.record, i, *seen, noise, noise_weight)
                if site is None and self._state.progress.trust.is_alarmed():
                    return i + 1
        return len(rows)

    def _restore(self, before: PerceptronState) -> None:
        self._state = before
        self._forget_plans()

    def _pairs(self, X: Any, y: ArrayLike, X_var: ArrayLike | None) -> tuple[Any, FloatArray | None, FloatArray, bool]:
        rows, row_vars, single = as_inputs(X, X_var, self.n_features, self._state.belief)
        targets = as_targets(y, rows.shape[0], single)
        self._likelihood.check(targets)
        return rows, row_vars, targets, single

    @property
    def _fading(self) -> list[str]:
        fades = {
            "process_noise": bool(self.process_noise.any()),
            "noise_window": self._state.progress.noise_window < np.inf,
        }
        return super()._fading + [name for name, given in fades.items() if given]

    # As one of several models in a mixture.

    def learning(
        self,
        X: Inputs,
        y: ArrayLike,
        *,
        sample_weight: ArrayLike | None = None,
        X_var: ArrayLike | None = None,
        records: bool = True,
    ) -> "Iterator[_LearnedRows]":
        """Learn in one pass, and yield what rows were predicted from, for mixtures of several models."""
        rows, row_vars, targets, single = self._pairs(X, y, X_var)
        record = np.empty((len(targets), RECORD_SIZE))
        weights = as_row_weights(sample_weight, len(targets))
        self._learn(rows, row_vars, targets, record, np.empty((0, SITE_SIZE)), weights)
        yield _LearnedRows(self, record, single)

    def predict_score_learn(self, X: Inputs, y: ArrayLike, **options: Any) -> tuple[Prediction, RowScores]:
        """Predict every row just before learning it, and say how well."""
        (rows,) = self.learning(X, y, records=True, **options)
        found = Prediction(self._family, rows.prediction, one_or_many(rows.log_noise_var, rows.single))
        return found, rows.scores(alone=True)

    def _predict_component(
        self, X: Inputs, rows_ahead: RowsAhead = 1, X_var: ArrayLike | None = None
    ) -> PredictedMoments:
        """Predict as a component of a mixture."""
        return self._predicted(X, rows_ahead, X_var)[0]

    _interval_prediction = _predict_component  # from which intervals of mixtures take their quantiles

    @staticmethod
    def _mixture_cov(weights: FloatArray, members: "list[BayesianPerceptron]") -> FloatArray:
        """Covariance of the weights under several perceptrons."""
        means, covs = np.array([one.mean for one in members]), np.array([one.cov for one in members])
        gaps = means - mixture_mean(weights, means)
        return mixture_mean(weights, covs + (gaps**2 if covs.ndim == 2 else gaps[:, :, None] * gaps[:, None, :]))

    # What is made once, for speed.

    @cached_property
    def _matcher(self) -> Any:
        """The compiled moment match."""
        return self._likelihood.compiled(self.activation, self.update)

    @cached_property
    def _keeps_past(self) -> bool:
        """Whether enough of the past counts for its labels to tell of the scale of the weights as they are now."""
        return self.forgetting == 1.0 and self.drift <= _SLOW and not self.process_noise.any()

    @cached_property
    def _forgetting(self) -> Forgetting:
        """When the past is forgotten."""
        full = isinstance(self._state.belief, FullGaussian)
        return Forgetting(self.forgetting, self.n_features + self.bias if full else 1)

    @cached_property
    def _plan(self) -> RowPlan:
        """What the belief needs to know to learn rows."""
        forgetting, prior = self._forgetting, self._state.prior
        full = isinstance(self._state.belief, FullGaussian)
        reweighs = self._state.progress.reference > 0.0
        given: dict[str, Any] = {}
        if full and FullGaussian.is_small(self.n_features + self.bias, self.kernel) and (forgetting.period or reweighs):
            given = {"period": forgetting.period, "keep": forgetting.keep, "priors": pack_root(prior)[None]}
        if reweighs and isinstance(prior, DiagonalGaussian):
            given |= {"centre": prior.mean, "precisions": reciprocals(prior.variance)}
        rule = PerceptronRule(self._matcher, self.bias, **given)
        return RowPlan(
            rule=rule,
            forgetting=forgetting,
            prior=self._state.prior,
            drift=self.drift,
            process_noise=self.process_noise if self.process_noise.any() else self.process_noise[:0],
            kernel=self.kernel,
        )

    @cached_property
    def _one_row(self) -> RowLearner | None:
        """The fast path for one row; None where there is none."""
        belief = self._state.belief
        if self.kernel == "reference" or not isinstance(belief, FullGaussian):
            return None
        if belief.mean.dtype != np.float64 or self._likelihood.kalman is None:  # one in Python does its own checks
            return None
        self._state.progress.trust.learns_scale = self._keeps_past
        return belief.row_learner(self._plan, self._state.progress)

    def _forget_plans(self) -> None:
        """Drop what refers to a belief or a prior that was replaced."""
        for name in ("_one_row", "_plan"):
            self.__dict__.pop(name, None)

    def _prediction_of_one(self, seen: tuple[Any, Any, Any, float, float]) -> PredictedMoments:
        """What is predicted for one row from its compiled moments, with as little around it as there can be."""
        mean, var, slope, pre_mean, pre_var = seen
        noise, likelihood = self._state.progress.noise, self._likelihood
        if likelihood.is_gaussian:
            return PredictedMoments(mean, var, pre_mean, pre_var, noise)
        moments = Moments(mean, var, slope)
        if likelihood.is_count:
            moments = likelihood.output_moments(self.activation, np.asarray(pre_mean), np.asarray(pre_var))
        if likelihood.takes_noise:
            likelihood = likelihood.with_noise(noise)
        noise_var = float(likelihood.noise_var(moments))
        return PredictedMoments(moments.mean, moments.var, pre_mean, pre_var, noise_var)

    # Files and copies.

    def export_state(self) -> tuple[Parameters, Arrays]:
        """Return the complete state, as JSON-compatible parameters and arrays: see `onepass.save`."""
        belief, arrays = self._state.export()
        parameters = {
            "n_features": self.n_features,
            "activation": encode_activation(self.activation),
            "bias": bool(self.bias),
            "observation": encode_likelihood(self._likelihood),
            "update": self.update,
            "outliers": self.outliers,
            "forgetting": self.forgetting,
            "drift": self.drift,
            "kernel": self.kernel,
            "belief": belief,
            "start": self._state.prior_fingerprint(),
        }
        return parameters, {**arrays, "process_noise": self.process_noise.copy()}

    @classmethod
    def from_state(cls, parameters: Parameters, arrays: Arrays) -> Self:
        """Make the model that `export_state` described; it continues learning exactly as that one would."""
        n_features = as_count(parameters["n_features"], "n_features")
        size = n_features + int(bool(parameters["bias"]))
        belief = decode_belief(parameters["belief"], arrays, size)  # before anything of that size is made
        model = cls(
            n_features,
            decode_activation(parameters["activation"]),
            covariance=parameters["belief"]["form"],
            process_noise=sized(arrays, "process_noise", (size,)),
            dtype=str(belief.mean.dtype),
            kernel=parameters["kernel"],
            **{name: parameters[name] for name in ("bias", "observation", "update", "outliers", "forgetting", "drift")},
        )
        model._state = PerceptronState.restore(belief, arrays, model.outliers)
        return model

    def __getstate__(self) -> dict[str, Any]:
        # The fast path for one row refers to this very belief, which a copy must not.
        return {name: value for name, value in self.__dict__.items() if name != "_one_row"}


@dataclass(frozen=True)
class _LearnedRows:
    """Rows that a perceptron has learned, with what the kernels have recorded of them."""

    perceptron: BayesianPerceptron
    record: FloatArray
    single: bool

    @property
    def prediction(self) -> PredictedMoments:
        """What they were predicted to be."""
        seen = RowRecord.of(self.record)
        likelihood = self.perceptron._likelihood.with_noise(seen.noise)
        return PredictedMoments.of(self.perceptron._prediction(seen.mean, seen.var, likelihood), self.single)

    @property
    def log_noise_var(self) -> FloatArray:
        """How uncertain the log of the noise was before each row, ``(n,)``."""
        return log_noise_var(self.record[:, RECORD_NOISE_WEIGHT])

    def parts(self, alone: bool) -> Parts:
        """The same, as the only part of a mixture."""
        return Parts.alone(self.prediction, self.log_noise_var)

    def densities(self, noise_scale: FloatArray | None) -> FloatArray:
        """Log density of each target, and how far it was distrusted, ``(2, n)``."""
        return self.record[:, [RECORD_LOG_DENSITY, RECORD_DISTRUST]].T

    def scores(self, alone: bool) -> RowScores:
        """How well they were predicted."""
        return RowScores.of(self.record)


def _output_variance(activation: Activation, prior_variances: FloatArray) -> float:
    """How much outputs vary under the prior, for an input of unit length: the unit of a noise not yet known."""
    with np.errstate(over="ignore"):
        var = float(activation.moments(0.0, float(prior_variances.mean())).var)
    return var if 0.0 < var < np.inf else 1.0


def _input_variance(belief: Weights, row_vars: FloatArray) -> FloatArray:
    """What uncertain inputs add to the variance of ``x'w``: ``Σ (m² + Var w) Var x``."""
    return np.asarray(row_vars @ (belief.mean**2 + belief.marginal_variances()))
