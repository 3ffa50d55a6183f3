"""The overlays, rendered once for both test files."""

import shutil

import pytest
from deployment import Deployment, Model, image_user, read_settings, render

SIZED_FOR = {
    "base": Model(weights=269_030_000, prefill=62_920_000, cache=191_700_000),  # SmolLM2-135M
    "overlays/single-node": Model.of_shape("qwen3-4b"),
    "overlays/gpu-node": Model.of_shape("llama-3.1-8b-instruct"),
    "overlays/replicas": Model.of_shape("qwen3-4b"),
}


@pytest.fixture(scope="session")
def deployments(tmp_path_factory):
    if not shutil.which("kubectl"):
        pytest.skip("kubectl renders the manifests: apt-get install kubernetes-client")
    made = {}
    for overlay, model in SIZED_FOR.items():
        manifests = render(overlay)
        settings = read_settings(manifests, tmp_path_factory.mktemp("config"))
        made[overlay] = Deployment(manifests, settings, model, image_user())
    return made


@pytest.fixture(params=SIZED_FOR)
def deployment(deployments, request):
    return deployments[request.param]
