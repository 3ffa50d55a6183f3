"""Recording and alerting rules: promtool's unit tests, and what promtool can't know."""

import shutil
import subprocess

import deployed
import pytest

needs_promtool = pytest.mark.skipif(not shutil.which("promtool"), reason=deployed.NO_PROMETHEUS)


def promtool(*arguments):
    return subprocess.run(["promtool", *map(str, arguments)], capture_output=True, text=True,
                          timeout=300)


@needs_promtool
def test_configuration_and_rules_are_accepted():
    done = promtool("check", "config", deployed.PROMETHEUS / "prometheus.yaml")
    assert done.returncode == 0, done.stdout + done.stderr
    assert all(f"Checking {file}" in done.stdout for file in deployed.RULE_FILES)


@needs_promtool
def test_the_unit_tests_pass():
    assert len(deployed.UNIT_TESTS) > 1
    done = promtool("test", "rules", *deployed.UNIT_TESTS)
    assert done.returncode == 0, done.stdout + done.stderr


def test_each_alert_is_seen_to_fire_and_to_be_silent_and_each_record_is_read():
    checks = [check for test in deployed.unit_tests() for check in test.get("alert_rule_test", [])]
    fire = {check["alertname"] for check in checks if check["exp_alerts"]}
    silent = {check["alertname"] for check in checks if not check["exp_alerts"]}
    assert fire == silent == {rule["alert"] for rule in deployed.alerts()}
    read = {name for test in deployed.unit_tests() for check in test.get("promql_expr_test", [])
            for name in deployed.metrics_in(check["expr"])}
    assert read == {rule["record"] for rule in deployed.rules() if "record" in rule}


def test_rules_and_their_unit_tests_name_only_metrics_that_exist():
    existing = deployed.metrics_that_exist()
    for rule in deployed.rules():
        used = deployed.metrics_in(rule["expr"])
        assert used and used <= existing, deployed.name_of(rule)
    assert {name for name, _ in deployed.series_of_unit_tests()} <= existing


def test_names_are_unique():
    names = [deployed.name_of(rule) for rule in deployed.rules()]
    assert len(set(names)) == len(names)
