"""A model of a table in words: what was chosen for it, and what it has learned so far, one line each."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from onepass.beliefs.cost import multiply_adds
from onepass.beliefs.layout import Layout
from onepass.tables.columns.wording import listed, standardised
from onepass.tables.targets import CountTarget, NumberTarget

if TYPE_CHECKING:
    from onepass.tables.model import TabularModel

__all__ = ["choices", "facts", "numbers"]

_COVARIANCE = {
    "full": "full: all correlations between weights are kept",
    "layer": "layer: correlations between weights of one layer are kept",
    "neuron": "neuron: correlations between weights of one unit are kept",
    "kronecker": "kronecker: correlations between weights of one layer are kept, as inputs' times units'",
    "low_rank": "low_rank: the correlations in the directions known best are kept",
    "diagonal": "diagonal: no correlations between weights are kept",
}


def facts(model: "TabularModel") -> Iterator[tuple[str, str]]:
    """Names and words of what the model has learned so far."""
    yield "rows learned", f"{model.n_rows:,}"
    yield "rows rejected", f"{model.n_rejected:,}"
    if model.by is not None:
        yield "keys now", f"{model.estimator.n_keys:,} values of {model.by}, each with a model of its own"
    if model.noise is not None:
        yield "noise now", f"standard deviation {model.noise:.4g} of {model.target.name}"
    if isinstance(model.target, CountTarget):
        yield "dispersion now", f"{model.estimator.noise_:.4g}: counts of mean m have the variance m + dispersion m²"
    if model.estimator.outliers:
        yield "outliers now", f"{model.estimator.outliers_:.2%} of the targets are not to be trusted"
    if model.estimator.drift == "auto":
        yield "drift now", _drift_believed(model.estimator.drift_)
    evidence = model.estimator.log_evidence_ / max(model.n_rows, 1)
    if isinstance(model.target, NumberTarget):
        evidence -= float(np.log(model.target.scale))
    yield "evidence", f"{evidence:.4f}, the mean log density of a row before it was learned"
    if model.estimator.prior_scale == "auto":
        shares = np.atleast_2d(model.estimator.prior_weights_)[0]
        yield "prior weights", ", ".join(f"{share:.2f}" for share in shares)
    if model.last_run is not None:
        yield "last run", ", ".join(str(file["name"]) for file in model.last_run["files"])


def numbers(model: "TabularModel") -> dict[str, dict[str, Any]]:
    """Numbers of facts that programs may want, under names of their own, by the name of the fact."""
    found: dict[str, dict[str, Any]] = {}
    if model.by is not None:
        found["keys now"] = {"keys": model.estimator.n_keys}
    if model.estimator.outliers:
        found["outliers now"] = {"outliers": float(model.estimator.outliers_)}
    if model.estimator.drift == "auto":
        shares = {rate if isinstance(rate, str) else f"{rate:g}": p for rate, p in model.estimator.drift_.items()}
        found["drift now"] = {"drift": shares}
    return found


def choices(model: "TabularModel") -> Iterator[tuple[str, str]]:
    """Names and words of all that was chosen for the model."""
    yield from _target_choices(model)
    yield from _row_choices(model)
    for column in model.encoding.columns:
        yield f"column {column.name}", column.words()
    for name, why in model.encoding.ignored.items():
        yield f"column {name}", f"ignored: {why}"
    yield from _estimator_choices(model)


def _row_choices(model: "TabularModel") -> Iterator[tuple[str, str]]:
    if model.weight is not None:
        yield "weight", f"{model.weight}: how often a row counts when it is learned; scores count each row once"
    if model.by is not None:
        yield "by", f"{model.by}: its values have a model each, and share a prior that answers for values yet to come"


def _target_choices(model: "TabularModel") -> Iterator[tuple[str, str]]:
    target = model.target
    if isinstance(target, CountTarget):
        yield "target", f"{target.name}, a count"
    elif isinstance(target, NumberTarget):
        yield "target", f"{target.name}, {standardised('y', target.centre, target.scale)}"
    else:
        yield "target", f"{target.name}, one of {len(target.labels)} classes ({listed(target.labels, 8)})"


def _estimator_choices(model: "TabularModel") -> Iterator[tuple[str, str]]:
    estimator = model.estimator
    if model.is_network:
        yield "model", f"network {'-'.join(map(str, model.layers))}"
        yield "activation", f"{estimator.activation} in the hidden layers"
    else:
        n_features = len(model.encoding.features)
        whose = "" if model.by is None else f" for each value of {model.by}"
        yield "model", f"perceptron with {n_features} feature{'s' if n_features > 1 else ''}{whose}"
        yield "activation", "softmax" if len(model.labels) > 2 else estimator.activation
    yield "covariance", _covariance_words(model)
    if isinstance(model.target, NumberTarget):
        yield _noise_choice(model)
    scale, intercept = estimator.prior_scale, estimator.intercept_scale
    weights = "several scales side by side" if scale == "auto" else f"standard deviation {scale:g} of each weight"
    weights += "" if intercept is None else f", {intercept:g} of the intercept"
    yield "prior", weights if model.by is None else f"{weights}; then what the values of {model.by} have in common"
    if estimator.outliers:
        yield "outliers", f"a share of {estimator.outliers:g} to begin with, then learned: such rows hardly count"
    if estimator.forgetting < 1.0:
        yield "forgetting", f"{estimator.forgetting:g}: the past fades"
    if estimator.drift == "auto":
        yield "drift", "several rates side by side, weighed row by row"
    elif estimator.drift:
        yield "drift", f"{estimator.drift:g}: before each row the weights move by this share of the prior's variance"


def _covariance_words(model: "TabularModel") -> str:
    """Which correlations are kept and, where nobody asked for them, what for."""
    structure = model.structure
    words = _COVARIANCE[structure] if isinstance(structure, str) else f"layer by layer: {', '.join(structure)}"
    if model.estimator.covariance != "auto" or not isinstance(structure, str):
        return words
    cost = multiply_adds(structure, Layout(model.layers))
    return f"{words}; chosen for {model.n_weights:,} weights, with some {cost:,} multiplications per row"


def _drift_believed(probabilities: dict[float | str, float]) -> str:
    """Hypotheses of drift that are worth naming, the most probable first."""
    ranked = sorted(probabilities.items(), key=lambda one: -one[1])
    named = [(_hypothesis(rate), share) for rate, share in ranked if share >= 0.005]
    return ", ".join(f"{words} with probability {share:.2f}" for words, share in named)


def _hypothesis(rate: float | str) -> str:
    if isinstance(rate, str):
        return "a quick return to the prior"
    return f"rate {rate:g}" if rate else "none"


def _noise_choice(model: "TabularModel") -> tuple[str, str]:
    """What is said of the noise of numbers, or of the dispersion of counts."""
    assert isinstance(model.target, NumberTarget)
    name, unit = ("dispersion", "") if isinstance(model.target, CountTarget) else ("noise", "variance ")
    given = model.estimator.noise
    return name, "learned on the way" if given == "learn" else f"{unit}{given * model.target.scale**2:.4g}, as given"
