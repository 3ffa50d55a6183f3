"""deploy/kubernetes renders, fits the API's schemas, and contradicts neither itself nor docmemd."""

import copy
import shutil

import kubernetes_validate
import pytest
from contradictions import contradictions
from deployment import KUBERNETES, Deployment, read_settings, render

SCHEMAS = "1.32"
CUSTOM_KINDS = {"PodMonitor", "ServiceMonitor"}  # their schema is the operator's, not Kubernetes'
KINDS = ["ConfigMap", "NetworkPolicy", "PersistentVolumeClaim", "Service", "Service",
         "ServiceMonitor", "StatefulSet"]
OF_REPLICAS = ["ConfigMap", "Deployment", "HorizontalPodAutoscaler", "NetworkPolicy",
               "PodDisruptionBudget", "PodDisruptionBudget", "PodMonitor"]


def test_every_kind_is_rendered(deployments):
    for overlay, deployment in deployments.items():
        kinds = sorted(KINDS + OF_REPLICAS) if overlay == "overlays/replicas" else KINDS
        assert sorted(m["kind"] for m in deployment.manifests) == kinds


def test_every_manifest_fits_its_schema_strictly(deployment):
    for manifest in deployment.manifests:
        if manifest["kind"] not in CUSTOM_KINDS:
            kubernetes_validate.validate(manifest, SCHEMAS, strict=True)


def test_a_misspelt_field_would_be_refused(deployment):
    broken = copy.deepcopy(deployment.only("StatefulSet"))
    broken["spec"]["replica"] = 1
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(broken, SCHEMAS, strict=True)


def test_nothing_contradicts(deployment):
    assert contradictions(deployment) == []


def test_replicas_can_have_gpus(tmp_path, deployments):
    copied = shutil.copytree(KUBERNETES.parent, tmp_path / "deploy") / "kubernetes"
    file = copied / "overlays/replicas/kustomization.yaml"
    file.write_text(file.read_text().replace("- ../single-node", "- ../gpu-node"))
    manifests = render(file.parent)
    one, several = deployments["overlays/gpu-node"], deployments["overlays/replicas"]
    deployment = Deployment(manifests, read_settings(manifests, tmp_path), one.model,
                            several.image_user)
    assert contradictions(deployment) == []
    assert deployment.settings["device"] == "cuda:0" and deployment.settings["artifacts"]
