"""A model of a table in words: what was chosen for it, and what it has learned so far, one line each."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from onepass.beliefs.choice import BELIEFS, multiply_adds
from onepass.layers.layout import Layout
from onepass.tables.better_of_two import COMPARED_ROWS, BetterOfTwo
from onepass.tables.columns.encoding import Encoding
from onepass.tables.columns.missing import values_note
from onepass.tables.columns.wording import listed, standardised
from onepass.tables.forward_record import GAIN, ForwardTest
from onepass.tables.targets import CountTarget, LogTarget, NumberTarget, Target

if TYPE_CHECKING:
    from onepass.tables.model import TabularModel

__all__ = ["choices", "facts", "future_words", "numbers", "verdict"]

_SHOWN = 20  # names of files
_NAMED = 5  # columns of a kind, where there are many
_WORTH_SAYING = 0.03  # milliseconds
_DISAGREE = 0.05  # difference of coverages that is worth a warning
_FAR_WORSE = 2.0  # errors from which on their ratio is clearer than per cents
_ROUND = 100.0  # from this ratio on, it has no decimals


def facts(model: "TabularModel") -> Iterator[tuple[str, str]]:
    """Names and words of what the model has learned so far."""
    yield "rows learned", f"{model.n_rows:,}"
    yield "rows rejected", f"{model.n_rejected:,}"
    if model.n_set_aside:
        yield "rows set aside", f"{model.n_set_aside:,}, with targets absurdly far from their predictions"
    if model.n_passes > 1:
        yield "passes", f"{model.n_passes} over the rows of the first run"
    if model.by is not None:
        yield "keys now", f"{model.estimator.n_keys:,} values of {model.by}, each with a model of its own"
    if model.noise is not None:
        yield "noise now", _noise_words(model.noise, model.target)
    if model.has_level:
        yield "level now", f"with probability {model.estimator.level_probability_:.2f} it moves"
    if isinstance(model.target, CountTarget):
        yield "dispersion now", f"{model.estimator.noise_:.4g}: counts of mean m have the variance m + dispersion m²"
    if model.estimator.outliers:
        yield "outliers now", f"{model.estimator.outliers_:.2%} of the targets can't be trusted"
    if model.estimator.drift == "auto":
        yield "drift now", _drift_believed(model.estimator.drift_)
    counted = model.n_rows if model.weight is None or not model.n_rows else model.estimator.weight_sum_
    evidence = model.estimator.log_evidence_ / max(counted, 1e-300)
    if isinstance(model.target, NumberTarget):
        evidence -= float(np.log(model.target.scale))
    of = f" of the logarithm of {model.target.name}" if isinstance(model.target, LogTarget) else ""
    weighed = "" if model.weight is None else f", weighted by {model.weight}"
    yield "evidence", f"{evidence:.4f}, the mean log density{of} of a row before it was learned{weighed}"
    if model.estimator.prior_scale == "auto":
        shares = np.atleast_2d(model.estimator.prior_weights_)[0]
        yield "prior weights", ", ".join(f"{share:.2f}" for share in shares)
    if model.forward_test is not None:
        yield "future", future_words(model.forward_test)
    if model.history.runs and model.history.runs[-1].files:
        names = [file.name for file in model.history.runs[-1].files]
        yield "last run", ", ".join(names[:_SHOWN]) + (f", ... ({len(names):,} files)" if len(names) > _SHOWN else "")


def numbers(model: "TabularModel") -> dict[str, dict[str, Any]]:
    """Numbers of facts that programs may want, under names of their own, by the name of the fact."""
    found: dict[str, dict[str, Any]] = {}
    if model.n_set_aside:
        found["rows set aside"] = {"set_aside": model.n_set_aside}
    if model.by is not None:
        found["keys now"] = {"keys": model.estimator.n_keys}
    if model.estimator.outliers:
        found["outliers now"] = {"outliers": float(model.estimator.outliers_)}
    if model.estimator.drift == "auto":
        shares = {rate if isinstance(rate, str) else f"{rate:g}": p for rate, p in model.estimator.drift_.items()}
        found["drift now"] = {"drift": shares}
    if model.forward_test is not None:
        found["future"] = {"forward_test": model.forward_test.state()}
    return found


def choices(model: "TabularModel", most_columns: int | None = None) -> Iterator[tuple[str, str]]:
    """Names and words of all that was chosen for the model; columns are counted if they are more than so many."""
    yield from _target_choices(model)
    yield from _row_choices(model)
    encoding = model.encoding
    if most_columns is not None and len(encoding.columns) + len(encoding.ignored) > most_columns:
        yield from _column_counts(encoding)
    else:
        for column in encoding.columns:
            yield f"column {column.name}", column.words()
        for name, why in encoding.ignored.items():
            yield f"column {name}", f"ignored: {why}"
    yield from _estimator_choices(model)


def _column_counts(encoding: Encoding) -> Iterator[tuple[str, str]]:
    """How many columns are of each kind, and the first of them."""
    by_kind: dict[str, list[str]] = {}
    for column in encoding.columns:
        by_kind.setdefault(f"of kind {column.kind}", []).append(column.name)
    for name, why in encoding.ignored.items():
        by_kind.setdefault(f"ignored ({why})", []).append(name)
    for kind, names in by_kind.items():
        yield "columns", f"{len(names):,} {kind} ({listed(names, _NAMED)})"


def _row_choices(model: "TabularModel") -> Iterator[tuple[str, str]]:
    if model.weight is not None:
        yield "weight", f"{model.weight}: how often a row counts when it is learned; scores count each row once"
    if model.time is not None:
        how = "predictions depend on the distance from the last row"
        if not model.has_level:
            how = "a network predicts the rows ahead better than a level that moves"
        yield "time", f"{model.time.name}: rows come in its order; {how}"
    if model.by is not None:
        yield "by", f"{model.by}: its values have a model each, and share a prior that answers for values yet to come"


def _target_choices(model: "TabularModel") -> Iterator[tuple[str, str]]:
    target = model.target
    if isinstance(target, CountTarget):
        yield "target", f"{target.name}, a count{target.written.words()}"
    elif isinstance(target, NumberTarget):
        written = f"a number{target.written.words()}, " if target.written.words() else ""
        yield "target", f"{target.name}, {written}{_unit_words(target)}{_wild_words(target)}"
    else:
        note = values_note(target.labels)
        yield "target", f"{target.name}, one of {len(target.labels)} classes ({listed(target.labels, 8)}){note}"


def _unit_words(target: NumberTarget) -> str:
    """What is learned of a number."""
    if not isinstance(target, LogTarget):
        tried = f"; its logarithm was tried and not taken: {target.why_not_log}" if target.why_not_log else ""
        return standardised("y", target.centre, target.scale) + tried
    reason = f": {target.why}" if target.why else ""
    return f"learned as its logarithm, {standardised('log y', target.centre, target.scale)}{reason}"


def _wild_words(target: NumberTarget) -> str:
    if not target.n_wild:
        return ""
    are = "is" if target.n_wild == 1 else "are"
    return f"; {target.n_wild:,} of the first targets {are} far away from all others"


def _noise_words(noise: float, target: Target) -> str:
    if isinstance(target, LogTarget):
        return f"a factor of {np.exp(noise):.4g} (standard deviation {noise:.4g} of the logarithm of {target.name})"
    return f"standard deviation {noise:.4g} of {target.name}"


def _estimator_choices(model: "TabularModel") -> Iterator[tuple[str, str]]:
    estimator = model.estimator
    yield "model", _kind_words(model) + _comparison_words(model)
    yield "activation", f"{estimator.activation} in the hidden layers" if model.is_network else _output_words(model)
    yield "covariance", _covariance_words(model)
    if isinstance(model.target, NumberTarget):
        yield _noise_choice(model)
    intercept = estimator.intercept_scale
    weights = _prior_words(model) + ("" if intercept is None else f", {intercept:g} of the intercept")
    yield "prior", weights if model.by is None else f"{weights}; then what the values of {model.by} have in common"
    if estimator.outliers:
        yield "outliers", f"a share of {estimator.outliers:g} to begin with, then learned: such rows hardly count"
    if estimator.forgetting < 1.0:
        yield "forgetting", f"{estimator.forgetting:g}: the past fades"
    if estimator.drift == "auto":
        yield "drift", "several rates side by side, weighted row by row"
    elif estimator.drift:
        yield "drift", f"{estimator.drift:g}: before each row the weights move by this share of the prior's variance"


def _output_words(model: "TabularModel") -> str:
    """The activation of a perceptron's output."""
    if len(model.labels) > 2:
        return "softmax"
    if not hasattr(model.estimator, "hidden_layer_sizes"):
        return str(model.estimator.activation)
    return "sigmoid" if model.labels else "exp" if isinstance(model.target, CountTarget) else "linear"


