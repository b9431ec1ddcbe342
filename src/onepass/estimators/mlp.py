"""Classifier and regressor whose models are networks of perceptrons.

With ``members`` above 1 the mixture is a `BayesianCommittee` of networks with different seeds and priors; with one
member it is, as for perceptrons, a mixture over prior scales only.
"""

import copy
import warnings
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from onepass._typing import FloatArray
from onepass._validation import as_count, as_nonnegative, one_of
from onepass.activations import as_activation
from onepass.beliefs.choice import BELIEFS, Covariance
from onepass.estimators.base import OnePassEstimator
from onepass.estimators.batch import Batch
from onepass.estimators.classifier import OnePassClassifier
from onepass.estimators.inputs import INTERCEPT_SCALE, OUTLIERS
from onepass.estimators.refinement import MOST_SITE_NUMBERS, PASSES, best_passes, held_out_densities, trial_split
from onepass.estimators.regressor import OnePassRegressor
from onepass.files.state import Arrays, Parameters
from onepass.layers import ImageShape, Layer, LayerSize, as_image_shape, flat_size
from onepass.layers.layout import Layout
from onepass.models.mixture import BayesianCommittee, Mixture, with_drift
from onepass.models.network import BayesianNetwork

__all__ = ["BayesianMLPClassifier", "BayesianMLPRegressor"]

_SCALES = (0.5, 1.0, 2.0)  # besides the network's own prior
_PROBES = 200  # inputs at which the importance of features is measured


