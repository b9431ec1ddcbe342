"""What estimators share in their docstrings, written once: a class names a fragment in a line ``@name`` of its own."""

import re
from inspect import cleandoc
from typing import TypeVar

__all__ = ["documented"]

_Class = TypeVar("_Class", bound=type)

_FRAGMENTS = {
    "fit_intercept": """
    fit_intercept : bool
        Whether there is an intercept.""",
    "hidden_layers": """
    hidden_layer_sizes : int, Conv2D or tuple of them
        Number of units of each hidden layer; for images the first layers may be convolutions, see `onepass.Conv2D`.
    activation : str or Activation
        Activation of the hidden units, as for `onepass.BayesianPerceptron`.""",
    "prior_scale_of_networks": """
    prior_scale : float or "auto"
        Multiplies the standard deviations of the weights before the first row. ``"auto"`` learns with several scales
        side by side, weighted by how well each predicted the last rows; it needs one pass and ``members=1``.""",
    "networks": """
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
        always keeps the order.""",
    "outliers_of_numbers": """
    outliers : float
        Share of the targets that can't be trusted, in [0, 0.5), such as sensor spikes or typing errors. 0 trusts every
        target; above 0 the share is learned, starting from this value, and each row is weighted by the probability that
        its target can be trusted. If many rows in succession are distrusted, the relation itself is taken to have
        changed, and the model returns to the uncertainty of the prior. With ``standardize``, extreme values among the
        first rows are left out of the statistics of their column.""",
    "outliers_of_classes": """
    outliers : float
        Share of the labels that are wrong, in [0, 0.5). 0 trusts all of them; above 0 the share is learned, starting
        from this value, and each row is weighted by the probability that its label is right. If many rows in succession
        are distrusted, the relation itself is taken to have changed, and the model returns to the uncertainty of the
        prior.""",
    "change": """
    forgetting : float
        In (0, 1]; below 1 older rows count less, for relations that change.
    drift : float or "auto"
        How fast the weights change, in [0, 1]: before each row their covariance moves this share of the way back to the
        prior's. ``"auto"`` learns six hypotheses side by side (five rates, and a quick return to the prior), weighted
        row by row by how well they predict. It takes seven to ten times as long as a fixed rate, and needs one pass and
        ``forgetting=1``.""",
    "passes_of_perceptrons": """
    passes : int
        How often ``fit`` goes over its rows; ``partial_fit`` always makes one pass. One pass is online learning; five
        correct intervals that one pass over few rows leaves too narrow, and make the order of the rows unimportant.
    refine : {"auto", "ep", "reuse"}
        What the later passes do. ``"ep"`` (expectation propagation) removes a row's contribution before learning it
        again, so each row counts once; ``"reuse"`` counts it again, which makes intervals too narrow. The default is
        ``"ep"`` if it is possible, that is with a full covariance, no forgetting and no drift; else ``"reuse"``.""",
    "probabilities": """
    probabilities : {"model", "adaptive"}
        Whether probabilities are those of the model, or calibrated: a map learns in closed form what they were worth,
        from each row that was predicted before it was learned, and follows streams that change. Predicted labels are
        the most probable by these; ``predict_proba(X, calibrated=False)`` has the model's own. Standard deviations and
        intervals of probabilities, and draws, remain the model's. Of several passes the first teaches the map.""",
    "intervals": """
    intervals : {"model", "adaptive"}
        Whether intervals are those of the model, or track where targets really fall, each predicted before it is
        learned: these contain the share of the targets that they should, however the stream changes. Predictions
        themselves stay the same; see `onepass.AdaptiveIntervals`. Of several passes the first is tracked.""",
    "target_transform": """
    target_transform : "log", pair of functions or object, optional
        An increasing function of the targets that is learned in their place; ``"log"`` is for positive numbers that
        vary by factors. Predictions, intervals, draws and densities are in the targets' own units: the mean is that of
        the targets, not the inverse of a mean, and the median is ``predict_dist(X).ppf(0.5)``. Other functions come
        with their inverse, as ``(numpy.cbrt, lambda z: z**3)``, or as an object with the methods ``to_model``,
        ``from_model`` and ``log_slope``. The inverse must increase everywhere. Only a name can be saved. ``noise_``,
        ``coef_`` and ``log_evidence_`` are those of what is learned.""",
    "warm_up": """
    warm_up : int
        With ``standardize``: how many of the first rows determine mean and standard deviation.""",
    "missing_in_networks": """
    missing : {"error", "mean", "standard"}
        What to do about NaN among the inputs: raise an error, use the mean of the column so far, or that of the rows
        that set the scale (0, if the inputs were standardised before), as if it had been there: other than those of a
        perceptron, intervals do not widen where a number is missing.""",
    "class_weight": """
    class_weight : dict or "balanced", optional
        Weight of the rows of each class, 1 for classes left out. ``"balanced"`` makes all classes count the same: the
        weight is the number of rows, divided by the number of classes and by the rows of the class; only ``fit`` can do
        that, as it needs all rows. A row of weight ``w`` counts as ``w`` copies.""",
    "random_state": """
    random_state : int, RandomState instance or None
        Seed of the random means of the weights before the first row, and of the order of rows in `fit`. None draws a
        seed, so that each `fit` gives another model.""",
    "log_evidence_of_numbers": """
    log_evidence_ : float
        Sum of the log predictive densities of all rows, each before it was learned. With ``standardize=True`` the first
        ``warm_up`` rows are left out, so compare only models with the same ``standardize`` and ``warm_up``.
    outliers_ : float or (q,) array
        Estimated share of the targets that can't be trusted.
    n_set_aside_ : int or (q,) array
        Rows that were set aside, that is counted and not learned. With ``outliers=0`` that happens to an absurd target:
        more than 30 standard deviations from its prediction, and ten times as far as any before.""",
    "log_evidence_of_classes": """
    log_evidence_ : float
        Sum of the log probabilities of all labels, each before it was learned. With ``standardize=True`` the first
        ``warm_up`` rows are left out, so compare only models with the same ``standardize`` and ``warm_up``.
    outliers_ : float
        Estimated share of the labels that are wrong.""",
    "learned": """
    covariance_ : str or tuple of str
        Which correlations are kept; the choice made by ``covariance="auto"``.
    drift_ : dict
        Current probability of each rate of drift; for several outputs a list of such dictionaries.
    n_seen_ : int
        Rows learned; a row counts once whatever its weight, and not at all if its weight is 0.""",
    "learned_by_networks": """
    feature_importances_ : (d,) array
        How much the outputs change with each input, as shares that sum to 1.
    n_passes_ : int
        How often `fit` went over its rows; the choice made by ``passes="auto"``.""",
}


def documented(cls: _Class) -> _Class:
    """Fill in the fragments that a class names in its docstring.

    Examples
    --------
    >>> @documented
    ... class Model:
    ...     '''A model.
    ...
    ...     @fit_intercept
    ...     '''
    >>> print(Model.__doc__.splitlines()[2])
    fit_intercept : bool
    """
    cls.__doc__ = re.sub(r"(?m)^ *@(\w+)$", lambda found: _fragment(found[1]), cleandoc(cls.__doc__ or ""))
    return cls


def _fragment(name: str) -> str:
    """A fragment as a class that is indented by nothing has it."""
    return re.sub(r"(?m)^ {4}", "", _FRAGMENTS[name].lstrip("\n"))
