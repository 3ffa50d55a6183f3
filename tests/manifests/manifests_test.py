"""deploy/kubernetes renders, fits the API's schemas, and its parts refer to each other rightly."""

import os
import shutil
import subprocess
import tomllib
from pathlib import Path

import kubernetes_validate
import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
BASE = ROOT / "deploy/kubernetes/base"
KUBERNETES = "1.32"
CUSTOM_KINDS = {"ServiceMonitor"}  # their schema is the operator's, not Kubernetes'


@pytest.fixture(scope="module")
def manifests():
    if not shutil.which("kubectl"):
        pytest.skip("kubectl renders the manifests: apt-get install kubernetes-client")
    rendered = subprocess.run(
        ["kubectl", "kustomize", BASE], check=True, capture_output=True, text=True
    )
    return list(yaml.safe_load_all(rendered.stdout))


def only(manifests, kind, name=None):
    [found] = [m for m in manifests
               if m["kind"] == kind and name in (None, m["metadata"]["name"])]
    return found


@pytest.fixture
def settings(manifests, tmp_path):
    """What docmemd makes of the rendered configuration."""
    config = tmp_path / "docmem.toml"
    config.write_text(only(manifests, "ConfigMap")["data"]["docmem.toml"])
    docmemd = os.environ.get("DOCMEMD", ROOT / "build/release/bin/docmemd")
    printed = subprocess.run([docmemd, "--config", config, "--check-config"],
                             check=True, capture_output=True, text=True, env={})
    return tomllib.loads(printed.stdout)


@pytest.fixture
def pod(manifests):
    return only(manifests, "StatefulSet")["spec"]["template"]


@pytest.fixture
def container(pod):
    [container] = pod["spec"]["containers"]
    return container


def test_every_kind_of_the_base_is_rendered(manifests):
    assert sorted(m["kind"] for m in manifests) == [
        "ConfigMap", "NetworkPolicy", "PersistentVolumeClaim", "Service", "Service",
        "ServiceMonitor", "StatefulSet",
    ]


def test_every_manifest_fits_its_schema_strictly(manifests):
    for manifest in manifests:
        if manifest["kind"] not in CUSTOM_KINDS:
            kubernetes_validate.validate(manifest, KUBERNETES, strict=True)


def test_a_misspelt_field_would_be_refused(manifests):
    broken = yaml.safe_load(yaml.safe_dump(only(manifests, "StatefulSet")))
    broken["spec"]["replica"] = 1
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(broken, KUBERNETES, strict=True)


def test_selectors_find_the_pods_they_mean(manifests, pod):
    labels = pod["metadata"]["labels"].items()
    stateful_set = only(manifests, "StatefulSet")["spec"]
    assert stateful_set["selector"]["matchLabels"].items() <= labels
    for manifest in manifests:
        if manifest["kind"] == "Service":
            assert manifest["spec"]["selector"].items() <= labels
    policy = only(manifests, "NetworkPolicy")["spec"]
    assert policy["podSelector"]["matchLabels"].items() <= labels


def test_the_stateful_set_is_governed_by_the_headless_service(manifests):
    name = only(manifests, "StatefulSet")["spec"]["serviceName"]
    assert only(manifests, "Service", name)["spec"]["clusterIP"] == "None"


def test_the_monitor_finds_one_service_with_its_port(manifests):
    monitor = only(manifests, "ServiceMonitor")["spec"]
    wanted = monitor["selector"]["matchLabels"].items()
    [service] = [m for m in manifests
                 if m["kind"] == "Service" and wanted <= m["metadata"]["labels"].items()]
    names = {port["name"] for port in service["spec"]["ports"]}
    assert {endpoint["port"] for endpoint in monitor["endpoints"]} <= names


def test_ports_named_elsewhere_are_ports_of_the_container(manifests, container):
    names = {port["name"] for port in container["ports"]}
    for manifest in manifests:
        if manifest["kind"] == "Service":
            assert {port["targetPort"] for port in manifest["spec"]["ports"]} <= names
    for rule in only(manifests, "NetworkPolicy")["spec"]["ingress"]:
        assert {port["port"] for port in rule["ports"]} <= names


def test_the_daemon_listens_where_the_ports_say_and_stores_where_the_volumes_are(
        settings, container):
    ports = {port["name"]: port["containerPort"] for port in container["ports"]}
    assert settings["listen"] == f"0.0.0.0:{ports['grpc']}"
    assert settings["health_listen"] == f"0.0.0.0:{ports['health']}"
    assert settings["metrics_listen"] == f"0.0.0.0:{ports['metrics']}"
    mounts = {mount["name"]: mount["mountPath"] for mount in container["volumeMounts"]}
    assert (settings["data"], settings["model"]) == (mounts["data"], mounts["model"])


def test_probes_ask_the_health_port_by_grpc(container):
    [health] = [p["containerPort"] for p in container["ports"] if p["name"] == "health"]
    assert container["livenessProbe"]["grpc"] == {"port": health, "service": "docmem.liveness"}
    assert container["readinessProbe"]["grpc"]["port"] == health


def test_the_daemon_has_time_to_drain(settings, pod, container):
    grace = pod["spec"]["terminationGracePeriodSeconds"]
    [_, pre_stop] = container["lifecycle"]["preStop"]["exec"]["command"]
    assert grace > int(pre_stop) + settings["drain_seconds"]


def test_no_service_variable_looks_like_an_option_of_ours(pod):
    assert pod["spec"]["enableServiceLinks"] is False


def test_mounts_have_volumes_and_the_config_is_the_generated_one(manifests, pod, container):
    claims = only(manifests, "StatefulSet")["spec"]["volumeClaimTemplates"]
    volumes = {volume["name"]: volume for volume in pod["spec"]["volumes"]}
    names = set(volumes) | {claim["metadata"]["name"] for claim in claims}
    assert {mount["name"] for mount in container["volumeMounts"]} == names
    config = only(manifests, "ConfigMap")
    assert volumes["config"]["configMap"]["name"] == config["metadata"]["name"]
    assert list(config["data"]) == ["docmem.toml"]


def test_the_pod_runs_without_rights(pod, container):
    assert pod["spec"]["securityContext"]["runAsNonRoot"] is True
    assert container["securityContext"]["readOnlyRootFilesystem"] is True
    assert container["securityContext"]["capabilities"]["drop"] == ["ALL"]
