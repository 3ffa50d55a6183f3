"""Reads what deploy/ ships for Prometheus and Grafana, and which metrics the daemon declares."""

import re
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parents[2]
PROMETHEUS = ROOT / "deploy/prometheus"
GRAFANA = ROOT / "deploy/grafana"
RUNBOOK = ROOT / "docs/runbook.md"
UNIT_TESTS = sorted(PROMETHEUS.glob("*_test.yaml"))
RULE_FILES = sorted(PROMETHEUS.glob("*.rules.yaml"))
NO_PROMETHEUS = "needs Prometheus: apt-get install --no-install-recommends prometheus"


def rules():
    return [rule for file in RULE_FILES
            for group in yaml.safe_load(file.read_text())["groups"] for rule in group["rules"]]


def alerts():
    return [rule for rule in rules() if "alert" in rule]


def name_of(rule):
    return rule.get("alert") or rule["record"]


def declared_metrics():
    """Of server/telemetry, as they are queried: histograms by their three parts."""
    source = (ROOT / "server/telemetry/metrics.cc").read_text()
    found = re.findall(r'(Counters|Gauges|Histograms)\(registry,\s*"(\w+)"', source)
    parts = {"Histograms": ("_bucket", "_sum", "_count")}
    return {name + part for kind, name in found for part in parts.get(kind, [""])}


def metrics_that_exist():
    """What a query may name: the daemon's metrics, recorded ones, and Prometheus' own `up`."""
    return declared_metrics() | {name_of(rule) for rule in rules()} | {"up"}


def metrics_in(query):
    without_labels = re.sub(r"\{[^}]*\}|\[[^]]*\]", "", query)
    return set(re.findall(r"\b(?:docmem[_:][\w:]*|up)\b", without_labels))


def unit_tests():
    return [test for file in UNIT_TESTS for test in yaml.safe_load(file.read_text())["tests"]]


def series_of_unit_tests():
    """(metric, labels) of all input series."""
    for test in unit_tests():
        for entry in test["input_series"]:
            name, _, labels = entry["series"].partition("{")
            yield name, dict(re.findall(r'(\w+)="([^"]*)"', labels))
