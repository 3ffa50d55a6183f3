"""What can contradict in a deployment: its manifests each other, or docmemd's settings.

Each rule yields one sentence for each contradiction."""

import re
from pathlib import PurePosixPath
from urllib.parse import urlsplit

from deployment import ports_of

MIB = 2**20
UNITS = {"Mi": MIB, "Gi": 2**30, "Ti": 2**40}
RESERVE = 512 * MIB  # kMemoryReserveBytes of server/memory_plan.h
# After the drain: calls are cut, three listeners closed, 2 s each at most (server/server.cc).
STOP_SECONDS = 8
FILE_SYSTEM_PART = 0.9  # of a volume that documents may fill: the registry and the file system stay


def quantity(text):
    """Bytes of a Kubernetes quantity."""
    return int(text[:-2]) * UNITS[text[-2:]] if text[-2:] in UNITS else int(text)


def storage(claim):
    return quantity(claim["spec"]["resources"]["requests"]["storage"])


def selecting(d):
    """What selects pods, with its selector."""
    yield "StatefulSet docmem", d.stateful_set["selector"]["matchLabels"]
    for kind, path in [("Service", "selector"), ("Deployment", "selector"),
                       ("PodDisruptionBudget", "selector"), ("NetworkPolicy", "podSelector"),
                       ("PodMonitor", "selector")]:
        for manifest in d.all(kind):
            found = manifest["spec"][path]
            yield f"{kind} {manifest['metadata']['name']}", found.get("matchLabels", found)


def selectors(d):
    for who, selector in selecting(d):
        if d.selected(selector) is None:
            yield f"{who} selects {selector}, which isn't one of the pods"


def governing_service(d):
    name = d.stateful_set["serviceName"]
    headless = [s["metadata"]["name"] for s in d.all("Service")
                if s["spec"].get("clusterIP") == "None"]
    if name not in headless:
        yield f"the StatefulSet's service {name} isn't headless"


def port_names(d):
    for service in d.all("Service"):
        pod = d.selected(service["spec"]["selector"])
        for port in service["spec"]["ports"]:
            if pod and port["targetPort"] not in ports_of(pod):
                yield f"Service {service['metadata']['name']} targets no port {port['targetPort']}"
    for policy in d.all("NetworkPolicy"):
        pod = d.selected(policy["spec"]["podSelector"]["matchLabels"])
        for rule in policy["spec"]["ingress"]:
            for port in rule["ports"]:
                if pod and port["port"] not in ports_of(pod):
                    yield f"the NetworkPolicy admits to no port {port['port']}"


def monitor(d):
    spec = d.only("ServiceMonitor")["spec"]
    wanted = spec["selector"]["matchLabels"].items()
    found = [s for s in d.all("Service") if wanted <= s["metadata"]["labels"].items()]
    if len(found) != 1:
        yield f"the ServiceMonitor finds {len(found)} services: each would be scraped once more"
        return
    names = {port["name"] for port in found[0]["spec"]["ports"]}
    for endpoint in spec["endpoints"]:
        if endpoint["port"] not in names:
            yield f"the ServiceMonitor scrapes no port {endpoint['port']}"


def listeners(d):
    for name, setting in [("grpc", "listen"), ("health", "health_listen"),
                          ("metrics", "metrics_listen")]:
        address = f"0.0.0.0:{d.ports[name]}"
        if d.settings[setting] != address:
            yield f"{setting} is {d.settings[setting]}, the port {name} is {address}"


def open_api(d):
    if not d.settings["no_auth"]:
        return
    for policy in d.all("NetworkPolicy"):
        for rule in policy["spec"]["ingress"]:
            admits = "grpc" in [port["port"] for port in rule["ports"]]
            if admits and not rule.get("from"):
                yield "the API asks nobody who they are, and the NetworkPolicy admits everybody"


def way_out(d):
    policy = d.only("NetworkPolicy", "docmem")["spec"]
    if "Egress" not in policy["policyTypes"]:
        yield "the NetworkPolicy lets docmemd call anybody"
        return
    called = set()
    if d.settings["registry"]:
        called |= {53, urlsplit(d.settings["registry"]).port or 5432}
    if d.settings["artifacts"].startswith("s3://"):
        called |= {53, 443}
    let_out = {port["port"] for rule in policy.get("egress", []) for port in rule.get("ports", [{
        "port": "any"}])}
    if let_out != called:
        yield f"docmemd calls the ports {sorted(called)}, the NetworkPolicy lets it call {let_out}"


