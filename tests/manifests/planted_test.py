"""Every contradiction that contradictions.py knows is planted here, and found."""

import copy

import contradictions
import pytest

CPU, GPU, SEVERAL = "overlays/single-node", "overlays/gpu-node", "overlays/replicas"


def service(d):
    return d.only("Service", "docmem")


def policy(d):
    return d.only("NetworkPolicy", "docmem")["spec"]


def router_policy(d):
    return d.only("NetworkPolicy", "docmem-router")["spec"]


def scaler(d):
    return d.only("HorizontalPodAutoscaler")["spec"]


def configure(d, old, new):
    """Another text for the router."""
    assert old in d.haproxy
    d.haproxy = d.haproxy.replace(old, new)


def endpoint(d):
    return d.only("ServiceMonitor")["spec"]["endpoints"][0]


def model_volume(d):
    return d.only("PersistentVolumeClaim")["spec"]["resources"]["requests"]


def data_volume(d):
    return d.stateful_set["volumeClaimTemplates"][0]["spec"]["resources"]["requests"]


def resources(d, which):
    return d.container["resources"][which]


def gpu_memory(d):
    affinity = d.pod["spec"]["affinity"]["nodeAffinity"]
    [term] = affinity["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
    return term["matchExpressions"][0]


# Overlay, what is done to it, what is said.
PLANTS = [
    (CPU, lambda d: service(d)["spec"]["selector"].update(tier="web"), "Service docmem selects"),
    (CPU, lambda d: policy(d)["podSelector"]["matchLabels"].update(tier="web"),
     "NetworkPolicy docmem selects"),
    (CPU, lambda d: d.stateful_set["selector"]["matchLabels"].update(tier="web"),
     "StatefulSet docmem selects"),
    (CPU, lambda d: d.stateful_set.update(serviceName="docmem"), "docmem isn't headless"),
    (CPU, lambda d: service(d)["spec"]["ports"][0].update(targetPort="api"), "no port api"),
    (CPU, lambda d: policy(d)["ingress"][1]["ports"].append({"port": "debug"}), "no port debug"),
    (CPU, lambda d: endpoint(d).update(port="health"), "scrapes no port health"),
    (CPU, lambda d: service(d)["metadata"]["labels"].update(
        d.only("Service", "docmem-nodes")["metadata"]["labels"]), "finds 2 services"),
    (CPU, lambda d: d.settings.update(listen="127.0.0.1:7600"), "listen is 127.0.0.1:7600"),
    (CPU, lambda d: d.settings.update(metrics_listen="0.0.0.0:9090"), "metrics_listen is"),
    (CPU, lambda d: d.settings.update(health_listen="0.0.0.0:9090"), "health_listen is"),
    (CPU, lambda d: policy(d)["ingress"][0].pop("from"), "admits everybody"),
    (CPU, lambda d: policy(d)["ingress"][1]["ports"].append({"port": "grpc"}), "admits everybody"),
    (CPU, lambda d: policy(d)["policyTypes"].remove("Egress"), "lets docmemd call anybody"),
    (CPU, lambda d: policy(d).update(egress=[{}]), "docmemd calls the ports []"),
    (SEVERAL, lambda d: d.settings.update(registry="postgresql://docmem@db:6432/docmem"),
     "docmemd calls the ports [53, 443, 6432]"),
    (SEVERAL, lambda d: policy(d)["egress"].clear(), "docmemd calls the ports [53, 443, 5432]"),
    (CPU, lambda d: d.container["livenessProbe"]["grpc"].pop("service"), "the livenessProbe asks"),
    (CPU, lambda d: d.container["startupProbe"]["grpc"].update(port=7600), "the startupProbe asks"),
    (CPU, lambda d: d.container["readinessProbe"]["grpc"].update(service="docmem.liveness"),
     "the readinessProbe asks"),
    (CPU, lambda d: d.settings.update(drain_seconds=63), "less than preStop, drain and stop: 76 s"),
    (CPU, lambda d: d.pod["spec"].update(terminationGracePeriodSeconds=65), "a grace of 65 s"),
    (CPU, lambda d: d.container["lifecycle"]["preStop"]["exec"].update(command=["sleep", "20"]),
     "less than preStop"),
    (CPU, lambda d: d.pod["spec"].pop("enableServiceLinks"), "DOCMEM_PORT"),
    (CPU, lambda d: d.container["env"][0].update(name="DOCMEM_DISC_BUDGET"), "is no setting"),
    (CPU, lambda d: d.pod["spec"]["volumes"].append({"name": "spare", "emptyDir": {}}),
     "spare is only"),
    (CPU, lambda d: d.only("ConfigMap")["metadata"].update(name="docmem"), "nobody generates"),
    (CPU, lambda d: d.settings.update(data="/data"), "data is /data"),
    (CPU, lambda d: d.settings.update(model="/models/qwen"), "model is /models/qwen"),
    (CPU, lambda d: d.mounts["data"].update(readOnly=True), "data has the wrong readOnly"),
    (CPU, lambda d: d.mounts["model"].pop("readOnly"), "model has the wrong readOnly"),
    (CPU, lambda d: d.container.update(args=["--config", "/etc/docmem.toml"]), "--config names"),
    (CPU, lambda d: d.pod["spec"]["securityContext"].pop("runAsNonRoot"), "runAsNonRoot is None"),
    (CPU, lambda d: d.pod["spec"]["securityContext"].pop("seccompProfile"), "seccompProfile is"),
    (CPU, lambda d: d.container["securityContext"].update(readOnlyRootFilesystem=False),
     "readOnlyRootFilesystem is False"),
    (CPU, lambda d: d.container["securityContext"].pop("allowPrivilegeEscalation"),
     "allowPrivilegeEscalation is None"),
    (CPU, lambda d: d.container["securityContext"]["capabilities"].update(add=["SYS_ADMIN"]),
     "capabilities is"),
    (CPU, lambda d: d.pod["spec"].pop("automountServiceAccountToken"), "account token is None"),
    (CPU, lambda d: setattr(d, "image_user", "10002:10001"), "user of the image is 10001:10001"),
    (CPU, lambda d: d.pod["spec"]["securityContext"].update(fsGroup=1000), "group of the volumes"),
    (CPU, lambda d: d.settings.update(device_budget=8 * 2**30), "exceed the memory limit"),
    (GPU, lambda d: d.settings.update(host_budget=34 * 2**30), "exceed the memory limit"),
    (GPU, lambda d: d.settings.update(device_budget=44 * 2**30), "exceed the GPU's 75000 MiB"),
    (GPU, lambda d: d.settings.update(kv_budget=16 * 2**30), "exceed the GPU's 75000 MiB"),
    (GPU, lambda d: gpu_memory(d).update(values=["40000"]), "exceed the GPU's 40000 MiB"),
    (CPU, lambda d: resources(d, "requests").update(memory="8Gi"), "may be overcommitted"),
    (GPU, lambda d: resources(d, "limits").pop("nvidia.com/gpu"), "asks for 0 GPUs"),
    (CPU, lambda d: resources(d, "limits").update({"nvidia.com/gpu": 1}), "asks for 1 GPUs"),
    (CPU, lambda d: d.settings.update(threads=0), "0 threads"),
    (CPU, lambda d: resources(d, "requests").update(cpu="4"), "8 threads"),
    (CPU, lambda d: data_volume(d).update(storage="160Gi"), "a disk budget of"),
    (CPU, lambda d: d.settings.update(disk_budget=0), "a disk budget of 0 bytes"),
    (CPU, lambda d: model_volume(d).update(storage="4Gi"), "doesn't hold"),
    (CPU, lambda d: d.manifests.append(
        {"kind": "PodDisruptionBudget", "metadata": {"name": "docmem"}, "spec": {
            "selector": {"matchLabels": d.pod["metadata"]["labels"]}}}), "blocks the draining"),
    (SEVERAL, lambda d: d.settings.update(artifacts="", registry="") or policy(d).pop("egress"),
     "each is another memory"),
    (SEVERAL, lambda d: scaler(d)["scaleTargetRef"].update(name="docmem-router"),
     "the autoscaler scales StatefulSet docmem-router"),
    (SEVERAL, lambda d: d.stateful_set.update(replicas=3), "the autoscaler sets it too"),
    (SEVERAL, lambda d: scaler(d)["metrics"][0]["pods"]["target"].update(averageValue="40"),
     "more of them wait"),
    (SEVERAL, lambda d: scaler(d).update(maxReplicas=12), "makes 12 replicas, the router knows 8"),
    (SEVERAL, lambda d: service(d)["spec"].update(
        selector={"app.kubernetes.io/name": "docmem"}), "passes the router by"),
    (SEVERAL, lambda d: configure(d, "server docmem-7 ", "server docmem-8 "),
     "aren't the pods of StatefulSet"),
    (SEVERAL, lambda d: d.router_container["env"][1].update(value="docmem.default.svc"),
     "the router looks for docmem.default.svc"),
    (SEVERAL, lambda d: configure(d, ":7600\"", ":7610\""), "the router calls the ports {'7610'}"),
    (SEVERAL, lambda d: configure(d, "bind :7600", "bind :7700"), "the router listens on"),
    (SEVERAL, lambda d: router_policy(d)["egress"][0]["ports"].pop(),
     "the router's NetworkPolicy lets it call"),
    (SEVERAL, lambda d: d.router_container["securityContext"].update(capabilities={}),
     "capabilities is {}"),
    (SEVERAL, lambda d: d.only("Deployment")["spec"]["selector"]["matchLabels"].update(tier="web"),
     "Deployment docmem-router selects"),
    (SEVERAL, lambda d: d.only("PodDisruptionBudget", "docmem")["spec"]["selector"][
        "matchLabels"].update(tier="web"), "PodDisruptionBudget docmem selects"),
    (SEVERAL, lambda d: d.only("PersistentVolumeClaim")["spec"].update(
        accessModes=["ReadWriteOnce"]), "docmem-model is ReadWriteOnce"),
]


@pytest.mark.parametrize("overlay, plant, said", PLANTS, ids=[said for _, _, said in PLANTS])
def test_a_planted_contradiction_is_found_and_nothing_else(deployments, overlay, plant, said):
    deployment = copy.deepcopy(deployments[overlay])
    plant(deployment)
    [found] = contradictions.contradictions(deployment)
    assert said in found


def test_every_rule_has_a_plant(deployments):
    unplanted = set(contradictions.RULES)
    for overlay, plant, _ in PLANTS:
        deployment = copy.deepcopy(deployments[overlay])
        plant(deployment)
        unplanted -= {rule for rule in contradictions.RULES if list(rule(deployment))}
    assert not unplanted
