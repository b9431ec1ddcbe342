"""Turn models into programs: mixtures of perceptrons and networks, and estimators with their scaling."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from onepass._typing import FloatArray
from onepass.activations import PiecewiseLinear, Probit, Sigmoid, Step
from onepass.beliefs.full import FullGaussian
from onepass.estimators.base import OnePassEstimator, learner_of
from onepass.estimators.blueprints import Networks
from onepass.estimators.classifier import OnePassClassifier
from onepass.estimators.learner import Learner
from onepass.export.expressions import (
    Expression,
    concat,
    constant,
    is_nan,
    maximum,
    row,
    row_sum,
    sqrt,
    where,
)
from onepass.export.formulas import activate, activation_moments
from onepass.export.predictions import Parts, network_parts, perceptron_parts, perceptron_row
from onepass.export.programs import Input, Learning, NotExportableError, Program
from onepass.likelihoods.mixtures import KNOWN, counted_weights
from onepass.models.mixture import Mixture
from onepass.models.perceptron import BayesianPerceptron

__all__ = [
    "LABEL_STD",
    "Classes",
    "Numbers",
    "estimator_inputs",
    "estimator_program",
    "model_program",
    "predicted",
    "shown_parts",
]

QUANTILE = Expression("argument", (), 1, None, "quantile")
"""Stands for the quantile of the standard normal in the limits of an interval."""
LABEL_STD = "the standard deviation of that probability, which comes of not knowing the weights"
_DRIFTS = "its forgetting, drift or outliers need more than the rank-one step"


@dataclass(frozen=True)
class Numbers:
    """What a regressor predicts, in the units of its targets."""

    mean: Expression
    std: Expression
    noise_var: Expression
    limits: tuple[Expression, Expression] | None
    learning: Learning | str


@dataclass(frozen=True)
class Classes:
    """What a classifier predicts."""

    probabilities: Expression
    std: Expression
    limits: tuple[Expression, Expression] | None
    learning: Learning | str


def model_program(model: Any, origin: str) -> Program:
    """The program of a perceptron, a network or a committee."""
    x = row(model.n_features)
    weights, parts = _components(model, x, None)
    first = model.components[0][1]
    mean, var = _mixture(weights, parts, [part.var for part in parts])
    inputs = tuple(Input(f"x{k}") for k in range(x.width))
    likelihood = first.observation
    learning = _learning_of(model, x) if type(model) is BayesianPerceptron else ""
    shown = shown_parts(learning, _model_limits(first, parts))
    if likelihood.is_class:
        return Program(origin, x, inputs, mean, sqrt(var), tuple(range(first.n_outputs)), std_words=LABEL_STD, **shown)
    single = mean.width == 1
    if likelihood.is_label:
        return Program(origin, x, inputs, mean, sqrt(var), single=single, std_words=LABEL_STD, **shown)
    noise = _mixed(weights, [part.noise_var for part in parts])
    return Program(origin, x, inputs, mean, sqrt(var + noise), single=single, **shown)


def _model_limits(model: Any, parts: list[Parts]) -> tuple[Expression, Expression] | None:
    """The limits of an interval of one model, where they have a closed form."""
    if len(parts) > 1:
        return None
    if model.observation.is_label:
        link = model.activation if isinstance(model, BayesianPerceptron) else model.observation.link
        return _probability_limits(link, parts[0])
    return _gaussian_limits(parts[0]) if _noise_is_known(model) else None


def _noise_is_known(model: Any) -> bool:
    """Whether new targets are Gaussian: they have Gaussian noise, of a variance that is known well enough."""
    if isinstance(model, BayesianPerceptron):
        return model.observation.is_gaussian and model.log_noise_var < KNOWN
    return bool(model.observation.is_numeric)


def _gaussian_limits(part: Parts) -> tuple[Expression, Expression]:
    half_width = QUANTILE * sqrt(part.var + part.noise_var)
    return part.mean - half_width, part.mean + half_width


def _probability_limits(link: Any, part: Parts) -> tuple[Expression, Expression] | None:
    if not isinstance(link, (Sigmoid, Probit, Step)):
        return None
    mean, var = part.limits or (part.pre_mean, part.pre_var)
    half_width = QUANTILE * sqrt(var)
    return activate(link, mean - half_width), activate(link, mean + half_width)


# Mixtures.


def _components(model: Any, z: Expression, z_var: Expression | None) -> tuple[FloatArray, list[Parts]]:
    """Weights of what a model or a mixture is made of, and what each part predicts."""
    members = [own for _, own in model.components]
    weights = counted_weights(np.array([weight for weight, _ in model.components]))
    kept = np.flatnonzero(weights).tolist()
    parts = []
    for k in kept:
        if isinstance(members[k], BayesianPerceptron):
            parts.append(perceptron_parts(members[k], z, z_var))
        else:
            parts.append(network_parts(members[k], z, getattr(model, "noise_scale", None)))
    return weights[kept], parts


def _mixed(weights: FloatArray, values: list[Expression]) -> Expression:
    total = float(weights[0]) * values[0]
    for weight, value in zip(weights[1:].tolist(), values[1:], strict=True):
        total = total + weight * value
    return total


def _mixture(weights: FloatArray, parts: list[Parts], variances: list[Expression]) -> tuple[Expression, Expression]:
    """Mean and variance; what the parts disagree about counts."""
    if len(parts) == 1:
        return parts[0].mean, variances[0]
    mean = _mixed(weights, [part.mean for part in parts]).called("mixture_mean")
    gaps = [part.mean - mean for part in parts]
    return mean, _mixed(weights, [var + gap * gap for var, gap in zip(variances, gaps, strict=True)])


# Estimators.


def estimator_program(estimator: OnePassEstimator, origin: str) -> Program:
    """The program of a scikit-learn estimator that has been fitted."""
    given = getattr(estimator, "feature_names_in_", [f"x{k}" for k in range(estimator.n_features_in_)])
    inputs = tuple(Input(str(name)) for name in given)
    x = row(len(inputs))
    found = predicted(estimator, x)
    shown = shown_parts(found.learning, found.limits)
    if isinstance(found, Classes):
        classes = tuple(estimator.classes_.tolist())
        return Program(origin, x, inputs, found.probabilities, found.std, classes, std_words=LABEL_STD, **shown)
    return Program(origin, x, inputs, found.mean, found.std, single=found.mean.width == 1, **shown)


def shown_parts(learning: Learning | str, limits: Any) -> dict[str, Any]:
    """What a program has of learning and limits, by the names of its fields."""
    shown: dict[str, Any] = {"learning": learning} if isinstance(learning, Learning) else {"no_learning": learning}
    return shown | ({} if limits is None else {"quantile": QUANTILE, "limits": limits})


def predicted(estimator: OnePassEstimator, x: Expression) -> Numbers | Classes:
    """What an estimator predicts for rows of its inputs."""
    if not estimator.__sklearn_is_fitted__():
        raise NotExportableError("the estimator has learned nothing yet: fit it first")
    learner = learner_of(estimator)
    if learner.encoder.categories is not None:
        raise NotExportableError(
            "an estimator that learned a data frame with categorical columns can't be exported: turn them into columns "
            "of 0 and 1 before, or learn the table with 'onepass fit', whose models can be exported"
        )
    if learner.targets.transform is not None:
        raise NotExportableError(
            "an estimator with a target_transform can't be exported: learn the transformed targets"
        )
    if learner.state.calibration is not None:
        raise NotExportableError(
            "a classifier with probabilities='adaptive' can't be exported, as its map goes on learning: learn with "
            "probabilities='model'"
        )
    z, z_var = estimator_inputs(learner, x)
    if isinstance(estimator, OnePassClassifier):
        return _classes(learner, z, z_var)
    columns = [_components(mixture, z, z_var) for mixture in learner.state.mixtures]
    means, variances, noises, limits = [], [], [], []
    for mixture, (weights, parts) in zip(learner.state.mixtures, columns, strict=True):
        mean, var = _mixture(weights, parts, [part.var + part.noise_var for part in parts])
        means.append(mean)
        variances.append(var)
        known = len(parts) == 1 and all(_noise_is_known(own) for _, own in mixture.components)
        known = known and not learner.state.trackers  # tracked limits belong to the model that tracks them
        limits.append(_gaussian_limits(parts[0]) if known else None)
        noises.append(_noise(learner, mixture, parts))
    centre, scale = learner.state.targets.centre, learner.state.targets.scale
    many = len(means) > 1
    own_scale, own_centre = (constant(values) if many else float(values[0]) for values in (scale, centre))

    def undo(one: Expression) -> Expression:
        return one * own_scale + own_centre

    both = None
    if all(own is not None for own in limits):
        low, high = (concat([own[side] for own in limits]) for side in (0, 1))  # type: ignore[index]
        both = undo(low), undo(high)
    noise = concat(noises) * (own_scale * own_scale)
    learning = _learner_learning(learner, z, float(centre[0]), float(scale[0])) if not many else _SEVERAL
    return Numbers(undo(concat(means)), sqrt(concat(variances)) * own_scale, noise, both, learning)


_SEVERAL = "several models learn side by side"


def _noise(learner: Learner, mixture: Mixture, parts: list[Parts]) -> Expression:
    """What `noise_` says, in the units of the models."""
    members = mixture.members
    if len(parts) == 1 and isinstance(members[0], BayesianPerceptron) and members[0].observation.is_gaussian:
        return parts[0].noise_var
    return constant(float(mixture.weights @ [learner.blueprint.noise_of(member) for member in members]))


def _classes(learner: Learner, z: Expression, z_var: Expression | None) -> Classes:
    (mixture,), is_binary = learner.state.mixtures, learner.targets.is_binary
    weights, parts = _components(mixture, z, z_var)
    link = learner.blueprint.link if is_binary else Sigmoid()
    limits = _probability_limits(link, parts[0]) if len(parts) == 1 else None
    mean, var = _mixture(weights, parts, [part.var for part in parts])
    learning = _learner_learning(learner, z, 0.0, 1.0)
    if not is_binary:
        return Classes(mean / row_sum(mean), sqrt(var), limits, learning)
    # Each side by the link itself, which keeps its digits in its own tail.
    sides = [
        _mixed(weights, [activation_moments(link, sign * p.pre_mean, p.pre_var)[0] for p in parts])
        for sign in (-1.0, 1.0)
    ]
    both = concat([maximum(side, 1e-300) for side in sides]).called("sides")
    return Classes(both / row_sum(both), concat([sqrt(var), sqrt(var)]), limits, learning)


def estimator_inputs(learner: Learner, x: Expression) -> tuple[Expression, Expression | None]:
    """Rows as the models take them, and the variances of what is missing."""
    scaling = learner.state.inputs
    z = x if scaling.is_identity else (x - constant(scaling.centre, "centre")) / constant(scaling.scale, "scale")
    columns = learner.state.columns
    if columns is None:
        return z, None
    z = z.called("z") if z is not x else z
    missing = is_nan(z)
    filled = where(missing, constant(columns.mean, "column_mean"), z).called("filled")
    takes = learner.blueprint.takes_variances
    return filled, where(missing, constant(columns.variance, "column_variance"), 0.0) if takes else None


# Learning on a device.


def _learner_learning(learner: Learner, z: Expression, centre: float, scale: float) -> Learning | str:
    if isinstance(learner.blueprint, Networks):
        return ""
    if learner.state.columns is not None and learner.state.columns.learns:
        return "missing='mean' learns the means of its columns as well"
    members = [own for mixture in learner.state.mixtures for _, own in mixture.components]
    if len(members) > 1:
        return _SEVERAL
    if not isinstance(members[0], BayesianPerceptron):
        return "it is a softmax, which learns by more than one number per row"
    return _learning_of(members[0], z, centre, scale)


def _learning_of(model: BayesianPerceptron, z: Expression, centre: float = 0.0, scale: float = 1.0) -> Learning | str:
    """What learning on a device needs of a perceptron, or why there is none."""
    belief = model.belief
    if not isinstance(belief, FullGaussian):
        return "its covariance is diagonal, and the step is written for a full one"
    if model.forgetting < 1.0 or model.drift or model.outliers or model.process_noise.any():
        return _DRIFTS
    rule = _rule(model)
    if rule is None:
        return (
            "the step is written for linear outputs with Gaussian noise and for labels around sigmoid, probit or step"
        )
    mean, root = (np.asarray(own, dtype=np.float64) for own in (belief.mean, belief.to_root()))
    return Learning(rule, perceptron_row(model, z), mean, root, centre, scale, False, float(model.noise))


def _rule(model: BayesianPerceptron) -> str | None:
    linear = isinstance(model.activation, PiecewiseLinear) and model.activation.pieces[:2].tolist() == [[1.0], [0.0]]
    if model.update != "adf":
        return None
    if model.observation.is_gaussian:
        return "linear" if linear else None
    if not model.observation.is_label:
        return None
    names = ((Sigmoid, "sigmoid"), (Probit, "probit"), (Step, "step"))
    return next((name for kind, name in names if isinstance(model.activation, kind)), None)
