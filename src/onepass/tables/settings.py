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
    FleetEstimator,
)
from onepass.estimators.inputs import OUTLIERS
from onepass.tables.columns.errors import SchemaError
from onepass.tables.targets import ClassTarget, CountTarget, NumberTarget, Target

__all__ = ["Settings", "make_estimator"]

_FULL = 500  # features up to which all correlations between weights are kept by default
_MOST_PER_KEY = 200  # features of a model per key: each key has all of their correlations
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
    weight: str | None = None  # the column that says how often a row counts
    by: str | None = None  # the column with a model per value


def make_estimator(n_features: int, target: Target, settings: Settings) -> Any:
    """An estimator of encoded rows that has learned nothing."""
    if settings.by is not None:
        return _fleet(n_features, target, settings)
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


def _fleet(n_features: int, target: Target, settings: Settings) -> FleetEstimator:
    """A model per key, unless something is asked for that it does not have."""
    numbers = isinstance(target, NumberTarget)
    n_classes = len(target.labels) if isinstance(target, ClassTarget) else 0
    for refused, reason in (
        (isinstance(target, CountTarget), "counts"),
        (n_classes > 2, f"{n_classes} classes"),
        (settings.hidden != (), "hidden layers"),
        (settings.covariance not in (None, "full"), f"covariance={settings.covariance!r}"),
        (settings.drift != 0.0, "drift"),
        (settings.prior_scale == "auto", "prior_scale='auto': the prior is learned from all keys"),
        (settings.weight is not None, "weights of rows"),
        (settings.activation not in (None, "linear" if numbers else "sigmoid"), f"activation={settings.activation!r}"),
    ):
        if refused:
            raise SchemaError(
                f"a model per key is linear for numbers, or sigmoid for two classes; not with {reason}", setting="by"
            )
    if n_features > _MOST_PER_KEY:
        raise SchemaError(
            f"a model per key has {_MOST_PER_KEY} features at most, got {n_features:,}; leave columns out, or hash "
            "them into fewer buckets",
            setting="by",
            suggestions={"ignore": "a,b", "buckets": "8"},
        )
    noise: Any = "learn" if settings.noise is None else settings.noise / getattr(target, "scale", 1.0) ** 2
    return FleetEstimator(
        n_features,
        "linear" if numbers else "sigmoid",
        noise=noise,
        prior_scale=float(settings.prior_scale),
        intercept_scale=4.0 if settings.intercept_scale is None else settings.intercept_scale,
        outliers=settings.outliers,
        forgetting=settings.forgetting,
    )


def _default_covariance(n_features: int, target: Target) -> str:
    if isinstance(target, ClassTarget) and len(target.labels) > 2:
        return choose_covariance(Layout((n_features, len(target.labels))))
    return "full" if n_features <= _FULL else "diagonal"
