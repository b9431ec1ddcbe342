"""What the user may choose about a model, and the estimator that these choices make."""

from dataclasses import dataclass
from typing import Any

from onepass.beliefs.cost import choose_covariance
from onepass.beliefs.layout import Layout
from onepass.estimators import (
    BayesianMLPClassifier,
    BayesianMLPRegressor,
    BayesianPerceptronClassifier,
    BayesianPerceptronRegressor,
)
from onepass.estimators.inputs import OUTLIERS
from onepass.tables.columns.errors import SchemaError
from onepass.tables.targets import ClassTarget, CountTarget, NumberTarget, Target

__all__ = ["Settings", "make_estimator"]

_FULL = 500  # features up to which all correlations between weights are kept by default
_MOST_FULL = 10_000  # and those up to which they may be asked for


@dataclass(frozen=True)
class Settings:
    """What the user may choose about the model."""

    hidden: tuple[int, ...] = ()
    activation: str | None = None
    covariance: str | None = None
    noise: float | None = None  # None: learned
    outliers: float = OUTLIERS
    forgetting: float = 1.0
    drift: float | str = 0.0
    prior_scale: float | str = 1.0
    intercept_scale: float | None = None  # None: the estimator's default
    seed: int = 0


def make_estimator(n_features: int, target: Target, settings: Settings) -> Any:
    """An estimator of encoded rows that has learned nothing."""
    classes = isinstance(target, ClassTarget)
    options: dict[str, Any] = {
        "prior_scale": settings.prior_scale,
        "outliers": settings.outliers,
        "forgetting": settings.forgetting,
        "drift": settings.drift,
        "standardize": False,  # the encoding has done so
    }
    for name in ("activation", "intercept_scale"):
        if (chosen := getattr(settings, name)) is not None:
            options[name] = chosen
    if isinstance(target, CountTarget):
        options["observation"] = "negative_binomial"
        if not settings.hidden:
            options.setdefault("activation", "exp")
    if isinstance(target, NumberTarget):
        options["noise"] = "learn" if settings.noise is None else settings.noise / target.scale**2
    if settings.hidden:
        options |= {"hidden_layer_sizes": settings.hidden, "random_state": settings.seed}
        options["covariance"] = settings.covariance or "auto"
        return (BayesianMLPClassifier if classes else BayesianMLPRegressor)(**options)
    options["covariance"] = settings.covariance or _default_covariance(n_features, target)
    if options["covariance"] == "neuron" and not classes:
        raise SchemaError(
            "covariance='neuron' is a block per class and needs classes or hidden layers",
            suggestions={"covariance": "full", "hidden": "50"},
        )
    if options["covariance"] == "full" and n_features > _MOST_FULL:
        raise SchemaError(
            f"a full covariance of {n_features:,} features is too much work (at most {_MOST_FULL:,}); "
            "choose another covariance, or hash into fewer buckets",
            suggestions={"covariance": "diagonal", "buckets": ""},
        )
    return (BayesianPerceptronClassifier if classes else BayesianPerceptronRegressor)(**options)


def _default_covariance(n_features: int, target: Target) -> str:
    if isinstance(target, ClassTarget) and len(target.labels) > 2:
        return choose_covariance(Layout((n_features, len(target.labels))))
    return "full" if n_features <= _FULL else "diagonal"
