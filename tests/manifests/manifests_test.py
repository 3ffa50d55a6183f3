"""deploy/kubernetes renders, fits the API's schemas, and contradicts neither itself nor docmemd."""

import copy

import kubernetes_validate
import pytest
from contradictions import contradictions

SCHEMAS = "1.32"
CUSTOM_KINDS = {"ServiceMonitor"}  # their schema is the operator's, not Kubernetes'
KINDS = ["ConfigMap", "NetworkPolicy", "PersistentVolumeClaim", "Service", "Service",
         "ServiceMonitor", "StatefulSet"]


def test_every_kind_is_rendered(deployment):
    assert sorted(m["kind"] for m in deployment.manifests) == KINDS


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