def probes(d):
    for name, service in [("startupProbe", "docmem.liveness"), ("livenessProbe", "docmem.liveness"),
                          ("readinessProbe", "")]:
        asked = d.container[name]["grpc"]
        if (asked["port"], asked.get("service", "")) != (d.ports["health"], service):
            yield f"the {name} asks {asked}, not the health port for '{service}'"


def grace(d):
    grace = d.pod["spec"]["terminationGracePeriodSeconds"]
    [_, pre_stop] = d.container["lifecycle"]["preStop"]["exec"]["command"]
    needed = int(pre_stop) + d.settings["drain_seconds"] + STOP_SECONDS
    if grace < needed:
        yield f"a grace of {grace} s is less than preStop, drain and stop: {needed} s"


def service_variables(d):
    if d.pod["spec"].get("enableServiceLinks", True):
        yield "the Service docmem sets DOCMEM_PORT, which looks like a setting"


def variables(d):
    for variable in d.container.get("env", []):
        if variable["name"].removeprefix("DOCMEM_").lower() not in d.settings:
            yield f"{variable['name']} is no setting: docmemd would ignore it"


def volumes(d):
    held = {volume["name"] for volume in d.pod["spec"]["volumes"]}
    held |= {claim["metadata"]["name"] for claim in d.stateful_set["volumeClaimTemplates"]}
    for name in sorted(held ^ set(d.mounts)):
        yield f"{name} is only a mount or only a volume"
    [config] = [v["configMap"]["name"] for v in d.pod["spec"]["volumes"] if "configMap" in v]
    if config not in [manifest["metadata"]["name"] for manifest in d.all("ConfigMap")]:
        yield f"the volume is of ConfigMap {config}, which nobody generates"


def paths(d):
    for setting, writes in [("data", True), ("model", False)]:
        mount = d.mounts[setting]
        if mount["mountPath"] != d.settings[setting]:
            yield f"{setting} is {d.settings[setting]}, its volume is at {mount['mountPath']}"
        if mount.get("readOnly", False) == writes:
            yield f"the volume {setting} has the wrong readOnly"
    config = PurePosixPath(d.container["args"][1])
    if str(config.parent) != d.mounts["config"]["mountPath"]:
        yield f"--config names {config}, its volume is at {d.mounts['config']['mountPath']}"


def rights(d):
    for workload in d.workloads:
        pod, [container] = workload["spec"], workload["spec"]["containers"]
        for name, value, right in [
            ("runAsNonRoot", pod["securityContext"].get("runAsNonRoot"), True),
            ("seccompProfile", pod["securityContext"].get("seccompProfile"),
             {"type": "RuntimeDefault"}),
            ("readOnlyRootFilesystem", container["securityContext"].get("readOnlyRootFilesystem"),
             True),
            ("allowPrivilegeEscalation",
             container["securityContext"].get("allowPrivilegeEscalation"), False),
            ("capabilities", container["securityContext"].get("capabilities"), {"drop": ["ALL"]}),
            ("service account token", pod.get("automountServiceAccountToken"), False),
            ("group of the volumes", pod["securityContext"].get("fsGroup"),
             pod["securityContext"].get("runAsGroup")),
        ]:
            if value != right:
                yield f"{name} is {value}, not {right}"
    user = d.pod["spec"]["securityContext"]
    if f"{user['runAsUser']}:{user['runAsGroup']}" != d.image_user:
        yield f"user of the image is {user['runAsUser']}:{user['runAsGroup']}, not {d.image_user}"


def memory(d):
    on_cpu = d.settings["device"] == "cpu"
    fast = (d.model.weights + d.model.prefill + d.model.cache + d.settings["device_budget"]
            + d.settings["kv_budget"] + RESERVE)
    limit = quantity(d.container["resources"]["limits"]["memory"])
    slow = d.model.weights + d.model.cache + d.settings["host_budget"] + RESERVE
    needed = fast if on_cpu else slow
    if needed > limit:
        yield f"{needed // MIB} MiB exceed the memory limit of {limit // MIB} MiB"
    if quantity(d.container["resources"]["requests"]["memory"]) != limit:
        yield "less memory is requested than used: the node may be overcommitted"
    if not on_cpu and fast > gpu_bytes(d):
        yield f"{fast // MIB} MiB exceed the GPU's {gpu_bytes(d) // MIB} MiB"


