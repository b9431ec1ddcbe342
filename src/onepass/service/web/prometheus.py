"""``/metrics``: what the models count, read when Prometheus asks, and what the service counts of its requests.

A registry per application, so that two services in one process don't mix.
"""

import math
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, NamedTuple

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric, SummaryMetricFamily
from prometheus_client.registry import Collector

if TYPE_CHECKING:
    from onepass.service.host import HostedModel
    from onepass.service.state import ServiceState

__all__ = ["CONTENT_TYPE", "Metrics"]

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.015, 0.03, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)


class _Series(NamedTuple):
    """Something that a model counts, and under which name."""

    name: str
    words: str
    key: str
    kind: type[CounterMetricFamily] | type[GaugeMetricFamily] = GaugeMetricFamily


_COUNTED = (
    _Series("onepass_learned_rows", "Rows that the model has learned.", "learned", CounterMetricFamily),
    _Series("onepass_predicted_rows", "Rows predicted since the start.", "predicted", CounterMetricFamily),
    _Series(
        "onepass_refused_rows",
        "Sound rows that could not be learned, e.g. by overflow.",
        "refused",
        CounterMetricFamily,
    ),
    _Series("onepass_outlier_alarms", "Rows taken for outliers.", "outlier_alarms", CounterMetricFamily),
    _Series("onepass_drift_alarms", "Times that the stream has changed.", "change_alarms", CounterMetricFamily),
    _Series("onepass_pending", "Predictions that wait for their label.", "pending"),
    _Series("onepass_waiting", "Labels that wait for their prediction.", "waiting"),
    _Series("onepass_queue_length", "Requests that wait to be learned.", "queue"),
)
_SCORED = (
    _Series("onepass_log_loss", "Mean negative log probability of targets before they were learned.", "log_loss"),
    _Series("onepass_coverage_95", "Share of targets within their 95 % interval.", "coverage_95"),
)
_SUMMARIES = (
    ("onepass_label_lag_seconds", "Seconds from a prediction to its label.", "labels", "label_lag_seconds_sum"),
    ("onepass_fsync_seconds", "Seconds to bring events to the disk.", "commits", "commit_seconds_sum"),
)
"""Name, words, and what a model calls the count and the sum."""


def _families(series: Iterable[_Series], models: Mapping[str, Mapping[str, float]]) -> Iterator[Metric]:
    for one in series:
        family = one.kind(one.name, one.words, labels=["model"])
        for name, numbers in models.items():
            value = numbers.get(one.key, math.nan)
            if math.isfinite(value):
                family.add_metric([name], value)
        yield family


def _scores(model: "HostedModel") -> dict[str, float]:
    found = dict(model.metrics().get("scores", {}))
    if "log_likelihood" in found:  # of numbers; classes have their log-loss
        found["log_loss"] = -found["log_likelihood"]
    return found


class _Models(Collector):
    def __init__(self, state: "ServiceState") -> None:
        self._state = state

    def collect(self) -> Iterator[Metric]:
        """Read all models once."""
        counters = {model.name: model.counters for model in self._state.models()}
        yield GaugeMetricFamily("onepass_ready", "Whether all models are ready.", float(self._state.is_ready))
        yield from _families(_COUNTED, counters)
        yield from _families(_SCORED, {model.name: _scores(model) for model in self._state.models()})
        for name, words, count, total in _SUMMARIES:
            summary = SummaryMetricFamily(name, words, labels=["model"])
            for model, numbers in counters.items():
                summary.add_metric([model], int(numbers.get(count, 0.0)), numbers.get(total, 0.0))
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
