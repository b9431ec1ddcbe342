"""``/metrics``: what the models count, read when Prometheus asks, and what the service counts of its requests.

A registry per application, so that two services in one process don't mix.
"""

import math
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric, SummaryMetricFamily
from prometheus_client.registry import Collector

if TYPE_CHECKING:
    from onepass.service.state import ServiceState

__all__ = ["CONTENT_TYPE", "Metrics"]

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.015, 0.03, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)


class _Facts(NamedTuple):
    """What a model tells, read once per request of Prometheus."""

    status: dict[str, Any]
    counters: dict[str, float]
    metrics: dict[str, Any]
    queue: int


class _Series(NamedTuple):
    name: str
    words: str
    kind: type[CounterMetricFamily] | type[GaugeMetricFamily]
    value: Callable[[_Facts], Any]


def _counter(name: str, words: str, key: str) -> _Series:
    return _Series(name, words, CounterMetricFamily, lambda facts: facts.counters.get(key))


def _gauge(name: str, words: str, value: Callable[[_Facts], Any]) -> _Series:
    return _Series(name, words, GaugeMetricFamily, value)


_SERIES = (
    _counter("onepass_learned_rows", "Rows learned since the start.", "learned"),
    _counter("onepass_predicted_rows", "Rows predicted since the start.", "predicted"),
    _counter("onepass_refused_rows", "Rows refused since the start.", "refused"),
    _counter("onepass_drift_alarms", "Alarms that the stream has changed.", "drift_alarms"),
    _counter("onepass_outlier_alarms", "Rows that were taken for outliers.", "outlier_alarms"),
    _gauge("onepass_seen_rows", "Rows that the model has learned in all.", lambda facts: facts.status.get("n_seen")),
    _gauge("onepass_version", "Number of the last event that was learned.", lambda facts: facts.status.get("version")),
    _gauge("onepass_pending", "Predictions that wait for their label.", lambda facts: facts.status.get("pending")),
    _gauge("onepass_waiting", "Labels that wait for their prediction.", lambda facts: facts.status.get("waiting")),
    _gauge("onepass_queue_length", "Requests that wait to be learned.", lambda facts: facts.queue),
    _gauge("onepass_log_loss", "Mean negative log probability of labels.", lambda facts: facts.metrics.get("log_loss")),
    _gauge(
        "onepass_coverage", "Share of labels within the 95 % interval.", lambda facts: facts.metrics.get("coverage")
    ),
)

_SUMMARIES = (
    ("onepass_label_lag_seconds", "Seconds from a prediction to its label.", "label_lag"),
    ("onepass_fsync_seconds", "Seconds to bring events to the disk.", "fsync"),
)
"""Counted by a model as ``NAME_sum`` and ``NAME_count``."""


class _Models(Collector):
    def __init__(self, state: "ServiceState") -> None:
        self._state = state

    def collect(self) -> Iterable[Metric]:
        """Read all models once."""
        facts = {
            one.name: _Facts(one.status(), one.counters, one.metrics(), one.queue_length)
            for one in self._state.models()
        }
        yield GaugeMetricFamily("onepass_ready", "Whether all models are ready.", float(self._state.is_ready))
        for series in _SERIES:
            family = series.kind(series.name, series.words, labels=["model"])
            for name, fact in facts.items():
                value = series.value(fact)
                if value is not None and math.isfinite(value):
                    family.add_metric([name], float(value))
            yield family
        for name, words, key in _SUMMARIES:
            summary = SummaryMetricFamily(name, words, labels=["model"])
            for model, (_, counters, _, _) in facts.items():
                summary.add_metric([model], int(counters.get(f"{key}_count", 0)), counters.get(f"{key}_sum", 0.0))
            yield summary


class Metrics:
    """Counts requests, and tells what the models count."""

    def __init__(self, state: "ServiceState") -> None:
        self._registry = CollectorRegistry()
        self._registry.register(_Models(state))
        self._requests = Counter(
            "onepass_requests", "Requests answered.", ["route", "method", "status"], registry=self._registry
        )
        self._seconds = Histogram(
            "onepass_request_seconds", "Seconds until the answer.", ["route"], buckets=_SECONDS, registry=self._registry
        )
        self._counted: dict[tuple[str, str, int], tuple[Counter, Histogram]] = {}

    def count(self, route: str, method: str, status: int, seconds: float) -> None:
        """Note an answered request; ``route`` and ``method`` must be of a few known ones."""
        key = (route, method, status)
        found = self._counted.get(key)
        if found is None:
            found = (self._requests.labels(route, method, str(status)), self._seconds.labels(route))
            self._counted[key] = found
        found[0].inc()
        found[1].observe(seconds)

    def text(self) -> bytes:
        """Everything, as Prometheus reads it."""
        return generate_latest(self._registry)
