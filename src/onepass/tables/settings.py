"""What the user may choose about a model, and the estimator that these choices make."""

from dataclasses import dataclass, replace
from typing import Any

from onepass._validation import one_of
from onepass.beliefs.choice import BELIEFS, belief_type, choose_covariance
from onepass.estimators import (
    BayesianMLPClassifier,
    BayesianMLPRegressor,
    BayesianPerceptronClassifier,
    BayesianPerceptronRegressor,
    FleetEstimator,
    MovingLevelRegressor,
)
from onepass.estimators.base import OUTLIERS
from onepass.estimators.blueprints import INTERCEPT_SCALE
from onepass.layers.layout import Layout
from onepass.tables.better_of_two import BetterOfTwo
from onepass.tables.columns.errors import SchemaError
from onepass.tables.prior_inference import Prior
from onepass.tables.reasons import Reason
from onepass.tables.targets import ClassTarget, CountTarget, NumberTarget, Target
from onepass.tables.timeline import Timeline

__all__ = ["MOST_PER_KEY", "SAMPLE_PRIOR", "Settings", "make_estimator", "resolve_model_kind"]

_MOST_FULL = 10_000  # features up to which all correlations between weights may be asked for
SAMPLE_PRIOR = "sample"  # the scales of the prior are to be inferred from the first rows
HIDDEN = (50,)  # hidden units when none were given
# Multiply-adds up to which a network is tried, some 1.2 ms per row (any full covariance) and 20 s for all rows.
_MOST_PER_ROW, _MOST_IN_ALL = 6_100_000, 100_000_000_000
MOST_PER_KEY = 200
"""Features of a model per key: each key has all of their correlations."""
MOST_IN_TIME = 200
"""Features next to a level that moves: each of its hypotheses has all of their correlations."""


@dataclass(frozen=True)
class Settings:
    """What the user may choose about the model."""

    model_kind: str = "auto"
    """``"perceptron"``, ``"network"``, or ``"auto"`` for whichever predicts the first rows better."""
    hidden: tuple[int, ...] = ()  # any: a network
    activation: str | None = None
    covariance: str | None = None
    noise: float | None = None  # None: learned
    outliers: float = OUTLIERS
    forgetting: float = 1.0
    drift: float | str = 0.0
    prior_scale: float | str | Prior = SAMPLE_PRIOR
    intercept_scale: float | None = None  # None: the estimator's default
    intervals: str = "model"  # or "adaptive": tracked as targets arrive
    seed: int = 0
    weight: str | None = None  # the column that says how often a row counts
    by: str | None = None  # the column with a model per value
    time: str | Timeline | None = None  # the column with the time of each row

    @property
    def is_network(self) -> bool:
        """Whether a network is asked for; if not, the first rows may still choose one."""
        return bool(self.hidden) or self.model_kind == "network"


def resolve_model_kind(
    settings: Settings, n_features: int, target: Target, n_rows: float | None
) -> tuple[Settings, str]:
    """What a model of kind "auto" comes to, and where no network is tried the reason.

    Parameters
    ----------
    settings : Settings
    n_features, target : of the model
    n_rows : how many rows there are to learn, roughly; None if that is unknown
    """
    if settings.model_kind != "auto" or settings.hidden or settings.activation or settings.covariance or settings.by:
        return settings, ""
    perceptron = replace(settings, model_kind="perceptron")
    if n_rows is None:
        return perceptron, "the network is skipped because the number of rows is unknown"
    layout = Layout((n_features, *HIDDEN, target.n_outputs))
    kind = belief_type("auto", layout)
    cost = kind.multiply_adds(layout) * _side_by_side(settings)
    if not kind.keeps_correlations or cost > _MOST_PER_ROW:
        return perceptron, (
            f"a network is not tried, which would have {layout.size:,} weights and take more than "
            f"{_MOST_PER_ROW / kind.per_millisecond:.2g} ms per row"
        )
    if cost * n_rows > _MOST_IN_ALL:
        minutes = max(round(cost * n_rows / kind.per_millisecond / 60e3), 1)
        return perceptron, (
            f"a network is not tried, which would take some {minutes:,} minute{'s' if minutes > 1 else ''} for about "
            f"{float(f'{n_rows:.2g}'):,.0f} rows"
        )
    return settings, ""


