"""Prints the Grafana dashboard: make_dashboard.py > dashboard.json. Change it here, not there."""

import json
from dataclasses import dataclass, field

SOURCE = {"type": "prometheus", "uid": "${datasource}"}
WIDTH, PANEL_WIDTH, PANEL_HEIGHT = 24, 8, 8


@dataclass
class Panel:
    title: str
    unit: str  # Grafana's name of it: s, bytes, ops (per second), short, percentunit
    queries: dict  # legend → PromQL
    about: str = ""
    stacked: bool = False


@dataclass
class Row:
    title: str
    panels: list = field(default_factory=list)


def of(metric, *matchers):
    labels = ", ".join(['instance=~"$instance"', *matchers])
    return f"{metric}{{{labels}}}"


def per_second(metric, *matchers):
    return f"rate({of(metric, *matchers)}[$__rate_interval])"


def total(by, series):
    return f"sum by ({by}) ({series})" if by else f"sum ({series})"


def quantiles(histogram, by="", shown=(0.5, 0.95, 0.99)):
    labels = ", ".join(filter(None, ["le", by]))
    series = total(labels, per_second(histogram + "_bucket"))
    legend = f" {{{{{by}}}}}" if by else ""
    return {f"p{round(q * 100)}{legend}": f"histogram_quantile({q}, {series})" for q in shown}


def mean(histogram):
    values, count = (per_second(histogram + part) for part in ("_sum", "_count"))
    return f"{total('', values)} / {total('', count)}"


QUESTIONS = Row("Requests", [
    Panel("Replicas that are up", "short", {"{{instance}}": of("up", 'job="docmem"')}),
    Panel("Requests by code", "ops", {
        "{{code}}": total("code", per_second("docmem_requests_total"))}, stacked=True),
    Panel("Requests that failed", "ops", {
        "{{method}} {{code}}": total(
            "method, code", per_second("docmem_requests_total", 'code!="OK"'))}),
    Panel("Questions under way", "short", {
        "running": total("", of("docmem_requests_running")),
        "waiting": total("", of("docmem_requests_waiting"))}, stacked=True),
    Panel("Time in the queue", "s", quantiles("docmem_queue_seconds"),
          "Of questions that were answered."),
    Panel("Time to the first token", "s", quantiles("docmem_first_token_seconds"),
          "From admission, so with the time in the queue."),
    Panel("Time between two tokens", "s", quantiles("docmem_inter_token_seconds")),
    Panel("Duration of requests", "s", quantiles("docmem_request_seconds", "method", (0.95,))),
    Panel("Answers later than the objective", "percentunit", {
        "5 minutes": "docmem:first_token_slow:ratio_rate5m",
        "1 hour": "docmem:first_token_slow:ratio_rate1h",
        "3 days": "docmem:first_token_slow:ratio_rate3d"},
          "Recorded over all replicas; allowed are 1 %."),
])

ENGINE = Row("Engine", [
    Panel("Tokens", "ops", {
        "prompt": total("", per_second("docmem_tokens_in_total")),
        "answer": total("", per_second("docmem_tokens_out_total"))}),
    Panel("Token rows of a step", "short", {"mean": mean("docmem_step_rows")},
          "How full the batch is."),
    Panel("Duration of a step", "s", quantiles("docmem_step_seconds")),
])

MEMORY = Row("Loaded memories", [
    Panel("Loaded", "bytes", {
        "{{tier}} {{kind}}": total(
            "tier, kind", of("docmem_resident_bytes", 'tier!="disk"')),
        "{{tier}} budget": total("tier", of("docmem_budget_bytes", 'tier!="disk"'))},
          "Kinds together stay within their tier's budget."),
    Panel("Can't be unloaded", "bytes", {
        "{{tier}} pinned": total("tier", of("docmem_pinned_bytes")),
        "{{tier}} leased": total("tier", of("docmem_leased_bytes")),
        "{{tier}} loading": total("tier", of("docmem_loading_bytes"))}),
    Panel("Items loaded", "short", {
        "{{tier}} {{kind}}": total(
            "tier, kind", of("docmem_resident_items", 'tier!="disk"'))}),
    Panel("Hits among look-ups", "percentunit", {
        "{{tier}} {{kind}}": total("tier, kind", per_second("docmem_hits_total"))
        + " / " + total("tier, kind", per_second("docmem_lookups_total"))}),
    Panel("Loads", "ops", {
        "{{tier}} {{result}}": total("tier, result", per_second("docmem_loads_total"))}),
    Panel("Unloads", "ops", {
        "{{tier}} {{reason}}": total("tier, reason", per_second("docmem_unloads_total"))},
          "room: pushed out by another item."),
    Panel("Duration of loads", "s", quantiles("docmem_load_seconds", "source", (0.5, 0.95))),
])

