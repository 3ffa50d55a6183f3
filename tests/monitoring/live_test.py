"""A real Prometheus with our rules on a real daemon under load answers all that deploy/ asks."""

import json
import re
import shutil

import deployed
import grpc
import pytest
import scenario
import yaml

pytestmark = [
    pytest.mark.timeout(600),
    pytest.mark.skipif(not shutil.which("prometheus"), reason=deployed.NO_PROMETHEUS),
]
SCALER = next(made["spec"] for made in yaml.safe_load_all(
    (deployed.ROOT / "deploy/kubernetes/overlays/replicas/scaling.yaml").read_text())
    if made["kind"] == "HorizontalPodAutoscaler")
DASHBOARD = json.loads((deployed.GRAFANA / "dashboard.json").read_text())
QUERIES = [pytest.param(target["expr"], id=f"{panel['title']}-{target['refId']}")
           for panel in DASHBOARD["panels"] for target in panel.get("targets", [])]
# The tiny model loads faster than Prometheus scrapes and is never slow; only a crash leaves orphans.
# Whatever a reload refuses is refused in tests/integration.
MAY_BE_ZERO = ("docmem_loading_bytes", "first_token_slow", "docmem_orphans_collected_total",
               "reload_failures_total", "docmem_audit_lines_lost_total")
# Labels that Prometheus adds, and kinds that need other hardware or accidents.
ADDED_LABELS = {"job", "instance", *scenario.POD}
FREE_VALUES = {"code": {code.name for code in grpc.StatusCode}, "tier": {"disk", "host", "device"}}


@pytest.fixture(scope="module")
def prometheus(tmp_path_factory):
    with scenario.played(tmp_path_factory.mktemp("monitoring")) as prometheus:
        yield prometheus


@pytest.mark.parametrize("query", QUERIES)
def test_every_panel_query_answers_with_data(prometheus, query):
    history = prometheus.history(query)
    assert history, "no series, or none with a finite value"
    values = [value for _, series in history for _, value in series]
    assert any(name in query for name in MAY_BE_ZERO) or max(values) > 0


def test_all_rules_are_evaluated_without_errors(prometheus):
    groups = prometheus.get("rules")["groups"]
    found = {rule["name"]: (rule["health"], rule.get("lastError"))
             for group in groups for rule in group["rules"]}
    assert found == {deployed.name_of(rule): ("ok", None) for rule in deployed.rules()}


@pytest.mark.parametrize("record", [r["record"] for r in deployed.rules() if "record" in r])
def test_every_recorded_metric_has_data(prometheus, record):
    assert prometheus.history(record)


def test_the_autoscaler_is_told_the_open_questions_of_each_pod(prometheus):
    [rule] = yaml.safe_load((deployed.PROMETHEUS / "adapter.yaml").read_text())["rules"]
    series = re.match(r"[\w:]+", rule["seriesQuery"])[0]
    [rename] = [rule["name"]["as"] for found in [re.match(rule["name"]["matches"], series)] if found]
    assert rename == SCALER["metrics"][0]["pods"]["metric"]["name"]
    assert prometheus.history(rule["seriesQuery"]), "the adapter would find no series"
    # As the adapter fills in its template for one pod.
    matchers = ",".join(f'{label}="{value}"' for label, value in scenario.POD.items())
    query = rule["metricsQuery"].replace("<<.Series>>", series)
    query = query.replace("<<.LabelMatchers>>", matchers).replace("<<.GroupBy>>", "pod")
    [(labels, told)] = prometheus.history(query)
    assert labels == {"pod": scenario.POD["pod"]}
    # All slots taken and one that waits behind them.
    assert max(value for _, value in told) == scenario.SEQUENCES + scenario.QUEUE


def test_damage_fires_its_alerts_and_no_other_fires(prometheus):
    active = prometheus.get("alerts")["alerts"]
    firing = {alert["labels"]["alertname"] for alert in active if alert["state"] == "firing"}
    assert firing == {"DocMemQuarantine", "DocMemLoadsFail"}


def test_series_of_the_unit_tests_have_labels_of_the_real_ones(prometheus):
    # Else an alert could pass its unit tests and never fire.
    for name, labels in set((name, tuple(labels.items()))
                            for name, labels in deployed.series_of_unit_tests()):
        known = {label: value for label, value in labels if label not in ADDED_LABELS}
        series = [labels for labels, _ in prometheus.history(name)]
        assert {frozenset(one.keys() - ADDED_LABELS - {"__name__"}) for one in series} == {
            frozenset(known)}, name
        for label, value in known.items():
            real = {one[label] for one in series} | FREE_VALUES.get(label, set())
            assert value in real, f"{name}: {label}={value}"


def test_methods_and_codes_that_rules_select_exist(prometheus):
    methods = {labels["method"] for labels, _ in prometheus.history("docmem_requests_total")}
    for rule in deployed.rules():
        for label, values in re.findall(r'\b(method|code)=~?"([^"]*)"', rule["expr"]):
            real = methods if label == "method" else FREE_VALUES["code"]
            assert set(values.split("|")) <= real, rule["expr"]