class _Networks(OnePassEstimator):
    """What the estimators of networks share: layers, images and members."""

    hidden_layer_sizes: LayerSize | tuple[LayerSize, ...]
    image_shape: ImageShape | None
    activation: Any
    members: int
    shuffle: bool | str
    random_state: int | None

    n_passes_: int

    _auto_scales = _SCALES
    _sparse_models = False

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if as_count(self.members, "members") > 1 and isinstance(self.prior_scale, str):
            raise ValueError(
                f"members={self.members} have different priors already, so prior_scale='auto' can't be used: pass "
                "prior_scale as a number, or members=1"
            )
        if not isinstance(self.shuffle, (bool, np.bool_)) and self.shuffle != "auto":
            raise ValueError(f"shuffle must be True, False or 'auto', got {self.shuffle!r}")
        if not isinstance(self.covariance, (tuple, list)):
            one_of(self.covariance, ("auto", *BELIEFS), "covariance")
        if self.image_shape is not None:
            as_image_shape(self.image_shape, "image_shape")
            return
        layers = self.hidden_layer_sizes if np.iterable(self.hidden_layer_sizes) else (self.hidden_layer_sizes,)
        for layer in layers:
            if isinstance(layer, Layer) and layer.needs_images:
                raise ValueError(f"{layer} needs images: pass their image_shape, such as (28, 28) or (32, 32, 3)")

    def _check_passes(self) -> None:
        if isinstance(self.passes, str) and self.passes != "auto":
            raise ValueError(f"passes must be 'auto' or a whole number of at least 1, got {self.passes!r}")
        if not isinstance(self.passes, str):
            super()._check_passes()

    def _start_counts(self) -> None:
        super()._start_counts()
        self.n_passes_ = 1

    def _fit_batch(self, batch: Batch) -> None:
        """Learn all rows of a `fit`: shuffled, and in as many passes as ``passes`` says."""
        rng = np.random.default_rng([self.random_state or 0, len(batch)])
        if self._shuffles:
            batch = batch.at(rng.permutation(len(batch)))
        passes = self._choose_passes(batch, rng) if self.passes == "auto" else self.passes
        self.learn_encoded(batch.rows, batch.targets, batch.weights, passes)
        self.n_passes_ = int(passes)

    @property
    def _shuffles(self) -> bool:
        """Whether `fit` shuffles its rows: by default unless their order means something."""
        if not isinstance(self.shuffle, str):
            return bool(self.shuffle)
        return self.forgetting == 1.0 and self.drift == 0.0 and not isinstance(self.prior_scale, str)

    def _choose_passes(self, batch: Batch, rng: np.random.Generator) -> int:
        """How often to go over a batch; of several members the first one is asked."""
        split, widths = trial_split(batch, rng), self._layout.widths
        site_numbers = sum(widths) * (1 + widths[-1]) * self.members * len(batch)  # or fewer
        # A row that is distrusted contributes nothing, so later passes would distrust it all the more.
        once = self.refine == "reuse" or isinstance(self.prior_scale, str) or self.outliers > 0.0
        if split is None or once or site_numbers > MOST_SITE_NUMBERS:
            return 1
        learned, held_out = split
        trial = copy.copy(self)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # what is wrong with the rows is said when they are learned
            learned = trial._with_warm_up(learned) if self.standardize else learned
        trial._mixtures = trial._new_mixtures()
        if not trial._mixtures[0].keeps_sites:
            return 1
        (learned,) = trial._standardized(learned, len(learned))
        (held_out,) = trial._standardized(held_out, len(held_out))
        tested, densities = dict(held_out.observed_columns()), np.zeros(len(PASSES))
        for k, own in learned.observed_columns():
            if k in tested:
                densities += held_out_densities(trial._mixtures[k].members[0], own, tested[k])
        return best_passes(densities)

    def _as_table(self, X: Any) -> Any:
        if self.image_shape is None:
            given = tuple(getattr(X, "shape", ()))
            if len(given) > 2:
                raise ValueError(
                    f"X must have shape (n, d), got shape {given}; for images pass image_shape={given[1:]}"
                )
            return X
        given, shape = np.shape(X), tuple(self.image_shape)
        if len(given) > 2 and _with_channels(given[1:]) == _with_channels(shape):
            return np.asarray(X).reshape(given[0], -1)
        if len(given) != 2 or given[1] != flat_size(shape):
            wide = ", ".join(map(str, shape))
            raise ValueError(
                f"X must have shape (n, {flat_size(shape)}) or (n, {wide}) with image_shape={shape}, got shape {given}"
            )
        return X

    def _scaled_columns(self, X: Any) -> Any:
        """Of images the channels: a pixel that is dark in all of the first images has no scale of its own."""
        return X if self.image_shape is None else X.reshape(-1, _with_channels(tuple(self.image_shape))[-1])

    def _new_mixture(self, target_scale: float) -> Mixture:
        if self.members == 1:
            return super()._new_mixture(target_scale)
        options = self._options(float(self.prior_scale), target_scale)
        return BayesianCommittee(self._entering, members=self.members, **options)

    def _new_member(self, scale: float, target_scale: float) -> Any:
        return with_drift(BayesianNetwork, self._entering, **self._options(scale, target_scale))

    @property
    def _entering(self) -> int | ImageShape:
        """The number of features, or the shape of images."""
        return self._n_inputs if self.image_shape is None else tuple(self.image_shape)

    @property
    def _layout(self) -> Layout:
        hidden = self.hidden_layer_sizes if np.iterable(self.hidden_layer_sizes) else (self.hidden_layer_sizes,)
        return Layout((self._entering, *hidden, int(self._options(1.0, 1.0).get("n_outputs", 1))))

    def _options(self, scale: float, target_scale: float) -> dict[str, Any]:
        """Options of a network."""
        raise NotImplementedError

    def _shared_options(self, scale: float) -> dict[str, Any]:
        return {
            "hidden": self.hidden_layer_sizes,
            "activation": self.activation,
            "covariance": self.covariance,
            "prior_scale": scale,
            "intercept_scale": self.intercept_scale,
            "seed": self.random_state or 0,
            "outliers": self.outliers,
            "forgetting": self.forgetting,
            "drift": self.drift,
        }

    @property
    def feature_importances_(self) -> FloatArray:
        """How much the outputs change with each input, ``(d,)``, as shares that sum to 1.

        The share of an input is the mean absolute value of the expected derivative of an output by that input, times
        the input's standard deviation. It is measured at random inputs drawn from independent Gaussians with the means
        and standard deviations of the first ``warm_up`` rows (0 and 1 without ``standardize``). For classes, a change
        that is the same in all log odds does not count. A categorical column is one input: the root of the sum of
        squares over its categories. So there is one number for each of ``n_features_in_``, as
        `sklearn.feature_selection.SelectFromModel` needs. An input can be important here and still add nothing to the
        predictions, if other inputs carry the same information; to measure that use
        `sklearn.inspection.permutation_importance`.
        """
        check_is_fitted(self)
        rows = np.random.default_rng(0).normal(size=(_PROBES, self._n_inputs))
        sizes = np.zeros(self._n_inputs)
        for mixture in self._mixtures:
            for weight, member in zip(mixture.weights, mixture.members, strict=True):
                slopes = member.input_jacobian(rows)
                if slopes.shape[1] > 1:
                    slopes = slopes - slopes.mean(axis=1, keepdims=True)
                sizes += weight * np.abs(slopes).mean(axis=(0, 1))
        if self._categories is not None:
            sizes = self._categories.sizes_of_columns(sizes)
        total = sizes.sum()
        return np.asarray(sizes / total if total > 0.0 else sizes)

    def export_state(self) -> tuple[Parameters, Arrays]:
        """Return the complete state, as JSON-compatible parameters and arrays: see `onepass.save`."""
        parameters, arrays = super().export_state()
        return {**parameters, "n_passes": self.n_passes_}, arrays

    def _restore(self, parameters: Parameters, arrays: Arrays) -> None:
        super()._restore(parameters, arrays)
        self.n_passes_ = as_count(parameters["n_passes"], "n_passes")