STORE = Row("Stored files", [
    Panel("Bytes on disk", "bytes", {
        "{{kind}}": total("kind", of("docmem_resident_bytes", 'tier="disk"'))}, stacked=True),
    Panel("Disk budget used", "percentunit", {"{{instance}}": of(
        "docmem:budget_used:ratio", 'tier="disk"')}, "Recorded."),
    Panel("Items on disk", "short", {
        "{{kind}}": total("kind", of("docmem_resident_items", 'tier="disk"'))}),
    Panel("Damaged and orphaned", "short", {
        "quarantined {{what}}": total("what", of("docmem_quarantined_items")),
        "orphans deleted": total("", of("docmem_orphans_collected_total"))}),
])

BUILDS = Row("Ingestion and training", [
    Panel("Documents and caches built", "ops", {
        "builds": total("", per_second("docmem_ingest_seconds_count", 'phase="publish"'))}),
    Panel("Duration of builds by phase", "s", quantiles("docmem_ingest_seconds", "phase", (0.95,))),
    Panel("Tokens evicted", "ops", {
        "tokens": total("", per_second("docmem_evicted_tokens_total"))},
          "Per layer and KV head."),
    Panel("Training steps", "ops", {
        "{{instance}}": per_second("docmem_training_steps_total")}),
    Panel("Training loss", "short", {
        "{{instance}}": of("docmem_training_loss")
        + " and " + of("docmem_training_steps_total") + " > 0"},
          "Of the last step, in nats per token."),
    Panel("Versions and models", "short", {
        "docmemd {{version}}": total("version", of("docmem_build_info")),
        "{{name}} {{dtype}} {{weights}}": total(
            "name, dtype, weights", of("docmem_model_info"))}, "Replicas of each."),
])

ACCESS = Row("Tokens and certificates", [
    Panel("Until the certificate expires", "s", {
        "{{instance}}": of("docmem_tls_certificate_expiry_timestamp_seconds") + " - time()"},
          "Empty without TLS."),
    Panel("Changed files that weren't taken", "short", {
        "certificates": total("", of("docmem_tls_reload_failures_total")),
        "token files": total("", of("docmem_token_reload_failures_total"))},
          "What was read before stays in force."),
    Panel("Audit lines lost", "short", {
        "{{instance}}": of("docmem_audit_lines_lost_total")}),
])

ROWS = [QUESTIONS, ENGINE, MEMORY, STORE, BUILDS, ACCESS]


def panel_json(panel, number, x, y):
    stacking = {"mode": "normal" if panel.stacked else "none"}
    targets = [
        {"refId": chr(ord("A") + i), "datasource": SOURCE, "expr": expr, "legendFormat": legend}
        for i, (legend, expr) in enumerate(panel.queries.items())
    ]
    return {
        "id": number,
        "type": "timeseries",
        "title": panel.title,
        "description": panel.about,
        "datasource": SOURCE,
        "gridPos": {"x": x, "y": y, "w": PANEL_WIDTH, "h": PANEL_HEIGHT},
        "fieldConfig": {
            "defaults": {
                "unit": panel.unit,
                "min": 0,
                "custom": {"fillOpacity": 10, "showPoints": "never", "stacking": stacking},
            },
            "overrides": [],
        },
        "options": {"tooltip": {"mode": "multi"}},
        "targets": targets,
    }


def panels_json():
    made, y = [], 0
    for row in ROWS:
        place = {"x": 0, "y": y, "w": WIDTH, "h": 1}
        made.append({"id": len(made) + 1, "type": "row", "title": row.title, "collapsed": False,
                     "gridPos": place, "panels": []})
        y += 1
        for start in range(0, len(row.panels), WIDTH // PANEL_WIDTH):
            for i, panel in enumerate(row.panels[start : start + WIDTH // PANEL_WIDTH]):
                made.append(panel_json(panel, len(made) + 1, i * PANEL_WIDTH, y))
            y += PANEL_HEIGHT
    return made


def dashboard():
    return {
        "uid": "docmem-overview",
        "title": "DocMem",
        "tags": ["docmem"],
        "schemaVersion": 36,
        "editable": False,
        "refresh": "30s",
        "time": {"from": "now-1h", "to": "now"},
        "templating": {"list": [
            {"name": "datasource", "type": "datasource", "query": "prometheus"},
            {"name": "instance", "type": "query", "datasource": SOURCE, "refresh": 2,
             "query": {"query": "label_values(docmem_build_info, instance)", "refId": "instances"},
             "includeAll": True, "multi": True, "allValue": ".*",
             "current": {"text": ["All"], "value": ["$__all"]}},
        ]},
        "panels": panels_json(),
    }


if __name__ == "__main__":
    print(json.dumps(dashboard(), indent=1))
