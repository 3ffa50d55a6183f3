"""The dashboard is what its script makes, and shows every metric of the daemon, no other."""

import json
import subprocess
import sys

import deployed

DASHBOARD = deployed.GRAFANA / "dashboard.json"


def panels():
    return json.loads(DASHBOARD.read_text())["panels"]


def queries():
    return [target["expr"] for panel in panels() for target in panel.get("targets", [])]


def test_the_committed_json_is_what_the_script_gives():
    made = subprocess.run([sys.executable, "-B", deployed.GRAFANA / "make_dashboard.py"],
                          check=True, capture_output=True, text=True).stdout
    assert DASHBOARD.read_text() == made, (
        "run: deploy/grafana/make_dashboard.py > deploy/grafana/dashboard.json")


def test_queries_name_only_metrics_that_exist():
    existing = deployed.metrics_that_exist()
    for query in queries():
        used = deployed.metrics_in(query)
        assert used and used <= existing, query


def test_every_metric_of_the_daemon_has_a_panel():
    shown = set().union(*map(deployed.metrics_in, queries()))
    whole = {name.removesuffix("_bucket") for name in deployed.declared_metrics()
             if not name.endswith(("_sum", "_count"))}
    parts = ("", "_bucket", "_sum", "_count")
    assert [name for name in sorted(whole) if not shown & {name + part for part in parts}] == []


def test_panels_dont_overlap_and_their_titles_differ():
    taken, titles = set(), set()
    for panel in panels():
        place = panel["gridPos"]
        cells = {(place["x"] + i, place["y"] + j)
                 for i in range(place["w"]) for j in range(place["h"])}
        assert not cells & taken and place["x"] + place["w"] <= 24, panel["title"]
        assert panel["title"] not in titles, panel["title"]
        taken |= cells
        titles.add(panel["title"])
    ids = [panel["id"] for panel in panels()]
    assert len(set(ids)) == len(ids)