def _with_channels(shape: tuple[int, ...]) -> tuple[int, ...]:
    """The shape of images with the number of channels, where one may be left out."""
    return (*shape, 1) if len(shape) == 2 else shape


class BayesianMLPClassifier(_Networks, OnePassClassifier):
    """Network of Bayesian perceptrons for classification.

    Parameters
    ----------
    hidden_layer_sizes : int, Conv2D or tuple of them
        Number of units of each hidden layer; for images the first layers may be convolutions, see `onepass.Conv2D`.
    activation : str or Activation
        Activation of the hidden units, as for `onepass.BayesianPerceptron`.
    prior_scale : float or "auto"
        Multiplies the standard deviations of the weights before the first row. ``"auto"`` learns with several scales
        side by side, weighted by how well each predicted the last rows; it needs one pass and ``members=1``.
    intercept_scale : float, optional
        Standard deviation of the output's bias before the first row, independent of ``prior_scale``; the default is
        wide enough for rare classes. With more than two classes it is the standard deviation of the log odds between
        any two. None uses the network's prior, times ``prior_scale``.
    covariance : {"auto", "full", "low_rank", "layer", "neuron", "kronecker", "diagonal"} or tuple of str
        Between which weights correlations are kept; by default as many as is not too slow. ``"low_rank"`` is for few
        outputs and thousands of weights, ``"kronecker"`` for wide layers; a tuple names ``"kronecker"`` or ``"full"``
        for each layer of weights, including the output's. See `onepass.BayesianNetwork`.
    image_shape : tuple of int, optional
        Shape of the images if rows are images: ``(height, width)`` or ``(height, width, channels)``. Pass arrays
        ``(n, height, width)`` or ``(n, height, width, channels)``, or a table with one image per row: its pixels line
        by line, the channels of a pixel together.
    members : int
        Number of networks. Several networks start from different seeds and priors, learn the same rows and predict as
        a mixture, which is better and takes that many times the work. See `onepass.BayesianCommittee`.
    passes : int or "auto"
        How often `fit` goes over its rows; `partial_fit` always makes one pass. ``"auto"`` makes five passes if these
        predict rows held out of a sample of at most 2,000 better than one pass does. It makes one pass otherwise, and
        also if ``refine="ep"`` is not possible or would take more than 200 MB, with ``prior_scale="auto"`` and with
        ``outliers``. See ``n_passes_`` for the choice.
    refine : {"auto", "ep", "reuse"}
        What the later passes do. ``"ep"`` (expectation propagation) removes a row's previous contribution before
        learning it again; it needs ``covariance="full"``, no forgetting and no drift. ``"reuse"`` counts the data
        again, which makes the model overconfident. The default is ``"ep"`` if it is possible, else ``"reuse"``.
    shuffle : bool or "auto"
        Whether `fit` learns its rows in a random order, which takes a copy of them. A network follows the latest rows
        most, so rows that are sorted, or whose relation varies along the table, should be shuffled. By default they
        are, unless their order is needed: with ``drift``, ``forgetting`` or ``prior_scale="auto"``. `partial_fit`
        always keeps the order.
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
        row by row by how well they predict. It takes seven to ten times as long as a fixed rate, and needs one pass and
        ``forgetting=1``.
    standardize : bool
        Standardise the inputs by mean and standard deviation of the first ``warm_up`` rows; for images one mean and
        standard deviation per channel. They stay fixed after that.
    warm_up : int
        With ``standardize``: how many of the first rows determine mean and standard deviation.
    missing : {"error", "mean"}
        What to do about NaN among the inputs: raise an error, or use the mean of the column so far.
    class_weight : dict or "balanced", optional
        Weight of the rows of each class, 1 for classes left out. ``"balanced"`` makes all classes count the same: the
        weight is the number of rows, divided by the number of classes and by the rows of the class; only ``fit`` can do
        that, as it needs all rows. A row of weight ``w`` counts as ``w`` copies.
    random_state : int
        Seed of the random means of the weights before the first row, and of the order of rows in `fit`.

    Attributes
    ----------
    classes_ : (K,) array
    log_evidence_ : float
        Sum of the log probabilities of all labels, each before it was learned. With ``standardize=True`` the first
        ``warm_up`` rows are left out, so compare only models with the same ``standardize`` and ``warm_up``.
    outliers_ : float
        Estimated share of the labels that are wrong.
    feature_importances_ : (d,) array
        How much the outputs change with each input, as shares that sum to 1.
    covariance_ : str or tuple of str
        Which correlations are kept; the choice made by ``covariance="auto"``.
    drift_ : dict
        Current probability of each rate of drift; for several outputs a list of such dictionaries.
    n_passes_ : int
        How often `fit` went over its rows; the choice made by ``passes="auto"``.
    n_seen_ : int
        Rows learned; a row counts once whatever its weight, and not at all if its weight is 0.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from onepass import BayesianMLPClassifier
    >>> X, y = make_moons(500, noise=0.2, random_state=0)
    >>> model = BayesianMLPClassifier(hidden_layer_sizes=(20,)).fit(X[:400], y[:400])
    >>> bool(model.score(X[400:], y[400:]) > 0.9)
    True

    Images, as a table of their pixels:

    >>> from sklearn.datasets import load_digits
    >>> from onepass import Conv2D
    >>> X, y = load_digits(return_X_y=True)
    >>> model = BayesianMLPClassifier((Conv2D(8, 3),), image_shape=(8, 8)).fit(X[:1000], y[:1000])
    >>> model.covariance_, bool(model.score(X[1000:], y[1000:]) > 0.9)
    ('kronecker', True)
    """

    def __init__(
        self,
        hidden_layer_sizes: LayerSize | tuple[LayerSize, ...] = (50,),
        activation: Any = "relu",
        *,
        prior_scale: Any = 1.0,
        intercept_scale: float | None = INTERCEPT_SCALE,
        covariance: Covariance = "auto",
        image_shape: ImageShape | None = None,
        members: int = 1,
        passes: int | str = "auto",
        refine: str = "auto",
        shuffle: bool | str = "auto",
        outliers: float = OUTLIERS,
        forgetting: float = 1.0,
        drift: float | str = 0.0,
        standardize: bool = True,
        warm_up: int = 100,
        missing: str = "error",
        class_weight: Any = None,
        random_state: int | None = 0,
    ) -> None:
        self.hidden_layer_sizes = hidden_layer_sizes
        self.activation = activation
        self.prior_scale = prior_scale
        self.intercept_scale = intercept_scale
        self.covariance = covariance
        self.image_shape = image_shape
        self.members = members
        self.passes = passes
        self.refine = refine
        self.shuffle = shuffle
        self.outliers = outliers
        self.forgetting = forgetting
        self.drift = drift
        self.standardize = standardize
        self.warm_up = warm_up
        self.missing = missing
        self.class_weight = class_weight
        self.random_state = random_state

    @property
    def _link(self) -> Any:
        return as_activation("sigmoid")

    def _options(self, scale: float, target_scale: float) -> dict[str, Any]:
        return {
            **self._shared_options(scale),
            "n_outputs": 1 if self._binary else len(self.classes_),
            "observation": "bernoulli" if self._binary else "categorical",
        }


