"""Metrics, logs, health and reflection; and that no text of users is ever in them."""

import json
import re
import shutil
import subprocess
import time
import urllib.error
import urllib.request

import grpc
import pytest
from client import ask_request, refusal, refused
from daemon import SERVING, TIME_SLACK, scaled
from folders import CONFIG, adapter
from google.protobuf import descriptor_pb2
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc
from stubs import DESCRIPTORS, v1
from texts import document

BY_KIND = ["resident_bytes", "resident_items", "pinned_bytes", "leased_bytes", "loading_bytes",
           "lookups_total", "hits_total"]
HISTOGRAMS = ["load_seconds", "queue_seconds", "first_token_seconds", "inter_token_seconds",
              "request_seconds", "step_rows", "step_seconds", "ingest_seconds"]


@pytest.fixture(scope="module")
def used(daemon):
    """A daemon that has done one of everything."""
    client = daemon.client()
    client.ingest(document("d"), "d", pin=True)
    client.upload("d", adapter())
    client.ask("d")
    client.score("d", "a")
    client.build("d", ratio_ppm=[0])
    refusal(lambda: client.ask("none"))
    return daemon


def test_metrics_have_the_contracts_names(used):
    samples = used.metrics()
    text = used.metrics_text()
    for tier in ("disk", "device"):
        assert samples[f'docmem_budget_bytes{{tier="{tier}"}}'] > 0
    for kind in ("cache", "adapter"):
        for name in BY_KIND:
            assert f'docmem_{name}{{kind="{kind}",tier="device"}}' in samples, name
        assert samples[f'docmem_loads_total{{kind="{kind}",result="ok",tier="device"}}'] == 1
        assert samples[f'docmem_hits_total{{kind="{kind}",tier="device"}}'] >= 1
        assert samples[f'docmem_resident_bytes{{kind="{kind}",tier="disk"}}'] > 0
    assert samples['docmem_resident_bytes{kind="text",tier="disk"}'] > 0
    for name in HISTOGRAMS:
        assert re.search(rf"^docmem_{name}_bucket{{", text, re.MULTILINE), name
        assert f"# TYPE docmem_{name} histogram" in text
    assert samples["docmem_tokens_out_total"] >= 24 and samples["docmem_tokens_in_total"] > 0
    assert samples["docmem_evicted_tokens_total"] > 0
    assert samples['docmem_requests_total{code="OK",method="Query.Ask"}'] == 1
    assert samples['docmem_requests_total{code="NOT_FOUND",method="Query.Ask"}'] == 1
    assert samples["docmem_requests_running"] == samples["docmem_requests_waiting"] == 0
    assert any(name.startswith("docmem_build_info{version=") for name in samples)
    assert any("docmem_model_info{" in name and 'name="tiny-llama"' in name for name in samples)
    assert "# HELP docmem_requests_total " in text


def test_metrics_agree_with_status_and_residents(used):
    client = used.client()
    samples = used.metrics()
    for item_kind, name in ((v1.ARTIFACT_KIND_CACHE, "cache"), (v1.ARTIFACT_KIND_ADAPTER,
                                                               "adapter")):
        items = [item for item in client.residents() if item.kind == item_kind]
        labels = f'{{kind="{name}",tier="device"}}'
        assert samples[f"docmem_resident_bytes{labels}"] == sum(item.bytes for item in items)
        assert samples[f"docmem_resident_items{labels}"] == len(items)
        assert samples[f"docmem_pinned_bytes{labels}"] == sum(
            item.bytes for item in items if item.pinned)
    disk = next(tier for tier in client.status().tiers if tier.tier == v1.TIER_DISK)
    assert sum(samples[f'docmem_resident_bytes{{kind="{kind}",tier="disk"}}']
               for kind in ("text", "cache", "adapter")) == disk.used_bytes


def test_every_code_of_a_request_is_counted(make_daemon, patient):
    daemon = make_daemon(model=patient).start()  # on it no answer ends before it is aborted
    client = daemon.client()
    client.ingest(document("d"), "d")
    before = daemon.metrics()
    stream = client.queries.Ask(ask_request("d", max_tokens=100_000, request_id="count"))
    next(stream)
    client.queries.Abort(v1.AbortRequest(request_id="count"))
    refused(lambda: stream, "CANCELLED", "ABORTED_BY_CLIENT")
    refusal(lambda: client.ask("d", ratio=2_000_000))
    after = daemon.metrics()
    for code in ("CANCELLED", "INVALID_ARGUMENT"):
        name = f'docmem_requests_total{{code="{code}",method="Query.Ask"}}'
        assert after[name] - before.get(name, 0) == 1


def test_promtool_accepts_the_metrics(used):
    text = used.metrics_text()
    assert text.endswith("\n")
    for line in text.splitlines():
        assert re.fullmatch(r"# (HELP|TYPE) \S+ .+|[a-z_]+(\{[^{}]*\})? \S+", line), line
    if promtool := shutil.which("promtool"):
        done = subprocess.run([promtool, "check", "metrics"], input=text, text=True,
                              capture_output=True, timeout=30, check=False)
        assert done.returncode == 0, done.stdout + done.stderr


def test_other_paths_of_the_metrics_address_are_not_found(used):
    address = used.log_lines()[0]["metrics"]
    for path in ("/", "/metrics/../../etc/passwd", "/healthz"):
        with pytest.raises(urllib.error.HTTPError) as caught:
            urllib.request.urlopen(f"http://{address}{path}", timeout=10)
        assert caught.value.code in (400, 404)