def _side_by_side(settings: Settings) -> int:
    """How many times as long a row takes because several hypotheses of drift, or several priors, learn it."""
    return (10 if settings.drift == "auto" else 1) * (4 if settings.prior_scale == "auto" else 1)


def make_estimator(n_features: int, target: Target, settings: Settings) -> Any:
    """An estimator of encoded rows that has learned nothing."""
    if isinstance(settings.time, Timeline):
        first: Any = _moving_level(n_features, target, settings, settings.time)
    elif settings.by is not None:
        return _fleet(n_features, target, settings)
    elif settings.is_network:
        return _network(target, settings)
    else:
        first = _perceptron(n_features, target, settings)
    if settings.model_kind == "auto" and settings.activation is None and settings.covariance is None:
        return BetterOfTwo([first, _network(target, settings)])
    return first


def _moving_level(n_features: int, target: Target, settings: Settings, time: Timeline) -> MovingLevelRegressor:
    """A linear model around a level that moves with time, unless something is asked for that it does not have."""
    for refused, reason in (
        (isinstance(target, ClassTarget), "classes"),
        (isinstance(target, CountTarget), "counts"),
        (settings.by is not None, "a model per key (onepass forecast has series with a key)"),
        (settings.is_network, "hidden layers; leave them out, and a network is tried, too"),
        (settings.activation not in (None, "linear"), f"activation={settings.activation!r}"),
        (settings.covariance not in (None, "full"), f"covariance={settings.covariance!r}"),
        (settings.drift != 0.0, "drift: what moves is the level"),
        (settings.forgetting != 1.0, "forgetting: what moves is the level"),
        (settings.outliers != 0.0, "outliers"),
        (settings.noise is not None, "a noise that is given"),
        (settings.prior_scale == "auto", "prior_scale='auto'"),
        (settings.intervals != "model", f"intervals={settings.intervals!r}"),
    ):
        if refused:
            raise SchemaError(Reason("not_in_time", value=reason), setting="time")
    if n_features > MOST_IN_TIME:
        raise SchemaError(
            Reason("features_in_time", features=n_features, most=MOST_IN_TIME),
            setting="time",
            suggestions={"ignore": "a,b", "buckets": "8"},
        )
    prior: Any = settings.prior_scale
    return MovingLevelRegressor(
        time.feature,
        time.step,
        prior_scale=prior.scales if isinstance(prior, Prior) else 1.0 if prior == SAMPLE_PRIOR else prior,
        intercept_scale=INTERCEPT_SCALE if settings.intercept_scale is None else settings.intercept_scale,
        noise_start=prior.noise if isinstance(prior, Prior) else None,
    )


def _network(target: Target, settings: Settings) -> Any:
    prior = settings.prior_scale
    return (BayesianMLPClassifier if isinstance(target, ClassTarget) else BayesianMLPRegressor)(
        **_shared_options(target, settings),
        hidden_layer_sizes=settings.hidden or HIDDEN,
        covariance=settings.covariance or "auto",
        prior_scale=1.0 if isinstance(prior, Prior) or prior == SAMPLE_PRIOR else prior,
        random_state=settings.seed,
    )


def _perceptron(n_features: int, target: Target, settings: Settings) -> Any:
    options, prior = {"intercept_scale": INTERCEPT_SCALE, **_shared_options(target, settings)}, settings.prior_scale
    options["covariance"] = settings.covariance or _default_covariance(n_features, target, settings.activation)
    _check_covariance(options["covariance"], n_features, target)
    options["prior_scale"] = 1.0 if prior == SAMPLE_PRIOR else prior.scales if isinstance(prior, Prior) else prior
    classes = isinstance(target, ClassTarget)
    chosen = options["covariance"]
    if chosen == "auto" or BELIEFS[chosen].for_few_outputs:  # which networks have, also those without hidden layers
        options = {**options, "hidden_layer_sizes": ()}
        return (BayesianMLPClassifier if classes else BayesianMLPRegressor)(**options)
    if isinstance(target, CountTarget):
        options.setdefault("activation", "exp")
    elif isinstance(target, NumberTarget) and isinstance(prior, Prior) and settings.noise is None:
        options["noise_start"] = prior.noise
    return (BayesianPerceptronClassifier if classes else BayesianPerceptronRegressor)(**options)