class BayesianMLPRegressor(_Networks, OnePassRegressor):
    """Network of Bayesian perceptrons for regression; several outputs get one network each.

    Parameters
    ----------
    hidden_layer_sizes : int, Conv2D or tuple of them
        Number of units of each hidden layer; for images the first layers may be convolutions, see `onepass.Conv2D`.
    activation : str or Activation
        Activation of the hidden units, as for `onepass.BayesianPerceptron`.
    observation : {"auto", "gaussian", "heteroscedastic", "poisson", "negative_binomial"}
        What a target is: the output plus Gaussian noise, which is the default, or a count whose rate is the exponential
        of the output; with ``"negative_binomial"`` counts vary more than a Poisson distribution allows, by a dispersion
        that is learned. With ``"heteroscedastic"`` the variance of the noise depends on the input, and is learned with
        an additional output of the network.
    noise : float or "learn"
        Variance of the targets' noise, or the dispersion of negative binomial counts; by default it is estimated from
        the rows.
    prior_scale : float or "auto"
        Multiplies the standard deviations of the weights before the first row. ``"auto"`` learns with several scales
        side by side, weighted by how well each predicted the last rows; it needs one pass and ``members=1``.
    intercept_scale : float, optional
        Standard deviation of the output's bias before the first row, independent of ``prior_scale``. By default it is 1
        for numbers and 4 for counts, times ``prior_scale``.
    covariance : {"auto", "full", "low_rank", "layer", "neuron", "kronecker", "diagonal"} or tuple of str
        Between which weights correlations are kept; by default as many as is not too slow. ``"low_rank"`` is for few
        outputs and thousands of weights, ``"kronecker"`` for wide layers; a tuple names ``"kronecker"`` or ``"full"``
        for each layer of weights, including the output's. See `onepass.BayesianNetwork`.
    image_shape : tuple of int, optional
        Shape of the images if rows are images: ``(height, width)`` or ``(height, width, channels)``. Pass arrays
        ``(n, height, width)`` or ``(n, height, width, channels)``, or a table with one image per row: its pixels line
        by line, the channels of a pixel together.
    members : int
        Number of networks. Several networks start from different seeds and priors, learn the same rows and predict as
        a mixture, which is better and takes that many times the work. See `onepass.BayesianCommittee`.
    passes : int or "auto"
        How often `fit` goes over its rows; `partial_fit` always makes one pass. ``"auto"`` makes five passes if these
        predict rows held out of a sample of at most 2,000 better than one pass does. It makes one pass otherwise, and
        also if ``refine="ep"`` is not possible or would take more than 200 MB, with ``prior_scale="auto"`` and with
        ``outliers``. See ``n_passes_`` for the choice.
    refine : {"auto", "ep", "reuse"}
        What the later passes do. ``"ep"`` (expectation propagation) removes a row's previous contribution before
        learning it again; it needs ``covariance="full"``, no forgetting and no drift. ``"reuse"`` counts the data
        again, which makes the model overconfident. The default is ``"ep"`` if it is possible, else ``"reuse"``.
    shuffle : bool or "auto"
        Whether `fit` learns its rows in a random order, which takes a copy of them. A network follows the latest rows
        most, so rows that are sorted, or whose relation varies along the table, should be shuffled. By default they
        are, unless their order is needed: with ``drift``, ``forgetting`` or ``prior_scale="auto"``. `partial_fit`
        always keeps the order.
    outliers : float
        Share of the targets that can't be trusted, in [0, 0.5), such as sensor spikes or typing errors. 0 trusts every
        target; above 0 the share is learned, starting from this value, and each row is weighted by the probability that
        its target can be trusted. If many rows in succession are distrusted, the relation itself is taken to have
        changed, and the model returns to the uncertainty of the prior. With ``standardize``, extreme values among the
        first rows are left out of the statistics of their column.
    forgetting : float
        In (0, 1]; below 1 older rows count less, for relations that change.
    drift : float or "auto"
        How fast the weights change, in [0, 1]: before each row their covariance moves this share of the way back to the
        prior's. ``"auto"`` learns six hypotheses side by side (five rates, and a quick return to the prior), weighted
        row by row by how well they predict. It takes seven to ten times as long as a fixed rate, and needs one pass and
        ``forgetting=1``.
    standardize : bool
        Standardise inputs, and targets unless they are counts, by mean and standard deviation of the first ``warm_up``
        rows; for images one mean and standard deviation per channel. They stay fixed after that.
    warm_up : int
        With ``standardize``: how many of the first rows determine mean and standard deviation.
    missing : {"error", "mean"}
        What to do about NaN among the inputs: raise an error, or use the mean of the column so far.
    random_state : int
        Seed of the random means of the weights before the first row, and of the order of rows in `fit`.

    Attributes
    ----------
    noise_ : float or (q,) array
        Current variance of the noise; if it depends on the input, its mean over the rows. For counts their dispersion.
    log_evidence_ : float
        Sum of the log predictive densities of all rows, each before it was learned. With ``standardize=True`` the first
        ``warm_up`` rows are left out, so compare only models with the same ``standardize`` and ``warm_up``.
    outliers_ : float or (q,) array
        Estimated share of the targets that can't be trusted.
    n_set_aside_ : int or (q,) array
        Rows that were set aside, that is counted and not learned. With ``outliers=0`` that happens to an absurd target:
        more than 30 standard deviations from its prediction, and ten times as far as any before.
    feature_importances_ : (d,) array
        How much the outputs change with each input, as shares that sum to 1.
    covariance_ : str or tuple of str
        Which correlations are kept; the choice made by ``covariance="auto"``.
    drift_ : dict
        Current probability of each rate of drift; for several outputs a list of such dictionaries.
    n_passes_ : int
        How often `fit` went over its rows; the choice made by ``passes="auto"``.
    n_seen_ : int
        Rows learned; a row counts once whatever its weight, and not at all if its weight is 0.

    Examples
    --------
    >>> import numpy as np
    >>> from onepass import BayesianMLPRegressor
    >>> X = np.random.default_rng(0).uniform(-3, 3, size=(500, 1))
    >>> model = BayesianMLPRegressor(hidden_layer_sizes=(20,)).fit(X, np.sin(X[:, 0]))
    >>> bool(model.score(X, np.sin(X[:, 0])) > 0.9)
    True
    """

    def __init__(
        self,
        hidden_layer_sizes: LayerSize | tuple[LayerSize, ...] = (50,),
        activation: Any = "relu",
        *,
        observation: str = "auto",
        noise: Any = "learn",
        prior_scale: Any = 1.0,
        intercept_scale: float | None = None,
        covariance: Covariance = "auto",
        image_shape: ImageShape | None = None,
        members: int = 1,
        passes: int | str = "auto",
        refine: str = "auto",
        shuffle: bool | str = "auto",
        outliers: float = OUTLIERS,
        forgetting: float = 1.0,
        drift: float | str = 0.0,
        standardize: bool = True,
        warm_up: int = 100,
        missing: str = "error",
        random_state: int | None = 0,
    ) -> None:
        self.hidden_layer_sizes = hidden_layer_sizes
        self.activation = activation
        self.observation = observation
        self.noise = noise
        self.prior_scale = prior_scale
        self.intercept_scale = intercept_scale
        self.covariance = covariance
        self.image_shape = image_shape
        self.members = members
        self.passes = passes
        self.refine = refine
        self.shuffle = shuffle
        self.outliers = outliers
        self.forgetting = forgetting
        self.drift = drift
        self.standardize = standardize
        self.warm_up = warm_up
        self.missing = missing
        self.random_state = random_state

    def _options(self, scale: float, target_scale: float) -> dict[str, Any]:
        noise: Any = self.noise
        if not isinstance(noise, str):
            noise = as_nonnegative(noise, "noise") / target_scale**2
        return {**self._shared_options(scale), "observation": self._observation, "noise": noise}

    def _noise_of(self, member: Any) -> float:
        return float(member.noise_var[0])
