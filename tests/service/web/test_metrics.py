"""``/metrics``, read back by Prometheus' own parser."""

import re
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

import onepass
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
        ("onepass_scored_rows_total", 20.0),
        ("onepass_shadow_scored_rows_total", 10.0),
        ("onepass_predictions_waiting", 2.0),
        ("onepass_labels_waiting", 0.0),
        ("onepass_queue_length", 7.0),
        ("onepass_writable", 1.0),
        ("onepass_model_rows", 103.0),
        ("onepass_label_lag_seconds_sum", 1020.0),
        ("onepass_label_lag_seconds_count", 3.0),
        ("onepass_commit_seconds_count", 0.0),
        ("onepass_outlier_alarms_total", 1.0),
        ("onepass_set_aside_rows_total", 2.0),
        ("onepass_drift_alarms_total", 0.0),
    ],
)
def test_what_a_model_counts_is_told_under_its_name(served: Served, name: str, value: float) -> None:
    assert samples(served)[name, (("model", "price"),)] == value


@pytest.mark.parametrize(
    ("name", "metric", "value"),
    [
        ("onepass_score", "roc_auc", 0.75),
        ("onepass_shadow_score", "roc_auc", 0.5),
        ("onepass_score_sum_up_total", "log_likelihood", 30.0),
        ("onepass_score_sum_down_total", "log_likelihood", 2.0),
        ("onepass_score_sum_up_total", "coverage_95", 18.0),
        ("onepass_score_sum_down_total", "coverage_95", 0.0),
        ("onepass_shadow_score_sum_up_total", "log_likelihood", 4.0),
        ("onepass_shadow_score_sum_down_total", "log_likelihood", 1.0),
    ],
)
def test_every_metric_has_its_value_and_its_sums(served: Served, name: str, metric: str, value: float) -> None:
    assert samples(served)[name, (("metric", metric), ("model", "price"))] == value


def test_durations_are_histograms(served: Served) -> None:
    found = samples(served)
    buckets = {
        dict(labels)["le"]: value
        for (name, labels), value in found.items()
        if name == "onepass_label_lag_seconds_bucket"
    }
    assert buckets == {"10.0": 1.0, "100.0": 2.0, "+Inf": 3.0}


def test_what_a_model_does_not_count_is_not_told(served: Served) -> None:
    names = {name for name, _ in samples(served)}
    assert not {"onepass_decisions_total", "onepass_decisions_waiting"} & names


def test_the_version_and_the_process_are_told_and_nothing_is_told_to_be_created(served: Served) -> None:
    served.ask("GET", "/v1/models")
    found = samples(served)
    assert found["onepass_build_info", (("version", onepass.__version__),)] == 1.0
    assert not [name for name, _ in found if name.endswith("_created")]
    if Path("/proc/stat").exists():
        assert {"process_resident_memory_bytes", "process_cpu_seconds_total", "process_open_fds"} <= {
            name for name, _ in found
        }


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


def test_a_route_reads_as_in_the_documentation(served: Served) -> None:
    served.ask("DELETE", "/v1/models/price/predictions/a/b")
    routes = {dict(labels)["route"] for name, labels in samples(served) if name == "onepass_requests_total"}
    assert routes == {"/v1/models/{name}/predictions/{id}"}


PAGES = Path(__file__).parents[3] / "docs"


@pytest.mark.parametrize("page", ["how-to/production.md", "how-to/serving.md"])
def test_documented_metrics_are_there(page: str, served: Served) -> None:
    named = set(
        re.findall(r"\bonepass_[a-z0-9_]+", re.sub(r"onepass_[A-Za-z0-9]{20,}", "", (PAGES / page).read_text()))
    )
    text = served.ask("GET", "/metrics", "read").text
    families = {(family.name, family.type) for family in text_string_to_metric_families(text)}
    known = {
        name + end
        for name, kind in families
        for end in {"counter": ["_total"], "histogram": ["", "_bucket", "_sum", "_count"]}.get(kind, [""])
    }
    assert named
    assert named <= known


def test_two_services_in_a_process_count_on_their_own(served: Served, tmp_path_factory: pytest.TempPathFactory) -> None:
    other = Served(tmp_path_factory.mktemp("other"))
    served.ask("GET", "/v1/models")
    assert "/v1/models" in str(samples(served))
    assert "/v1/models" not in str(samples(other))


def test_readiness_is_told(served: Served) -> None:
    assert samples(served)["onepass_ready", ()] == 1.0
    served.state.is_ready = False
    assert samples(served)["onepass_ready", ()] == 0.0