def _shared_options(target: Target, settings: Settings) -> dict[str, Any]:
    """Options that every estimator of such a target has."""
    options: dict[str, Any] = {
        "outliers": settings.outliers,
        "forgetting": settings.forgetting,
        "drift": settings.drift,
        "standardize": False,  # the encoding has done so
        "missing": "standard",
    }
    for name in ("activation", "intercept_scale"):
        if (chosen := getattr(settings, name)) is not None:
            options[name] = chosen
    if isinstance(target, CountTarget):
        options["observation"] = "negative_binomial"
    if isinstance(target, ClassTarget):
        options["probabilities"] = settings.intervals
    else:
        options["intervals"] = settings.intervals
        options["noise"] = "learn" if settings.noise is None else settings.noise / target.scale**2
    return options


def _default_covariance(n_features: int, target: Target, activation: str | None) -> str:
    """The richest that is not too slow; see `onepass.beliefs.choice`."""
    chosen = choose_covariance(Layout((n_features, target.n_outputs)))
    if not BELIEFS[chosen].for_few_outputs:
        return chosen
    # Of more features each is on in few rows, and has little to do with others.
    return "diagonal" if n_features > _MOST_FULL or activation is not None else "auto"


def _check_covariance(covariance: str, n_features: int, target: Target) -> None:
    labels = target.labels if isinstance(target, ClassTarget) else ()
    if covariance == "auto":
        return
    kind = BELIEFS[one_of(covariance, ("auto", *BELIEFS), "covariance")]
    if kind.separate_units and kind.keeps_correlations and not labels:
        reason = Reason("covariance_needs_units", value=covariance)
        raise SchemaError(reason, suggestions={"covariance": "full", "hidden": "50"})
    if kind.for_few_outputs and len(labels) > 2:
        reason = Reason("covariance_needs_one_output", value=covariance, classes=len(labels))
        raise SchemaError(reason, suggestions={"covariance": "neuron"})
    if kind.couples_layers and n_features > _MOST_FULL:
        reason = Reason("covariance_too_large", features=n_features, most=_MOST_FULL)
        raise SchemaError(reason, suggestions={"covariance": "diagonal", "buckets": ""})


def _fleet(n_features: int, target: Target, settings: Settings) -> FleetEstimator:
    """A model per key, unless something is asked for that it does not have."""
    numbers = isinstance(target, NumberTarget)
    if not numbers:
        _check_tracked(target, settings)
    n_classes = len(target.labels) if isinstance(target, ClassTarget) else 0
    for refused, reason in (
        (isinstance(target, CountTarget), "counts"),
        (n_classes > 2, f"{n_classes} classes"),
        (settings.is_network, "hidden layers"),
        (
            settings.covariance and not BELIEFS[settings.covariance].couples_layers,
            f"covariance={settings.covariance!r}",
        ),
        (settings.drift != 0.0, "drift"),
        (settings.prior_scale == "auto", "prior_scale='auto': the prior is learned from all keys"),
        (settings.weight is not None, "weights of rows"),
        (settings.activation not in (None, "linear" if numbers else "sigmoid"), f"activation={settings.activation!r}"),
    ):
        if refused:
            raise SchemaError(Reason("not_per_key", value=reason), setting="by")
    if n_features > MOST_PER_KEY:
        raise SchemaError(
            Reason("features_per_key", features=n_features, most=MOST_PER_KEY),
            setting="by",
            suggestions={"ignore": "a,b", "buckets": "8"},
        )
    prior: Any = settings.prior_scale
    noise: Any = "learn" if settings.noise is None else settings.noise / getattr(target, "scale", 1.0) ** 2
    return FleetEstimator(
        n_features,
        "linear" if numbers else "sigmoid",
        noise=noise,
        prior_scale=1.0 if prior == SAMPLE_PRIOR else prior.scales if isinstance(prior, Prior) else prior,
        intercept_scale=4.0 if settings.intercept_scale is None else settings.intercept_scale,
        outliers=settings.outliers,
        forgetting=settings.forgetting,
        intervals=settings.intervals,
    )


def _check_tracked(target: Target, settings: Settings) -> None:
    """Refuse calibrated probabilities in a model per key."""
    if settings.intervals != "model":
        raise SchemaError(Reason("intervals_of_classes", target.name, settings.intervals), setting="intervals")