def gpu_bytes(d):
    """Memory of the smallest GPU that the pod may meet."""
    affinity = d.pod["spec"]["affinity"]["nodeAffinity"]
    [term] = affinity["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
    [expression] = term["matchExpressions"]
    assert (expression["key"], expression["operator"]) == ("nvidia.com/gpu.memory", "Gt")
    return int(expression["values"][0]) * MIB


def gpu(d):
    asked = int(d.container["resources"]["limits"].get("nvidia.com/gpu", 0))
    if asked != (d.settings["device"] != "cpu"):
        yield f"device is {d.settings['device']}, the pod asks for {asked} GPUs"


def threads(d):
    cores, used = int(d.container["resources"]["requests"]["cpu"]), d.settings["threads"]
    if not 0 < used <= cores:
        yield f"{used} threads (0: all of the node's cores) on {cores} requested cores"


def disk(d):
    [claim] = d.stateful_set["volumeClaimTemplates"]
    budget, held = d.settings["disk_budget"], storage(claim)
    if not 0 < budget <= FILE_SYSTEM_PART * held:
        yield f"a disk budget of {budget} bytes (0: no limit) on a volume of {held}"
    if storage(d.only("PersistentVolumeClaim", "docmem-model")) < d.model.weights:
        yield f"the volume docmem-model doesn't hold {d.model.weights} bytes of weights"


def several(d):
    return d.stateful_set.get("replicas") != 1 or bool(d.all("HorizontalPodAutoscaler"))


def one_memory(d):
    shared = d.settings["registry"] and d.settings["artifacts"]
    if several(d) and not shared:
        yield "several replicas without a registry and files in common: each is another memory"
    if not several(d) and d.all("PodDisruptionBudget"):
        yield "a PodDisruptionBudget of one pod blocks the draining of its node"


def autoscaler(d):
    for scaler in [manifest["spec"] for manifest in d.all("HorizontalPodAutoscaler")]:
        target = scaler["scaleTargetRef"]
        if (target["kind"], target["name"]) != ("StatefulSet", "docmem"):
            yield f"the autoscaler scales {target['kind']} {target['name']}"
        if "replicas" in d.stateful_set:
            yield "the number of replicas is set, and the autoscaler sets it too"
        [metric] = scaler["metrics"]
        wanted = int(metric["pods"]["target"]["averageValue"])
        if not 0 < wanted < d.settings["max_sequences"]:
            yield (f"{wanted} questions of each replica are wanted, it decodes "
                   f"{d.settings['max_sequences']} together: more of them wait")
        names = len(d.routed)
        if d.routed and scaler["maxReplicas"] != names:
            yield f"the autoscaler makes {scaler['maxReplicas']} replicas, the router knows {names}"


def router(d):
    if not several(d):
        return
    service = d.only("Service", "docmem")["spec"]["selector"]
    if d.selected(service) is d.pod:
        yield "Service docmem passes the router by: a document's questions would go to any replica"
    if d.routed != [f"docmem-{number}" for number in range(len(d.routed))]:
        yield f"the router's servers {d.routed} aren't the pods of StatefulSet docmem"
    [nodes] = [variable["value"] for variable in d.router_container["env"]
               if variable["name"] == "NODES"]
    if nodes.split(".")[0] != d.stateful_set["serviceName"]:
        yield f"the router looks for {nodes}, the pods are names of {d.stateful_set['serviceName']}"
    ports = ports_of(d.only("Deployment")["spec"]["template"])
    called = set(re.findall(r'"docmem-\d+\.\$\{NODES\}:(\d+)"', d.haproxy))
    checked = set(re.findall(r"check port (\d+)", d.haproxy))
    bound = set(re.findall(r"bind :(\d+) proto h2|bind :(\d+)$", d.haproxy, re.MULTILINE))
    if (called, checked) != ({str(d.ports["grpc"])}, {str(d.ports["health"])}):
        yield f"the router calls the ports {called} and asks {checked}, not those of docmemd"
    if {a or b for a, b in bound} != {str(port) for port in ports.values()}:
        yield f"the router listens on {bound}, its ports are {ports}"
    egress = d.only("NetworkPolicy", "docmem-router")["spec"]["egress"]
    let_out = {str(port["port"]) for rule in egress for port in rule["ports"]}
    if not {str(d.ports["grpc"]), str(d.ports["health"])} <= let_out:
        yield f"the router's NetworkPolicy lets it call {let_out}"


def model_of_all(d):
    [mode] = d.only("PersistentVolumeClaim", "docmem-model")["spec"]["accessModes"]
    if (mode == "ReadOnlyMany") != several(d):
        yield f"the volume docmem-model is {mode}"


RULES = [selectors, governing_service, port_names, monitor, listeners, open_api, way_out, probes,
         grace, service_variables, variables, volumes, paths, rights, memory, gpu, threads, disk,
         one_memory, autoscaler, router, model_of_all]


def contradictions(deployment):
    return [sentence for rule in RULES for sentence in rule(deployment)]
