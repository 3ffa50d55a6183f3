"""A rendered overlay of deploy/kubernetes, with what docmemd makes of its configuration."""

import json
import os
import re
import subprocess
import tomllib
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parents[2]
KUBERNETES = ROOT / "deploy/kubernetes"
MODELS = ROOT / "tests/reference/shapes"
DOCMEMD = os.environ.get("DOCMEMD", ROOT / "build/release/bin/docmemd")


@dataclass
class Model:
    """Bytes of a model in bfloat16, as the daemon counts them."""

    weights: int
    prefill: int  # Engine::IngestionPeakBytes of the longest context
    cache: int  # Engine::CacheBytes of the longest context

    @classmethod
    def of_shape(cls, name):
        config = json.loads((MODELS / name / "config.json").read_text())
        parameters = json.loads((MODELS / name / "parameters.json").read_text())["count"]
        heads, kv_heads = config["num_attention_heads"], config["num_key_value_heads"]
        hidden, positions = config["hidden_size"], config["max_position_embeddings"]
        head_dim = config.get("head_dim", hidden // heads)
        row = 2 * (2 * kv_heads * head_dim + 2 * hidden)
        kept = config["num_hidden_layers"] * kv_heads * (2 * 2 * head_dim + 4)
        return cls(2 * parameters, positions * row * 5 // 2, positions * kept)


@dataclass
class Deployment:
    manifests: list
    settings: dict  # as docmemd --check-config prints them
    model: Model  # the one that the overlay's sizes are for
    image_user: str  # of the Dockerfile

    def all(self, kind):
        return [manifest for manifest in self.manifests if manifest["kind"] == kind]

    def only(self, kind, name=None):
        [found] = [m for m in self.all(kind) if name in (None, m["metadata"]["name"])]
        return found

    @cached_property
    def stateful_set(self):
        return self.only("StatefulSet")["spec"]

    @cached_property
    def pod(self):
        return self.stateful_set["template"]

    @cached_property
    def container(self):
        [container] = self.pod["spec"]["containers"]
        return container

    @cached_property
    def workloads(self):
        """Templates of pods, docmemd's first."""
        return [self.pod, *(made["spec"]["template"] for made in self.all("Deployment"))]

    def selected(self, selector):
        """The template of the pods that it selects, or nothing."""
        found = [pod for pod in self.workloads
                 if selector.items() <= pod["metadata"]["labels"].items()]
        return found[0] if len(found) == 1 else None

    @cached_property
    def ports(self):
        return ports_of(self.pod)

    @cached_property
    def haproxy(self):
        """What the router is configured with."""
        [text] = [made["data"]["haproxy.cfg"] for made in self.all("ConfigMap")
                  if "haproxy.cfg" in made["data"]] or [""]
        return text

    @property
    def routed(self):
        """The servers that the router has in Kubernetes."""
        return re.findall(r"^ +server (docmem-\d+) .* check", self.haproxy, re.MULTILINE)

    @cached_property
    def router_container(self):
        [container] = self.only("Deployment")["spec"]["template"]["spec"]["containers"]
        return container

    @cached_property
    def mounts(self):
        return {mount["name"]: mount for mount in self.container["volumeMounts"]}


def ports_of(pod):
    [container] = pod["spec"]["containers"]
    return {port["name"]: port["containerPort"] for port in container["ports"]}


def render(folder):
    """The manifests of a kustomization."""
    rendered = subprocess.run(["kubectl", "kustomize", KUBERNETES / folder],
                              check=True, capture_output=True, text=True)
    return list(yaml.safe_load_all(rendered.stdout))


def read_settings(manifests, folder):
    """What docmemd in the pod makes of its arguments, variables and file."""
    deployment = Deployment(manifests, {}, None, "")
    [option, path] = deployment.container["args"]
    file = folder / Path(path).name
    [text] = [made["data"][file.name] for made in deployment.all("ConfigMap")
              if file.name in made["data"]]
    file.write_text(text)
    variables = {v["name"]: v["value"] for v in deployment.container.get("env", [])}
    printed = subprocess.run([DOCMEMD, option, file, "--check-config"],
                             check=True, capture_output=True, text=True, env=variables)
    return tomllib.loads(printed.stdout)


def image_user():
    [user] = [line.split()[1] for line in (ROOT / "Dockerfile").read_text().splitlines()
              if line.startswith("USER ")]
    return user
