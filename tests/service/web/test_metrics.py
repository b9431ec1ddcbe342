"""``/metrics``, read back by Prometheus' own parser."""

import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.service.web.conftest import Served


def samples(served: Served) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
    text = served.ask("GET", "/metrics", "read").text
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("onepass_learned_rows_total", 3.0),
        ("onepass_predicted_rows_total", 5.0),
        ("onepass_refused_rows_total", 1.0),
        ("onepass_pending", 2.0),
        ("onepass_queue_length", 7.0),
        ("onepass_label_lag_seconds_sum", 20.0),
        ("onepass_label_lag_seconds_count", 4.0),
        ("onepass_fsync_seconds_sum", 0.5),
        ("onepass_fsync_seconds_count", 6.0),
        ("onepass_outlier_alarms_total", 1.0),
        ("onepass_drift_alarms_total", 0.0),
        ("onepass_log_loss", 1.5),
        ("onepass_coverage_95", 0.9),
    ],
)
def test_what_a_model_counts_is_told_under_its_name(served: Served, name: str, value: float) -> None:
    assert samples(served)[name, (("model", "price"),)] == value


def test_a_model_without_scores_has_none_here(served: Served) -> None:
    served.model.metrics = lambda: {"rows": 0, "scores": {"log_loss": float("nan")}}  # type: ignore[method-assign]
    assert not {"onepass_log_loss", "onepass_coverage_95"} & {name for name, _ in samples(served)}


def test_requests_are_counted_by_route_and_status(served: Served) -> None:
    for name in ("price", "price", "none"):
        served.ask("POST", f"/v1/models/{name}/predict", json={"x": {}})
    served.ask("BREW", "/anything/at/all", None)
    found = samples(served)
    route = ("route", "/v1/models/{name}/predict")
    assert found["onepass_requests_total", (("method", "POST"), route, ("status", "200"))] == 2.0
    assert found["onepass_requests_total", (("method", "POST"), route, ("status", "404"))] == 1.0
    assert found["onepass_requests_total", (("method", "other"), ("route", "other"), ("status", "404"))] == 1.0
    assert found["onepass_request_seconds_count", (route,)] == 3.0


def test_two_services_in_a_process_count_on_their_own(served: Served, tmp_path_factory: pytest.TempPathFactory) -> None:
    other = Served(tmp_path_factory.mktemp("other"))
    served.ask("GET", "/v1/models")
    assert "/v1/models" in str(samples(served))
    assert "/v1/models" not in str(samples(other))


def test_readiness_is_told(served: Served) -> None:
    assert samples(served)["onepass_ready", ()] == 1.0
    served.state.is_ready = False
    assert samples(served)["onepass_ready", ()] == 0.0