def verdict(model: "TabularModel") -> str:
    """Which of two estimators answers, and by how much it predicts better; empty if there is no comparison."""
    comparison = model.estimator
    if not isinstance(comparison, BetterOfTwo) or not comparison.n_judged:
        return ""
    other = "perceptron" if model.is_network else "network"
    better = (comparison.lead > 0.0) == model.is_network
    too_little = "" if better or model.is_network else ": too little to pay for a network"
    so_far = "" if comparison.is_decided else " so far"
    return (
        f"{_kind_words(model)}: its log-score was{so_far} {abs(comparison.lead):.2g} nats per row "
        f"{'better' if better else 'worse'} than the {other}'s, over the first {comparison.n_judged:,} rows, weighted "
        f"towards the latest{too_little}"
    )


def future_words(test: ForwardTest) -> str:
    """What forward tests say of predictions that are made ahead: how good they are, and what to do if not good."""
    share = test.n_predicted / (test.n_learned + test.n_predicted)
    words = f"predicting the next {share:.0%} of the rows"
    errors = test.errors or {}
    if "model" in errors:
        others = [f"{_compared(errors['model'], error)} {name}" for name, error in errors.items() if name != "model"]
        words += f": {', '.join(others)}"
    if test.coverage is None:
        return f"{words}: log-loss {-test.scores[test.chosen]:.3g}"
    words += f"; {test.coverage:.0%} of the values inside their 95 % intervals"
    if test.widening > 1.0:
        words += f", which the tests have made {test.widening:.3g} times as wide"
        words += " as far as they widen with the distance" if test.candidate.level else ""
    ahead, row_by_row = test.plain_coverage, test.row_by_row
    if ahead is not None and row_by_row is not None and row_by_row - ahead > _DISAGREE:
        words += (
            f". Predicted one by one, each right before it is learned, {row_by_row:.0%} lie inside without that, "
            f"but only {ahead:.0%} that far ahead: learn new rows as they come ('onepass learn')"
        )
    return words