def test_log_lines_are_json_and_tell_start_and_stop(make_daemon):
    daemon = make_daemon("--log-level", "debug").start()
    client = daemon.client()
    refusal(lambda: client.ask("none"))
    assert daemon.stop() == 0
    lines = daemon.log_lines()
    for line in lines:
        assert {"time", "level", "event"} <= line.keys()
        assert time.strptime(line["time"][:19], "%Y-%m-%dT%H:%M:%S")
        assert line["level"] in ("debug", "info", "warning", "error")
    events = [line["event"] for line in lines]
    assert events[0] == "listening" and events[-1] == "stopped"
    assert [e for e in events if e in ("registry open", "serving", "stopping")] == [
        "registry open", "serving", "stopping"]
    refused = next(line for line in lines if line["event"] == "request refused")
    assert (refused["method"], refused["code"], refused["reason"]) == (
        "Query.Ask", "NOT_FOUND", "DOCUMENT_NOT_FOUND")


def test_no_text_of_users_reaches_logs_metrics_or_errors(make_daemon):
    daemon = make_daemon("--log-level", "debug").start()
    client = daemon.client()
    canary = "Xylograph-7731"
    text = f"{canary} " * 40
    errors = []

    def failing(call):
        errors.append(refusal(call).message)

    client.ingest(text, "d", system_text=canary, ratio_ppm=[0])
    client.upload("d", {**adapter(), "README.md": canary.encode()})
    turns = [v1.Turn(question=canary, answer=canary)]
    answer = client.ask("d", canary, prompt={"instruction": canary, "history": turns},
                        stop=[canary], max_tokens=40)
    client.score("d", canary, canary)
    failing(lambda: client.ingest(text + "x", "d"))
    failing(lambda: client.ingest(text.encode() + b"\xff", "bad"))
    failing(lambda: client.ingest(text * 3000, "long"))
    failing(lambda: client.ask("d", canary, max_tokens=10**6))
    failing(lambda: client.ask(canary + " ?", canary))
    failing(lambda: client.ask("d", canary * 6000))
    failing(lambda: client.ask("d", canary, stop=[canary * 50]))
    failing(lambda: client.score("d", canary * 6000, canary))
    failing(lambda: client.upload("d", {**adapter(), CONFIG: canary.encode()}))
    failing(lambda: client.ingest(text, "d", system_text=canary * 1000))
    stream = client.queries.Ask(ask_request("d", canary, max_tokens=100_000))
    next(stream)
    stream.cancel()
    metrics = daemon.metrics_text()
    assert daemon.stop() == 0
    log = daemon.log.read_text()
    for place in (log, metrics, *errors):
        assert canary not in place and canary.lower() not in place.lower()
    if len(answer.text.strip()) > 8:
        assert json.dumps(answer.text)[1:-1] not in log


def test_health_knows_every_service_and_no_other(used):
    for name in ("", "docmem.liveness", *DESCRIPTORS):
        assert used.health(name) == SERVING, name
    with pytest.raises(grpc.RpcError) as caught:
        used.health("docmem.v1.NoService")
    assert caught.value.code() == grpc.StatusCode.NOT_FOUND
    with grpc.insecure_channel(used.health_address) as channel:
        stub = health_pb2_grpc.HealthStub(channel)
        watch = stub.Watch(health_pb2.HealthCheckRequest(service="none"), timeout=10)
        assert next(watch).status == health_pb2.HealthCheckResponse.SERVICE_UNKNOWN
        watch.cancel()


def test_liveness_is_answered_at_once_while_the_engine_is_busy(make_daemon, patient):
    # Fault 74, as far as seconds show it.
    daemon = make_daemon(model=patient).start()
    client = daemon.client()
    client.ingest(document("busy"), "d", ratio_ppm=[0])
    streams = [client.queries.Ask(ask_request("d", max_tokens=100_000)) for _ in range(16)]
    next(streams[0])
    slowest = 0.0
    for _ in range(scaled(10, 300)):
        began = time.monotonic()
        assert daemon.liveness() == SERVING
        slowest = max(slowest, time.monotonic() - began)
        assert daemon.readiness() == SERVING
    assert slowest < TIME_SLACK
    for stream in streams:
        stream.cancel()


def reflect(stub, **request):
    call = stub.ServerReflectionInfo(
        iter([reflection_pb2.ServerReflectionRequest(**request)]), timeout=20)
    return next(iter(call))


def test_reflection_describes_every_service(used):
    # Fault 53.
    with grpc.insecure_channel(used.address) as channel:
        stub = reflection_pb2_grpc.ServerReflectionStub(channel)
        listed = {s.name for s in reflect(stub, list_services="").list_services_response.service}
        assert set(DESCRIPTORS) <= listed
        assert "grpc.reflection.v1alpha.ServerReflection" in listed
        for name in listed | {"grpc.health.v1.Health"}:
            reply = reflect(stub, file_containing_symbol=name)
            assert reply.file_descriptor_response.file_descriptor_proto, name
        for name, service in DESCRIPTORS.items():
            reply = reflect(stub, file_containing_symbol=name).file_descriptor_response
            files = [descriptor_pb2.FileDescriptorProto.FromString(data)
                     for data in reply.file_descriptor_proto]
            found = [one for file in files for one in file.service if one.name == service.name]
            assert [method.name for method in found[0].method] == [
                method.name for method in service.methods]
