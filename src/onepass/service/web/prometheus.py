"""``/metrics``: what the models count, read when Prometheus asks, and what the service counts of its requests.

There is no registry of the whole process, so two services in one process don't mix.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, NamedTuple

from prometheus_client import ProcessCollector, generate_latest
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    InfoMetricFamily,
    Metric,
)
from prometheus_client.registry import Collector

from onepass import __version__
from onepass.service.counting import SECONDS, Durations, UpAndDown

if TYPE_CHECKING:
    from onepass.service.state import ServiceState
    from onepass.service.web.connections import Connections

__all__ = ["CONTENT_TYPE", "Metrics"]

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


class _Series(NamedTuple):
    """What it is called here, what it is, and what a model calls it."""

    name: str
    words: str
    key: str


_SINCE = "since this process has loaded the model"
_SCORED = "Rows whose prediction was scored before they were learned, or rewards of bandits"
_COUNTERS = (
    _Series("onepass_learned_rows", f"Rows, or rewards of bandits, learned {_SINCE}.", "learned"),
    _Series("onepass_predicted_rows", f"Rows answered with a prediction {_SINCE}.", "predicted"),
    _Series("onepass_refused_rows", f"Sound rows that could not be learned, e.g. by overflow, {_SINCE}.", "refused"),
    _Series(
        "onepass_set_aside_rows",
        f"Rows, or rewards of bandits, counted but not learned, as their target was absurdly far off, {_SINCE}.",
        "set_aside",
    ),
    _Series("onepass_scored_rows", f"{_SCORED}, {_SINCE}.", "scored"),
    _Series("onepass_shadow_scored_rows", f"The same of the candidate, {_SINCE}.", "shadow_scored"),
    _Series("onepass_decisions", f"Decisions that a bandit has made {_SINCE}.", "decisions"),
    _Series("onepass_outlier_alarms", f"Rows taken for outliers {_SINCE}.", "outlier_alarms"),
    _Series("onepass_drift_alarms", f"Times that the stream has changed {_SINCE}.", "change_alarms"),
)
_GAUGES = (
    _Series("onepass_model_rows", "Rows that the model has learned in its life; a rollback lowers it.", "rows"),
    _Series("onepass_predictions_waiting", "Predictions that wait for their label.", "predictions_waiting"),
    _Series("onepass_labels_waiting", "Labels that wait for their prediction.", "labels_waiting"),
    _Series("onepass_decisions_waiting", "Decisions that wait for their reward.", "decisions_waiting"),
    _Series(
        "onepass_overdue_waiting",
        "Predictions, labels and decisions past --keep-pending by a clock that jumped; kept until --expire-overdue.",
        "overdue",
    ),
    _Series("onepass_queue_length", "Requests that wait to be learned.", "queue"),
    _Series(
        "onepass_writable",
        "1 if the model can learn, 0 if not, e.g. because the disk is full.",
        "writable",
    ),
)
_HISTOGRAMS = (
    _Series(
        "onepass_label_lag_seconds",
        "Seconds from a prediction to its label, or from a decision to its reward.",
        "label_lag",
    ),
    _Series("onepass_commit_seconds", "Seconds of a transaction, until its events are on the disk.", "commit"),
)


def _numbers(
    kind: type[CounterMetricFamily] | type[GaugeMetricFamily],
    series: tuple[_Series, ...],
    models: Mapping[str, Mapping[str, float]],
) -> Iterator[Metric]:
    for name, words, key in series:
        family = kind(name, words, labels=["model"])
        for model, numbers in models.items():
            if key in numbers:
                family.add_metric([model], numbers[key])
        yield family


def _scores(name: str, of: str, models: Mapping[str, Mapping[str, float]]) -> Metric:
    """Every metric that a model is scored with."""
    family = GaugeMetricFamily(name, f"Metrics{of} over all rows that were scored.", labels=["model", "metric"])
    for model, values in models.items():
        for metric, value in values.items():
            family.add_metric([model, metric], value)
    return family


def _score_sums(name: str, of: str, models: Mapping[str, Mapping[str, UpAndDown]]) -> Iterator[Metric]:
    """For every metric that is a mean over rows, two counters: their difference is the sum over the rows."""
    for direction in UpAndDown._fields:
        words = f"How far the sums that the metrics{of} are the means of have gone {direction} {_SINCE}."
        family = CounterMetricFamily(f"{name}_{direction}", words, labels=["model", "metric"])
        for model, sums in models.items():
            for metric, both in sums.items():
                family.add_metric([model, metric], getattr(both, direction))
        yield family


def _histogram(name: str, words: str, label: str, found: Mapping[str, Durations]) -> Metric:
    family = HistogramMetricFamily(name, words, labels=[label])
    for value, durations in found.items():
        *buckets, (_, count) = durations.cumulative()
        family.add_metric([value], [*((str(bound), n) for bound, n in buckets), ("+Inf", count)], durations.sum)
    return family


class _Collected(Collector):
    """Metrics that were collected already."""

    def __init__(self, families: Iterable[Metric]) -> None:
        self._families = families

    def collect(self) -> Iterable[Metric]:
        return self._families


class Metrics:
    """Counts requests, and tells what the models and the server count."""

    def __init__(self, state: "ServiceState", connections: "Connections | None" = None) -> None:
        self._state, self._connections = state, connections
        self._requests: dict[tuple[str, str, str], int] = {}
        self._seconds: dict[str, Durations] = {}
        self._process = ProcessCollector(registry=None)

    def count(self, route: str, method: str, status: int, seconds: float) -> None:
        """Note an answered request; ``route`` and ``method`` must be of a few known ones."""
        key = (route, method, str(status))
        self._requests[key] = self._requests.get(key, 0) + 1
        if route not in self._seconds:
            self._seconds[route] = Durations(SECONDS)
        self._seconds[route].add(seconds)

    def text(self, sees: Callable[[str], bool]) -> bytes:
        """Everything, as Prometheus reads it, of the models whose name somebody sees."""
        return generate_latest(_Collected([*self._collected(sees), *self._process.collect()]))

    def _collected(self, sees: Callable[[str], bool]) -> Iterator[Metric]:
        models = [model for model in self._state.models() if sees(model.name)]
        yield InfoMetricFamily("onepass_build", "Version of the service.", {"version": __version__})
        yield GaugeMetricFamily("onepass_ready", "Whether all models are ready.", float(self._state.is_ready))
        counters = {model.name: model.counters for model in models}
        yield from _numbers(CounterMetricFamily, _COUNTERS, counters)
        yield _scores("onepass_score", "", {model.name: model.scores for model in models})
        yield _scores("onepass_shadow_score", " of candidates", {model.name: model.shadow_scores for model in models})
        yield from _score_sums("onepass_score_sum", "", {model.name: model.score_sums for model in models})
        shadows = {model.name: model.shadow_score_sums for model in models}
        yield from _score_sums("onepass_shadow_score_sum", " of candidates", shadows)
        yield from _numbers(GaugeMetricFamily, _GAUGES, counters)
        for name, words, key in _HISTOGRAMS:
            yield _histogram(name, words, "model", {model.name: model.durations[key] for model in models})
        requests = CounterMetricFamily("onepass_requests", "Requests answered.", labels=["route", "method", "status"])
        for labels, count in self._requests.items():
            requests.add_metric(labels, count)
        yield requests
        yield _histogram("onepass_request_seconds", "Seconds until the answer.", "route", self._seconds)
        if self._connections is not None:
            yield GaugeMetricFamily("onepass_connections", "Connections that are open.", len(self._connections))
            closed = CounterMetricFamily("onepass_refused_connections", "Connections refused.", labels=["reason"])
            for reason, count in self._connections.refused.items():
                closed.add_metric([reason], count)
            yield closed