def _compared(error: float, other: float) -> str:
    """An error in relation to that of another model, which is named next."""
    if other <= 0.0:
        return "as good as" if error <= 0.0 else "worse than"
    ratio = error / other
    if ratio > _FAR_WORSE:
        return f"{ratio:,.0f} times the error of" if ratio >= _ROUND else f"{ratio:.3g} times the error of"
    if abs(ratio - 1.0) < 0.005:
        return "as good as"
    return f"{abs(1.0 - ratio):.0%} {'better' if ratio < 1.0 else 'worse'} than"


def _kind_words(model: "TabularModel") -> str:
    if model.is_network:
        return f"network {'-'.join(map(str, model.layers))}"
    n_features = len(model.encoding.features)
    whose = "" if model.by is None else f" for each value of {model.by}"
    whose = " around a level that moves with time" if model.has_level else whose
    return f"perceptron with {n_features} feature{'s' if n_features > 1 else ''}{whose}"


def _comparison_words(model: "TabularModel") -> str:
    """Why this model answers and no other."""
    comparison = model.estimator
    if not isinstance(comparison, BetterOfTwo):
        return _forward_words(model) or (model.kind_reason and f"; {model.kind_reason}")
    if comparison.n_judged:
        return verdict(model).removeprefix(_kind_words(model))
    other = comparison.candidates[-1]
    network = f"{'-'.join(map(str, other.hidden_layer_sizes))} {other.activation} units"
    return f", next to a network of {network}: whichever predicts the first {COMPARED_ROWS:,} rows better is kept"


def _forward_words(model: "TabularModel") -> str:
    """Which models were compared by tests ahead; empty if none of them was chosen so."""
    test = model.forward_test
    if test is None or not test.order_matters:
        return ""
    scores = ", ".join(f"{name} {score:.2f}" for name, score in test.scores.items())
    is_best = test.scores[test.chosen] == max(test.scores.values())
    why = "" if is_best else f"; others must be better by {GAIN:g}"
    words = f"; chosen as {test.chosen} by predicting rows ahead, where the log scores in nats per row were {scores}"
    return words + why


def _covariance_words(model: "TabularModel") -> str:
    """Which correlations are kept and, where that takes time, how much."""
    covariance, kind = model.covariance, model.belief_type
    if not isinstance(covariance, str):
        return f"layer by layer: {', '.join(covariance)}"
    words, milliseconds = f"{covariance}: {kind.meaning}", _milliseconds(covariance, model)
    if not kind.keeps_correlations and model.encoding.texts:
        return f"{words}; words have few, and room for more words is worth more"
    if milliseconds < _WORTH_SAYING or not kind.keeps_correlations:
        return words
    richer = ("full",) if kind.for_few_outputs and not model.is_network else ()
    others = ", ".join(f"{name} {_milliseconds(name, model):.1g} ms" for name in (*richer, "diagonal"))
    return f"{words}; with {model.n_weights:,} weights about {milliseconds:.1g} ms per row ({others})"


def _milliseconds(covariance: str, model: "TabularModel") -> float:
    """What a row takes, roughly."""
    return multiply_adds(covariance, Layout(model.layers)) / BELIEFS[covariance].per_millisecond


def _prior_words(model: "TabularModel") -> str:
    """How wide the prior is; where the first rows have said so, for all numbers and for each other column."""
    scale = model.estimator.prior_scale
    if isinstance(scale, str):
        return "several scales side by side"
    if not np.ndim(scale):
        return f"standard deviation {scale:g} of each weight"
    names: dict[str, float] = {}
    at = 0
    for column in model.encoding.columns:
        names.setdefault("numbers" if column.shares_scale else column.name, scale[at])
        at += len(column.features)
    words = [f"{own:.2g} ({name})" for name, own in names.items()]
    return f"standard deviation of each weight as the first rows suggest, {listed(words, 6)}"


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
    of = " of the logarithm" if isinstance(model.target, LogTarget) else ""
    given = model.estimator.noise
    words = f"{unit}{given * model.target.scale**2:.4g}" if given != "learn" else ""
    return name, f"{words}{of}, as given" if words else "learned from the rows"
